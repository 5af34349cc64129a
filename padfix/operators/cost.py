"""How much it takes to run one windowed or resampling operator, told before anything is allocated."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx import NodeProto

from padfix.geometry.padding import effective_kernel
from padfix.graph.scopes import ValueType
from padfix.operators.reading import read_at
from padfix.operators.refusal import TooLong
from padfix.operators.resample import Resample
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Window
from padfix.operators.written import SAME, Place


def needed(
    node: NodeProto,
    opset: int | None,
    type_of: Callable[[str], ValueType | None],
    constant: Callable[[str], np.ndarray | None],
) -> tuple[float, float]:
    """Return (elements of the largest array, multiplications), both rounded up generously.

    Nothing for operators that are not in the table, and for nodes that are refused without any work. The lengths of the
    node's data have to be known.
    """
    data = type_of(node.input[0]) if node.input else None
    lengths = [length for length in (data.shape or ()) if isinstance(length, int)] if data is not None else []
    if not lengths:
        return 0, 0
    match read_at(node, Place("", opset, type_of, constant)):
        case Resample() as resize:
            factors = resize.scales or ()
            elements = math.prod(lengths) * math.prod(max(1.0, abs(factor)) for factor in factors)
            return elements, elements
        case Window() as window:
            return _of_window(window, lengths)
        case TransposedWindow() as window:
            return _of_transposed(window, lengths)
        case TooLong():
            return math.inf, math.inf
    return 0, 0


def _of_window(window: Window, lengths: list[int]) -> tuple[float, float]:
    sizes = lengths[window.leading : window.leading + window.rank]
    taps = [each or 1 for each in window.kernel]
    outer = lengths[0] * max(lengths[-1 if window.channels_last else 1], window.maps or 1, window.channels or 1)
    spans = [effective_kernel(*pair) for pair in zip(taps, window.dilations, strict=True)]
    padded = [size + sum(pair) for size, pair in zip(sizes, window.explicit_pads, strict=True)]
    if window.auto_pad in SAME:
        padded = [size + span for size, span in zip(sizes, spans, strict=True)]
    windows = [length // stride + 1 for length, stride in zip(padded, window.strides, strict=True)]
    return outer * math.prod(padded), outer * math.prod(windows) * math.prod(taps)


def _of_transposed(window: TransposedWindow, lengths: list[int]) -> tuple[float, float]:
    taps = [each or 1 for each in window.kernel]
    outer = lengths[0] * max(lengths[1], window.channels or 1, window.maps_per_group or 1)
    full = [
        size * stride + effective_kernel(each, dilation) + more
        for size, stride, each, dilation, more in zip(
            lengths[2:], window.strides, taps, window.dilations, window.output_padding, strict=True
        )
    ]
    return outer * math.prod(full), outer * math.prod(lengths[2:]) * math.prod(taps)
