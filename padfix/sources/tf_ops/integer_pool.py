"""Maximum pools of wide integers, which ONNX does not have.

tf2onnx takes them through float32, where 2**24 + 1 becomes 2**24. Through float64 every 32-bit integer is exact; 64-bit
ones are not, and are refused.
"""

from __future__ import annotations

from typing import Any

from padfix.errors import UnsupportedError

OPERATORS = frozenset({"MaxPool", "MaxPoolV2", "MaxPool3D"})

# TensorFlow's DataType numbers (types.proto).
_DOUBLE, _INT64, _UINT64 = 2, 9, 23
_WIDE = frozenset({3, 5, 17, 22})  # int32, int16, uint16, uint32


def widen(graph_def: Any) -> None:
    """Put casts to and from float64 around the maximum pools of 16- and 32-bit integers in a GraphDef.

    Raises:
        UnsupportedError: A pool of 64-bit integers.
    """
    pools = [node for node in graph_def.node if node.op in OPERATORS]
    for node in pools:
        integer = node.attr["T"].type
        if integer in (_INT64, _UINT64):
            raise UnsupportedError(
                f"The node {node.name} pools 64-bit integers, which ONNX has no exact form for.",
                "Cast its input to int32 in the model.",
            )
        if integer not in _WIDE:
            continue
        name, data = node.name, node.input[0]
        before = graph_def.node.add(name=f"{name}/padfix_widen", op="Cast", input=[data])
        before.attr["SrcT"].type, before.attr["DstT"].type = integer, _DOUBLE
        after = graph_def.node.add(name=name, op="Cast", input=[f"{name}/padfix_pool"])
        after.attr["SrcT"].type, after.attr["DstT"].type = _DOUBLE, integer
        node.name = f"{name}/padfix_pool"
        node.input[0] = before.name
        node.attr["T"].type = _DOUBLE
        node.attr.pop("_output_shapes", None)
