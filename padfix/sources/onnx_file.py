"""An ONNX file as a source."""

from __future__ import annotations

from pathlib import Path

from padfix import wire
from padfix.model import Model


def open_onnx(path: Path) -> Model:
    """Read an ONNX file; its weights stay in the file.

    Raises:
        SourceError: There is no such file, or it is not a whole ONNX model.
    """
    return wire.read_model(path)
