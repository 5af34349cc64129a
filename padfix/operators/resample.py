"""What a Resize or Upsample of any version says: the one reading of such a node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from onnx import NodeProto, TensorProto

from padfix.geometry.resampling import Scale, output_size
from padfix.graph import attributes
from padfix.graph.lengths import length_of, named
from padfix.graph.scopes import Dimension
from padfix.operators.refusal import Meaningless, Refusal
from padfix.operators.window import Shape
from padfix.operators.written import Place, wrong_arity

MODERN_OPSET = 11
"""The first opset whose Resize names its coordinates."""

_LEGACY_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear"}
_LEGACY_ROLES = {"scales": 1}
_MODERN_ROLES = {"roi": 1, "scales": 2, "sizes": 3}


@dataclass(frozen=True)
class Resample:
    """A Resize or Upsample as written.

    Attributes:
        op_type: The operator.
        is_legacy: Whether it names no coordinates: Upsample, and Resize before opset 11.
        mode: ``"nearest"``, ``"linear"`` or ``"cubic"``; other texts stand as they are.
        coordinates: ``coordinate_transformation_mode``; ``"asymmetric"`` for legacy operators.
        nearest_mode: The rounding of mode nearest; ``""`` for legacy operators, which round by the scale.
        policy: ``keep_aspect_ratio_policy``.
        exclude_outside: The attribute.
        antialias: The attribute.
        shape: Of the data; None where the rank is not known.
        elem_type: Of the data; 0 where it is not known.
        axes: The axes that scales, sizes and roi are for, as written; None for all, in order.
        scales: float32 values; None where there are none, or only at run time.
        scales_name: The value that holds the scales; ``""`` where there are none, or attributes hold them.
        sizes: Lengths of the output; None as for scales.
        roi: Starts, then ends; None where there is none, or only at run time.
    """

    op_type: str
    is_legacy: bool
    mode: str
    coordinates: str
    nearest_mode: str
    policy: str
    exclude_outside: bool
    antialias: bool
    shape: Shape | None
    elem_type: int
    axes: tuple[int, ...] | None
    scales: tuple[float, ...] | None
    scales_name: str
    sizes: tuple[int, ...] | None
    roi: tuple[float, ...] | None

    @property
    def never_shrinks(self) -> bool:
        """Whether the operator promises scales of 1 or more."""
        return self.op_type == "Upsample"

    @property
    def ignores_policy(self) -> bool:
        """Whether it is of the kind whose sizes ONNX Runtime ignores: negative axes with an aspect ratio to keep."""
        by_sizes = self.scales is None and not self.scales_name
        return by_sizes and self.policy != "stretch" and self.axes is not None and min(self.axes) < 0

    def resized_axes(self) -> tuple[int, ...] | None:
        """Return the axes that the lists are for, counted from 0; None where they don't fit the data."""
        if self.shape is None:
            return None
        rank = len(self.shape)
        axes = tuple(range(rank)) if self.axes is None else self.axes
        return tuple(axis % rank for axis in axes) if all(-rank <= axis < rank for axis in axes) else None

    def scale_of_axes(self) -> tuple[float, ...] | None:
        """Return the scale of every axis of the data by ``scales``; None where they don't tell."""
        axes = self.resized_axes()
        if axes is None or self.shape is None or self.scales is None or len(axes) != len(self.scales):
            return None
        scales = [1.0] * len(self.shape)
        for axis, scale in zip(axes, self.scales, strict=True):
            scales[axis] = scale
        return tuple(scales)

    def roi_of(self, axis: int) -> tuple[float, float] | None:
        """Return which part of an axis is sampled, all but where it is cropped; None where that is not known."""
        if self.coordinates != "tf_crop_and_resize":
            return 0.0, 1.0
        axes = self.resized_axes()
        if axes is None or self.roi is None or len(self.roi) != 2 * len(axes) or axis not in axes:
            return None
        place = axes.index(axis)
        return self.roi[place], self.roi[place + len(axes)]

    def factors(self) -> tuple[Scale, ...] | None:
        """Return the factor of every axis, by ``scales`` or by ``sizes`` where all lengths are known."""
        if self.scales is not None:
            return self.scale_of_axes()
        if self.sizes is None or self.shape is None or self.axes is not None or len(self.sizes) != len(self.shape):
            return None
        lengths = [length if isinstance(length, int) else 0 for length in self.shape]
        if min(lengths, default=0) < 1:
            return None
        return tuple(Fraction(size, length) for size, length in zip(self.sizes, lengths, strict=True))

    def output_shape(self) -> Shape | None:
        """Return the shape of the output as ``scales`` give it; None where they don't tell.

        Runtimes multiply in single precision: 10 * 0.7 is 7 for them and 6 in double precision.
        """
        scales = self.scale_of_axes()
        if scales is None or self.shape is None or self.coordinates == "tf_crop_and_resize":
            return None
        try:
            return tuple(_scaled(size, scale) for size, scale in zip(self.shape, scales, strict=True))
        except (OverflowError, ValueError):  # a product that is infinite or not a number
            return None


def _scaled(size: Dimension, scale: float) -> Dimension:
    if isinstance(size, int):
        return output_size(size, scale)
    if scale == 1:
        return size
    # Products with whole numbers and halves are exact in single precision for every length that is met.
    if float(scale).is_integer() and scale >= 1:
        return named(size, length_of(size).times(int(scale)))
    if scale > 0 and 1 / scale in (2.0, 4.0, 8.0, 16.0):
        divided = length_of(size).divided(int(1 / scale))
        return None if divided is None else named(size, divided)
    return None


