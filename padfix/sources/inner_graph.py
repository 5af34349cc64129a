"""The graph that tf2onnx converted, kept so that its inner tensors can be fed and fetched in TensorFlow.

tf2onnx leaves the names of TensorFlow's tensors in the ONNX model, so a piece of one can be held against the same piece
of the other. The weights are here once, as arrays: in the graph itself a placeholder stands for each, and every run
feeds it, because a session makes several copies of each constant in its graph.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from padfix.graph.dependence import reached
from padfix.process import watch
from padfix.sources.executor import element_type, lengths_of, told
from padfix.sources.fixed_inputs import split
from padfix.sources.tensorflow_runtime import quiet, run_session

if TYPE_CHECKING:
    from padfix.proof.inner import TensorNode

Array = npt.NDArray[Any]

_LARGE = 4096
"""Elements from which on a constant is kept apart; smaller ones (axes, shapes, bounds) say what the shapes are."""

_ALIGNED = 64
"""Bytes that an array begins at a multiple of when TensorFlow takes it without a copy."""

_STRING = 7  # TensorFlow's DataType number (types.proto)
_TABLES = frozenset({"HashTable", "HashTableV2"})

_CONDITIONS = {"If": "StatefulPartitionedCall", "StatelessIf": "PartitionedCall"}
"""What calls a function that is a branch of a condition."""

_REFUSED = "TensorFlow can't run a piece of it: "


class InnerGraph:
    """A GraphDef without variables, any of whose tensors can be fed and fetched.

    Made from the graph and not loaded before it is asked for something. A tensor is called ``node:0``, or, where it is
    an input or output of the model, by its name there, as in the ONNX model.
    """

    can_feed = True

    def __init__(
        self, tensorflow: Any, graph_def: Any, public: Mapping[str, str], tables: Mapping[Any, tuple[Any, Any]]
    ) -> None:
        """Take the nodes and, apart from them, the weights.

        Args:
            graph_def: The GraphDef; not kept.
            public: The model's names for its inputs and outputs by tensor (``node:0``).
            tables: Keys and values of hash tables by shared name.
        """
        self._tensorflow = tensorflow
        self._public = dict(public)
        self._tensors = {name: tensor for tensor, name in public.items()}
        self._tables = dict(tables)
        self._weights: dict[str, Array] = {}
        self._twins: dict[str, Any] = {}
        self._types: dict[str, str] = {node.name: node.op for node in graph_def.node}
        self._graph_def = self._without_weights(graph_def)

    def complete(self) -> Any:
        """Return the GraphDef that this was made from."""
        whole = type(self._graph_def)()
        whole.CopyFrom(self._graph_def)
        for node in whole.node:
            if node.name in self._weights:
                node.op = "Const"
                node.attr.pop("shape")
                element = self._tensorflow.dtypes.as_dtype(node.attr["dtype"].type)
                value = self._tensorflow.make_tensor_proto(self._weights[node.name], element)
                node.attr["value"].tensor.CopyFrom(value)
        return whole

    def graph(self) -> list[TensorNode]:
        """Return every tensor with what computes it, in an order in which a tensor comes after what it is made of.

        Raises:
            ExecutionFailed: TensorFlow can't load the graph.
        """
        from padfix.proof.inner import TensorNode

        with told(_REFUSED), quiet():
            operations = [item for item in self._session.graph.get_operations() if item.name in self._types]
            depths = _depths(operations)
            found = []
            for operation in operations:
                inputs = tuple(self._name(tensor.name) for tensor in operation.inputs)
                for tensor in operation.outputs:
                    element = element_type(tensor.dtype)
                    is_inner = depths[operation.name] > 0 or not element
                    name, kind = self._name(tensor.name), self._types[operation.name]
                    shape, attribute = lengths_of(tensor.shape), partial(_attribute, operation)
                    found.append(
                        TensorNode(name, kind, inputs, element, shape, can_feed=not is_inner, attribute=attribute)
                    )
        return found

    def with_branch(self, node: str, branch: str) -> InnerGraph:
        """Return the graph in which a condition is a call of what it does in one branch.

        Raises:
            ExecutionFailed: It has no such condition.
        """
        from padfix.proof.executors import ExecutionFailed

        other = copy.copy(self)
        other.__dict__.pop("_session", None)
        other._twins = {}
        other._graph_def = type(self._graph_def)()
        other._graph_def.CopyFrom(self._graph_def)
        found = next((each for each in other._graph_def.node if each.name == node and each.op in _CONDITIONS), None)
        if found is None:
            raise ExecutionFailed(f"TensorFlow's graph has no condition {node}.")
        attributes = {"Tin": found.attr["Tin"], "Tout": found.attr["Tout"]}
        call = type(found)(name=node, op=_CONDITIONS[found.op], input=found.input[1:], attr=attributes)
        call.attr["f"].func.CopyFrom(found.attr[branch].func)
        found.CopyFrom(call)
        other._types = self._types | {node: call.op}
        return other

    def run_inner(self, feeds: Mapping[str, Array], fetches: Sequence[str]) -> dict[str, Array]:
        """Run what ``fetches`` need, the graph cut at the tensors that are fed.

        Args:
            feeds: Values by name. Whoever reads such a tensor reads the value.
            fetches: Names of tensors; one that is fed as well is computed from what else is fed.

        Raises:
            ExecutionFailed: TensorFlow can't run this, or knows no such tensor.
        """
        with told(_REFUSED), quiet(), watch.doing("TensorFlow, running a piece of the original,"):
            graph = self._session.graph
            fed = {self._tensor(name).name: np.asarray(value) for name, value in feeds.items()}
            found: dict[str, Array] = {}
            wanted: dict[str, Any] = {}
            for name in fetches:
                tensor = self._tensor(name)
                if tensor.op.name in self._weights:
                    found[name] = self._weights[tensor.op.name]
                elif tensor.name in fed and tensor.op.type == "Placeholder":
                    found[name] = fed[tensor.name]
                else:
                    wanted[name] = self._twin(tensor) if tensor.name in fed else tensor
            if wanted:
                needed = self._above([tensor.op for tensor in wanted.values()], fed)
                read = {f"{name}:0": array for name, array in self._weights.items() if name in needed} | fed
                values = {graph.get_tensor_by_name(name): array for name, array in read.items()}
                found |= run_session(self._session, wanted, values)
        return {name: np.asarray(found[name]) for name in fetches}

    def has_elements(self, feeds: Mapping[str, Array], fetches: Sequence[str]) -> bool:
        """Whether TensorFlow's own rules of shapes give elements to all that ``fetches`` need.

        Where a window is longer than what it slides over, oneDNN's convolutions hand back their input and its pools
        end the process, so this is asked before anything is run at such sizes.

        Args:
            feeds: Values by name. Whoever reads such a tensor reads the value.
            fetches: Names of tensors that are not fed.
        """
        with self._inferred(feeds, fetches) as graph:
            return graph is not None and not any(
                0 in (lengths_of(tensor.shape) or ()) for each in graph.get_operations() for tensor in each.outputs
            )

    def shapes(self, feeds: Mapping[str, Array], fetches: Sequence[str]) -> dict[str, tuple[int | None, ...] | None]:
        """Return what TensorFlow's own rules say of shapes, None where nothing; empty where they refuse the feeds."""
        with self._inferred(feeds, fetches) as graph:
            if graph is None:
                return {}
            return {name: lengths_of(graph.get_tensor_by_name(self._tensor(name).name).shape) for name in fetches}

    @contextlib.contextmanager
    def _inferred(self, feeds: Mapping[str, Array], fetches: Sequence[str]) -> Iterator[Any]:
        """Yield a graph of what ``fetches`` need at the shapes of ``feeds``; None where these can't be."""
        fed = {self._tensor(name).name: np.asarray(value) for name, value in feeds.items()}
        above = self._above([self._tensor(name).op for name in fetches], fed)
        piece = type(self._graph_def)()
        piece.library.CopyFrom(self._graph_def.library)
        piece.versions.CopyFrom(self._graph_def.versions)
        piece.node.extend(node for node in self._graph_def.node if node.name in above)
        with quiet(), self._tensorflow.Graph().as_default() as graph:
            stand_ins = {name: self._stand_in(array) for name, array in fed.items()}
            read = {name.removeprefix("^") for node in piece.node for name in node.input}
            known = {name: each for name, each in stand_ins.items() if read & {name, name.removesuffix(":0")}}
            try:
                self._tensorflow.import_graph_def(piece, input_map=known, name="")
            except ValueError:
                graph = None
            yield graph

    def _stand_in(self, array: Array) -> Any:
        """Return what is fed as the rules of shapes see it: few whole numbers by value, since they may be a size."""
        if array.dtype.kind in "iu" and array.size < _LARGE:
            return self._tensorflow.constant(array)
        return self._tensorflow.compat.v1.placeholder(array.dtype, array.shape)

    def _name(self, tensor: str) -> str:
        return self._public.get(tensor, tensor)

    def _tensor(self, name: str) -> Any:
        from padfix.proof.executors import ExecutionFailed

        node, port = split(self._tensors.get(name, name))
        try:
            return self._session.graph.get_tensor_by_name(f"{node}:{port}")
        except (KeyError, ValueError):
            raise ExecutionFailed(f"TensorFlow's graph has no tensor {name}.") from None

    def _without_weights(self, graph_def: Any) -> Any:
        """Return the GraphDef with a placeholder for each large constant, which goes into the weights.

        Assertions are left out: they say what whole inputs are, and pieces are run to find out what suits.
        """
        asserted = _asserting(graph_def)
        slim = type(graph_def)()
        slim.versions.CopyFrom(graph_def.versions)
        slim.library.CopyFrom(graph_def.library)
        for node in graph_def.node:
            if not asserted.isdisjoint(node.input):
                node.input[:] = [name for name in node.input if name not in asserted]
            tensor = node.attr["value"].tensor if node.op == "Const" else None
            shape = [dimension.size for dimension in tensor.tensor_shape.dim] if tensor is not None else []
            if tensor is None or tensor.dtype == _STRING or int(np.prod(shape)) < _LARGE:
                slim.node.add().CopyFrom(node)
                continue
            self._weights[node.name] = _aligned(self._tensorflow.make_ndarray(tensor))
            stand_in = slim.node.add(name=node.name, op="Placeholder", device=node.device, input=node.input)
            stand_in.attr["dtype"].type = tensor.dtype
            stand_in.attr["shape"].shape.CopyFrom(tensor.tensor_shape)
        return slim

    @cached_property
    def _session(self) -> Any:
        v1 = self._tensorflow.compat.v1
        configuration = v1.ConfigProto()
        # Operators as they stand in the graph: neither fused nor folded, so that each piece is what its nodes say.
        configuration.graph_options.rewrite_options.disable_meta_optimizer = True
        configuration.graph_options.optimizer_options.opt_level = -1
        graph = self._tensorflow.Graph()
        with graph.as_default(), self._tensorflow.device("/cpu:0"):
            self._tensorflow.import_graph_def(self._graph_def, name="")
        session = v1.Session(graph=graph, config=configuration)
        for node in self._graph_def.node:
            content = self._tables.get(node.attr["shared_name"].s) if node.op in _TABLES else None
            if content is not None:
                with graph.as_default():
                    handle = graph.get_tensor_by_name(f"{node.name}:0")
                    session.run(
                        self._tensorflow.raw_ops.LookupTableImportV2(
                            table_handle=handle, keys=content[0], values=content[1]
                        )
                    )
        return session

    def _twin(self, tensor: Any) -> Any:
        """Return the tensor computed once more: a session hands back what is fed for the tensor itself."""
        original = tensor.op
        if original.name not in self._twins:
            graph = original.graph
            with (
                graph.as_default(),
                graph.control_dependencies(original.control_inputs),
                graph.colocate_with(None, True),
            ):
                self._twins[original.name] = graph.create_op(
                    original.type,
                    list(original.inputs),
                    [output.dtype for output in original.outputs],
                    name=f"{original.name}/padfix_twin",
                    attrs=dict(original.node_def.attr),
                    op_def=original.op_def,
                )
        return self._twins[original.name].outputs[tensor.value_index]

    @staticmethod
    def _above(operations: Sequence[Any], fed: Collection[str]) -> set[str]:
        """Return the names of the nodes that running ``operations`` takes."""

        def needed_by(operation: Any) -> list[Any]:
            return [
                *(tensor.op for tensor in operation.inputs if tensor.name not in fed),
                *operation.control_inputs,
            ]

        return {operation.name for operation in reached(operations, needed_by)}


