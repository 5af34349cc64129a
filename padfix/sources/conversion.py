"""From a TensorFlow graph with its weights as constants to ONNX, by way of tf2onnx."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import onnx
from onnx import ModelProto

from padfix.errors import PadfixError, UnsupportedError, UsageError
from padfix.files.model import Model
from padfix.graph.scopes import all_nodes, normal_domain
from padfix.proof.generated import sentence
from padfix.sources import cases, side_effects, unread_writes, ways_out
from padfix.sources.executor import lengths_of
from padfix.sources.fixed_inputs import split
from padfix.sources.freezing import PROTOBUF_LIMIT
from padfix.sources.graph_ends import output_types
from padfix.sources.inner_graph import InnerGraph
from padfix.sources.list_flows import CALLS
from padfix.sources.rowless import take_no_rows
from padfix.sources.settled_names import arrange, settle
from padfix.sources.tensorflow_runtime import first_line, quiet, reason_of, release_memory
from padfix.sources.tf_ops import linear_algebra

Anything = TypeVar("Anything")

DEFAULT_OPSET = 18
"""The newest that tf2onnx 1.16 and 1.17 write."""

_LISTS = frozenset({"TensorListReserve", "TensorListFromTensor", "TensorListSetItem", "TensorListGetItem"})
_UNLOWERED = (
    "They belong to a loop that was taken apart when the graph was frozen. Freeze it with "
    "convert_variables_to_constants_v2(function, lower_control_flow=False), or give padfix the SavedModel."
)
_FAILED = re.compile(r"^Failed to convert node '([^']*)'")
_MICROSOFT = "com.microsoft"
_RANGE_SINCE = 11
_FREE_WEIGHTS = 4
"""The version of ONNX's representation from which on weights are no inputs."""


@dataclass(frozen=True)
class Port:
    """A tensor of the graph (``node:0``) and the name that users know it by."""

    tensor: str
    name: str


@dataclass
class FrozenGraph:
    """A GraphDef without variables.

    Attributes:
        graph_def: The ``tf.compat.v1.GraphDef``.
        inputs: Placeholders, in order.
        outputs: Results, in order.
        tables: Contents of hash tables by shared name, as tf2onnx takes them.
        inner: What the conversion leaves of the graph.
        again: Converts that once more, without some passes of tf2onnx's optimiser.
    """

    graph_def: Any
    inputs: list[Port]
    outputs: list[Port]
    tables: dict[Any, Any] = field(default_factory=dict)
    inner: InnerGraph | None = None
    again: Callable[[Sequence[str]], Model] | None = None


def unique_names(tensors: Sequence[str], names: Sequence[str], taken: Sequence[str] = ()) -> list[Port]:
    """Pair tensors with names, each name made unique: ``name_1`` or, against an input, ``name_output``."""
    used = set(taken)
    ports = []
    for tensor, name in zip(tensors, names, strict=True):
        stem = f"{name}_output" if name in taken else name
        unique, number = stem, 0
        while unique in used:
            number += 1
            unique = f"{stem}_{number}"
        used.add(unique)
        ports.append(Port(tensor, unique))
    return ports


def pinned_shape(name: str, known: Sequence[int | None] | None, wanted: Sequence[int]) -> tuple[int, ...]:
    """Return ``wanted`` when the input ``name`` of shape ``known`` can have it.

    Raises:
        UsageError: Another rank, or another length on an axis that is fixed.
    """
    if known is not None:
        fits = len(known) == len(wanted) and all(
            length is None or length < 0 or length == asked for length, asked in zip(known, wanted, strict=True)
        )
        if not fits:
            shown = ",".join("?" if length is None or length < 0 else str(length) for length in known)
            asked = ",".join(map(str, wanted))
            raise UsageError(
                f"The input {name} has the shape {shown}; it can't be fixed to {asked}.",
                "Give one length for each axis; axes that show ? are free.",
            )
    return tuple(int(length) for length in wanted)


def requested_inputs(given: Mapping[str, Anything], inputs: Sequence[str]) -> dict[str, Anything]:
    """Return what was given by input name; ``name:0`` and ``^name`` mean ``name``.

    Raises:
        UsageError: A name that is no input.
    """
    found: dict[str, Anything] = {}
    for name, item in given.items():
        known = name if name in inputs else name.removeprefix("^").removesuffix(":0")
        if known not in inputs:
            raise UsageError(f"There is no input {name}.", f"The inputs are: {', '.join(inputs) or 'none'}.")
        found[known] = item
    return found


