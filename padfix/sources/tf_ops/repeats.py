"""Rows and columns that are repeated (``tf.repeat``, the UpSampling2D of Keras 3) as the resize that they are.

TensorFlow's graph adds an axis behind the one that is repeated, copies along it and reshapes it away: five axes for an
image, which few runtimes read well, where Keras 2 wrote one ResizeNearestNeighbor. A line is taken for a plane.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

_ROWS, _COLUMNS = 1, 2
_LINE, _IMAGE = 3, 4
"""Axes of a line and of an image, with batch and channels."""


@dataclass(frozen=True)
class _Repeat:
    """What is repeated: a tensor, and how often along its rows and columns."""

    data: str
    factors: tuple[int, int]


def join(ctx: Any) -> None:
    """Write one ResizeNearestNeighbor wherever a tf2onnx graph repeats the rows, the columns, or both, of images."""
    found = {node.output[0]: each for node in ctx.get_nodes() if (each := _repeat_of(ctx, node)) is not None}
    for name, each in found.items():
        node = ctx.get_node_by_output(name)
        data, factors = each.data, each.factors
        while data in found:
            before = found[data]
            data, factors = before.data, (factors[0] * before.factors[0], factors[1] * before.factors[1])
        _write(ctx, node, data, factors)


def _repeat_of(ctx: Any, node: Any) -> _Repeat | None:
    """Return what a node repeats; None where it is not the Reshape that ends a repetition."""
    wide = node.inputs[0] if node.type == "Reshape" else None
    tile = wide if wide is not None and wide.type == "Tile" and wide.inputs[1].is_const() else None
    wide = tile.inputs[0] if tile is not None else wide  # what is repeated once needs no copy
    if wide is None or wide.type != "ExpandDims" or not wide.inputs[1].is_const():
        return None
    data, shape = wide.input[0], ctx.get_shape(wide.input[0])
    if shape is None or len(shape) not in (_LINE, _IMAGE):
        return None
    copies = _values(tile.inputs[1]) if tile is not None else [1] * (len(shape) + 1)
    added = _values(wide.inputs[1])[0] % (len(shape) + 1)
    axis, times = added - 1, copies[added]
    if axis not in (_ROWS, _COLUMNS)[: len(shape) - 2] or times < 1 or np.prod(copies) != times:
        return None
    wanted = [length * (times if place == axis and length >= 0 else 1) for place, length in enumerate(shape)]
    if not (_is_told(node.inputs[1], wanted, axis) or _is_computed(node.inputs[1], data, wanted, axis, times)):
        return None
    return _Repeat(data, (times, 1) if axis == _ROWS else (1, times))


def _is_told(shape: Any, wanted: list[int], axis: int) -> bool:
    """Whether a Reshape is told the lengths that it should have, one of which it may find itself."""
    if not shape.is_const():
        return False
    told = _values(shape)
    if len(told) != len(wanted) or any(length < 0 and place != axis for place, length in enumerate(wanted[1:], 1)):
        return False
    return all(each in (-1, length) for each, length in zip(told, wanted, strict=True)) and told.count(-1) <= 1


def _is_computed(shape: Any, data: str, wanted: list[int], axis: int, times: int) -> bool:
    """Whether a Reshape is told the lengths of ``data`` but for one, which is so many times as long."""
    if shape.type != "ConcatV2" or len(shape.inputs) != _IMAGE:
        return False
    rank = len(wanted)

    def are_lengths(node: Any, first: int, last: int) -> bool:
        return node.type == "StridedSlice" and _slice_of_lengths(node, data, rank) == (first, last)

    before, there, behind, _ = shape.inputs
    for part, first, last in ((before, 0, axis), (behind, axis + 1, rank)):
        if not (_values(part) == wanted[first:last] if part.is_const() else are_lengths(part, first, last)):
            return False
    if there.is_const():
        return _values(there) == wanted[axis : axis + 1]
    inner = there.inputs[0] if there.type in ("ExpandDims", "Pack", "Reshape") else there
    if times == 1:
        return are_lengths(inner, axis, axis + 1)
    factors = [_values(each) for each in inner.inputs if each.is_const()]
    return bool(
        inner.type == "Mul" and factors == [[times]] and any(are_lengths(each, axis, axis + 1) for each in inner.inputs)
    )


def _slice_of_lengths(node: Any, data: str, rank: int) -> tuple[int, int] | None:
    """Return from which to which axis of ``data`` a StridedSlice takes the lengths; None where it takes others."""
    measured = node.inputs[0]
    if measured.type != "Shape" or measured.input[0] != data or not all(each.is_const() for each in node.inputs[1:]):
        return None
    (first, *_), (last, *_), (step, *_) = (_values(each) for each in node.inputs[1:4])
    masks = [node.get_attr_value(name) or 0 for name in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask")]
    if step != 1 or any(masks[2:]):
        return None
    return 0 if masks[0] else first % rank, rank if masks[1] else last


def _write(ctx: Any, node: Any, data: str, factors: tuple[int, int]) -> None:
    """Put a resize in the place of a node."""
    shape, result = list(ctx.get_shape(data)), ctx.get_shape(node.output[0])
    dtype, outputs, name = ctx.get_dtype(data), list(node.output), node.name
    is_line = len(shape) == _LINE
    ctx.remove_node(name)
    if factors == (1, 1):
        _made(ctx, "Identity", [data], dtype, result, None, name, outputs)
        return
    if is_line:
        shape = [*shape[:2], 1, shape[2]]
        data = _made(ctx, "ExpandDims", [data, _constant(ctx, _COLUMNS)], dtype, shape)
    size = _size(ctx, data, shape, factors)
    wide = None if result is None else [*result[:2], 1, *result[2:]] if is_line else result
    attributes = {"align_corners": False, "half_pixel_centers": False}
    if not is_line:
        _made(ctx, "ResizeNearestNeighbor", [data, size], dtype, wide, attributes, name, outputs)
        return
    resized = _made(ctx, "ResizeNearestNeighbor", [data, size], dtype, wide, attributes)
    _made(ctx, "Squeeze", [resized], dtype, result, {"squeeze_dims": [_COLUMNS]}, name, outputs)


def _size(ctx: Any, data: str, shape: list[int], factors: tuple[int, int]) -> str:
    """Return the name of the height and width of the result."""
    from onnx import TensorProto

    if min(shape[_ROWS : _COLUMNS + 1]) >= 0:
        return _constant(ctx, [shape[_ROWS] * factors[0], shape[_COLUMNS] * factors[1]])
    lengths = _made(ctx, "Shape", [data], TensorProto.INT32, [_IMAGE])
    bounds = [_constant(ctx, [each]) for each in (_ROWS, _COLUMNS + 1, 1)]
    plane = _made(ctx, "StridedSlice", [lengths, *bounds], TensorProto.INT32, [2])
    return _made(ctx, "Mul", [plane, _constant(ctx, factors)], TensorProto.INT32, [2])


def _made(
    ctx: Any,
    operator: str,
    inputs: list[str],
    dtype: int,
    shape: list[int] | None,
    attributes: dict[str, Any] | None = None,
    name: str | None = None,
    outputs: list[str] | None = None,
) -> str:
    """Add a node of TensorFlow; return the name of what it gives."""
    from tf2onnx import utils

    node = ctx.make_node(
        operator,
        inputs,
        attr=attributes or {},
        shapes=[shape],
        dtypes=[dtype],
        name=name or utils.make_name("repeat"),
        outputs=outputs,
        skip_conversion=False,
    )
    found: str = node.output[0]
    return found


def _constant(ctx: Any, values: int | Iterable[int]) -> str:
    from tf2onnx import utils

    given = values if isinstance(values, int) else list(values)
    found: str = ctx.make_const(utils.make_name("repeat"), np.array(given, np.int32)).output[0]
    return found


def _values(node: Any) -> list[int]:
    return [int(each) for each in np.ravel(node.get_tensor_value(as_list=False))]
