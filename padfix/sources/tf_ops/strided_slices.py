"""StridedSlice, the slices of Python, whose ends tf2onnx computes in float32 where they are not constants.

There an end beyond 2**24 is another one: a quarter of an hour of sound is that long. Nor does it know an ellipsis where
the rank is unknown, and a start before the first element, with a step back, gives that element instead of none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import INTEGER, Array, Builder, Tensor, join

OPERATORS = ("StridedSlice",)

_FIRST_OPSET = 13
"""The one from which on the axes of a Squeeze are an input."""

_LAST, _FIRST = (int(limit) for limit in (np.iinfo(np.int64).max, np.iinfo(np.int64).min))
"""Ends beyond everything, on both sides."""


def convert(builder: Builder, node: Any) -> Tensor | None:
    """Return a slice that tf2onnx gets wrong, and let it convert the others.

    Axes behind an ellipsis are counted from the last, so that no rank has to be known.
    """
    from tf2onnx.onnx_opset.tensor import StridedSlice

    opset = builder.ctx.opset
    if opset < _FIRST_OPSET or _is_plain(builder, node):
        (StridedSlice.version_10 if 10 <= opset < _FIRST_OPSET else StridedSlice.version_1)(builder.ctx, node)
        return None
    data, *limits = (builder.read(each) for each in node.input)
    counts = [shape[0] for each in node.input[1:] if (shape := builder.ctx.get_shape(each)) and shape[0] >= 0]
    if not counts:
        raise ValueError(f"the number of axes that {node.name} slices is not known")
    spec = _Specification(node, counts[0], limits[2].array)
    if spec.sliced:
        begin, end, strides = (each.cast(INTEGER).take(np.array(spec.sliced)) for each in limits)
        axes = [spec.axis_of[place] for place in spec.sliced]
        starts, ends = _limits(data.lengths, spec, axes, begin, end, strides)
        data = builder.node("Slice", [data, starts, ends, builder.integers(axes), strides], data.dtype)
    if spec.dropped:
        data = builder.node("Squeeze", [data, builder.integers(spec.dropped)], data.dtype)
    return data.unsqueeze(spec.added) if spec.added else data


def _limits(
    lengths: Callable[[Sequence[int]], list[Tensor]],
    spec: _Specification,
    axes: Sequence[int],
    begin: Tensor,
    end: Tensor,
    strides: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return where each axis starts and ends, counted as ONNX does."""
    builder, is_backward = begin.builder, strides.less(0)
    dropped, open_begin, open_end = (
        np.array([bool(mask >> place & 1) for place in spec.sliced])
        for mask in (spec.shrink, spec.begin & ~spec.shrink, spec.end & ~spec.shrink)
    )
    starts = _where(open_begin, builder.choose(is_backward, builder.integers(_LAST), 0), begin)
    ends = _where(open_end, builder.choose(is_backward, builder.integers(_FIRST), _LAST), end)
    if dropped.any():
        ends = _where(dropped, builder.choose(begin.equal(-1), _LAST, begin + 1), ends)
    is_possible = ~(open_begin | dropped)
    if begin.array is not None:
        is_possible &= begin.array < 0
    if is_backward.array is not None:
        is_possible &= is_backward.array
    if is_possible.any():
        is_before = (starts + join(builder, lengths(axes))).less(0) & is_backward
        ends = builder.choose(is_before & builder.constant(is_possible, bool), 0, ends)
    return starts, ends


def _where(mask: Array, chosen: Tensor, other: Tensor) -> Tensor:
    if mask.all():
        return chosen
    return other.builder.choose(other.builder.constant(mask, bool), chosen, other) if mask.any() else other


def _is_plain(builder: Builder, node: Any) -> bool:
    """Whether limits and steps are constants, steps are one, and no axis is added: a plain Slice in any case."""
    begin, end, strides = (builder.read(each).array for each in node.input[1:])
    if begin is None or end is None or strides is None or builder.ctx.get_shape(node.input[0]) is None:
        return False
    return bool((strides == 1).all()) and not node.get_attr_value("new_axis_mask", 0)


class _Specification:
    """What each place of the lists stands for.

    Attributes:
        begin: Bits of places whose begin is left out.
        end: Likewise.
        shrink: Bits of places that take one element, whose axis goes.
        axis_of: The axis of the data that a place stands for.
        sliced: Places that leave something out.
        dropped: Axes of the data that go.
        added: Axes of the result that are new.
    """

    def __init__(self, node: Any, count: int, strides: Array | None) -> None:
        masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
        self.begin, self.end, ellipsis, new, shrink = (node.get_attr_value(name, 0) for name in masks)
        self.shrink = shrink & ~new
        middle = ellipsis.bit_length() - 1 if ellipsis else count
        sides = range(middle), range(middle + 1, count)
        self.axis_of = dict(_counted(*([place for place in side if not new >> place & 1] for side in sides)))
        result = dict(_counted(*([place for place in side if not self.shrink >> place & 1] for side in sides)))
        whole = self.begin & self.end & ~self.shrink
        self.sliced = [
            place for place in self.axis_of if not whole >> place & 1 or strides is None or strides[place] != 1
        ]
        self.dropped = [axis for place, axis in self.axis_of.items() if self.shrink >> place & 1]
        self.added = [axis for place, axis in result.items() if new >> place & 1]


def _counted(before: Sequence[int], behind: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield places with their axes, those behind the ellipsis counted from the last."""
    yield from ((place, axis) for axis, place in enumerate(before))
    yield from ((place, axis - len(behind)) for axis, place in enumerate(behind))
