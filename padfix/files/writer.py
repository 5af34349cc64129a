"""Plans the bytes of a whole model: the skeleton with every payload put back, as pieces to be streamed.

The plan walks the serialised skeleton as the reader walks the file. Messages that hold no pointer are taken as they
stand; the lengths of the others follow bottom-up from what is put back inside. Memory depends on the graph only.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from google.protobuf.message import EncodeError  # type: ignore[import-untyped,unused-ignore]
from onnx import StringStringEntryProto, TensorProto

from padfix.errors import OutputError, SourceError
from padfix.files import payloads, skeleton, wire_format
from padfix.files.external_data import external_location
from padfix.files.model import Model
from padfix.files.tensors import inline_payload, iterate_tensors, payload_size
from padfix.files.wire_format import LENGTH_DELIMITED, Field, MemoryBytes, iterate_fields, length_header

ALIGNMENT = 4096
"""Offsets in a data file are multiples of this, so that runtimes can map the payloads."""

EXTERNAL_FROM = 1024
"""In a model with external data, payloads of more bytes than this go to the data file."""

_LOCATION_ENTRY = b"\x0a\x08location"  # how the entry that every external tensor has begins on the wire
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Span:
    """Bytes of a file; ``mark`` is set when they are a payload that stayed there, to notice a changed file."""

    path: Path
    offset: int
    length: int
    mark: payloads.Mark | None = None


Piece = bytes | Span


@dataclass
class Plan:
    """What to write.

    Attributes:
        model: The pieces of the model's file.
        length: Their total length.
        data: The pieces of the data file, each with its offset, in order.
    """

    model: list[Piece]
    length: int
    data: list[tuple[int, Piece]] = field(default_factory=list)


def plan(model: Model, data_name: str, *, external_data: bool) -> Plan:
    """Plan the bytes of ``model``.

    Args:
        model: The model.
        data_name: Name of the data file beside the output, if there is to be one.
        external_data: Whether there must be one. A model of 2 GiB or more gets one in any case, because protobuf can't
            hold it otherwise.

    Raises:
        SourceError: A payload is not where it should be.
        OutputError: The model is too large even without its initializers, or for memory.
    """
    try:
        serialized = model.proto.SerializeToString()
    except (EncodeError, ValueError) as error:
        raise OutputError(f"The model can't be serialised: {error}.", "It may be larger than 2 GiB.") from error
    if not external_data:
        if _is_untouched(model, serialized) and model.path is not None:
            size = model.path.stat().st_size
            if size <= wire_format.MAXIMUM_MESSAGE_BYTES:
                return Plan([Span(model.path, 0, size)], size)
        embedded = _Expander(model, serialized, None).plan()
        if embedded.length <= wire_format.MAXIMUM_MESSAGE_BYTES:
            return embedded
    split = _Expander(model, serialized, data_name).plan()
    if split.length > wire_format.MAXIMUM_MESSAGE_BYTES:
        raise OutputError(
            "The model is larger than 2 GiB even without its initializers, which ONNX can't hold.",
            "Turn large Constant nodes into initializers first.",
        )
    return split


def _is_untouched(model: Model, serialized: bytes) -> bool:
    """Whether the model is word for word what its file holds, with nothing outside the file."""
    if model.path is None or not model.path.is_file():
        return False
    for tensor in iterate_tensors(model.proto):
        if tensor.data_location == TensorProto.EXTERNAL and not payloads.has_mark(tensor):
            return False
    try:
        return bool(skeleton.read_model(model.path).proto.SerializeToString() == serialized)
    except SourceError:
        return False


class _Expander:
    """Puts payloads back into a skeleton: embedded, or in a data file where the format allows it."""

    def __init__(self, model: Model, skeleton: bytes, data_name: str | None) -> None:
        self._model = model
        self._source = MemoryBytes(skeleton)
        self._skeleton = skeleton
        self._data_name = data_name
        self._data: list[tuple[int, Piece]] = []
        self._data_end = 0

    def plan(self) -> Plan:
        pieces, length = self._message(0, len(self._skeleton), wire_format.MODEL, inlined=False)
        return Plan(pieces, length, self._data)

    def _message(self, start: int, end: int, kind: str, *, inlined: bool) -> tuple[list[Piece], int]:
        """Return the pieces of one message and their length.

        ``inlined`` holds inside functions and attributes' tensors and in training information, where runtimes do not
        look for external data.
        """
        children = wire_format.CHILDREN[kind]
        pieces: list[Piece] = []
        total = 0
        unchanged = start
        for part in iterate_fields(self._source, start, end):
            child = children.get(part.number)
            if child is None or part.wire_type != LENGTH_DELIMITED or not self._may_change(part):
                continue
            if child == wire_format.TENSOR:
                external = kind == wire_format.GRAPH and part.number == wire_format.INITIALIZER and not inlined
                inner, length = self._tensor(part, external=external)
            else:
                outside = kind == wire_format.MODEL and child != wire_format.GRAPH
                inner, length = self._message(part.start, part.end, child, inlined=inlined or outside)
            if unchanged < part.tag:
                pieces.append(self._skeleton[unchanged : part.tag])
                total += part.tag - unchanged
            header = length_header(part.number, length)
            pieces.append(header)
            pieces.extend(inner)
            total += len(header) + length
            unchanged = part.end
        if unchanged < end:
            pieces.append(self._skeleton[unchanged:end])
            total += end - unchanged
        return pieces, total

    def _may_change(self, part: Field) -> bool:
        if self._data_name is not None and part.end - part.start > EXTERNAL_FROM:
            return True
        return self._skeleton.find(_LOCATION_ENTRY, part.start, part.end) >= 0

    def _tensor(self, part: Field, *, external: bool) -> tuple[list[Piece], int]:
        unchanged: list[Piece] = [self._skeleton[part.start : part.end]]
        tensor = TensorProto.FromString(self._skeleton[part.start : part.end])
        marked = payloads.has_mark(tensor)
        if marked:
            mark = payloads.read_mark(tensor)
            payload: Piece = Span(payloads.marked_file(self._model), mark.offset, mark.length, mark)
            number = mark.field
            _remove_mark(tensor, mark)
        elif tensor.data_location == TensorProto.EXTERNAL:
            path, offset, length = external_location(self._model.folder or Path(), tensor, self._model.path or None)
            payload = Span(path, offset, length)
            number = wire_format.RAW_DATA
            del tensor.external_data[:]
            tensor.ClearField("data_location")
        else:
            payload = b""
            number = wire_format.RAW_DATA
        if external and self._data_name is not None:
            raw = self._raw(tensor, number, payload) if marked or payload else _inline_payload(tensor)
            if raw is not None and _length(raw) > EXTERNAL_FROM:
                return self._externalise(tensor, raw)
        if not marked and not payload:
            return unchanged, part.end - part.start
        return _with_field(tensor, number, payload)

    def _raw(self, tensor: TensorProto, number: int, payload: Piece) -> Piece | None:
        """Return the payload as raw little-endian elements, or None when it has to stay embedded."""
        if number in wire_format.FIXED_WIDTH_PAYLOADS:
            return payload
        size = payload_size(tensor)
        if size is None or not isinstance(payload, Span) or payload.mark is None:
            return None
        # Integers of variable length on the wire: nobody writes large ones so, hence they are decoded in memory.
        whole = TensorProto(data_type=tensor.data_type, dims=tensor.dims)
        with payloads.open_payload(payload.path, payload.mark) as descriptor:
            data = b"".join(wire_format.read_chunks(descriptor, payload.offset, payload.length))
        whole.MergeFromString(length_header(number, len(data)) + data)
        raw = inline_payload(whole)
        return raw if len(raw) == size else None

    def _externalise(self, tensor: TensorProto, raw: Piece) -> tuple[list[Piece], int]:
        offset = -(-self._data_end // ALIGNMENT) * ALIGNMENT
        self._data_end = offset + _length(raw)
        self._data.append((offset, raw))
        for name in ("raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data"):
            tensor.ClearField(name)
        del tensor.external_data[:]
        entries = (("location", self._data_name or ""), ("offset", str(offset)), ("length", str(_length(raw))))
        tensor.external_data.extend(StringStringEntryProto(key=key, value=value) for key, value in entries)
        tensor.data_location = TensorProto.EXTERNAL
        data = tensor.SerializeToString()
        return [data], len(data)


def _length(piece: Piece) -> int:
    return piece.length if isinstance(piece, Span) else len(piece)


def _remove_mark(tensor: TensorProto, mark: payloads.Mark) -> None:
    """Make the tensor what it was before it was marked, but for the payload."""
    del tensor.metadata_props[-1]
    del tensor.external_data[-3:]
    if mark.data_location is None:
        tensor.ClearField("data_location")
    else:
        tensor.data_location = mark.data_location  # type: ignore[assignment]


def _inline_payload(tensor: TensorProto) -> bytes | None:
    """Return the raw elements of a tensor that holds its own payload; None for strings and for none at all."""
    if tensor.data_type == TensorProto.STRING or tensor.data_location == TensorProto.EXTERNAL:
        return None
    size = payload_size(tensor)
    if size is None or size <= EXTERNAL_FROM:
        return None
    raw = inline_payload(tensor)
    return raw if len(raw) == size else None


def _with_field(tensor: TensorProto, number: int, payload: Piece) -> tuple[list[Piece], int]:
    """Return the pieces of a tensor with a length-delimited field put in its place by number."""
    data = tensor.SerializeToString()
    position = len(data)
    for part in iterate_fields(MemoryBytes(data), 0, len(data)):
        if part.number > number:
            position = part.tag
            break
    header = length_header(number, _length(payload))
    pieces: list[Piece] = [data[:position] + header, payload, data[position:]]
    return pieces, len(data) + len(header) + _length(payload)


def write_pieces(target: BinaryIO, pieces: Iterable[Piece]) -> None:
    """Write pieces one after the other; spans are streamed from their files.

    Raises:
        SourceError: A file that a span lies in was changed or is too short.
        OSError: The target can't take more.
    """
    for piece in pieces:
        if isinstance(piece, Span):
            target.flush()
            _copy_span(target.fileno(), piece)
        else:
            target.write(piece)
    target.flush()


def write_data(target: BinaryIO, data: Iterable[tuple[int, Piece]]) -> None:
    """Write a data file: each piece at its offset, zeros between. Raises as :func:`write_pieces`."""
    for offset, piece in data:
        target.flush()
        position = target.seek(0, os.SEEK_END)
        write_pieces(target, [bytes(offset - position), piece])


def _copy_span(target: int, span: Span) -> None:
    if span.mark is not None:
        with payloads.open_payload(span.path, span.mark) as source:
            _copy_bytes(source, target, span)
        return
    source = os.open(span.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        _copy_bytes(source, target, span)
    finally:
        os.close(source)


def _copy_bytes(source: int, target: int, span: Span) -> None:
    """Copy within the kernel where it can (a copying file system then shares the blocks), else by chunks."""
    offset, end = span.offset, span.offset + span.length
    copy = getattr(os, "copy_file_range", None)
    while copy is not None and offset < end:
        try:
            copied = copy(source, target, min(end - offset, 1 << 30), offset)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
                raise
            break
        if copied == 0:
            break
        offset += copied
    while offset < end:
        data = os.pread(source, min(_CHUNK, end - offset), offset)
        if not data:
            raise SourceError(f"{span.path} became shorter while padfix worked on it.", "Run again.")
        view = memoryview(data)
        while view:
            view = view[os.write(target, view) :]
        offset += len(data)
