"""A pool of maxima as the largest of what its taps read, each of which is a Slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.geometry.padding import effective_kernel
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.operators.window import Pair, Window
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import reads_padding_only
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import known_amounts
from padfix.rules.build.trials import trials
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_PADS_AND_STEPS_SINCE = 11

_END = int(np.iinfo(np.int64).max)


def largest_of_slices(site: Site, window: Window, pairs: tuple[Pair, ...], pad: Traits) -> Form:
    """Return a pool whose pads are written out as Slices and Max along one axis after another.

    ``pad`` is what the Pad is like that stands before it where there are pads.
    """
    why_not = None
    if window.has_indices or window.operator.mask is not None:
        why_not = Refusal("a maximum of slices has no positions")
    elif site.elem_type(0) not in FLOATS:
        why_not = Refusal("a maximum of slices is of floats")
    elif window.written.ceil_mode:
        why_not = Refusal("a Pad before it would keep ceil_mode")
    elif None in window.kernel:
        why_not = Refusal("the length of its windows is not known")
    elif reads_padding_only(window, pairs):
        why_not = Refusal("some window lies in the pads with all its taps")

    def write() -> Rewrite:
        builder = site.builder(max(site.opset, _PADS_AND_STEPS_SINCE))
        value = builder.input(site.input_name(0))
        if not any(map(any, pairs)) and set(window.kernel) == set(window.strides) == {1}:
            value = builder.op("Identity", [value])
        if any(map(any, pairs)):
            least = np.array(-np.inf, helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
            amounts = builder.constant(np.array(known_amounts(window, pairs), np.int64), "pads")
            value = builder.op("Pad", [value, amounts, builder.constant(least, "least")], {"mode": "constant"})
        for axis, (_, taps, stride, dilation) in enumerate(window.axes, window.leading):
            value = _largest_along(builder, value, axis, taps or 1, stride, dilation)
        builder.output(site.node.output[0], value)
        return Rewrite(builder.build(), trials(site, window, same=False), exact=True)

    own = traits_of(site.scope, site.node) or {}
    data = {name: own[name] for name in ("alike", "channels-last") if name in own}
    rank = window.rank + 2
    plain = dict.fromkeys(("backwards", "axes-out-of-order", "takes-nothing", "first-axis", "behind-window"), False)
    slices: Traits = {**data, **plain, "strided": max(window.strides) > 1, "rank": rank}
    operators: Operators = (("Slice", slices), ("Max", {**data, "inputs": 2, "broadcasts": False, "rank": rank}))
    if any(map(any, pairs)):
        operators = (("Pad", {**data, **pad}), *operators)
    return Form("the largest of slices", operators, write, why_not, _PADS_AND_STEPS_SINCE)


def _largest_along(builder: FragmentBuilder, value: Any, axis: int, taps: int, stride: int, dilation: int) -> Any:
    """Return the largest of each window of one axis."""
    span = effective_kernel(taps, dilation)
    if (taps, stride) == (1, 1):
        return value
    result = None
    for tap in range(taps):
        end = tap * dilation - span + 1 or _END
        bounds = [builder.integers([each]) for each in (tap * dilation, end, axis, stride)]
        part = builder.op("Slice", [value, *bounds])
        result = part if result is None else builder.op("Max", [result, part])
    return result
