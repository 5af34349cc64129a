"""Where a frozen graph begins and ends: which tensors are fed, and which are results.

A graph that was trained has more of both than a user means: input pipelines in front of it, placeholders that the graph
itself fills, counters, summaries and savers behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from padfix.errors import UsageError
from padfix.sources.fixed_inputs import ancestors, split
from padfix.sources.tf_ops.batch_norm import NORMALISATIONS

_PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})
_DEFAULTED = "PlaceholderWithDefault"
_PIPELINES = frozenset(
    {"IteratorGetNext", "IteratorGetNextSync", "OptionalGetValue", "Unstage", "InfeedDequeue", "InfeedDequeueTuple"}
    | {"QueueDequeue", "QueueDequeueMany", "QueueDequeueUpTo"}
    | {"QueueDequeueV2", "QueueDequeueManyV2", "QueueDequeueUpToV2"}
    | {"ReaderRead", "ReaderReadUpTo", "ReaderReadV2", "ReaderReadUpToV2"}
    | {"DecodeAndCropJpeg", "DecodeBmp", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng", "DecodeWav"}
    | {"DecodeCSV", "DecodeRaw", "DecodePaddedRaw", "ParseTensor"}
    | {"ParseExample", "ParseExampleV2", "ParseSingleExample", "ParseSequenceExample", "ParseSequenceExampleV2"}
)
"""What hands a graph its data from outside: iterators over datasets, queues, readers and decoders of files."""

_MEASURES = frozenset({"Shape", "ShapeN", "Size", "Rank"})
"""What nothing reads any more once assertions are gone; a result only where there is no other."""

_NEVER_OUTPUTS = frozenset(
    {"NoOp", "Const", "HostConst", _DEFAULTED}
    | {"Assert", "Print", "PrintV2", "Abort", "ControlTrigger"}
    | {"Save", "SaveSlices", "SaveV2", "ShardedFilename", "MergeV2Checkpoints", "WriteFile", "WriteSummary"}
    | {"AudioSummary", "HistogramSummary", "ImageSummary", "MergeSummary", "ScalarSummary"}
    | {"TensorSummary", "TensorSummaryV2"}
    | {"HashTable", "HashTableV2", "InitializeTable", "InitializeTableV2", "LookupTableImport", "LookupTableImportV2"}
    | {"Assign", "AssignAdd", "AssignSub", "AssignVariableOp"}
    | _PLACEHOLDERS
    | _PIPELINES
)
"""Nodes that end a graph without being a result of it."""

_ABOUT_PIPELINES = re.compile(
    r".*Dataset(V\d)?|(OneShot|Anonymous)?Iterator(V\d)?|Iterator(To|From)StringHandle(V\d)?|QueueSize(V2)?"
)
"""What an input pipeline ends in besides the data."""

_HAND_ON = frozenset({"Identity", "CheckNumerics", "StopGradient", "PreventGradient", "Const", "Assert", "NoOp"})
_FIRST_OUTPUT_ONLY = NORMALISATIONS | {"_FusedBatchNormEx"}
"""Only their first output is a result; the others are statistics for training."""


class GraphEnds:
    """The inputs and outputs of a ``GraphDef``."""

    def __init__(self, graph_def: Any) -> None:
        self._graph_def = graph_def
        self._nodes = {node.name: node for node in graph_def.node}
        self._kinds: dict[str, str] = {}

    def outputs(self) -> list[str]:
        """Return the tensors that nothing consumes and that compute something of an input, in the graph's order.

        Left out are nodes that are no results: constants, assertions, summaries, savers, inputs handed on by a check. A
        node with several outputs gives all of them. Where nothing computes anything, the rest is returned; where there
        is no rest, the constants.
        """
        consumed = {split(read)[0] for node in self._graph_def.node if node.op != "NoOp" for read in node.input}
        tensors: list[str] = []
        for node in self._graph_def.node:
            is_none = node.op in _NEVER_OUTPUTS or _ABOUT_PIPELINES.fullmatch(node.op)
            if node.name in consumed or is_none or self._is_pivot(node):
                continue
            count = 1 if node.op in _FIRST_OUTPUT_ONLY else _output_count(self._graph_def, node)
            tensors.extend(f"{node.name}:{port}" for port in range(count))
        if not tensors:
            constants = [node.name for node in self._graph_def.node if node.op == "Const"]
            return [f"{name}:0" for name in constants if name not in consumed]
        computed = [tensor for tensor in tensors if self._computes(tensor)] or tensors
        return [tensor for tensor in computed if self._nodes[split(tensor)[0]].op not in _MEASURES] or computed

    def inputs(self, outputs: Sequence[str]) -> list[str]:
        """Return what has to be fed for ``outputs``, in the graph's order.

        That is each placeholder, and what an input pipeline hands over. A placeholder with a default is an input when
        it is a tensor whose default is constant or comes from a pipeline. It is none when the graph computes its
        default of another input: TensorFlow then hands that on. A scalar one with a constant default (a training flag,
        a keep probability) keeps it, unless there is no other input.
        """
        reached = self._reached(outputs)
        found: list[str] = []
        kept: list[str] = []
        for node in self._graph_def.node:
            if node.name not in reached:
                continue
            if self._is_input(node):
                ports = reached[node.name] if node.op in _PIPELINES else {0}
                found.extend(f"{node.name}:{port}" for port in sorted(ports))
            elif self._kind(node) == "kept":
                kept.append(f"{node.name}:0")
        return found or kept

    def notes(self, inputs: Sequence[str]) -> list[str]:
        """Return a sentence for each of ``inputs`` in whose place the graph has an input pipeline."""
        said: dict[str, list[str]] = {}
        for tensor in inputs:
            node = self._nodes[split(tensor)[0]]
            reads = [tensor] if node.op in _PIPELINES else node.input[:1] if node.op == _DEFAULTED else []
            for name in self._reached(reads):
                if self._nodes[name].op in _PIPELINES:
                    said.setdefault(name, []).append(tensor.removesuffix(":0"))
        return [
            f"The input pipeline that ends at {name} ({self._nodes[name].op}) was cut off; "
            f"{', '.join(tensors)} {'is an input' if len(tensors) == 1 else 'are inputs'} instead."
            for name, tensors in said.items()
        ]

    def require_known(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Refuse ``inputs`` that a user named when ``outputs`` need something else as well.

        Raises:
            UsageError: Naming what is missing.
        """
        above = ancestors(self._graph_def, outputs, inputs)
        cut = {split(tensor)[0] for tensor in inputs}
        missing = {node.name: node.op for node in self._graph_def.node if node.name in above and node.name not in cut}
        for what, operators in (("input pipeline", _PIPELINES), ("placeholder", _PLACEHOLDERS)):
            names = [name for name, operator in missing.items() if operator in operators]
            if names:
                raise UsageError(
                    f"The outputs also need the {what}{'s' if len(names) > 1 else ''} {', '.join(names)}.",
                    "Name them with --input as well.",
                )

    def _is_input(self, node: Any) -> bool:
        return node.op in _PLACEHOLDERS or node.op in _PIPELINES or self._kind(node) == "input"

    def _kind(self, node: Any) -> str:
        """Return whether a placeholder with a default is an "input", is "kept" or is "passed"; else nothing."""
        if node.op != _DEFAULTED:
            return ""
        if node.name not in self._kinds:
            self._kinds[node.name] = "passed"  # where it is, in a loop, its own source
            sources = [self._nodes[name] for name in self._reached(node.input[:1])]
            sources = [source for source in sources if self._is_input(source)]
            shape = node.attr["shape"].shape
            if any(source.op not in _PIPELINES for source in sources):
                self._kinds[node.name] = "passed"
            elif sources or shape.unknown_rank or shape.dim:
                self._kinds[node.name] = "input"
            else:
                self._kinds[node.name] = "kept"
        return self._kinds[node.name]

    def _reached(self, tensors: Sequence[str]) -> dict[str, set[int]]:
        """Return the outputs read by node above ``tensors``, inputs included and nothing above these."""
        found: dict[str, set[int]] = {}
        pending = list(tensors)
        while pending:
            reference = pending.pop()
            name, port = split(reference)
            if name not in self._nodes:
                continue
            is_new = name not in found
            ports = found.setdefault(name, set())
            if not reference.startswith("^"):
                ports.add(port)
            if is_new and not self._is_input(self._nodes[name]):
                pending.extend(self._nodes[name].input)
        return found

    def _computes(self, tensor: str) -> bool:
        nodes = [self._nodes[name] for name in self._reached([tensor])]
        sources = [node for node in nodes if node.op == _DEFAULTED or self._is_input(node)]
        return bool(sources) and any(node not in sources and node.op not in _HAND_ON for node in nodes)

    def _is_pivot(self, node: Any) -> bool:
        """Whether a node only marks a branch of a condition, as ``cond/switch_t`` does, or a turn of a loop.

        Half of the first are dead, and what is in a loop leaves it by an Exit.
        """
        if node.op == "Identity":
            source = self._nodes.get(split(node.input[0])[0])
            return source is not None and source.op == "Switch" and self._is_pivot(source)
        if node.op != "Switch":
            return False
        decides = self._nodes.get(split(node.input[1])[0])
        return (decides is not None and decides.op == "LoopCond") or split(node.input[0]) == split(node.input[1])


