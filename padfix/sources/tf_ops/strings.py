"""Text: StringLower and StringUpper, and AsString of what is no float.

TensorFlow changes the letters of ASCII alone unless the encoding is said to be UTF-8. tf2onnx writes a StringNormalizer
without a locale, which ONNX Runtime takes for ``en_US.UTF-8``: it changes every alphabet, does not load where that is
not installed, and refuses to normalise nothing.
"""

from __future__ import annotations

from typing import Any

from onnx import TensorProto

from padfix.sources.tf_ops.tensor import INTEGER, TEXT, Builder, Tensor, concatenated

OPERATORS = ("StringLower", "StringUpper", "AsString")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the text."""
    data = builder.read(node.input[0])
    return _as_text(builder, node, data) if node.type == "AsString" else _in_one_case(builder, node, data)


def _as_text(builder: Builder, node: Any, data: Tensor) -> Tensor:
    if data.dtype.kind not in "iub":
        raise ValueError("AsString writes six digits behind the point of a float, which ONNX has no operator for")
    if node.get_attr_value("width", -1) > 0:
        raise ValueError("AsString fills numbers up to a width, which ONNX has no operator for")
    if data.dtype.kind == "b":
        return builder.choose(data, builder.constant("true", TEXT), builder.constant("false", TEXT))
    return builder.node("Cast", [data], TEXT, {"to": TensorProto.STRING})


def _in_one_case(builder: Builder, node: Any, data: Tensor) -> Tensor:
    """Return the strings in one case, through a list that is never empty."""
    attributes = {"case_change_action": "LOWER" if node.type == "StringLower" else "UPPER"}
    if not node.get_attr_value("encoding"):
        attributes["locale"] = "C"
    shape = data.shape()
    flat = concatenated([data.reshape([-1]), builder.constant([""], TEXT)])
    changed = builder.node("StringNormalizer", [flat], TEXT, attributes)
    return builder.node("Reshape", [changed.part(0, -1, 0), shape.cast(INTEGER)], TEXT)
