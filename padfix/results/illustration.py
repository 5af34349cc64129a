"""What a report draws of an operator: numbers only, taken from the model while it is at hand."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class WindowAxis:
    """One axis of a windowed operator; all lengths in elements.

    Attributes:
        size: Input length; of a transposed convolution its full output, before the pads are cut off.
        kernel: Number of taps.
        stride: From one window to the next.
        dilation: From one tap to the next.
        begin: Pads before the first element.
        end: Pads behind the last one.
        windows: Number of windows.
        is_example: Whether ``size`` is only known at run time, and this is one that it may have.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int
    windows: int
    is_example: bool = False

    def reads(self, position: int) -> bool:
        """Whether some window has a tap at ``position``, counted from the first pad."""
        for tap in range(self.kernel):
            window, between = divmod(position - tap * self.dilation, self.stride)
            if between == 0 and 0 <= window < self.windows:
                return True
        return False


@dataclass(frozen=True)
class Windows:
    """The windows of a convolution or pool on its padded input; of a ConvTranspose on its output before the crop."""

    op_type: str
    axes: tuple[WindowAxis, ...]
    transposed: bool = False


@dataclass(frozen=True)
class Sampling:
    """Where the first output elements of one axis fall on the input.

    Attributes:
        title: The mode in ONNX's words.
        positions: The position in the input of each output element.
        reads: The input elements that each output element is made of.
    """

    title: str
    positions: tuple[float, ...]
    reads: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Samples:
    """Where a resize samples, on the axis that it changes most.

    Attributes:
        op_type: The operator.
        axis: The axis.
        size: Input length.
        output: Output length; a sampling may hold fewer positions, the first ones.
        scale: The factor between them, exact where it comes from two lengths.
        written: What the node means.
        rewritten: What its replacement says; None before a rewrite.
        default: What a Resize of today without attributes reads, for a node that says nothing itself.
        is_example: Whether ``size`` is only known at run time, and this is one that it may have.
    """

    op_type: str
    axis: int
    size: int
    output: int
    scale: float | Fraction
    written: Sampling
    rewritten: Sampling | None = None
    default: Sampling | None = None
    is_example: bool = False


Illustration = Windows | Samples
