"""A Pad before a convolution or pool: what it pads with, and how it stays apart from the operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.operators.refusal import Refusal
from padfix.operators.window import Pair, Window
from padfix.rules.base import Site
from padfix.rules.build.explicit_pads import flat, reads_padding_only

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_PADS_AS_INPUT_SINCE = 11
"""The opset from which on a Pad is told its amounts by an input."""


def lowest(elem_type: int) -> np.ndarray:
    """Return what MaxPool pads with: minus infinity, or an integer type's least value; a scalar of that type."""
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    if np.issubdtype(dtype, np.integer):
        return np.array(np.iinfo(dtype).min, dtype)
    return np.array(-np.inf, dtype)


def why_no_pad(window: Window, pairs: Sequence[Pair | None]) -> Refusal | None:
    """Return why a Pad before the operator can't stand for its own pads, or None."""
    known = [pair for pair in pairs if pair is not None]
    if window.has_indices and len(known) == len(pairs) and reads_padding_only(window, known):
        return Refusal(
            "Some window of this MaxPool lies in the padding with all its taps, so its second output, the position of "
            "the maximum in the input, has no value: correct the dilations, or stop using the indices."
        )
    if window.operator.mask is not None:
        return Refusal(
            f"A Pad before this {window.op_type} would have to pad its mask as well, which says of padding neither "
            "that it counts nor that it does not: fix the input's size (--shape), and the pads become an attribute."
        )
    if window.leaves_pads_out and window.operator.zero_point is not None:
        return Refusal(
            f"A Pad before this {window.op_type} would count as data, and quantized averages can't be corrected "
            "exactly: fix the input's size (--shape), or set count_include_pad=1 if the pads are meant to count."
        )
    if window.elem_type is None and window.operator.is_pool:
        return Refusal("The element type of the input is not known, so neither is the value to pad with: declare it.")
    return None


def known_amounts(window: Window, pairs: Sequence[Pair]) -> list[int]:
    """Return known pads as a Pad before the operator has them: those of the batch and the channels are 0."""
    return flat([(0, 0)] * window.leading + list(pairs) + [(0, 0)] * (2 - window.leading))


def padding_value(site: Site, builder: FragmentBuilder, window: Window) -> Any:
    """Return the scalar that the operator pads with."""
    if window.operator.is_maximum:
        assert window.elem_type is not None
        return builder.constant(lowest(window.elem_type), "lowest")
    zero_point = window.operator.zero_point
    if zero_point is not None and site.input_name(zero_point):
        known = site.input_type(zero_point)
        value = builder.input(site.input_name(zero_point))
        if known is not None and known.rank == 0:
            return value
        return builder.op("Reshape", [value, builder.constant(np.array([], np.int64), "scalar")])
    if window.elem_type is None:
        return builder.input("")
    return builder.constant(np.array(0, helper.tensor_dtype_to_np_dtype(window.elem_type)), "zero")


def padded(builder: FragmentBuilder, source: Any, pads: Any, value: Any, window: Window) -> Any:
    """Return ``source`` behind a Pad; ``pads`` is a list, or a computed vector."""
    fusible = window.domain == "" and window.operator.is_pool and not _is_lowest_below_zero(window)
    elem_type = window.elem_type or TensorProto.FLOAT
    result = padded_by(builder, source, pads, value)
    return no_op_pad(builder, result, 2 + window.rank, elem_type) if fusible else result


def padded_by(builder: FragmentBuilder, source: Any, pads: Any, value: Any = None) -> Any:
    """Return ``source`` behind a Pad with a value, zeros where there is none; ``pads`` is a list, or computed."""
    if isinstance(pads, list) and builder.opset < _PADS_AS_INPUT_SINCE:
        constant = float(value.values) if hasattr(value, "values") else 0.0
        return builder.op("Pad", [source], {"mode": "constant", "pads": pads, "value": constant})
    if isinstance(pads, list):
        pads = builder.constant(np.array(pads, np.int64), "pads")
    # The input axes of Pad-18 is left out: ONNX Runtime 1.31 can't push a Transpose through a Pad that has it.
    return builder.op("Pad", [source, pads, *([] if value is None else [value])], {"mode": "constant"})


