"""Frozen GraphDefs, binary or text, with inputs and outputs found by themselves."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from padfix.errors import SourceError, UnsupportedError, UsageError
from padfix.sources import conversion, side_effects
from padfix.sources.conversion import FrozenGraph, Port
from padfix.sources.fixed_inputs import ancestors, flags_against_chance, split
from padfix.sources.graph_ends import GraphEnds, queued_shape
from padfix.sources.saved_model import Loaded, session_loaded
from padfix.sources.source import SourceOptions
from padfix.sources.tensorflow_runtime import first_line, quiet, read_message, refuse_unknown_operator

_VARIABLES = frozenset(["Variable", "VariableV2", "VarHandleOp", "TemporaryVariable", "AutoReloadVariable"])
_TABLES = frozenset(["HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2"])
_FILLS = ("InitializeTable", "LookupTableImport", "LookupTableInsert")

_CHANCE = "With its default, {name} lets the graph draw random numbers, as in training; so it is {value} here."


def load_frozen_graph(tensorflow: Any, path: Path, options: SourceOptions) -> tuple[Loaded, list[str]]:
    """Read a GraphDef; inputs and outputs are what :class:`GraphEnds` finds, unless named. Return it with notes.

    Raises:
        SourceError: Damaged, or without inputs or outputs.
        UsageError: A named tensor is not in the graph.
        UnsupportedError: The graph holds variables or operators that can't be converted.
    """
    graph_def = read_message(path, tensorflow.compat.v1.GraphDef())
    session = _session(tensorflow, graph_def, path)
    ends = GraphEnds(graph_def)
    outputs = _named(session.graph, options.outputs) if options.outputs else ends.outputs()
    flags = flags_against_chance(
        tensorflow, graph_def, _named(session.graph, [*(options.inputs or ()), *options.constants]), outputs
    )
    constants = _named(session.graph, {**flags, **options.constants})
    if options.inputs:
        inputs = _named(session.graph, options.inputs)
        ends.require_known([*inputs, *constants], outputs)
    else:
        inputs = ends.inputs(outputs)
    inputs += [tensor for tensor in constants if tensor not in inputs]
    if not outputs:
        raise SourceError(f"{path} has no output: no node computes a result.", "Name it with --output.")
    names = [_public(tensor) for tensor in inputs]
    input_ports = conversion.unique_names(inputs, names)
    names = [port.name for port in input_ports]
    output_ports = conversion.unique_names(outputs, [_public(tensor) for tensor in outputs], names)
    original = FrozenGraph(graph_def, input_ports, output_ports)
    cut = _cut(session.graph, original)
    variables = sorted(node.name for node in cut.graph_def.node if node.op in _VARIABLES)
    if variables:
        raise UnsupportedError(
            f"{path} is not frozen: it holds the variables {', '.join(variables[:3])}"
            f"{' and more' if len(variables) > 3 else ''}, whose values are in other files.",
            "Freeze the graph, or export a SavedModel and give padfix that folder.",
        )
    _require_tables(graph_def, cut.graph_def, path)
    if not options.trust:
        side_effects.refuse_in_graph(cut.graph_def, [port.tensor for port in cut.outputs], str(path))
    loaded = session_loaded(session, original)
    loaded.frozen, loaded.flags = cut, flags
    return loaded, [*ends.notes(inputs), *(_CHANCE.format(name=name, value=value) for name, value in flags.items())]


def _require_tables(whole: Any, cut: Any, path: Path) -> None:
    """Refuse a graph that looks up in a table which nothing in it fills.

    Raises:
        UnsupportedError: Naming the table.
    """
    tables = [node.name for node in cut.node if node.op in _TABLES]
    if tables and not any(node.op.startswith(_FILLS) for node in whole.node):
        raise UnsupportedError(
            f"{path} does not hold the contents of the table {tables[0]}.", "Convert the SavedModel, which does."
        )


def _session(tensorflow: Any, graph_def: Any, path: Path) -> Any:
    graph = tensorflow.Graph()
    try:
        with quiet(), graph.as_default(), tensorflow.device("/cpu:0"):
            for node in graph_def.node:
                node.device = ""  # the training machine's devices are not here
            tensorflow.import_graph_def(graph_def, name="")
    except Exception as error:
        refuse_unknown_operator(error, str(path))
        raise SourceError(f"TensorFlow can't read {path}: {first_line(error)}", "Fetch or export it again.") from error
    return tensorflow.compat.v1.Session(graph=graph)


def _public(tensor: str) -> str:
    name, port = split(tensor)
    return name if port == 0 else tensor


def _named(graph: Any, names: Iterable[str]) -> list[str]:
    tensors = []
    for given in names:
        name, port = split(given)
        try:
            tensors.append(graph.get_tensor_by_name(f"{name}:{port}").name)
        except (KeyError, ValueError) as error:
            operations = [operation.name for operation in graph.get_operations()]
            near = [known for known in operations if name.lower() in known.lower()][:5]
            near = near or difflib.get_close_matches(name, operations, n=3)
            hint = f"Close: {', '.join(near)}." if near else _ends_words(graph)
            raise UsageError(f"The graph has no tensor {given}.", hint) from error
    return tensors


def _ends_words(graph: Any) -> str:
    fed = [operation.name for operation in graph.get_operations() if operation.type.startswith("Placeholder")]
    ends = [each.name for each in graph.get_operations() if not any(tensor.consumers() for tensor in each.outputs)]
    return f"Its placeholders are: {', '.join(fed[:5]) or 'none'}; its last nodes: {', '.join(ends[-5:])}."


def _cut(graph: Any, original: FrozenGraph) -> FrozenGraph:
    """Return the part of the graph between inputs and outputs, every input a plain placeholder."""
    graph_def = type(original.graph_def)()
    tensors = [port.tensor for port in original.inputs]
    needed = ancestors(original.graph_def, [port.tensor for port in original.outputs], tensors)
    existing = {node.name for node in original.graph_def.node}
    inputs = []
    replacement: dict[tuple[str, int], str] = {}
    for port in original.inputs:
        name, index = split(port.tensor)
        # The node itself goes when nothing else needs it; then its placeholder takes over the name.
        stand_in = name if index == 0 and name not in needed else f"{name}/padfix_input_{index}"
        while stand_in != name and stand_in in existing:
            stand_in += "_"
        tensor = graph.get_tensor_by_name(port.tensor)
        node = graph_def.node.add(name=stand_in, op="Placeholder")
        node.attr["dtype"].type = tensor.dtype.as_datatype_enum
        shape = queued_shape(original.graph_def, port.tensor) if tensor.shape.rank is None else tensor.shape
        node.attr["shape"].shape.CopyFrom(type(tensor.shape)(shape).as_proto())
        replacement[name, index] = stand_in
        inputs.append(Port(f"{stand_in}:0", port.name))
    for node in original.graph_def.node:
        if node.name not in needed:
            continue
        copy = graph_def.node.add()
        copy.CopyFrom(node)
        for position, reference in enumerate(node.input):
            if not reference.startswith("^"):
                copy.input[position] = replacement.get(split(reference), reference)
        kept = [item for item in copy.input if not item.startswith("^") or item[1:] in needed]
        del copy.input[:]
        copy.input.extend(kept)
    graph_def.versions.CopyFrom(original.graph_def.versions)
    graph_def.library.CopyFrom(original.graph_def.library)
    outputs = [
        Port(f"{replacement[split(port.tensor)]}:0", port.name) if split(port.tensor) in replacement else port
        for port in original.outputs
    ]
    return FrozenGraph(graph_def, inputs, outputs)
