"""Bitcast between numbers of one width: the bits of a float as an integer, and back.

ONNX has no such operator before opset 26, and ``keras.ops`` reads the sign of a zero by it (``argmax``, ``signbit``).
The bits are computed in float64, in which each step is exact. A number that is none has the bits of the usual one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor

OPERATORS = ("Bitcast",)

_DOUBLE = np.dtype(np.float64)


def convert(builder: Builder, node: Any) -> Tensor:
    """Return numbers of another type with the same bits.

    Raises:
        ValueError: The types differ in width, or are two kinds of floats.
    """
    data = builder.read(node.input[0])
    wanted = builder.type_of(node.output[0])
    kinds = data.dtype.kind + wanted.kind
    if data.dtype == wanted or (data.dtype.itemsize == wanted.itemsize and kinds in ("iu", "ui")):
        return data.cast(wanted)
    if data.dtype.itemsize != wanted.itemsize or kinds not in ("fi", "fu", "if", "uf"):
        raise ValueError(f"Bitcast of {data.dtype} to {wanted} has no ONNX form; numbers have to be of one width")
    return _bits(data, wanted) if data.dtype.kind == "f" else _float(data, wanted)


def _bits(data: Tensor, wanted: np.dtype[Any]) -> Tensor:
    builder, layout = data.builder, np.finfo(data.dtype)
    digits, bias = layout.nmant, layout.maxexp - 1
    size = data.absolute().cast(_DOUBLE)
    # The logarithm is off by one at most, which the quotient shows.
    exponent = (size.logarithm() / np.log(2.0)).floor().maximum(float(1 - bias)).minimum(float(bias))
    quotient = size / _power(exponent)
    exponent = exponent + quotient.less(2.0).negated().cast(_DOUBLE) - quotient.less(1.0).cast(_DOUBLE)
    fraction = (size / _power(exponent) - 1.0) * 2.0**digits
    normal = (exponent + float(bias)).cast(INTEGER) * 2**digits + fraction.cast(INTEGER)
    least = (size * 2.0 ** (bias // 2) * 2.0 ** (bias - 1 - bias // 2 + digits)).cast(INTEGER)
    found = builder.choose(size.less(2.0 ** (1 - bias)), least, normal)
    infinite = (2 * bias + 1) * 2**digits
    found = builder.choose(size.equal(np.inf), infinite, found)
    found = builder.choose(size.equal(size), found, infinite + 2 ** (digits - 1))
    top = 2 ** (layout.bits - 1)
    return builder.choose(
        data.is_negative(), found + (top if wanted.kind == "u" and layout.bits < 64 else -top), found
    ).cast(wanted)


def _float(data: Tensor, wanted: np.dtype[Any]) -> Tensor:
    builder, layout = data.builder, np.finfo(wanted)
    digits, bias = layout.nmant, layout.maxexp - 1
    whole = data.cast(np.dtype(f"i{wanted.itemsize}")).cast(INTEGER)
    is_negative = whole.less(0)
    bits = builder.choose(is_negative, whole - -(2 ** (layout.bits - 1)), whole)
    exponent = bits / 2**digits
    fraction = (bits - exponent * 2**digits).cast(_DOUBLE)
    normal = (fraction * 2.0**-digits + 1.0) * _power((exponent - bias).cast(_DOUBLE))
    found = builder.choose(exponent.equal(0), fraction * 2.0**-digits * 2.0 ** (1 - bias), normal)
    beyond = builder.choose(fraction.equal(0.0), builder.constant(np.inf, _DOUBLE), np.nan)
    found = builder.choose(exponent.equal(2 * bias + 1), beyond, found)
    # Not a choice between two results: ONNX Runtime's Where gives zero for the negative one.
    return (found * builder.choose(is_negative, builder.constant(-1.0, _DOUBLE), 1.0)).cast(wanted)


def _power(exponent: Tensor) -> Tensor:
    return exponent.builder.node("Pow", [exponent.builder.constant(2.0, _DOUBLE), exponent], _DOUBLE)
