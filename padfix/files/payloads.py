"""Payloads that stayed in the model's file: the marks that say where they are, and how to read them again."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]
from onnx import TensorProto

from padfix.errors import SourceError, UnsupportedError
from padfix.files import wire_format
from padfix.files.external_data import external_location
from padfix.files.model import Model
from padfix.files.tensors import inline_payload, payload_size
from padfix.files.urls import shown
from padfix.files.wire_format import WireError, length_header, read_chunks

MARK = "padfix"
"""Key of the metadata property that marks a tensor whose payload stayed in the model's file."""

DAMAGED = "Download or export it again, and compare its size with the original."


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


def has_mark(tensor: TensorProto) -> bool:
    """Whether the tensor's payload stayed in the model's file."""
    return bool(tensor.metadata_props) and tensor.metadata_props[-1].key == MARK


def is_outside(tensor: TensorProto) -> bool:
    """Whether the tensor's payload is in a data file, and was so in the source."""
    return tensor.data_location == TensorProto.EXTERNAL and not has_mark(tensor)


def read_mark(tensor: TensorProto) -> Mark:
    """Return what the mark of a marked tensor says."""
    return parse_mark(tensor.metadata_props[-1].value)


def parse_mark(value: str) -> Mark:
    """Return the mark that ``value`` is the text of."""
    field, offset, length, data_location, size, time = (int(word) for word in value.split())
    return Mark(field, offset, length, None if data_location < 0 else data_location, size, time)


def remove_pointer(tensor: TensorProto) -> None:
    """Make the tensor what it was before it was marked, or what it is with its data embedded, but for the payload."""
    if not has_mark(tensor):
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
        return
    data_location = read_mark(tensor).data_location
    del tensor.metadata_props[-1]
    del tensor.external_data[-3:]
    if data_location is None:
        tensor.ClearField("data_location")
    else:
        tensor.data_location = data_location  # type: ignore[assignment]


def require_whole(tensor: TensorProto) -> None:
    """Make sure that a tensor with its elements in the model's file holds as many as its shape and type say.

    Raises:
        SourceError: It does not.
    """
    wanted = payload_size(tensor)
    if has_mark(tensor):
        mark = read_mark(tensor)
        held = mark.length if mark.field in wire_format.FIXED_WIDTH_PAYLOADS else None
    else:
        held = len(tensor.raw_data) if tensor.HasField("raw_data") else None
    if wanted is not None and held is not None and held != wanted:
        raise SourceError(
            f"The tensor {tensor.name!r} of shape {list(tensor.dims)} takes {wanted} bytes, and {held} are there.",
            "The model is damaged; export it again.",
        )


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
        with open_file(path) as descriptor:
            return _exactly(tensor.name, descriptor, offset, length)
    return inline_payload(tensor)


def _exactly(name: str, descriptor: int, offset: int, length: int) -> bytes:
    try:
        return b"".join(read_chunks(descriptor, offset, length))
    except (WireError, OSError) as error:
        raise SourceError(f"The payload of the tensor {name!r} can't be read: {reason_of(error)}.", DAMAGED) from error


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
    with open_file(path) as descriptor:
        status = os.fstat(descriptor)
        if (status.st_size, status.st_mtime_ns) != (mark.file_size, mark.file_time):
            raise SourceError(f"{path} was changed while padfix worked on it.", "Run again when nothing writes to it.")
        yield descriptor


@contextlib.contextmanager
def open_file(path: Path) -> Iterator[int]:
    """Yield a descriptor of a regular file.

    Raises:
        SourceError: It can't be opened, or is no regular file.
    """
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError as error:
        raise missing(path) from error
    except (OSError, ValueError) as error:
        raise SourceError(
            f"{path} can't be opened: {reason_of(error)}.", "Check the path and its permissions."
        ) from error
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise SourceError(f"{path} is a folder, not an ONNX file.", "Name the .onnx file inside it.")
        if not stat.S_ISREG(mode):
            raise SourceError(f"{path} is not a regular file.", "Save it to a file first.")
        yield descriptor
    finally:
        os.close(descriptor)


def missing(path: Path) -> SourceError:
    """Return the error for a path that leads to nothing, which may have been a URL before it was made a path."""
    is_address = any(f"{part}:" in path.parts for part in ("http", "https", "ftp", "s3", "gs"))
    name = shown(str(path).replace(":/", "://", 1)) if is_address else path
    hint = "Only check, inspect and convert read URLs; in Python, strings." if is_address else "Check the path."
    return SourceError(f"{name} does not exist.", hint)


def reason_of(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, DecodeError):
        return "its bytes are not those of a protobuf message, or messages are nested too deep"
    return str(error)
