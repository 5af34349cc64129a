"""Which axes of an operator's inputs are of one length, as ONNX defines the operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from padfix.graph import attributes
from padfix.operators.equations import parts_of
from padfix.operators.quantizers import QUANTIZERS
from padfix.rules.base import Site

Axis = tuple[int, int]
"""The position of an input, and an axis of it."""

Ranks = Mapping[int, int]
"""How many axes each input has, by position."""

_IMAGES: Mapping[str, tuple[int, ...]] = {"DeformConv": (0, 2, 4), "GridSample": (0, 1)}
"""Which inputs of an operator count images by their first axis."""


def shared_lengths(site: Site, ranks: Ranks) -> list[list[Axis]]:
    """Return groups of axes that have one length each time; only axes that the inputs have."""
    found = _GROUPS.get(site.node.op_type, _of_images)(site, ranks)
    return [[(position, axis) for position, axis in group if 0 <= axis < ranks.get(position, 0)] for group in found]


def _of_images(site: Site, ranks: Ranks) -> list[list[Axis]]:
    return [[(position, 0) for position in _IMAGES.get(site.node.op_type, ())]]


def _of_quantizer(site: Site, ranks: Ranks) -> list[list[Axis]]:
    if not ranks.get(0) or ranks.get(1) != 1:
        return []
    return [[(0, (attributes.integer(site.node, "axis", 1) or 0) % ranks[0]), (1, 0)]]


def _of_gathered_tuples(site: Site, ranks: Ranks) -> list[list[Axis]]:
    return [[(0, axis), (1, axis)] for axis in range(attributes.integer(site.node, "batch_dims", 0) or 0)]


def _of_product(second: int) -> Callable[[Site, Ranks], list[list[Axis]]]:
    """Return what the two factors of a product share: what is summed over, and the axes of the matrices' batch."""

    def groups(site: Site, ranks: Ranks) -> list[list[Axis]]:
        rows, columns = ranks.get(0, 0), ranks.get(second, 0)
        summed = [(0, rows - 1), (second, max(columns - 2, 0))]
        batch = range(3, min(rows, columns) + 1)
        return [summed, *([(0, rows - back), (second, columns - back)] for back in batch)]

    return groups


def _of_gemm(site: Site, ranks: Ranks) -> list[list[Axis]]:
    first, second = (attributes.integer(site.node, name, 0) for name in ("transA", "transB"))
    added = ranks.get(2, 0)
    return [
        [(0, 0 if first else 1), (1, 1 if second else 0)],
        [(1, 0 if second else 1), (2, added - 1)],
        [(0, 1 if first else 0), (2, added - 2)],
    ]


def _of_last_axes(site: Site, ranks: Ranks) -> list[list[Axis]]:
    """Return the axes that a layer's scale and bias have, which are the last of its data."""
    weighed = range(1, ranks.get(1, 0) + 1)
    return [[(place, ranks.get(place, 0) - back) for place in range(3)] for back in weighed]


def _of_joined(site: Site, ranks: Ranks) -> list[list[Axis]]:
    rank = ranks.get(0, 0)
    joined = attributes.integer(site.node, "axis", 1) % max(rank, 1)
    return [[(position, axis) for position in ranks] for axis in range(rank) if axis != joined]


def _of_equation(site: Site, ranks: Ranks) -> list[list[Axis]]:
    """Return the axes that an equation of Einsum gives one letter; none where it has an ellipsis."""
    factors, _ = parts_of(attributes.text(site.node, "equation"))
    if any("." in each for each in factors):
        return []
    groups: dict[str, list[Axis]] = {}
    for position, term in enumerate(factors):
        for axis, letter in enumerate(term):
            groups.setdefault(letter, []).append((position, axis))
    return list(groups.values())


def _fixed(*groups: list[Axis]) -> Callable[[Site, Ranks], list[list[Axis]]]:
    return lambda site, ranks: list(groups)


_GROUPS: Mapping[str, Callable[[Site, Ranks], list[list[Axis]]]] = {
    **dict.fromkeys(QUANTIZERS, _of_quantizer),
    **dict.fromkeys(("MatMul", "MatMulInteger"), _of_product(1)),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _of_last_axes),
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization"), _fixed([(0, 1), (1, 0), (2, 0)])),
    **dict.fromkeys(("Scatter", "ScatterElements"), _fixed(*([(1, axis), (2, axis)] for axis in range(8)))),
    "Concat": _of_joined,
    "Einsum": _of_equation,
    "GatherND": _of_gathered_tuples,
    "Gemm": _of_gemm,
    "NonMaxSuppression": _fixed([(0, 0), (1, 0)], [(0, 1), (1, 2)]),
    "QLinearMatMul": _of_product(3),
    "RoiAlign": _fixed([(1, 0), (2, 0)]),
}