def _asserting(graph_def: Any) -> set[str]:
    """Return what nodes are called, as control inputs, that are there for assertions alone."""
    found = {f"^{node.name}" for node in graph_def.node if node.op == "Assert"}
    waiting = [node for node in graph_def.node if node.op == "NoOp" and node.input] if found else []
    while more := {f"^{node.name}" for node in waiting if found.issuperset(node.input)} - found:
        found |= more
    return found


def _attribute(operation: Any, name: str) -> Any:
    try:
        return operation.get_attr(name)
    except ValueError:
        return None


def _aligned(array: Array) -> Array:
    """Return a copy that TensorFlow can read in place."""
    room = np.empty(array.nbytes + _ALIGNED, np.uint8)
    start = -room.ctypes.data % _ALIGNED
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _depths(operations: Sequence[Any]) -> dict[str, int]:
    """Return how many conditions and loops of TensorFlow 1 each node is in: nothing can be fed inside one."""
    depths: dict[str, int] = {}
    for operation in operations:
        inputs = [tensor.op for tensor in operation.inputs]
        above = [other for other in (*inputs, *operation.control_inputs) if other.name in depths]
        depth = max((depths[other.name] + _begins(other) for other in above), default=0)
        is_loop = any(other.type == "NextIteration" for other in inputs)
        depths[operation.name] = depth - (operation.type == "Exit" or (operation.type == "Merge" and not is_loop))
    return depths


def _begins(operation: Any) -> bool:
    """Whether what reads this node is inside a loop, or inside a condition, that it begins."""
    return bool(operation.type == "Enter" or (operation.type == "Switch" and operation.inputs[1].op.type != "LoopCond"))
