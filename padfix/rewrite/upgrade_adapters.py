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
from padfix.operators.refusal import Refusal
from padfix.rules.base import Site

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
    result = builder.original(_copy(site, "min", "max"), inputs)
    builder.output(site.node.output[0], result)
    return builder.build()


def _pad(site: Site, target: int) -> Fragment | Refusal | None:
    """From 11 on pads and the value are inputs; version 1 called the pads ``paddings``."""
    if site.opset >= 11 or target < 2 or (site.opset >= 2 and target < 11):
        return None
    pads = attributes.integers(site.node, "paddings" if site.opset < 2 else "pads")
    if pads is None:
        return Refusal("Pad has no pads; correct the node.")
    if target < 11:
        node = _copy(site, "paddings")
        attributes.set_integers(node, "pads", pads)
        return _same_inputs(site, target, node)
    builder = site.builder(target)
    inputs = [builder.input(site.node.input[0]), builder.constant(np.array(pads, np.int64), "pads")]
    value = attributes.find(site.node, "value")
    if value is not None and value.f != 0:
        inputs.append(builder.constant(np.array(value.f, _element_dtype(site)), "value"))
    result = builder.original(_copy(site, "pads", "paddings", "value"), inputs)
    builder.output(site.node.output[0], result)
    return builder.build()


def _dropout(site: Site, target: int) -> Fragment | Refusal | None:
    """The mask became boolean in 10 and true (not false) without training in 12; unused ones are dropped.

    Before 7 an attribute says whether it is training; since then the number of outputs, or an input.
    """
    ratio = attributes.find(site.node, "ratio")
    if site.opset < 7 and not attributes.integer(site.node, "is_test", 0) and (ratio is None or ratio.f != 0):
        return Refusal("it is written for training (is_test is 0), which gives random numbers; export it for inference")
    mask = site.node.output[1] if len(site.node.output) > 1 else ""
    if mask and target >= 10 and (site.scope.consumers(mask) or site.scope.is_output(mask)):
        if site.opset >= 12 or (site.opset >= 10 and target < 12):
            return None
        return Refusal("the mask of this Dropout is used, and its meaning changed between the two opsets")
    if site.opset >= 7 and (not mask or target < 10):
        return None
    node = _copy(site, *(["is_test"] if target >= 7 else []))
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
    """Before 7 an attribute says whether it is training, before 9 one whether statistics are those of channels."""
    if site.opset < 7 and not attributes.integer(site.node, "is_test", 0):
        return Refusal("it is written for training (is_test is 0); export it for inference")
    if attributes.integer(site.node, "spatial", 1) != 1 and site.opset < 9 <= target:
        return Refusal("spatial=0 has no counterpart from opset 9 on; write it as Sub, Mul and Add in the source")
    used = [name for name in site.node.output[1:] if name]
    if used and site.opset < 14 <= target:
        return Refusal("it gives running statistics, whose meaning changed in opset 14; export it for inference")
    node = _copy(site, *(["is_test"] if target >= 7 else []), *(["spatial"] if target >= 9 else []))
    return None if used or site.opset >= 14 else _same_inputs(site, target, node)


def _broadcasting(site: Site, target: int) -> Fragment | Refusal | None:
    """Before 7 ``broadcast`` lined the second input up with ``axis`` of the first; from 7 on with the last axes."""
    if site.opset >= 7 or target < 7:
        return None
    node = _copy(site, "broadcast", "axis")
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
    node = _copy(site)
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


def _grid_sample(site: Site, target: int) -> Fragment | Refusal | None:
    """The modes got other names in 20."""
    names = {"bilinear": "linear", "bicubic": "cubic"}
    mode = site.text("mode", "bilinear")
    if site.opset >= 20 or target < 20:
        return None
    node = _copy(site)
    attributes.set_text(node, "mode", names.get(mode, mode))
    return _same_inputs(site, target, node)


