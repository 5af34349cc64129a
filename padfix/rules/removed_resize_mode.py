"""PF203: a Resize with the coordinates ``tf_half_pixel_for_nn``, which opset 13 removed."""

from __future__ import annotations

from fractions import Fraction

from padfix.geometry.resampling import Scale, nearest_indices, output_size
from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.results import Finding
from padfix.rules.base import Rewrite, Rule, Site
from padfix.rules.build.along_axes import one_by_one
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.resize_trials import ResizedAxis, resize_trials, resized_axes

_REMOVED = "tf_half_pixel_for_nn"
_REMOVED_SINCE = 13
_LONGEST_OUTPUT = 1 << 16
"""New lengths up to which the elements to take are listed one by one."""


class RemovedResizeMode(Rule):
    """A Resize of opset 13 or newer samples at `tf_half_pixel_for_nn`, which opset 13 took out of the standard.

    The mode came with opset 11 for TensorFlow's nearest neighbour: the position is `(x + 0.5) / scale`. tf2onnx still
    writes it, whatever the opset; the official version converter leaves it where it is. Some runtimes go on computing
    it, others refuse the model, and others again take it for something else.

    padfix writes the one equal that there is: rounded down, it is `half_pixel` with `round_prefer_ceil`, for every
    scale. Rounded another way, and with lengths that are known, the elements are taken by Gather. At opset 11 and 12
    the mode is legal and not reported; there it is rewritten when the model moves to a newer opset.

    Refused: modes linear and cubic, which no coordinates of today give, and the other roundings on a length that is
    only known at run time.

    Before, opset 13:

        main (float[1,3,8,8] X) => (float[1,3,16,12] Y)
        <int64[4] sizes = {1, 3, 16, 12}> {
          Y = Resize <coordinate_transformation_mode = "tf_half_pixel_for_nn", mode = "nearest",
                      nearest_mode = "floor"> (X, , , sizes)
        }

    After:

        Y = Resize <coordinate_transformation_mode = "half_pixel", mode = "nearest",
                    nearest_mode = "round_prefer_ceil"> (X, , , sizes)

    References:

    - The ONNX specification of Resize: <https://onnx.ai/onnx/operators/onnx__Resize.html>
    - A runtime that refuses the mode: <https://github.com/onnx/onnx-tensorrt/issues/913>
    - What tf2onnx writes: <https://github.com/onnx/tensorflow-onnx/issues/2248>
    """

    code = "PF203"
    name = "removed-resize-mode"
    operators = frozenset({("", "Resize")})

    def match(self, site: Site) -> Finding | None:
        """Return a finding where the mode is no legal value any more."""
        return self._finding(site) if site.scope.opset >= _REMOVED_SINCE else None

    def before_upgrade(self, site: Site, opset: int) -> Finding | None:
        """Return the finding where the mode is legal now, and is not at the new opset."""
        return self._finding(site) if site.scope.opset < _REMOVED_SINCE <= opset else None

    def refusal(self, site: Site) -> Refusal | None:
        """Return why no coordinates of today, and no elements taken one by one, give these samples."""
        if site.text("mode", "nearest") != "nearest":
            return Refusal(
                f"No coordinates of opset {_REMOVED_SINCE} or newer sample where {_REMOVED} does in mode "
                f"{site.text('mode')}: export the model with half_pixel, which is what TensorFlow does in that mode."
            )
        if site.text("nearest_mode", "round_prefer_floor") == "floor":
            return None
        taken = _taken(site)
        return taken if isinstance(taken, Refusal) else None

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the same Resize with coordinates of today, or one Gather an axis."""
        refusal = self.refusal(site)
        if refusal is not None:
            return refusal
        if site.text("nearest_mode", "round_prefer_floor") == "floor":
            return _renamed(site)
        return _gathered(site)

    def _finding(self, site: Site) -> Finding | None:
        if site.text("coordinate_transformation_mode") != _REMOVED:
            return None
        message = f"{_REMOVED} is no coordinate transformation of Resize since opset {_REMOVED_SINCE}."
        return self.finding(site, message, "padfix convert writes the same samples with coordinates of today.")


def _renamed(site: Site) -> Rewrite | Refusal:
    """Return ``floor((x + 0.5) / scale)`` as ``round_prefer_ceil((x + 0.5) / scale - 0.5)``."""
    trials = resize_trials(site)
    if isinstance(trials, Refusal):
        return trials
    node = copied(site.node)
    attributes.set_text(node, "coordinate_transformation_mode", "half_pixel")
    attributes.set_text(node, "nearest_mode", "round_prefer_ceil")
    return Rewrite(site.only(node), trials, exact=True)


def _gathered(site: Site) -> Rewrite | Refusal:
    """Return the very elements, axis by axis."""
    taken = _taken(site)
    trials = resize_trials(site, as_declared=True)
    if isinstance(taken, Refusal):
        return taken
    if isinstance(trials, Refusal):
        return trials
    return Rewrite(one_by_one(site, taken), trials, exact=True)


def _taken(site: Site) -> dict[int, list[int]] | Refusal:
    """Return the elements that are taken along each axis, where these are not all of them in their order."""
    rounding = site.text("nearest_mode", "round_prefer_floor")
    if site.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        return Refusal(f"{_REMOVED} with nearest_mode={rounding} has no equal that keeps an aspect ratio.")
    axes = resized_axes(site)
    if isinstance(axes, Refusal):
        return axes
    taken = {}
    for number, axis in enumerate(axes):
        if axis.is_kept:
            continue
        indices = _indices(axis, rounding)
        if indices is None:
            return Refusal(
                f"{_REMOVED} with nearest_mode={rounding} has an equal only where lengths are known and short of "
                f"{_LONGEST_OUTPUT}; axis {number} is not: fix the input's size (--shape)."
            )
        if indices != list(range(axis.length or 0)):
            taken[number] = indices
    return taken


def _indices(axis: ResizedAxis, rounding: str) -> list[int] | None:
    """Return the elements to take; None where that can't be known."""
    if axis.length is None or axis.length < 1:
        return None
    scale: Scale
    if axis.scale is not None:
        output, scale = output_size(axis.length, axis.scale), axis.scale
    elif axis.output is not None:
        output, scale = axis.output, Fraction(axis.output, axis.length)
    else:
        return None
    return nearest_indices(_REMOVED, rounding, axis.length, output, scale) if 0 < output <= _LONGEST_OUTPUT else None
