"""Resize in modes linear and cubic as a matrix for each axis: row ``i`` says what each element adds to output ``i``.

Notation as in :mod:`padfix.geometry.resampling`. Sources: the ONNX operator specification of Resize (versions 11, 13,
18 and 19), and for the cubic weights R. Keys, "Cubic convolution interpolation for digital image processing" (1981).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from padfix.geometry.resampling import Scale, source_coordinates

_REACH = {"linear": 1, "cubic": 2}


@dataclass(frozen=True)
class Interpolation:
    """How neighbours are weighted.

    Attributes:
        mode: ``"linear"`` or ``"cubic"``.
        coefficient: ``cubic_coeff_a``.
        exclude_outside: Whether neighbours outside the input get no weight and the others share it.
        antialias: Whether the filter is stretched on an axis that shrinks.
    """

    mode: str
    coefficient: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False

    def weights(self, distances: np.ndarray) -> np.ndarray:
        """Return the weights of neighbours at these distances (of any shape, in elements, none below 0)."""
        if self.mode == "linear":
            return np.maximum(0.0, 1.0 - distances)
        a = self.coefficient
        near = (a + 2) * distances**3 - (a + 3) * distances**2 + 1
        far = a * distances**3 - 5 * a * distances**2 + 8 * a * distances - 4 * a
        return np.where(distances <= 1, near, np.where(distances < 2, far, 0.0))


def interpolation_matrix(
    how: Interpolation,
    coordinates: str,
    size: int,
    output: int,
    scale: Scale,
    roi: tuple[float, float] = (0.0, 1.0),
) -> np.ndarray:
    """Return the matrix of one axis, float64 ``[output, size]``.

    Positions outside the input that ``tf_crop_and_resize`` extrapolates get rows of zeros.

    Raises:
        ValueError: ``coordinates`` is unknown.
    """
    positions: Sequence[Scale] = source_coordinates(coordinates, size, output, scale, roi)
    stretch = max(1.0, 1.0 / float(scale)) if how.antialias else 1.0
    reach = math.ceil(_REACH[how.mode] * stretch)
    matrix = np.zeros((output, size))
    for row, position in enumerate(positions):
        if coordinates == "tf_crop_and_resize" and not 0 <= position <= size - 1:
            continue
        neighbours = np.arange(math.floor(position) - reach, math.floor(position) + reach + 1)
        weights = how.weights(np.abs(neighbours - float(position)) / stretch)
        if how.exclude_outside:
            weights = np.where((neighbours >= 0) & (neighbours < size), weights, 0.0)
        if (how.exclude_outside or how.antialias) and weights.sum():
            weights = weights / weights.sum()
        np.add.at(matrix[row], np.clip(neighbours, 0, size - 1), weights)
    return matrix
