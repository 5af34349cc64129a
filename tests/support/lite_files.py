"""TensorFlow Lite files for tests: made by TensorFlow's converter, changed by its schema, and proven by padfix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import padfix


def weights(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def lite(tf: Any, path: Path, function: Any, *specifications: Any, **settings: Any) -> Path:
    """Write a file with one function in it."""
    module = tf.Module()
    module.call = tf.function(function, input_signature=specifications)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.call.get_concrete_function()], module)
    for name, value in settings.items():
        setattr(converter, name, value)
    path.write_bytes(converter.convert())
    return path


def made(kind: Any, **fields: Any) -> Any:
    item = kind()
    for name, value in fields.items():
        setattr(item, name, value)
    return item


def changed(path: Path, change: Callable[[Any, Any], None]) -> Path:
    """Change the file's content by TensorFlow's schema."""
    import flatbuffers
    from tensorflow.lite.python import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(bytearray(path.read_bytes()), 0)
    change(schema, model)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(builder.Output())
    return path


def prove(path: Path, tmp_path: Path, **options: Any) -> padfix.ConvertReport:
    """Convert with the whole proof, and look once more for what is implicit."""
    report = padfix.convert(path, tmp_path / "out.onnx", **options)
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert report.verdict.reference == "tensorflow"
    assert not padfix.check(tmp_path / "out.onnx").findings
    return report
