"""Moves of single operators to a newer opset that the official converter gets wrong or can't do.

Each adapter takes the node where it stands and the target opset, and returns the nodes that take its place, a refusal,
or None when the official converter does this one right. What each change means is in the operators' change log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.rules.base import Refusal, Site

if TYPE_CHECKING:
    from padfix.graph.fragment import Fragment

Adapter = Callable[[Site, int], "Fragment | Refusal | None"]


def _copy(site: Site, *dropped: str) -> NodeProto:
    node = NodeProto()
    node.CopyFrom(site.node)
    attributes.remove(node, *dropped)
    return node


def _same_inputs(site: Site, target: int, node: NodeProto) -> Fragment:
    """Return ``node`` alone, reading what it read before."""
    builder = site.builder(target)
    results = builder.original(node, [builder.input(name) for name in node.input])
    for name, value in zip(node.output, results if isinstance(results, list) else [results], strict=True):
        if name:
            builder.output(name, value)
    return builder.build()


def _element_dtype(site: Site) -> np.dtype[np.generic]:
    image = site.input_type(0)
    elem_type = image.elem_type if image is not None and image.elem_type else int(TensorProto.FLOAT)
    return np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))


def _softmax(site: Site, target: int) -> Fragment | Refusal | None:
    """Before 13 all axes from ``axis`` on are one; from 13 on ``axis`` is the only one, by default the last."""
    if site.opset >= 13 or target < 13:
        return None
    axis = attributes.integer(site.node, "axis", 1)
    node = _copy(site)
    image = site.input_type(0)
    rank = None if image is None else image.rank
    builder = site.builder(target)
    given = builder.input(site.node.input[0])
    attributes.set_integer(node, "axis", -1)
    if axis == -1 or (rank is not None and axis == rank - 1):
        result = builder.original(node, [given])
    else:
        flat = builder.op("Flatten", [given], {"axis": axis})
        result = builder.op("Reshape", [builder.original(node, [flat]), builder.op("Shape", [given])])
    builder.output(site.node.output[0], result)
    return builder.build()


def _clip(site: Site, target: int) -> Fragment | Refusal | None:
    """From 11 on the bounds are inputs, of the element type of the data."""
    if site.opset >= 11 or target < 11:
        return None
    builder = site.builder(target)
    inputs = [builder.input(site.node.input[0])]
    for name in ("min", "max"):
        bound = attributes.find(site.node, name)
        value = builder.input("") if bound is None else builder.constant(np.array(bound.f, _element_dtype(site)), name)
        inputs.append(value)
    while attributes.find(site.node, ("min", "max")[len(inputs) - 2]) is None:
        inputs.pop()
        if len(inputs) == 1:
            break
    result = builder.original(_copy(site, "min", "max", "consumed_inputs"), inputs)
    builder.output(site.node.output[0], result)
    return builder.build()


def _pad(site: Site, target: int) -> Fragment | Refusal | None:
    """From 11 on pads and the value are inputs; version 1 called the pads ``paddings``."""
    if site.opset >= 11 or target < 11:
        return None
    pads = attributes.integers(site.node, "paddings" if site.opset < 2 else "pads")
    if pads is None:
        return Refusal("Pad has no pads; correct the node.")
    builder = site.builder(target)
    inputs = [builder.input(site.node.input[0]), builder.constant(np.array(pads, np.int64), "pads")]
    value = attributes.find(site.node, "value")
    if value is not None and value.f != 0:
        inputs.append(builder.constant(np.array(value.f, _element_dtype(site)), "value"))
    result = builder.original(_copy(site, "pads", "paddings", "value"), inputs)
    builder.output(site.node.output[0], result)
    return builder.build()


def _dropout(site: Site, target: int) -> Fragment | Refusal | None:
    """The mask became boolean in 10 and true (not false) without training in 12; unused ones are dropped."""
    if len(site.node.output) < 2 or not site.node.output[1] or target < 10:
        return None
    mask = site.node.output[1]
    if site.scope.consumers(mask) or site.scope.is_output(mask):
        if site.opset >= 12 or (site.opset >= 10 and target < 12):
            return None
        return Refusal("the mask of this Dropout is used, and its meaning changed between the two opsets")
    node = _copy(site, "is_test", "consumed_inputs")
    del node.output[1:]
    builder = site.builder(target)
    inputs = [builder.input(site.node.input[0])]
    if target >= 12 and site.opset < 12:
        ratio = attributes.find(node, "ratio")
        if ratio is not None:
            inputs.append(builder.constant(np.array(ratio.f, np.float32), "ratio"))
        attributes.remove(node, "ratio")
    elif site.opset >= 12:
        inputs = [builder.input(name) for name in site.node.input]
    builder.output(site.node.output[0], builder.original(node, inputs))
    return builder.build()


def _batch_normalization(site: Site, target: int) -> Fragment | Refusal | None:
    if attributes.integer(site.node, "spatial", 1) != 1 and site.opset < 9 <= target:
        return Refusal("spatial=0 has no counterpart from opset 9 on; write it as Sub, Mul and Add in the source")
    used = [name for name in site.node.output[1:] if name]
    if used and site.opset < 14 <= target:
        return Refusal("it gives running statistics, whose meaning changed in opset 14; export it for inference")
    return None


def _broadcasting(site: Site, target: int) -> Fragment | Refusal | None:
    """Before 7 ``broadcast`` lined the second input up with ``axis`` of the first; from 7 on with the last axes."""
    if site.opset >= 7 or target < 7:
        return None
    node = _copy(site, "broadcast", "axis", "consumed_inputs")
    axis = attributes.find(site.node, "axis")
    if not attributes.integer(site.node, "broadcast", 0) or axis is None:
        return _same_inputs(site, target, node)
    first, second = site.input_type(0), site.input_type(1)
    if first is None or second is None or first.rank is None or second.rank is None:
        return Refusal("it broadcasts along an axis and the ranks are not known; give the model input shapes")
    start = axis.i + first.rank if axis.i < 0 else axis.i
    return _with_trailing_axes(site, target, node, first.rank - start - second.rank)


def _prelu(site: Site, target: int) -> Fragment | Refusal | None:
    """Before 7 a slope of one axis is one value a channel; from 7 on it lines up with the last axes."""
    if site.opset >= 7 or target < 7:
        return None
    node = _copy(site, "consumed_inputs")
    image, slope = site.input_type(0), site.input_type(1)
    if slope is not None and slope.shape in ((), (1,)):
        return _same_inputs(site, target, node)
    if image is None or slope is None or image.rank is None or slope.rank != 1:
        return Refusal("one slope a channel needs known ranks; give the model input shapes")
    return _with_trailing_axes(site, target, node, image.rank - 2)


def _with_trailing_axes(site: Site, target: int, node: NodeProto, count: int) -> Fragment | Refusal:
    if count < 0:
        return Refusal("its inputs don't broadcast; correct the node")
    if count == 0:
        return _same_inputs(site, target, node)
    rank = getattr(site.input_type(1), "rank", None) or 0
    builder = site.builder(target)
    first, second = (builder.input(name) for name in site.node.input[:2])
    axes = list(range(rank, rank + count))
    if target >= 13:
        second = builder.op("Unsqueeze", [second, builder.constant(np.array(axes, np.int64), "axes")])
    else:
        second = builder.op("Unsqueeze", [second], {"axes": axes})
    builder.output(site.node.output[0], builder.original(node, [first, second]))
    return builder.build()


def _gemm(site: Site, target: int) -> Fragment | Refusal | None:
    """Before 7 broadcasting of the third input is asked for; from 7 on it is always there."""
    return _same_inputs(site, target, _copy(site, "broadcast")) if site.opset < 7 <= target else None


def _cast(site: Site, target: int) -> Fragment | Refusal | None:
    """Before 6 the type is a name, from 6 on its number."""
    if site.opset >= 6 or target < 6:
        return None
    name = site.text("to")
    if name not in TensorProto.DataType.keys():  # noqa: SIM118 - an enum wrapper, not a dict
        return Refusal(f'to="{name}" is not a type')
    node = _copy(site, "to")
    attributes.set_integer(node, "to", TensorProto.DataType.Value(name))
    return _same_inputs(site, target, node)


def _resize(site: Site, target: int) -> Fragment | Refusal | None:
    """``tf_half_pixel_for_nn`` was removed in 13; rounded down it is half_pixel rounded to the upper neighbour."""
    if site.text("coordinate_transformation_mode") != "tf_half_pixel_for_nn" or site.opset >= 13 or target < 13:
        return None
    if site.text("mode", "nearest") != "nearest" or site.text("nearest_mode") != "floor":
        return Refusal("tf_half_pixel_for_nn was removed in opset 13 and only mode nearest with floor has an equal")
    node = _copy(site)
    attributes.set_text(node, "coordinate_transformation_mode", "half_pixel")
    attributes.set_text(node, "nearest_mode", "round_prefer_ceil")
    return _same_inputs(site, target, node)


ADAPTERS: dict[str, Adapter] = {
    "BatchNormalization": _batch_normalization,
    "Cast": _cast,
    "Clip": _clip,
    "Dropout": _dropout,
    "Gemm": _gemm,
    "PRelu": _prelu,
    "Pad": _pad,
    "Resize": _resize,
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax),
    **dict.fromkeys(
        ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"),
        _broadcasting,
    ),
}
