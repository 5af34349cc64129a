"""What the products of ONNX Runtime's own domain are in operators of ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.rules.base import Site
from padfix.rules.build.contrib_parts import (
    Write,
    activated,
    bytes_again,
    dtype_of,
    is_there,
    knows_activation,
    like,
    number,
    numbers,
    there,
)

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_BITS = (2, 4, 8)


def _product(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    turned = []
    for place, name in enumerate(("transA", "transB")):
        known = site.input_type(place)
        rank = 2 if known is None or known.rank is None else known.rank
        is_turned = attributes.integer(site.node, name, 0) and rank > 1
        turned.append(builder.turned(inputs[place], rank) if is_turned else inputs[place])
    result, alpha = builder.op("MatMul", turned), number(site.node, "alpha", 1.0)
    return result if alpha == 1 else builder.op("Mul", [result, like(site, builder, alpha)])


def _dense(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    told = {name: attributes.integer(site.node, name, 0) for name in ("transA", "transB")}
    factors = {name: number(site.node, name, 1.0) for name in ("alpha", "beta")}
    result = builder.op("Gemm", [each for each in inputs[:3] if each is not None], {**factors, **told})
    return activated(site, builder, result)


def _dense_of_bytes(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    """Return the product of the numbers that bytes stand for; what is added is in steps of both."""
    told = {name: attributes.integer(site.node, name, 0) for name in ("transA", "transB")}
    alpha = number(site.node, "alpha", 1.0)
    scales = [site.constant(place) for place in (1, 4)]
    is_one = scales[1] is None or scales[1].size == 1
    factors = [
        numbers(builder, inputs[:3]),
        numbers(builder, inputs[3:6], None if is_one else 0 if told["transB"] else 1),
    ]
    added = site.constant(6)
    if added is not None and scales[0] is not None and scales[1] is not None:
        factors.append(builder.constant((added * scales[0] * scales[1]).astype(np.float32), "added"))
    result = builder.op("Gemm", factors, {"alpha": alpha, "beta": alpha, **told})
    return result if there(inputs, 7) is None else bytes_again(builder, result, inputs[7:9])


def _quantized_on_the_way(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    """Return a product of bytes, which data are made on the way, in the steps of both."""
    data, scale, zero = builder.op("DynamicQuantizeLinear", [inputs[0]], outputs=3)
    return _in_steps(builder, (data, inputs[1]), (scale, inputs[2]), (zero, there(inputs, 3)), there(inputs, 4))


def _of_bytes(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    zeros = (there(inputs, 4), there(inputs, 5))
    return _in_steps(builder, (inputs[0], inputs[1]), (inputs[2], inputs[3]), zeros, there(inputs, 6))


def _in_steps(
    builder: FragmentBuilder, data: tuple[Any, Any], scales: tuple[Any, Any], zeros: tuple[Any, Any], bias: Any
) -> Any:
    read = [*data, *zeros]
    while read[-1] is None:
        read.pop()
    product = builder.op("MatMulInteger", [builder.input("") if each is None else each for each in read])
    floats = builder.op("Cast", [product], {"to": TensorProto.FLOAT})
    result = builder.op("Mul", [floats, builder.op("Mul", list(scales))])
    return result if bias is None else builder.op("Add", [result, bias])


def _by_few_bits(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    """Return a product with the numbers that weights of a few bits stand for."""
    count, rows = (attributes.integer(site.node, name, 0) or 0 for name in ("K", "N"))
    packed, scales, zeros = (site.constant(place) for place in (1, 2, 3))
    assert packed is not None
    assert scales is not None
    weights = _unpacked(site, packed, scales, zeros, rows)[:, :count]
    result = builder.op("MatMul", [inputs[0], builder.constant(weights.T.astype(dtype_of(site)), "weights")])
    bias = there(inputs, 5)
    return result if bias is None else builder.op("Add", [result, bias])


def _unpacked(site: Site, packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None, rows: int) -> np.ndarray:
    """Return weights, by rows, whose blocks have a scale and a zero point each."""
    bits = attributes.integer(site.node, "bits", 4) or 4
    size = attributes.integer(site.node, "block_size", 1) or 1
    values = _parts_of_bytes(packed.reshape(rows, -1), bits)
    blocks = values.reshape(rows, -1, size).astype(np.float32)
    if zeros is None:
        middle: Any = float(1 << (bits - 1))
    elif zeros.dtype == np.uint8:
        middle = _parts_of_bytes(zeros.reshape(rows, -1), bits)[:, : blocks.shape[1], None].astype(np.float32)
    else:
        middle = zeros.reshape(rows, -1, 1).astype(np.float32)
    each = scales.reshape(rows, -1, 1).astype(np.float32)
    return np.asarray(((blocks - middle) * each).reshape(rows, -1))


def _parts_of_bytes(packed: np.ndarray, bits: int) -> np.ndarray:
    """Return the numbers of a few bits in each byte, the lowest first."""
    parts = [(packed >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.asarray(np.stack(parts, -1).reshape(*packed.shape[:-1], -1))


def _distances(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    """Return how far each row is from each other one."""
    first, second = builder.unsqueezed(inputs[0], 1), builder.unsqueezed(inputs[1], 0)
    apart = builder.op("Sub", [first, second])
    square = builder.op("Mul", [apart, apart])
    total = builder.op("ReduceSum", [square, builder.integers([2])], {"keepdims": 0})
    return total if site.text("metric", "sqeuclidean") == "sqeuclidean" else builder.op("Sqrt", [total])


def _why_no_dense(site: Site) -> Refusal | None:
    constants = (1, 4, *((6,) if is_there(site, 6) else ()))
    is_told = all(site.constant(place) is not None for place in constants)
    return None if is_told else Refusal("its scales, or what it adds, are no constants")


def _why_no_few_bits(site: Site) -> Refusal | None:
    if attributes.integer(site.node, "accuracy_level", 0) == 4:
        return Refusal("it makes bytes of its data")
    if is_there(site, 4) or attributes.integer(site.node, "bits", 4) not in _BITS:
        return Refusal("its weights are in another order, or of an odd number of bits")
    packed = [site.constant(place) for place in (1, 2, *((3,) if is_there(site, 3) else ()))]
    if any(each is None for each in packed):
        return Refusal("its weights are no constants")
    block = attributes.integer(site.node, "block_size", 1) or 1
    count, rows = (attributes.integer(site.node, name, 0) or 0 for name in ("K", "N"))
    expected = rows * math.ceil(count / block)
    is_odd = packed[1] is None or packed[1].size != expected
    return Refusal("its scales are not one for each block") if is_odd else None


def _why_no_distances(site: Site) -> Refusal | None:
    metric = site.text("metric", "sqeuclidean")
    return None if metric in ("euclidean", "sqeuclidean") else Refusal(f"there is no distance {metric!r}")


def _why_no_activation(site: Site) -> Refusal | None:
    activation = site.text("activation")
    return None if knows_activation(activation) else Refusal(f"there is no activation {activation!r}")


PRODUCTS: Mapping[str, Write] = {
    "CDist": _distances,
    "DynamicQuantizeMatMul": _quantized_on_the_way,
    "FusedGemm": _dense,
    "FusedMatMul": _product,
    "MatMulIntegerToFloat": _of_bytes,
    "MatMulNBits": _by_few_bits,
    "QGemm": _dense_of_bytes,
    "TransposeMatMul": _product,
}
"""By the type of an operator: what writes it."""

WHY_NO_PRODUCT: Mapping[str, Callable[[Site], Refusal | None]] = {
    "CDist": _why_no_distances,
    "FusedConv": _why_no_activation,
    "FusedGemm": _why_no_activation,
    "MatMulNBits": _why_no_few_bits,
    "QGemm": _why_no_dense,
}
"""By the type of an operator: what of it these forms don't say."""

PRODUCTS_SINCE: Mapping[str, int] = {
    "CDist": 13,
    "DynamicQuantizeMatMul": 11,
    "FusedGemm": 11,
    "MatMulIntegerToFloat": 10,
    "QGemm": 13,
}
"""The first opset that has what an operator is written with, where not all have."""
