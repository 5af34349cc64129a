"""What a path holds, told from its content and not from its name; needs neither TensorFlow nor the whole file.

Protobuf files carry no signature, so the top-level fields are walked: each field's number and wire type is read and its
payload skipped. That is a handful of small reads whatever the size of the weights.
"""

from __future__ import annotations

import mmap
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from padfix.errors import SourceError, UnsupportedError

Kind = Literal["onnx", "saved_model", "frozen_graph", "keras", "keras_h5", "tflite"]

ACCEPTED = "padfix reads ONNX, a SavedModel folder, a frozen GraphDef (.pb, .pbtxt), .keras, .h5 and .tflite files."

_HDF5 = b"\x89HDF\r\n\x1a\n"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# Field numbers of each message at its top level, from onnx.proto, graph.proto, saved_model.proto and meta_graph.proto.
_ONNX_FIELDS = {1: _VARINT, 2: _BYTES, 3: _BYTES, 4: _BYTES, 5: _VARINT, 6: _BYTES, 7: _BYTES, 8: _BYTES}
_ONNX_FIELDS |= {14: _BYTES, 20: _BYTES, 25: _BYTES, 26: _BYTES}
_GRAPH_DEF_FIELDS = {1: _BYTES, 2: _BYTES, 3: _VARINT, 4: _BYTES, 5: _BYTES}
_SAVED_MODEL_FIELDS = {1: _VARINT, 2: _BYTES}

# (offset, bytes, what it is, hint)
_FOREIGN: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"\x1f\x8b", "a gzip archive", "Unpack it first."),
    (0, b"BZh", "a bzip2 archive", "Unpack it first."),
    (0, b"7z\xbc\xaf", "a 7-Zip archive", "Unpack it first."),
    (257, b"ustar", "a tar archive", "Unpack it first."),
    (4, b"ORTM", "an ONNX Runtime .ort file", "Give padfix the .onnx file that it was made from."),
    (0, b"GGUF", "a GGUF file", ACCEPTED),
    (0, b"ftrt", "a TensorRT engine", "Give padfix the model that it was built from."),
    (0, b"\x93NUMPY", "a NumPy array", ACCEPTED),
    (0, b"%PDF", "a PDF document", ACCEPTED),
    (0, b"\x89PNG", "an image", ACCEPTED),
    (0, b"\xff\xd8\xff", "an image", ACCEPTED),
    (0, b"\x7fELF", "a program", ACCEPTED),
)
_PYTORCH_HINT = "Export it with torch.onnx.export and give padfix the .onnx file."
_CORE_ML_HINT = "Give padfix the model that it was made from."


def detect(path: Path) -> Kind:
    """Return the kind of the model at ``path``.

    Raises:
        SourceError: Missing, empty, truncated, or not a model.
        UnsupportedError: A model of a kind that padfix does not read.
    """
    path = Path(path)
    try:
        if path.is_dir():
            return _detect_folder(path)
        if not path.exists():
            raise SourceError(f"{path} does not exist.", "Check the path.")
        if not path.is_file():
            raise SourceError(f"{path} is neither a file nor a folder.", "Save the model to a file first.")
        size = path.stat().st_size
        if size == 0:
            raise SourceError(f"{path} is empty.", "Was the download or the export interrupted?")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _detect_file(path, data, size)
    except OSError as error:
        raise SourceError(f"{path} can't be read: {error.strerror or error}.") from error


def _detect_folder(path: Path) -> Kind:
    if any((path / name).is_file() for name in ("saved_model.pb", "saved_model.pbtxt")):
        return "saved_model"
    entries = sorted(entry.name for entry in path.iterdir())
    if not entries:
        raise SourceError(f"{path} is an empty folder.", ACCEPTED)
    if "Manifest.json" in entries and "Data" in entries:
        raise UnsupportedError(f"{path} is a Core ML package.", _CORE_ML_HINT)
    if "checkpoint" in entries or any(name.endswith(".index") for name in entries):
        raise UnsupportedError(
            f"{path} is a TensorFlow checkpoint: weights without a graph that serves.",
            "Export the model as a SavedModel and give padfix that folder.",
        )
    inner = sorted(folder.parent.name for folder in path.glob("*/saved_model.pb"))
    if inner:
        raise SourceError(f"{path} holds no saved_model.pb.", f"Its folders do: {', '.join(inner)}. Name one of them.")
    raise SourceError(f"{path} is a folder without a saved_model.pb.", ACCEPTED)


