"""Equal and NotEqual of text, which ONNX compares from opset 19 on, and ZerosLike, which is as many empty strings.

tf2onnx casts text to numbers. Here each becomes the number of the first that is the same, and these are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from padfix.sources.tf_ops.tensor import INTEGER, TEXT, Builder, Tensor

OPERATORS = ("Equal", "NotEqual", "ZerosLike")


def handle(ctx: Any, node: Any, name: str, args: Any) -> None:
    """Leave numbers to tf2onnx."""
    from tf2onnx.onnx_opset.generator import ZerosLike
    from tf2onnx.onnx_opset.logical import Equal

    if ctx.get_dtype(node.input[0]) != TensorProto.STRING:
        theirs, known = (ZerosLike, (1, 9)) if node.type == "ZerosLike" else (Equal, (1, 7, 11))
        getattr(theirs, f"version_{max(each for each in known if each <= ctx.opset)}")(ctx, node)
        return
    if ctx.opset < 11:
        raise ValueError(f"{node.name} needs opset 11 or newer")
    builder = Builder(ctx, node.name)
    read = [builder.read(each) for each in node.input]
    if node.type == "ZerosLike":
        builder.finish(builder.constant("", TEXT).expand(read[0].shape()), node)
    else:
        alike = _alike(builder, *read)
        builder.finish(alike if node.type == "Equal" else alike.negated(), node)


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
    whole = builder.node("Concat", flat, TEXT, {"axis": 0})
    made = builder.ctx.make_node(
        "Unique", [whole.name], {"sorted": 1}, output_count=3, dtypes=[TensorProto.STRING, *[TensorProto.INT64] * 2]
    )
    places = Tensor(builder, INTEGER, name=str(made.output[2]))
    first = flat[0].lengths([0])[0]
    one, other = places.part(0, first, 0), places.part(first, -1, 0)
    # Reshape copies a length of zero from what it reads, which is as empty.
    return _as(one, left).equal(_as(other, right))


def _as(numbers: Tensor, text: Tensor) -> Tensor:
    return numbers.builder.node("Reshape", [numbers, text.shape()], INTEGER)
