"""Along which axis the images of an input lie in what is computed of it, as such a runtime's converter follows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope, normal_domain
from padfix.operators.batches import OF_IMAGES
from padfix.operators.elementwise import ELEMENTWISE, REDUCTIONS
from padfix.operators.equations import letters_of
from padfix.operators.fused_layers import PRODUCTS
from padfix.operators.reductions import reduced_axes

_KEEPING = frozenset(
    {
        *("Concat", "CumSum", "DepthToSpace", "Expand", "Flatten", "Gather", "LogSoftmax", "Pad", "Reshape", "Slice"),
        *("Softmax", "SpaceToDepth", "Split", "Tile", *REDUCTIONS),
    }
)
"""Operators that leave an axis where it is if it is as long in the result, and has as many axes before it."""


class _Images(NamedTuple):
    """Along which axis images lie, and of which inputs they are."""

    axis: int
    of: frozenset[str]


class _Followed(NamedTuple):
    """Where images lie in each tensor, as far as it is known, and the inputs on whose images a layer works.

    And of which inputs tensors are made that are taken from, or made of, several images together.
    """

    places: Mapping[str, _Images]
    told: frozenset[str]
    mixed: Mapping[str, frozenset[str]]


def axis_of_images(scope: Scope, name: str) -> int | None:
    """Return the axis along which the images of an input lie; None where that is not known, or they are joined."""
    found = _followed(scope).places.get(name)
    return None if found is None else found.axis


def is_worked_on_by_images(scope: Scope, name: str) -> bool:
    """Whether a layer anywhere in the model works on images of the inputs that data are made of, one by one."""
    followed = _followed(scope)
    found = followed.places.get(name)
    return found is not None and bool(found.of & followed.told)


def drops_batch(scope: Scope, node: NodeProto) -> bool:
    """Whether a reduction drops the first axis, and something reads what it gives, where a layer works on images."""
    if node.op_type not in REDUCTIONS or attributes.integer(node, "keepdims", 1) or not scope.consumers(node.output[0]):
        return False
    known, axes = scope.type_of(node.input[0]), reduced_axes(scope, node)
    rank = None if known is None else known.rank
    if not rank or axes is None or (not axes and attributes.integer(node, "noop_with_empty_axes", 0)):
        return False
    return 0 in {axis % rank for axis in axes or range(rank)} and is_worked_on_by_images(scope, node.input[0])


def lie_within(scope: Scope, name: str) -> bool:
    """Whether images lie along another axis than the first, and no single one is taken for the batch in their place.

    It is where they are channels by now.
    """
    axis, known = axis_of_images(scope, name), scope.type_of(name)
    is_single = known is not None and bool(known.shape) and known.shape is not None and known.shape[0] == 1
    return axis is not None and axis > (1 if is_single else 0)


def is_one_of_several(scope: Scope, name: str) -> bool:
    """Whether one image is taken from several of an input, or made of them, which the converter takes for one each."""
    known, of = scope.type_of(name), _followed(scope).mixed.get(name, frozenset())
    is_one = known is not None and bool(known.shape) and known.shape is not None and known.shape[0] == 1
    return is_one and any(_count(scope, each) != 1 for each in of)


def _count(scope: Scope, name: str) -> Dimension:
    known = scope.type_of(name)
    return known.shape[0] if known is not None and known.shape else None


def joins_along_images(scope: Scope, node: NodeProto) -> bool:
    """Whether a Concat joins images along their axis, wherever that is, on which a layer works one by one."""
    known = scope.type_of(node.output[0])
    axis = attributes.integer(node, "axis", 1) or 0
    if axis < 0:
        axis += 0 if known is None or known.rank is None else known.rank
    return any(axis_of_images(scope, name) == axis and is_worked_on_by_images(scope, name) for name in node.input)


def equation_moves_images(scope: Scope, node: NodeProto) -> bool:
    """Whether an Einsum puts images along another axis, or sums over them, on which a layer works one by one."""
    found = letters_of(scope, node)
    if found is None:
        return False
    places = [axis_of_images(scope, name) for name in node.input]
    pairs = zip(found[0], places, strict=True)
    letters = [(term[axis], axis) for term, axis in pairs if axis is not None and axis < len(term)]
    is_told = any(is_worked_on_by_images(scope, name) for name in node.input)
    return is_told and any(found[1].find(letter) != axis for letter, axis in letters)


def _followed(scope: Scope) -> _Followed:
    key = id(scope.container)
    if key not in scope.readings:
        scope.readings[key] = _follow(scope)
    return cast("_Followed", scope.readings[key])


def _follow(scope: Scope) -> _Followed:
    places: dict[str, _Images] = {}
    told: set[str] = set()
    mixed: dict[str, frozenset[str]] = {}
    if scope.parent is None:
        places = {name: _Images(0, frozenset({name})) for name in scope.inputs if not scope.is_fixed(name)}
    for node in scope.nodes:
        read = [places.get(name) for name in node.input]
        known = [each for each in read if each is not None]
        if normal_domain(node.domain):
            continue
        if not known:
            mixed |= _mixed_by(scope, node, places, mixed)
            continue
        if node.op_type in OF_IMAGES and read[0] is not None and read[0].axis == 0:
            told |= read[0].of
        found = {_moved(scope, node, place, each.axis) for place, each in enumerate(read) if each is not None}
        axis = found.pop() if len(found) == 1 else None
        if axis is not None:
            of = known[0].of.union(*(each.of for each in known[1:]))
            places.update((name, _Images(axis, of)) for name in node.output if name)
        if axis is None or (node.op_type == "Einsum" and axis):
            mixed |= _mixed_by(scope, node, places, mixed)
    return _Followed(places, frozenset(told), mixed)


def _mixed_by(
    scope: Scope, node: NodeProto, places: Mapping[str, _Images], mixed: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Return what a node gives that takes images together, or what has been taken so, with the inputs they are of.

    A number of an image, and a Reshape that lays images out otherwise, are no images to the converter any more. An
    Einsum that puts them along another axis is none that it follows.
    """
    indices = scope.type_of(node.input[1]) if node.op_type == "Gather" else None
    if indices is not None and indices.rank == 0:
        return {}
    found = [mixed[name] for name in node.input if name in mixed]
    if node.op_type != "Reshape":
        found += [places[name].of for name in node.input if name in places and places[name].axis == 0]
    return {name: frozenset[str]().union(*found) for name in node.output if name} if found else {}