def _group_normalization(site: Site, target: int) -> Fragment | Refusal | None:
    """Before 21 scale and bias hold one number a group, from 21 on one a channel; it computed in the data's type."""
    if site.opset >= 21 or target < 21:
        return None
    groups = attributes.integer(site.node, "num_groups", 1)
    image, node = site.input_type(0), _copy(site)
    channels = image.shape[1] if image is not None and image.shape is not None and len(image.shape) > 1 else None
    if image is not None and image.elem_type not in (TensorProto.UNDEFINED, TensorProto.FLOAT):
        attributes.set_integer(node, "stash_type", image.elem_type)
    if channels == groups:
        return _same_inputs(site, target, node)
    builder = site.builder(target)
    given = [builder.input(name) for name in site.node.input]
    if isinstance(channels, int):
        table = builder.constant(np.array([groups, channels // groups], np.int64), "table")
    else:
        number = builder.op("Shape", [given[0]], {"start": 1, "end": 2})
        count = builder.constant(np.array([groups], np.int64), "groups")
        table = builder.op("Concat", [count, builder.op("Div", [number, count])], {"axis": 0})
    column, flat = (builder.constant(np.array([each], np.int64), "axis") for each in (1, -1))
    each_channel = [
        builder.op("Reshape", [builder.op("Expand", [builder.op("Unsqueeze", [value, column]), table]), flat])
        for value in given[1:]
    ]
    builder.output(site.node.output[0], builder.original(node, [given[0], *each_channel]))
    return builder.build()


_NEVER_BELOW_ZERO = frozenset({"ArgMax", "ArgMin", "NonZero", "Shape", "Size", "TopK", "Unique"})


def _one_hot(site: Site, target: int) -> Fragment | Refusal | None:
    """Before 11 a negative index means no element, from 11 on it counts from the end; those are moved past the end."""
    if site.opset >= 11 or target < 11:
        return None
    known, constant = site.input_type(0), site.constant(0)
    producer = site.scope.producer(site.input_name(0))
    if (
        (constant is not None and not (constant < 0).any())
        or (producer is not None and producer.op_type in _NEVER_BELOW_ZERO)
        or (known is not None and known.elem_type in (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32))
    ):
        return _same_inputs(site, target, _copy(site))
    builder = site.builder(target)
    indices, depth, values = (builder.input(name) for name in site.node.input)
    as_integers = builder.op("Cast", [indices], {"to": int(TensorProto.INT64)})
    zero = builder.constant(np.array(0, np.int64), "zero")
    count = builder.op("Cast", [depth], {"to": int(TensorProto.INT64)})
    moved = builder.op("Where", [builder.op("Less", [as_integers, zero]), count, as_integers])
    builder.output(site.node.output[0], builder.original(_copy(site), [moved, depth, values]))
    return builder.build()


def _roi_align(site: Site, target: int) -> Fragment | Refusal | None:
    """From 16 on positions are shifted by half a pixel unless an attribute says otherwise."""
    if site.opset >= 16 or target < 16:
        return None
    node = _copy(site)
    attributes.set_text(node, "coordinate_transformation_mode", "output_half_pixel")
    return _same_inputs(site, target, node)


def _split(site: Site, target: int) -> Fragment | Refusal | None:
    """Lengths are an attribute from 2 to 12 and an input before and behind; 18 wants the number of equal pieces."""
    lengths, given = attributes.integers(site.node, "split"), site.input_name(1)
    node = _copy(site, "split")
    if given and site.opset < 2:
        constant = site.constant(1)
        if constant is None:
            return Refusal("the lengths of the pieces are computed at run time, which opset 2 to 12 can't say")
        lengths, given = [int(each) for each in constant.reshape(-1)], ""
    if attributes.find(node, "axis") is None:
        attributes.set_integer(node, "axis", 0)
    builder = site.builder(target)
    inputs = [builder.input(site.node.input[0])]
    if given:
        inputs.append(builder.input(given))
    elif lengths is not None and target >= 13:
        inputs.append(builder.constant(np.array(lengths, np.int64), "split"))
    elif lengths is not None:
        attributes.set_integers(node, "split", lengths)
    elif target >= 18 and attributes.find(node, "num_outputs") is None:
        attributes.set_integer(node, "num_outputs", len(node.output))
    results = builder.original(node, inputs)
    for name, value in zip(node.output, results if isinstance(results, list) else [results], strict=True):
        if name:
            builder.output(name, value)
    return builder.build()


def _dft(site: Site, target: int) -> Fragment | Refusal | None:
    """From 20 on the axis is an input, of another default."""
    if site.opset >= 20 or target < 20:
        return None
    builder = site.builder(target)
    axis = builder.constant(np.array(attributes.integer(site.node, "axis", 1), np.int64), "axis")
    inputs = [builder.input(site.input_name(0)), builder.input(site.input_name(1)), axis]
    builder.output(site.node.output[0], builder.original(_copy(site, "axis"), inputs))
    return builder.build()


def _lp(site: Site, target: int) -> Fragment | Refusal | None:
    """The exponent ``p`` became an integer in 2."""
    if site.opset >= 2 or target < 2:
        return None
    exponent, node = attributes.find(site.node, "p"), _copy(site, "p")
    value = 2.0 if exponent is None else exponent.f
    if not value.is_integer():
        return Refusal(f"its exponent p is {value:g}, and newer versions only have whole numbers")
    attributes.set_integer(node, "p", int(value))
    return _same_inputs(site, target, node)


def _recurrent(site: Site, target: int) -> Fragment | Refusal | None:
    """Before 7 ``output_sequence`` says whether there is a first output; since then that it is named."""
    if site.opset >= 7 or target < 7:
        return None
    first = site.node.output[0] if site.node.output else ""
    used = bool(first) and (site.scope.is_output(first) or bool(site.scope.consumers(first)))
    if used and not attributes.integer(site.node, "output_sequence", 0):
        return Refusal("its first output is used although output_sequence is 0; correct the node")
    node = _copy(site, "output_sequence")
    if site.text("direction") == "foward":  # the default of version 1, as its schema spells it
        attributes.set_text(node, "direction", "forward")
    return _same_inputs(site, target, node)


def _reshape(site: Site, target: int) -> Fragment | Refusal | None:
    """Before 5 the shape is an attribute."""
    if site.opset >= 5 or target < 5:
        return None
    builder = site.builder(target)
    shape = builder.constant(np.array(attributes.integers(site.node, "shape") or [], np.int64), "shape")
    result = builder.original(_copy(site, "shape"), [builder.input(site.node.input[0]), shape])
    builder.output(site.node.output[0], result)
    return builder.build()


def _tile(site: Site, target: int) -> Fragment | Refusal | None:
    """Before 6 it repeats along one axis, both given by inputs."""
    if site.opset >= 6 or target < 6:
        return None
    image, tiles, axis = site.input_type(0), site.constant(1), site.constant(2)
    if image is None or image.rank is None or tiles is None or axis is None:
        return Refusal("the rank of its input or how often it repeats is not known; give the model input shapes")
    repeats = np.ones(image.rank, np.int64)
    repeats[int(axis.reshape(-1)[0])] = int(tiles.reshape(-1)[0])
    builder = site.builder(target)
    inputs = [builder.input(site.node.input[0]), builder.constant(repeats, "repeats")]
    builder.output(site.node.output[0], builder.original(_copy(site), inputs))
    return builder.build()


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
    "DFT": _dft,
    "Dropout": _dropout,
    "Gemm": _gemm,
    "GridSample": _grid_sample,
    "GroupNormalization": _group_normalization,
    "OneHot": _one_hot,
    "PRelu": _prelu,
    "Pad": _pad,
    "Reshape": _reshape,
    "Resize": _resize,
    "RoiAlign": _roi_align,
    "Split": _split,
    "Tile": _tile,
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    **dict.fromkeys(("GlobalLpPool", "LpPool"), _lp),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax),
    **dict.fromkeys(
        ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"),
        _broadcasting,
    ),
}
