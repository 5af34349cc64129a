"""Output shapes of windowed and resampling operators where onnx.shape_inference is silent or wrong.

It is wrong for ``Resize`` and ``Upsample`` (the product ``length * scale`` is taken in double precision, runtimes take
it in single precision), for ``ConvTranspose`` with SAME (it ignores ``output_padding`` and cuts a kernel shorter than
the stride), for pools with ``pads`` beside ``auto_pad`` (the runtime's rule is that ``auto_pad`` wins), and silent for
a sparse kernel without ``kernel_shape``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from padfix.geometry.padding import effective_kernel, same_output_size, window_output_size
from padfix.geometry.transposed import clamped_same_axis, natural_output_size
from padfix.graph import attributes
from padfix.graph.lengths import Length, length_of
from padfix.graph.scopes import Dimension, Scope, ValueType, normal_domain

Shape = tuple[Dimension, ...]
TypeOf = Callable[[str], ValueType | None]

SAME = ("SAME_UPPER", "SAME_LOWER")
POOLS = frozenset({"MaxPool", "AveragePool", "LpPool"})
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
_SAMPLERS = frozenset({"Resize", "Upsample"})


@dataclass(frozen=True)
class _Like:
    """The operator of ONNX that one of ONNX Runtime's computes the shape of; ``weights`` is an input's position."""

    op_type: str
    weights: int | None = None
    channels_last: bool = False


CONTRIB_OPERATORS = {
    ("com.microsoft", "FusedConv"): _Like("Conv", 1),
    ("com.microsoft", "NhwcConv"): _Like("Conv", 1, channels_last=True),
    ("com.microsoft", "NhwcFusedConv"): _Like("Conv", 1, channels_last=True),
    ("com.microsoft", "NhwcMaxPool"): _Like("MaxPool", channels_last=True),
    ("com.microsoft", "QLinearAveragePool"): _Like("AveragePool"),
    ("com.microsoft", "QLinearConv"): _Like("Conv", 3),
    ("com.microsoft", "ConvTransposeWithDynamicPads"): _Like("ConvTranspose", 1),
}
"""Operators of ONNX Runtime; they have no schema in ONNX, so that its shape inference says nothing."""

COVERED = frozenset(("", op_type) for op_type in POOLS | _CONVOLUTIONS | _SAMPLERS) | frozenset(CONTRIB_OPERATORS)
"""(Normalised domain, operator) of what :func:`output_shape` knows."""


def output_shape(scope: Scope, node: NodeProto, type_of: TypeOf) -> Shape | None:
    """Return the shape of the first output of a windowed or resampling operator, or None when it can't be told.

    Args:
        scope: Where the node stands; gives constants and the opset.
        node: A node of :data:`COVERED`.
        type_of: The types of the node's inputs by name.
    """
    if not node.input or any(each.ref_attr_name for each in node.attribute):
        return None
    known = type_of(node.input[0])
    if known is None or known.shape is None:
        return None
    if normal_domain(node.domain):
        return _contrib(scope, node, known.shape, type_of)
    if node.op_type in _SAMPLERS:
        try:
            return _sampled(scope, node, known.shape)
        except (OverflowError, ValueError):  # a product that is infinite or not a number
            return None
    weights = _shape_of(node, 1, type_of) if node.op_type in _CONVOLUTIONS else None
    return _windowed_or_none(node, known.shape, weights)


def _shape_of(node: NodeProto, position: int, type_of: TypeOf) -> Shape | None:
    known = type_of(node.input[position]) if position < len(node.input) and node.input[position] else None
    return None if known is None else known.shape


def _contrib(scope: Scope, node: NodeProto, shape: Shape, type_of: TypeOf) -> Shape | None:
    """Read an operator of ONNX Runtime as the operator of ONNX that it pads like."""
    like = CONTRIB_OPERATORS[normal_domain(node.domain), node.op_type]
    weights = None if like.weights is None else _shape_of(node, like.weights, type_of)
    twin = NodeProto()
    twin.CopyFrom(node)
    twin.op_type = like.op_type
    if like.op_type == "ConvTranspose":
        kernel: Sequence[Dimension] | None = attributes.integers(node, "kernel_shape") or (weights and weights[2:])
        pads = None if kernel is None else _dynamic_pads(scope, node, kernel)
        if pads is None:
            return None if weights is None else (shape[0], None, *[None] * (len(shape) - 2))
        attributes.remove(twin, "auto_pad")
        attributes.set_integers(twin, "pads", pads)
    channels_last = like.channels_last or attributes.integer(node, "channels_last", 0) == 1
    if not channels_last:
        return _windowed_or_none(twin, shape, weights)
    found = _windowed_or_none(twin, (shape[0], shape[-1], *shape[1:-1]), weights)
    return None if found is None else (found[0], *found[2:], found[1])


def _dynamic_pads(scope: Scope, node: NodeProto, kernel: Sequence[Dimension]) -> list[int] | None:
    """Return the pads of a ConvTransposeWithDynamicPads, or None when they are computed."""
    automatic = attributes.text(node, "auto_pad")
    if automatic not in SAME:
        given = scope.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        return None if given is None else [int(each) for each in given.reshape(-1)]
    ones = [1] * len(kernel)
    axes = []
    for taps, stride, dilation, extra in zip(
        kernel,
        attributes.integers(node, "strides") or ones,
        attributes.integers(node, "dilations") or ones,
        attributes.integers(node, "output_padding") or [0] * len(kernel),
        strict=False,
    ):
        if not isinstance(taps, int):
            return None
        axes.append(clamped_same_axis(taps, stride, dilation, extra, upper=automatic == "SAME_UPPER"))
    return [axis.begin for axis in axes] + [axis.end for axis in axes]


def _windowed_or_none(node: NodeProto, shape: Shape, weights: Shape | None) -> Shape | None:
    if len(shape) < 3:
        return None
    try:
        return _windowed(node, shape, weights)
    except ZeroDivisionError:
        return None


def _windowed(node: NodeProto, shape: Shape, weights: Shape | None) -> Shape | None:
    kernel: Sequence[Dimension] | None = attributes.integers(node, "kernel_shape") or (weights[2:] if weights else None)
    spatial = len(shape) - 2
    if kernel is None or len(kernel) != spatial:
        return None
    strides = attributes.integers(node, "strides") or [1] * spatial
    dilations = attributes.integers(node, "dilations") or [1] * spatial
    pads = attributes.integers(node, "pads")
    auto_pad = attributes.text(node, "auto_pad")
    if pads and auto_pad in (*SAME, "VALID") and node.op_type not in POOLS:
        return None
    if auto_pad in (*SAME, "VALID") or not pads:
        pads = [0] * (2 * spatial)
    if len(strides) != spatial or len(dilations) != spatial or len(pads) != 2 * spatial or min(*strides, 1) < 1:
        return None
    sizes: list[Dimension] = []
    for axis in range(spatial):
        size, taps = shape[2 + axis], kernel[axis]
        stride, dilation = strides[axis], dilations[axis]
        begin, end = pads[axis], pads[spatial + axis]
        if node.op_type == "ConvTranspose":
            sizes.append(_transposed(node, axis, spatial, size, taps, stride, dilation, begin, end))
        elif auto_pad in SAME:
            sizes.append(_same(size, stride))
        elif isinstance(size, int) and isinstance(taps, int):
            ceil_mode = attributes.integer(node, "ceil_mode", 0) != 0
            length = window_output_size(size, taps, stride, dilation, begin, end, ceil_mode=ceil_mode)
            sizes.append(length if length >= 0 else None)
        elif isinstance(taps, int) and not attributes.integer(node, "ceil_mode", 0):
            windows = length_of(size).plus(begin + end - effective_kernel(taps, dilation)).divided(stride)
            sizes.append(None if windows is None else _named(size, windows.plus(1)))
        else:
            sizes.append(None)
    channels: Dimension = shape[1]
    if node.op_type == "Conv":
        channels = weights[0] if weights else None
    elif node.op_type == "ConvTranspose":
        per_group = weights[1] if weights else None
        channels = per_group * attributes.integer(node, "group", 1) if isinstance(per_group, int) else None
    return (shape[0], channels, *sizes)


def _same(size: Dimension, stride: int) -> Dimension:
    if isinstance(size, int):
        return same_output_size(size, stride)
    if stride == 1:
        return size
    rounded_up = length_of(size).plus(stride - 1).divided(stride)
    return None if rounded_up is None else _named(size, rounded_up)


def _named(size: Dimension, length: Length) -> Dimension:
    """Return a computed length as a dimension; that of a length without a name says something if it is a multiple."""
    return None if size is None and len(length.factors) == 1 and length.factors[0][1] == 1 else length.dimension()


def _transposed(
    node: NodeProto,
    axis: int,
    spatial: int,
    size: Dimension,
    taps: Dimension,
    stride: int,
    dilation: int,
    begin: int,
    end: int,
) -> Dimension:
    wanted = attributes.integers(node, "output_shape")
    if wanted:
        from_the_end = axis - spatial  # the list may hold batch and channels as well
        return wanted[from_the_end] if len(wanted) in (spatial, spatial + 2) else None
    if attributes.text(node, "auto_pad") in SAME:
        return _named(size, length_of(size).times(stride))
    extra = attributes.integers(node, "output_padding") or []
    if not isinstance(taps, int):
        return None
    appended = extra[axis] if axis < len(extra) else 0
    if isinstance(size, int):
        return natural_output_size(size, taps, stride, dilation, begin, end, appended)
    beyond = natural_output_size(0, taps, stride, dilation, begin, end, appended)
    return _named(size, length_of(size).times(stride).plus(beyond))


def _sampled(scope: Scope, node: NodeProto, shape: Shape) -> Shape | None:
    scales = _scales(scope, node, len(shape))
    if scales is None or len(scales) != len(shape):
        return None
    # Runtimes multiply in single precision: 10 * 0.7 is 7 for them and 6 in double precision.
    return tuple(
        int(np.float32(size) * np.float32(scale)) if isinstance(size, int) else _scaled(size, scale)
        for size, scale in zip(shape, scales, strict=True)
    )


def _scaled(size: Dimension, scale: float) -> Dimension:
    if scale == 1:
        return size
    # Products with whole numbers and halves are exact in single precision for every length that is met.
    if float(scale).is_integer() and scale >= 1:
        return _named(size, length_of(size).times(int(scale)))
    inverse = 1 / scale
    if inverse in (2.0, 4.0, 8.0, 16.0):
        divided = length_of(size).divided(int(inverse))
        return None if divided is None else _named(size, divided)
    return None


def _scales(scope: Scope, node: NodeProto, rank: int) -> list[float] | None:
    if node.op_type == "Upsample" and len(node.input) == 1:
        given = attributes.find(node, "scales")
        if given is not None:
            return list(given.floats)
        height, width = attributes.find(node, "height_scale"), attributes.find(node, "width_scale")
        return [1.0, 1.0, height.f, width.f] if height is not None and width is not None else None
    position = 2 if node.op_type == "Resize" and scope.opset >= 11 else 1
    if len(node.input) <= position or not node.input[position]:
        return None
    if attributes.text(node, "coordinate_transformation_mode") == "tf_crop_and_resize":
        return None
    array = scope.constant(node.input[position])
    if array is None or array.size == 0:
        return None
    axes = attributes.integers(node, "axes")
    values = [float(each) for each in np.asarray(array).reshape(-1)]
    if axes is None:
        return values
    if len(axes) != len(values) or not all(-rank <= axis < rank for axis in axes):
        return None
    scales = [1.0] * rank
    for axis, value in zip(axes, values, strict=True):
        scales[axis % rank] = value
    return scales
