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
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from padfix.proof.executors import Array
from padfix.results import OutputDifference

DEFAULT_RTOL = {"float64": 1e-7, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
_OTHER_FLOAT_RTOL = 2e-1  # 8-bit floats: one unit in the last place is an eighth or a quarter.
_COARSENESS = ("float64", "float32", "float16", "bfloat16")

DEFAULT_ATOL = 1e-9
"""Only for outputs that are zero everywhere: what is left of sums that cancel."""


@cache
def _float_name(dtype: np.dtype[Any]) -> str | None:
    """Return the float type that ``dtype`` computes in, or None for what must be equal exactly."""
    if dtype.kind == "c":
        return "float64" if dtype.itemsize == 16 else "float32"
    name = dtype.name
    return name if dtype.kind == "f" or name.startswith(("bfloat", "float8")) else None


def default_rtol(output: np.dtype[Any], inputs: Iterable[np.dtype[Any]] = ()) -> float:
    """Return the relative tolerance for an output of type ``output`` computed from ``inputs``; 0 for exact types."""
    return DEFAULT_RTOL.get(coarsest((output, *inputs)), _OTHER_FLOAT_RTOL) if is_float(output) else 0.0


def loosens(
    output: np.dtype[Any], inputs: Iterable[np.dtype[Any]] = (), *, rtol: float | None, atol: float | None
) -> bool:
    """Whether a user's tolerances allow more of an output of type ``output`` than the defaults do."""
    wider = rtol is not None and rtol > default_rtol(output, inputs)
    return is_float(output) and (wider or (atol is not None and atol > DEFAULT_ATOL))


def coarsest(types: Iterable[np.dtype[Any]]) -> str:
    """Return the float type among ``types`` that rounds most; ``float32`` when there is none."""
    names = {name for dtype in types if (name := _float_name(dtype)) is not None}
    if not names <= set(_COARSENESS):
        return "other"
    return max(names, key=_COARSENESS.index, default="float32")


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether values of ``dtype`` are rounded; others must be equal."""
    return _float_name(dtype) is not None


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether values of ``dtype`` are rounded and have an order; NumPy calls narrow floats no floats."""
    return dtype.kind != "c" and is_float(dtype)


def is_number(dtype: np.dtype[Any]) -> bool:
    """Whether values of ``dtype`` are integers, truth values or floats."""
    return dtype.kind in "iub" or is_real(dtype)


def largest_of(dtype: np.dtype[Any]) -> float:
    """Return the largest finite number of a type of floats, narrow ones included."""
    return float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]


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


@dataclass(frozen=True)
class Distance:
    """How far one array is from another.

    Attributes:
        largest: The largest absolute difference; infinite where no number can say it.
        magnitude: The largest absolute value of the reference, infinities left aside.
        is_float: Whether rounding plays a part; else everything must be equal.
        detail: What no number says: another shape or type, not-a-number in one of the two; else empty.
    """

    largest: float
    magnitude: float
    is_float: bool
    detail: str = ""


def distance(reference: Array | None, candidate: Array | None) -> Distance:
    """Return how far ``candidate`` is from ``reference``; None for a tensor that a side doesn't have."""
    infinite = float("inf")
    if reference is None or candidate is None:
        words = f"only the {'candidate' if reference is None else 'reference'} has this output"
        return Distance(infinite, 0.0, False, words)
    reference, candidate = np.asarray(reference), np.asarray(candidate)
    text = _is_text(reference) and _is_text(candidate)
    if reference.dtype != candidate.dtype and not text:
        return Distance(infinite, 0.0, False, f"type {candidate.dtype} instead of {reference.dtype}")
    if reference.shape != candidate.shape:
        words = f"shape {list(candidate.shape)} instead of {list(reference.shape)}"
        return Distance(infinite, 0.0, False, words)
    if text:
        return _text_distance(reference, candidate)
    if not is_float(reference.dtype):
        return _exact_distance(reference, candidate)
    return _float_distance(reference, candidate)


def compare(
    name: str,
    reference: Array | None,
    candidate: Array | None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    input_types: Iterable[np.dtype[Any]] = (),
) -> OutputDifference:
    """Compare one output; None stands for one that a side doesn't give.

    ``rtol`` and ``atol`` take the place of the defaults for floats, about which the coarsest float type among the
    output and ``input_types`` decides.

    Returns:
        The difference. ``max_rel_diff`` is relative to the reference's largest absolute value. Where no number can
        say it (another shape, another type, not-a-number in one), both differences are infinite and ``detail`` has
        the words.
    """
    found = distance(reference, candidate)
    if not found.is_float or reference is None or candidate is None or not np.isfinite(found.largest):
        return described(name, found, 0.0, reference, candidate)
    relative = default_rtol(reference.dtype, input_types) if rtol is None else rtol
    allowed = (DEFAULT_ATOL if atol is None else atol) + relative * scale_of(reference)
    return described(name, found, allowed, reference, candidate)


