"""TensorFlow Lite, of what onnx2tf makes of a model: inputs as they are, outputs with their channels last."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from padfix.runtimes.adapter import Request


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    import onnx
    import onnx2tf
    from ai_edge_litert.interpreter import Interpreter

    def run(request: Request) -> list[Any]:
        outputs = [each.name for each in onnx.load_from_string(request.model).graph.output]
        with tempfile.TemporaryDirectory() as name:
            source = Path(name, "model.onnx")
            source.write_bytes(request.model)
            onnx2tf.convert(
                input_onnx_file_path=str(source),
                output_folder_path=name,
                keep_shape_absolutely_input_names=list(request.feeds),
                not_use_onnxsim=True,
                non_verbose=True,
            )
            interpreter = Interpreter(model_path=str(Path(name, "model_float32.tflite")))
            run_signature = interpreter.get_signature_runner()
            named = _by_names(request.feeds, list(run_signature.get_input_details()))
            found = {name: np.array(array) for name, array in run_signature(**named).items()}
            arrays = _by_names(found, outputs).values()
        return [_channels_second(array, shape) for array, shape in zip(arrays, request.shapes, strict=True)]

    return run


def _by_names(arrays: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return arrays under names that differ from theirs at most by the characters that TensorFlow does not take."""
    plain = {re.sub(r"\W", "_", name): array for name, array in arrays.items()}
    return {name: plain[re.sub(r"\W", "_", name)] for name in names}


def _channels_second(array: Any, shape: tuple[int, ...]) -> Any:
    """Return an array with its channels where ONNX has them, wherever the shape allows that."""
    moved = np.moveaxis(array, -1, 1) if array.ndim > 2 else array
    return moved if moved.shape == tuple(shape) else array
