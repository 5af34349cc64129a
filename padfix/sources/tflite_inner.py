"""Pieces of a TensorFlow Lite file, run by TensorFlow's interpreter.

The interpreter can't be fed inside a graph. A file can be cut, though: what lies between the tensors that are fed and
those that are fetched is written as a file of its own, with the file's own weights, and that is run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from padfix.graph import dependence
from padfix.process import watch
from padfix.process.apart import Apart, CrashedError, RemoteError
from padfix.process.deadline import Overdue
from padfix.sources import tensorflow_runtime
from padfix.sources.executor import element_type
from padfix.sources.tensorflow_runtime import first_line, quiet, silent_stderr
from padfix.sources.tflite_schema import (
    NO_BUFFER,
    LiteFile,
    constant_of,
    declared_shape,
    made,
    operators,
    packed,
    reached,
    schema,
    type_name,
)

if TYPE_CHECKING:
    from padfix.proof.executors import Array
    from padfix.proof.inner import TensorNode

_MOST_PARTS = 4
"""Parts that are kept."""


@dataclass(frozen=True)
class _Part:
    """A loaded part: positions in the file's subgraph of its inputs, of what it gives, in order, and of all results."""

    interpreter: Any
    fed: tuple[int, ...]
    fetched: tuple[int, ...]
    computed: frozenset[int]


