"""Select and SelectV2 (``tf.where`` with three arguments), as a Where.

tf2onnx multiplies each side by a mask and adds them up: what is infinite or no number is there where it was not chosen,
as in ``tf.where(x > 0, tf.math.log(x), 0.0)``.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import Builder, Tensor

OPERATORS = ("Select", "SelectV2")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the elements of one side or the other; a vector chooses rows, unless it broadcasts as in SelectV2."""
    condition, positive, negative = (builder.read(name) for name in node.input)
    ranks = [builder.ctx.get_rank(name) for name in node.input]
    rank = ranks[1] if ranks[1] is not None else ranks[2]
    if node.type == "Select" and ranks[0] == 1 and rank != 1:
        if rank is None:
            raise ValueError(f"{node.name} chooses rows of tensors whose rank is not known")
        condition = condition.unsqueeze(range(1, rank))
    return builder.choose(condition, positive, negative)
