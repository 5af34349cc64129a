"""What a runtime does with a node against the specification, with a sample of both results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from padfix.proof.executors import Array
from padfix.results import Sample

SAMPLED = 4
"""Values of each result that are kept."""


@dataclass(frozen=True)
class RuntimeSlip:
    """One run of a node on its own that the runtime refused, or that gave another result than the specification.

    Attributes:
        message: One sentence, with the runtime's version.
        input_shapes: The shapes of the run; empty when the runtime refused to load the node.
        specified: What the specification gives.
        found: What the runtime gives.
        gives_none: Whether it gives no number (NaN) wherever it differs, and the specification a finite one there.
    """

    message: str
    input_shapes: tuple[tuple[int, ...], ...] = ()
    specified: Sample | None = None
    found: Sample | None = None
    gives_none: bool = False


def difference(message: str, feeds: Mapping[str, Array], meant: Array | None, ran: Array | None) -> RuntimeSlip:
    """Return the slip with samples from the first value that differs; of shapes that differ, from the first value."""
    start, gives_none = 0, False
    if meant is not None and ran is not None and meant.shape == ran.shape:
        different = _differences(meant, ran)
        start = int(different.argmax()) if different.any() else 0
        gives_none = bool(different.any()) and ran.dtype.kind == "f" and _gives_none(meant, ran, different)
        if meant.size:
            given, wanted = _values(ran, start), _values(meant, start)
            message += f" From {_place(meant, start)} on it gives {given} where {wanted} is specified."
    elif meant is not None and ran is not None and meant.size and ran.size:
        message += f" It begins with {_values(ran, 0)} where {_values(meant, 0)} is specified."
    shapes = tuple(tuple(array.shape) for array in feeds.values())
    return RuntimeSlip(message, shapes, _sample(meant, start), _sample(ran, start), gives_none)


def _gives_none(meant: Array, ran: Array, different: Array) -> bool:
    return bool(np.isnan(ran.ravel()[different]).all() and np.isfinite(meant.ravel()[different]).all())


def _differences(meant: Array, ran: Array) -> Array:
    """Return of each value, in one line, whether it differs by more than rounding does."""
    if meant.dtype.kind in "OSUb":
        different = np.ravel(meant != ran)
    else:
        wide, other = meant.astype(np.float64).ravel(), ran.astype(np.float64).ravel()
        allowed = 1e-3 * max(float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0)), 1e-30)
        if meant.dtype.kind in "iu":
            allowed = 0.0
        with np.errstate(invalid="ignore"):
            different = ~((np.abs(wide - other) <= allowed) | (wide == other) | (np.isnan(wide) & np.isnan(other)))
    return np.asarray(different)


def _sample(array: Array | None, start: int) -> Sample | None:
    if array is None or array.dtype.kind in "OSU":
        return None
    values = array.ravel()[start : start + SAMPLED].astype(np.float64)
    position = tuple(int(each) for each in np.unravel_index(start, array.shape)) if array.size else ()
    return Sample(tuple(array.shape), position, tuple(float(each) for each in values))


def _values(array: Array, start: int) -> str:
    values = [float(each) for each in array.ravel()[start : start + SAMPLED].astype(np.float64)]
    return ", ".join(f"{value:.4g}" if math.isfinite(value) else str(value) for value in values)


def _place(array: Array, start: int) -> str:
    position = [int(each) for each in np.unravel_index(start, array.shape)]
    return str(position)
