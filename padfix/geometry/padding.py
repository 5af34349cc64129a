"""Padding of convolutions and pools, one axis at a time.

Notation: ``size`` is the input length on the axis, ``kernel`` the number of taps, ``effective_kernel``
the length the taps span. All lengths are in elements.

Sources: the ONNX operator specification (Conv, MaxPool, AveragePool, LpPool) and TensorFlow's
``GetWindowedOutputSize``; both define SAME by ``output = ceil(size / stride)``.
"""

from __future__ import annotations

from collections.abc import Sequence


def effective_kernel(kernel: int, dilation: int = 1) -> int:
    """Return the length that ``kernel`` taps span at ``dilation``: ``(kernel - 1) * dilation + 1``."""
    return (kernel - 1) * dilation + 1


def same_output_size(size: int, stride: int) -> int:
    """Return ``ceil(size / stride)``, the output length of SAME padding at every opset."""
    return -(-size // stride)


def same_total_padding(size: int, kernel: int, stride: int = 1, dilation: int = 1) -> int:
    """Return the number of padded elements on both sides together; never below 0.

    ``max(0, (output - 1) * stride + effective_kernel - size)``. It depends on ``size`` only through
    ``size % stride``, for every ``size >= 1``.
    """
    output = same_output_size(size, stride)
    return max(0, (output - 1) * stride + effective_kernel(kernel, dilation) - size)


def split_same_padding(total: int, *, upper: bool) -> tuple[int, int]:
    """Return (begin, end): the odd element goes to the end for SAME_UPPER, to the begin for SAME_LOWER."""
    small, big = total // 2, total - total // 2
    return (small, big) if upper else (big, small)


def same_padding(size: int, kernel: int, stride: int = 1, dilation: int = 1, *, upper: bool = True) -> tuple[int, int]:
    """Return (begin, end) pads of SAME_UPPER (``upper``) or SAME_LOWER on an axis of known ``size``."""
    return split_same_padding(same_total_padding(size, kernel, stride, dilation), upper=upper)


def residue_independent_padding(
    kernel: int, stride: int, dilation: int = 1, *, upper: bool = True
) -> tuple[int, int] | None:
    """Return the (begin, end) SAME pads when they are the same for every size, else None.

    The total of a residue ``r`` of 1 to ``stride`` is ``max(0, effective_kernel - r)``, which never grows with ``r``:
    all agree when the first and the last do. True for stride 1 (total is ``effective_kernel - 1``) and for a kernel of
    one tap, which pads nothing.
    """
    most, least = (same_total_padding(residue, kernel, stride, dilation) for residue in (1, stride))
    return split_same_padding(most, upper=upper) if most == least else None


def lasting_padding(kernel: int, stride: int, dilation: int = 1, *, upper: bool = True) -> tuple[int, int]:
    """Return the (begin, end) that SAME pads can be given before the size is known; the begin may have to grow.

    The begin is the shortest of all sizes. The end is the longest, because pads that are longer than need be make no
    window more: a size of residue ``r`` of 1 to ``stride`` then leaves over, behind its last window,
    ``longest end - own end + max(0, r - effective_kernel)`` elements. That is less than a stride, since the ends differ
    by half a stride at most while ``r <= effective_kernel``, and the longest is shorter than the kernel.
    """
    most, least = (same_padding(residue, kernel, stride, dilation, upper=upper) for residue in (1, stride))
    return least[0], most[1]


def size_independent_padding(
    kernel: int, stride: int, dilation: int = 1, *, upper: bool = True
) -> tuple[int, int] | None:
    """Return (begin, end) pads that give SAME's windows for every size, else None: all sizes have the same begin.

    So a kernel of 2 at stride 2 has ``(0, 1)`` with SAME_UPPER, and a kernel of 3 has ``(1, 1)`` with SAME_LOWER.
    """
    begin, end = lasting_padding(kernel, stride, dilation, upper=upper)
    most = same_padding(1, kernel, stride, dilation, upper=upper)
    return (begin, end) if begin == most[0] else None


def known_same_pads(
    sizes: Sequence[int | None],
    kernel: Sequence[int | None],
    strides: Sequence[int],
    dilations: Sequence[int],
    *,
    upper: bool,
) -> tuple[int | None, ...]:
    """Return SAME pads of all axes in ONNX order; None on an axis whose pads can't be known.

    An axis of unknown size is known all the same when its pads are the same for every size.
    """
    pairs: list[tuple[int, int] | None] = []
    for size, length, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        if length is None or stride < 1:
            pairs.append(None)
        elif size is None:
            pairs.append(residue_independent_padding(length, stride, dilation, upper=upper))
        else:
            pairs.append(same_padding(size, length, stride, dilation, upper=upper))
    return in_onnx_order(pairs)


def in_onnx_order(pairs: Sequence[tuple[int, int] | None]) -> tuple[int | None, ...]:
    """Return (begin, end) pairs in ONNX order, all begins first; None stands for both pads of an axis."""
    return tuple(pair and pair[0] for pair in pairs) + tuple(pair and pair[1] for pair in pairs)


def window_output_size(
    size: int, kernel: int, stride: int = 1, dilation: int = 1, begin: int = 0, end: int = 0, *, ceil_mode: bool = False
) -> int:
    """Return the output length with explicit pads.

    In ceil mode the last window must start inside the input or its begin padding, so a window that would start in the
    end padding is dropped.
    """
    span = size + begin + end - effective_kernel(kernel, dilation)
    if not ceil_mode:
        return span // stride + 1
    is_dropped = drops_window(size, kernel, stride, dilation, begin, end)
    return -(-span // stride) + (0 if is_dropped else 1)


def drops_window(size: int, kernel: int, stride: int = 1, dilation: int = 1, begin: int = 0, end: int = 0) -> bool:
    """Return whether ceil mode leaves out its last window, which would start in the end padding or behind it."""
    span = size + begin + end - effective_kernel(kernel, dilation)
    return -(-span // stride) * stride >= size + begin


def end_without_ceil_mode(kernel: int, stride: int, dilation: int, end: int) -> int | None:
    """Return the end padding that gives the windows of ceil mode without it, whatever the size.

    That is a stride less one more, unless ceil mode could drop a window, which it does for some sizes only: then None.
    """
    return end + stride - 1 if end + stride <= effective_kernel(kernel, dilation) else None


def has_window_in_padding(
    size: int, kernel: int, stride: int = 1, dilation: int = 1, begin: int = 0, end: int = 0
) -> bool:
    """Return whether some window has every tap in the padding; with SAME only a dilated one can."""
    if dilation == 1 and begin < kernel and end < kernel:
        return False
    last = size + end - effective_kernel(kernel, dilation)  # where the last window may start
    if last < -begin:
        return False
    windows = (last + begin) // stride + 1
    if size < 1 or (windows - 1) * stride - begin >= size:
        return True  # there is nothing to read, or the last window starts behind it
    # A window that starts on an element reads it. Of one that starts before, the first tap that is not before the
    # elements is on one when the start's residue modulo the dilation is, and when there is such a tap, which the very
    # first window is the last to lack.
    before = min(windows, -(-begin // stride))
    if before < 1:
        return False
    if -(-begin // dilation) >= kernel:
        return True
    first = -begin % dilation
    return size < dilation and _sum_of_quotients(before, dilation, stride, first + dilation - size) > _sum_of_quotients(
        before, dilation, stride, first
    )


def _sum_of_quotients(count: int, divisor: int, step: int, start: int) -> int:
    """Return the sum of ``(start + i * step) // divisor`` for ``i`` from 0 to ``count - 1``, in logarithmic time.

    The number of points under a line, with the axes exchanged as Euclid's algorithm exchanges its numbers. Two of these
    sums tell how many terms have a residue in an interval without visiting them: there may be billions.
    """
    total = 0
    while count > 0:
        total += (step // divisor) * (count * (count - 1) // 2) + (start // divisor) * count
        step, start = step % divisor, start % divisor
        top = step * count + start
        if top < divisor:
            break
        count, divisor, step, start = top // divisor, step, divisor, top % divisor
    return total


def separable_ceil_modes(
    size: int | None, kernel: int, stride: int = 1, dilation: int = 1, begin: int = 0, end: int = 0
) -> frozenset[bool]:
    """Return the ceil modes that a pool without pads may have behind a Pad, to give what ceil mode with pads gives.

    A window that starts in the end padding is dropped, but to the pool behind a Pad all elements are input. ``size`` is
    None for a length that is not known; then only what holds for every length counts.
    """
    if size is None:
        # The last window starts less than a stride behind the last one that fits.
        if end and end + stride > effective_kernel(kernel, dilation):
            return frozenset()
        return frozenset({True, False} if stride == 1 else {True})
    wanted = window_output_size(size, kernel, stride, dilation, begin, end, ceil_mode=True)
    padded = size + begin + end
    return frozenset(
        mode for mode in (False, True) if window_output_size(padded, kernel, stride, dilation, ceil_mode=mode) == wanted
    )


def taps_inside(
    size: int, kernel: int, stride: int = 1, dilation: int = 1, begin: int = 0, *, output: int
) -> list[int]:
    """Return how many taps of each of the ``output`` windows lie on the input rather than in the padding around it."""
    inside = []
    for start in range(-begin, output * stride - begin, stride):
        first = max(0, -(start // dilation))  # the first tap at or behind the first element
        behind = min(kernel, -((start - size) // dilation))  # the first tap behind the last element
        inside.append(max(0, behind - first))
    return inside
