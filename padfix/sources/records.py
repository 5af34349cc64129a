"""Records of TensorFlow's operators for the table, whichever format they stand in."""

from __future__ import annotations

from collections.abc import Sequence

from padfix.geometry.padding import known_same_pads
from padfix.operators.inspection import explicit
from padfix.results import OpRecord

Shape = tuple[int | None, ...]


def coordinates(*, align_corners: bool, half_pixel_centers: bool) -> str:
    """Return what the switches of a resize mean, in the words of ONNX."""
    if align_corners:
        return "align_corners"
    return "half_pixel" if half_pixel_centers else "asymmetric"


def resize(name: str, kind: str, scope: str, *, mode: str, coordinates: str, sizes: Shape) -> OpRecord:
    """Return the record of a resize; ``sizes`` are those of its result, height and width."""
    nothing = (None, None, None, "", None, "NHWC")
    return OpRecord(name, kind, scope, *nothing, mode=mode, coordinates=coordinates, sizes=sizes)


def window(
    name: str,
    kind: str,
    scope: str,
    window: tuple[Shape, tuple[int, ...], tuple[int, ...]],
    written: str,
    sizes: Shape,
    layout: str,
    explicit_pads: Sequence[int] = (),
) -> OpRecord:
    """Return the record of an operator whose ``window`` is kernel, strides and dilations.

    ``sizes`` are those that SAME goes by; ``explicit_pads`` are begins and then ends.
    """
    pads: Shape | None = None
    if written == "EXPLICIT":
        pads, written = tuple(explicit_pads), explicit(list(explicit_pads))
    elif written == "VALID":
        pads = (0,) * 2 * len(sizes)
    elif written == "SAME":
        pads = known_same_pads(sizes, *window, upper=True)
    return OpRecord(name, kind, scope, *window, written, pads, layout)


def spatial(shape: Sequence[int | None] | None, start: int, count: int) -> Shape:
    """Return ``count`` lengths of a shape from ``start``; unknown ones where it has another rank than ``count + 2``."""
    if shape is None or len(shape) != count + 2:
        return (None,) * count
    return tuple(shape[start : start + count])
