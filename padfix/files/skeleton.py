"""Reads an ONNX file as a skeleton: everything but the large tensor payloads, which stay where they are in the file.

The reader walks the wire format and copies all fields but the payloads longer than :data:`LARGE`. In place of each it
writes external-data entries (location, offset, length) that point into the very file, so that the skeleton is a valid
model that ONNX Runtime can load as it stands, and a *mark* among the tensor's metadata properties that says how to
put the payload back. (A mark among the external-data entries would be tidier, but ONNX Runtime refuses keys that it
does not know there.) Memory and time depend on the graph, never on the weights.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    StringStringEntryProto,
    TensorProto,
    numpy_helper,
)

from padfix.errors import SourceError, UnsupportedError
from padfix.files import sniffing, wire_format
from padfix.files.containment import is_inner, require_plain
from padfix.files.model import Model
from padfix.files.wire_format import (
    LENGTH_DELIMITED,
    Field,
    FileBytes,
    WireError,
    iterate_fields,
    length_header,
    read_chunks,
)

MARK = "padfix"
"""Key of the metadata property that marks a tensor whose payload stayed in the model's file."""

LARGE = 2048
"""Payloads of more bytes than this stay in the file."""

_DAMAGED = "Download or export it again, and compare its size with the original."


@dataclass(frozen=True)
class Mark:
    """What a mark says: where the payload lies and how to put it back.

    Attributes:
        field: Number of the tensor's payload field.
        offset: Where the payload starts in the file.
        length: Its length in bytes.
        data_location: The tensor's own ``data_location`` if it was written out, else None.
        file_size: Size of the file when it was read.
        file_time: Modification time of the file when it was read, in nanoseconds.
    """

    field: int
    offset: int
    length: int
    data_location: int | None
    file_size: int
    file_time: int


def read_model(path: Path) -> Model:
    """Read the ONNX file at ``path`` and leave its large payloads where they are.

    Raises:
        SourceError: There is no such file, or it is not a whole ONNX model.
    """
    path = Path(path).absolute()
    descriptor = _open(path)
    try:
        sniffing.refuse(path, os.pread(descriptor, 4096, 0), os.fstat(descriptor).st_size)
        skeleton, marked = _Reader(descriptor, path.name).skeleton()
        proto = ModelProto()
        proto.ParseFromString(skeleton)
    except (WireError, DecodeError) as error:
        raise SourceError(f"{path} is not a whole ONNX model: {_reason(error)}.", _DAMAGED) from error
    except (MemoryError, RecursionError, SystemError) as error:  # the last is protobuf's own want of memory
        raise SourceError(
            f"{path} can't be read as an ONNX model: it asks for absurdly much memory.", _DAMAGED
        ) from error
    except OSError as error:
        raise SourceError(f"{path} can't be read: {error.strerror}.", "Check the disk and the file.") from error
    finally:
        os.close(descriptor)
    try:
        _check(path, proto, marked)
    except WireError as error:
        raise SourceError(f"{path} is not an ONNX model: {error}.", _DAMAGED) from error
    return Model(proto, path, path.parent)


def has_mark(tensor: TensorProto) -> bool:
    """Whether the tensor's payload stayed in the model's file."""
    return bool(tensor.metadata_props) and tensor.metadata_props[-1].key == MARK


def read_mark(tensor: TensorProto) -> Mark:
    """Return what the mark of a marked tensor says."""
    return parse_mark(tensor.metadata_props[-1].value)


def parse_mark(value: str) -> Mark:
    """Return the mark that ``value`` is the text of."""
    field, offset, length, data_location, size, time = (int(word) for word in value.split())
    return Mark(field, offset, length, None if data_location < 0 else data_location, size, time)


def load_payload(model: Model, tensor: TensorProto) -> bytes:
    """Return a tensor's elements as ``raw_data`` holds them: little-endian, row-major; all of them, in memory.

    Raises:
        SourceError: The file that holds them is not there, unsafe, or not as it was when the model was read.
        UnsupportedError: The tensor holds strings, which have no raw form.
    """
    if tensor.data_type == TensorProto.STRING:
        raise UnsupportedError(f"The tensor {tensor.name!r} holds strings, which have no raw form.")
    if has_mark(tensor):
        mark = read_mark(tensor)
        with open_payload(marked_file(model), mark) as descriptor:
            payload = _exactly(tensor.name, descriptor, mark.offset, mark.length)
        if mark.field in wire_format.FIXED_WIDTH_PAYLOADS:
            return payload
        whole = TensorProto(data_type=tensor.data_type, dims=tensor.dims)
        whole.MergeFromString(length_header(mark.field, mark.length) + payload)
        return inline_payload(whole)
    if tensor.data_location == TensorProto.EXTERNAL:
        path, offset, length = external_location(model.folder or Path(), tensor, model.path)
        descriptor = _open(path)
        try:
            return _exactly(tensor.name, descriptor, offset, length)
        finally:
            os.close(descriptor)
    return inline_payload(tensor)


