"""The protobuf wire format, as far as finding tensors in an ONNX file needs it.

Sources: the protobuf encoding specification (https://protobuf.dev/programming-guides/encoding/) for the bytes, and the
descriptors of the installed ``onnx`` package for the field numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from onnx import GraphProto, ModelProto, SparseTensorProto, TensorProto

VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5

MAXIMUM_DEPTH = 100
"""Messages in messages; protobuf's own parser stops at the same depth."""

MAXIMUM_MESSAGE_BYTES = 2**31 - 1
"""Protobuf can't serialise or parse a message of 2 GiB or more."""

HEADER_BYTES = 20  # the longest tag and the longest length: two varints of ten bytes
_WINDOW_BYTES = 16384


class WireError(ValueError):
    """The bytes are not a protobuf message, or they end too early."""


class CutError(WireError):
    """A field reaches over the end of what holds it; ``field`` is as its header says."""

    def __init__(self, message: str, field: Field) -> None:
        super().__init__(message)
        self.field = field


class Field(NamedTuple):
    """One field of a message: its tag starts at ``tag``, its value is ``start`` to ``end`` (length prefix excluded)."""

    number: int
    wire_type: int
    tag: int
    start: int
    end: int


class ByteSource(Protocol):
    """Bytes that can be looked at by position."""

    @property
    def size(self) -> int:
        """Number of bytes."""

    @property
    def time(self) -> int:
        """When the bytes were modified, in nanoseconds; 0 where nothing tells."""

    def peek(self, position: int) -> tuple[bytes, int]:
        """Return (buffer, index) such that the bytes from ``position`` start at ``index`` of the buffer.

        The buffer reaches at least a field's header further, or to the end of the bytes.
        """

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` to ``end``."""

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes in order."""


@dataclass(frozen=True)
class MemoryBytes:
    """A :class:`ByteSource` over bytes in memory."""

    data: bytes
    time: int = 0

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self.data)

    def peek(self, position: int) -> tuple[bytes, int]:
        """See :class:`ByteSource`."""
        return self.data, position

    def read(self, start: int, end: int) -> bytes:
        """See :class:`ByteSource`."""
        return self.data[start:end]

    def chunks(self) -> Iterator[bytes]:
        """See :class:`ByteSource`."""
        yield self.data


class FileBytes:
    """A :class:`ByteSource` over an open file, read through one small window.

    Not a memory map: the pages of a map count as the process's memory, and a file that shrinks kills the process.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._window = b""
        self._window_start = 0
        status = os.fstat(descriptor)
        self._size, self.time = status.st_size, status.st_mtime_ns

    @property
    def size(self) -> int:
        """Number of bytes when the file was opened."""
        return self._size

    def peek(self, position: int) -> tuple[bytes, int]:
        """See :class:`ByteSource`."""
        index = position - self._window_start
        if index < 0 or index + HEADER_BYTES > len(self._window):
            if position < self._size and self._window_start + len(self._window) == self._size and index >= 0:
                return self._window, index
            self._window = os.pread(self._descriptor, _WINDOW_BYTES, position)
            self._window_start = position
            index = 0
        return self._window, index

    def read(self, start: int, end: int) -> bytes:
        """See :class:`ByteSource`."""
        index = start - self._window_start
        if index >= 0 and end - self._window_start <= len(self._window):
            return self._window[index : end - self._window_start]
        return b"".join(read_chunks(self._descriptor, start, end - start))

    def chunks(self) -> Iterator[bytes]:
        """See :class:`ByteSource`."""
        return read_chunks(self._descriptor, 0, self._size)


def read_chunks(descriptor: int, offset: int, length: int, chunk: int = 1 << 20) -> Iterator[bytes]:
    """Yield ``length`` bytes of a file from ``offset`` in chunks.

    Raises:
        WireError: The file ends before.
    """
    end = offset + length
    while offset < end:
        data = os.pread(descriptor, min(chunk, end - offset), offset)
        if not data:
            raise WireError(f"the file ends at byte {offset}, {end - offset} bytes early")
        yield data
        offset += len(data)


def read_varint(buffer: bytes, index: int) -> tuple[int, int]:
    """Return (value, index after it) of the variable-length integer at ``index``.

    Raises:
        WireError: It is longer than ten bytes, or the buffer ends in it.
    """
    value = shift = 0
    try:
        while True:
            byte = buffer[index]
            index += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, index
            shift += 7
            if shift >= 70:
                raise WireError("a variable-length integer is longer than ten bytes")
    except IndexError:
        raise WireError("the bytes end within a field's header") from None


def varint(value: int) -> bytes:
    """Return a non-negative integer in variable-length encoding."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def length_header(number: int, length: int) -> bytes:
    """Return the tag and the length that precede a length-delimited value."""
    return varint(number << 3 | LENGTH_DELIMITED) + varint(length)


def iterate_fields(source: ByteSource, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message that lies from ``start`` to ``end``, reading headers only.

    Raises:
        WireError: A field is malformed or reaches over the message's end.
    """
    position = start
    while position < end:
        buffer, index = source.peek(position)
        key = buffer[index] if index < len(buffer) else 0x80
        if key < 0x80:
            after = index + 1
        else:
            key, after = read_varint(buffer, index)
        wire_type = key & 7
        number = key >> 3
        if number == 0 or number >= 1 << 29:
            raise WireError(f"byte {position} holds no field number")
        value_start = position + after - index
        if wire_type == LENGTH_DELIMITED:
            length, after_length = read_varint(buffer, after)
            value_start += after_length - after
            value_end = value_start + length
        elif wire_type == VARINT:
            value_end = value_start + read_varint(buffer, after)[1] - after
        elif wire_type == FIXED32:
            value_end = value_start + 4
        elif wire_type == FIXED64:
            value_end = value_start + 8
        else:
            raise WireError(f"byte {position} holds wire type {wire_type}, which ONNX does not use")
        field = Field(number, wire_type, position, value_start, value_end)
        if value_end > end:
            raise CutError(f"a field at byte {position} ends {value_end - end} bytes after what holds it", field)
        yield field
        position = value_end


def _messages_that_reach_tensors() -> dict[str, dict[int, str]]:
    """Return, for each message type that can hold a tensor at some depth, its fields that lead there."""
    children: dict[str, dict[int, str]] = {}
    waiting: list[Any] = [ModelProto.DESCRIPTOR]
    while waiting:
        descriptor = waiting.pop()
        if descriptor.name in children:
            continue
        inner = [field for field in descriptor.fields if field.message_type is not None]
        children[descriptor.name] = {field.number: field.message_type.name for field in inner}
        waiting.extend(field.message_type for field in inner)
    reaching = {TensorProto.DESCRIPTOR.name}
    while True:
        more = {name for name, fields in children.items() if reaching.intersection(fields.values())} - reaching
        if not more:
            break
        reaching |= more
    return {
        name: {number: kind for number, kind in children[name].items() if kind in reaching}
        for name in reaching - {TensorProto.DESCRIPTOR.name}
    }


MODEL = ModelProto.DESCRIPTOR.name
GRAPH = GraphProto.DESCRIPTOR.name
TENSOR = TensorProto.DESCRIPTOR.name
SPARSE_TENSOR = SparseTensorProto.DESCRIPTOR.name

CHILDREN = _messages_that_reach_tensors()
"""Message type -> {field number: message type} for the fields that can hold a tensor at some depth."""


def field_number(message: type[Any], name: str) -> int:
    """Return the number of a field of a message class."""
    number: int = message.DESCRIPTOR.fields_by_name[name].number
    return number


INITIALIZER = field_number(GraphProto, "initializer")
RAW_DATA = field_number(TensorProto, "raw_data")
FLOAT_DATA = field_number(TensorProto, "float_data")
DOUBLE_DATA = field_number(TensorProto, "double_data")
DATA_LOCATION = field_number(TensorProto, "data_location")

PAYLOAD_NAMES = ("raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data")
PAYLOADS = frozenset(field_number(TensorProto, name) for name in PAYLOAD_NAMES)
"""Fields of a tensor whose packed bytes can be kept as one opaque span (strings are not packed)."""

FIXED_WIDTH_PAYLOADS = frozenset({RAW_DATA, FLOAT_DATA, DOUBLE_DATA})
"""Payload fields whose packed bytes are the tensor's little-endian elements, as ``raw_data`` would hold them."""

Replacement = Callable[[Field, str], tuple[list[Any], int] | None]
"""Given a field that can hold a tensor, and its message type: its new content and its length; None keeps it."""


def rewritten(
    source: ByteSource, start: int, end: int, kind: str, replace: Replacement, copy: Callable[[int, int], Any]
) -> tuple[list[Any], int]:
    """Return the message of a type from ``start`` to ``end`` with what ``replace`` says, in pieces, and its length.

    ``copy`` returns the piece for a run of bytes that stays as it is.

    Raises:
        WireError: A field is malformed or reaches over the message's end.
    """
    pieces: list[Any] = []
    total = 0
    unchanged = start  # where the run of fields that are copied as they stand begins
    for field in iterate_fields(source, start, end):
        child = CHILDREN[kind].get(field.number)
        changed = None if child is None or field.wire_type != LENGTH_DELIMITED else replace(field, child)
        if changed is None:
            continue
        inner, length = changed
        if unchanged < field.tag:
            pieces.append(copy(unchanged, field.tag))
        header = length_header(field.number, length)
        pieces += [header, *inner]
        total += field.tag - unchanged + len(header) + length
        unchanged = field.end
    if unchanged < end:
        pieces.append(copy(unchanged, end))
    return pieces, total + end - unchanged
