"""PF206: a Resize for which ONNX Runtime reads other elements than the specification, or that it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from padfix.geometry.resampling import NEAREST_MODES, Scale, nearest_indices, output_size, source_coordinates
from padfix.geometry.runtimes import MEASURED_MODES, ONNX_RUNTIME, runtime_nearest_indices
from padfix.operators.reading import read_resample
from padfix.operators.refusal import Refusal
from padfix.operators.resample import Resample
from padfix.results import Finding, Severity
from padfix.rules.base import Rule, Site, Trial, TrialInput

_LONGEST = 65_536
"""Axes with more elements are not looked at index by index."""

_MOST_ELEMENTS = 1_000_000
"""Of an input that is made to show the slip."""


class ResizeRuntimeSlip(Rule):
    """A Resize reads other elements in ONNX Runtime than the specification says, or is refused by it.

    Measured on the CPU kernels of ONNX Runtime 1.31.1:

    - Where the output has the input's shape, the input is copied: scales of 1.1 that keep a short axis as it is, and
      the region of interest of `tf_crop_and_resize`, do nothing.
    - On an axis that keeps its length, the region of interest is ignored.
    - Mode nearest computes positions in single precision from a rounded scale, also where `sizes` are given. A position
      that should be whole falls short of it: 14 elements resized to 2 with `asymmetric` and `floor` gives elements 0
      and 6, not 0 and 7.
    - `exclude_outside=1` in mode linear is refused, unless it goes with `antialias`.

    Only axes whose lengths are known are looked at. padfix reports these for information and leaves them: whoever
    trained or tuned a model may have seen either reading.

    References:

    - The ONNX specification of Resize: <https://onnx.ai/onnx/operators/onnx__Resize.html>
    - Positions that fall short: <https://github.com/onnx/onnx/issues/7841>
    - The region of interest: <https://github.com/onnx/onnx/issues/5783>
    """

    code = "PF206"
    name = "resize-runtime-slip"
    operators = frozenset({("", "Resize")})
    severity = Severity.INFO
    fixable = False

    def match(self, site: Site) -> Finding | None:
        """Return a finding where the two readings differ for the lengths that are known."""
        resize = read_resample(site.scope, site.node)
        if isinstance(resize, Refusal) or resize.is_legacy:
            return None
        mode, coordinates, nearest_mode = resize.mode, resize.coordinates, resize.nearest_mode
        if mode == "linear" and resize.exclude_outside and not resize.antialias:
            words = "refuses to load exclude_outside=1 in mode linear"
            return self._finding(site, words, "Remove exclude_outside: without antialias it only matters for cubic.")
        if resize.ignores_policy:
            words = "ignores keep_aspect_ratio_policy and sizes where axes are negative, and gives the input's lengths"
            return self._finding(site, words, "Count the axes from the front.")
        axes = _resized(resize)
        if not axes or nearest_mode not in NEAREST_MODES:
            return None
        try:
            moved = [axis for axis in axes if axis.moves(mode, coordinates, nearest_mode)]
        except ValueError:
            return None
        if moved and all(axis.keeps_length for axis in axes):
            words = "copies the input, because the output has its shape; the specification samples other positions on "
            return self._finding(site, words + _named(moved), "Write scales of 1 if a copy is meant.")
        cropped = [axis for axis in moved if axis.keeps_length and coordinates == "tf_crop_and_resize"]
        if cropped:
            words = f"ignores the region of interest on {_named(cropped)}, which keeps its length"
            return self._finding(site, words, "Cut the region out with Slice or Gather first.")
        if mode == "nearest" and coordinates in MEASURED_MODES:
            for axis in axes:
                words = axis.slip(coordinates, nearest_mode)
                if words:
                    return self._finding(site, words, "Take the elements with Gather if the exact ones matter.")
        return None

    def trials(self, site: Site) -> tuple[Trial, ...]:
        """Return the node's own shape, as far as it is known, and what its other inputs hold."""
        known = site.input_type(0)
        if known is None or known.shape is None:
            return ()
        shape = tuple(length if isinstance(length, int) else 2 for length in known.shape)
        trial = {site.input_name(0): TrialInput(shape, known.elem_type)}
        for position in range(1, len(site.node.input)):
            value = site.constant(position)
            if site.input_name(position) and value is not None:
                trial[site.input_name(position)] = TrialInput.of(value)
        complete = len(trial) == len({name for name in site.node.input if name})
        return (trial,) if complete and prod(shape) <= _MOST_ELEMENTS else ()

    def _finding(self, site: Site, words: str, hint: str) -> Finding:
        return self.finding(site, f"{ONNX_RUNTIME} {words}.", hint)


