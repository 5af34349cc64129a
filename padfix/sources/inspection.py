"""The windowed and resampling operators of any source."""

from __future__ import annotations

from padfix.errors import UnsupportedError
from padfix.files.detection import detect
from padfix.files.urls import Place, Url
from padfix.results import OpRecord
from padfix.sources import SourceOptions


def inspect_source(path: Place, options: SourceOptions) -> list[OpRecord]:
    """Return a record of every windowed or resampling operator of a file.

    A TensorFlow source is listed with its own operators and names, before any conversion.

    Args:
        path: A file, or a SavedModel's folder; of a store only the graph of an ONNX file is fetched.
        options: What the user said about it.

    Raises:
        UsageError: The options say something that has no meaning for this kind of file.
        PadfixError: The file can't be read.
    """
    kind = detect(path)
    options.require_kind(kind)
    if kind == "onnx":
        from padfix.graph.input_shapes import fix_input_shapes
        from padfix.operators.inspection import inspect_model
        from padfix.sources.onnx_file import open_onnx

        model = open_onnx(path)
        fix_input_shapes(model.proto, options.shapes)
        return inspect_model(model)
    from padfix.sources.tf_inspect import inspect_tensorflow

    if isinstance(path, Url):
        raise UnsupportedError(f"{path} is no ONNX file.", "Fetch it first.")
    return inspect_tensorflow(path, options, kind)