def _detect_file(path: Path, data: mmap.mmap, size: int) -> Kind:
    head = bytes(data[:512])
    if head.startswith(_HDF5):
        return "keras_h5"
    if head[4:8] == b"TFL3":
        return "tflite"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _detect_zip(path)
    for offset, signature, what, hint in _FOREIGN:
        if head[offset : offset + len(signature)] == signature:
            raise SourceError(f"{path} is {what}, not a model that padfix reads.", hint)
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05" and data[size - 1 : size] == b".":
        raise UnsupportedError(f"{path} is a Python pickle, as old PyTorch files are.", _PYTORCH_HINT)
    if head[8:9] == b"{" and 0 < int.from_bytes(head[:8], "little") <= size - 8:
        raise UnsupportedError(f"{path} is a safetensors file: weights without a graph.", ACCEPTED)
    if _is_text(head):
        return _detect_text(path, bytes(data[: 64 * 1024]).decode("utf-8", "replace"))
    return _detect_protobuf(path, data, size)


def _detect_zip(path: Path) -> Kind:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except zipfile.BadZipFile as error:
        raise SourceError(f"{path} is a truncated or damaged zip archive.", "Fetch or export it again.") from error
    if {"config.json", "metadata.json"} <= names:
        return "keras"
    if any(name.endswith("data.pkl") for name in names):
        raise UnsupportedError(f"{path} is a PyTorch file.", _PYTORCH_HINT)
    if any(name.endswith("saved_model.pb") for name in names):
        raise SourceError(f"{path} is a zip archive of a SavedModel.", "Unpack it and name the folder.")
    if names and all(name.endswith(".npy") for name in names):
        raise SourceError(f"{path} is a NumPy archive, not a model.", ACCEPTED)
    raise SourceError(f"{path} is a zip archive, not a model.", ACCEPTED)


def _is_text(head: bytes) -> bool:
    if b"\x00" in head:
        return False
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # a character may be cut at the end of the head
            return False
        text = head[: error.start].decode("utf-8")
    return sum(not (character.isprintable() or character in "\t\r\n\f") for character in text) == 0


def _detect_text(path: Path, text: str) -> Kind:
    # What stands before the first field is white space and comments.
    body = re.sub(r"\A(?:\s+|#[^\n]*(?:\n|\Z))*", "", text)
    lowered = body[:200].lower()
    if lowered.startswith(("<!doctype", "<html")):
        raise SourceError(
            f"{path} is an HTML page, not a model.", "A download link often answers with a page: fetch the file itself."
        )
    if body.startswith("version https://git-lfs"):
        raise SourceError(f"{path} is a Git LFS pointer, not the model.", "Run `git lfs pull`.")
    field = re.match(r"([A-Za-z_]+)\s*[:{]", body)
    if field:
        if field[1] in ("node", "versions", "library"):
            return "frozen_graph"
        if field[1] in ("saved_model_schema_version", "meta_graphs"):
            return "saved_model"
        if field[1] in ("ir_version", "producer_name", "opset_import", "graph"):
            raise UnsupportedError(
                f"{path} is ONNX in text form, which padfix does not read.", "Save it as a binary .onnx file."
            )
    if lowered.startswith(("<?xml", "<net")):
        raise SourceError(f"{path} is an XML file, not a model that padfix reads.", ACCEPTED)
    if body.startswith("{"):
        raise SourceError(f"{path} is a JSON file, not a model that padfix reads.", ACCEPTED)
    raise SourceError(f"{path} is a text file, not a model.", ACCEPTED)


class _MalformedError(Exception):
    """The bytes are not a protobuf message."""


