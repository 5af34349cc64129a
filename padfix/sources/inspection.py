"""The windowed and resampling operators of any source."""

from __future__ import annotations

from pathlib import Path

from padfix.files.detection import Kind, detect
from padfix.files.stores.copies import local_copy
from padfix.files.stores.listing import is_folder
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
    if isinstance(path, Url) and (is_folder(path) or detect(path) != "onnx"):
        with local_copy(path) as copy:
            return inspect_source(copy, options)
    kind: Kind = "onnx" if isinstance(path, Url) else detect(path)
    options.require_kind(kind)
    if kind == "onnx":
        from padfix.graph.input_shapes import fix_input_shapes
        from padfix.operators.inspection import inspect_model
        from padfix.sources.onnx_file import open_onnx

        model = open_onnx(path)
        fix_input_shapes(model.proto, options.shapes)
        return inspect_model(model)
    from padfix.sources.tf_inspect import inspect_tensorflow

    assert isinstance(path, Path)
    return inspect_tensorflow(path, options, kind)