def pin_shapes(tensorflow: Any, frozen: FrozenGraph, shapes: Mapping[str, Sequence[int]]) -> None:
    """Write fixed shapes into the placeholders, so that TensorFlow infers static shapes everywhere."""
    wanted = requested_inputs(shapes, [port.name for port in frozen.inputs])
    if not wanted:
        return
    nodes = {node.name: node for node in frozen.graph_def.node}
    for port in frozen.inputs:
        if port.name not in wanted:
            continue
        node = nodes[port.tensor.split(":")[0]]
        known = lengths_of(tensorflow.TensorShape(node.attr["shape"].shape))
        shape = pinned_shape(port.name, known, wanted[port.name])
        node.attr["shape"].shape.CopyFrom(tensorflow.TensorShape(shape).as_proto())
    for node in frozen.graph_def.node:
        node.attr.pop("_output_shapes", None)  # written for the old shapes


def convert(tensorflow: Any, frozen: FrozenGraph, opset: int | None, name: str) -> Model:
    """Convert the graph with tf2onnx; input and output names are the ports' names.

    The weights would be there many times over, so the graph is used up: ``frozen.graph_def`` is empty behind this, and
    ``frozen.inner`` has what tf2onnx was given.

    Raises:
        UnsupportedError: tf2onnx left operators unconverted or failed, or the graph is over protobuf's 2 GB.
    """
    if frozen.graph_def.ByteSize() > PROTOBUF_LIMIT:
        raise UnsupportedError(
            "The TensorFlow graph with its weights is over 2 GB, more than TensorFlow can hold in one GraphDef.",
            "Export its halves on their own, or export ONNX with external data and give padfix that.",
        )
    names = [[port.name for port in ports] for ports in (frozen.inputs, frozen.outputs)]
    build = _builder(tensorflow, frozen, opset, name)
    frozen.again = lambda left_out: checked(lambda: build(left_out), *names)
    return checked(build, *names)


def checked(build: Callable[[], ModelProto], inputs: Sequence[str], outputs: Sequence[str]) -> Model:
    """Let tf2onnx build a model and refuse what it did not convert.

    Raises:
        UnsupportedError: tf2onnx left operators unconverted, failed, or changed inputs or outputs.
    """
    with quiet() as complaints:
        try:
            proto = build()
        except PadfixError:
            raise
        except Exception as error:
            reason = _readable(complaints[0]) if complaints else reason_of(error)
            raise UnsupportedError(f"tf2onnx can't convert this graph: {sentence(first_line(reason))}") from error
    release_memory(proto.ByteSize())
    failures = [message for message in complaints if message.startswith("Failed to convert node")]
    left = unconverted(proto)
    side_effects.refuse_chance(set(filter(side_effects.draws_at_all, left)))
    if left:
        lite = " Lite" if left[0].startswith("TFL_") else ""
        raise UnsupportedError(
            f"These TensorFlow{lite} operators have no ONNX form in tf2onnx: "
            f"{', '.join(operator.removeprefix('TFL_') for operator in left)}.{_why(failures)}",
            "Replace them in the model." if lite else _UNLOWERED if set(left) <= _LISTS else "",
        )
    if failures:
        raise UnsupportedError(f"tf2onnx can't convert this graph: {sentence(_readable(failures[0]))}")
    weights = {tensor.name for tensor in proto.graph.initializer}
    for index in reversed(range(len(proto.graph.input))):
        if proto.graph.input[index].name in weights:  # so below opset 9
            del proto.graph.input[index]
    proto.ir_version = max(proto.ir_version, _FREE_WEIGHTS)
    missing = set(inputs) ^ {value.name for value in proto.graph.input}
    missing |= set(outputs) ^ {value.name for value in proto.graph.output}
    if missing:
        raise UnsupportedError(f"tf2onnx changed the model's inputs or outputs: {', '.join(sorted(missing))}.")
    for values, names in ((proto.graph.input, inputs), (proto.graph.output, outputs)):
        arrange(values, sorted(range(len(values)), key=lambda index: names.index(values[index].name)))
    model = Model(proto)
    take_no_rows(model)
    return model


