"""The two sides of a proof: models whose inner tensors can be looked at, and fed.

``Side.values`` gives tensors as the whole model computes them. ``Side.fed`` gives every tensor as its own stretch
computes it: all readers of a fed name read what is fed, so that one run judges every stretch by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol

from onnx import ModelProto, helper

from padfix.errors import PadfixError
from padfix.files.model import Model
from padfix.files.tensors import weight_bytes
from padfix.graph.scopes import in_order
from padfix.proof.compare import as_text, is_real
from padfix.proof.cut import Kind, output_name, part_of
from padfix.proof.executors import (
    Array,
    ExecutionFailed,
    Executor,
    OnnxRuntimeExecutor,
    TensorSpec,
    numpy_type,
)
from padfix.proof.graph_view import GraphView, NodeView, onnx_view
from padfix.proof.inner import InnerExecutor, Piece, inner_of
from padfix.proof.spec_executor import SpecExecutor

_TENSORFLOW_CONSTANTS = frozenset({"Const", "NoOp"})

_MOST_PARTS = 4
"""Parts of a model that are kept."""


class Side(Protocol):
    """A model that is looked into; ``model`` is there where it is ONNX, and :meth:`fed` works where ``can_be_fed``."""

    @property
    def view(self) -> GraphView: ...
    @property
    def model(self) -> Model | None: ...
    @property
    def can_be_fed(self) -> bool: ...

    def unknown_axes(self, name: str) -> tuple[int, ...]:
        """Return the axes of a tensor that are open and that nobody has swept yet; empty where none is known."""
        ...

    def lengths(self, name: str) -> tuple[int | None, ...] | None:
        """Return the lengths of a tensor that the graph tells, None for an open one; None where no rank is known."""
        ...

    def values(self, feeds: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
        """Return the tensors called ``names`` as the model computes them from its inputs.

        Raises:
            ExecutionFailed: The runtime refused.
        """
        ...

    def has_elements(self, arrays: Mapping[str, Array], names: Sequence[str]) -> bool:
        """Whether all that is computed for ``names`` has elements; True where only running can tell."""
        ...

    def fed(
        self, feeds: Mapping[str, Array], inner: Mapping[str, Array], names: Sequence[str], *, optimised: bool = False
    ) -> dict[str, Array]:
        """Return ``names`` computed from ``inner``, which every reader of these tensors reads in place of its own.

        Names of ``inner`` may be among them too, as their own nodes compute them. ``optimised`` lets the runtime's
        optimiser work on the part.

        Raises:
            ExecutionFailed: The runtime refused.
        """
        ...


class OnnxSide:
    """An ONNX model, run in parts by ONNX Runtime or by the specification."""

    can_be_fed = True

    def __init__(self, executor: OnnxRuntimeExecutor | SpecExecutor) -> None:
        self._executor = executor
        self.model: Model = _model_of(executor)
        self.view = onnx_view(self.model.proto.graph)
        self._parts: dict[Hashable, Executor] = {}

    def unknown_axes(self, name: str) -> tuple[int, ...]:
        # Each rewrite of an ONNX model was proven at every residue of its sizes on its own.
        return ()

    def lengths(self, name: str) -> tuple[int | None, ...] | None:
        return None

    def values(self, feeds: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
        if isinstance(self._executor, SpecExecutor):
            return self._executor.run_to(feeds, names)
        return self._run(("values", tuple(names)), lambda: part_of(self.model.proto, names), feeds, optimised=False)

    def has_elements(self, arrays: Mapping[str, Array], names: Sequence[str]) -> bool:
        """See :class:`Side`."""
        return True

    def fed(
        self, feeds: Mapping[str, Array], inner: Mapping[str, Array], names: Sequence[str], *, optimised: bool = False
    ) -> dict[str, Array]:
        kinds = self.kinds(inner)
        key = ("fed", tuple(names), tuple(kinds.items()), optimised)
        given = {**feeds, **inner}
        found = self._run(key, lambda: part_of(self.model.proto, names, kinds), given, optimised=optimised)
        return {name: found[output_name(name, kinds)] for name in names if output_name(name, kinds) in found}

    @staticmethod
    def kinds(inner: Mapping[str, Array]) -> dict[str, Kind]:
        """Return the kind of each array; lists keep their lengths, which runtimes hold against the rank of data."""
        return {
            name: (_elem_type(array), array.shape if array.ndim < 2 else (None,) * array.ndim)
            for name, array in inner.items()
        }

    def run_part(self, part: ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run a part of the model once.

        Raises:
            ExecutionFailed: The runtime refused.
        """
        return _run(self.load(part, optimised=False), feeds)

    def _run(
        self, key: Hashable, make: Callable[[], ModelProto], feeds: Mapping[str, Array], *, optimised: bool
    ) -> dict[str, Array]:
        executor = self._parts.get(key)
        if executor is None:
            executor = self.load(make(), optimised=optimised)
            while len(self._parts) >= _MOST_PARTS:
                del self._parts[next(iter(self._parts))]
            self._parts[key] = executor
        return _run(executor, feeds)

    def load(self, part: ModelProto, *, optimised: bool) -> Executor:
        """Return what runs a part of the model.

        Raises:
            ExecutionFailed: The runtime can't load it.
        """
        if isinstance(self._executor, SpecExecutor):
            return SpecExecutor.of(part)
        try:
            serialized = part.SerializeToString()
        except ValueError as error:
            raise ExecutionFailed(f"The model is too large to be cut: {error}") from None
        external = weight_bytes(part) if self.model.folder is not None else 0
        return OnnxRuntimeExecutor(serialized, optimised=optimised, folder=self.model.folder, external=external)


