"""StringLower and StringUpper, which change the letters of ASCII alone unless the encoding is said to be UTF-8.

tf2onnx writes a StringNormalizer without a locale, which ONNX Runtime takes for ``en_US.UTF-8``: it changes every
alphabet, does not load where that is not installed, and refuses to normalise nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor

OPERATORS = ("StringLower", "StringUpper")

_TEXT = np.dtype(object)


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the strings in one case, through a list that is never empty."""
    data = builder.read(node.input[0])
    attributes = {"case_change_action": "LOWER" if node.type == "StringLower" else "UPPER"}
    if not node.get_attr_value("encoding"):
        attributes["locale"] = "C"
    shape = data.shape()
    last = builder.constant([""], _TEXT)
    flat = builder.node("Concat", [data.reshape([-1]), last], _TEXT, {"axis": 0})
    changed = builder.node("StringNormalizer", [flat], _TEXT, attributes)
    first = builder.node("Slice", [changed, builder.integers([0]), builder.integers([-1])], _TEXT)
    return builder.node("Reshape", [first, shape.cast(INTEGER)], _TEXT)
