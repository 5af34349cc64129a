"""Whether two results are the same numbers.

The tolerance is absolute, one for a whole output, and scales with the output's own numbers:

    tolerance = atol + rtol * max(spread, magnitude / 10)

where ``spread`` is the reference's largest minus its smallest finite value and ``magnitude`` its largest absolute
one. An element-wise relative tolerance would fail on honest sums that cancel to almost nothing; one that scales with
the magnitude alone would let a slip pass where all values are close to each other (the softmax of an untrained
network); the tenth of the magnitude is there because rounding goes with the magnitude, so that an output that is
almost constant isn't held to less than its own rounding.

Defaults, by the coarsest float type among the inputs and the output (that is what was computed with):

======== ======= ==================================================================================================
type     rtol    reason
======== ======= ==================================================================================================
float64  1e-7    far above the rounding of a deep network (1e-12), below what a sum in float32 loses
float32  1e-4    sums of a deep network run in another order differ by 1e-6 of the range, seldom 1e-5; a window that is
                 one element off changes noise, ramps and impulses by 1e-2 to 1 of the range
float16  1e-2    the same, with 2**-11 in place of 2**-24
bfloat16 5e-2    the same, with 2**-8
======== ======= ==================================================================================================

Integers, booleans and strings must be equal. Not-a-number equals not-a-number at the same place, an infinity the
infinity of its sign.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from padfix.proof.executors import Array
from padfix.results import OutputDifference

DEFAULT_RTOL = {"float64": 1e-7, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
_OTHER_FLOAT_RTOL = 2e-1  # 8-bit floats: one unit in the last place is an eighth or a quarter.
_COARSENESS = ("float64", "float32", "float16", "bfloat16")

DEFAULT_ATOL = 1e-9
"""Only for outputs that are zero everywhere: what is left of sums that cancel."""


def _float_name(dtype: np.dtype[Any]) -> str | None:
    """Return the float type that ``dtype`` computes in, or None for what must be equal exactly."""
    if dtype.kind == "c":
        return "float64" if dtype.itemsize == 16 else "float32"
    name = dtype.name
    return name if dtype.kind == "f" or name.startswith(("bfloat", "float8")) else None


def default_rtol(output: np.dtype[Any], inputs: Iterable[np.dtype[Any]] = ()) -> float:
    """Return the relative tolerance for an output of type ``output`` computed from ``inputs``; 0 for exact types."""
    if _float_name(output) is None:
        return 0.0
    names = {_float_name(dtype) for dtype in (output, *inputs)} - {None}
    if not names <= set(_COARSENESS):
        return _OTHER_FLOAT_RTOL
    return DEFAULT_RTOL[max((str(name) for name in names), key=_COARSENESS.index)]


def scale_of(reference: Array) -> float:
    """Return ``max(spread, magnitude / 10)`` over the finite values of a float array; 0 when there are none."""
    finite = _wide(reference)[np.isfinite(reference)]
    if finite.size == 0:
        return 0.0
    if np.iscomplexobj(finite):
        return float(np.abs(finite).max())
    low, high = float(finite.min()), float(finite.max())
    return max(high - low, max(abs(low), abs(high)) / 10)


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def compare(
    name: str,
    reference: Array | None,
    candidate: Array | None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    input_types: Iterable[np.dtype[Any]] = (),
) -> OutputDifference:
    """Compare one output.

    Args:
        name: The output's name, for the report.
        reference: What the original gives; None when it gives no such output.
        candidate: What is to be judged; None likewise.
        rtol: Relative tolerance of float outputs instead of the default.
        atol: Absolute tolerance of float outputs instead of the default.
        input_types: Types of the model's inputs; the coarsest float type decides about the default.

    Returns:
        The difference. ``max_rel_diff`` is relative to the reference's largest absolute value. Where no number can
        say it (another shape, another type, not-a-number in one), both differences are infinite and ``detail`` has
        the words.
    """
    if reference is None or candidate is None:
        return _unlike(name, f"only the {'candidate' if reference is None else 'reference'} has this output")
    reference, candidate = np.asarray(reference), np.asarray(candidate)
    if _is_text(reference) and _is_text(candidate):
        return _compare_text(name, reference, candidate)
    if reference.dtype != candidate.dtype:
        return _unlike(name, f"type {candidate.dtype} instead of {reference.dtype}")
    if reference.shape != candidate.shape:
        return _unlike(name, f"shape {list(candidate.shape)} instead of {list(reference.shape)}")
    if _float_name(reference.dtype) is None:
        return _compare_exactly(name, reference, candidate)
    relative = default_rtol(reference.dtype, input_types) if rtol is None else rtol
    allowed = (DEFAULT_ATOL if atol is None else atol) + relative * scale_of(reference)
    return _compare_floats(name, reference, candidate, allowed)


def _unlike(name: str, detail: str) -> OutputDifference:
    return OutputDifference(name, float("inf"), float("inf"), 0.0, False, detail)


def _is_text(array: Array) -> bool:
    return array.dtype.kind in "OSU"


def _compare_text(name: str, reference: Array, candidate: Array) -> OutputDifference:
    if reference.shape != candidate.shape:
        return _unlike(name, f"shape {list(candidate.shape)} instead of {list(reference.shape)}")
    # TensorFlow gives bytes, ONNX Runtime text.
    pairs = zip(reference.reshape(-1), candidate.reshape(-1), strict=True)
    different = sum(_text(first) != _text(second) for first, second in pairs)
    if different:
        return _unlike(name, f"{different} of {reference.size} strings differ")
    return OutputDifference(name, 0.0, 0.0, 0.0, True)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _compare_exactly(name: str, reference: Array, candidate: Array) -> OutputDifference:
    different = reference != candidate
    count = int(np.count_nonzero(different))
    if count == 0:
        return OutputDifference(name, 0.0, 0.0, 0.0, True)
    try:
        largest = float(np.abs(reference.astype(np.float64) - candidate.astype(np.float64)).max())
        magnitude = float(np.abs(reference.astype(np.float64)).max())
    except (TypeError, ValueError):
        return _unlike(name, f"{count} of {reference.size} values differ")
    # Neighbours above 2**53 are one double.
    largest = largest or 1.0
    relative = largest / magnitude if magnitude else float("inf")
    return OutputDifference(name, largest, relative, 0.0, False, f"{count} of {reference.size} values differ")


def _compare_floats(name: str, reference: Array, candidate: Array, allowed: float) -> OutputDifference:
    wide, other = _wide(reference), _wide(candidate)
    nan, other_nan = np.isnan(wide), np.isnan(other)
    infinite, other_infinite = np.isinf(wide), np.isinf(other)
    if (count := int(np.count_nonzero(nan != other_nan))) > 0:
        where = "candidate" if np.count_nonzero(other_nan & ~nan) else "reference"
        return _unlike(name, f"{count} of {wide.size} values are not a number in the {where} only")
    if np.any(infinite != other_infinite) or np.any(wide[infinite] != other[infinite]):
        return _unlike(name, "infinities stand at different places or have different signs")
    usual = ~(nan | infinite)
    difference = np.abs(wide[usual] - other[usual])
    if difference.size == 0:
        return OutputDifference(name, 0.0, 0.0, allowed, True)
    largest = float(difference.max())
    magnitude = float(np.abs(wide[usual]).max())
    relative = largest / magnitude if magnitude else (0.0 if largest == 0 else float("inf"))
    equivalent = largest <= allowed
    detail = ""
    if not equivalent:
        outside = int(np.count_nonzero(difference > allowed))
        position = [int(i) for i in np.argwhere(usual)[int(difference.argmax())]]
        detail = f"{outside} of {wide.size} values are outside the tolerance, the worst at {position}"
    return OutputDifference(name, largest, relative, allowed, equivalent, detail)