def _varint(data: mmap.mmap, position: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise _MalformedError
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise _MalformedError


def _fields(data: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, wire type, payload start, payload end) of each field; the payload may reach beyond ``end``."""
    position = start
    while position < end:
        key, position = _varint(data, position, end)
        number, wire_type = key >> 3, key & 7
        if number == 0:
            raise _MalformedError
        first = position
        if wire_type == _VARINT:
            _, position = _varint(data, position, end)
        elif wire_type == _FIXED64:
            position += 8
        elif wire_type == _FIXED32:
            position += 4
        elif wire_type == _BYTES:
            length, first = _varint(data, position, end)
            position = first + length
        else:
            raise _MalformedError
        yield number, wire_type, first, position


def _detect_protobuf(path: Path, data: mmap.mmap, size: int) -> Kind:
    seen: dict[int, int] = {}
    first_payload: dict[int, tuple[int, int]] = {}
    complete, count, fits = True, 0, True
    try:
        for number, wire_type, start, end in _fields(data, 0, size):
            count += 1
            if seen.setdefault(number, wire_type) != wire_type:
                fits = False
                break
            first_payload.setdefault(number, (start, min(end, size)))
            complete = end <= size
    except _MalformedError:
        complete = False
    if count and fits:
        kind = _kind_of(data, seen, first_payload)
        if kind is not None:
            if complete:
                return kind
            what = {"onnx": "an ONNX model", "saved_model": "a SavedModel"}.get(kind, "a TensorFlow graph")
            raise SourceError(f"{path} starts like {what} but is truncated or damaged.", "Fetch or export it again.")
        if complete:
            _refuse_known_messages(path, data, seen, first_payload)
    raise SourceError(f"{path} is not a model: its content is none of the known formats.", ACCEPTED)


def _within(seen: dict[int, int], known: dict[int, int]) -> bool:
    return all(known.get(number) == wire_type for number, wire_type in seen.items())


def _kind_of(data: mmap.mmap, seen: dict[int, int], payload: dict[int, tuple[int, int]]) -> Kind | None:
    if _within(seen, _GRAPH_DEF_FIELDS) and 1 in seen and _looks_like_node(data, *payload[1]):
        return "frozen_graph"
    if _within(seen, _SAVED_MODEL_FIELDS) and 2 in seen and _looks_like_meta_graph(data, *payload[2]):
        return "saved_model"
    if _within(seen, _ONNX_FIELDS) and (7 in seen or (1 in seen and 8 in seen)):
        return "onnx"
    return None


def _text_field(data: mmap.mmap, start: int, end: int, number: int) -> str | None:
    try:
        for found, wire_type, first, last in _fields(data, start, end):
            if found == number and wire_type == _BYTES and last <= end:
                return bytes(data[first:last]).decode("utf-8")
    except (_MalformedError, UnicodeDecodeError):
        return None
    return None


def _looks_like_node(data: mmap.mmap, start: int, end: int) -> bool:
    """Whether a payload is a NodeDef: a name (1) and an operator (2)."""
    operator = _text_field(data, start, end, 2)
    return (
        _text_field(data, start, end, 1) is not None
        and operator is not None
        and re.fullmatch(r"[A-Za-z_][\w>.]*", operator) is not None
    )


def _looks_like_meta_graph(data: mmap.mmap, start: int, end: int) -> bool:
    """Whether a payload is a MetaGraphDef: meta information (1) or a graph (2) first."""
    try:
        number, wire_type, _, _ = next(_fields(data, start, end), (0, 0, 0, 0))
    except _MalformedError:
        return False
    return number in (1, 2) and wire_type == _BYTES


def _refuse_known_messages(
    path: Path, data: mmap.mmap, seen: dict[int, int], payload: dict[int, tuple[int, int]]
) -> None:
    if seen.get(1) == _VARINT and seen.get(2) == _BYTES and any(number >= 200 for number in seen):
        raise UnsupportedError(f"{path} is a Core ML model.", _CORE_ML_HINT)
    if seen.get(1) == _BYTES and seen.get(2) == _BYTES and 2 in payload:
        start, end = payload[2]
        inner = next(_fields(data, start, end), None)
        if inner and inner[0] == 1 and inner[1] == _BYTES and _looks_like_node(data, inner[2], inner[3]):
            raise UnsupportedError(
                f"{path} is a MetaGraph (the .meta file of a checkpoint), whose weights are in other files.",
                "Export the model as a SavedModel and give padfix that folder.",
            )
    if seen.get(1) == _VARINT and seen.get(2) == _VARINT and set(seen) <= set(range(1, 15)):
        raise SourceError(f"{path} is a single ONNX tensor, not a model.", ACCEPTED)
