"""PF106: pads that differ between the two sides of an axis, where the user wants them beside the operator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from onnx import TensorProto, helper

from padfix.geometry.padding import effective_kernel, separable_ceil_modes, taps_inside, window_output_size
from padfix.graph import attributes
from padfix.operators.reading import read, read_attributes_of
from padfix.operators.refusal import Meaningless, Refusal
from padfix.operators.table import PADDED
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Pair, Window
from padfix.results import Finding
from padfix.rules.base import Rewrite, Rule, Site
from padfix.rules.build.behind_pad import behind_pad
from padfix.rules.build.cropped_window import rewrite_cropped, why_not_cropped
from padfix.rules.build.explicit_pads import bare_node
from padfix.rules.build.pad_node import known_amounts, why_no_pad
from padfix.rules.build.transposed import rewrite_transposed

_TRANSPOSED = ("", "ConvTranspose")

_LARGEST_FACTOR = 1 << 18
"""Elements of the output up to which the correction of an average is written as a constant, and proven at full size."""


_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)


class AsymmetricPadding(Rule):
    """An operator pads the two sides of an axis by different amounts, which not every importer can read.

    SAME padding of an even total or a stride above 1 mostly ends up this way. ONNX has no trouble with it, so nothing
    is reported unless `--pads node` (or a target) asks for another form, which padfix then writes:

    - Convolutions and pools get a Pad in front and pad nothing themselves. The Pad holds what the operator would pad
      with: 0, for MaxPool minus infinity (integers: their least value), for quantized convolutions the zero point.
    - An AveragePool that does not count its pads is corrected by a constant factor for the windows at the border, or,
      where a size is dynamic, divided by the average of ones that are padded the same way.
    - The indices of a MaxPool are counted again in the unpadded input.
    - A QLinearAveragePool that does not count its pads can't be corrected after it has rounded: it gets equal pads, and
      a Slice behind it drops the windows that were not there before.
    - A ConvTranspose, whose pads cut elements off, cuts nothing, and a Slice behind it does.

    Operators with equal pads on both sides of each axis stay as they are. The Pad before a pool is written so that
    ONNX Runtime does not fuse it (see PF108). `--pads attribute` is the way back (see PF107).

    Refused: `ceil_mode` where the last window might start in the padding, which a Pad can't say, and a
    QLinearAveragePool whose kernel is too short for equal pads.

    Before, opset 17:

        main (float[1,3,32,32] X, float[8,3,3,3] W) => (float[1,8,16,16] Y) {
          Y = Conv <kernel_shape = [3, 3], pads = [0, 0, 1, 1], strides = [2, 2]> (X, W)
        }

    After:

        padded = Pad <mode = "constant"> (X, pads, zero)
        Y = Conv <kernel_shape = [3, 3], strides = [2, 2]> (padded, W)

    References:

    - The ONNX specification of Pad: <https://onnx.ai/onnx/operators/onnx__Pad.html>
    - The ONNX specification of AveragePool: <https://onnx.ai/onnx/operators/onnx__AveragePool.html>
    """

    code = "PF106"
    name = "asymmetric-padding"
    operators = PADDED | {_TRANSPOSED}
    opt_in: ClassVar[Mapping[str, Any]] = {"pads": "node"}

    def match(self, site: Site) -> Finding | None:
        """Return a finding for explicit pads that differ between the sides of an axis, if the user cares."""
        written = read_attributes_of(site.scope, site.node)
        if site.target.pads != "node" or written.mode:
            return None
        if "pads" in written.references:
            return self.finding(site, f"pads are decided by the callers of {site.scope.path}.", fixable=False)
        pads = written.pads or ()
        half = len(pads) // 2
        if pads[:half] == pads[half:] or isinstance(read(site.scope, site.node), Meaningless):
            return None
        return self.finding(
            site,
            f"pads={list(pads)} differ between the two sides of an axis.",
            f"padfix convert --pads node writes them as a {'Slice' if _is_transposed(site) else 'Pad'}.",
        )

    def refusal(self, site: Site) -> Refusal | None:
        """Return why a Pad or equal pads can't stand for these."""
        window = read(site.scope, site.node)
        if isinstance(window, Refusal):
            return window
        return _why_not(window, window.explicit_pads) if isinstance(window, Window) else None

    def minimum_opset(self, site: Site) -> int:
        """Return the version whose Pad takes the element type, or 9 where ones have to be made at run time."""
        window = read(site.scope, site.node)
        if not isinstance(window, Window):
            return 1
        if window.elem_type == TensorProto.BFLOAT16:
            return 13
        if window.elem_type not in (*_FLOATS, None) or window.operator.zero_point is not None:
            return 11
        if window.has_indices:
            return 10
        fixed = all(isinstance(each, int) for each in window.sizes)
        return 9 if window.leaves_pads_out and not fixed else 2

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the operator without pads behind a Pad, or before a Slice."""
        window = read(site.scope, site.node)
        if isinstance(window, TransposedWindow):
            return rewrite_transposed(site, window)
        if isinstance(window, Window):
            return _rewrite_window(site, window, window.explicit_pads)
        assert isinstance(window, Refusal)
        return window


def _is_transposed(site: Site) -> bool:
    return (site.domain, site.node.op_type) == _TRANSPOSED


def _rewrite_window(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Rewrite | Refusal:
    if _is_cropped(window):
        return rewrite_cropped(site, window, pairs)
    refusal = _why_not(window, pairs)
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


def _why_not(window: Window, pairs: tuple[Pair, ...]) -> Refusal | None:
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
