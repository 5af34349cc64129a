"""SavedModel folders, TensorFlow 2 and 1 style.

The object loader of TensorFlow 2 comes first. Where it refuses (a missing class, slots of a Keras 2 optimizer), the
graph loader of TensorFlow 1 reads the same folder: it needs only the graph and the variables.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from padfix.errors import SourceError, UnsupportedError, UsageError
from padfix.files.containment import is_inner, require_plain_tree
from padfix.graph.scopes import Dimension
from padfix.graph.types import value_type
from padfix.sources import conversion, fixed_inputs, freezing, side_effects, ways_out
from padfix.sources.conversion import FrozenGraph, Port, unique_names
from padfix.sources.executor import Runner, TensorFlowExecutor, element_type, lengths_of
from padfix.sources.source import Source, SourceOptions
from padfix.sources.tensorflow_runtime import (
    call,
    first_line,
    quiet,
    read_message,
    refuse_unknown_operator,
    release_memory,
    run_session,
)

if TYPE_CHECKING:
    from padfix.proof.executors import TensorSpec

_DEFAULT_SIGNATURE = "serving_default"
_DEFAULT_TAG = "serve"
_FILES = ("saved_model.pb", "saved_model.pbtxt", "fingerprint.pb", "variables", "assets", "assets.extra")


@dataclass
class Loaded:
    """A SavedModel in memory: what to convert and how to run it.

    Attributes:
        frozen: The graph with its weights as constants.
        types: TensorFlow dtype and shape (None for an unknown rank, None for a free length) by input name.
        runner: Runs the original.
        flags: Values to fix inputs to by name, unless the user says otherwise.
        owner: Kept alive with the runner, because a concrete function does not keep its variables.
    """

    frozen: FrozenGraph
    types: dict[str, tuple[Any, tuple[int | None, ...] | None]]
    runner: Runner
    flags: Mapping[str, object] = field(default_factory=dict)
    owner: Any = None


def load_saved_model(
    tensorflow: Any, path: Path, options: SourceOptions, *, to_run: bool = False
) -> tuple[Loaded, list[str]]:
    """Load and freeze the chosen signature of the folder, or of the ``saved_model.pb`` in it; return it with notes.

    Raises:
        UsageError: The signature, the tag or a shape is not the model's; the hint lists what there is.
        SourceError: The folder is incomplete or damaged.
        UnsupportedError: TensorFlow can't load it, or a part of it has no ONNX form.
    """
    folder = path if path.is_dir() else path.parent
    meta_graph, tags = _choose_tags(_meta_graphs(path, folder, trust=options.trust), options.tag)
    names = [name for name in meta_graph.signature_def if not name.startswith("__")]
    signature = chosen_signature(names, options.signature, "SavedModel")
    if signature is None:
        raise UnsupportedError(
            "This SavedModel has no signatures, so its inputs and outputs have no names.",
            "Save it again with tf.saved_model.save(model, folder, signatures=function).",
        )
    if not meta_graph.signature_def[signature].outputs:
        others = sorted(name for name in names if meta_graph.signature_def[name].outputs)
        listing = f"Those with outputs are: {', '.join(others)}. Choose one with --signature."
        raise UnsupportedError(
            f"The signature {signature} has no outputs: nothing that it computes comes out.",
            listing if others else "Save the model with a signature that returns what it computes.",
        )
    if not options.trust:
        side_effects.refuse_in_saved_model(meta_graph, signature, folder)
    refusal: Exception | None = None
    if meta_graph.object_graph_def.nodes:
        try:
            with quiet(), tensorflow.device("/cpu:0"):

                def load() -> tuple[Any, Any]:
                    root = tensorflow.saved_model.load(str(folder), tags=tags)
                    return root, root.signatures[signature]

                return freeze_function(tensorflow, load, to_run=to_run), []
        except Exception as error:
            refusal = error
    loaded = _load_graph(tensorflow, folder, tags, meta_graph.signature_def[signature], refusal, options.constants)
    if refusal is None:
        return loaded, []
    told = f"TensorFlow's object loader refuses this SavedModel ({first_line(refusal)}); its graph was read instead."
    return loaded, [told]


def finish(
    tensorflow: Any,
    kind: Any,
    loaded: Loaded,
    options: SourceOptions,
    name: str,
    notes: list[str],
    fresh_runner: Callable[[], Runner] | None = None,
) -> Source:
    """Fix what is constant, pin shapes, convert, and pair the model with a runner of the original."""
    from padfix.sources.graph_optimizers import with_passes_to_leave_out
    from padfix.sources.kernel_faults import faults, mixes_images, suspects

    release_memory(loaded.frozen.graph_def.ByteSize())
    notes = [*notes, *fix_inputs(tensorflow, loaded, {**loaded.flags, **options.constants})]
    pinned = conversion.requested_inputs(options.shapes, list(loaded.types))
    conversion.pin_shapes(tensorflow, loaded.frozen, pinned)
    suspected = suspects(loaded.frozen.graph_def)
    drawn = side_effects.drawn_in(loaded.frozen.graph_def)
    ways_out.require_onnx_types(kind, loaded.types)
    try:
        model = conversion.convert(tensorflow, loaded.frozen, options.opset, name)
    except UnsupportedError as error:
        error.hint = error.hint or ways_out.hint_for(error.message, kind, loaded.types, pinned)
        raise
    known = {value.name: value_type(value.type) for value in model.proto.graph.input}
    declared = {name: kind.shape if kind is not None else None for name, kind in known.items()}
    mixed = mixes_images(tensorflow, suspected)
    if mixed:
        notes = [*notes, *mixed, "So the result was compared one image at a time."]
        # A copy of images alone: other inputs have no batch that TensorFlow would mix.
        declared = {name: (1, *shape[1:]) if shape and len(shape) == 4 else shape for name, shape in declared.items()}

    def executor() -> TensorFlowExecutor:
        names = [port.name for port in loaded.frozen.outputs]
        specifications = _specifications(loaded, pinned, declared)
        return TensorFlowExecutor(specifications, names, loaded.runner, loaded.frozen.inner, fresh_runner, drawn)

    assert loaded.frozen.again is not None
    source = Source(kind, model, executor, notes, lambda: faults(tensorflow, suspected))
    return with_passes_to_leave_out(source, loaded.frozen.again)


def fix_inputs(tensorflow: Any, loaded: Loaded, constants: Mapping[str, object]) -> list[str]:
    """Make constants of what the user fixed and of defaults, and remove the branches not taken; return notes.

    Raises:
        UsageError: A name that is no input, or a value that does not fit.
        UnsupportedError: An output is in a branch that is not taken.
    """
    frozen = loaded.frozen
    nodes = {node.name: node for node in frozen.graph_def.node}
    for port in frozen.inputs:
        node = nodes[fixed_inputs.split(port.tensor)[0]]
        if node.op == "PlaceholderWithDefault":
            node.op = "Placeholder"
            del node.input[:]
    values = fixed_values(loaded, constants)
    for port in frozen.inputs:
        if port.name in values:
            fixed_inputs.make_constant(tensorflow, nodes[fixed_inputs.split(port.tensor)[0]], values[port.name])
    frozen.inputs = [port for port in frozen.inputs if port.name not in values]
    loaded.types = {name: kind for name, kind in loaded.types.items() if name not in values}
    notes = [f"{name} is fixed to {fixed_inputs.shown(value)}." for name, value in values.items()]
    notes += fixed_inputs.settle_defaults(frozen.graph_def, [port.tensor for port in frozen.inputs])
    tensors = fixed_inputs.prune(tensorflow, frozen.graph_def, [port.tensor for port in frozen.outputs])
    frozen.outputs = [Port(tensor, port.name) for tensor, port in zip(tensors, frozen.outputs, strict=True)]
    if values:
        run = loaded.runner
        loaded.runner = lambda feeds: run({**feeds, **values})
    return notes


def fixed_values(loaded: Loaded, constants: Mapping[str, object]) -> dict[str, Any]:
    """Return what the user fixed as arrays by input name.

    Raises:
        UsageError: A name that is no input, or a value that does not fit.
    """
    given = conversion.requested_inputs(constants, list(loaded.types))
    return {name: fixed_inputs.value_of(name, value, *loaded.types[name]) for name, value in given.items()}


def _specifications(
    loaded: Loaded, pinned: Mapping[str, tuple[int, ...]], declared: Mapping[str, tuple[Dimension, ...] | None]
) -> list[TensorSpec]:
    """Return the inputs as TensorFlow declares them, lengths that only the conversion found out put in."""
    from padfix.proof.executors import TensorSpec

    found = []
    for name, (dtype, shape) in loaded.types.items():
        known = pinned.get(name, shape)
        theirs = [each if isinstance(each, int) else None for each in declared.get(name) or ()]
        if known is None:
            known = tuple(theirs) if declared.get(name) is not None else None
        elif len(known) == len(theirs):
            known = tuple(mine if mine is not None else other for mine, other in zip(known, theirs, strict=True))
        found.append(TensorSpec(name, element_type(dtype), known))
    return found


def _meta_graphs(path: Path, folder: Path, *, trust: bool) -> list[Any]:
    from tensorflow.core.protobuf import saved_model_pb2

    file = path if path.is_file() else folder / "saved_model.pb"
    if not file.is_file():
        file = folder / "saved_model.pbtxt"
    if not trust:
        require_plain_tree(folder, _FILES, file)
    saved = read_message(file, saved_model_pb2.SavedModel())
    if not saved.meta_graphs:
        raise SourceError(f"{file} holds no graph.", "Fetch or export it again.")
    for meta_graph in saved.meta_graphs:
        for asset in meta_graph.asset_file_def:
            if not is_inner(asset.filename):
                raise SourceError(
                    f"{file} names the asset {asset.filename!r}, which is not inside the model's folder.",
                    "Do not trust this model.",
                )
    return list(saved.meta_graphs)


def _choose_tags(meta_graphs: Sequence[Any], wanted: str | None) -> tuple[Any, list[str]]:
    there = [list(meta_graph.meta_info_def.tags) for meta_graph in meta_graphs]
    listing = f"The tags are: {'; '.join(','.join(tags) or '(none)' for tags in there)}."
    if wanted is not None:
        asked = {tag for tag in wanted.split(",") if tag}
        matches = [index for index, tags in enumerate(there) if set(tags) == asked]
        matches = matches or [index for index, tags in enumerate(there) if asked <= set(tags)]
        if len(matches) != 1:
            problem = "matches several graphs" if matches else "is not in this SavedModel"
            raise UsageError(f"The tag {wanted} {problem}.", listing)
        return meta_graphs[matches[0]], there[matches[0]]
    if len(there) == 1:
        return meta_graphs[0], there[0]
    serving = [index for index, tags in enumerate(there) if tags == [_DEFAULT_TAG]]
    if not serving:
        raise UsageError("This SavedModel holds several graphs.", f"Choose one with --tag. {listing}")
    return meta_graphs[serving[0]], there[serving[0]]


def chosen_signature(available: Iterable[str], wanted: str | None, what: str) -> str | None:
    """Return the signature to take: the one that is wanted, ``serving_default``, or the only one; None without any.

    Raises:
        UsageError: There is no such signature, or no telling which.
    """
    names = sorted(available)
    listing = f"The signatures are: {', '.join(names) or 'none'}."
    if wanted is not None and wanted not in names:
        raise UsageError(f"There is no signature {wanted}.", listing)
    if wanted is not None or _DEFAULT_SIGNATURE in names:
        return wanted or _DEFAULT_SIGNATURE
    if len(names) > 1:
        raise UsageError(
            f"This {what} has several signatures and no serving_default.", f"Choose with --signature. {listing}"
        )
    return names[0] if names else None


def freeze_function(
    tensorflow: Any,
    load: Callable[[], tuple[Any, Any]],
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    *,
    to_run: bool = False,
) -> Loaded:
    """Freeze a concrete function that takes keyword tensors and returns a dictionary.

    Args:
        load: Returns the object that owns the variables and tables, and the concrete function.
        input_names: Names for users, in the order of the sorted keywords; None for the keywords.
        output_names: Names for users, in the order of the sorted keys; None for the keys.
        to_run: Whether only the runner is wanted, and the graph may be empty.
    """
    root, function = load()
    variables = {id(variable.handle) for variable in function.graph.variables}
    has_tables = any(
        outer.dtype == tensorflow.resource and id(outer) not in variables for outer, _ in function.graph.captures
    )
    specifications = [
        item
        for item in tensorflow.nest.flatten(function.structured_input_signature)
        if isinstance(item, tensorflow.TensorSpec)
    ]
    captured = {tensor.name for _, tensor in function.graph.captures}
    free = [tensor for tensor in function.inputs if tensor.name not in captured]
    inputs = unique_names([tensor.name for tensor in free], input_names or [item.name for item in specifications])
    names = [port.name for port in inputs]
    keys = sorted(function.structured_outputs)
    results = [tensor for tensor in function.outputs if tensor.dtype != tensorflow.resource]
    outputs = unique_names([tensor.name for tensor in results], output_names or keys, names)
    graph_def: Any = tensorflow.compat.v1.GraphDef()
    tables: dict[bytes, Any] = {}
    if not to_run:
        tensors = [port.tensor for port in inputs], [port.tensor for port in outputs]
        graph_def, tables = freezing.without_variables(tensorflow, root, function, *tensors, has_tables=has_tables)
        if has_tables:
            root, function = load()  # tf2onnx takes the tables out of the function that it freezes
    types = {port.name: (tensor.dtype, lengths_of(tensor.shape)) for port, tensor in zip(inputs, free, strict=True)}
    keyword = dict(zip(names, (item.name for item in specifications), strict=True))
    dtypes = {name: dtype for name, (dtype, _) in types.items()}

    def run(feeds: Mapping[str, Any]) -> dict[str, Any]:
        with tensorflow.device("/cpu:0"):
            given = {keyword[name]: tensorflow.constant(feeds[name], dtypes[name]) for name in keyword}
            results = call(function, given)
        return {port.name: results[key].numpy() for port, key in zip(outputs, keys, strict=True)}

    return Loaded(FrozenGraph(graph_def, inputs, outputs, tables), types, run, owner=root)


def _beside(graph: Any, constants: Iterable[str], keys: Sequence[str]) -> list[str]:
    """Return the placeholders beside the signature that the user fixes."""
    found = []
    for given in constants:
        name, port = fixed_inputs.split(given)
        with contextlib.suppress(KeyError, ValueError):
            if given not in keys and name not in keys:
                found.append(graph.get_tensor_by_name(f"{name}:{port}").name)
    return found


def _load_graph(
    tensorflow: Any,
    folder: Path,
    tags: list[str],
    signature: Any,
    refusal: Exception | None,
    constants: Iterable[str] = (),
) -> Loaded:
    """Read through the graph loader of TensorFlow 1, which knows no objects, only variables by name."""
    from tf2onnx import tf_loader

    for key, info in [*signature.inputs.items(), *signature.outputs.items()]:
        if not info.name:
            raise UnsupportedError(
                f"The signature's tensor {key} is sparse or ragged, which ONNX can't say.",
                "Export a signature with the parts of it (values, indices or row splits) as plain tensors.",
            )
    try:
        with quiet(), tensorflow.device("/cpu:0"):
            graph = tensorflow.Graph()
            with graph.as_default():
                session = tensorflow.compat.v1.Session(graph=graph)
                tensorflow.compat.v1.saved_model.load(session, tags, str(folder))
                keys = sorted(signature.inputs), sorted(signature.outputs)
                fed = [signature.inputs[key].name for key in keys[0]]
                others = [tensor for tensor in _beside(graph, constants, keys[0]) if tensor not in fed]
                public = [*keys[0], *(tensor.removesuffix(":0") for tensor in others)]
                inputs = unique_names([*fed, *others], public)
                names = [port.name for port in inputs]
                outputs = unique_names([signature.outputs[key].name for key in keys[1]], keys[1], names)
                graph_def = tf_loader.freeze_session(
                    session, [port.tensor for port in inputs], [port.tensor for port in outputs]
                )
                tables = _tables(tensorflow, session, graph_def)
    except Exception as error:
        for each in (refusal, error):
            if each is not None:
                refuse_unknown_operator(each, str(folder))
        reason = first_line(refusal or error)
        raise SourceError(
            f"TensorFlow can't load {folder}: {reason}", "Is the folder complete, variables/ included?"
        ) from error
    return session_loaded(session, FrozenGraph(graph_def, inputs, outputs, tables))


def _tables(tensorflow: Any, session: Any, graph_def: Any) -> dict[Any, Any]:
    """Return (keys, values) of the graph's hash tables by shared name; the loader has filled them."""
    tables = {}
    for node in graph_def.node:
        if node.op not in ("HashTable", "HashTableV2"):
            continue
        keys, values = node.attr["key_dtype"].type, node.attr["value_dtype"].type
        shared_name = node.attr["shared_name"].s
        handle = tensorflow.raw_ops.HashTableV2(key_dtype=keys, value_dtype=values, shared_name=shared_name)
        tables[shared_name] = session.run(
            tuple(tensorflow.raw_ops.LookupTableExportV2(table_handle=handle, Tkeys=keys, Tvalues=values))
        )
    return tables


def session_loaded(session: Any, frozen: FrozenGraph) -> Loaded:
    """Pair a frozen graph with a runner that uses the session of the original graph."""
    inputs, outputs = list(frozen.inputs), list(frozen.outputs)  # the frozen graph's may lose what is fixed

    def tensor(port: Port) -> Any:
        return session.graph.get_tensor_by_name(port.tensor)

    types = {port.name: (tensor(port).dtype, lengths_of(tensor(port).shape)) for port in inputs}

    def run(feeds: Mapping[str, Any]) -> dict[str, Any]:
        given = {tensor(port): feeds[port.name] for port in inputs}
        results = run_session(session, [tensor(port) for port in outputs], given)
        return {port.name: result for port, result in zip(outputs, results, strict=True)}

    return Loaded(frozen, types, run)
