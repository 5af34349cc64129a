"""Which axes of an operator's inputs are of one length, as ONNX defines the operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from onnx import NodeProto

from padfix.graph import attributes
from padfix.operators.equations import parts_of
from padfix.operators.quantizers import QUANTIZERS
from padfix.operators.recurrent_layers import RECURRENT

Axis = tuple[int, int]
"""The position of an input, and an axis of it."""

Ranks = Mapping[int, int]
"""How many axes each input has, by position."""


class Alike(NamedTuple):
    """Axes of one length.

    Attributes:
        axes: The axes.
        may_be_one: Whether each may have length 1 instead, which is broadcast.
    """

    axes: list[Axis]
    may_be_one: bool = False


_IMAGES: Mapping[str, tuple[int, ...]] = {"DeformConv": (0, 2, 4), "GridSample": (0, 1)}
"""Which inputs of an operator count images by their first axis."""


def shared_lengths(node: NodeProto, ranks: Ranks) -> list[Alike]:
    """Return groups of axes that have one length each time; only axes that the inputs have."""
    found = _GROUPS.get(node.op_type, _of_images)(node, ranks)
    return [
        Alike([(position, axis) for position, axis in axes if 0 <= axis < ranks.get(position, 0)], may_be_one)
        for axes, may_be_one in found
    ]


def _of_images(node: NodeProto, ranks: Ranks) -> list[Alike]:
    return [Alike([(position, 0) for position in _IMAGES.get(node.op_type, ())])]


def _of_quantizer(node: NodeProto, ranks: Ranks) -> list[Alike]:
    if not ranks.get(0) or ranks.get(1) != 1:
        return []
    return [Alike([(0, (attributes.integer(node, "axis", 1) or 0) % ranks[0]), (1, 0)])]


def _of_gathered_tuples(node: NodeProto, ranks: Ranks) -> list[Alike]:
    return [Alike([(0, axis), (1, axis)]) for axis in range(attributes.integer(node, "batch_dims", 0) or 0)]


def _of_product(second: int) -> Callable[[NodeProto, Ranks], list[Alike]]:
    """Return what the two factors of a product share: what is summed over, and the axes of the matrices' batch."""

    def groups(node: NodeProto, ranks: Ranks) -> list[Alike]:
        rows, columns = ranks.get(0, 0), ranks.get(second, 0)
        summed = Alike([(0, rows - 1), (second, max(columns - 2, 0))])
        batch = range(3, min(rows, columns) + 1)
        return [summed, *(Alike([(0, rows - back), (second, columns - back)], may_be_one=True) for back in batch)]

    return groups


def _of_gemm(node: NodeProto, ranks: Ranks) -> list[Alike]:
    first, second = (attributes.integer(node, name, 0) for name in ("transA", "transB"))
    added = ranks.get(2, 0)
    return [
        Alike([(0, 0 if first else 1), (1, 1 if second else 0)]),
        Alike([(1, 0 if second else 1), (2, added - 1)], may_be_one=True),
        Alike([(0, 1 if first else 0), (2, added - 2)], may_be_one=True),
    ]


def _of_channels(node: NodeProto, ranks: Ranks) -> list[Alike]:
    return [Alike([(0, 1), (1, 0), (2, 0)])]


def _of_groups(node: NodeProto, ranks: Ranks) -> list[Alike]:
    """Return that scale and bias are as long; before opset 21 they count groups, since then channels."""
    return [Alike([(1, 0), (2, 0)])]


def _of_last_axes(node: NodeProto, ranks: Ranks) -> list[Alike]:
    """Return the axes that a layer's scale and bias have, which are the last of its data."""
    weighed = range(1, ranks.get(1, 0) + 1)
    return [Alike([(place, ranks.get(place, 0) - back) for place in range(3)], may_be_one=True) for back in weighed]


def _of_features(node: NodeProto, ranks: Ranks) -> list[Alike]:
    """Return that a recurrent layer weighs each feature of its data."""
    return [Alike([(0, 2), (1, 2)])]


def _of_picked(node: NodeProto, ranks: Ranks) -> list[Alike]:
    """Return the rows, of which there may be fewer indices but not more."""
    rank = ranks.get(0, 0)
    own = (attributes.integer(node, "axis", 0) or 0) % max(rank, 1)
    return [Alike([(0, axis), (1, axis)]) for axis in range(rank) if axis != own]


def _of_joined(node: NodeProto, ranks: Ranks) -> list[Alike]:
    rank = ranks.get(0, 0)
    joined = attributes.integer(node, "axis", 1) % max(rank, 1)
    return [Alike([(position, axis) for position in ranks]) for axis in range(rank) if axis != joined]


def _of_equation(node: NodeProto, ranks: Ranks) -> list[Alike]:
    """Return the axes that an equation of Einsum gives one letter; none where it has an ellipsis."""
    factors, _ = parts_of(attributes.text(node, "equation"))
    if any("." in each for each in factors):
        return []
    groups: dict[str, list[Axis]] = {}
    for position, term in enumerate(factors):
        for axis, letter in enumerate(term):
            groups.setdefault(letter, []).append((position, axis))
    return list(map(Alike, groups.values()))


def _fixed(*groups: list[Axis]) -> Callable[[NodeProto, Ranks], list[Alike]]:
    return lambda node, ranks: list(map(Alike, groups))


_GROUPS: Mapping[str, Callable[[NodeProto, Ranks], list[Alike]]] = {
    **dict.fromkeys(QUANTIZERS, _of_quantizer),
    **dict.fromkeys(("MatMul", "MatMulInteger"), _of_product(1)),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _of_last_axes),
    **dict.fromkeys(("Scatter", "ScatterElements"), _fixed(*([(1, axis), (2, axis)] for axis in range(8)))),
    **dict.fromkeys(RECURRENT, _of_features),
    "Concat": _of_joined,
    "Einsum": _of_equation,
    "GatherElements": _of_picked,
    "GatherND": _of_gathered_tuples,
    "Gemm": _of_gemm,
    "GroupNormalization": _of_groups,
    "InstanceNormalization": _of_channels,
    "NonMaxSuppression": _fixed([(0, 0), (1, 0)], [(0, 1), (1, 2)]),
    "QLinearMatMul": _of_product(3),
    "RoiAlign": _fixed([(1, 0), (2, 0)]),
}