@dataclass(frozen=True)
class _Axis:
    """An axis that is resized; ``size`` and ``output`` are None where they are not known (``scale`` is 1 then)."""

    number: int
    size: int | None
    output: int | None
    scale: Scale
    roi: tuple[float, float]

    @property
    def keeps_length(self) -> bool:
        return self.size == self.output

    def moves(self, mode: str, coordinates: str, nearest_mode: str) -> bool:
        """Whether the specification reads anything but each element at its own place."""
        if self.size is None or self.output is None:
            return False
        if not self.keeps_length or self.output > _LONGEST:
            return True
        if mode == "nearest":
            indices = nearest_indices(coordinates, nearest_mode, self.size, self.output, self.scale, self.roi)
            return indices != list(range(self.size))
        positions: Sequence[Scale] = source_coordinates(coordinates, self.size, self.output, self.scale, self.roi)
        return any(abs(float(x) - index) > 1e-4 for index, x in enumerate(positions))

    def slip(self, coordinates: str, nearest_mode: str) -> str:
        """Return the first index that ONNX Runtime takes for another; empty when there is none."""
        if self.size is None or self.output is None or self.keeps_length or self.output > _LONGEST:
            return ""
        meant = nearest_indices(coordinates, nearest_mode, self.size, self.output, self.scale)
        found = runtime_nearest_indices(coordinates, nearest_mode, self.size, self.output, float(self.scale))
        wrong = [index for index, (a, b) in enumerate(zip(meant, found, strict=True)) if a != b]
        if not wrong:
            return ""
        first = wrong[0]
        return (
            f"rounds {len(wrong)} of {self.output} positions on axis {self.number} ({self.size} to {self.output}) to a "
            f"neighbour: element {first} of the output is {found[first]} of the input, not {meant[first]}"
        )


def _resized(resize: Resample) -> list[_Axis] | None:
    """Return the resized axes; None when not every one is known."""
    numbers = resize.resized_axes()
    given: Sequence[float] | None = resize.scales or resize.sizes
    if numbers is None or resize.shape is None or resize.policy != "stretch":
        return None
    if given is None or (resize.scales and resize.sizes) or len(given) != len(numbers) or min(given) <= 0:
        return None
    rois = [(0.0, 1.0)] * len(numbers)
    if resize.coordinates == "tf_crop_and_resize":
        roi = resize.roi
        if roi is None or len(roi) != 2 * len(numbers):
            return None
        rois = list(zip(roi[: len(numbers)], roi[len(numbers) :], strict=True))
    axes = []
    for number, value, region in zip(numbers, given, rois, strict=True):
        size = resize.shape[number]
        if isinstance(size, int) and size > 0:
            output = output_size(size, value) if resize.scales else int(value)
            scale: Scale = value if resize.scales else Fraction(output, size)
            axes.append(_Axis(number, size, output, scale, region))
        elif resize.scales and value == 1:
            axes.append(_Axis(number, None, None, 1.0, region))
        else:
            axes.append(_Axis(number, None, -1, 1.0, region))  # a length that changes, perhaps
    return axes


def _named(axes: list[_Axis]) -> str:
    numbers = ", ".join(str(axis.number) for axis in axes)
    return f"axis {numbers}" if len(axes) == 1 else f"axes {numbers}"
