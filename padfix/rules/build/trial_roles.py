"""What inputs of ONNX's operators a node is tried on, by role, where they are no mere data.

Indices lie within the axis that they mean, shapes and axes fit the data, divisors and steps are not zero, a variance is
not negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from padfix.graph import attributes
from padfix.operators.elementwise import REDUCTIONS
from padfix.operators.recurrent_layers import RECURRENT
from padfix.rules.base import Site

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Wanted:
    """An input to make up for a node under trial; ``data`` is the shape of the node's first input."""

    site: Site
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    data: tuple[int, ...]
    random: np.random.Generator

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def axis(self) -> int:
        """The length of the axis of the data that the attribute ``axis`` means."""
        number = attributes.integer(self.site.node, "axis", 0)
        return self.data[number] if -len(self.data) <= number < len(self.data) else 1

    @property
    def output(self) -> tuple[int, ...] | None:
        """The shape of the first output, or None when not all of it is known."""
        known = self.site.scope.type_of(self.site.node.output[0]) if self.site.node.output else None
        return None if known is None else known.lengths

    def below(self, limit: int) -> Array:
        """Return indices below ``limit``."""
        return self.random.integers(0, max(1, limit), self.shape)


Role = Callable[[Wanted], npt.ArrayLike]
"""Makes the values of an input; they are cast to its type and brought into its shape."""


def _always(value: int) -> Role:
    return lambda wanted: np.full(wanted.shape, value)


def _counted(up: int, down: int) -> Role:
    """Return a begin or an end, by whether a Range counts up or down."""

    def made(wanted: Wanted) -> npt.ArrayLike:
        step = wanted.site.constant(2)
        return np.full(wanted.shape, down if step is not None and (step < 0).any() else up)

    return made


def _uniform(low: float, high: float) -> Role:
    return lambda wanted: wanted.random.uniform(low, high, wanted.shape)


def _factors(wanted: Wanted) -> npt.ArrayLike:
    """Return numbers of both signs about 1, of which many can be multiplied in any order."""
    signs = wanted.random.choice((-1, 1), wanted.shape)
    if wanted.dtype.kind != "f":
        return signs if wanted.dtype.kind == "i" else np.abs(signs)
    return signs * wanted.random.uniform(0.75, 1.25, wanted.shape)


def _along_axis(wanted: Wanted) -> npt.ArrayLike:
    return wanted.below(wanted.axis)


def _classes(wanted: Wanted) -> npt.ArrayLike:
    return wanted.below(wanted.data[1] if len(wanted.data) > 1 else 1)


def _rows_of_angles(wanted: Wanted) -> npt.ArrayLike:
    """Return positions for which there are cosines and sines."""
    known = wanted.site.input_type(1)
    rows = known.shape[0] if known is not None and known.shape else 1
    return wanted.below(rows if isinstance(rows, int) else 1)


def _each_axis(wanted: Wanted) -> npt.ArrayLike:
    return np.arange(wanted.count)


def _distinct_along_axis(wanted: Wanted) -> npt.ArrayLike:
    """Return indices of which no two mean the same element, as far as the axis is long enough."""
    shape, axis = wanted.shape, attributes.integer(wanted.site.node, "axis", 0)
    if not shape:
        return wanted.below(wanted.axis)
    order = wanted.random.permutation(max(wanted.axis, shape[axis]))[: shape[axis]] % max(1, wanted.axis)
    return np.moveaxis(np.broadcast_to(order, (*np.delete(shape, axis), shape[axis])), -1, axis)


def _tuples(wanted: Wanted) -> npt.ArrayLike:
    """Return indices of several axes of the data at once; no two alike where the data has enough elements."""
    shape, start = wanted.shape, attributes.integer(wanted.site.node, "batch_dims", 0)
    lengths = wanted.data[start : start + (shape[-1] if shape else 1)]
    flat = np.resize(wanted.random.permutation(max(1, math.prod(lengths))), math.prod(shape[:-1]))
    return np.stack(np.unravel_index(flat, lengths), axis=-1) if lengths else np.zeros((flat.size, 0))


def _same_shape(wanted: Wanted) -> npt.ArrayLike:
    """Return the output's shape where it is known, else one that the data goes into."""
    length, known = wanted.count, wanted.output
    if known is None or len(known) != length:
        known = wanted.data if len(wanted.data) == length else (*[1] * (length - 1), -1)[-length:]
    return known


def _copied(wanted: Wanted) -> npt.ArrayLike:
    """Return the output's shape where it is known, else one of several copies along each axis of one element."""
    length, known = wanted.count, wanted.output
    if known is not None and len(known) == length:
        return known
    behind = [3 if each == 1 else each for each in wanted.data[len(wanted.data) - min(length, len(wanted.data)) :]]
    return [2] * (length - len(behind)) + behind


def _divisors(wanted: Wanted) -> npt.ArrayLike:
    if wanted.dtype.kind not in "iu":
        return wanted.random.standard_normal(wanted.shape) * 3 + 0.1
    values = wanted.random.integers(1, 6, wanted.shape)
    return values * wanted.random.choice([-1, 1], wanted.shape) if wanted.dtype.kind == "i" else values


