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
from padfix.files.tensors import iterate_tensors, payload_size
from padfix.files.wire_format import Field, MemoryBytes, iterate_fields, length_header

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
    if any(map(payloads.is_outside, iterate_tensors(model.proto))):
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

        def whole(part: Field, child: str) -> tuple[list[Piece], int] | None:
            if not self._may_change(part):
                return None
            if child == wire_format.TENSOR:
                external = kind == wire_format.GRAPH and part.number == wire_format.INITIALIZER and not inlined
                return self._tensor(part, external=external)
            outside = kind == wire_format.MODEL and child != wire_format.GRAPH
            return self._message(part.start, part.end, child, inlined=inlined or outside)

        return wire_format.rewritten(self._source, start, end, kind, whole, self._source.read)

    def _may_change(self, part: Field) -> bool:
        if self._data_name is not None and part.end - part.start > EXTERNAL_FROM:
            return True
        return self._skeleton.find(_LOCATION_ENTRY, part.start, part.end) >= 0

    def _tensor(self, part: Field, *, external: bool) -> tuple[list[Piece], int]:
        serialized = self._skeleton[part.start : part.end]
        tensor = TensorProto.FromString(serialized)
        number, elsewhere = self._pointed(tensor)
        if external and self._data_name is not None:
            raw = elsewhere if number in wire_format.FIXED_WIDTH_PAYLOADS else self._decoded(tensor)
            if raw is not None and _length(raw) > EXTERNAL_FROM:
                return self._externalise(tensor, raw)
        if elsewhere is None:
            return [serialized], len(serialized)
        payloads.remove_pointer(tensor)
        return _with_field(tensor, number, elsewhere)

    def _pointed(self, tensor: TensorProto) -> tuple[int, Span | None]:
        """Return the payload's field and where its bytes are that are not in the skeleton; (0, None) if it has none."""
        if payloads.has_mark(tensor):
            mark = payloads.read_mark(tensor)
            return mark.field, Span(payloads.marked_file(self._model), mark.offset, mark.length, mark)
        if tensor.data_location == TensorProto.EXTERNAL:
            return wire_format.RAW_DATA, Span(
                *external_location(self._model.folder or Path(), tensor, self._model.path)
            )
        return 0, None

    def _decoded(self, tensor: TensorProto) -> bytes | None:
        """Return elements that are not raw as they stand, decoded in memory; None when they have to stay embedded."""
        size = payload_size(tensor)
        if size is None or size <= EXTERNAL_FROM or tensor.data_type == TensorProto.STRING:
            return None
        raw = payloads.load_payload(self._model, tensor)
        return raw if len(raw) == size else None

    def _externalise(self, tensor: TensorProto, raw: Piece) -> tuple[list[Piece], int]:
        offset = -(-self._data_end // ALIGNMENT) * ALIGNMENT
        self._data_end = offset + _length(raw)
        self._data.append((offset, raw))
        payloads.remove_pointer(tensor)
        for name in wire_format.PAYLOAD_NAMES:
            tensor.ClearField(name)
        entries = (("location", self._data_name or ""), ("offset", str(offset)), ("length", str(_length(raw))))
        tensor.external_data.extend(StringStringEntryProto(key=key, value=value) for key, value in entries)
        tensor.data_location = TensorProto.EXTERNAL
        data = tensor.SerializeToString()
        return [data], len(data)


def _length(piece: Piece) -> int:
    return piece.length if isinstance(piece, Span) else len(piece)


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
