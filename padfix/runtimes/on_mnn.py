"""MNN, converted by its own converter; called as a function, because its command line wants the network."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from padfix.runtimes.adapter import Request

_TYPES = {"float32": "float", "int32": "int", "int64": "int"}
"""MNN's types of inputs, by NumPy's; it holds long integers in 32 bits."""


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    import _tools
    import MNN.expr
    import MNN.nn
    import onnx

    def run(request: Request) -> list[Any]:
        outputs = [each.name for each in onnx.load_from_string(request.model).graph.output]
        with tempfile.TemporaryDirectory() as name:
            source, converted = Path(name, "model.onnx"), Path(name, "model.mnn")
            source.write_bytes(request.model)
            words = ["-f", "ONNX", "--modelFile", str(source), "--MNNModel", str(converted), "--bizCode", "padfix"]
            _tools.mnnconvert(["mnnconvert", *words])
            if not converted.exists():
                raise RuntimeError("the converter wrote no model")
            net = MNN.nn.load_module_from_file(str(converted), list(request.feeds), outputs)
            given = []
            for array in request.feeds.values():
                kind = _TYPES.get(array.dtype.name)
                if kind is None:
                    raise RuntimeError(f"inputs of type {array.dtype.name} are not supported")
                value = MNN.expr.placeholder(list(array.shape), MNN.expr.NCHW, getattr(MNN.expr, kind))
                value.write(np.ascontiguousarray(array, np.int32 if kind == "int" else None))
                given.append(value)
            found = net.forward(given)
            return [np.array(MNN.expr.convert(each, MNN.expr.NCHW).read()) for each in found]

    return run
