"""Inputs that become constants: what the user fixes, and placeholders that keep their default.

A switch that is a constant then decides which of its branches is there at all (:func:`prune`), because tf2onnx leaves
the Switch and Merge of TensorFlow 1 in the graph, or takes the wrong branch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from padfix.errors import UnsupportedError, UsageError
from padfix.graph.dependence import reached
from padfix.sources.side_effects import draws

_TRUE, _FALSE = frozenset({"true", "1", "yes"}), frozenset({"false", "0", "no"})
_BOOL = 10  # TensorFlow's DataType number (types.proto)
_HAND_ON = frozenset({"Identity", "StopGradient", "PlaceholderWithDefault", "Snapshot"})


def split(reference: str) -> tuple[str, int]:
    """Return (node, output) of an input of a NodeDef or a user's spelling: ``name``, ``name:1``, ``^name``."""
    name, colon, port = reference.removeprefix("^").rpartition(":")
    return (name, int(port)) if colon and port.isdigit() else (reference.removeprefix("^"), 0)


def ancestors(graph_def: Any, tensors: Sequence[str], stop: Collection[str] = ()) -> set[str]:
    """Return the names of the nodes that ``tensors`` need when the tensors in ``stop`` are fed."""
    nodes = {node.name: node for node in graph_def.node}
    fed = {split(tensor)[0] for tensor in stop}

    def read_by(name: str) -> Iterator[str]:
        for reference in nodes[name].input if name in nodes else ():
            source, port = split(reference)
            if not (source in fed if reference.startswith("^") else f"{source}:{port}" in stop):
                yield source

    return reached((split(tensor)[0] for tensor in tensors if tensor not in stop), read_by).keys() & nodes.keys()


def value_of(name: str, given: object, dtype: Any, shape: Sequence[int | None] | None) -> np.ndarray[Any, Any]:
    """Return what the user gave for an input as an array of its type.

    Args:
        name: The input, for the error.
        given: A number, a truth value, text as on the command line (``False``, ``0.5``, ``1,2,3``), or an array.
        dtype: The input's TensorFlow dtype.
        shape: Its shape, None for a free length; None for an unknown rank.

    Raises:
        UsageError: The value is not of this type or shape.
    """
    wanted = np.dtype(dtype.as_numpy_dtype)
    try:
        if isinstance(given, str) and wanted.kind not in "OSU":
            items: list[Any] = [_parsed(text.strip(), wanted) for text in given.split(",")]
            array = np.array(items[0] if len(items) == 1 and not shape else items)
        else:
            array = np.asarray(given, object) if wanted.kind in "OSU" else np.asarray(given)
        if wanted.kind == "b" and array.dtype.kind != "b":
            raise ValueError("it is not True or False")
        converted = array.astype(wanted)
        if wanted.kind in "iu" and np.any(converted != array):
            raise ValueError("it is not a whole number in range")
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{given!r} is no value for the input {name} of type {dtype.name}: {error}.") from error
    if shape is not None:
        if converted.ndim == 0 and len(shape) and all(length is not None for length in shape):
            converted = np.full([length or 0 for length in shape], converted)
        fits = converted.ndim == len(shape) and all(
            length is None or length == there for length, there in zip(shape, converted.shape, strict=True)
        )
        if not fits:
            shown = ",".join("?" if length is None else str(length) for length in shape)
            raise UsageError(f"The input {name} has the shape ({shown}); the value's is {converted.shape}.")
    return converted


def _parsed(text: str, wanted: np.dtype[Any]) -> object:
    if wanted.kind == "b":
        if text.lower() not in _TRUE | _FALSE:
            raise ValueError("it is not True or False")
        return text.lower() in _TRUE
    return int(text, 0) if wanted.kind in "iu" else float(text)


def shown(value: np.ndarray[Any, Any]) -> str:
    """Return a value for a sentence."""
    if value.size > 8:
        return f"values of shape {list(value.shape)}"
    return str(value.tolist())


def make_constant(tensorflow: Any, node: Any, value: np.ndarray[Any, Any]) -> None:
    """Turn a placeholder's NodeDef into a Const."""
    data_type = node.attr["dtype"].type
    node.op = "Const"
    node.attr.clear()
    del node.input[:]
    node.attr["dtype"].type = data_type
    node.attr["value"].tensor.CopyFrom(
        tensorflow.make_tensor_proto(value, dtype=tensorflow.dtypes.as_dtype(data_type), shape=value.shape)
    )


def settle_defaults(graph_def: Any, inputs: Sequence[str]) -> list[str]:
    """Let every PlaceholderWithDefault that is none of ``inputs`` hand on its default, in place; return notes."""
    nodes = {node.name: node for node in graph_def.node}
    fed = {split(tensor)[0] for tensor in inputs}
    notes = []
    for node in graph_def.node:
        if node.op != "PlaceholderWithDefault" or node.name in fed:
            continue
        value = constant_of(nodes, node.input[0])
        if value is None:
            notes.append(f"{node.name} is no input: it hands on its default, which the graph computes.")
        else:
            default = f"its default, {shown(value)}"
            notes.append(f"{node.name} keeps {default}; --constant {node.name}=VALUE fixes it to another value.")
        _become_identity(node, node.input[0], "dtype")
    return notes


