"""Equal and NotEqual of text, which ONNX compares from opset 19 on, and ZerosLike, which is as many empty strings.

tf2onnx casts text to numbers. Here each becomes the number of the first that is the same, and these are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import INTEGER, TEXT, Builder, Tensor, concatenated

OPERATORS = ("Equal", "NotEqual", "ZerosLike")


def convert(builder: Builder, node: Any) -> Tensor | None:
    """Return what the node makes of text; leave numbers to tf2onnx."""
    from tf2onnx.onnx_opset.generator import ZerosLike
    from tf2onnx.onnx_opset.logical import Equal

    ctx, read = builder.ctx, [builder.read(each) for each in node.input]
    if read[0].dtype != TEXT:
        theirs, known = (ZerosLike, (1, 9)) if node.type == "ZerosLike" else (Equal, (1, 7, 11))
        getattr(theirs, f"version_{max(each for each in known if each <= ctx.opset)}")(ctx, node)
        return None
    if ctx.opset < 11:
        raise ValueError(f"{node.name} needs opset 11 or newer")
    if node.type == "ZerosLike":
        return builder.constant("", TEXT).expand(read[0].shape())
    alike = _alike(builder, *read)
    return alike if node.type == "Equal" else alike.negated()


def _alike(builder: Builder, left: Tensor, right: Tensor) -> Tensor:
    known = next((each for each in (left, right) if each.array is not None), None)
    if known is None:
        return _ranks(builder, left, right)
    texts = np.unique(known.array.astype(str)).tolist() if known.array is not None else []
    attributes = {"keys_strings": texts, "values_int64s": list(range(len(texts))), "default_int64": -1}
    numbers = [builder.node("LabelEncoder", [each], INTEGER, attributes, domain="ai.onnx.ml") for each in (left, right)]
    return numbers[0].equal(numbers[1])


def _ranks(builder: Builder, left: Tensor, right: Tensor) -> Tensor:
    """Compare the places among all texts of both, with one more, so that there is always one."""
    flat = [left.reshape([-1]), right.reshape([-1]), builder.constant([""], TEXT)]
    *_, places = builder.nodes("Unique", [concatenated(flat)], [TEXT, INTEGER, INTEGER], {"sorted": 1})
    first = flat[0].lengths([0])[0]
    one, other = places.part(0, first, 0), places.part(first, -1, 0)
    # Reshape copies a length of zero from what it reads, which is as empty.
    return _as(one, left).equal(_as(other, right))


def _as(numbers: Tensor, text: Tensor) -> Tensor:
    return numbers.builder.node("Reshape", [numbers, text.shape()], INTEGER)
