"""A convolution or pool whose own pads become a Pad before it, corrected where the pads did not count."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from padfix.geometry.padding import effective_kernel, separable_ceil_modes, taps_inside, window_output_size
from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.window import Pair, Window
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.behind_pad import behind_pad
from padfix.rules.build.cropped_window import rewrite_cropped, why_not_cropped
from padfix.rules.build.explicit_pads import bare_node, flat, is_too_long
from padfix.rules.build.pad_node import known_amounts, why_no_pad
from padfix.rules.build.trials import trials

_LARGEST_FACTOR = 1 << 18
"""Elements of the output up to which the correction of an average is written as a constant, and proven at full size."""

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)


def beside_opset(window: Window) -> int:
    """Return the version whose Pad takes the element type, or 9 where ones have to be made at run time."""
    if window.elem_type == TensorProto.BFLOAT16:
        return 13
    if window.elem_type not in (*_FLOATS, None) or window.operator.zero_point is not None:
        return 11
    if window.has_indices:
        return 10
    fixed = all(isinstance(each, int) for each in window.sizes)
    return 9 if window.leaves_pads_out and not fixed else 2


def rewrite_beside(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Rewrite | Refusal:
    """Return the operator without pads behind a Pad that adds ``pairs``."""
    if _is_cropped(window):
        return rewrite_cropped(site, window, pairs)
    refusal = why_not_beside(window, pairs)
    if refusal is not None:
        return refusal
    ceil_mode = bool(min(_ceil_modes(window, pairs)))
    node = bare_node(site)
    if ceil_mode:
        attributes.set_integer(node, "ceil_mode", 1)
        if window.operator.is_average and window.operator.zero_point is not None:
            # Of a window that ceil mode lets reach out, it counts all taps.
            attributes.set_integer(node, "count_include_pad", 1)
    factor = _correction(window, pairs, ceil_mode=ceil_mode) if window.leaves_pads_out else None
    added = known_amounts(window, pairs)
    opset = site.scope.opset
    return behind_pad(site, window, pairs, node, lambda *_: added, opset=opset, same=False, factor=factor)


def _is_cropped(window: Window) -> bool:
    """Whether the window keeps pads, equal ones, because a Pad before it would count as data."""
    return window.leaves_pads_out and window.operator.zero_point is not None


def rewrite_counting(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Rewrite:
    """Return an average that counts its pads, which are zeros, times what it counted too many."""
    factor = _correction(window, pairs, ceil_mode=False)
    assert factor is not None
    builder, node = site.builder(), bare_node(site)
    attributes.set_integers(node, "pads", flat(pairs))
    attributes.set_integer(node, "count_include_pad", 1)
    average = builder.original(node, [builder.input(site.input_name(0))])
    builder.output(site.node.output[0], builder.op("Mul", [average, builder.constant(factor, "counted")]))
    return Rewrite(builder.build(), trials(site, window, same=False, as_declared=True))


def why_not_counting(window: Window, pairs: tuple[Pair, ...]) -> Refusal | None:
    """Return why an average has no such form; or None."""
    if not window.leaves_pads_out or window.operator.zero_point is not None or window.written.ceil_mode:
        return Refusal("it leaves no pads out of an average, or has ceil_mode")
    if is_too_long(window, pairs) or _correction(window, pairs, ceil_mode=False) is None:
        return Refusal("its pads are as long as the kernel, or how long it is depends on a length (--shape)")
    return None


def why_not_beside(window: Window, pairs: tuple[Pair, ...]) -> Refusal | None:
    """Return why a Pad before the operator, or equal pads, can't stand for ``pairs``; or None."""
    if _is_cropped(window):
        return why_not_cropped(window, pairs)
    refusal = why_no_pad(window, pairs)
    if refusal is not None or _ceil_modes(window, pairs):
        return refusal
    return Refusal(
        "With ceil_mode=1 the last window may start in the end padding, where the pool drops it but a pool behind a "
        "Pad would not: fix the input's size (--shape), or keep the pads (--pads attribute)."
    )


def _ceil_modes(window: Window, pairs: tuple[Pair, ...]) -> frozenset[bool]:
    """Return the ceil modes with which the pool behind the Pad has the same windows."""
    if not window.written.ceil_mode:
        return frozenset({False})
    options = [
        separable_ceil_modes(size if isinstance(size, int) else None, taps or 1, stride, dilation, *pair)
        for (size, taps, stride, dilation), pair in zip(window.axes, pairs, strict=True)
    ]
    return reduce(frozenset.__and__, options)


def _correction(window: Window, pairs: tuple[Pair, ...], *, ceil_mode: bool) -> np.ndarray | None:
    """Return (taps / taps on the input) of each window, shape ``[1, 1, *output]``; None where none would fit."""
    factors = []
    for (size, taps, stride, dilation), (begin, end) in zip(window.axes, pairs, strict=True):
        if not isinstance(size, int) or taps is None or size + begin + end < effective_kernel(taps, dilation):
            return None
        padded = size + begin + end
        output = window_output_size(padded, taps, stride, dilation, ceil_mode=ceil_mode)
        # ONNX's shape inference forgets that ceil mode may drop a window, and then no constant fits what it infers.
        inferred = -(-(padded - effective_kernel(taps, dilation)) // stride) + 1 if ceil_mode else output
        if output != inferred or output > _LARGEST_FACTOR:
            return None
        counted = taps_inside(padded, taps, stride, dilation, output=output)
        inside = taps_inside(size, taps, stride, dilation, begin, output=output)
        with np.errstate(divide="ignore"):  # a window that lies in the padding averages nothing: 0 * inf is no number
            factors.append(np.array(counted, np.float64) / np.array(inside, np.float64))
    if math.prod(len(each) for each in factors) > _LARGEST_FACTOR:
        return None
    product = reduce(np.multiply.outer, factors)
    dtype: Any = helper.tensor_dtype_to_np_dtype(window.elem_type or TensorProto.FLOAT)
    factor: np.ndarray = product[None, None].astype(dtype)
    return factor
