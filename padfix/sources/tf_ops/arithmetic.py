"""Element-wise operators that ONNX, ONNX Runtime or tf2onnx lack, or that tf2onnx computes in another type.

tf2onnx takes Log of float64 through float32 and rounds quotients of integers towards zero where TensorFlow rounds them
down. The others it lacks. Logarithms near one, and differences of nearly equal exponentials, are computed as W. Kahan
does, so that nothing cancels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import FLOAT, INTEGER, Builder, Tensor

SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def _log1p(x: Tensor) -> Tensor:
    more = x + 1.0
    moved = more - 1.0
    # The rounding of the sum is taken back by the factor; far out the sum is the number itself, infinity included.
    factor = x.builder.choose(moved.equal(x), 1.0, x / moved)
    return x.builder.choose(moved.equal(0.0), x, more.logarithm() * factor)


def _expm1(x: Tensor) -> Tensor:
    builder, power = x.builder, x.exponential()
    less = power - 1.0
    near = less * (x / power.logarithm())
    result = builder.choose(less.equal(power) | less.equal(-1.0), less, near)
    return builder.choose(power.equal(1.0), x, result)


def _truncated(quotient: Tensor) -> Tensor:
    return quotient.builder.choose(quotient.less(0.0), quotient.ceil(), quotient.floor())


def _truncate_div(x: Tensor, y: Tensor) -> Tensor:
    return x / y if x.dtype.kind in "iu" else _truncated(x / y)


def _opposite(rest: Tensor, y: Tensor) -> Tensor:
    """Whether a remainder is not zero and has another sign than the divisor."""
    apart = (rest.less(0) & y.less(0).negated()) | (rest.less(0).negated() & y.less(0))
    return rest.equal(0).negated() & apart


def _floor_div(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype.kind == "f":
        return (x / y).floor()
    quotient = x / y
    if x.dtype.kind == "u":
        return quotient
    return quotient - _opposite(x.remainder(y), y).cast(x.dtype)


def _floor_mod(x: Tensor, y: Tensor) -> Tensor:
    rest = x.remainder(y)
    return rest if x.dtype.kind == "u" else x.builder.choose(_opposite(rest, y), rest + y, rest)


def _unless_zero(of: int, compute: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return ``compute`` with zero wherever its operand ``of`` is zero, whatever the other."""
    return lambda x, y: x.builder.choose((x, y)[of].equal(0.0), 0.0, compute(x, y))


def _angle(y: Tensor, x: Tensor) -> Tensor:
    if y.dtype == np.float16:
        return _angle(y.cast(FLOAT), x.cast(FLOAT)).cast(y.dtype)
    choose, (up, along) = y.builder.choose, (y.absolute(), x.absolute())
    is_steep = up.greater(along)
    less, more = choose(is_steep, along, up), choose(is_steep, up, along)
    ratio = choose(less.equal(more), more.greater(0.0).cast(y.dtype), less / more)
    first = y.builder.node("Atan", [ratio.cast(FLOAT)], FLOAT).cast(y.dtype)
    if y.dtype == np.float64:  # no Atan in ONNX Runtime; what is left is so small that it is its own arc tangent
        tangent = first.sine() / first.cosine()
        first = first + (ratio - tangent) / (ratio * tangent + 1.0)
    first = choose(is_steep, first * -1.0 + float(np.pi / 2), first)
    # Signs by products: ONNX Runtime's Where gives zero for the negative one.
    half = choose(x.is_negative(), first * -1.0 + float(np.pi), first)
    return half * choose(y.is_negative(), y.builder.constant(-1.0, y.dtype), 1.0)


def _cross(x: Tensor, y: Tensor) -> Tensor:
    (x1, x2), (y1, y2) = ([each.take(np.array(order), -1) for order in ([1, 2, 0], [2, 0, 1])] for each in (x, y))
    return x1 * y2 - x2 * y1


def _sinh(x: Tensor) -> Tensor:
    less = _expm1(x.absolute())
    # Not e**x before the sum: half of it is no infinity yet where the whole is.
    sine = (less + less / (less + 1.0)) * 0.5
    return x.builder.choose(x.less(0.0), sine * -1.0, sine)


