"""Padding of convolutions and pools, one axis at a time.

Notation: ``size`` is the input length on the axis, ``kernel`` the number of taps, ``effective_kernel``
the length the taps span. All lengths are in elements.

Sources: the ONNX operator specification (Conv, MaxPool, AveragePool, LpPool) and TensorFlow's
``GetWindowedOutputSize``; both define SAME by ``output = ceil(size / stride)``.
"""

from __future__ import annotations


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


def same_total_padding_of_residue(residue: int, kernel: int, stride: int = 1, dilation: int = 1) -> int:
    """Return :func:`same_total_padding` of every size with ``size % stride == residue``."""
    return same_total_padding(residue or stride, kernel, stride, dilation)


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

    True for stride 1 (total is ``effective_kernel - 1``) and for any axis whose totals agree over all residues.
    """
    options = {
        split_same_padding(same_total_padding_of_residue(residue, kernel, stride, dilation), upper=upper)
        for residue in range(stride)
    }
    return options.pop() if len(options) == 1 else None


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
    output = -(-span // stride) + 1
    if (output - 1) * stride >= size + begin:
        output -= 1
    return output


def has_window_in_padding(
    size: int, kernel: int, stride: int = 1, dilation: int = 1, begin: int = 0, end: int = 0
) -> bool:
    """Return whether some window has every tap in the padding; with SAME only a dilated one can."""
    if dilation == 1 and begin < kernel and end < kernel:
        return False
    starts = range(-begin, size + end - effective_kernel(kernel, dilation) + 1, stride)
    return any(all(not 0 <= start + tap * dilation < size for tap in range(kernel)) for start in starts)


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
    return [
        sum(0 <= window * stride - begin + tap * dilation < size for tap in range(kernel)) for window in range(output)
    ]