def _builder(tensorflow: Any, frozen: FrozenGraph, opset: int | None, name: str) -> Callable[..., ModelProto]:
    """Return what converts the graph, and later converts it again without some passes of the optimiser."""
    outputs = []
    for index, port in enumerate(frozen.outputs):
        # A node of its own for each output, so that one tensor may be several outputs, or an input as well.
        node = frozen.graph_def.node.add(name=f"padfix_output_{index}", op="Identity", input=[port.tensor])
        node.attr["T"].type = _tensor_type(frozen.graph_def, port.tensor)
        ways_out.require_real(port.name, tensorflow.dtypes.as_dtype(node.attr["T"].type))
        outputs.append(f"{node.name}:0")
    inputs = [port.tensor for port in frozen.inputs]
    renamed = dict(zip(inputs, (port.name for port in frozen.inputs), strict=True))
    renamed |= dict(zip(outputs, (port.name for port in frozen.outputs), strict=True))
    arguments = {
        "continue_on_error": True,
        "opset": min(opset or DEFAULT_OPSET, DEFAULT_OPSET),
        "input_names": inputs,
        "output_names": outputs,
        "tensors_to_rename": renamed,
        "initialized_tables": frozen.tables,
    }

    def build(left_out: Sequence[str] = ()) -> ModelProto:
        if frozen.inner is None:
            graph_def, frozen.graph_def = frozen.graph_def, type(frozen.graph_def)()
            try:
                optimised = _optimised(tensorflow, graph_def, inputs, outputs)
            except PadfixError:
                raise
            except Exception:  # a variable that is written is no constant
                side_effects.refuse_what_varies(graph_def, outputs)
                raise
        else:
            optimised = frozen.inner.complete()
        with tensorflow.device("/cpu:0"):
            try:
                proto = _mapped(tensorflow, optimised, arguments, name, left_out)
            except Exception:
                try:
                    proto = _mapped(tensorflow, optimised, arguments, name, left_out, careful=True)
                except Exception:  # whose words are about tf2onnx's own variables
                    side_effects.refuse_what_varies(optimised, outputs)
                    raise
            frozen.inner = frozen.inner or InnerGraph(tensorflow, optimised, renamed, frozen.tables)
        return proto

    return build


def _optimised(tensorflow: Any, graph_def: Any, inputs: list[str], outputs: list[str]) -> Any:
    """Return the graph as TensorFlow's own optimiser leaves it; ``graph_def`` is emptied."""
    from tf2onnx import tf_loader

    from padfix.sources import list_order
    from padfix.sources.tf_ops import element_types, single_size

    with tensorflow.device("/cpu:0"):
        cases.as_conditions(graph_def)
        unread_writes.drop(graph_def, outputs)
        if any(node.op in CALLS for node in graph_def.node):
            graph_def = _inlined(tensorflow, graph_def, inputs + outputs)
        element_types.refuse_quantized(graph_def)
        list_order.put_in_order(tensorflow, graph_def)
        single_size.declare(graph_def)
        with tensorflow.Graph().as_default():
            optimised = tf_loader.tf_optimize(inputs, outputs, graph_def)
    held = graph_def.ByteSize()
    graph_def.Clear()
    release_memory(held)
    return optimised


def _mapped(
    tensorflow: Any,
    graph_def: Any,
    arguments: dict[str, Any],
    name: str,
    left_out: Sequence[str],
    *,
    careful: bool = False,
) -> ModelProto:
    """Map the operators and let tf2onnx's optimisers tidy the result.

    ``careful`` copies the graph with all its weights before each optimiser, to go on without one that fails. That
    costs ten times the time and several times the memory of the weights, so it is the second try.
    """
    from tf2onnx import optimizer, tfonnx

    from padfix.sources.branch_shapes import declared_in_branches
    from padfix.sources.graph_optimizers import optimizers
    from padfix.sources.tf_ops import handlers, prepared_graphs, rewriters
    from padfix.sources.tf_ops.element_types import bfloat16

    with tensorflow.Graph().as_default() as graph, bfloat16(), prepared_graphs(), declared_in_branches():
        tensorflow.import_graph_def(graph_def, name="")
        converted = tfonnx.process_tf_graph(
            graph,
            custom_op_handlers=handlers(arguments["initialized_tables"]),
            custom_rewriter=rewriters(),
            **arguments,
        )
        release_memory(graph_def.ByteSize())
        converted = optimizer.optimize_graph(converted, catch_errors=careful, optimizers=optimizers(left_out))
        proto: ModelProto = converted.make_model(f"converted from {name}")
    _import_what_is_used(proto)
    settle(proto, [*(node.name for node in graph_def.node), *arguments["tensors_to_rename"].values()])
    return proto


