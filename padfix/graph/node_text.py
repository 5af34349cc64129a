"""A node in a line of words: its operator, its attributes, and the constants that say what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, defs

from padfix.graph.scopes import DEFAULT_DOMAIN, normal_domain

MOST_NUMBERS = 8
MOST_NODES = 6
LONGEST_TEXT = 120

_WORDS = {
    AttributeProto.GRAPH: "a graph",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.TENSOR: "a tensor",
    AttributeProto.SPARSE_TENSOR: "a tensor",
}
_TOLD = frozenset({"pads", "scales", "sizes", "axes", "starts", "ends", "steps", "constant_value", "indices", "shape"})
"""Inputs that are a setting of the node rather than data, by their names in the specification."""

Constant = Callable[[str], np.ndarray | None]


def lines_of(nodes: Sequence[NodeProto], opset: int, constant: Constant) -> tuple[str, ...]:
    """Return a line for each node; of very many the first and the last ones, and how many there are between."""
    if len(nodes) <= MOST_NODES:
        return tuple(_line(node, opset, constant) for node in nodes)
    half = MOST_NODES // 2
    first, last = (lines_of(part, opset, constant) for part in (nodes[: half - 1], nodes[-half:]))
    return (*first, f"{len(nodes) - MOST_NODES + 1} more nodes", *last)


def _line(node: NodeProto, opset: int, constant: Constant) -> str:
    told = [f"{attribute.name}={_value(attribute)}" for attribute in node.attribute]
    if normal_domain(node.domain) == DEFAULT_DOMAIN and defs.has(node.op_type, opset, DEFAULT_DOMAIN):
        formal = defs.get_schema(node.op_type, opset, DEFAULT_DOMAIN).inputs
        for each, name in zip(formal, node.input, strict=False):
            value = constant(name) if name and each.name in _TOLD else None
            if value is not None and value.size <= MOST_NUMBERS:
                told.append(f"{each.name}={_numbers(value.tolist())}")
    return f"{node.op_type}({', '.join(told)})"


def _value(attribute: AttributeProto) -> str:
    if attribute.ref_attr_name:
        return f"that of {attribute.ref_attr_name}"
    words = _WORDS.get(attribute.type)
    if words is not None:
        return words
    text = _numbers(onnx.helper.get_attribute_value(attribute))
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _numbers(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_numbers, value))}]"
    return str(value)
