"""Data at what a stretch decides by: the limits it holds numbers against, the rows it picks, the branches it takes.

Wide data goes past most limits and meets none of them, and whole numbers and switches stay what the probes made of
them: a row of a table that nobody picked, or a branch that nobody took, would be proven by nothing. So stretches also
see numbers at their limits and between them, indices of every row that differs, switches turned over, and, where
they ask for such, numbers that are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from padfix.graph import attributes
from padfix.proof.byte_data import telling_bytes
from padfix.proof.compare import is_number, is_real, largest_of
from padfix.proof.constants import Constants
from padfix.proof.exactness import (
    COMPARING,
    COUNTING,
    LOGICAL,
    LOOKING_UP,
    MOVING,
    OF_FIRST,
    PICKING,
    ROUNDING,
    is_whole,
)
from padfix.proof.executors import Array
from padfix.proof.facts import named_texts
from padfix.proof.graph_view import NodeView
from padfix.proof.suppression_data import suppressing
from padfix.proof.tie_data import near_ties
from padfix.proof.tree_data import rows_for

if TYPE_CHECKING:
    from padfix.proof.stretches import Stretch

MOST_TURNS = 8
"""How often a tensor that is smaller than the numbers it should see is filled anew."""

_MOST_LISTED = 64
"""Elements of a constant that values are held against one by one."""

_IEEE = frozenset({"Add", "Sub", "Mul", "Div", "Neg", "Abs", "MatMul", "Gemm"})
"""Operators that hand on what is no number, in every runtime."""

_ASKING = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})

_GROWING = frozenset({"Cosh", "Exp", "LogSoftmax", "LogSumExp", "ReduceLogSumExp", "Sinh", "Softmax", "Softplus"})
"""Operators of powers, which are no numbers any more from 89 on in single precision, whatever follows."""

FAR = "far"
"""The words for data whose powers are no numbers any more."""

SWITCHED = "switched"
"""The words for data with every switch turned over."""

_FAR = (100.0, -100.0, 60.0, -60.0, 95.0, 3.0, -95.0, 0.5)

_STRANGE = (np.nan, np.inf, -np.inf, 1.5, -2.5)

_HALVES = tuple(number / 2 for number in range(-9, 10))
"""Whole numbers, and what lies in the middle of two."""

_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16})


class DecidingData:
    """What some stretches decide by, read from the nodes and constants of both models."""

    def __init__(
        self,
        group: Sequence[Stretch],
        constants: tuple[Constants | None, Constants | None],
        values: Mapping[str, Array],
    ) -> None:
        self._group = group
        self._constants = constants
        self._values = values

    def kinds(self) -> Iterator[tuple[str, dict[str, Array]]]:
        """Yield (words for the data, the tensors that change); the others stay as they are."""
        names = {name for each in self._group for name in each.above if self._values[name].size}
        switches = sorted(name for name in names if self._values[name].dtype.kind == "b")
        if switches:
            random = np.random.default_rng([0, 11])
            yield SWITCHED, {name: np.asarray(~self._values[name]) for name in switches}
            shapes = {name: self._values[name].shape for name in switches}
            yield "switching", {name: np.asarray(random.integers(0, 2, shape) > 0) for name, shape in shapes.items()}
        if None in self._constants:
            return
        texts = sorted(name for name in names if self._values[name].dtype.kind == "O")
        yield from self._turned("reading", {name: self._texts(name) for name in texts})
        floats = [name for name in names if is_real(self._values[name].dtype)]
        whole = [name for name in names if is_whole(self._values[name])]
        at_limits = {name: self._limits(name) for name in sorted(floats)}
        yield from self._turned("limiting", {name: at for name, (at, _) in at_limits.items()})
        yield from self._turned("far from limits", {name: between for name, (_, between) in at_limits.items()})
        yield from self._turned(FAR, {name: _FAR for name in sorted(floats) if self._grows(name)})
        yield from self._turned("halved", {name: _HALVES for name in sorted(floats) if self._is_rounded(name)})
        free = sorted(name for name in whole if self._may_be_any(name))
        yield from self._turned("counting", {name: self._counts(name) for name in free})
        yield from self._turned("indexing", {name: self._rows(name) for name in free})
        yield from self._turned("selecting", {name: self._different_rows(name) for name in free})
        strange = {name: _STRANGE for name in sorted(floats) if self._asks_for_numbers(name)}
        yield from self._turned("not finite", strange)
        tables = {name: self._leaves(name) for name in sorted(floats) if self._values[name].ndim == 2}
        yield from (("branching", {name: rows}) for name, rows in tables.items() if rows is not None)
        first, second = self._constants
        if first is not None and second is not None:
            for each in self._group:
                yield from (("overlapping", found) for found in suppressing(each, (first, second), self._values))
                yield from (("nearly tied", found) for found in near_ties(each, (first, second), self._values))
                yield from (("telling", found) for found in telling_bytes(each, (first, second), self._values))
        if strange:  # a sum with an infinity of either sign is no infinity any more
            yield "infinite", {name: _with_first(self._values[name], np.inf) for name in strange}

    def _texts(self, name: str) -> list[str]:
        """Return the texts that a tensor's are looked up among: first those that the models know differently."""
        sides = [{*named_texts(map(_proto, nodes))} for nodes, _, _ in self._readers(name)]
        every: set[str] = set().union(*sides)
        apart = self._known_differently(name) | {text for each in sides for text in every - each}
        return sorted(every, key=lambda text: (text not in apart, text))

    def _known_differently(self, name: str) -> set[Any]:
        """Return the keys for which only one of the models has the value that it has."""
        ours, theirs = set[tuple[Any, Any]](), set[tuple[Any, Any]]()
        for nodes, known, own in self._readers(name):
            for node in {node.index: node for node, _ in _reads(nodes, own)}.values():
                (ours if known is self._constants[0] else theirs).update(_entries(_proto(node)))
        return {key for key, _ in ours ^ theirs}

    def _turned(self, words: str, numbers: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, dict[str, Array]]]:
        """Yield tensors filled with the numbers for each, as often as it takes to show them all."""
        numbers = {name: found for name, found in numbers.items() if len(found)}
        turns = [-(-len(found) // self._values[name].size) for name, found in numbers.items()]
        for turn in range(min(MOST_TURNS, max(turns, default=0))):
            yield words, {name: _filled(self._values[name], found, turn) for name, found in numbers.items()}

    def _readers(self, name: str) -> Iterator[tuple[Sequence[NodeView], Constants, str]]:
        """Yield for each stretch that reads a tensor, and each model, its nodes, constants, and name of the tensor."""
        for each in self._group:
            if name not in each.above:
                continue
            for nodes, known, own in (
                (each.nodes, self._constants[0], name),
                (each.candidate_nodes, self._constants[1], each.above[name]),
            ):
                assert known is not None
                yield nodes, known, own

    def _limits(self, name: str) -> tuple[list[float], list[float]]:
        """Return the constants that a tensor's values are held against with their neighbours, and what lies between.

        The latter by itself: at a limit the original jumps, and what jumps tells nothing of a function that doesn't.
        """
        found: set[float] = set()
        for nodes, known, _ in self._readers(name):
            for node in nodes:
                if node.op_type in ROUNDING:
                    found |= {0.0, 0.5, 1.0, 1.5}
                if node.op_type in COMPARING:
                    found |= {float(each) for each in _listed(node, known) if is_real(each.dtype)}
                    found |= {attribute.f for attribute in _proto(node).attribute if attribute.type == attribute.FLOAT}
        dtype = self._values[name].dtype
        largest = largest_of(dtype)
        limits = sorted(each for each in found if abs(each) < largest)
        if not limits:
            return [], []
        at = np.array(limits, dtype)
        near = [at, np.nextafter(at, dtype.type(np.inf)), np.nextafter(at, dtype.type(-np.inf))]
        between = [one / 2 + other / 2 for one, other in pairwise(limits)]
        beyond = [
            max(limits[0] - 1 - abs(limits[0]) / 2, -largest),
            *between,
            min(limits[-1] + 1 + abs(limits[-1]) / 2, largest),
        ]
        return [float(each) for array in near for each in array], beyond

    def _is_rounded(self, name: str) -> bool:
        """Whether a tensor's values are rounded to whole numbers."""
        return any(
            node.op_type in ROUNDING or (node.op_type == "Cast" and not _is_to_float(node))
            for nodes, _, _ in self._readers(name)
            for node in nodes
        )

    def _may_be_any(self, name: str) -> bool:
        """Whether whole numbers are but counted with, compared, or used as indices, and are no sizes."""
        return all(
            _takes_any(node, position) for nodes, _, own in self._readers(name) for node, position in _reads(nodes, own)
        )

    def _counts(self, name: str) -> list[float]:
        """Return whole numbers at the constants that a tensor's values meet, and beyond them."""
        found: set[int] = set()
        for nodes, known, own in self._readers(name):
            for node in {node.index: node for node, _ in _reads(nodes, own)}.values():
                found |= {int(each) for each in _listed(node, known) if each.dtype.kind in "iu"}
                found |= {key for key, _ in _entries(_proto(node)) if isinstance(key, int)}
        limits = np.iinfo(self._values[name].dtype)
        near = {each + step for each in found for step in (-1, 0, 1)} | {-1, 0, 1}
        near |= {2 * max(map(abs, near)) + 1, -2 * max(map(abs, near)) - 1}
        apart = self._known_differently(name)
        held = (each for each in near if limits.min // 4 < each < limits.max // 4)
        return sorted(held, key=lambda each: (each not in apart, each))

    def _picked(self, name: str) -> Iterator[tuple[NodeView, int, int]]:
        """Yield each node that picks by a tensor, of the first model, the axis that it picks from, and its length."""
        for nodes, known, own in self._readers(name):
            if known is not self._constants[0]:
                continue
            for node, position in _reads(nodes, own):
                table = node.inputs[0]
                if node.op_type not in PICKING or position != 1:
                    continue
                shape = known.shape(table) if table in known else getattr(self._values.get(table), "shape", ())
                axis = attributes.integer(_proto(node), "axis" if node.op_type != "GatherND" else "batch_dims", 0)
                if shape:
                    yield node, axis % len(shape), shape[axis % len(shape)]

    def _rows(self, name: str) -> list[float]:
        lengths = {length for _, _, length in self._picked(name)}
        if not lengths:
            return []
        return [*np.random.default_rng(0).permutation(min(min(lengths), 1 << 16)).tolist()]

    def _different_rows(self, name: str) -> list[float]:
        """Return which rows of a table are other ones in the candidate."""
        found: set[int] = set()
        first, second = self._constants
        assert first is not None and second is not None
        others = {
            (twin.op_type, second.shape(twin.inputs[0])): twin.inputs[0]
            for nodes, known, own in self._readers(name)
            for twin, position in _reads(nodes, own)
            if known is second and twin.op_type in PICKING and position == 1 and twin.inputs[0] in second
        }
        for node, axis, _ in self._picked(name):
            table = node.inputs[0]
            twin = others.get((node.op_type, first.shape(table))) if table in first else None
            if twin is None or first.digest(table) == second.digest(twin):
                continue
            ours, theirs = first.find(table), second.find(twin)
            if ours is not None and theirs is not None and ours.dtype == theirs.dtype:
                apart = np.moveaxis(ours != theirs, axis, 0).reshape(ours.shape[axis], -1).any(1)
                found |= set(np.flatnonzero(apart).tolist())
        return sorted(found)

    def _leaves(self, name: str) -> Array | None:
        """Return rows that reach the leaves of decision trees which read a table."""
        first, second = (
            [node for nodes, known, own in self._readers(name) if known is side for node in nodes if own in node.inputs]
            for side in self._constants
        )
        return rows_for(first, second, self._values[name].dtype, self._values[name].shape[1])

    def _grows(self, name: str) -> bool:
        """Whether powers of a tensor are computed that single precision holds only so far."""
        is_wide = self._values[name].dtype.itemsize >= np.dtype(np.float32).itemsize
        return is_wide and any(node.op_type in _GROWING for nodes, _, _ in self._readers(name) for node in nodes)

    def _asks_for_numbers(self, name: str) -> bool:
        """Whether what is no number is told apart, and nothing reads it but what IEEE arithmetic settles."""
        every = [node for nodes, _, _ in self._readers(name) for node in nodes]
        kinds = {node.op_type for node in every}
        tells = kinds & {"IsNaN", "IsInf"} or any(
            node.op_type == "Equal" and len(set(node.inputs)) == 1 for node in every
        )
        return bool(tells) and kinds <= LOGICAL | MOVING | _ASKING | _IEEE


def _proto(node: NodeView) -> NodeProto:
    assert node.proto is not None
    return node.proto


def _entries(node: NodeProto) -> Iterator[tuple[Any, Any]]:
    """Yield the keys of an operator that looks up, each with its value."""
    held = {}
    for attribute in node.attribute:
        kind, _, rest = attribute.name.partition("_")
        if rest and kind in ("keys", "values"):
            value = helper.get_attribute_value(attribute)
            held[kind] = numpy_helper.to_array(value).tolist() if isinstance(value, TensorProto) else value
    for key, value in zip(held.get("keys", ()), held.get("values", ()), strict=False):
        yield key.decode("utf-8", "replace") if isinstance(key, bytes) else key, value


def _filled(array: Array, numbers: Sequence[Any], turn: int) -> Array:
    return np.resize(np.roll(np.array(numbers, array.dtype), -turn * array.size), array.shape)


def _with_first(array: Array, number: float) -> Array:
    copy = array.copy()
    copy.flat[0] = number
    return copy


def _listed(node: NodeView, constants: Constants) -> Iterable[np.generic]:
    """Return the numbers of the small constants that a node reads."""
    for name in node.inputs:
        if name in constants and int(np.prod(constants.shape(name))) <= _MOST_LISTED:
            array = constants.find(name)
            yield from () if array is None or not is_number(array.dtype) else np.unique(array)


def _reads(nodes: Sequence[NodeView], name: str) -> Iterator[tuple[NodeView, int]]:
    """Yield where a tensor, or whole numbers that follow from it, is read: the node and the position."""
    names = {name}
    for node in nodes:
        positions = [position for position, each in enumerate(node.inputs) if each in names]
        yield from ((node, position) for position in positions)
        is_picked = node.op_type in PICKING and 0 in positions
        is_counted = node.op_type in COUNTING | OF_FIRST | MOVING | {"Cast"} and not _is_to_float(node)
        if is_picked or (positions and is_counted):
            names.update(node.outputs)


def _is_to_float(node: NodeView) -> bool:
    return node.op_type == "Cast" and attributes.integer(_proto(node), "to", 0) in _FLOATS


def _takes_any(node: NodeView, position: int) -> bool:
    if not node.is_standard:
        return node.op_type in LOOKING_UP
    if node.op_type in PICKING or node.op_type == "OneHot":
        return (node.op_type in PICKING and position == 1) or position == 0
    return node.op_type in COUNTING | _ASKING | {"Cast"} or (node.op_type in OF_FIRST and position == 0)