def _import_what_is_used(proto: ModelProto) -> None:
    """Import ONNX Runtime's operators where there are some: tf2onnx leaves that out, and takes its Range for ONNX's.

    Nor does it keep the domain of what it copies into a branch or the body of a loop.
    """
    opsets = {entry.domain: entry.version for entry in proto.opset_import}
    for node in all_nodes(proto.graph.node):
        if node.op_type in linear_algebra.OF_THE_RUNTIME and not node.domain:
            node.domain = _MICROSOFT
    used = [node for node in all_nodes(proto.graph.node) if node.domain == _MICROSOFT]
    for node in used:
        if node.op_type == "Range" and opsets.get("", 1) >= _RANGE_SINCE:
            node.domain = ""
    if _MICROSOFT not in opsets and any(node.domain == _MICROSOFT for node in used):
        proto.opset_import.append(onnx.helper.make_opsetid(_MICROSOFT, 1))


def _inlined(tensorflow: Any, graph_def: Any, tensors: list[str]) -> Any:
    """Return the graph with its function calls replaced by their bodies; tf2onnx knows no calls.

    ``tensors`` keep their names. Keras compiles grouped convolutions through XLA, which stands in the way of inlining
    and changes nothing in what they mean.
    """
    from tensorflow.core.protobuf import config_pb2, meta_graph_pb2, rewriter_config_pb2
    from tensorflow.python.grappler import tf_optimizer

    for owner in [*graph_def.library.function, graph_def]:
        nodes = owner.node if owner is graph_def else owner.node_def
        for node in nodes:
            node.attr.pop("_XlaMustCompile", None)
            if "_lower_using_switch_merge" in node.attr:
                node.attr["_lower_using_switch_merge"].b = False
        if owner is not graph_def:
            for attribute in ("_XlaMustCompile", "_noinline", "api_implements"):
                owner.attr.pop(attribute, None)
    configuration = config_pb2.ConfigProto()
    rewriting = configuration.graph_options.rewrite_options
    rewriting.min_graph_nodes = -1  # small graphs as well
    rewriting.optimizers.append("function")
    rewriting.function_optimization = rewriter_config_pb2.RewriterConfig.AGGRESSIVE
    with tensorflow.Graph().as_default():
        meta_graph = tensorflow.compat.v1.train.export_meta_graph(graph_def=graph_def)
    fetched = meta_graph_pb2.CollectionDef()
    fetched.node_list.value.extend(tensors)
    meta_graph.collection_def["train_op"].CopyFrom(fetched)
    return tf_optimizer.OptimizeGraph(configuration, meta_graph)


def _tensor_type(graph_def: Any, tensor: str) -> int:
    name, port = split(tensor)
    node = next(candidate for candidate in graph_def.node if candidate.name == name)
    types = output_types(node)
    if types is None or port >= len(types):
        raise UsageError(f"The node {node.name} has no output {port}.")
    return types[port]


def unconverted(model: ModelProto) -> list[str]:
    """Return the operators of ``model`` that no imported ONNX operator set defines, sorted."""
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    functions = {(function.domain, function.name) for function in model.functions}
    unknown: set[str] = set()
    for node in all_nodes(model.graph.node):
        domain = normal_domain(node.domain)
        if (node.domain, node.op_type) in functions or (domain == "com.microsoft" and domain in opsets):
            continue
        with contextlib.suppress(onnx.defs.SchemaError):
            onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
            continue
        unknown.add(node.op_type)
    return sorted(unknown)


def _why(failures: Sequence[str]) -> str:
    """Return the reason of the first failure as a sentence, behind another one; nothing where there is none."""
    return "".join(f" {sentence(f'T{_readable(each)[1:]}')}" for each in failures[:1])


def _readable(failure: str) -> str:
    return first_line(_FAILED.sub(r"the node \1", failure))
