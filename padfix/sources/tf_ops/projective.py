"""ImageProjectiveTransformV2 and V3: images turned, sheared and moved (Keras' ``affine_transform`` and its layers).

Each pixel of the result is read where a projective map sends it. tf2onnx lacks them, and ONNX's GridSample counts
positions from -1 to 1, whose rounding moves a nearest pixel and the edge that decides what is filled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from padfix.sources.tf_ops.image import Pixels
from padfix.sources.tf_ops.tensor import FLOAT, INTEGER, Builder, Tensor, count_up
from padfix.sources.tf_ops.windows import clamped

OPERATORS = ("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the pixels around each position, mixed as TensorFlow's kernel does; positions are float32 there too."""
    image, transforms, wanted = (builder.read(name) for name in node.input[:3])
    fill = builder.read(node.input[3]) if len(node.input) > 3 else builder.floats(0)
    batch, height, width, channels = image.lengths((0, 1, 2, 3))
    owners = count_up(builder, batch, INTEGER)
    source = Pixels(image, owners, height, width, channels)
    projection, across, down = _projected(builder, transforms, [wanted.take(axis).cast(INTEGER) for axis in (0, 1)])
    held = _HELD[node.get_attr_str("fill_mode") if node.get_attr("fill_mode") else "CONSTANT"]
    down, across = held(down, height), held(across, width)
    filling = fill.cast(image.dtype)

    def read(rows: Tensor, columns: Tensor, seen: Tensor) -> Tensor:
        # Not a number is neither, so that it is never a position.
        seen = seen & rows.less(height.cast(FLOAT)) & columns.less(width.cast(FLOAT))
        row, column = (builder.choose(seen, places, 0.0) for places in (rows, columns))
        return builder.choose(seen.reshape([0, 0, 0, 1]), source.at(row, column), filling)

    if node.get_attr_str("interpolation") == "NEAREST":
        # What lies at -0.5 is rounded away from zero, and so off the image.
        result = read(down.round_away(), across.round_away(), down.greater(-0.5) & across.greater(-0.5))
    else:
        top, left = down.floor(), across.floor()
        bottom, right = top + 1.0, left + 1.0
        from_left, from_right = (each.reshape([0, 0, 0, 1]) for each in (across - left, right - across))
        above, below = (
            from_right * _in_float(read, row, left) + from_left * _in_float(read, row, right) for row in (top, bottom)
        )
        from_top, from_bottom = (each.reshape([0, 0, 0, 1]) for each in (down - top, bottom - down))
        result = (from_bottom * above + from_top * below).cast(image.dtype)
    return builder.choose(projection.equal(0.0).reshape([0, 0, 0, 1]), filling, result)


def _in_float(read: Callable[[Tensor, Tensor, Tensor], Tensor], rows: Tensor, columns: Tensor) -> Tensor:
    return read(rows, columns, rows.greater(-0.5) & columns.greater(-0.5)).cast(FLOAT)


def _projected(builder: Builder, transforms: Tensor, counts: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the divisor, column and row for each pixel of the result, [transforms, rows, columns]."""
    rows, columns = (
        count_up(builder, count).reshape(place) for count, place in zip(counts, ([1, -1, 1], [1, 1, -1]), strict=True)
    )
    entries = [transforms.take(builder.integers([[entry]]), 1) for entry in range(8)]
    projection = entries[6] * columns + entries[7] * rows + 1.0
    across, down = (
        (entries[first] * columns + entries[first + 1] * rows + entries[first + 2]) / projection for first in (0, 3)
    )
    return projection, across, down


def _reflected(position: Tensor, size: Tensor) -> Tensor:
    """Return positions reflected at the ends, the elements there once more: [dcba|abcd|dcba]."""
    builder, length = position.builder, size.cast(FLOAT)
    period = length * 2.0
    before = period * (position * -1.0 / period).floor() + position
    before = builder.choose(before.less(length * -1.0), before + period, before * -1.0 - 1.0)
    behind = position - period * (position / period).floor()
    behind = builder.choose(behind.less(length), behind, period - behind - 1.0)
    return _by_side(position, size, before, behind)


def _wrapped(position: Tensor, size: Tensor) -> Tensor:
    """Return positions on the other side for those off the image: [abcd|abcd|abcd]."""
    length = size.cast(FLOAT)
    steps = (length - 1.0).maximum(1.0)
    before = position + length * ((position * -1.0 / steps).floor() + 1.0)
    return _by_side(position, size, before, position - length * (position / steps).floor())


def _by_side(position: Tensor, size: Tensor, before: Tensor, behind: Tensor) -> Tensor:
    choose = position.builder.choose
    beyond = choose(position.greater((size - 1).cast(FLOAT)), behind, position)
    return clamped(choose(position.less(0.0), before, beyond), size)


_HELD: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "CONSTANT": lambda position, size: position,
    "NEAREST": clamped,
    "REFLECT": _reflected,
    "WRAP": _wrapped,
}
"""How each mode brings a position onto the image."""
