"""OpenCV's dnn module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from padfix.runtimes.adapter import Request


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    import cv2
    import onnx

    def run(request: Request) -> list[Any]:
        outputs = [each.name for each in onnx.load_from_string(request.model).graph.output]
        net = cv2.dnn.readNetFromONNX(np.frombuffer(request.model, np.uint8))
        for name, array in request.feeds.items():
            is_byte = array.dtype == bool and not hasattr(cv2, "CV_Bool")  # versions that take no booleans
            net.setInput(array.astype(np.uint8) if is_byte else array, name)
        if len(outputs) == 1:
            return [np.array(net.forward())]
        return [np.array(each) for each in net.forward(outputs)]

    return run
