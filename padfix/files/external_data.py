"""Payloads in files beside the model: where they are, after making sure that reading them is safe."""

from __future__ import annotations

from pathlib import Path

from onnx import TensorProto

from padfix.errors import SourceError
from padfix.files.containment import is_inner, require_plain
from padfix.files.tensors import payload_size


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
    location = location_of(tensor)
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


def location_of(tensor: TensorProto) -> str:
    """Return where a tensor says that its data are: in the last such entry, as onnx reads them; "" without any."""
    entries: dict[str, str] = {entry.key: entry.value for entry in tensor.external_data}
    return entries.get("location", "")


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


def _entry_number(name: str, entries: dict[str, str], key: str, default: int) -> int:
    text = entries.get(key, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise SourceError(
            f"The external data of the tensor {name!r} has {key} {text!r}, which is not a number of bytes.",
            "The model is damaged; export it again.",
        )
    return int(text)
