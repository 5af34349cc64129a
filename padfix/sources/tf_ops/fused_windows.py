"""Convolutions that TensorFlow fused with what comes before them, taken apart again, as tf2onnx can't read them.

FusedPadConv2D mirrors the border, then convolves; FusedResizeAndPadConv2D resizes bilinearly first. TensorFlow's
transform tool wrote them into frozen graphs of the TensorFlow 1 era.
"""

from __future__ import annotations

from typing import Any

import numpy as np

OPERATORS = frozenset({"FusedPadConv2D", "FusedResizeAndPadConv2D"})

_PASSING = frozenset({"Identity", "StopGradient", "PreventGradient", "CheckNumerics", "Snapshot"})
"""What hands on its input as it is; tf2onnx may drop them before it looks for a Pad."""

_OTHERS = frozenset({"mode", "resize_align_corners"})
"""The attributes of the fused operators that are not the convolution's own."""


def take_apart(ctx: Any) -> None:
    """Replace the fused nodes of a tf2onnx graph by MirrorPad and Conv2D, behind ResizeBilinear where they resize."""
    for node in [node for node in ctx.get_nodes() if node.type in OPERATORS]:
        image, *sizes, paddings, kernel = node.input
        lengths = ctx.get_shape(image) or [-1] * 4
        told = {"dtypes": node.output_dtypes, "skip_conversion": False}
        if sizes:
            corners = {"align_corners": node.get_attr_value("resize_align_corners", False)}
            lengths = [lengths[0], *_values(ctx, sizes[0], [-1, -1]), lengths[3]]
            name = f"{node.name}/padfix_resize"
            resize = ctx.make_node("ResizeBilinear", [image, *sizes], corners, name=name, shapes=[lengths], **told)
            image = resize.output[0]
        around = [sum(each) for each in _values(ctx, paddings, [[-1, 0]] * 4)]
        lengths = [-1 if min(size, more) < 0 else size + more for size, more in zip(lengths, around, strict=True)]
        mode = {"mode": node.get_attr_str("mode")}
        name = f"{node.name}/padfix_pad"
        pad = ctx.make_node("MirrorPad", [image, paddings], mode, name=name, shapes=[lengths], **told)
        node.type = "Conv2D"
        node.set_attr("data_format", "NHWC")
        ctx.replace_inputs(node, [pad.output[0], kernel])
        for attribute in _OTHERS & node.attr.keys():
            del node.attr[attribute]


def _values(ctx: Any, name: str, unknown: list[Any]) -> list[Any]:
    """Return what a tensor holds where it is constant."""
    node = ctx.get_node_by_output(name)
    return list(node.get_tensor_value()) if node is not None and node.is_const() else unknown


def keep_pads_apart(ctx: Any) -> None:
    """Write a Pad before a Conv2D with explicit paddings as PadV2.

    tf2onnx folds a Pad into the convolution behind it and loses the paddings that the convolution has of its own. It
    leaves PadV2 alone, which means the same with the padded value as an input.
    """
    from tf2onnx import utils

    for convolution in ctx.get_nodes():
        if convolution.type != "Conv2D" or convolution.get_attr_str("padding") != "EXPLICIT":
            continue
        pad = convolution.inputs[0]
        while pad is not None and pad.type in _PASSING:
            pad = pad.inputs[0]
        if pad is None or pad.type != "Pad":
            continue
        element = utils.map_onnx_to_numpy_type(ctx.get_dtype(pad.output[0]))
        zero = ctx.make_const(utils.make_name(f"{pad.name}_zero"), np.zeros([], element))
        pad.type = "PadV2"
        ctx.replace_inputs(pad, [*pad.input, zero.output[0]])
