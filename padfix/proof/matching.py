"""Which input and output of one model is which of another, and whether they hold images channels last or first.

Names decide, then names without TensorFlow's ``:0``, then position and type. A layout is only taken for another one
where the lengths say so and nothing else fits: ``[1, 32, 48, 3]`` is ``[1, 3, 32, 48]`` channels first, whereas two
tensors of ``[1, 3, 3, 3]`` are taken as they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from padfix.graph.scopes import Dimension, outer_names_of
from padfix.proof.compare import is_number
from padfix.proof.executors import (
    Array,
    ExecutionFailed,
    Executor,
    TensorSpec,
    graph_of,
    member_of,
    numpy_type,
    output_of,
)


@dataclass(frozen=True)
class InputMatch:
    """An input of the candidate and the input of the reference that it is fed from.

    Attributes:
        candidate: Its own declaration.
        reference: The declaration in the reference.
        order: How the axes are reordered; None where they are not.
    """

    candidate: TensorSpec
    reference: TensorSpec
    order: Order | None

    def feed(self, array: Array) -> Array:
        """Return the reference's ``array`` as the candidate wants it.

        Raises:
            ExecutionFailed: NumPy doesn't have the candidate's type.
        """
        if self.order is not None and array.ndim == len(self.order):
            array = np.ascontiguousarray(array.transpose(self.order))
        dtype = numpy_type(self.candidate.elem_type)
        return array if array.dtype == dtype or array.dtype.kind == "O" else array.astype(dtype)

    def back(self, array: Array) -> Array:
        """Return data in the candidate's layout and type as the reference wants it."""
        if self.order is not None and array.ndim == len(self.order):
            array = np.ascontiguousarray(array.transpose(np.argsort(self.order)))
        return array

    def common(self, array: Array) -> Array:
        """Return ``array`` rounded to numbers that both types hold, in the reference's type."""
        if self.candidate.elem_type == self.reference.elem_type or array.dtype.kind == "O":
            return array
        return array.astype(numpy_type(self.candidate.elem_type)).astype(array.dtype)


def match_inputs(reference: Sequence[TensorSpec], candidate: Sequence[TensorSpec]) -> list[InputMatch] | list[str]:
    """Return where each input of the candidate comes from, or the names of those that nothing fits.

    What the graphs say about their inputs is filled in already.
    """
    spare = {spec.name: spec for spec in reference}
    found: dict[str, TensorSpec] = {}
    for called in (str, _plain):
        for spec in candidate:
            twin = next((each for each in spare.values() if called(each.name) == called(spec.name)), None)
            if spec.name not in found and twin is not None and _kind(twin) == _kind(spec):
                found[spec.name] = spare.pop(twin.name)
    for alike in (_same_type, _same_kind):
        for spec in candidate:
            fits = [each for each in spare.values() if alike(each, spec) and _may_be_one(each, spec)]
            if spec.name not in found and fits:
                found[spec.name] = spare.pop(fits[0].name)
    lost = [spec.name for spec in candidate if spec.name not in found]
    if lost:
        return lost
    return [
        InputMatch(spec, found[spec.name], order_between(found[spec.name].shape, spec.shape) or None)
        for spec in candidate
    ]


def read_inputs(executor: Executor) -> list[TensorSpec]:
    """Return the inputs of a model that are read; others are left over from nodes that are gone."""
    graph = graph_of(executor)
    if graph is None:
        return executor.inputs
    read = {name for node in graph.node for name in (*node.input, *outer_names_of(node))}
    read |= {value.name for value in graph.output}
    return [spec for spec in executor.inputs if spec.name in read or not spec.is_fixed]


def blank(spec: TensorSpec) -> Array:
    """Return zeros, or empty strings, for an input that nothing reads.

    Raises:
        ExecutionFailed: NumPy has no such type.
    """
    dtype = numpy_type(spec.elem_type)
    shape = tuple(length for length in spec.shape or () if isinstance(length, int))
    return np.full(shape, "", dtype=object) if dtype.kind == "O" else np.zeros(shape, dtype)


def match_outputs(
    reference: Mapping[str, Array], candidate: Mapping[str, object], told: Mapping[str, str]
) -> dict[str, str]:
    """Return the candidate's name for every output of the reference: as told, the same, or that of its position.

    The candidate's values are arrays, or None where only the name is known. Members of lists and maps stand where they
    stand: those of another key are others.
    """
    whole = {output_of(name): array for name, array in reference.items()}
    partners = _match_whole(whole, {output_of(name): value for name, value in candidate.items()}, told)
    return {name: member_of(partners[output_of(name)], name[len(output_of(name)) :]) for name in reference}


def _match_whole(
    reference: Mapping[str, Array], candidate: Mapping[str, object], told: Mapping[str, str]
) -> dict[str, str]:
    names = {name: told.get(name, name) for name in reference}
    if all(name in candidate for name in names.values()):
        return names
    spare = [name for name in candidate if name not in names.values()]
    lost = [name for name in reference if names[name] not in candidate]
    for name in list(lost):
        twin = next((each for each in spare if _plain(each) == _plain(name)), None)
        if twin is not None:
            names[name] = twin
            spare.remove(twin)
            lost.remove(name)
    if len(spare) == len(lost):
        pairs = list(zip(lost, spare, strict=True))
        if not all(_look_alike(reference[name], candidate[other]) for name, other in pairs):
            pairs = _by_looks(reference, candidate, lost, spare) or pairs
        names.update(pairs)
    return names


