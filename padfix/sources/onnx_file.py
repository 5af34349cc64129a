"""An ONNX file as a source."""

from __future__ import annotations

from pathlib import Path

from padfix.files.external_data import external_location
from padfix.files.model import Model
from padfix.files.payloads import is_outside, require_whole
from padfix.files.skeleton import read_model
from padfix.files.tensors import iterate_tensors
from padfix.files.urls import Place
from padfix.graph.validation import require_sound


def open_onnx(path: Place) -> Model:
    """Read an ONNX file; its weights stay in the file.

    Raises:
        SourceError: There is no such file, it is not a whole ONNX model, or one that can't mean anything.
        UnsupportedError: It is written for a newer operator set than is known.
    """
    model = read_model(path)
    require_sound(model.proto, str(path))
    return model


def require_data(model: Model) -> int:
    """Make sure that the elements of every tensor are there; return how many bytes are in files of external data.

    Raises:
        SourceError: Such a file is not there, whole, and safe to read, or a tensor holds another number of elements
            than its shape says.
    """
    total = 0
    for tensor in iterate_tensors(model.proto):
        require_whole(tensor)
        if is_outside(tensor):
            total += external_location(model.folder or Path(), tensor, model.path)[2]
    return total
