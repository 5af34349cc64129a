"""The convolutions and pools that the padding rules know, ONNX's and ONNX Runtime's, and how each reads its inputs.

The list is closed on purpose: an operator of another domain is never touched, whatever its name and attributes.
"""

from __future__ import annotations

from dataclasses import dataclass

CONTRIB = "com.microsoft"


@dataclass(frozen=True)
class WindowOperator:
    """What one operator type is.

    Attributes:
        weights: Position of the kernel among the inputs; None for pools.
        zero_point: Position of the zero point of the data, which is what a quantized operator pads with.
        scales: Positions of scalar scales.
        bias: Position of the bias.
        addend: Position of an input of the output's shape that is added to the result.
        is_maximum: Whether it pads with the least value of its type.
        channels_last: Whether the data is ``[N, *size, C]`` always; others may say so with an attribute.
    """

    weights: int | None = None
    zero_point: int | None = None
    scales: tuple[int, ...] = ()
    bias: int | None = None
    addend: int | None = None
    is_maximum: bool = False
    channels_last: bool = False

    @property
    def is_pool(self) -> bool:
        """Whether it has no weights."""
        return self.weights is None


_QLINEAR_CONV = WindowOperator(weights=3, zero_point=2, scales=(1, 4, 6), bias=8)

WINDOW_OPERATORS: dict[tuple[str, str], WindowOperator] = {
    ("", "Conv"): WindowOperator(weights=1, bias=2),
    ("", "ConvInteger"): WindowOperator(weights=1, zero_point=2),
    ("", "QLinearConv"): _QLINEAR_CONV,
    ("", "MaxPool"): WindowOperator(is_maximum=True),
    ("", "AveragePool"): WindowOperator(),
    ("", "LpPool"): WindowOperator(),
    (CONTRIB, "FusedConv"): WindowOperator(weights=1, bias=2, addend=3),
    (CONTRIB, "NhwcConv"): WindowOperator(weights=1, bias=2, channels_last=True),
    (CONTRIB, "NhwcFusedConv"): WindowOperator(weights=1, bias=2, addend=3, channels_last=True),
    (CONTRIB, "NhwcMaxPool"): WindowOperator(is_maximum=True, channels_last=True),
    (CONTRIB, "QLinearAveragePool"): WindowOperator(zero_point=2, scales=(1, 3)),
    (CONTRIB, "QLinearConv"): _QLINEAR_CONV,
}
"""By (normalised domain, operator)."""