def described(
    name: str, found: Distance, allowed: float, reference: Array | None = None, candidate: Array | None = None
) -> OutputDifference:
    """Return a distance as a difference that is within ``allowed`` or not; the arrays tell where it is not."""
    relative = 0.0
    if found.largest:
        relative = found.largest / found.magnitude if found.magnitude else float("inf")
    equivalent = found.largest <= allowed
    detail = found.detail
    if not equivalent and not detail and reference is not None and candidate is not None:
        wide, other = _wide(reference), _wide(candidate)
        usual = np.isfinite(wide) & np.isfinite(other)
        difference = np.abs(wide[usual] - other[usual])
        outside = int(np.count_nonzero(difference > allowed))
        position = [int(i) for i in np.argwhere(usual)[int(difference.argmax())]]
        detail = f"{outside} of {wide.size} values are outside the tolerance, the worst at {position}"
    return OutputDifference(name, found.largest, relative, allowed, equivalent, detail)


def _is_text(array: Array) -> bool:
    return array.dtype.kind in "OSU"


def _text_distance(reference: Array, candidate: Array) -> Distance:
    # TensorFlow gives bytes, ONNX Runtime text.
    pairs = zip(reference.reshape(-1), candidate.reshape(-1), strict=True)
    different = sum(_text(first) != _text(second) for first, second in pairs)
    if different:
        return Distance(float("inf"), 0.0, False, f"{different} of {reference.size} strings differ")
    return Distance(0.0, 0.0, False)


def as_text(array: Array) -> Array:
    """Return the strings of TensorFlow, which are bytes, as ONNX Runtime takes them; other arrays as they are."""
    if not _is_text(array):
        return array
    return np.array([_text(each) for each in array.reshape(-1)], object).reshape(array.shape)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _exact_distance(reference: Array, candidate: Array) -> Distance:
    count = int(np.count_nonzero(reference != candidate))
    if count == 0:
        return Distance(0.0, 0.0, False)
    words = f"{count} of {reference.size} values differ"
    try:
        largest = float(np.abs(reference.astype(np.float64) - candidate.astype(np.float64)).max())
        magnitude = float(np.abs(reference.astype(np.float64)).max())
    except (TypeError, ValueError):
        return Distance(float("inf"), 0.0, False, words)
    # Neighbours above 2**53 are one double.
    return Distance(largest or 1.0, magnitude, False, words)


def _float_distance(reference: Array, candidate: Array) -> Distance:
    if reference.dtype.kind == "f" and reference.size and np.array_equal(reference, candidate):
        magnitude = max(float(reference.max()), -float(reference.min()))
        if np.isfinite(magnitude):  # most pairs are equal to the bit, and need no wider numbers
            return Distance(0.0, magnitude, True)
    if reference.dtype.kind == "f" and reference.size:
        with np.errstate(all="ignore"):
            apart = np.subtract(reference, candidate, dtype=np.float64)
        largest = max(float(apart.max()), -float(apart.min()))
        if np.isfinite(largest):  # so that all numbers of both are
            return Distance(largest, max(float(reference.max()), -float(reference.min())), True)
    wide, other = _wide(reference), _wide(candidate)
    nan, other_nan = np.isnan(wide), np.isnan(other)
    infinite, other_infinite = np.isinf(wide), np.isinf(other)
    if (count := int(np.count_nonzero(nan != other_nan))) > 0:
        where = "candidate" if np.count_nonzero(other_nan & ~nan) else "reference"
        words = f"{count} of {wide.size} values are not a number in the {where} only"
        return Distance(float("inf"), 0.0, True, words)
    if np.any(infinite != other_infinite) or np.any(wide[infinite] != other[infinite]):
        return Distance(float("inf"), 0.0, True, "infinities stand at different places or have different signs")
    usual = ~(nan | infinite)
    wide, other = wide[usual], other[usual]
    if wide.size == 0:
        return Distance(0.0, 0.0, True)
    return Distance(float(np.abs(wide - other).max()), float(np.abs(wide).max()), True)


def says_something(array: Array) -> bool:
    """Whether a result is more than one value all over; single values and strings get the benefit of the doubt."""
    if array.dtype.kind in "OSU":
        return True
    finite = array[np.isfinite(array)]
    return finite.size > 0 and (array.size == 1 or bool(np.any(finite != finite[0])))
