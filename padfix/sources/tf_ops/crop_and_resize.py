"""CropAndResize by gathering the pixels around each sampling point.

tf2onnx writes a Loop of Resize with a region of interest, which ONNX Runtime ignores on an axis whose crop is as long
as the image, rounds halves down where TensorFlow rounds them up, and leaves a crop of one pixel unconverted.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.image import Pixels
from padfix.sources.tf_ops.tensor import FLOAT, INTEGER, Builder, Tensor, count_up
from padfix.sources.tf_ops.windows import clamped, within

OPERATORS = ("CropAndResize",)


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the crops; nothing is copied but the pixels that are sampled."""
    image, boxes, owners, wanted = (builder.read(name) for name in node.input)
    method = node.get_attr_str("method") if node.get_attr("method") else "bilinear"
    outside = float(node.get_attr_value("extrapolation_value", 0.0))
    height, width, channels = image.lengths((1, 2, 3))
    counts = [wanted.take(axis).cast(INTEGER) for axis in (0, 1)]
    rows = _positions(boxes, 0, height, counts[0], [1, -1, 1])
    columns = _positions(boxes, 1, width, counts[1], [1, 1, -1])
    seen = within(rows, height) & within(columns, width)
    source = Pixels(image, owners, height, width, channels)

    def at(rows: Tensor, columns: Tensor) -> Tensor:
        return source.at(rows, columns).cast(FLOAT)

    if method == "nearest":
        result = at(clamped(rows, height).round_away(), clamped(columns, width).round_away())
    else:
        rows, columns = clamped(rows, height), clamped(columns, width)
        up, left = rows.floor(), columns.floor()
        down, right = rows.ceil(), columns.ceil()
        along = (columns - left).reshape([0, 0, 0, 1])
        top, bottom = (
            begin + (at(row, right) - begin) * along for row, begin in ((row, at(row, left)) for row in (up, down))
        )
        result = top + (bottom - top) * (rows - up).reshape([0, 0, 0, 1])
    return builder.choose(seen.reshape([0, 0, 0, 1]), result, outside)


def _positions(boxes: Tensor, axis: int, size: Tensor, count: Tensor, place: list[int]) -> Tensor:
    """Return the sampled positions along ``axis``, with TensorFlow's roundings: one line for each box.

    ``place`` is the shape of a line. The boxes get their axes without a Reshape: where there is none, a length that is
    left open, by us or by ONNX Runtime's optimiser, could be any.
    """
    builder = boxes.builder
    begin, end = (boxes.take(builder.integers([[corner]]), 1) for corner in (axis, axis + 2))
    last = (size - 1).cast(FLOAT)
    steps = (count - 1).cast(FLOAT).maximum(1.0)
    spread = begin * last + count_up(builder, count).reshape(place) * ((end - begin) * last / steps)
    # A single sample lies in the middle of the box.
    return builder.choose(count.greater(1), spread, (begin + end) * 0.5 * last)