def _cosh(x: Tensor) -> Tensor:
    power = x.absolute().exponential()
    return (power + x.builder.constant(1.0, x.dtype) / power) * 0.5


def _asinh(x: Tensor) -> Tensor:
    size = x.absolute()
    square = size * size
    near = _log1p(size + square / ((square + 1.0).root() + 1.0))
    far = size.logarithm() + float(np.log(2.0))
    result = x.builder.choose(size.greater(1e9), far, near)
    return x.builder.choose(x.less(0.0), result * -1.0, result)


def _acosh(x: Tensor) -> Tensor:
    above = x - 1.0
    near = _log1p(above + (above * above + above * 2.0).root())
    return x.builder.choose(x.greater(1e9), x.logarithm() + float(np.log(2.0)), near)


def _atanh(x: Tensor) -> Tensor:
    return _log1p(x * 2.0 / (x * -1.0 + 1.0)) * 0.5


def _selu(x: Tensor) -> Tensor:
    return x.builder.choose(x.less(0.0), _expm1(x) * (SELU_SCALE * SELU_ALPHA), x * SELU_SCALE)


_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Log": Tensor.logarithm,
    "Log1p": _log1p,
    "Expm1": _expm1,
}
_OF_SEVERAL: dict[str, Callable[..., Tensor]] = {
    "AddN": lambda *terms: functools.reduce(Tensor.__add__, terms),
    "Atan2": _angle,
    "Cross": _cross,
    "FloorDiv": _floor_div,
    "FloorMod": _floor_mod,
    "Mod": Tensor.remainder,
    "TruncateMod": Tensor.remainder,
    "TruncateDiv": _truncate_div,
    "MulNoNan": _unless_zero(1, Tensor.__mul__),
    "Xdivy": _unless_zero(0, Tensor.__truediv__),
    "Xlogy": _unless_zero(0, lambda x, y: x * y.logarithm()),
    "Xlog1py": _unless_zero(0, lambda x, y: x * _log1p(y)),
}
_IN_DOUBLE: dict[str, Callable[[Tensor], Tensor]] = {
    "Tan": lambda x: x.sine() / x.cosine(),
    "Sinh": _sinh,
    "Cosh": _cosh,
    "Asinh": _asinh,
    "Acosh": _acosh,
    "Atanh": _atanh,
    "Selu": _selu,
}
"""What ONNX Runtime has no float64 kernel for, or a constant that ONNX keeps as float32."""

OPERATORS = (*_UNARY, *_OF_SEVERAL, *_IN_DOUBLE, "LeftShift", "RightShift")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the elements in the type of the inputs."""
    operands = [builder.read(name) for name in node.input]
    if node.type in _OF_SEVERAL:
        return _OF_SEVERAL[node.type](*operands)
    if node.type in _UNARY:
        return _UNARY[node.type](*operands)
    if node.type in _IN_DOUBLE:
        (x,) = operands
        return _IN_DOUBLE[node.type](x) if x.dtype == np.float64 else builder.node(node.type, [x], x.dtype)
    return _shifted(builder, node.type == "LeftShift", *operands)


def _shifted(builder: Builder, to_left: bool, x: Tensor, places: Tensor) -> Tensor:
    """Return the bits moved, by 0 to all but one place as TensorFlow does, and keep the sign of what goes right."""
    bits = np.dtype(np.uint64)
    by = places.cast(INTEGER).maximum(0).minimum(8 * x.dtype.itemsize - 1).cast(bits)
    if to_left or x.dtype.kind == "u":
        direction = {"direction": "LEFT" if to_left else "RIGHT"}
        return builder.node("BitShift", [x.cast(bits), by], bits, direction).cast(x.dtype)
    # ~x is -1 - x, and what is shifted is not negative.
    wide = x.cast(INTEGER)
    is_negative = wide.less(0)
    size = builder.choose(is_negative, wide * -1 - 1, wide)
    moved = builder.node("BitShift", [size.cast(bits), by], bits, {"direction": "RIGHT"}).cast(INTEGER)
    return builder.choose(is_negative, moved * -1 - 1, moved).cast(x.dtype)
