"""What ONNX Runtime's own operators are in those of ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, helper

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.node_trials import trials_of

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

Write = Callable[[Site, "FragmentBuilder", list[Any]], Any]
"""Appends what a node is to a builder, given its inputs (None for one that is left out); returns its result."""

LAYER_NORM_SINCE, GRID_SAMPLE_SINCE = 17, 16

_OF_FUSIONS = ("activation", "activation_params", "alpha", "beta", "domain")


def written_plainly(site: Site) -> Rewrite | Refusal:
    """Return an operator of ONNX Runtime's domain in operators of ONNX; or what of it these can't say."""
    why_not = why_not_plain(site)
    if why_not is not None:
        return why_not
    builder = site.builder()
    inputs = [builder.input(name) if name else None for name in site.node.input]
    builder.output(site.node.output[0], PLAINLY[site.node.op_type](site, builder, inputs))
    return Rewrite(builder.build(), trials_of(site))


def why_not_plain(site: Site) -> Refusal | None:
    """Return what of an operator there is nothing for in ONNX; None where there is."""
    node = site.node
    if any(site.scope.is_used(name) for name in node.output[1:]):
        return Refusal("more than its first output is read")
    if attributes.integer(node, "channels_last", 0) and node.op_type.startswith("QLinear"):
        return Refusal("its channels come last")
    if any(attributes.integer(node, name, 0) for name in ("transBatchA", "transBatchB")):
        return Refusal("it exchanges axes of the batch")
    if node.op_type == "QLinearSoftmax" and attributes.integer(node, "opset", 0) < SINCE[node.op_type]:
        return Refusal("it takes axes together, as Softmax did before opset 13")
    activation = attributes.text(node, "activation", "") or ""
    if activation and activation not in _ACTIVATIONS:
        return Refusal(f"there is no activation {activation!r}")
    known = site.input_type(0)
    if (known is None or known.rank is None) and node.op_type in _NEEDING_RANK:
        return Refusal("the rank of its input is not known")
    return None


def _number(node: NodeProto, name: str, usual: float) -> float:
    found = attributes.find(node, name)
    return usual if found is None else float(found.f)


def _like(site: Site, builder: FragmentBuilder, value: float) -> Any:
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0) or 1)
    return builder.constant(np.array(value, dtype), "number")


def _given(node: NodeProto, without: tuple[str, ...] = _OF_FUSIONS) -> dict[str, Any]:
    return {each.name: helper.get_attribute_value(each) for each in node.attribute if each.name not in without}


_ACTIVATIONS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
    "LeakyRelu": (("alpha", 0.01),),
    "HardSigmoid": (("alpha", 0.2), ("beta", 0.5)),
    "Clip": (("min", -math.inf), ("max", math.inf)),
}
"""Activations of fused convolutions, each with the attributes that ``activation_params`` lists."""


def _convolution(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    given = [each for each in inputs[:3] if each is not None]
    result = builder.op("Conv", given, _given(site.node))
    if len(inputs) > 3 and inputs[3] is not None:
        result = builder.op("Add", [result, inputs[3]])
    activation = attributes.text(site.node, "activation", "") or ""
    if not activation:
        return result
    written = attributes.find(site.node, "activation_params")
    listed = list(written.floats) if written is not None else []
    names = _ACTIVATIONS[activation]
    told = {name: listed[place] if place < len(listed) else usual for place, (name, usual) in enumerate(names)}
    if activation == "Clip" and builder.opset >= 11:
        bounds = [_like(site, builder, told[name]) for name in ("min", "max")]
        return builder.op("Clip", [result, *bounds])
    return builder.op(activation, [result], told)


def _product(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    turned = []
    for place, name in enumerate(("transA", "transB")):
        known = site.input_type(place)
        rank = 2 if known is None or known.rank is None else known.rank
        is_turned = attributes.integer(site.node, name, 0) and rank > 1
        turned.append(builder.turned(inputs[place], rank) if is_turned else inputs[place])
    result, alpha = builder.op("MatMul", turned), _number(site.node, "alpha", 1)
    return result if alpha == 1 else builder.op("Mul", [result, _like(site, builder, alpha)])


def _gelu(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    value = builder.op("Add", inputs) if len(inputs) > 1 and inputs[1] is not None else inputs[0]
    share = builder.op("Erf", [builder.op("Mul", [value, _like(site, builder, math.sqrt(0.5))])])
    half = builder.op("Mul", [value, _like(site, builder, 0.5)])
    return builder.op("Mul", [half, builder.op("Add", [share, _like(site, builder, 1)])])


def _fast_gelu(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    value = builder.op("Add", inputs) if len(inputs) > 1 and inputs[1] is not None else inputs[0]
    cube = builder.op("Mul", [builder.op("Mul", [value, value]), value])
    inner = builder.op("Add", [value, builder.op("Mul", [cube, _like(site, builder, 0.044715)])])
    share = builder.op("Tanh", [builder.op("Mul", [inner, _like(site, builder, math.sqrt(2 / math.pi))])])
    half = builder.op("Mul", [value, _like(site, builder, 0.5)])
    return builder.op("Mul", [half, builder.op("Add", [share, _like(site, builder, 1)])])


def _quick_gelu(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    alpha = _like(site, builder, _number(site.node, "alpha", 1.702))
    gate = builder.op("Sigmoid", [builder.op("Mul", [inputs[0], alpha])])
    return builder.op("Mul", [inputs[0], gate])


def _skipped_norm(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    total = builder.op("Add", inputs[:2])
    if len(inputs) > 4 and inputs[4] is not None:
        total = builder.op("Add", [total, inputs[4]])
    factors = [each for each in inputs[2:4] if each is not None]
    told = {"axis": -1, "epsilon": _number(site.node, "epsilon", 1e-12)}
    return builder.op("LayerNormalization", [total, *factors], told)


def _channels_last(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    known = site.input_type(0)
    rank = 4 if known is None or known.rank is None else known.rank
    images = builder.op("Transpose", [inputs[0]], {"perm": [0, rank - 1, *range(1, rank - 1)]})
    result = builder.op("MaxPool", [images], _given(site.node))
    return builder.op("Transpose", [result], {"perm": [0, *range(2, rank), 1]})


def _dequantized(op_type: str, operands: int = 1, first: int = 0) -> Write:
    """Return what computes an operator of bytes on the numbers that they stand for.

    Behind the ``first`` inputs, which are no bytes, each operand has its scale and zero point, and then the result has.
    """

    def write(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
        last = first + 3 * operands
        numbers = [_numbers(builder, inputs[place : place + 3]) for place in range(first, last, 3)]
        result = builder.op(op_type, [*inputs[:first], *numbers], _given(site.node, ("channels_last", "opset")))
        return _bytes(builder, result, inputs[last : last + 2])

    return write


def _leaky(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    result = builder.op("LeakyRelu", [_numbers(builder, inputs[:3])], _given(site.node, ()))
    # OpenCV 5 takes what stands alone between bytes for a Relu.
    return _bytes(builder, builder.op("Identity", [result]), inputs[3:])


def _joined(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    numbers = [_numbers(builder, inputs[place : place + 3]) for place in range(2, len(inputs), 3)]
    return _bytes(builder, builder.op("Concat", numbers, _given(site.node)), inputs[:2])


def _numbers(builder: FragmentBuilder, given: list[Any]) -> Any:
    return builder.op("DequantizeLinear", [each for each in given if each is not None])


def _bytes(builder: FragmentBuilder, value: Any, scale_and_zero: list[Any]) -> Any:
    return builder.op("QuantizeLinear", [value, *(each for each in scale_and_zero if each is not None)])


def _grid_sample(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    return builder.op("GridSample", inputs, _given(site.node))


_NEEDING_RANK = ("FusedMatMul", "NhwcMaxPool", "TransposeMatMul")

PLAINLY: Mapping[str, Write] = {
    "BiasGelu": _gelu,
    "FastGelu": _fast_gelu,
    "FusedConv": _convolution,
    "FusedMatMul": _product,
    "Gelu": _gelu,
    "GridSample": _grid_sample,
    "NhwcMaxPool": _channels_last,
    "QLinearAdd": _dequantized("Add", 2),
    "QLinearAveragePool": _dequantized("AveragePool"),
    "QLinearConcat": _joined,
    "QLinearGlobalAveragePool": _dequantized("GlobalAveragePool"),
    "QLinearLeakyRelu": _leaky,
    "QLinearMul": _dequantized("Mul", 2),
    "QLinearSigmoid": _dequantized("Sigmoid"),
    "QLinearSoftmax": _dequantized("Softmax"),
    "QLinearWhere": _dequantized("Where", 2, 1),
    "QuickGelu": _quick_gelu,
    "SkipLayerNormalization": _skipped_norm,
    "TransposeMatMul": _product,
}
"""By the type of an operator: what writes it."""

WITHOUT_FORM = (
    "Attention",
    "CDist",
    "ConvTransposeWithDynamicPads",
    "CropAndResize",
    "DequantizeLinear",
    "DynamicQuantizeLSTM",
    "DynamicQuantizeMatMul",
    "EmbedLayerNormalization",
    "ExpandDims",
    "FusedGemm",
    "GatherND",
    "Inverse",
    "MatMulIntegerToFloat",
    "MatMulNBits",
    "MaxpoolWithMask",
    "MultiHeadAttention",
    "Pad",
    "QAttention",
    "QGemm",
    "QuantizeLinear",
    "RotaryEmbedding",
    "SkipSimplifiedLayerNormalization",
    "Trilu",
    "Unique",
)
"""Operators that are not written otherwise, of which targets may say what becomes of them."""

SINCE: Mapping[str, int] = {
    "GridSample": GRID_SAMPLE_SINCE,
    "NhwcMaxPool": 12,
    **dict.fromkeys(("QLinearAdd", "QLinearAveragePool", "QLinearConcat", "QLinearGlobalAveragePool"), 10),
    **dict.fromkeys(("QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid", "QLinearWhere"), 10),
    "QLinearSoftmax": 13,
    "SkipLayerNormalization": LAYER_NORM_SINCE,
}
"""The first opset that has what an operator is written with, where not all have."""
