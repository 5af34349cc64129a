"""tf2onnx handlers for what tf2onnx gets wrong or lacks.

They are handed to tf2onnx for one conversion, so nothing is registered for the rest of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from padfix.sources.tf_ops import (
    complex_pairs,
    conv_transpose,
    crop_and_resize,
    dilation,
    erfc,
    fake_quant,
    gathered_windows,
    patches,
    resize_bilinear,
    resize_matrices,
    resize_nearest,
)
from padfix.sources.tf_ops.tensor import Builder, Tensor

Handlers = dict[str, tuple[Any, list[Any]]]

_OLDEST_OPSET = {
    conv_transpose: 1,
    crop_and_resize: 11,
    dilation: 11,
    erfc: 9,
    fake_quant: 8,
    gathered_windows: 11,
    patches: 11,
    resize_bilinear: 11,
    resize_matrices: 11,
    resize_nearest: 11,
}
"""Each module, whose ``convert`` returns what takes the place of a node of its ``OPERATORS``, and what it asks for."""


def handlers() -> Handlers:
    """Return a handler by TensorFlow operator, as tf2onnx's ``custom_op_handlers`` takes them."""
    found: Handlers = {}
    for module, oldest in _OLDEST_OPSET.items():
        found |= handlers_of(module.OPERATORS, module.convert, oldest)
    return found


def handlers_of(operators: Iterable[str], convert: Callable[[Builder, Any], Tensor], oldest_opset: int) -> Handlers:
    """Return a handler for each of ``operators`` that puts what ``convert`` returns in the place of a node."""

    def handle(ctx: Any, node: Any, name: str, args: Any) -> None:
        if ctx.opset < oldest_opset:
            raise ValueError(f"{node.name} needs opset {oldest_opset} or newer")
        builder = Builder(ctx, node.name)
        builder.finish(convert(builder, node), node)

    return {operator: (handle, []) for operator in operators}


def rewriters() -> list[Any]:
    """Return what prepares the graph for the handlers, as tf2onnx's ``custom_rewriter`` takes it."""
    return [gathered_windows.rename, complex_pairs.separate]
