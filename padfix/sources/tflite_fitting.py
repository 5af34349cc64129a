"""Shapes that TensorFlow Lite's kernels don't look at: what they compute of shapes that don't fit has no meaning.

Such a run reads memory that nobody wrote, or gives numbers that TensorFlow refuses to compute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from padfix.geometry.padding import same_output_size
from padfix.sources.tflite_schema import operators

_TRANSPOSED = ("TRANSPOSE_CONV", "CONV_3D_TRANSPOSE")


@dataclass(frozen=True)
class Fitting:
    """An operator of the first subgraph whose shapes have to fit, and the numbers of its tensors."""

    kind: str
    name: str
    options: Any
    inputs: Sequence[int]
    output: int


def fittings(model: Any) -> list[Fitting]:
    """Return the operators whose kernels don't look at the shapes of what they read."""
    graph = model.subgraphs[0]
    return [
        Fitting(kind, graph.tensors[each.outputs[0]].name.decode(), each.builtinOptions, each.inputs, each.outputs[0])
        for each, kind in operators(model, graph)
        if kind == "CONCATENATION" or kind in _TRANSPOSED
    ]


def require_fitting(loaded: Any, looked_at: Sequence[Fitting]) -> None:
    """Refuse a run of an interpreter in which the shapes of what an operator read did not fit.

    Raises:
        RuntimeError: Naming the operator and the shapes.
    """
    shapes = {item["index"]: item["shape"].tolist() for item in loaded.get_tensor_details()} if looked_at else {}
    for each in looked_at:
        (_require_joined if each.kind == "CONCATENATION" else _require_undone)(each, shapes)


def _require_joined(each: Fitting, shapes: Mapping[int, list[int]]) -> None:
    joined, axis = [shapes[index] for index in each.inputs], each.options.axis
    if len({tuple(np.delete(shape, axis)) for shape in joined}) > 1:
        words = " and ".join(map(str, joined))
        raise RuntimeError(f"CONCATENATION {each.name!r} joins along axis {axis} what does not fit: {words}.")


def _require_undone(each: Fitting, shapes: Mapping[int, list[int]]) -> None:
    """Refuse data that the convolution, which this operator undoes, does not make of a result of this size."""
    kernel, data, result = (shapes[index] for index in (*each.inputs[1:3], each.output))
    is_flat = each.kind == "TRANSPOSE_CONV"
    taps, channels = (kernel[1:3], (kernel[0], kernel[3])) if is_flat else (kernel[:3], tuple(kernel[3:]))
    strides = [getattr(each.options, f"stride{axis}") for axis in ("HW" if is_flat else "DHW")]
    undone = [
        same_output_size(size, stride) if each.options.padding == 0 else (size - length) // stride + 1
        for size, length, stride in zip(result[1:-1], taps, strides, strict=True)
    ]
    fitting = [result[0], *undone, channels[1]]
    if result[-1] != channels[0]:
        raise RuntimeError(
            f"{each.kind} {each.name!r} gives {result[-1]} channels, and its filter is for {channels[0]}: TensorFlow "
            "Lite knows no groups there."
        )
    if data != fitting:
        raise RuntimeError(
            f"{each.kind} {each.name!r} gives {result} with a filter of {kernel}, of which a convolution makes "
            f"{fitting}; the data is {data}."
        )