def is_legacy(op_type: str, opset: int | None) -> bool:
    """Whether the operator does not name its coordinates."""
    return op_type == "Upsample" or (opset is not None and opset < MODERN_OPSET)


_WORDS = {
    "mode": ("nearest", "linear", "cubic"),
    "coordinate_transformation_mode": (
        *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"),
        *("tf_half_pixel_for_nn", "tf_crop_and_resize"),
    ),
    "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
}
"""What the attributes of a modern Resize may say, the default first, in any of its opsets."""


def input_roles(node: NodeProto) -> dict[int, str]:
    """Return what the inputs behind the data are, by position: ``"roi"``, ``"scales"`` or ``"sizes"``.

    Told from the node alone: only legacy operators have two inputs, and from opset 11 on scales are never the second.
    """
    roles = _LEGACY_ROLES if node.op_type == "Upsample" or len(node.input) == 2 else _MODERN_ROLES
    return {position: role for role, position in roles.items()}


def read_resample_node(node: NodeProto, place: Place) -> Resample | Refusal:
    """Return what ``node``, a Resize or Upsample, says, or why it can't be understood."""
    references = [each.name for each in node.attribute if each.ref_attr_name]
    if references:
        return Refusal(f"The caller of the function gives {references[0]}: inline the function first, then convert.")
    wrong = wrong_arity(node, place.opset)
    if wrong:
        return Meaningless(wrong)
    legacy = is_legacy(node.op_type, place.opset)
    mode = attributes.text(node, "mode", "nearest")
    if legacy and mode not in _LEGACY_MODES:
        return Refusal(f'mode="{mode}" is not one that {node.op_type} had at opset {place.opset}.')
    for attribute, words in () if legacy else _WORDS.items():
        word = attributes.text(node, attribute, words[0])
        if word not in words:
            return Meaningless(f'{attribute}="{word}" is not one that Resize has; correct the node.')
    roles = _LEGACY_ROLES if legacy else _MODERN_ROLES
    position = roles["scales"]
    name = node.input[position] if position < len(node.input) else ""
    # PyTorch computed scales from constants; what is written for a legacy operator is in words that need their values.
    given = (place.computed if legacy else place.constant)(name) if name else None
    if not legacy and given is not None and not given.size:
        name = ""  # how opsets 11 and 12 leave an input out
    data = place.type_at(node, 0)
    shape = None if data is None else data.shape
    scales = _floats(given) if name else _scale_attributes(node)
    if legacy:
        if not name and scales is None:
            return Refusal("The node has no scales; correct the model.")
        refusal = _refused_scales(node, scales, shape)
        if refusal is not None:
            return refusal
    sizes = place.constant_at(node, roles.get("sizes"))
    axes = attributes.integers(node, "axes")
    listed = scales or (() if sizes is None else sizes.reshape(-1))
    if shape is None and not axes and len(listed):
        shape = (None,) * len(listed)  # without axes, the lists are for all of them
    return Resample(
        node.op_type,
        legacy,
        _LEGACY_MODES[mode] if legacy else mode,
        "asymmetric" if legacy else attributes.text(node, "coordinate_transformation_mode", "half_pixel"),
        "" if legacy else attributes.text(node, "nearest_mode", "round_prefer_floor"),
        attributes.text(node, "keep_aspect_ratio_policy", "stretch"),
        attributes.integer(node, "exclude_outside", 0) != 0,
        attributes.integer(node, "antialias", 0) != 0,
        shape,
        TensorProto.UNDEFINED if data is None else data.elem_type,
        tuple(axes) if axes else None,
        scales,
        name,
        None if sizes is None or not sizes.size else tuple(int(each) for each in sizes.ravel()),
        _floats(place.constant_at(node, roles.get("roi"))),
    )


def _floats(values: np.ndarray | None) -> tuple[float, ...] | None:
    return None if values is None or not values.size else tuple(float(np.float32(value)) for value in values.ravel())


def _scale_attributes(node: NodeProto) -> tuple[float, ...] | None:
    """Return the scales of an Upsample before opset 9."""
    listed = attributes.find(node, "scales")
    if listed is not None:
        return tuple(listed.floats)
    height, width = attributes.find(node, "height_scale"), attributes.find(node, "width_scale")
    return None if height is None or width is None else (1.0, 1.0, height.f, width.f)


def _refused_scales(node: NodeProto, scales: Sequence[float] | None, shape: Shape | None) -> Refusal | None:
    if scales is None:
        return None
    if shape is not None and len(scales) != len(shape):
        return Meaningless(f"{len(scales)} scales for an input of {len(shape)} axes; correct the node.")
    if not all(math.isfinite(scale) and scale > 0 for scale in scales):
        return Meaningless(f"Scales {list(scales)} are not all above 0; correct the node.")
    if node.op_type == "Upsample" and min(scales, default=1.0) < 1:
        return Refusal(
            f"{node.op_type} is defined for scales of 1 or more and has {[round(each, 6) for each in scales]}; no "
            "runtime agrees on what that means. Shrink with Resize-10 or newer in the source."
        )
    return None
