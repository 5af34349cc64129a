"""What a path holds, told from its content and not from its name; needs neither TensorFlow nor the whole file.

Protobuf files carry no signature, so the top-level fields are walked: each field's number and wire type is read and its
payload skipped. That is a handful of small reads whatever the size of the weights.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from onnx import ModelProto

from padfix.errors import PadfixError, SourceError, UnsupportedError
from padfix.files.byte_file import ByteFile
from padfix.files.payloads import missing
from padfix.files.stores.access import opened
from padfix.files.urls import Place
from padfix.files.wire_format import LENGTH_DELIMITED, VARINT, ByteSource, CutError, Field, WireError, iterate_fields

Kind = Literal["onnx", "saved_model", "frozen_graph", "keras", "keras_h5", "tflite"]

ACCEPTED = "padfix reads ONNX, a SavedModel folder, a frozen GraphDef (.pb, .pbtxt), .keras, .h5 and .tflite files."

ONNX_HINT = (
    "Give the .onnx file that the exporter wrote; padfix convert also reads SavedModel, GraphDef and Keras files."
)

_CALLED: dict[Kind, str] = {
    "saved_model": "a TensorFlow SavedModel",
    "frozen_graph": "a TensorFlow GraphDef",
    "keras": "a Keras file",
    "keras_h5": "an HDF5 file, as old Keras models are",
    "tflite": "a TensorFlow Lite model",
}

_HDF5 = b"\x89HDF\r\n\x1a\n"

# Wire types by field number of each message at its top level; the latter two from graph.proto and saved_model.proto.
_ONNX_FIELDS = {
    field.number: LENGTH_DELIMITED if field.type in (field.TYPE_MESSAGE, field.TYPE_STRING) else VARINT
    for field in ModelProto.DESCRIPTOR.fields
}
_GRAPH_DEF_FIELDS = {
    1: LENGTH_DELIMITED,
    2: LENGTH_DELIMITED,
    3: VARINT,
    4: LENGTH_DELIMITED,
    5: LENGTH_DELIMITED,
}
_SAVED_MODEL_FIELDS = {1: VARINT, 2: LENGTH_DELIMITED}

# (offset, bytes, what it is, hint)
_OTHER_FORMATS: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"\x1f\x8b", "a gzip archive", "Unpack it first."),
    (0, b"BZh", "a bzip2 archive", "Unpack it first."),
    (0, b"\xfd7zXZ", "an xz archive", "Unpack it first."),
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


def detect(path: Place) -> Kind:
    """Return the kind of the model at ``path``.

    Raises:
        SourceError: Missing, empty, truncated, or not a model.
        UnsupportedError: A model of a kind that padfix does not read.
    """
    try:
        if isinstance(path, Path):
            if path.is_dir():
                return _detect_folder(path)
            if not path.exists():
                raise missing(path)
            if not path.is_file():
                raise SourceError(f"{path} is neither a file nor a folder.", "Save the model to a file first.")
        with opened(path) as data:
            return _other_than_protobuf(path, data) or _detect_protobuf(path, data)
    except WireError as error:
        raise SourceError(f"{path} can't be read: {error}.", "Fetch or export it again.") from error
    except OSError as error:
        raise SourceError(f"{path} can't be read: {error.strerror or error}.") from error


def is_onnx(path: Place) -> bool:
    """Whether a file is an ONNX model, as far as it can be read."""
    try:
        return detect(path) == "onnx"
    except PadfixError:
        return False


def require_onnx(path: Place, data: ByteSource) -> None:
    """Refuse a file that is plainly of another format than ONNX; one that is damaged may pass.

    Raises:
        SourceError: Saying what it is instead.
        UnsupportedError: A model of a kind that padfix does not read.
    """
    kind = _other_than_protobuf(path, data) or _kind_of(data, *_top_level(data)[:2])
    if kind not in (None, "onnx"):
        raise SourceError(f"{path} is {_CALLED[kind]}, not an ONNX model.", ONNX_HINT)


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


def _other_than_protobuf(path: Place, data: ByteSource) -> Kind | None:
    """Return the kind of a file that is no protobuf message in binary form; None for what may be one."""
    size = data.size
    if size == 0:
        raise SourceError(f"{path} is empty.", "Was the download or the export interrupted?")
    head = data.read(0, min(size, 512))
    if head.startswith(_HDF5):
        return "keras_h5"
    if head[4:8] == b"TFL3":
        return "tflite"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _detect_zip(path, data)
    for offset, signature, what, hint in _OTHER_FORMATS:
        if head[offset : offset + len(signature)] == signature:
            raise SourceError(f"{path} is {what}, not a model that padfix reads.", hint)
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05" and data.read(size - 1, size) == b".":
        raise UnsupportedError(f"{path} is a Python pickle, as old PyTorch files are.", _PYTORCH_HINT)
    if head[8:9] == b"{" and 0 < int.from_bytes(head[:8], "little") <= size - 8:
        raise UnsupportedError(f"{path} is a safetensors file: weights without a graph.", ACCEPTED)
    if _is_text(head):
        return _detect_text(path, data.read(0, min(size, 64 * 1024)).decode("utf-8", "replace"))
    return None


def _detect_zip(path: Place, data: ByteSource) -> Kind:
    try:
        with zipfile.ZipFile(ByteFile(data)) as archive:
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


def _detect_text(path: Place, text: str) -> Kind:
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


_Seen = dict[int, set[int]]
_First = dict[int, Field]


def _top_level(data: ByteSource) -> tuple[_Seen, _First, bool]:
    """Return the wire types and the first field of each number at the top of a message, and whether it is whole."""
    seen: dict[int, set[int]] = {}
    first: dict[int, Field] = {}
    complete = True
    try:
        for field in iterate_fields(data, 0, data.size):
            seen.setdefault(field.number, set()).add(field.wire_type)
            first.setdefault(field.number, field)
    except WireError as error:
        complete = False
        if isinstance(error, CutError):
            seen.setdefault(error.field.number, set()).add(error.field.wire_type)
            first.setdefault(error.field.number, error.field._replace(end=data.size))
    return seen, first, complete


def _detect_protobuf(path: Place, data: ByteSource) -> Kind:
    seen, first, complete = _top_level(data)
    kind = _kind_of(data, seen, first)
    if kind is not None:
        if complete:
            return kind
        what = {"onnx": "an ONNX model", "saved_model": "a SavedModel"}.get(kind, "a TensorFlow graph")
        raise SourceError(f"{path} starts like {what} but is truncated or damaged.", "Fetch or export it again.")
    if seen and complete:
        _refuse_known_messages(path, data, seen, first)
    raise SourceError(f"{path} is not a model: its content is none of the known formats.", ACCEPTED)


def _within(seen: Mapping[int, set[int]], known: Mapping[int, int]) -> bool:
    """Whether every field that was seen is a known one, of the right wire type."""
    return all(types == {known.get(number)} for number, types in seen.items())


def _agrees(seen: Mapping[int, set[int]], known: Mapping[int, int]) -> bool:
    """Whether every known field that was seen has the right wire type; a newer format may have fields of its own."""
    return all(types == {known[number]} for number, types in seen.items() if number in known)


def _kind_of(data: ByteSource, seen: Mapping[int, set[int]], first: Mapping[int, Field]) -> Kind | None:
    if _within(seen, _GRAPH_DEF_FIELDS) and 1 in seen and _looks_like_node(data, first[1]):
        return "frozen_graph"
    if _within(seen, _SAVED_MODEL_FIELDS) and 2 in seen and _looks_like_meta_graph(data, first[2]):
        return "saved_model"
    if _within(seen, _ONNX_FIELDS) and (7 in seen or {1, 8} <= seen.keys()):
        return "onnx"
    if _agrees(seen, _ONNX_FIELDS) and {1, 7, 8} <= seen.keys():
        return "onnx"
    return None


def _text_field(data: ByteSource, message: Field, number: int) -> str | None:
    try:
        for field in iterate_fields(data, message.start, message.end):
            if field.number == number and field.wire_type == LENGTH_DELIMITED:
                return data.read(field.start, field.end).decode("utf-8")
    except (WireError, UnicodeDecodeError):
        return None
    return None


def _looks_like_node(data: ByteSource, message: Field) -> bool:
    """Whether a message is a NodeDef: a name (1) and an operator (2)."""
    operator = _text_field(data, message, 2)
    return (
        _text_field(data, message, 1) is not None
        and operator is not None
        and re.fullmatch(r"[A-Za-z_][\w>.]*", operator) is not None
    )


def _first_field(data: ByteSource, message: Field) -> Field | None:
    try:
        return next(iterate_fields(data, message.start, message.end), None)
    except CutError as error:
        return error.field
    except WireError:
        return None


def _looks_like_meta_graph(data: ByteSource, message: Field) -> bool:
    """Whether a message is a MetaGraphDef: meta information (1) or a graph (2) first."""
    inner = _first_field(data, message)
    return inner is not None and inner.number in (1, 2) and inner.wire_type == LENGTH_DELIMITED


def _refuse_known_messages(
    path: Place, data: ByteSource, seen: Mapping[int, set[int]], first: Mapping[int, Field]
) -> None:
    beginning = [seen.get(number) for number in (1, 2)]
    if beginning == [{VARINT}, {LENGTH_DELIMITED}] and any(number >= 200 for number in seen):
        raise UnsupportedError(f"{path} is a Core ML model.", _CORE_ML_HINT)
    if beginning == [{LENGTH_DELIMITED}, {LENGTH_DELIMITED}]:
        inner = _first_field(data, first[2])
        if inner and inner.number == 1 and inner.wire_type == LENGTH_DELIMITED and _looks_like_node(data, inner):
            raise UnsupportedError(
                f"{path} is a MetaGraph (the .meta file of a checkpoint), whose weights are in other files.",
                "Export the model as a SavedModel and give padfix that folder.",
            )
    if beginning == [{VARINT}, {VARINT}] and set(seen) <= set(range(1, 15)):
        raise SourceError(f"{path} is a single ONNX tensor, not a model.", ACCEPTED)
