"""ONNX Runtime on the processor, with all optimisations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from padfix.runtimes.adapter import Request


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    import onnxruntime

    def run(request: Request) -> list[Any]:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(request.model, options, providers=["CPUExecutionProvider"])
        return list(session.run(None, dict(request.feeds)))

    return run
