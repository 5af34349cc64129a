"""What becomes of a pool's windows when the amounts of a Pad before it are moved into its own pads."""

from __future__ import annotations

from padfix.geometry.padding import effective_kernel, window_output_size
from padfix.operators.window import Pair, Window


def same_windows(window: Window, own: tuple[Pair, ...], added: tuple[Pair, ...]) -> bool:
    """Whether ceil mode gives the same windows with all pads in the operator as with ``added`` in front of it.

    It drops a last window that starts in the operator's own end padding. ``window`` has the sizes before the Pad.
    """
    for (size, taps, stride, dilation), (begin, end), (before, after) in zip(window.axes, own, added, strict=True):
        taps = taps or 1
        if isinstance(size, int):
            separate = window_output_size(size + before + after, taps, stride, dilation, begin, end, ceil_mode=True)
            together = window_output_size(size, taps, stride, dilation, begin + before, end + after, ceil_mode=True)
            if separate != together:
                return False
        elif after and end + after + stride > effective_kernel(taps, dilation):
            return False
    return True