class TensorFlowSide:
    """A TensorFlow graph; what the interpreter of TensorFlow Lite runs can be looked at and not fed."""

    model = None

    def __init__(self, executor: Executor, inner: InnerExecutor) -> None:
        self._executor, self._inner = executor, inner
        tensors = inner.graph()
        nodes = [
            NodeView(
                index,
                tensor.name.rpartition(":")[0] or tensor.name,
                tensor.op_type,
                tensor.inputs,
                (tensor.name,),
                attribute=tensor.attribute,
            )
            for index, tensor in enumerate(tensors)
            if tensor.op_type not in _TENSORFLOW_CONSTANTS
        ]
        self.view = GraphView(nodes, (spec.name for spec in executor.inputs), executor.outputs)
        self.can_be_fed = inner.can_feed
        self._is_open = any(map(_opens_sizes, executor.inputs))
        self._shapes = {tensor.name: tensor.shape for tensor in tensors}

    def unknown_axes(self, name: str) -> tuple[int, ...]:
        # Where no input can change a size, the graph has but lost it, in a loop say.
        shape = self.lengths(name) if self._is_open else None
        return tuple(axis for axis, length in enumerate(shape or ()) if length is None)

    def lengths(self, name: str) -> tuple[int | None, ...] | None:
        return self._shapes.get(name)

    def values(self, feeds: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
        return self.fed(feeds, {}, names)

    def has_elements(self, arrays: Mapping[str, Array], names: Sequence[str]) -> bool:
        """See :class:`Side`."""
        return self._inner.has_elements(arrays, names)

    def with_branch(self, node: str, branch: str, outputs: Sequence[str]) -> Executor:
        """Return what runs the model to ``outputs`` with a condition that always takes one branch.

        Raises:
            ExecutionFailed: It has no such condition.
        """
        return Piece(self._executor.name, self._executor.inputs, outputs, self._inner.with_branch(node, branch))

    def fed(
        self, feeds: Mapping[str, Array], inner: Mapping[str, Array], names: Sequence[str], *, optimised: bool = False
    ) -> dict[str, Array]:
        found = self._inner.run_inner({**feeds, **inner}, names)
        return {name: as_text(array) for name, array in found.items()}


def _opens_sizes(spec: TensorSpec) -> bool:
    """Whether sizes of images may depend on an input: by its own lengths, but for a batch, or by its values."""
    shape = spec.shape
    if shape is None or not is_real(numpy_type(spec.elem_type)):
        return True
    return any(not isinstance(length, int) for length in (shape[1:] if len(shape) > 1 else shape))


def _run(executor: Executor, feeds: Mapping[str, Array]) -> dict[str, Array]:
    wanted = {spec.name for spec in executor.inputs}
    return executor.run({name: array for name, array in feeds.items() if name in wanted})


def side_of(executor: Executor) -> Side | None:
    """Return ``executor`` as one whose inner tensors can be looked at, or None."""
    try:
        if isinstance(executor, OnnxRuntimeExecutor | SpecExecutor):
            return OnnxSide(executor)
        inner = inner_of(executor)
        return None if inner is None else TensorFlowSide(executor, inner)
    except (PadfixError, ExecutionFailed, OSError, ValueError):
        return None


def _model_of(executor: OnnxRuntimeExecutor | SpecExecutor) -> Model:
    if isinstance(executor, SpecExecutor):
        return _in_order(Model(executor.proto))
    return _in_order(executor.skeleton)


def _in_order(model: Model) -> Model:
    stood = list(model.proto.graph.node)
    nodes = in_order(stood)
    if all(each is other for each, other in zip(nodes, stood, strict=True)):
        return model
    ordered = model.copy()
    del ordered.proto.graph.node[:]
    ordered.proto.graph.node.extend(nodes)
    return ordered


def _elem_type(array: Array) -> int:
    if array.dtype.kind in "OSU":
        return helper.np_dtype_to_tensor_dtype(array.dtype) if array.dtype.kind != "O" else 8
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))
