"""Data that suits its readers: whether an integer is an index, a size, an axis or a count, the operators behind it say.

What an input is for follows from the operator that reads it; which values that operator takes follows from what else it
reads, looked up in the original on the data made so far. Between the input and its reader may lie casts, arithmetic and
what takes vectors apart and puts them together: how the reader's values follow from the input's is found by feeding
numbers and looking. Readers inside a loop or a condition of TensorFlow are seen in what the conversion made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from padfix.graph.dependence import reached
from padfix.operators.elementwise import LAYING_OUT
from padfix.process import deadline
from padfix.proof.answers import OF_FLOATS, answer_for, tensorflow_name
from padfix.proof.compare import is_real
from padfix.proof.constants import Constants
from padfix.proof.executors import Array, ExecutionFailed, Executor, TensorSpec, numpy_type
from padfix.proof.graph_view import NodeView
from padfix.proof.probes import Probe
from padfix.proof.questions import Question, Use
from padfix.proof.sides import Side, side_of

_MARKS = ((2, 1), (3, 5), (7, 2), (11, 3))
"""First number and step of what is fed to see how the reader's values follow from an input's."""

_MOST_PLACES = 16
"""Elements of an input, and of what is read, that are held against each other one by one."""

_SECONDS = 10.0
"""How long a look at what an operator reads may take."""

_MOST_STEPS = 64
"""Nodes behind an input that are looked at."""

_KEEPS = LAYING_OUT | {"Cast", "ExpandDims", "Pad", "PadV2", "StopGradient"}
_MIXES = frozenset(
    {"Add", "AddV2", "Sub", "Mul", "Div", "FloorDiv", "FloorMod", "Mod", "Max", "Maximum", "Min", "Minimum", "Clip"}
    | {"Concat", "ConcatV2", "Pack", "Floor", "Ceil", "Round", "Relu", "Slice", "StridedSlice", "Abs", "Where"}
    | {"Unpack", "Split", "SplitV", "Concatenation"}
)
"""What makes a tensor of others whose elements follow from theirs."""

_CHOOSES = frozenset({"Gather", "GatherV2", "GatherNd", "GatherND", "Transpose"})
"""What makes a tensor of elements of its first input."""

_MOST_PASSES = 3
"""How often values are chosen anew, because what a reader takes follows from another input that was chosen later."""


class Roles:
    """What the inputs of a model are for.

    Args:
        executors: Run the original and what was made of it; those that can be looked into are, one after the other.
        inputs: The inputs; those that no operator takes for more than data are data.
    """

    def __init__(self, executors: Sequence[Executor], inputs: Sequence[TensorSpec]) -> None:
        self._uses: dict[str, list[tuple[_Looked, Use]]] = {}
        left = [spec for spec in inputs if _may_steer(spec)]
        for executor in executors[:2]:
            side = side_of(executor) if left else None
            if side is None:
                continue
            looked = _Looked(side)
            self._uses |= {
                spec.name: [(looked, use) for use in uses] for spec in left if (uses := looked.readers(spec))
            }
            left = [spec for spec in left if spec.name not in self._uses]

    def suited(self, probe: Probe, seed: int, *, runs: bool = True) -> Iterator[Probe]:
        """Yield the probe with values that their readers take; nothing where every input is data.

        Args:
            probe: Data of any kind.
            seed: Chooses the values.
            runs: Whether graphs may be run on the inputs to see what is read.
        """
        if not self._uses:
            return
        arrays = dict(probe.arrays)
        for _ in range(_MOST_PASSES):
            before = dict(arrays)
            for number, name in enumerate(self._uses):
                arrays[name] = self._chosen(name, arrays, np.random.default_rng([seed, number]), runs=runs)
            if all(np.array_equal(arrays[name], before[name]) for name in self._uses):
                break
        yield Probe(probe.name, arrays)

    def _chosen(self, name: str, arrays: Mapping[str, Array], random: np.random.Generator, *, runs: bool) -> Array:
        """Return values for an input that all its readers take."""
        array = arrays[name]
        found = [looked.values(use, name, arrays, random, runs=runs) for looked, use in self._uses[name]]
        told = [each for each in found if each is not None]
        if not told:
            return array
        if array.dtype.kind in "OSU":
            return told[0].reshape(array.shape)
        # What one reader takes at most, the others do as well; what none reads stays. A number that a reader takes as
        # it is does not become negative for another that adds to it: it may be where a slice begins.
        values = np.fmin.reduce([each.astype(np.float64) for each in told])
        direct = [use.name == name and each is not None for (_, use), each in zip(self._uses[name], found, strict=True)]
        if any(direct):
            own = np.asarray(found[direct.index(True)], np.float64).reshape(values.shape)
            values = np.where((values < 0) & (own >= 0), own, values)
        whole = np.where(np.isnan(values), 0, values).astype(array.dtype)
        return np.where(np.isnan(values), array, whole).astype(array.dtype).reshape(array.shape)


class _Looked:
    """One graph, and what its operators read of the inputs."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._constants = Constants(side.model) if side.model is not None else None

    def values(
        self, use: Use, name: str, arrays: Mapping[str, Array], random: np.random.Generator, *, runs: bool
    ) -> Array | None:
        """Return the input called ``name`` as one reader takes it, no number where it does not read it; or None."""

        def other(position: int) -> Array | None:
            return self._tensor(use.node, position, arrays, runs=runs)

        if not runs and any(other(position) is None for position, each in enumerate(use.node.inputs) if each):
            return None
        read, answers = other(use.position), answer_for(use)
        answer = answers(Question(use, read, other, random)) if read is not None and answers is not None else None
        if read is None or answer is None or answer.size != read.size:
            return None
        if use.name == name or answer.dtype.kind == "O":
            return answer.reshape(arrays[name].shape) if answer.size == arrays[name].size else None
        solved = self._solved(use, name, arrays, answer.ravel().astype(np.float64), runs=runs)
        if solved is None and answer.size:  # the smallest that the reader takes: a size is above 0, an index below it
            return np.full(arrays[name].shape, max(1, answer.min()) if answer.min() >= 0 else 0)
        return solved

    def _solved(self, use: Use, name: str, arrays: Mapping[str, Array], wanted: Array, *, runs: bool) -> Array | None:
        """Return the input that its reader reads as ``wanted``, where every value follows from one by a line."""
        array = arrays[name]
        fed, read = [], []
        for base, step in _MARKS:
            # A short period, because a line is the same wherever it is.
            marks = base + step * (np.arange(array.size) % 8)
            marked = {**arrays, name: marks.reshape(array.shape).astype(array.dtype)}
            there = self._tensor(use.node, use.position, marked, runs=runs)
            if there is None or there.size != wanted.size:
                return None
            fed.append(marks.astype(np.float64))
            read.append(there.ravel().astype(np.float64))
        if array.size == wanted.size and array.size > _MOST_PLACES:
            return _along_lines(fed, read, wanted).reshape(array.shape)
        found = np.full(array.size, np.nan)
        for place in range(min(array.size, _MOST_PLACES)):
            for position in range(min(wanted.size, _MOST_PLACES)):
                line = _line([marks[place] for marks in fed], [values[position] for values in read])
                if line is not None:
                    found[place] = np.floor((wanted[position] - line[1]) / line[0])
                    break
        return found.reshape(array.shape)

    def _tensor(self, node: NodeView, position: int, arrays: Mapping[str, Array], *, runs: bool) -> Array | None:
        if position >= len(node.inputs) or not (name := node.inputs[position]):
            return None
        if name in arrays:
            return arrays[name]
        known = self._constants.find(name) if self._constants is not None else None
        if known is not None or not (runs or self._is_independent(name, arrays)):
            return known
        try:
            with deadline.each_run(_SECONDS):
                return self._side.values(arrays, [name]).get(name)
        except ExecutionFailed:
            return None

    def _is_independent(self, name: str, arrays: Mapping[str, Array]) -> bool:
        """Whether a tensor is the same whatever is fed."""
        producers = self._side.view.producers
        above = reached([name], lambda each: producers[each].inputs if each in producers else ())
        return arrays.keys().isdisjoint(above)

    def readers(self, spec: TensorSpec) -> list[Use]:
        """Return the operators that take an input for more than data."""
        is_whole = numpy_type(spec.elem_type).kind in "iuOSU"
        found: list[Use] = []
        rest, seen = [(spec.name, is_whole)], {spec.name}
        while rest and len(seen) < _MOST_STEPS:
            name, integral = rest.pop(0)
            for node in self._side.view.readers.get(name, ()):
                kind = tensorflow_name(node.op_type)
                positions = [position for position, each in enumerate(node.inputs) if each == name]
                uses = [Use(node, position) for position in positions]
                found += [use for use in uses if answer_for(use) and (integral or (kind, use.position) in OF_FLOATS)]
                is_first = positions[0] == 0
                keeps = kind in _KEEPS and is_first
                if not keeps and not (integral and (kind in _MIXES or (kind in _CHOOSES and is_first))):
                    continue
                for output in node.outputs:
                    if output and output not in seen:
                        seen.add(output)
                        rest.append((output, integral or kind == "Cast"))
        return found


def _line(fed: Sequence[float], read: Sequence[float]) -> tuple[float, float] | None:
    """Return slope and rest of the line through all pairs; None where there is none, or a level one."""
    slope = (read[1] - read[0]) / (fed[1] - fed[0])
    rest = read[0] - slope * fed[0]
    if slope == 0 or any(abs(slope * x + rest - y) > 1e-6 for x, y in zip(fed, read, strict=True)):
        return None
    return slope, rest


def _along_lines(fed: Sequence[Array], read: Sequence[Array], wanted: Array) -> Array:
    """Return what is read as ``wanted`` where element follows from element, all along the line of the first."""
    line = _line([marks[0] for marks in fed], [values[0] for values in read])
    return np.asarray(wanted if line is None else np.floor((wanted - line[1]) / line[0]))


def _may_steer(spec: TensorSpec) -> bool:
    """Whether an input may be more than data: text, wide integers, and floats of few axes, which may be tokens."""
    dtype = numpy_type(spec.elem_type)
    return (
        dtype.kind in "OSU"
        or (dtype.kind in "iu" and dtype.itemsize > 1)
        or (is_real(dtype) and len(spec.shape or ()) < 3)
    )
