"""What gives the data of which a node takes every n-th element: tract takes them there, before they are computed.

Its ``Downsample`` (core/src/ops/downsample/mod.rs) is moved up from a Slice with steps, or from a convolution whose
windows leave elements out, through whatever keeps the axis apart and is read by nothing else. It may not be moved
through a Softmax along that axis; a convolution takes over the step, but not where the first element is; a Reshape that
makes the axis of others, and an Expand, end in an error.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.elementwise import ELEMENTWISE
from padfix.operators.reading import read
from padfix.operators.slices import slice_amounts, sliced_axes
from padfix.operators.window import Window
from padfix.operators.written import SAME

NOTHING = "none"
SOFTMAX, WINDOW, RESHAPE, EXPAND = "softmax", "window", "reshape", "expand"

_FARTHEST = 64
"""Tensors that are looked at."""

_PASSING = ELEMENTWISE | {"BatchNormalization", "DequantizeLinear", "PRelu", "QuantizeLinear"}
_SOFTMAX_ALONG_ONE_AXIS_SINCE = 13
_REORDERING = frozenset({"DepthToSpace", "Flatten", "Reshape", "SpaceToDepth", "Squeeze", "Unsqueeze"})
_REDUCING = "Reduce"


@dataclasses.dataclass(frozen=True)
class _Skip:
    """Every ``step``-th element along an axis of a tensor is taken, from ``start`` on (None: from where is not known).

    A negative step begins at the end, wherever that is.
    """

    name: str
    axis: int
    step: int
    start: int | None = 0

    def of(self, name: str, axis: int | None = None, start: int | None = 0) -> _Skip:
        """Return the same of another tensor, where it begins ``start`` elements later."""
        begun = None if self.start is None or start is None else self.start + start
        return dataclasses.replace(self, name=name, axis=self.axis if axis is None else axis, start=begun)


def what_a_slice_skips(scope: Scope, node: NodeProto) -> str:
    """Return what a Slice skips results of: one of the words above."""
    shape = _shape(scope, node.input[0])
    axes, amounts = sliced_axes(scope, node, len(shape)) if shape else None, slice_amounts(scope, node)
    if axes is None or amounts is None or "steps" not in amounts:
        return NOTHING
    skips = [
        _Skip(node.input[0], axis, step, _begin(shape[axis], start) if step > 0 else 0)
        for axis, step, start in zip(axes, amounts["steps"], amounts["starts"], strict=False)
        if step != 1
    ]
    return _worst(scope, node, skips)


def what_a_window_skips(scope: Scope, node: NodeProto, window: Window, *, explicit: bool = False) -> str:
    """Return what the windows of a convolution skip results of: one of the words above.

    With SAME nothing is moved; ``explicit`` asks what becomes of its pads when they are written out.
    """
    axes = [] if window.auto_pad in SAME and not explicit else skipping_axes(window)
    return _worst(scope, node, [_Skip(node.input[0], window.leading + axis, window.strides[axis]) for axis in axes])


def skipping_axes(window: Window) -> list[int]:
    """Return the spatial axes along which no window of a convolution reads an element between two strides."""
    if window.op_type != "Conv":
        return []
    pairs = window.same_pads() if window.auto_pad in SAME else window.explicit_pads
    return [
        axis
        for axis, (_, taps, stride, dilation) in enumerate(window.axes)
        if stride > 1 and pairs[axis] == (0, 0) and (taps == 1 or dilation % stride == 0)
    ]


def _worst(scope: Scope, skipping: NodeProto, skips: list[_Skip]) -> str:
    waiting, seen, arrived = list(skips), set[_Skip](), Counter[tuple[str, int, int]]()
    while waiting and len(seen) < _FARTHEST:
        skip = waiting.pop()
        if skip in seen:
            continue
        node = scope.own_producer(skip.name)
        if node is None or normal_domain(node.domain) or not node.input:
            continue
        others = [each for each in scope.consumers(skip.name) if each is not skipping and _is_used(scope, each)]
        waits = sum(not _skips_alike(scope, each, skip) for each in others)
        if waits != arrived[skip.name, skip.axis, skip.step]:
            continue  # others read the rest, as far as is known by now
        seen.add(skip)
        trouble = _trouble(scope, node, skip)
        if trouble is not None:
            return trouble
        before = [each for each in _before(scope, node, skip) if each.name]
        arrived.update({(each.name, each.axis, each.step) for each in before})
        waiting += before
    return NOTHING


def _skips_alike(scope: Scope, node: NodeProto, skip: _Skip) -> bool:
    """Whether a convolution leaves out the same elements."""
    window = read(scope, node) if node.op_type == "Conv" and node.input[0] == skip.name else None
    axis = skip.axis - window.leading if isinstance(window, Window) else -1
    return isinstance(window, Window) and axis in skipping_axes(window) and window.strides[axis] == skip.step


def _is_used(scope: Scope, node: NodeProto) -> bool:
    return any(map(scope.is_used, node.output))


def _trouble(scope: Scope, node: NodeProto, skip: _Skip) -> str | None:
    """Return what a node is that the step may not be moved through; None where it may, and where it is not moved."""
    rank = len(_shape(scope, skip.name))
    if node.op_type in ("Softmax", "LogSoftmax") and skip.step != -1:
        if scope.opset < _SOFTMAX_ALONG_ONE_AXIS_SINCE:
            return SOFTMAX if skip.axis >= attributes.integer(node, "axis", 1) % (rank or 1) else None
        return SOFTMAX if skip.axis == attributes.integer(node, "axis", -1) % (rank or 1) else None
    if node.op_type == "Conv" and skip.step > 0:
        window = read(scope, node)
        is_off = skip.start is None or skip.start % skip.step != 0
        return WINDOW if is_off and isinstance(window, Window) and _has_taps(window, skip) else None
    if node.op_type in _REORDERING:
        return RESHAPE if _kept_axis(scope, node, skip) is None else None
    if _expands(scope, node) and skip.step != -1:
        return EXPAND
    return None


def _has_taps(window: Window, skip: _Skip) -> bool:
    """Whether it is a convolution along the axis, and no product with a matrix."""
    return skip.axis >= window.leading and set(window.kernel) != {1}


def _expands(scope: Scope, node: NodeProto) -> bool:
    """Whether it repeats single elements only, and some."""
    before, after = _shape(scope, node.input[0]), _shape(scope, node.output[0])
    if node.op_type == "Expand":
        return before != after or not before
    pairs = list(zip(before, after, strict=False))
    return node.op_type == "Tile" and before != after and all(one in (other, 1) for one, other in pairs)


def _before(scope: Scope, node: NodeProto, skip: _Skip) -> Iterator[_Skip]:
    """Yield what is skipped of a node's inputs, where a step is moved through it."""
    data = node.input[0]
    shape, rank = _shape(scope, data), len(_shape(scope, skip.name))
    if node.op_type in _PASSING:
        for name in node.input[:1] if node.op_type == "BatchNormalization" else node.input:
            read = _shape(scope, name)
            axis = skip.axis - rank + len(read)
            if name and axis >= 0 and (read[axis] != 1 or _shape(scope, skip.name)[skip.axis] == 1):
                yield skip.of(name, axis)
    elif node.op_type in ("Softmax", "LogSoftmax"):
        yield skip.of(data)
    elif node.op_type == "Transpose":
        order = attributes.integers(node, "perm") or range(rank)[::-1]
        yield skip.of(data, order[skip.axis])
    elif node.op_type in _REORDERING:
        yield skip.of(data, _kept_axis(scope, node, skip))
    elif node.op_type == "Slice":
        yield from _before_slice(scope, node, skip)
    elif node.op_type == "Split":
        yield from _before_split(scope, node, skip)
    elif node.op_type == "Concat" and attributes.integer(node, "axis", 1) % (rank or 1) != skip.axis:
        yield from map(skip.of, node.input)
    elif node.op_type in ("CumSum", "Pad") and shape and shape[skip.axis] == _shape(scope, skip.name)[skip.axis]:
        yield skip.of(data)
    elif node.op_type == "MatMul" and skip.axis == rank - 2 and len(shape) > 1:
        yield skip.of(data, len(shape) - 2)
    elif node.op_type == "Conv":
        yield from _before_window(scope, node, skip)
    elif node.op_type.startswith(_REDUCING) and attributes.integer(node, "keepdims", 1):
        yield skip.of(data)
    elif node.op_type.startswith(_REDUCING):
        kept = _kept_axis(scope, node, skip)
        yield from () if kept is None else (skip.of(data, kept),)