class LiteInner:
    """A subgraph of a file, any of whose tensors can be fed and fetched; see :class:`padfix.proof.inner.InnerExecutor`.

    A tensor is called as in the converted model.
    """

    can_feed = True

    def __init__(
        self, tensorflow: Any, file: LiteFile, index: int, names: Sequence[str], aliases: Mapping[str, str]
    ) -> None:
        """Take a file; nothing is loaded before it is asked for.

        Args:
            index: The subgraph.
            names: Names of its tensors, by position.
            aliases: Further names of outputs, and the names that they are for.
        """
        self._tensorflow, self._file, self._index = tensorflow, file, index
        self._names = list(names)
        self._aliases = dict(aliases)
        self._positions = {name: position for position, name in enumerate(names)}
        self._parts: dict[Any, _Part] = {}

    @cached_property
    def _model(self) -> Any:
        return self._file.model()

    @cached_property
    def _graph(self) -> Any:
        return self._model.subgraphs[self._index]

    @cached_property
    def _producers(self) -> dict[int, int]:
        """The operator that computes each tensor, by positions."""
        return {
            int(result): position
            for position, operator in enumerate(self._graph.operators or ())
            for result in _indices(operator.outputs)
        }

    def graph(self) -> list[TensorNode]:
        """Return every tensor with what computes it, behind what it is made of."""
        from padfix.proof.inner import TensorNode, no_attribute

        found = []

        def add(
            position: int, kind: str, inputs: Sequence[int], attribute: Callable[[str], Any] = no_attribute
        ) -> None:
            tensor = self._graph.tensors[position]
            element = element_type(self._tensorflow.dtypes.as_dtype(type_name(tensor.type)))
            read = tuple(self._names[each] for each in inputs)
            found.append(
                TensorNode(self._names[position], kind, read, element, declared_shape(tensor), True, attribute)
            )

        for position in _indices(self._graph.inputs):
            add(position, "Placeholder", ())
        read = {each for operator in self._graph.operators or () for each in _indices(operator.inputs)}
        for position in sorted(read):
            if not self._is_computed(position):
                add(position, "Const", ())
        for operator, kind in operators(self._model, self._graph):
            for position in _indices(operator.outputs):
                add(position, kind, _indices(operator.inputs), partial(_attribute, operator.builtinOptions))
        known = {each.name: each for each in found}
        for alias, name in self._aliases.items():
            like = known[name]
            found.append(TensorNode(alias, "Identity", (name,), like.elem_type, like.shape, can_feed=True))
        return found

    def _is_computed(self, position: int) -> bool:
        return position in self._producers or position in _indices(self._graph.inputs)

    def run_inner(self, feeds: Mapping[str, Array], fetches: Sequence[str]) -> dict[str, Array]:
        """Run what ``fetches`` need, the graph cut at the tensors that are fed.

        Raises:
            ExecutionFailed: The interpreter can't run this, or there is no such tensor.
        """
        found: dict[str, Array] = self._asked("run", feeds, fetches)
        return found

    def has_elements(self, feeds: Mapping[str, Array], fetches: Sequence[str]) -> bool:
        """Whether the interpreter finds room for all that ``fetches`` need; nothing is run."""
        return bool(self._asked("has elements", feeds, fetches))

    def with_branch(self, node: str, branch: str) -> LiteInner:
        """See :class:`padfix.proof.inner.InnerExecutor`."""
        from padfix.proof.executors import ExecutionFailed

        raise ExecutionFailed("TensorFlow Lite runs no branch by itself.")

    def _asked(self, what: str, feeds: Mapping[str, Array], fetches: Sequence[str]) -> Any:
        """Ask the process in which the pieces run, because indices beyond a range end it."""
        from padfix.proof.executors import ExecutionFailed

        try:
            with watch.doing("TensorFlow, running a piece of the original,"):
                return self._apart((what, dict(feeds), list(fetches)))
        except (CrashedError, RemoteError, Overdue) as error:
            message = f"TensorFlow can't run a piece of it: {error}"
            raise ExecutionFailed(message, overdue=isinstance(error, Overdue)) from None

    @cached_property
    def _apart(self) -> Apart:
        return Apart(partial(_answering, self._file, self._index, self._names, self._aliases))

    def answer(self, question: tuple[str, Mapping[str, Array], Sequence[str]]) -> Any:
        """Answer what :meth:`run_inner` and :meth:`has_elements` ask, here in this process."""
        what, feeds, fetches = question
        return self._run(feeds, fetches) if what == "run" else self._finds_room(feeds, fetches)

    def _run(self, feeds: Mapping[str, Array], fetches: Sequence[str]) -> dict[str, Array]:
        fed = {self._position(name): np.asarray(value) for name, value in feeds.items()}
        wanted = {name: self._position(name) for name in fetches}
        results = {each: self._held(each, fed) for each in wanted.values() if each not in self._producers}
        if len(results) == len(set(wanted.values())):
            return {name: results[position] for name, position in wanted.items()}
        try:
            with quiet(), silent_stderr():
                part = self._part(fed, [position for position in wanted.values() if position not in results])
                loaded = part.interpreter
                for details, position in zip(loaded.get_input_details(), part.fed, strict=True):
                    loaded.set_tensor(details["index"], fed[position])
                loaded.invoke()
                for details, position in zip(loaded.get_output_details(), part.fetched, strict=True):
                    results[position] = np.asarray(loaded.get_tensor(details["index"]))
        except Exception as error:  # a kernel that refuses raises RuntimeError or ValueError
            raise RuntimeError(first_line(error)) from error
        return {name: results[position] for name, position in wanted.items()}

    def _held(self, position: int, fed: Mapping[int, Array]) -> Array:
        """Return what is fed, or what the file holds.

        Raises:
            RuntimeError: Neither, or no plain numbers.
        """
        if position in fed:
            return fed[position]
        try:
            found = constant_of(self._model, self._graph.tensors[position])
        except TypeError:
            found = None
        if found is None:
            raise RuntimeError(f"{self._names[position]} is not known here")
        return np.asarray(found)

    def _finds_room(self, feeds: Mapping[str, Array], fetches: Sequence[str]) -> bool:
        fed = {self._position(name): np.asarray(value) for name, value in feeds.items()}
        try:
            with quiet(), silent_stderr():
                part = self._part(fed, [self._position(name) for name in fetches])
        except (RuntimeError, ValueError):
            return False
        details = part.interpreter.get_tensor_details()
        return not any(0 in each["shape"] for each in details if each["index"] in part.computed)

    def _position(self, name: str) -> int:
        from padfix.proof.executors import ExecutionFailed

        try:
            return self._positions[self._aliases.get(name, name)]
        except KeyError:
            raise ExecutionFailed(f"TensorFlow's interpreter has no tensor {name}.") from None

    def _part(self, fed: Mapping[int, Array], fetched: Sequence[int]) -> _Part:
        """Return the part between the tensors that are fed and those that are fetched, loaded."""
        results = tuple(dict.fromkeys(fetched))
        key = (results, tuple((position, array.shape) for position, array in sorted(fed.items())))
        if key not in self._parts:
            while len(self._parts) >= _MOST_PARTS:
                del self._parts[next(iter(self._parts))]
            needed, read = self._needed(fed, results)
            model = self._cut({position: fed[position].shape for position in read}, needed, results)
            loaded = self._file.interpreter(self._tensorflow, model)
            loaded.allocate_tensors()
            computed = {each for position in needed for each in _indices(self._graph.operators[position].outputs)}
            self._parts[key] = _Part(loaded, tuple(read), results, frozenset(computed))
        return self._parts[key]

    def _cut(self, fed: Mapping[int, tuple[int, ...]], needed: Sequence[int], fetched: Sequence[int]) -> bytes:
        """Return a file with some operators of the graph, which read what is fed (in these lengths) from outside."""
        tensors = [copy.copy(tensor) for tensor in self._graph.tensors]
        stand_ins = {}
        for position, shape in fed.items():
            # The tensor itself may be computed as well, as what is fetched.
            like = copy.copy(tensors[position])
            like.shape, like.shapeSignature, like.buffer = np.asarray(shape, np.int32), None, NO_BUFFER
            stand_ins[position] = len(tensors)
            tensors.append(like)
        kept = []
        for position in needed:
            operator = copy.copy(self._graph.operators[position])
            operator.inputs = [stand_ins.get(int(each), int(each)) for each in operator.inputs]
            kept.append(operator)
        part = made(schema().SubGraphT, tensors=tensors, operators=kept, name=b"part")
        part.inputs, part.outputs = list(stand_ins.values()), list(fetched)
        return self._packed(part)

    def _needed(self, fed: Mapping[int, Any], fetched: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the operators that a part has, and the fed tensors that these read, both in the file's order."""

        def read_by(position: int) -> list[int]:
            return _indices(self._graph.operators[position].inputs)

        def above(position: int) -> list[int]:
            return [self._producers[each] for each in read_by(position) if each in self._producers and each not in fed]

        found = dependence.reached([self._producers[each] for each in fetched], above)
        return sorted(found), sorted({each for position in found for each in read_by(position) if each in fed})

    def _packed(self, part: Any) -> bytes:
        model = copy.copy(self._model)
        # What a part calls lies behind the main graph; nothing calls that.
        model.subgraphs = [part, *self._model.subgraphs[1:]]
        model.signatureDefs = model.metadata = model.metadataBuffer = None
        graphs = [model.subgraphs[number] for number in reached(model, 0)]
        used = {
            int(graph.tensors[each].buffer)
            for graph in graphs
            for operator in graph.operators
            for each in _indices(operator.inputs)
        }
        empty = made(schema().BufferT)
        model.buffers = [each if number in used else empty for number, each in enumerate(self._model.buffers)]
        return packed(model)


def _answering(file: LiteFile, index: int, names: Sequence[str], aliases: Mapping[str, str]) -> Callable[[Any], Any]:
    tensorflow = tensorflow_runtime.load("a TensorFlow Lite file")
    return LiteInner(tensorflow, file, index, names, aliases).answer


def _attribute(options: Any, name: str) -> Any:
    """Return an attribute under TensorFlow's name for it; None where the operator has none."""
    if name == "strides" and hasattr(options, "strideH"):
        depth = [options.strideD] if hasattr(options, "strideD") else []
        return [1, *depth, options.strideH, options.strideW, 1]
    if name == "padding" and hasattr(options, "padding"):
        return b"SAME" if options.padding == schema().Padding.SAME else b"VALID"
    return getattr(options, name, None)


def _indices(positions: Any) -> list[int]:
    """Return positions of tensors as integers; one that is left out is none."""
    return [int(each) for each in (positions if positions is not None else ()) if each >= 0]