def load_whole(path: Path) -> ModelProto:
    """Read the ONNX file at ``path`` with all weights, external data included, into memory.

    Raises:
        SourceError: It, or a file of its data, can't be read, or is not safe to.
    """
    model = read_model(path)
    for tensor in iterate_tensors(model.proto):
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        data = load_payload(model, tensor)
        if has_mark(tensor):
            del tensor.metadata_props[-1]
        for field in ("data_location", "external_data"):
            tensor.ClearField(field)
        tensor.raw_data = data
    return model.proto


def inline_payload(tensor: TensorProto) -> bytes:
    """Return the elements of a tensor that holds them itself, as ``raw_data`` would.

    Raises:
        SourceError: What it holds does not fit its shape and type.
    """
    if tensor.HasField("raw_data"):
        return tensor.raw_data
    try:
        return numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data
    except (ValueError, TypeError, RuntimeError, KeyError, OverflowError, MemoryError) as error:
        raise SourceError(f"The tensor {tensor.name!r} does not hold what its shape and type say: {error}.") from error


def _exactly(name: str, descriptor: int, offset: int, length: int) -> bytes:
    try:
        return b"".join(read_chunks(descriptor, offset, length))
    except (WireError, OSError) as error:
        raise SourceError(f"The payload of the tensor {name!r} can't be read: {_reason(error)}.", _DAMAGED) from error


def marked_file(model: Model) -> Path:
    """Return the file that the marked pointers of ``model`` mean."""
    if model.path is None:
        raise SourceError("The model has pointers into a file, but no file.", "Read it again from its file.")
    return model.path


@contextlib.contextmanager
def open_payload(path: Path, mark: Mark) -> Iterator[int]:
    """Open the file that a mark points into, and make sure that it is as it was when the mark was made.

    Raises:
        SourceError: It is not there any more, or was changed.
    """
    descriptor = _open(path)
    try:
        status = os.fstat(descriptor)
        if (status.st_size, status.st_mtime_ns) != (mark.file_size, mark.file_time):
            raise SourceError(f"{path} was changed while padfix worked on it.", "Run again when nothing writes to it.")
        yield descriptor
    finally:
        os.close(descriptor)


def external_location(folder: Path, tensor: TensorProto, model_path: Path | None = None) -> tuple[Path, int, int]:
    """Return (file, offset, length) of a tensor that is external data, after making sure that reading it is safe.

    The file must be a regular one inside ``folder``. Where the model itself is a symbolic link, as in caches that keep
    contents apart from names, a data file may be a link into the folder that the model's own link leads to.

    Args:
        folder: The folder that locations are relative to.
        tensor: A tensor whose ``data_location`` is ``EXTERNAL``.
        model_path: The model's path, if it has one.

    Raises:
        SourceError: The location is unsafe, missing, or the span lies outside the file.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    check_location(tensor.name, location)
    path = folder / location
    allowed = [folder.resolve()]
    if model_path is not None and model_path.is_symlink():
        allowed.append(model_path.resolve().parent)
    status = require_plain(path, allowed, f"The external data {path} of the tensor {tensor.name!r}")
    real = path.resolve()
    offset = _entry_number(tensor.name, entries, "offset", 0)
    expected = payload_size(tensor)
    length = _entry_number(tensor.name, entries, "length", status.st_size - offset if expected is None else expected)
    if offset < 0 or length < 0 or offset + length > status.st_size:
        raise SourceError(
            f"The external data of the tensor {tensor.name!r} lies outside {path}: "
            f"{length} bytes from {offset}, in a file of {status.st_size}.",
            "The data file is truncated or belongs to another model.",
        )
    if expected is not None and length != expected:
        raise SourceError(
            f"The external data of the tensor {tensor.name!r} has {length} bytes; its shape and type need {expected}.",
            "The model is damaged; export it again.",
        )
    return real, offset, length


def check_location(name: str, location: str) -> None:
    """Make sure, from its text alone, that an external-data location stays inside the model's folder.

    Raises:
        SourceError: It is empty, absolute, or climbs out.
    """
    if not is_inner(location):
        raise SourceError(
            f"The tensor {name!r} has its external data at {location!r}, which is not inside the model's folder.",
            "Do not trust this model; locations of external data must be relative and must not climb out.",
        )


_HALF_BYTE_TYPES = frozenset({TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1})
_ELEMENT_BYTES = {
    kind: size
    for size, kinds in {
        1: ("BOOL", "INT8", "UINT8", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"),
        2: ("INT16", "UINT16", "FLOAT16", "BFLOAT16"),
        4: ("FLOAT", "INT32", "UINT32"),
        8: ("DOUBLE", "INT64", "UINT64", "COMPLEX64"),
        16: ("COMPLEX128",),
    }.items()
    for kind in (TensorProto.DataType.Value(name) for name in kinds)
}


def payload_size(tensor: TensorProto) -> int | None:
    """Return the number of bytes that ``raw_data`` of the tensor's shape and type has; None for types not known."""
    count = 1
    for length in tensor.dims:
        count *= length
    if tensor.data_type in _HALF_BYTE_TYPES:
        return (count + 1) // 2
    size = _ELEMENT_BYTES.get(tensor.data_type)
    return None if size is None else count * size


