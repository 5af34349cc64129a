"""All that there is to know about windowed, transposed and resampling operators, ONNX's and ONNX Runtime's.

The list is closed on purpose: an operator of another domain is never touched, whatever its name and attributes.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

CONTRIB = "com.microsoft"

Key = tuple[str, str]
"""(Normalised domain, operator type)."""


class Family(enum.Enum):
    """How an operator reads its input."""

    WINDOW = "window"
    TRANSPOSED = "transposed"
    RESAMPLE = "resample"


@dataclass(frozen=True)
class Operator:
    """What one operator type is. Positions are those of inputs; None where there is no such input.

    Attributes:
        family: How it reads its input.
        weights: The kernel, ``[maps, channels, *kernel]`` (transposed: ``[channels, maps, *kernel]``); None for pools.
        bias: One number a map.
        zero_point: Of the data, which is what a quantized operator pads with.
        scales: Scalar scales of quantized operators.
        output_scale: The scale among them that says how long a step of the result is.
        addend: An input of the output's shape that is added to the result.
        mask: An input of the data's shape that says which elements count.
        dynamic_pads: The pads, where they are an input.
        is_maximum: Whether it pads with the least value of its type.
        is_average: Whether it divides by a number of elements, which may leave the pads out.
        channels_last: Whether the data is ``[N, *size, C]`` always; others may say so with an attribute.
        has_auto_pad: Whether it knows the attribute ``auto_pad``.
        since: The version of its domain that brought an attribute, where older versions are read too.
        arity: Least and greatest number of inputs, for operators that the installed onnx package has no schema of.
        declined: Why padfix reads the operator but rewrites none; empty where it does.
    """

    family: Family
    weights: int | None = None
    bias: int | None = None
    zero_point: int | None = None
    scales: tuple[int, ...] = ()
    output_scale: int | None = None
    addend: int | None = None
    mask: int | None = None
    dynamic_pads: int | None = None
    is_maximum: bool = False
    is_average: bool = False
    channels_last: bool = False
    has_auto_pad: bool = True
    since: Mapping[str, int] = field(default_factory=dict)
    arity: tuple[int, int] | None = None
    declined: str = ""

    @property
    def is_pool(self) -> bool:
        """Whether it has no weights."""
        return self.weights is None


_INTERNAL = "com.ms.internal.nhwc"
_BLOCKED = (
    "ONNX Runtime wrote this operator for its own layout of memory when it saved an optimised model, and nothing else "
    "runs it: save the model without layout optimisations, or convert the model that it was made from."
)


def _convolution(weights: int = 1, bias: int | None = 2, **more: object) -> Operator:
    return Operator(Family.WINDOW, weights, bias, **more)  # type: ignore[arg-type]


def _pool(**more: object) -> Operator:
    return Operator(Family.WINDOW, **more)  # type: ignore[arg-type]


_QLINEAR_CONV = _convolution(3, 8, zero_point=2, scales=(1, 4, 6), output_scale=6, arity=(8, 9))

OPERATORS: dict[Key, Operator] = {
    ("", "Conv"): _convolution(),
    ("", "ConvInteger"): _convolution(1, None, zero_point=2),
    ("", "QLinearConv"): _QLINEAR_CONV,
    ("", "DeformConv"): _convolution(1, 3, has_auto_pad=False),
    ("", "MaxPool"): _pool(is_maximum=True, since={"dilations": 10, "ceil_mode": 10}),
    ("", "AveragePool"): _pool(is_average=True, since={"dilations": 19, "ceil_mode": 10, "count_include_pad": 7}),
    ("", "LpPool"): _pool(since={"dilations": 18, "ceil_mode": 18}),
    ("", "MaxUnpool"): _pool(has_auto_pad=False),
    ("", "ConvTranspose"): Operator(Family.TRANSPOSED, 1, 2),
    ("", "Resize"): Operator(Family.RESAMPLE),
    ("", "Upsample"): Operator(Family.RESAMPLE),
    (CONTRIB, "FusedConv"): _convolution(addend=3, arity=(2, 4)),
    (CONTRIB, "NhwcConv"): _convolution(channels_last=True, arity=(2, 3)),
    (CONTRIB, "NhwcFusedConv"): _convolution(addend=3, channels_last=True, arity=(2, 4)),
    (CONTRIB, "NhwcMaxPool"): _pool(is_maximum=True, channels_last=True, arity=(1, 1)),
    (CONTRIB, "MaxpoolWithMask"): _pool(is_maximum=True, mask=1, arity=(2, 2)),
    (CONTRIB, "QLinearAveragePool"): _pool(is_average=True, zero_point=2, scales=(1, 3), output_scale=3, arity=(4, 5)),
    (CONTRIB, "QLinearConv"): _QLINEAR_CONV,
    (CONTRIB, "ConvTransposeWithDynamicPads"): Operator(Family.TRANSPOSED, 1, 3, dynamic_pads=2, arity=(2, 4)),
    **{
        (domain, name): Operator(
            Family.WINDOW,
            weights,
            is_maximum=name == "MaxPool",
            is_average=name == "AveragePool",
            channels_last=domain == _INTERNAL,
            declined=_BLOCKED,
        )
        for domain, names in (
            ("com.microsoft.nchwc", {"Conv": 1, "MaxPool": None, "AveragePool": None}),
            (_INTERNAL, {"Conv": 1, "FusedConv": 1, "ConvInteger": 1, "QLinearConv": 3}),
            (_INTERNAL, dict.fromkeys(("MaxPool", "AveragePool", "LpPool", "QLinearAveragePool"))),
        )
        for name, weights in names.items()
    },
}
"""What padfix knows of each operator."""

PADDED: frozenset[Key] = frozenset(
    key for key, each in OPERATORS.items() if each.family is Family.WINDOW and each.has_auto_pad
)
"""The convolutions and pools that may leave their pads to ``auto_pad``."""

TRANSPOSED: frozenset[Key] = frozenset(key for key, each in OPERATORS.items() if each.family is Family.TRANSPOSED)
"""The transposed convolutions."""
