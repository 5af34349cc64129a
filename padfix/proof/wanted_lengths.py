"""The length that an operator without windows wants an axis of its data to have, as its weights or attributes tell."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import normal_domain
from padfix.operators.recurrent_layers import RECURRENT

Shapes = Mapping[str, tuple[int, ...]]
"""The shapes of constants, by name."""

_FACTORS = {"MatMul": 1, "MatMulInteger": 1, "QLinearMatMul": 3}
"""Which input of a product is its second factor."""

_PER_CHANNEL = ("GroupNormalization", "InstanceNormalization")

_PER_LAST = ("LayerNormalization", "RMSNormalization")


def wanted_length(node: NodeProto, shapes: Shapes, rank: int) -> tuple[int, int] | None:
    """Return an axis of the first input, which has so many axes, and the length that it is to have; None if any."""
    if normal_domain(node.domain) or not rank:
        return None
    found = _told(node, shapes, rank)
    return None if found is None or not -rank <= found[0] < rank else (found[0] % rank, found[1])


def _told(node: NodeProto, shapes: Shapes, rank: int) -> tuple[int, int] | None:
    def shape_of(position: int, least: int) -> tuple[int, ...] | None:
        found = shapes.get(node.input[position]) if position < len(node.input) else None
        return found if found is not None and len(found) >= least else None

    if node.op_type in _FACTORS:
        factor = shape_of(_FACTORS[node.op_type], 1)
        return None if factor is None else (-1, factor[-2] if len(factor) > 1 else factor[0])
    if node.op_type == "Gemm":
        factor = shape_of(1, 2)
        along, across = (attributes.integer(node, name, 0) for name in ("transA", "transB"))
        return None if factor is None else (0 if along else 1, factor[1 if across else 0])
    if node.op_type in RECURRENT:
        weights = shape_of(1, 3)
        return None if weights is None else (2, weights[2])
    if node.op_type in _PER_CHANNEL:
        scale = shape_of(1, 1)
        # Before opset 21 a GroupNormalization has a scale for each group.
        is_of_groups = scale is not None and scale[0] == attributes.integer(node, "num_groups", 0)
        return None if scale is None or is_of_groups else (1, scale[0])
    if node.op_type in _PER_LAST:
        scale = shape_of(1, 1)
        return None if scale is None or scale[-1] == 1 else (-1, scale[-1])
    pieces = attributes.integers(node, "split") if node.op_type == "Split" else None
    return None if not pieces else (attributes.integer(node, "axis", 0), sum(pieces))
