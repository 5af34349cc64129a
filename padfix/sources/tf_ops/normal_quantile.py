"""Ndtri and Erfinv (``tf.math.ndtri``, ``erfinv``, ``erfcinv``), which tf2onnx lacks: Cephes' quotients of polynomials.

TensorFlow's kernels compute these in the numbers' own type, and the inverse error function through the quantiles of the
normal distribution, which loses digits near zero. So does what is here, to give the same numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import FLOAT, Builder, Tensor

OPERATORS = ("Ndtri", "Erfinv")

_MIDDLE = (
    (-59.96335010141079, 98.00107541859997, -56.67628574690703, 13.931260938727968, -1.2391658386738125),
    (
        1.0,
        1.9544885833814176,
        4.676279128988815,
        86.36024213908905,
        -225.46268785411937,
        200.26021238006066,
        -82.03722561683334,
        15.90562251262117,
        -1.1833162112133,
    ),
)
"""Numerator and denominator, the highest power first, between exp(-2) and 1 - exp(-2)."""

_OUTSIDE = (
    (
        4.0554489230596245,
        31.525109459989388,
        57.16281922464213,
        44.08050738932008,
        14.684956192885803,
        2.1866330685079025,
        -0.1402560791713545,
        -0.03504246268278482,
        -0.0008574567851546854,
    ),
    (
        1.0,
        15.779988325646675,
        45.39076351288792,
        41.3172038254672,
        15.04253856929075,
        2.504649462083094,
        -0.14218292285478779,
        -0.03808064076915783,
        -0.0009332594808954574,
    ),
)
"""The same down to exp(-32)."""

_FAR = (
    (
        3.2377489177694603,
        6.915228890689842,
        3.9388102529247444,
        1.3330346081580755,
        0.20148538954917908,
        0.012371663481782003,
        0.00030158155350823543,
        2.6580697468673755e-06,
        6.2397453918498364e-09,
    ),
    (
        1.0,
        6.02427039364742,
        3.6798356385616087,
        1.3770209948908132,
        0.21623699359449663,
        0.013420400608854318,
        0.00032801446468212774,
        2.8924786474538068e-06,
        6.790194080099813e-09,
    ),
)
"""And beyond."""


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the quantiles."""
    data = builder.read(node.input[0])
    if node.type == "Ndtri":
        return _quantile(data)
    through = data.cast(FLOAT) if data.dtype.name in ("float16", "bfloat16") else data
    return (_quantile((through + 1.0) * 0.5) * math.sqrt(0.5)).cast(data.dtype)


def _quantile(share: Tensor) -> Tensor:
    choose, edge = share.builder.choose, math.exp(-2)
    is_right = share.greater(1.0 - edge)
    tail = choose(is_right, share * -1.0 + 1.0, share)
    is_middle = tail.greater(edge)

    centred = choose(is_middle, tail - 0.5, 0.0)
    square = centred * centred
    middle = (centred + centred * (square * _quotient(square, _MIDDLE))) * math.sqrt(2 * math.pi)

    # TensorFlow takes numbers with few digits left for zero.
    is_inside = tail.less(float(np.finfo(share.dtype).tiny)).negated()
    far = choose(is_middle | is_inside.negated(), edge, tail)
    root = (far.logarithm() * -2.0).root()
    inverse = share.builder.constant(1.0, share.dtype) / root
    parts = choose(root.less(8.0), _quotient(inverse, _OUTSIDE), _quotient(inverse, _FAR))
    outside = root - root.logarithm() / root - inverse * parts
    outside = choose(is_right, outside, outside * -1.0)

    ends = choose(tail.less(0.0), math.nan, choose(is_right, share * 0.0 + math.inf, -math.inf))
    return choose(is_inside, choose(is_middle, middle, outside), ends)


def _quotient(x: Tensor, polynomials: tuple[tuple[float, ...], tuple[float, ...]]) -> Tensor:
    upper, lower = (_polynomial(x, each) for each in polynomials)
    return upper / lower


def _polynomial(x: Tensor, factors: tuple[float, ...]) -> Tensor:
    total = x * 0.0 + factors[0]
    for factor in factors[1:]:
        total = total * x + factor
    return total