def _entry_number(name: str, entries: dict[str, str], key: str, default: int) -> int:
    text = entries.get(key, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise SourceError(
            f"The external data of the tensor {name!r} has {key} {text!r}, which is not a number.", _DAMAGED
        )
    return int(text)


def iterate_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor of the model wherever it stands: initializers, attributes, bodies, functions, training."""
    yield from _graph_tensors(model.graph)
    for function in model.functions:
        yield from _node_tensors(function.node)
        for attribute in function.attribute_proto:
            yield from _attribute_tensors(attribute)
    for training in model.training_info:
        yield from _graph_tensors(training.initialization)
        yield from _graph_tensors(training.algorithm)


def _graph_tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Sequence[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            yield from _attribute_tensors(attribute)


def _attribute_tensors(attribute: AttributeProto) -> Iterator[TensorProto]:
    if attribute.HasField("t"):
        yield attribute.t
    if attribute.HasField("g"):
        yield from _graph_tensors(attribute.g)
    yield from attribute.tensors
    for graph in attribute.graphs:
        yield from _graph_tensors(graph)
    for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
        if sparse.ByteSize():
            yield sparse.values
            yield sparse.indices


def _open(path: Path) -> int:
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError as error:
        raise SourceError(f"{path} does not exist.", "Check the path.") from error
    except (OSError, ValueError) as error:
        raise SourceError(
            f"{path} can't be opened: {_reason(error)}.", "Check the path and its permissions."
        ) from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise SourceError(f"{path} is a folder, not an ONNX file.", "Name the .onnx file inside it.")
    raise SourceError(f"{path} is not a regular file.", "Save it to a file first.")


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, DecodeError):
        return "its bytes are not those of a protobuf message, or messages are nested too deep"
    return str(error)


class _Reader:
    """Copies a model's bytes without the large payloads."""

    def __init__(self, descriptor: int, location: str) -> None:
        self._source = FileBytes(descriptor)
        status = os.fstat(descriptor)
        self._fingerprint = f"{status.st_size} {status.st_mtime_ns}"
        self._location = location
        self._copied = 0
        self._marked = 0

    def skeleton(self) -> tuple[bytes, int]:
        """Return the compact bytes of the model, and how many tensors were marked."""
        chunks, _ = self._message(0, self._source.size, wire_format.MODEL, 0)
        return b"".join(chunks), self._marked

    def _copy(self, start: int, end: int) -> bytes:
        self._copied += end - start
        if self._copied > wire_format.MAXIMUM_MESSAGE_BYTES:
            raise WireError("it holds more than 2 GiB beside the weights")
        return self._source.read(start, end)

    def _message(self, start: int, end: int, kind: str, depth: int) -> tuple[list[bytes], int]:
        """Return the compact bytes of one message in chunks, and their length."""
        if depth > wire_format.MAXIMUM_DEPTH:
            raise WireError(f"messages are nested more than {wire_format.MAXIMUM_DEPTH} deep")
        children = wire_format.CHILDREN[kind]
        chunks: list[bytes] = []
        total = 0
        unchanged = start  # where the run of fields that are copied as they stand begins
        for field in iterate_fields(self._source, start, end):
            child = children.get(field.number)
            if child is None or field.end - field.start <= LARGE or field.wire_type != LENGTH_DELIMITED:
                continue
            if child == wire_format.TENSOR:
                inner, length = self._tensor(field.start, field.end)
            else:
                inner, length = self._message(field.start, field.end, child, depth + 1)
            if unchanged < field.tag:
                chunks.append(self._copy(unchanged, field.tag))
                total += field.tag - unchanged
            header = length_header(field.number, length)
            chunks.append(header)
            chunks.extend(inner)
            total += len(header) + length
            unchanged = field.end
        if unchanged < end:
            chunks.append(self._copy(unchanged, end))
            total += end - unchanged
        return chunks, total

    def _tensor(self, start: int, end: int) -> tuple[list[bytes], int]:
        """Return the bytes of one tensor, with a pointer in place of its payload if that is a single large span."""
        payload: Field | None = None
        location: Field | None = None
        simple = True
        for field in iterate_fields(self._source, start, end):
            if field.number in wire_format.PAYLOADS:
                # Elements in several runs, or not packed at all, are legal but nobody writes them: they are copied.
                simple = simple and payload is None and field.wire_type == LENGTH_DELIMITED
                payload = field
            elif field.number == wire_format.DATA_LOCATION:
                simple = simple and location is None
                location = field
        if payload is None or not simple or payload.end - payload.start <= LARGE:
            return [self._copy(start, end)], end - start
        chunks: list[bytes] = []
        unchanged = start
        for field in sorted((field for field in (payload, location) if field), key=lambda field: field.tag):
            chunks.append(self._copy(unchanged, field.tag))
            unchanged = field.end
        chunks.append(self._copy(unchanged, end))
        data_location = -1
        if location is not None:
            data_location = wire_format.read_varint(self._source.read(location.start, location.end), 0)[0]
        offset, length = payload.start, payload.end - payload.start
        pointer = TensorProto(data_location=TensorProto.EXTERNAL)
        for key, text in (("location", self._location), ("offset", str(offset)), ("length", str(length))):
            pointer.external_data.append(StringStringEntryProto(key=key, value=text))
        mark = f"{payload.number} {offset} {length} {data_location} {self._fingerprint}"
        pointer.metadata_props.append(StringStringEntryProto(key=MARK, value=mark))
        chunks.append(pointer.SerializeToString())
        self._marked += 1
        return chunks, sum(map(len, chunks))


def _check(path: Path, model: ModelProto, marked: int) -> None:
    """Make sure that the bytes that parsed are a model, and one that is safe to work on."""
    if not model.HasField("graph"):
        raise SourceError(f"{path} is not an ONNX model: it holds no graph.", sniffing.HINT)
    if not (model.graph.node or model.graph.output or model.graph.initializer):
        raise SourceError(f"{path} is not an ONNX model: its graph is empty.", sniffing.HINT)
    if not model.HasField("ir_version"):
        raise SourceError(f"{path} is not a valid ONNX model: it has no ir_version.", sniffing.HINT)
    if not model.opset_import:
        raise SourceError(
            f"{path} is not a valid ONNX model: it imports no operator set (opset_import).",
            "Set opset_import to the version that the model was made for; without it no operator has a meaning.",
        )
    _check_names(model)
    found = 0
    for tensor in iterate_tensors(model):
        marks = sum(entry.key == MARK for entry in tensor.metadata_props)
        found += marks
        if not marks and tensor.data_location == TensorProto.EXTERNAL:
            location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
            check_location(tensor.name, location)
    if found != marked:
        raise SourceError(
            f"{path} holds tensors with the metadata property {MARK!r}, which padfix keeps for itself.",
            "Remove that property from the tensors' metadata_props.",
        )


def _check_names(model: ModelProto) -> None:
    """Make sure that every name that the rest of padfix reads is text: protobuf hands out bytes for what is not UTF-8.

    Raises:
        WireError: A name is not.
    """
    _check_text(*(entry.domain for entry in model.opset_import))
    for function in model.functions:
        _check_container_names(function)
    _check_container_names(model.graph)
    for tensor in iterate_tensors(model):
        _check_text(tensor.name)
        for entry in tensor.external_data:
            _check_text(entry.key, entry.value)


def _check_container_names(container: GraphProto | FunctionProto) -> None:
    _check_text(container.name)
    if isinstance(container, GraphProto):
        for value in (*container.input, *container.output, *container.value_info):
            _check_text(value.name)
            for dimension in value.type.tensor_type.shape.dim:
                _check_text(dimension.dim_param)
    else:
        _check_text(*container.input, *container.output, *container.attribute, container.domain, container.overload)
        _check_text(*(entry.domain for entry in container.opset_import))
    for node in container.node:
        _check_text(node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
        for attribute in node.attribute:
            _check_text(attribute.name, attribute.ref_attr_name)
            if attribute.HasField("g"):
                _check_container_names(attribute.g)
            for graph in attribute.graphs:
                _check_container_names(graph)


def _check_text(*values: str) -> None:
    for value in values:
        if not isinstance(value, str):
            raise WireError(f"the name {value!r} in it is not UTF-8 text")
