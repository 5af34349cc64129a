"""What a TensorFlow Lite file says of its inputs and outputs, for people and programs: its "model metadata".

They lie in a buffer of the file in a format of their own (metadata_schema.fbs of MediaPipe and of TFLite Support), by
the positions of inputs and outputs in their subgraph. An ONNX file has a place for words beside each input and output,
and for entries by name beside the model; there they go: ``tflite.NAME`` for what is said of the model, and
``tflite.input.NAME`` and ``tflite.output.NAME``, in JSON, for what is said of a tensor.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from onnx import ModelProto

from padfix.sources.conversion import Port

_BUFFER = b"TFLITE_METADATA"
_CONTENTS = {1: "feature", 2: "image", 3: "bounding box", 4: "audio"}
_COLOURS = {1: "RGB", 2: "grayscale"}
_IMAGE = 2
_NORMALISATION = 1


def hand_on(proto: ModelProto, model: Any, index: int, ports: tuple[Sequence[Port], Sequence[Port]]) -> None:
    """Write what the file says into the converted model, in place; nothing where it says nothing that can be read.

    Args:
        proto: The converted model.
        model: TensorFlow's ``ModelT``.
        index: The subgraph that was converted.
        ports: Its inputs and outputs; a port's ``tensor`` is the position of its tensor.
    """
    content = next((model.buffers[entry.buffer].data for entry in model.metadata or () if entry.name == _BUFFER), None)
    try:
        said = _said(bytes(bytearray(content)), index) if content is not None else None
    except Exception:  # a damaged offset shows in many ways, and costs no conversion
        return
    if said is None:
        return
    about, *tensors = said
    entries = {f"tflite.{name}": text for name, text in about.items()}
    graph = model.subgraphs[index]
    sides = (("input", graph.inputs, proto.graph.input), ("output", graph.outputs, proto.graph.output))
    for (side, positions, values), words, named in zip(sides, tensors, ports, strict=True):
        by_position = dict(zip(map(int, positions), words, strict=False))
        by_name = {value.name: value for value in values}
        for port in named:
            told = by_position.get(int(port.tensor))
            if told and port.name in by_name:
                entries[f"tflite.{side}.{port.name}"] = json.dumps(told, ensure_ascii=False)
                by_name[port.name].doc_string = _sentence(told)
    for key, text in entries.items():
        proto.metadata_props.add(key=key, value=text)


def _said(content: bytes, index: int) -> tuple[dict[str, str], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what is said of the model, and of each input and output of a subgraph."""
    import flatbuffers

    root = flatbuffers.table.Table(content, flatbuffers.encode.Get(flatbuffers.packer.uoffset, content, 0))
    fields = {"name": 0, "description": 1, "version": 2, "author": 4, "license": 5}
    about = {name: text for name, number in fields.items() if (text := _text(root, number))}
    graphs = list(_tables(root, 3))
    if index >= len(graphs):
        return about, [], []
    inputs, outputs = ([_tensor(table) for table in _tables(graphs[index], number)] for number in (2, 3))
    return about, inputs, outputs


def _tensor(table: Any) -> dict[str, Any]:
    """Return what is said of a tensor, without what is not."""
    told: dict[str, Any] = {"name": _text(table, 0), "description": _text(table, 1)}
    for content in _tables(table, 3, single=True):
        kind = _number(content, 0)
        told["content"] = _CONTENTS.get(kind, "")
        if kind == _IMAGE:
            told["colours"] = _COLOURS.get(_number(_union(content, 1), 0), "")
    for unit in _tables(table, 4):
        if _number(unit, 0) == _NORMALISATION:
            options = _union(unit, 1)
            told |= {"mean": _floats(options, 0), "std": _floats(options, 1)}
    for stats in _tables(table, 5, single=True):
        told |= {"max": _floats(stats, 0), "min": _floats(stats, 1)}
    told["files"] = [name for file in _tables(table, 6) if (name := _text(file, 0))]
    return {name: value for name, value in told.items() if value}


def _sentence(told: dict[str, Any]) -> str:
    """Return what is said of a tensor in words."""
    described = ": ".join(told[name] for name in ("name", "description") if name in told)
    parts = [described.rstrip(".")] if described else []
    kind = " ".join(told[name] for name in ("colours", "content") if name in told and told[name] != "feature")
    parts += [kind] if kind else []
    if "mean" in told and "std" in told:
        parts.append(f"normalised as (x - {_shown(told['mean'])}) / {_shown(told['std'])}")
    if "min" in told and "max" in told:
        parts.append(f"from {_shown(told['min'])} to {_shown(told['max'])}")
    return "; ".join(parts) + "." if parts else ""


def _shown(numbers: Sequence[float]) -> str:
    return f"{numbers[0]:g}" if len(set(numbers)) == 1 else str([float(f"{each:g}") for each in numbers])


def _offset(table: Any, number: int) -> int:
    return int(table.Offset(4 + 2 * number))


def _text(table: Any, number: int) -> str:
    offset = _offset(table, number)
    return bytes(table.String(table.Pos + offset)).decode("utf-8", "replace") if offset else ""


def _number(table: Any, number: int) -> int:
    import flatbuffers

    offset = _offset(table, number)
    return int(table.Get(flatbuffers.number_types.Uint8Flags, table.Pos + offset)) if offset else 0


def _floats(table: Any, number: int) -> list[float]:
    import flatbuffers

    offset = _offset(table, number)
    if not offset:
        return []
    return [float(each) for each in table.GetVectorAsNumpy(flatbuffers.number_types.Float32Flags, offset)]


def _union(table: Any, number: int) -> Any:
    import flatbuffers

    found = flatbuffers.table.Table(bytearray(), 0)
    table.Union(found, _offset(table, number))
    return found


def _tables(table: Any, number: int, *, single: bool = False) -> Iterator[Any]:
    """Yield the tables of a vector, or the one that a field holds."""
    import flatbuffers

    offset = _offset(table, number)
    if not offset:
        return
    starts = [table.Pos + offset] if single else range(0)
    if not single:
        start = table.Vector(offset)
        starts = range(start, start + 4 * table.VectorLen(offset), 4)
    for start in starts:
        yield flatbuffers.table.Table(table.Bytes, table.Indirect(start))
