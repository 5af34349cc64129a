"""Operators whose results have the shape and type that another operator would give.

Those of ONNX Runtime have no schema in the onnx package, so its shape inference stops at them, and a model of fixed
size would turn dynamic behind the first; two of ONNX have no inference of their own. While types are inferred, an
operator that has one stands in for each.
"""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import normal_domain
from padfix.operators.table import CONTRIB, Key


@dataclass(frozen=True)
class StandIn:
    """The operator of ONNX that takes an operator's place.

    Attributes:
        op_type: Its type.
        inputs: The positions of its inputs among those of the operator.
        every: With it, ``inputs`` are the first of groups of so many inputs that are repeated to the end.
        kept: Attributes that it has as well.
    """

    op_type: str
    inputs: tuple[int, ...] = (0,)
    every: int = 0
    kept: tuple[str, ...] = ()


_SAME_SHAPE = StandIn("Identity")
_QUANTIZED_PAIR = (0, 3)

STAND_INS: dict[Key, StandIn] = {
    **{
        (CONTRIB, name): _SAME_SHAPE
        for name in (
            "BiasAdd",
            "BiasDropout",
            "BiasGelu",
            "BiasSoftmax",
            "BitmaskDropout",
            "FastGelu",
            "Gelu",
            "GroupNorm",
            "QLinearLeakyRelu",
            "QLinearSigmoid",
            "QLinearSoftmax",
            "QuickGelu",
            "RotaryEmbedding",
            "SkipGroupNorm",
            "SkipLayerNormalization",
            "SkipSimplifiedLayerNormalization",
            "Trilu",
        )
    },
    **{
        ("", name): _SAME_SHAPE
        for name in ("GroupNormalization", "MeanVarianceNormalization", "SimplifiedLayerNormalization")
    },
    (CONTRIB, "QLinearAdd"): StandIn("Add", _QUANTIZED_PAIR),
    (CONTRIB, "QLinearMul"): StandIn("Mul", _QUANTIZED_PAIR),
    (CONTRIB, "QLinearWhere"): StandIn("Where", (0, 1, 4)),
    (CONTRIB, "QLinearConcat"): StandIn("Concat", (2,), every=3, kept=("axis",)),
    (CONTRIB, "QLinearGlobalAveragePool"): StandIn("GlobalAveragePool"),
    (CONTRIB, "QuantizeLinear"): StandIn("QuantizeLinear", (0, 1, 2), kept=("axis",)),
    (CONTRIB, "DequantizeLinear"): StandIn("DequantizeLinear", (0, 1, 2), kept=("axis",)),
    (CONTRIB, "GridSample"): StandIn("GridSample", (0, 1)),
    (CONTRIB, "FusedGemm"): StandIn("Gemm", (0, 1, 2), kept=("transA", "transB", "alpha", "beta")),
    (CONTRIB, "GemmFastGelu"): StandIn("MatMul", (0, 1)),
    (CONTRIB, "FusedMatMulActivation"): StandIn("MatMul", (0, 1)),
    (CONTRIB, "DynamicQuantizeMatMul"): StandIn("MatMul", (0, 1)),
    (CONTRIB, "MatMulInteger16"): StandIn("MatMulInteger", (0, 1)),
}
"""By (normalised domain, operator). Further results (of BiasDropout, SkipLayerNormalization) stay unknown."""


def put_stand_in(node: NodeProto) -> bool:
    """Turn ``node`` into the operator of ONNX that stands in for it, in place; return whether there is one."""
    found = STAND_INS.get((normal_domain(node.domain), node.op_type))
    if found is None or not node.output:
        return False
    positions = range(found.inputs[0], len(node.input), found.every) if found.every else found.inputs
    inputs = [node.input[position] for position in positions if position < len(node.input)]
    node.domain, node.op_type = "", found.op_type
    del node.input[:], node.output[1:]
    node.input.extend(inputs)
    attributes.remove(node, *(each.name for each in node.attribute if each.name not in found.kept))
    return True
