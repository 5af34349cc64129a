"""MNN, converted by its own converter; called as a function, because its command line wants the network."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from padfix.runtimes.adapter import Request

_TYPES = {
    **dict.fromkeys(("float16", "float32", "float64"), ("float", np.float32)),
    **dict.fromkeys(("bool", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"), ("int", np.int32)),
    "uint8": ("uint8", np.uint8),
}
"""What MNN's converter makes of inputs, by NumPy's types; but its package for Python makes no arrays of int8."""


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    import _tools
    import MNN.expr
    import MNN.nn
    import onnx

    def run(request: Request) -> list[Any]:
        outputs = [each.name for each in onnx.load_from_string(request.model).graph.output]
        with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
            source, converted = Path(name, "model.onnx"), Path(name, "model.mnn")
            source.write_bytes(request.model)
            words = ["-f", "ONNX", "--modelFile", str(source), "--MNNModel", str(converted), "--bizCode", "padfix"]
            _tools.mnnconvert(["mnnconvert", *words])
            if not converted.exists():
                raise RuntimeError("the converter wrote no model")
            net = MNN.nn.load_module_from_file(str(converted), list(request.feeds), outputs)
            given = []
            for array in request.feeds.values():
                if array.dtype.name not in _TYPES:
                    raise RuntimeError(f"inputs of type {array.dtype.name} are not supported")
                kind, own = _TYPES[array.dtype.name]
                value = MNN.expr.placeholder(list(array.shape), MNN.expr.NCHW, getattr(MNN.expr, kind))
                value.write(np.ascontiguousarray(array, own))
                given.append(value)
            found = net.forward(given)
            return [np.array(MNN.expr.convert(each, MNN.expr.NCHW).read()) for each in found]

    return run