def flags_against_chance(
    tensorflow: Any, graph_def: Any, inputs: Sequence[str], outputs: Sequence[str]
) -> dict[str, bool]:
    """Return the values of truth values kept by default without which the graph would draw random numbers.

    A graph that was frozen as it was trained has its training flag on, and what it computes then can't be compared.
    Nothing is returned where the default draws none, or the other values as well.
    """
    if not any(draws(node.op) for node in graph_def.node):
        return {}
    fed = {split(tensor)[0] for tensor in inputs}
    nodes = {node.name: node for node in graph_def.node}
    flags = {}
    for node in graph_def.node:
        is_flag = node.op == "PlaceholderWithDefault" and node.attr["dtype"].type == _BOOL and node.name not in fed
        value = constant_of(nodes, node.input[0]) if is_flag else None
        if value is not None and value.size == 1:
            flags[node.name] = bool(value.reshape(-1)[0])
    flipped: dict[str, bool] = {}
    drawn = _draws(tensorflow, graph_def, flags, outputs)
    for name, default in flags.items():
        fewer = _draws(tensorflow, graph_def, {**flags, **flipped, name: not default}, outputs)
        if fewer < drawn:
            drawn = fewer
            flipped[name] = not default
    return {} if drawn else flipped


def _draws(tensorflow: Any, graph_def: Any, flags: Mapping[str, bool], outputs: Sequence[str]) -> int:
    """Return how many nodes draw random numbers for ``outputs`` when the flags have these values."""
    sketch = type(graph_def)()
    for node in graph_def.node:
        if node.op != "Const" or node.attr["dtype"].type == _BOOL:
            sketch.node.add().CopyFrom(node)  # without the weights
        if node.name in flags:
            make_constant(tensorflow, sketch.node[-1], np.array(flags[node.name]))
    wanted = prune(tensorflow, sketch, outputs)
    above = ancestors(sketch, wanted)
    return sum(draws(node.op) for node in sketch.node if node.name in above)


def constant_of(nodes: Mapping[str, Any], reference: str) -> np.ndarray[Any, Any] | None:
    """Return the value of a tensor that is a constant handed on, or a truth value made of such."""
    for _ in range(len(nodes)):
        node = nodes.get(split(reference)[0])
        if node is None:
            return None
        if node.op == "Const":
            from tensorflow import make_ndarray

            return np.asarray(make_ndarray(node.attr["value"].tensor))
        if node.op == "LogicalNot":
            inner = constant_of(nodes, node.input[0])
            return None if inner is None else np.logical_not(inner)
        if node.op in ("LogicalAnd", "LogicalOr"):
            sides = [constant_of(nodes, item) for item in node.input[:2]]
            known = [side for side in sides if side is not None]
            deciding = [side for side in known if bool(np.all(side)) == (node.op == "LogicalOr")]
            if deciding:
                return deciding[0]
            return known[0] if len(known) == 2 else None
        if node.op not in _HAND_ON:
            return None
        reference = node.input[0]
    return None


def prune(tensorflow: Any, graph_def: Any, outputs: Sequence[str]) -> list[str]:
    """Remove the branches that a constant switch never takes, in place; return ``outputs`` as they are called then.

    Raises:
        UnsupportedError: An output is in such a branch.
    """
    nodes = {node.name: node for node in graph_def.node}
    taken: dict[str, int] = {}
    for node in graph_def.node:
        if node.op == "Switch":
            value = constant_of(nodes, node.input[1])
            if value is not None and value.size == 1:
                taken[node.name] = int(bool(value.reshape(-1)[0]))
    if not taken:
        return list(outputs)
    dead: set[str] = set()

    def is_dead(reference: str) -> bool:
        name, port = split(reference)
        return name in dead or (not reference.startswith("^") and name in taken and port != taken[name])

    before = -1
    while before != len(dead):
        before = len(dead)
        for node in graph_def.node:
            gone = [is_dead(reference) for reference in node.input]
            if gone and (all(gone) if node.op == "Merge" else any(gone)):
                dead.add(node.name)
    for tensor in outputs:
        if is_dead(tensor):
            raise UnsupportedError(f"The output {tensor} is not computed with the switches as they are fixed.")
    indices: dict[str, str] = {}
    for node in [node for node in graph_def.node if node.name not in dead]:
        if node.name in taken:
            _become_identity(node, node.input[0])
        elif node.op == "Merge":
            live = [position for position, item in enumerate(node.input) if not is_dead(item)]
            if len(live) == 1 and not node.input[live[0]].startswith("^"):
                indices[node.name] = f"{node.name}/padfix_index"
                index = graph_def.node.add(name=indices[node.name], op="Const")
                index.attr["dtype"].type = tensorflow.int32.as_datatype_enum
                index.attr["value"].tensor.CopyFrom(tensorflow.make_tensor_proto(live[0], tensorflow.int32))
                _become_identity(node, node.input[live[0]])

    def renamed(reference: str) -> str:
        name, port = split(reference)
        if reference.startswith("^"):
            return reference
        return name if name in taken else indices[name] if name in indices and port == 1 else reference

    for index in reversed(range(len(graph_def.node))):
        node = graph_def.node[index]
        if node.name in dead:
            del graph_def.node[index]
        else:
            node.input[:] = [renamed(item) for item in node.input if not is_dead(item)]
    return [f"{split(tensor)[0]}:0" if split(tensor)[0] in taken else tensor for tensor in outputs]


def _become_identity(node: Any, source: str, of_type: str = "T") -> None:
    data_type = node.attr[of_type].type
    controls = [item for item in node.input if item.startswith("^")]
    node.op = "Identity"
    node.attr.clear()
    node.attr["T"].type = data_type
    node.input[:] = [source, *controls]
