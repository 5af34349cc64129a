"""tf2onnx handlers for what tf2onnx gets wrong or lacks, one file an operator.

They are handed to tf2onnx for one conversion, so nothing is registered for the rest of the process.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops import (
    conv_transpose,
    crop_and_resize,
    dilation,
    erfc,
    fake_quant,
    gathered_windows,
    patches,
    resize_area,
    resize_bicubic,
    resize_bilinear,
    resize_nearest,
    scale_and_translate,
)

Handlers = dict[str, tuple[Any, list[Any]]]


def handlers() -> Handlers:
    """Return a handler by TensorFlow operator, as tf2onnx's ``custom_op_handlers`` takes them."""
    modules = (
        conv_transpose,
        crop_and_resize,
        dilation,
        erfc,
        fake_quant,
        gathered_windows,
        patches,
        resize_area,
        resize_bicubic,
        resize_bilinear,
        resize_nearest,
        scale_and_translate,
    )
    return {operator: (module.convert, []) for module in modules for operator in module.OPERATORS}


def rewriters() -> list[Any]:
    """Return what prepares the graph for the handlers, as tf2onnx's ``custom_rewriter`` takes it."""
    return [gathered_windows.rename]
