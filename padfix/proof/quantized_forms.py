"""The two forms of a quantised operator: one node, or an operator of floats between bytes that are read and given.

A QLinearConv is one node. A DequantizeLinear, a Conv and a QuantizeLinear are another way to write it, in which no
tensor but the bytes is one of the former's. What only moves or chooses bytes is itself in the one, and stands between
such nodes in the other.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from padfix.proof.constants import Constants
from padfix.proof.graph_view import GraphView, NodeView

_LIMITS = frozenset({"Relu", "Clip"})
"""What the limits of bytes stand for in the form of one node."""


@dataclass(frozen=True)
class QuantizedForm:
    """What a node of bytes computes, in either form.

    Attributes:
        operator: The operator of floats that it stands for.
        read: The bytes that it reads and that are no constants.
        constants: Digests of the constants that it reads.
        is_spread: Whether it is written with an operator of floats; the node gives its bytes.
    """

    operator: str
    read: tuple[str, ...]
    constants: frozenset[Hashable]
    is_spread: bool


def quantized_form(node: NodeView, view: GraphView, constants: Constants) -> QuantizedForm | None:
    """Return what a node computes if it reads and gives bytes; None where it does not for certain."""
    if node.op_type != "QuantizeLinear":
        known = frozenset(constants.digest(name) for name in node.inputs if name in constants)
        read = tuple(name for name in node.inputs if name and name not in constants)
        operator = "Gemm" if node.op_type == "QGemm" else node.op_type.removeprefix("QLinear")
        return QuantizedForm(operator, read, known, is_spread=False)
    inner = view.producers.get(node.inputs[0])
    while inner is not None and inner.op_type in _LIMITS:
        inner = view.producers.get(inner.inputs[0])
    given = [view.producers.get(name) for name in inner.inputs if name and name not in constants] if inner else []
    sources = [each for each in given if each is not None and each.op_type == "DequantizeLinear"]
    if inner is None or not sources or len(sources) < len(given):
        return None
    names = [name for each in (node, *sources) for name in each.inputs[each is node :] if name]
    read = tuple(each.inputs[0] for each in sources if each.inputs[0] not in constants)
    known = frozenset(constants.digest(name) for name in names if name in constants)
    return QuantizedForm(inner.op_type, read, known, is_spread=True)