def queued_shape(graph_def: Any, tensor: str) -> list[int | None] | None:
    """Return the lengths, None for free ones, of what a queue hands over; None for other tensors and unknown shapes.

    TensorFlow's own inference forgets them: the queue is a resource.
    """
    nodes = {node.name: node for node in graph_def.node}
    name, port = split(tensor)
    node = nodes[name]
    queue = nodes.get(split(node.input[0])[0]) if node.op.startswith("QueueDequeue") else None
    shapes = queue.attr["shapes"].list.shape if queue is not None else ()
    if port >= len(shapes) or shapes[port].unknown_rank:
        return None
    lengths = [dimension.size if dimension.size >= 0 else None for dimension in shapes[port].dim]
    return [None, *lengths] if "Many" in node.op or "UpTo" in node.op else lengths


def output_types(node: Any) -> list[int] | None:
    """Return the ``DataType`` number of each output of a NodeDef; None where it is no operator of TensorFlow's."""
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(node.op)
    if definition is None:
        return None
    types: list[int] = []
    for output in definition.output_arg:
        if output.type_list_attr:
            types.extend(node.attr[output.type_list_attr].list.type)
        else:
            kind = output.type or node.attr[output.type_attr].type
            types.extend([kind] * (node.attr[output.number_attr].i if output.number_attr else 1))
    return types


def _output_count(graph_def: Any, node: Any) -> int:
    types = output_types(node)
    if types is not None:
        return len(types)
    signatures = (function.signature for function in graph_def.library.function)
    return next((len(signature.output_arg) for signature in signatures if signature.name == node.op), 1)
