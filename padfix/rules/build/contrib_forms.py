"""What ONNX Runtime's own operators are in those of ONNX."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.contrib_layers import LAYERS, LAYERS_SINCE, WHY_NO_LAYER
from padfix.rules.build.contrib_parts import Write, activated, bytes_again, kept, like, number, numbers
from padfix.rules.build.contrib_products import PRODUCTS, PRODUCTS_SINCE, WHY_NO_PRODUCT
from padfix.rules.build.node_trials import trials_of

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

GRID_SAMPLE_SINCE = 16

TWO_BYTES_SINCE = 21
"""The first opset whose QuantizeLinear makes two bytes of a number."""

_GIVEN: Mapping[str, tuple[int, ...]] = {
    "EmbedLayerNormalization": (0, 1, 2),
    "SkipLayerNormalization": (0, 3),
    "SkipSimplifiedLayerNormalization": (0, 3),
    "Unique": (0, 1, 2),
}
"""Which outputs the forms of an operator give, where that is not the first alone."""


def written_plainly(site: Site) -> Rewrite | Refusal:
    """Return an operator of ONNX Runtime's domain in operators of ONNX; or what of it these can't say."""
    why_not = why_not_plain(site)
    if why_not is not None:
        return why_not
    builder = site.builder()
    inputs = [builder.input(name) if name else None for name in site.node.input]
    results = PLAINLY[site.node.op_type](site, builder, inputs)
    for name, result in zip(site.node.output, results if isinstance(results, tuple) else (results,), strict=False):
        if name and result is not None and (name == site.node.output[0] or site.scope.is_used(name)):
            builder.output(name, result)
    return Rewrite(builder.build(), trials_of(site))


def why_not_plain(site: Site) -> Refusal | None:
    """Return what of an operator there is nothing for in ONNX; None where there is."""
    node = site.node
    places = _GIVEN.get(node.op_type, (0,))
    if any(site.scope.is_used(name) for place, name in enumerate(node.output) if name and place not in places):
        return Refusal("outputs of it are read that nothing else gives")
    if attributes.integer(node, "channels_last", 0) and node.op_type.startswith("QLinear"):
        return Refusal("its channels come last")
    if any(attributes.integer(node, name, 0) for name in ("transBatchA", "transBatchB")):
        return Refusal("it exchanges axes of the batch")
    if node.op_type == "QLinearSoftmax" and attributes.integer(node, "opset", 0) < SINCE[node.op_type]:
        return Refusal("it takes axes together, as Softmax did before opset 13")
    why_not = (WHY_NO_LAYER.get(node.op_type) or WHY_NO_PRODUCT.get(node.op_type) or _always_written)(site)
    if why_not is not None:
        return why_not
    known = site.input_type(0)
    if (known is None or known.rank is None) and node.op_type in _NEEDING_RANK:
        return Refusal("the rank of its input is not known")
    return None


def _always_written(_: Site) -> Refusal | None:
    return None


def _convolution(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    read = [each for each in inputs[:3] if each is not None]
    result = builder.op("Conv", read, kept(site.node))
    if len(inputs) > 3 and inputs[3] is not None:
        result = builder.op("Add", [result, inputs[3]])
    return activated(site, builder, result)


def _gelu(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    value = builder.op("Add", inputs) if len(inputs) > 1 and inputs[1] is not None else inputs[0]
    share = builder.op("Erf", [builder.op("Mul", [value, like(site, builder, math.sqrt(0.5))])])
    half = builder.op("Mul", [value, like(site, builder, 0.5)])
    return builder.op("Mul", [half, builder.op("Add", [share, like(site, builder, 1)])])


def _fast_gelu(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    value = builder.op("Add", inputs) if len(inputs) > 1 and inputs[1] is not None else inputs[0]
    cube = builder.op("Mul", [builder.op("Mul", [value, value]), value])
    inner = builder.op("Add", [value, builder.op("Mul", [cube, like(site, builder, 0.044715)])])
    share = builder.op("Tanh", [builder.op("Mul", [inner, like(site, builder, math.sqrt(2 / math.pi))])])
    half = builder.op("Mul", [value, like(site, builder, 0.5)])
    return builder.op("Mul", [half, builder.op("Add", [share, like(site, builder, 1)])])


def _quick_gelu(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    alpha = like(site, builder, number(site.node, "alpha", 1.702))
    gate = builder.op("Sigmoid", [builder.op("Mul", [inputs[0], alpha])])
    return builder.op("Mul", [inputs[0], gate])


def _channels_last(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    known = site.input_type(0)
    rank = 4 if known is None or known.rank is None else known.rank
    images = builder.op("Transpose", [inputs[0]], {"perm": [0, rank - 1, *range(1, rank - 1)]})
    result = builder.op("MaxPool", [images], kept(site.node))
    return builder.op("Transpose", [result], {"perm": [0, *range(2, rank), 1]})


def _dequantized(op_type: str, operands: int = 1, first: int = 0) -> Write:
    """Return what computes an operator of bytes on the numbers that they stand for.

    Behind the ``first`` inputs, which are no bytes, each operand has its scale and zero point, and then the result has.
    """

    def write(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
        last = first + 3 * operands
        values = [numbers(builder, inputs[place : place + 3]) for place in range(first, last, 3)]
        result = builder.op(op_type, [*inputs[:first], *values], kept(site.node, ("channels_last", "opset")))
        return bytes_again(builder, result, inputs[last : last + 2])

    return write


def _leaky(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    result = builder.op("LeakyRelu", [numbers(builder, inputs[:3])], kept(site.node, ()))
    # OpenCV 5 takes what stands alone between bytes for a Relu.
    return bytes_again(builder, builder.op("Identity", [result]), inputs[3:])


def _joined(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    values = [numbers(builder, inputs[place : place + 3]) for place in range(2, len(inputs), 3)]
    return bytes_again(builder, builder.op("Concat", values, kept(site.node)), inputs[:2])


def _under_its_name(op_type: str, *, outputs: tuple[int, ...] = (0,), told: Mapping[str, Any] | None = None) -> Write:
    """Return what writes an operator of ONNX that means the same; ``outputs`` are the places of its results there."""

    def write(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
        read = [builder.input("") if each is None else each for each in inputs]
        results = builder.op(op_type, read, {**kept(site.node), **(told or {})}, outputs=max(outputs) + 1)
        return results if outputs == (0,) else tuple(results[place] for place in outputs)

    return write


def _with_axis(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    axis = site.constant(1)
    assert axis is not None
    return builder.unsqueezed(inputs[0], int(axis.reshape(-1)[0]))


_NEEDING_RANK = ("FusedMatMul", "NhwcMaxPool", "TransposeMatMul")

PLAINLY: Mapping[str, Write] = {
    **LAYERS,
    **PRODUCTS,
    "BiasGelu": _gelu,
    "DequantizeLinear": _under_its_name("DequantizeLinear"),
    "ExpandDims": _with_axis,
    "FastGelu": _fast_gelu,
    "FusedConv": _convolution,
    "GatherND": _under_its_name("GatherND"),
    "Gelu": _gelu,
    "GridSample": _under_its_name("GridSample"),
    "NhwcMaxPool": _channels_last,
    "Pad": _under_its_name("Pad"),
    "QLinearAdd": _dequantized("Add", 2),
    "QLinearAveragePool": _dequantized("AveragePool"),
    "QLinearConcat": _joined,
    "QLinearGlobalAveragePool": _dequantized("GlobalAveragePool"),
    "QLinearLeakyRelu": _leaky,
    "QLinearMul": _dequantized("Mul", 2),
    "QLinearSigmoid": _dequantized("Sigmoid"),
    "QLinearSoftmax": _dequantized("Softmax"),
    "QLinearWhere": _dequantized("Where", 2, 1),
    "QuantizeLinear": _under_its_name("QuantizeLinear"),
    "QuickGelu": _quick_gelu,
    "Trilu": _under_its_name("Trilu"),
    "Unique": _under_its_name("Unique", outputs=(0, 2, 3), told={"sorted": 0}),
}
"""By the type of an operator: what writes it."""

WITHOUT_FORM = (
    "ConvTransposeWithDynamicPads",
    "CropAndResize",
    "DecoderMaskedMultiHeadAttention",
    "DynamicQuantizeLSTM",
    "DynamicTimeWarping",
    "GatherBlockQuantized",
    "GroupQueryAttention",
    "Inverse",
    "MatMulBnb4",
    "MaxpoolWithMask",
    "MoE",
    "MurmurHash3",
    "NGramRepeatBlock",
    "QLinearConv",
    "SampleOp",
    "UnfoldTensor",
    "WordConvEmbedding",
)
"""Operators that are not written otherwise, of which targets may say what becomes of them."""

SINCE: Mapping[str, int] = {
    **LAYERS_SINCE,
    **PRODUCTS_SINCE,
    **dict.fromkeys(("DequantizeLinear", "QuantizeLinear"), 13),
    **dict.fromkeys(("GatherND", "Pad", "Unique"), 11),
    "GridSample": GRID_SAMPLE_SINCE,
    "NhwcMaxPool": 12,
    **dict.fromkeys(("QLinearAdd", "QLinearAveragePool", "QLinearConcat", "QLinearGlobalAveragePool"), 10),
    **dict.fromkeys(("QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid", "QLinearWhere"), 10),
    "QLinearSoftmax": 13,
    "Trilu": 14,
}
"""The first opset that has what an operator is written with, where not all have."""
