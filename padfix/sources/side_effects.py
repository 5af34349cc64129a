"""Operators of TensorFlow that do more than compute: read or write files, run Python, or talk to a network.

A SavedModel is a program. Loading one runs its initialisers, and the proof runs its signature; so a model with such an
operator where it would run is refused unless the user trusts it. The operators that save and restore variables stand in
every SavedModel, beside what is run, and only count where they would run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from padfix.errors import UnsupportedError
from padfix.graph.dependence import reached

HINT = "Export the model without it; or, if you would run a program of its author, allow it with --trust."

_PYTHON = re.compile(r"(Eager)?PyFunc(Stateless)?")
_NETWORK = re.compile(r"(Experimental)?(DataService|RegisterDataset|Rpc).*|FileSystemSetConfiguration")
_FILES = re.compile(
    r"ReadFile|WriteFile|(Experimental)?MatchingFiles(Dataset)?|"
    r"(WholeFile|TextLine|TFRecord|FixedLengthRecord|LMDB)Reader(V2)?|LMDBReader|"
    r"(Experimental)?(TextLine|TFRecord|FixedLengthRecord|LMDB|Sql|CSV|Cache)Dataset(V\d)?|"
    r"(Experimental)?(Save|Load|Snapshot|SnapshotChunk)Dataset(Reader|V\d)?|SnapshotNestedDatasetReader|Snapshot|"
    r"ListSnapshotChunksDataset|DistributedSave|ListDataset.*Files|"
    r"CreateSummary(Db|File)Writer|ImportEvent|Debug(Identity|NanCount|NumericSummary)(V\d)?|"
    r"GenerateVocabRemapping|LoadAndRemapMatrix"
)
_USES_FILES = "reads or writes files"
_CHECKPOINTS = re.compile(r"(Save|Restore)(V2|Slices?)?|MergeV2Checkpoints|LoadTPUEmbedding.*")
_TEXT_TABLES = re.compile(r"InitializeTableFromTextFile(V2)?")
_STATE = re.compile(
    r"(Assign|ResourceApply|ResourceScatter|ScatterNd(Add|Sub|Update)|Rng.*Skip|Stateful(Random|Standard|Uniform|Trunc)).*|"
    r"ResourceStridedSliceAssign"
)
"""What writes to a variable; generators of random numbers keep theirs in one."""
_BY_SEED = re.compile("Stateless(Random|Truncated|Multinomial|Parameterized|Sample|Shuffle)")
_RESOURCE_FUNCTIONS = ("_create_resource", "_initialize", "_destroy_resource")
_INITIALISERS = ("saved_model_main_op", "legacy_init_op")


def refuse_in_graph(graph_def: Any, tensors: Sequence[str], what: str) -> None:
    """Refuse a frozen graph that does more than compute on its way to ``tensors``.

    Raises:
        UnsupportedError: Naming the operator and its node.
    """
    for node in _needed(graph_def, tensors, ()):
        _refuse(node, what, checkpoints=True)


def refuse_operators(names: Iterable[str], what: str) -> None:
    """Refuse a model that calls operators of TensorFlow by name, if one does more than compute.

    Raises:
        UnsupportedError: Naming the operator.
    """
    for name in names:
        does = _beyond_computing(name, checkpoints=True)
        if does:
            raise UnsupportedError(f"{what} {does}: it holds a {name}.", HINT)


@lru_cache(maxsize=4096)
def draws(operator: str) -> bool:
    """Whether an operator draws other random numbers in every run: it takes a seed, and TensorFlow calls it stateful.

    Recurrent layers that take one only draw in training, for their dropout.
    """
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(operator)
    attributes = {each.name for each in definition.attr} if definition is not None and definition.is_stateful else ()
    return "seed" in attributes and "dropout" not in attributes


def draws_at_all(operator: str) -> bool:
    """Whether an operator draws random numbers, also by a seed that is an input: ONNX has none that draws the same."""
    return draws(operator) or _BY_SEED.match(operator) is not None


def drawn_in(graph_def: Any) -> list[str]:
    """Return the operators of a graph and of its functions that draw random numbers."""
    return sorted(set(filter(draws, (node.op for node in every_node(graph_def)))))


def refuse_what_varies(graph_def: Any, tensors: Sequence[str]) -> None:
    """Refuse a graph that writes to a variable or draws random numbers on its way to ``tensors``.

    Raises:
        UnsupportedError: Naming the operators.
    """
    operators = {node.op for node in _needed(graph_def, tensors, ())}
    refuse_kept_state(set(filter(_STATE.fullmatch, operators)))
    refuse_chance(set(filter(draws, operators)))


def refuse_kept_state(operators: Collection[str]) -> None:
    """Refuse a model that keeps state with ``operators``, if these are any.

    Raises:
        UnsupportedError: Naming them.
    """
    if operators:
        named = ", ".join(sorted(operators))
        raise UnsupportedError(
            f"The model keeps state from one run to the next ({named}), which an ONNX model can't.",
            "Export it with its state as inputs and outputs.",
        )


def refuse_chance(operators: Collection[str]) -> None:
    """Refuse a model that draws random numbers with ``operators``, if these are any.

    Raises:
        UnsupportedError: Naming them.
    """
    if operators:
        raise UnsupportedError(
            f"The model draws random numbers ({', '.join(sorted(operators))}), which no ONNX operator draws alike.",
            "Export it for inference (training=False), or give it its random numbers as an input.",
        )


def refuse_in_saved_model(meta_graph: Any, signature: str, folder: Path) -> None:
    """Refuse a SavedModel that does more than compute when it is loaded or when ``signature`` is run.

    Raises:
        UnsupportedError: Naming the operator and its node.
    """
    what = str(folder)
    for node in every_node(meta_graph.graph_def):
        _refuse(node, what, checkpoints=False)
    outputs = [info.name for info in meta_graph.signature_def[signature].outputs.values()]
    for key in _INITIALISERS:
        outputs.extend(meta_graph.collection_def[key].node_list.value if key in meta_graph.collection_def else ())
    if "__saved_model_init_op" in meta_graph.signature_def:
        outputs.extend(info.name for info in meta_graph.signature_def["__saved_model_init_op"].outputs.values())
    for node in _needed(meta_graph.graph_def, outputs, _resource_functions(meta_graph.object_graph_def)):
        _refuse(node, what, checkpoints=True)
    _refuse_tables_outside(meta_graph, folder)


def _refuse(node: Any, what: str, *, checkpoints: bool) -> None:
    """Refuse one node; ``checkpoints``: those that save and restore variables as well."""
    does = _beyond_computing(node.op, checkpoints=checkpoints)
    if not does and _writes_to_a_file(node):
        does = _USES_FILES
    if does:
        raise UnsupportedError(f"{what} {does}: its node {node.name!r} is a {node.op}.", HINT)


def _beyond_computing(operator: str, *, checkpoints: bool) -> str:
    """Return what an operator does beyond computing, or nothing."""
    if _PYTHON.fullmatch(operator):
        return "runs Python"
    if _FILES.fullmatch(operator) or (checkpoints and _CHECKPOINTS.fullmatch(operator)):
        return _USES_FILES
    return "reaches other machines" if _NETWORK.fullmatch(operator) else ""


def _writes_to_a_file(node: Any) -> bool:
    if node.op == "PrintV2":
        return bool(node.attr["output_stream"].s.startswith(b"file:"))
    if node.op in ("DecodeProtoV2", "EncodeProto"):
        return not node.attr["descriptor_source"].s.startswith((b"local:", b"bytes:")) and bool(
            node.attr["descriptor_source"].s
        )
    return False


def every_node(graph_def: Any) -> Iterator[Any]:
    """Yield the nodes of a graph and of its functions."""
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def _needed(graph_def: Any, tensors: Iterable[str], functions: Iterable[str]) -> Iterator[Any]:
    """Yield every node that runs when ``tensors`` are computed or ``functions`` called, those in calls included."""
    nodes = {node.name: node for node in graph_def.node}
    library = {function.signature.name: function for function in graph_def.library.function}

    def run_by(item: tuple[str, bool]) -> list[Any]:
        name, is_function = item
        return list(library[name].node_def) if is_function else [nodes[name]]

    def needed_by(item: tuple[str, bool]) -> Iterator[tuple[str, bool]]:
        for node in run_by(item):
            yield from ((called, True) for called in called_by(node) if called in library)
            if not item[1]:
                yield from ((name, False) for name in map(_node_name, node.input) if name in nodes)

    start = [(name, False) for name in map(_node_name, tensors) if name in nodes]
    for item in reached([*start, *((name, True) for name in functions if name in library)], needed_by):
        yield from run_by(item)


def _node_name(reference: str) -> str:
    return reference.removeprefix("^").partition(":")[0]


def called_by(node: Any) -> Iterator[str]:
    """Yield the names of functions that a node calls, and others."""
    yield node.op  # a function may be called by its own name
    for value in node.attr.values():
        if value.func.name:
            yield value.func.name
        for function in value.list.func:
            yield function.name


def _resource_functions(object_graph: Any) -> Iterator[str]:
    """Yield the functions that the object loader runs by itself: those that make and fill tables and the like."""
    for node in object_graph.nodes:
        for child in node.children:
            if child.local_name not in _RESOURCE_FUNCTIONS or child.node_id >= len(object_graph.nodes):
                continue
            target = object_graph.nodes[child.node_id]
            yield from target.function.concrete_functions
            if target.bare_concrete_function.concrete_function_name:
                yield target.bare_concrete_function.concrete_function_name


def _refuse_tables_outside(meta_graph: Any, folder: Path) -> None:
    """Refuse tables that are filled from a file that is none of the SavedModel's assets."""
    graph_def = meta_graph.graph_def
    if not any(_TEXT_TABLES.fullmatch(node.op) for node in every_node(graph_def)):
        return
    assets = {_node_name(asset.tensor_info.name) for asset in meta_graph.asset_file_def}
    inside = folder.resolve()
    for node in every_node(graph_def):
        if node.op != "Const" or node.name in assets:
            continue
        for value in node.attr["value"].tensor.string_val:
            if _is_file_outside(value, inside):
                raise UnsupportedError(
                    f"{folder} fills tables from files, and its node {node.name!r} names one that is none of its "
                    f"assets: {os.fsdecode(value)!r}.",
                    HINT,
                )
    containers = [graph_def.node, *(function.node_def for function in graph_def.library.function)]
    for nodes in containers:
        producers = {node.name: node for node in nodes}
        for node in nodes:
            source = producers.get(_node_name(node.input[1])) if len(node.input) > 1 else None
            if _TEXT_TABLES.fullmatch(node.op) and source is not None and source.op not in ("Const", "Identity"):
                raise UnsupportedError(
                    f"{folder} fills the table {node.name!r} from a file whose name it computes ({source.op}).", HINT
                )


def _is_file_outside(value: bytes, inside: Path) -> bool:
    if not value or len(value) > 4096 or b"\0" in value:
        return False
    try:
        path = Path(os.fsdecode(value))
        return path.is_file() and not path.resolve().is_relative_to(inside)
    except (OSError, ValueError, RuntimeError):
        return False
