"""Sizes at which nothing is computed: a window that is longer than what it reads gives no element.

The specification and TensorFlow go on with the empty tensor, ONNX Runtime refuses it or gives a pool one element. No
number can be compared then, so that nothing is learnt from such a size.
"""

from __future__ import annotations

from collections.abc import Mapping

from padfix.files.model import Model
from padfix.operators.inference import infer
from padfix.operators.reading import operator_of
from padfix.proof.executors import Array


def leaves_a_window_empty(model: Model, arrays: Mapping[str, Array]) -> bool:
    """Whether a convolution, pool or resize reads or gives an image of no elements.

    Args:
        model: An ONNX model; it is not run.
        arrays: What it is fed; others may be among them.
    """
    shapes = {value.name: arrays[value.name].shape for value in model.proto.graph.input if value.name in arrays}
    for scope in infer(model, shapes):
        for node in scope.nodes:
            images = [node.input[0], node.output[0]] if operator_of(node) is not None else []
            if any(0 in (known.shape or ())[1:] for each in images if (known := scope.type_of(each)) is not None):
                return True
    return False
