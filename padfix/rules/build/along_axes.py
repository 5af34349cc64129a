"""Elements taken one by one, or weighed and summed, along one axis after another: in operators that every runtime has.

What takes elements does so by a Gather an axis, or by a product with a matrix that holds one 1 a row; the latter is for
floats, and for runtimes that don't take a Gather.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from padfix.graph.scopes import Dimension
from padfix.operators.axis_order import ORDER
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Site
from padfix.rules.build.objections import Operators, worst_objection
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment import Fragment
    from padfix.graph.fragment_builder import FragmentBuilder

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)

MOST_WEIGHTS = 1 << 22
"""Of one matrix."""

LONGEST = 4096
"""The longest axis that is written out element by element."""

OUTSIDE = -1
"""In place of an index: no element, which a product makes 0."""

_FLAT = 4
"""Axes of data that is reshaped: importers know images best."""

_LEADING = 2
"""Axes before the spatial ones: the batch and the channels."""

Lengths = Sequence[Dimension]

TAKING: Operators = (("Gather", {"picks-a-list": True}),)
"""What :func:`taken` is made of."""


def taken(builder: FragmentBuilder, value: Any, indices: Mapping[int, Sequence[int]]) -> Any:
    """Return ``value`` with these elements of each axis that is listed, by one Gather an axis."""
    for axis, each in indices.items():
        value = builder.op("Gather", [value, builder.constant(np.array(each, np.int64), "indices")], {"axis": axis})
    return value


def one_by_one(site: Site, indices: Mapping[int, Sequence[int]]) -> Fragment:
    """Return :func:`taken` of the node's data in the place of a node that gives the same; an Identity for no axis."""
    return _in_its_place(site, lambda builder, value: taken(builder, value, indices), moves=bool(indices))


def weighed_and_summed(
    site: Site, matrices: Mapping[int, np.ndarray], lengths: Lengths, more: np.ndarray | None = None
) -> Fragment:
    """Return :func:`multiplied` of the node's data, and ``more`` added, in the place of a node that gives the same."""

    def write(builder: FragmentBuilder, value: Any) -> Any:
        value = multiplied(builder, value, matrices, lengths, site)
        return value if more is None else builder.op("Add", [value, builder.constant(more, "more")])

    return _in_its_place(site, write, moves=bool(matrices))


def _in_its_place(site: Site, write: Callable[[FragmentBuilder, Any], Any], *, moves: bool) -> Fragment:
    builder = site.builder()
    value = builder.input(site.input_name(0))
    builder.output(site.node.output[0], write(builder, value) if moves else builder.op("Identity", [value]))
    return builder.build()


def multiplying(axes: Iterable[int], lengths: Lengths, site: Site | None = None) -> Operators:
    """Return what :func:`multiplied` is made of; ``lengths`` are the data's."""
    rank, axes = len(lengths), list(axes)
    if not axes:
        return (("Identity", {}),)
    moved = [axis for axis in axes if axis < rank - 2 or _is_flat(site, lengths)]
    if not moved:
        return (("MatMul", {"rank": rank, **_order(site)}),)
    products: Operators = (("MatMul", {"rank": _FLAT, "channels-last": False}), ("MatMul", {"rank": rank}))
    if all(_fits(lengths, axis) for axis in moved):
        # Where nothing tells the batch, what is done about the Reshape tells it.
        volume = ("Reshape", {"rank": rank, "batch-told": True, "shuffles": False})
        return (*(products[:1] if _is_flat(site, lengths) else products), volume)
    return (*products[1:], ("Transpose", {"rank": rank, "about-a-product": True}))


