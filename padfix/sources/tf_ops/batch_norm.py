"""The statistics that FusedBatchNorm gives beside its result, for training, refused where something reads them.

tf2onnx writes them as outputs that BatchNormalization doesn't have. There is nothing to prove a form of them by:
TensorFlow's CPU kernel leaves some of them unwritten memory, such as those of float16 images.
"""

from __future__ import annotations

from typing import Any

from padfix.errors import UnsupportedError

NORMALISATIONS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})


def refuse_statistics(ctx: Any) -> None:
    """Refuse a tf2onnx graph that goes on with the statistics of a FusedBatchNorm.

    Raises:
        UnsupportedError: With the node's name.
    """
    for node in ctx.get_nodes():
        statistics = node.output[1:] if node.type in NORMALISATIONS else []
        if any(name in ctx.outputs or ctx.find_output_consumers(name) for name in statistics):
            raise UnsupportedError(
                f"The model gives or uses the statistics that {node.type} ({node.name}) makes for training; "
                "ONNX has no form of them.",
                "Leave all but the node's first output out of the model's results.",
            )
