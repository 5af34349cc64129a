"""The same model with some of its inner tensors as outputs, cut down to the nodes that these need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import GraphProto, ModelProto, ValueInfoProto

from padfix.errors import PadfixError
from padfix.files.model import Model
from padfix.graph.scopes import outer_names_of
from padfix.proof.executors import Array, ExecutionFailed, Executor, OnnxRuntimeExecutor, SpecExecutor


class Exposable:
    """An executor whose inner tensors can be looked at.

    Attributes:
        model: What it runs; large weights stay in the file.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.model = _model_of(executor)

    def run(self, feeds: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
        """Return the tensors called ``names`` (members of sequences as ``name[index]``).

        Raises:
            ExecutionFailed: The runtime refused.
        """
        executor = self._executor
        if isinstance(executor, SpecExecutor):
            return executor.run_to(feeds, names)
        assert isinstance(executor, OnnxRuntimeExecutor)
        proto = outputs_only(self.model.proto, names)
        needed = {value.name for value in proto.graph.input}
        try:
            serialized = proto.SerializeToString()
        except ValueError as error:
            raise ExecutionFailed(f"The model is too large to be cut: {error}") from None
        part = OnnxRuntimeExecutor(serialized, optimised=executor.optimised, folder=self.model.folder)
        return part.run({name: array for name, array in feeds.items() if name in needed})


def exposable(executor: Executor) -> Exposable | None:
    """Return ``executor`` as one whose inner tensors can be looked at; None for TensorFlow."""
    if not isinstance(executor, OnnxRuntimeExecutor | SpecExecutor):
        return None
    try:
        return Exposable(executor)
    except (PadfixError, OSError, ValueError):
        return None


def outputs_only(model: ModelProto, names: Sequence[str]) -> ModelProto:
    """Return ``model`` with ``names`` as its outputs, without the nodes, weights and inputs that these don't need."""
    graph = model.graph
    wanted, kept = set(names), []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(node.input)
            wanted |= outer_names_of(node)
    result = ModelProto(ir_version=model.ir_version, producer_name=model.producer_name, domain=model.domain)
    result.opset_import.extend(model.opset_import)
    result.functions.extend(model.functions)
    result.graph.name = graph.name or "part"
    result.graph.node.extend(reversed(kept))
    result.graph.initializer.extend(tensor for tensor in graph.initializer if tensor.name in wanted)
    result.graph.sparse_initializer.extend(
        tensor for tensor in graph.sparse_initializer if tensor.values.name in wanted
    )
    result.graph.input.extend(value for value in graph.input if value.name in wanted)
    result.graph.quantization_annotation.extend(graph.quantization_annotation)
    declared = _declared(graph)
    result.graph.output.extend(declared.get(name, ValueInfoProto(name=name)) for name in names)
    return result


def _declared(graph: GraphProto) -> dict[str, ValueInfoProto]:
    # The declared types of outputs only: an inner one may be stale, and ONNX Runtime would refuse it.
    return {value.name: value for value in graph.output if value.HasField("type")}


def _model_of(executor: Executor) -> Model:
    if isinstance(executor, SpecExecutor):
        return Model(executor.proto, None, executor.folder)
    assert isinstance(executor, OnnxRuntimeExecutor)
    return executor.skeleton
