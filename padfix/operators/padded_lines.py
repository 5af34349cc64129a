"""Lines that a convolution pads to give as many elements as it reads, and taps that lie in pads below an image."""

from __future__ import annotations

from collections.abc import Sequence

from padfix.operators.window import Pair, Window

_LANES = 8
"""Elements of which QNN computes that many at a time."""


def keeps_line_of_eights(window: Window, pairs: Sequence[Pair | None]) -> bool | None:
    """Whether a convolution keeps the length of lines, a multiple of 8, that are padded by more than they have eights.

    The lines may be images of one row. QNN computes them otherwise; each channel by itself it computes as it should.
    """
    *rows, (_, taps, stride, dilation) = window.axes
    width = window.output_sizes()[-1]  # what a Pad has lengthened is as long as before
    *beside, pair = pairs or [None]
    is_line = all(length == 1 and reach == 1 for length, reach, _, _ in rows) and not any(
        any(each or ()) for each in beside
    )
    is_each = window.maps is not None and window.written.group == window.maps == window.channels
    if window.op_type != "Conv" or not is_line or is_each or stride != 1 or taps is None or pair is None:
        return False
    begin, end = pair
    if begin != end or 2 * begin != (taps - 1) * dilation or begin <= 1:
        return False
    return width % _LANES == 0 and width <= _LANES * (begin - 1) if isinstance(width, int) else None


def has_middle_taps_below(window: Window, pairs: Sequence[Pair | None]) -> bool | None:
    """Whether the middle of three rows of three taps lies below an image that is padded by 1 before it at the most.

    Columns are taken one by one, or every second one by taps side by side: OpenCV computes others as it should.
    """
    if window.op_type != "Conv" or window.kernel != (3, 3):
        return False
    across = (window.strides[1], window.dilations[1])
    rows, columns = pairs
    if across[0] != 1 and across != (2, 1):
        return False
    if any(pair is not None and pair[0] > 1 for pair in (rows, columns)):
        return False
    height, stride, dilation = window.sizes[0], window.strides[0], window.dilations[0]
    if rows is None:
        return None
    begin, end = rows
    if end <= dilation:
        return False
    if not isinstance(height, int):
        return True if stride == 1 else None
    last = (height + begin + end - 2 * dilation - 1) // stride * stride - begin
    return last + dilation >= height
