"""What the handlers of image operators share: sizes, layouts, and the ways to resample along height and width."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import FLOAT, INTEGER, Array, Builder, Tensor, join

_TO_CHANNELS_FIRST = (0, 3, 1, 2)
_TO_CHANNELS_LAST = (0, 2, 3, 1)


class Image:
    """The image input of a TensorFlow node, [batch, height, width, channels], and the size it is brought to.

    Attributes:
        data: The input.
        sizes: Height and width of the input, scalars.
        counts: Height and width of the output, scalars.
    """

    def __init__(self, builder: Builder, node: Any) -> None:
        self.builder = builder
        self.data = builder.read(node.input[0])
        self.sizes = self.data.lengths((1, 2))
        self._wanted = node.input[1]
        inferred = builder.ctx.get_shape(node.output[0]) or [-1] * 4
        wanted = builder.read(self._wanted)
        self.counts = [
            builder.integers(inferred[axis]) if inferred[axis] >= 0 else wanted.take(axis - 1).cast(INTEGER)
            for axis in (1, 2)
        ]

    def known(self, axis: int) -> tuple[int, int] | None:
        """Return input and output length of ``axis`` (0: height, 1: width) where both are known."""
        size, count = self.sizes[axis].known, self.counts[axis].known
        return None if size is None or count is None else (size, count)

    def factor(self, axis: int) -> int | None:
        """Return the whole number that the output is longer than the input by, where that is certain."""
        lengths = self.known(axis)
        if lengths is not None:
            return None if lengths[0] == 0 or lengths[1] % lengths[0] else lengths[1] // lengths[0]
        return _factor_in_graph(self.builder, self._wanted, axis, self.data.name)

    def in_float(self) -> Tensor:
        """Return the input as float32, in which TensorFlow interpolates whatever the type."""
        return self.data.cast(FLOAT)

    def weigh(self, matrices: list[Tensor]) -> Tensor:
        """Return the float32 image with a matrix [output, input] applied to height and one to width.

        Height becomes the rows of a plain product of two matrices, because ONNX Runtime broadcasts no left operand
        over an empty batch, nor a right one once it has fused the Transpose before the product.
        """
        result = self.in_float().transpose(_TO_CHANNELS_FIRST)
        rows, columns = matrices
        if not _is_identity(columns.array):
            result = result.matmul(columns.transpose((1, 0)))
        if _is_identity(rows.array):
            return result.transpose(_TO_CHANNELS_LAST)
        batch, channels = self.data.lengths((0, 3))
        height, width = self.counts
        lines = result.transpose((0, 1, 3, 2)).reshape([-1, self.sizes[0]]).matmul(rows.transpose((1, 0)))
        return lines.reshape([batch, channels, width, height]).transpose((0, 3, 2, 1))

    def resize(self, data: Tensor, attributes: dict[str, str]) -> Tensor:
        """Return ``data`` (the image, in any type) through an ONNX Resize of height and width."""
        builder = self.builder
        first = data.transpose(_TO_CHANNELS_FIRST)
        scales = self._scales()
        nothing = Tensor(builder, FLOAT, name="")
        if scales is not None:
            inputs = [first, nothing, builder.floats([1, 1, *scales])]
        else:
            outer = data.lengths((0, 3))
            inputs = [first, nothing, nothing, join(builder, [*outer, *self.counts])]
        if builder.ctx.opset < 13:
            # Until opset 12 the region of interest may not be left out.
            inputs[1] = builder.floats([])
            inputs = [builder.floats([]) if tensor is nothing else tensor for tensor in inputs]
        return builder.node("Resize", inputs, data.dtype, attributes).transpose(_TO_CHANNELS_LAST)

    def _scales(self) -> list[float] | None:
        """Return scales that give exactly the wanted size, so that no shape has to be computed; None without any."""
        scales = []
        for axis in (0, 1):
            lengths = self.known(axis)
            factor: float | None = self.factor(axis)
            if factor is None:
                if lengths is None:
                    return None
                size, count = lengths
                factor = float(np.float32(count) / np.float32(size))
                if Fraction(factor) * size != count:
                    return None
            scales.append(float(factor))
        return scales


class Pixels:
    """The pixels of all images in one list, so that one Gather reads any of them; ``owners`` are the images to read."""

    def __init__(self, image: Tensor, owners: Tensor, height: Tensor, width: Tensor, channels: Tensor) -> None:
        self._pixels = image.reshape([-1, channels])
        self._first = owners.cast(INTEGER).reshape([-1, 1, 1]) * height
        self._width = width

    def at(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the pixels at whole-numbered positions, [owners, rows, columns, channels]."""
        line = self._first + rows.cast(INTEGER)
        return self._pixels.take(line * self._width + columns.cast(INTEGER))


def _is_identity(matrix: Array | None) -> bool:
    return matrix is not None and matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix, np.eye(len(matrix)))


def _factor_in_graph(builder: Builder, wanted: str, axis: int, data: str) -> int | None:
    """Return k where element ``axis`` of ``wanted`` is the length of ``data`` times the constant k."""
    product, first, last = builder.producer(wanted), 1, 3
    if product is not None and product.type == "Concat" and len(product.input) == 2:
        product, first, last = builder.producer(product.input[axis]), 1 + axis, 2 + axis
    if product is None or product.type != "Mul":
        return None
    for length, factor in (product.input, reversed(product.input)):
        values = builder.read(factor).array
        if values is None or values.dtype.kind != "i" or not _is_part_of_shape(builder, length, data, first, last):
            continue
        value = int(values.reshape(-1)[axis if values.size == 2 else 0])
        return value if value >= 1 else None
    return None


def _is_part_of_shape(builder: Builder, part: str, data: str, first: int, last: int) -> bool:
    """Whether ``part`` is the lengths of axes ``first`` to ``last`` (not included) of the image ``data``."""
    picked = builder.producer(part)
    if picked is None or picked.type != "Slice" or len(picked.input) < 3:
        return False
    shape = builder.producer(picked.input[0])
    bounds = [builder.read(name).array for name in picked.input[1:3]]
    if shape is None or shape.type != "Shape" or shape.input[0] != data:
        return False
    found = [int(bound.reshape(-1)[0]) for bound in bounds if bound is not None and bound.size == 1]
    return [value + 4 if value < 0 else value for value in found] == [first, last]