def order_between(first: Sequence[Dimension] | None, second: Sequence[Dimension] | None) -> Order | None:
    """Return how the axes of ``first`` are to be ordered for ``second``; None where they stand as they are.

    Lengths that are not known fit everything. Another order is only taken where it explains more lengths than the
    axes as they stand, and where no other does as well.
    """
    if first is None or second is None or len(first) != len(second) or len(first) < 3:
        return None
    scores = {order: _score([first[axis] for axis in order], second) for order in orders_of(len(first))}
    straight = scores.pop(tuple(range(len(first))))
    ranked = sorted(((score, order) for order, score in scores.items() if score is not None), reverse=True)
    if not ranked or (straight is not None and straight >= ranked[0][0]):
        return None
    if len(ranked) > 1 and ranked[0][0] == ranked[1][0]:
        return None
    return ranked[0][1]


def _score(first: Sequence[Dimension], second: Sequence[Dimension]) -> int | None:
    """Return how many lengths beside the batch agree; None when one contradicts."""
    known = [(one, other) for one, other in zip(first, second, strict=True) if _both_known(one, other)]
    if any(one != other for one, other in known):
        return None
    return sum(_both_known(one, other) for one, other in zip(first[1:], second[1:], strict=True))


def _both_known(first: Dimension, second: Dimension) -> bool:
    return isinstance(first, int) and isinstance(second, int)


def _may_be_one(first: TensorSpec, second: TensorSpec) -> bool:
    if first.shape is None or second.shape is None:
        return True
    if len(first.shape) != len(second.shape):
        return False
    shape = first.shape
    return any(_score([shape[axis] for axis in order], second.shape) is not None for order in orders_of(len(shape)))


def _plain(name: str) -> str:
    """Return a name without TensorFlow's output number."""
    head, separator, number = name.rpartition(":")
    return head if separator and number.isdigit() else name


def _same_type(first: TensorSpec, second: TensorSpec) -> bool:
    return first.elem_type == second.elem_type


def _same_kind(first: TensorSpec, second: TensorSpec) -> bool:
    return _kind(first) == _kind(second)


def _kind(spec: TensorSpec) -> str:
    try:
        dtype: np.dtype[Any] = numpy_type(spec.elem_type)
    except ExecutionFailed:
        return str(spec.elem_type)
    if dtype.kind in "iu":
        return "whole"
    # NumPy calls the types of ml_dtypes void; they are floats all the same.
    return "float" if dtype.kind in "fV" else dtype.kind


def _look_alike(first: Array, second: object) -> bool:
    if not isinstance(second, np.ndarray):
        return True
    return first.dtype == second.dtype and sorted(first.shape) == sorted(second.shape)


def _by_looks(
    reference: Mapping[str, Array], candidate: Mapping[str, object], lost: Sequence[str], spare: Sequence[str]
) -> list[tuple[str, str]]:
    """Pair by type and lengths where every output has exactly one that fits; else nothing."""
    pairs = []
    for name in lost:
        fits = [other for other in spare if _look_alike(reference[name], candidate[other])]
        if len(fits) != 1:
            return []
        pairs.append((name, fits[0]))
    return pairs if len({other for _, other in pairs}) == len(pairs) else []


Order = tuple[int, ...]
"""A permutation of axes: axis ``order[i]`` of the reference's array is axis ``i`` of the candidate's."""


class Layouts:
    """The orders of paired tensors, by the reference's names; tensors without an entry stand as they are.

    Converters from TensorFlow keep a tensor's name and move its channels. An order is only taken where the lengths
    allow it, and among several by the numbers, which both models have computed.
    """

    def __init__(self) -> None:
        self._orders: dict[str, Order] = {}

    def are_moved(self, names: Iterable[str]) -> bool:
        """Whether the axes of some tensors stand in another order."""
        return not self._orders.keys().isdisjoint(names)

    def forget(self, name: str) -> None:
        """Take a tensor's axes as they stand."""
        self._orders.pop(name, None)

    def to_candidate(self, name: str, array: Array) -> Array:
        """Return the reference's array as the candidate has it."""
        order = self._orders.get(name)
        return array if order is None or len(order) != array.ndim else np.ascontiguousarray(array.transpose(order))

    def to_reference(self, name: str, array: Array) -> Array:
        """Return the candidate's array as the reference has it."""
        order = self._orders.get(name)
        return array if order is None or len(order) != array.ndim else array.transpose(np.argsort(order))

    def learn(self, name: str, reference: Array, candidate: Array, *, is_output: bool = False) -> bool:
        """Note how the axes of two arrays of one tensor correspond; False where no order fits their lengths.

        Whoever reads an output takes its axes as they stand, unless the lengths contradict.
        """
        orders = [
            order
            for order in orders_of(reference.ndim)
            if reference.ndim == candidate.ndim
            and all(reference.shape[axis] == length for axis, length in zip(order, candidate.shape, strict=True))
        ]
        if not orders:
            return False
        straight = tuple(range(reference.ndim))
        best = orders[0]
        if len(orders) > 1 and not (is_output and best == straight):
            best = min(orders, key=lambda order: (_apart(reference.transpose(order), candidate), order != straight))
        if best != straight:
            self._orders[name] = best
        return True


def orders_of(rank: int) -> Sequence[Order]:
    """Return the axes as they stand, channels first and channels last; only the first for fewer than three axes."""
    straight = tuple(range(rank))
    if rank < 3:
        return [straight]
    first, last = (0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1)
    return list(dict.fromkeys([straight, first, last]))


def _apart(first: Array, second: Array) -> float:
    if not (is_number(first.dtype) and is_number(second.dtype)):
        return 0.0
    usual = np.isfinite(first) & np.isfinite(second)
    difference = np.abs(first[usual].astype(np.float64) - second[usual].astype(np.float64))
    return float(difference.mean()) if difference.size else 0.0