def _before_slice(scope: Scope, node: NodeProto, skip: _Skip) -> Iterator[_Skip]:
    shape = _shape(scope, node.input[0])
    axes, amounts = sliced_axes(scope, node, len(shape)) if shape else None, slice_amounts(scope, node)
    if axes is None or amounts is None:
        return
    for position, axis in enumerate(axes):
        if axis == skip.axis:
            if (amounts.get("steps") or [1] * len(axes))[position] == 1 and skip.step > 0:
                yield skip.of(node.input[0], start=_begin(shape[axis], amounts["starts"][position]))
            return
    yield skip.of(node.input[0])


def _before_split(scope: Scope, node: NodeProto, skip: _Skip) -> Iterator[_Skip]:
    """Yield what is skipped of what is split; each part that is used reads all of it."""
    if sum(map(scope.is_used, node.output)) > 1:
        return
    if attributes.integer(node, "axis", 0) % len(_shape(scope, skip.name)) != skip.axis:
        yield skip.of(node.input[0])
    elif skip.step > 0:
        yield skip.of(node.input[0], start=_begin_of_part(scope, node, skip))


def _before_window(scope: Scope, node: NodeProto, skip: _Skip) -> Iterator[_Skip]:
    """Yield the step of a convolution that takes it over, as it then skips elements of its own data."""
    window = read(scope, node)
    if not isinstance(window, Window) or not _has_taps(window, skip) or skip.step < 0:
        return
    axis = skip.axis - window.leading
    strides = tuple(each * (skip.step if number == axis else 1) for number, each in enumerate(window.strides))
    if axis in skipping_axes(dataclasses.replace(window, strides=strides)):
        yield dataclasses.replace(skip, name=node.input[0], step=strides[axis], start=0)