def multiplied(
    builder: FragmentBuilder,
    value: Any,
    matrices: Mapping[int, np.ndarray],
    lengths: Lengths,
    site: Site | None = None,
) -> Any:
    """Return ``value`` with each axis that is listed multiplied by its matrix, of shape (new length, length).

    The matrix stands before the last two axes, or behind them for the last; data with more axes is reshaped to have
    its axis there, or transposed where its lengths are not known.
    """
    rank, now, is_flat = len(lengths), list(lengths), _is_flat(site, lengths)
    for axis, matrix in matrices.items():
        weights = np.ascontiguousarray(matrix.T) if axis == rank - 1 else matrix
        if axis == rank - 2 and len(matrix) == 1 and rank >= _FLAT and not is_flat:
            # ncnn takes a matrix of one row for a list, and then counts one axis less.
            weights = matrix.reshape(*[1] * (rank - 2), *matrix.shape)
        constant = builder.constant(weights, "weights")
        if axis < rank - 2 or is_flat:
            value = _moved(builder, value, constant, now, axis, len(matrix))
        elif axis == rank - 1:
            value = builder.op("MatMul", [value, constant])
        else:
            value = builder.op("MatMul", [constant, value])
        now[axis] = len(matrix)
    return value


def _moved(builder: FragmentBuilder, value: Any, weights: Any, lengths: Lengths, axis: int, output: int) -> Any:
    """Return the product with ``weights`` of data whose axis is brought to the last ones, and back."""
    rank = len(lengths)
    if _fits(lengths, axis):
        return _flattened(builder, value, weights, lengths, axis, output)
    order = [each for each in range(rank) if each != axis]
    order.insert(rank - 2, axis)
    value = builder.op("MatMul", [weights, builder.op("Transpose", [value], {"perm": order})])
    return builder.op("Transpose", [value], {"perm": np.argsort(order).tolist()})


def _order(site: Site | None) -> Traits:
    """Return how the data that the node reads lie in memory, and which of their lengths are equal."""
    own = {} if site is None else traits_of(site.scope, site.node) or {}
    return {name: own[name] for name in ORDER if name in own}


def _is_flat(site: Site | None, lengths: Lengths) -> bool:
    """Whether every product has to be one of fewer axes, or behind a Reshape, as the target gets others wrong."""
    rank = len(lengths)
    if site is None or not _fits(lengths, rank - 1):
        return False
    return worst_objection(site.target, "MatMul", site.opset, {"rank": rank, **_order(site)}) is not None


def _fits(lengths: Lengths, axis: int) -> bool:
    """Whether a Reshape can bring the axis before the last, and another one back.

    It copies the first length, and tells the second, if it can, where the axis is another: neither has to be known.
    """
    return all(isinstance(each, int) for each in lengths[min(axis, _LEADING) :])


def _flattened(builder: FragmentBuilder, value: Any, weights: Any, lengths: Lengths, axis: int, output: int) -> Any:
    kept = min(axis, _LEADING)
    known = [each for each in lengths[kept:] if isinstance(each, int)]
    between, size, behind = known[: axis - kept], known[axis - kept], math.prod(known[axis - kept + 1 :])
    # The second length is copied where it can be, or told where the first is open: in an empty batch none can be found.
    is_last = axis == len(lengths) - 1
    folded = 1 if is_last else math.prod(between)
    is_told = kept == _LEADING and not isinstance(lengths[0], int)
    channels = length if is_told and isinstance(length := lengths[1], int) else -1
    first, second = (0, 0) if folded == 1 else (channels * folded if channels > 0 else -1, channels)
    plane = [math.prod(between), size] if is_last else [size, behind]
    flat = builder.reshaped(value, [0 if kept else 1, first if kept == _LEADING else 1, *plane])
    leading = [0, second][:kept]
    product = builder.op("MatMul", [flat, weights] if is_last else [weights, flat])
    return builder.reshaped(product, [*leading, *between, output, *known[axis - kept + 1 :]])


def selection(indices: Sequence[int], size: int) -> np.ndarray:
    """Return the matrix that takes these elements of ``size``, and gives 0 for :data:`OUTSIDE`."""
    matrix = np.zeros((len(indices), size))
    for row, index in enumerate(indices):
        if index != OUTSIDE:
            matrix[row, index] = 1
    return matrix


def why_not_multiplied(elem_type: int | None, lengths: Iterable[tuple[int, int]]) -> Refusal | None:
    """Return why products can't stand for what is done on axes of these (length, new length); or None."""
    if elem_type not in FLOATS:
        return Refusal("a product rounds otherwise than this element type's operator")
    if any(before * after > MOST_WEIGHTS for before, after in lengths):
        return Refusal(f"a matrix would hold more than {MOST_WEIGHTS} weights")
    return None
