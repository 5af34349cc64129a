"""Which elements a Pad of the modes reflect, edge and wrap repeats, one axis at a time.

Source: the ONNX operator specification of Pad (version 19). A negative amount takes elements away, before any is
repeated: that is how ONNX Runtime 1.31 runs it.
"""

from __future__ import annotations


def border_indices(mode: str, size: int, begin: int, end: int) -> list[int]:
    """Return the input index of each of the ``size + begin + end`` output elements of an axis of ``size`` >= 1.

    Raises:
        ValueError: ``mode`` is none of reflect, edge and wrap, or nothing is left that it could repeat.
    """
    first = max(0, -begin)
    left = size - first + min(0, end)
    if left < 1:
        raise ValueError("Nothing is left to repeat.")
    return [first + _index(mode, left, place) for place in range(-max(0, begin), left + max(0, end))]


def _index(mode: str, size: int, place: int) -> int:
    if mode == "edge":
        return min(max(place, 0), size - 1)
    if mode == "wrap":
        return place % size
    if mode == "reflect":
        if size == 1:
            return 0
        place %= 2 * (size - 1)
        return min(place, 2 * (size - 1) - place)
    raise ValueError(f"mode {mode!r} repeats no elements.")