def _moved(scope: Scope, node: NodeProto, place: int, axis: int) -> int | None:
    """Return the axis along which images lie in the result that lay along one of an input; None where none is known."""
    if node.op_type in OF_IMAGES:
        return 0 if axis == 0 and place == 0 else None
    ranks = [known.rank if (known := scope.type_of(name)) else None for name in (node.input[place], node.output[0])]
    if ranks[0] is None or ranks[1] is None or axis >= ranks[0]:
        return None
    if node.op_type in ELEMENTWISE:
        return axis + ranks[1] - ranks[0]
    if node.op_type in _KEEPING:
        return axis if _stays(scope, node, place, axis) else None
    asked = _MOVING.get(node.op_type)
    return None if asked is None else asked(scope, node, place, axis)


def _stays(scope: Scope, node: NodeProto, place: int, axis: int) -> bool:
    """Whether an axis is as long in the result, and so is all before it."""
    before, after = (scope.type_of(name) for name in (node.input[place], node.output[0]))
    if before is None or after is None or before.shape is None or after.shape is None:
        return False
    if node.op_type == "Concat" and (attributes.integer(node, "axis", 1) or 0) in (axis, axis - len(after.shape)):
        return False
    return len(after.shape) > axis and before.shape[: axis + 1] == after.shape[: axis + 1]


def _turned(scope: Scope, node: NodeProto, place: int, axis: int) -> int | None:
    known = scope.type_of(node.input[0])
    perm = attributes.integers(node, "perm") or list(range((known and known.rank) or 0))[::-1]
    return perm.index(axis) if axis in perm else None


def _in_product(scope: Scope, node: NodeProto, place: int, axis: int) -> int | None:
    """Return where an axis lies in a product, if it doesn't sum over it."""
    before, after = (scope.type_of(name) for name in (node.input[place], node.output[0]))
    if before is None or after is None or not before.rank or not after.rank or before.rank == 1:
        return None
    turns = attributes.integer(node, ("transA", "transB")[place], 0) if node.op_type == "Gemm" and place <= 1 else 0
    summed = before.rank - (1 if (place == 0) != bool(turns) else 2)
    return None if axis == summed or turns else axis + after.rank - before.rank


def _in_equation(scope: Scope, node: NodeProto, place: int, axis: int) -> int | None:
    found = letters_of(scope, node)
    if found is None or axis >= len(found[0][place]):
        return None
    moved = found[1].find(found[0][place][axis])
    return None if moved < 0 else moved


def _axes_given(scope: Scope, node: NodeProto, rank: int) -> Sequence[int] | None:
    """Return the axes of a Squeeze or Unsqueeze, counted from the first of ``rank``; None where they are not listed."""
    return [each % rank for each in reduced_axes(scope, node) or ()] or None


def _squeezed(scope: Scope, node: NodeProto, place: int, axis: int) -> int | None:
    known = scope.type_of(node.input[0])
    axes = _axes_given(scope, node, known.rank) if known is not None and known.rank else None
    return None if axes is None or axis in axes else axis - sum(each < axis for each in axes)


def _unsqueezed(scope: Scope, node: NodeProto, place: int, axis: int) -> int | None:
    known = scope.type_of(node.output[0])
    axes = _axes_given(scope, node, known.rank) if known is not None and known.rank else None
    if axes is None or known is None or known.rank is None:
        return None
    return [each for each in range(known.rank) if each not in axes][axis]


_MOVING: Mapping[str, Callable[[Scope, NodeProto, int, int], int | None]] = {
    "Einsum": _in_equation,
    "Squeeze": _squeezed,
    "Transpose": _turned,
    "Unsqueeze": _unsqueezed,
    **dict.fromkeys((*PRODUCTS, "Gemm"), _in_product),
}
