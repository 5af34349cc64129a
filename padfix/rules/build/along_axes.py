"""Elements taken one by one, or weighed and summed, along one axis after another: in operators that every runtime has.

What takes elements does so by a Gather an axis, or by a product with a matrix that holds one 1 a row; the latter is for
floats, and for runtimes that don't take a Gather.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from padfix.operators.refusal import Refusal
from padfix.operators.traits import Traits
from padfix.rules.base import Site

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

Operators = tuple[tuple[str, Traits], ...]
"""The (type, traits) of operators that a target may object to."""

TAKING: Operators = (("Gather", {}),)
"""What :func:`taken` is made of."""


def taken(builder: FragmentBuilder, value: Any, indices: Mapping[int, Sequence[int]]) -> Any:
    """Return ``value`` with these elements of each axis that is listed, by one Gather an axis."""
    for axis, each in indices.items():
        value = builder.op("Gather", [value, builder.constant(np.array(each, np.int64), "indices")], {"axis": axis})
    return value


def one_by_one(site: Site, indices: Mapping[int, Sequence[int]]) -> Fragment:
    """Return :func:`taken` of the node's data in the place of a node that gives the same; an Identity for no axis."""
    return _in_its_place(site, lambda builder, value: taken(builder, value, indices), moves=bool(indices))


def weighed_and_summed(site: Site, matrices: Mapping[int, np.ndarray], rank: int) -> Fragment:
    """Return :func:`multiplied` of the node's data in the place of a node that gives the same."""
    return _in_its_place(site, lambda builder, value: multiplied(builder, value, matrices, rank), moves=bool(matrices))


def _in_its_place(site: Site, write: Callable[[FragmentBuilder, Any], Any], *, moves: bool) -> Fragment:
    builder = site.builder()
    value = builder.input(site.input_name(0))
    builder.output(site.node.output[0], write(builder, value) if moves else builder.op("Identity", [value]))
    return builder.build()


def multiplying(axes: Iterable[int], rank: int) -> Operators:
    """Return what :func:`multiplied` is made of."""
    operators: Operators = (("MatMul", {"rank": rank}),)
    return (*operators, ("Transpose", {"rank": rank})) if min(axes, default=rank) < rank - 2 else operators


def multiplied(builder: FragmentBuilder, value: Any, matrices: Mapping[int, np.ndarray], rank: int) -> Any:
    """Return ``value`` with each axis that is listed multiplied by its matrix, of shape (new length, length)."""
    for axis, matrix in matrices.items():
        if axis == rank - 2:
            value = builder.op("MatMul", [builder.constant(matrix, "weights"), value])
            continue
        order = [each for each in range(rank) if each != axis] + [axis]
        moved = order != list(range(rank))
        value = builder.op("Transpose", [value], {"perm": order}) if moved else value
        value = builder.op("MatMul", [value, builder.constant(np.ascontiguousarray(matrix.T), "weights")])
        value = builder.op("Transpose", [value], {"perm": np.argsort(order).tolist()}) if moved else value
    return value


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