def _boxes(wanted: Wanted) -> npt.ArrayLike:
    """Return regions whose ends lie above their starts; MaxRoiPool's begin with the image they lie in."""
    shape = wanted.shape
    corners = np.sort(wanted.random.uniform(0, 4, (*shape[:-1], 2, 2)), axis=-2).reshape(*shape[:-1], 4)
    image = np.zeros((*shape[:-1], shape[-1] - 4)) if shape else corners
    return np.concatenate([image, corners], axis=-1)


def _images(wanted: Wanted) -> npt.ArrayLike:
    """Return the size of small images, one for each of the data's first axis."""
    return [*wanted.data[:1], *[3] * (wanted.count - 1)]


def _lengths(wanted: Wanted) -> npt.ArrayLike:
    """Return how long each sequence of a batch is, up to the whole time axis."""
    node = wanted.site.node
    time = 1 if attributes.integer(node, "layout", 0) else attributes.integer(node, "time_axis", 0)
    return wanted.random.integers(1, wanted.data[time] + 1, wanted.shape)


def _pieces(wanted: Wanted) -> npt.ArrayLike:
    """Return lengths that add up to the axis that is split."""
    if not wanted.shape:
        return max(1, wanted.axis // 2)
    pieces = np.full(wanted.count, wanted.axis // wanted.count)
    pieces[-1] += wanted.axis - pieces.sum()
    return pieces


def _past_the_end(wanted: Wanted) -> npt.ArrayLike:
    """Return indices in and beyond the range of OneHot, negative ones too."""
    depth = wanted.site.constant(1)
    limit = int(depth.reshape(-1)[0]) if depth is not None and depth.size else 3
    return wanted.random.integers(0 if wanted.dtype.kind == "u" else -limit - 1, limit + 2, wanted.shape)


def _scales(wanted: Wanted) -> npt.ArrayLike:
    """Return factors that double the last two axes."""
    return [1.0] * max(0, wanted.count - 2) + [2.0] * min(2, wanted.count)


def _scales_or_region(wanted: Wanted) -> npt.ArrayLike:
    if wanted.site.opset < 11:
        return _scales(wanted)
    return [0.0] * (wanted.count // 2) + [1.0] * (wanted.count - wanted.count // 2)


ROLES: dict[tuple[str, int], Role] = {
    ("AffineGrid", 1): _images,
    ("BatchNormalization", 4): _uniform(0.25, 2.0),
    ("BitShift", 1): _always(1),
    ("CenterCropPad", 1): _same_shape,
    ("ConstantOfShape", 0): _always(2),
    ("CumSum", 1): _always(0),
    ("DFT", 1): _always(4),
    ("DequantizeLinear", 1): _uniform(0.25, 2.0),
    ("Div", 1): _divisors,
    ("Expand", 1): _copied,
    ("Gather", 1): _along_axis,
    ("GatherElements", 1): _along_axis,
    ("GatherND", 1): _tuples,
    ("GridSample", 1): _uniform(-1, 1),
    ("MaxRoiPool", 1): _boxes,
    ("MaxUnpool", 1): _each_axis,
    ("MelWeightMatrix", 0): _always(4),
    ("Mod", 1): _divisors,
    ("NegativeLogLikelihoodLoss", 1): _classes,
    ("NonMaxSuppression", 0): _boxes,
    ("NonMaxSuppression", 2): _always(3),
    ("NonMaxSuppression", 3): _uniform(0, 1),
    ("OneHot", 0): _past_the_end,
    ("OneHot", 1): _always(3),
    ("Pad", 1): _always(1),
    ("QLinearMatMul", 1): _uniform(0.25, 2.0),
    ("QLinearMatMul", 4): _uniform(0.25, 2.0),
    ("QLinearMatMul", 6): _uniform(0.25, 2.0),
    ("QuantizeLinear", 1): _uniform(0.25, 2.0),
    ("Range", 0): _counted(1, 9),
    ("Range", 1): _counted(9, 1),
    ("Range", 2): _always(2),
    ("ReduceProd", 0): _factors,
    ("Reshape", 1): _same_shape,
    ("Resize", 1): _scales_or_region,
    ("Resize", 2): _scales,
    ("Resize", 3): _same_shape,
    ("ReverseSequence", 1): _lengths,
    ("RoiAlign", 1): _boxes,
    ("RoiAlign", 2): _always(0),
    ("RotaryEmbedding", 3): _rows_of_angles,
    ("Scatter", 1): _distinct_along_axis,
    ("ScatterElements", 1): _distinct_along_axis,
    ("ScatterND", 1): _tuples,
    ("Slice", 1): _always(0),
    ("Slice", 2): _always(2),
    ("Slice", 3): _each_axis,
    ("Slice", 4): _always(1),
    ("SoftmaxCrossEntropyLoss", 0): _uniform(-8, 8),
    ("SoftmaxCrossEntropyLoss", 1): _classes,
    ("Split", 1): _pieces,
    ("SplitToSequence", 1): _pieces,
    ("Tile", 1): _always(2),
    ("TopK", 1): _always(1),
    ("Trilu", 1): _always(1),
    ("Unsqueeze", 1): _each_axis,
    ("Upsample", 1): _scales,
    **{(name, 4): _lengths for name in RECURRENT},
    **{(name, position): _uniform(-0.25, 0.25) for name in RECURRENT for position in (1, 2)},
    **{(name, 1): _each_axis for name in (*REDUCTIONS, "Squeeze")},
}
"""By operator and position of the input. ``CumSum``'s axis and the like may be any, so they are the simplest."""