def _kept_axis(scope: Scope, node: NodeProto, skip: _Skip) -> int | None:
    """Return which axis of the input is the one of the output; None where it is made of others, or not known."""
    before, after = _shape(scope, node.input[0]), _shape(scope, skip.name)
    if not before or not after or node.op_type in ("DepthToSpace", "SpaceToDepth"):
        return skip.axis if skip.axis == 0 and before else None
    if after[skip.axis] == 1 and len(before) != len(after):
        return None  # lengths don't tell which of several axes of one element it is, or whether it is a new one
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same] is not None:
        same += 1
    if skip.axis < same:
        return skip.axis
    behind = len(after) - skip.axis
    if (
        behind <= len(before)
        and before[len(before) - behind :] == after[skip.axis :]
        and None not in after[skip.axis :]
    ):
        return len(before) - behind
    return None


def _begin(length: object, start: int) -> int | None:
    if start >= 0:
        return start
    return max(0, length + start) if isinstance(length, int) else None


def _begin_of_part(scope: Scope, node: NodeProto, skip: _Skip) -> int | None:
    """Return where the part of a Split begins; None where one before it has a length that is not known."""
    begin = 0
    for name in node.output[: list(node.output).index(skip.name)]:
        shape = _shape(scope, name)
        length = shape[skip.axis] if shape else None
        if not isinstance(length, int):
            return None
        begin += length
    return begin


def _shape(scope: Scope, name: str) -> tuple[object, ...]:
    known = scope.type_of(name) if name else None
    return () if known is None or known.shape is None else tuple(known.shape)
