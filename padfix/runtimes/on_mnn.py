"""MNN, converted by its own converter; called as a function, because its command line wants the network."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from padfix.runtimes.adapter import Request


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
                value = MNN.expr.placeholder(list(array.shape), MNN.expr.NCHW)
                value.write(np.ascontiguousarray(array))
                given.append(value)
            found = net.forward(given)
            return [np.array(MNN.expr.convert(each, MNN.expr.NCHW).read()) for each in found]

    return run
