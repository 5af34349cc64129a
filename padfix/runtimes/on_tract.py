"""tract, with the shapes of its inputs told and all its own optimisations."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from padfix.runtimes.adapter import Request


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    import tract

    def run(request: Request) -> list[Any]:
        with tempfile.TemporaryDirectory() as name:
            file = Path(name, "model.onnx")
            file.write_bytes(request.model)
            model = tract.onnx().load(file)
        given = []
        for place in range(model.input_count()):
            array = request.feeds[model.input_name(place)]
            kind = {"float": "f", "int": "i", "uint": "u", "bool": "bool"}[array.dtype.name.rstrip("0123456789")]
            bits = "" if kind == "bool" else str(8 * array.dtype.itemsize)
            model.set_input_fact(place, ",".join([*map(str, array.shape), f"{kind}{bits}"]))
            given.append(array)
        return [each.to_numpy() for each in model.into_model().into_runnable().run(given)]

    return run