def _is_lowest_below_zero(window: Window) -> bool:
    """Whether the operator is padded with something below zero, which ONNX Runtime never fuses."""
    return window.operator.is_maximum and bool(lowest(window.elem_type or TensorProto.FLOAT) < 0)


def ones_like(builder: FragmentBuilder, spatial_shape: Any, window: Window) -> Any:
    """Return ones of the computed ``spatial_shape``, for one channel of one image."""
    dtype = helper.tensor_dtype_to_np_dtype(window.elem_type or TensorProto.FLOAT)
    one = helper.make_tensor("value", window.elem_type or TensorProto.FLOAT, [1], np.ones(1, dtype))
    leading = builder.constant(np.array([1, 1], np.int64), "one_channel")
    shape = builder.op("Concat", [leading, spatial_shape], {"axis": 0})
    return builder.op("ConstantOfShape", [shape], {"value": one})


def spatial_shape_of(builder: FragmentBuilder, source: Any, window: Window) -> Any:
    """Return the lengths of the spatial axes of ``source``."""
    start, end = window.leading, window.leading + window.rank
    if builder.opset >= 15:
        return builder.op("Shape", [source], {"start": start, "end": end} if window.channels_last else {"start": start})
    return entries(builder, builder.op("Shape", [source]), start, end)


def entries(builder: FragmentBuilder, vector: Any, start: int, end: int) -> Any:
    """Return the entries of a vector from ``start`` to ``end``, excluded."""
    if builder.opset < 10:
        return builder.op("Slice", [vector], {"starts": [start], "ends": [end], "axes": [0]})
    bounds = [builder.constant(np.array([each], np.int64), hint) for hint, each in (("start", start), ("end", end))]
    return builder.op("Slice", [vector, *bounds])


def sliced(
    builder: FragmentBuilder,
    value: Any,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int],
    steps: Sequence[int] = (),
) -> Any:
    """Return the part of ``value`` from ``starts`` to ``ends`` (excluded; negative ones count from the end).

    ``steps`` are for opset 10 on.
    """
    listed: dict[str, Sequence[int]] = {
        "starts": starts,
        "ends": ends,
        "axes": axes,
        **({"steps": steps} if steps else {}),
    }
    if builder.opset < 10:
        return builder.op("Slice", [value], listed)
    bounds = [builder.constant(np.array(values, np.int64), hint) for hint, values in listed.items()]
    return builder.op("Slice", [value, *bounds])


def no_op_pad(builder: FragmentBuilder, padded: Any, rank: int, elem_type: int) -> Any:
    """Return ``padded`` behind a Pad of no elements; its value of 1, never used, keeps it from being fused.

    ONNX Runtime's PadFusion (on by default) moves the amounts of a constant Pad of zeros into the `pads` of the pool
    behind it. For a MaxPool that changes the numbers, and where the sum is as long as the kernel the pool doesn't load.

    ``rank`` counts all axes. It costs one copy of the padded image. A value of -0.0 in the first Pad would stop the
    fusion for nothing, but the sign comes through the pool, and a Reciprocal behind turns it into another infinity.
    The input ``axes`` of Pad-18 would stop it as well, but ONNX Runtime 1.31 can't push a Transpose through such a Pad.
    """
    nothing = [0] * (2 * rank)
    if builder.opset < 11:
        name = "paddings" if builder.opset < 2 else "pads"
        return builder.op("Pad", [padded], {name: nothing, "value": 1.0})
    one = np.array(1, helper.tensor_dtype_to_np_dtype(elem_type or TensorProto.FLOAT))
    constants = [builder.constant(np.array(nothing, np.int64), "no_pads"), builder.constant(one, "one")]
    return builder.op("Pad", [padded, *constants])
