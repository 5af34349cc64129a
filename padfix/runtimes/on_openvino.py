"""OpenVINO on the processor, in single precision."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from padfix.runtimes.adapter import Request


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    import openvino

    core = openvino.Core()

    def run(request: Request) -> list[Any]:
        model = core.read_model(io.BytesIO(request.model))
        # Its default is bfloat16 where the processor has it, which is another number of digits, not a fault.
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        # An input that nothing reads is gone.
        known = {name for each in compiled.inputs for name in each.get_names()}
        for each in compiled.inputs:
            if not each.get_names() & request.feeds.keys():
                raise ValueError(f"it has an input by another name: {', '.join(sorted(each.get_names()))}")
        results = compiled({name: array for name, array in request.feeds.items() if name in known})
        return [np.array(results[output]) for output in compiled.outputs]

    return run
