"""Moves of single operators to a newer opset that the official converter gets wrong or can't do.

Each adapter takes the node where it stands and the target opset, and returns what takes its place (one node that reads
the same, or a fragment), a refusal, or None when the official converter does this one right. What each change means is
in the operators' change log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.graph.fragment import Fragment
from padfix.operators.refusal import Refusal
from padfix.rules.base import Site
from padfix.rules.build.explicit_pads import copied

if TYPE_CHECKING:
    pass

Adapted = NodeProto | Fragment | Refusal | None
Adapter = Callable[[Site, int], Adapted]


def _copy(site: Site, *dropped: str) -> NodeProto:
    return copied(site.node, without=dropped)


def _element_dtype(site: Site) -> np.dtype[np.generic]:
    return np.dtype(helper.tensor_dtype_to_np_dtype(site.elem_type(0)))


def _softmax(site: Site, target: int) -> Adapted:
    """Before 13 all axes from ``axis`` on are one; from 13 on ``axis`` is the only one, by default the last."""
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


def _clip(site: Site, target: int) -> Adapted:
    """From 11 on the bounds are inputs, of the element type of the data."""
    builder = site.builder(target)
    bounds = [(name, attributes.find(site.node, name)) for name in ("min", "max")]
    while bounds and bounds[-1][1] is None:
        bounds.pop()
    inputs = [builder.input(site.node.input[0])]
    for name, bound in bounds:
        value = builder.input("") if bound is None else builder.constant(np.array(bound.f, _element_dtype(site)), name)
        inputs.append(value)
    return builder.ending_in(_copy(site, "min", "max"), inputs)


def _pad(site: Site, target: int) -> Adapted:
    """From 11 on pads and the value are inputs; version 1 called the pads ``paddings``."""
    if site.opset >= 11 or target < 2 or (site.opset >= 2 and target < 11):
        return None
    pads = attributes.integers(site.node, "paddings" if site.opset < 2 else "pads")
    if pads is None:
        return Refusal("Pad has no pads; correct the node.")
    if target < 11:
        node = _copy(site, "paddings")
        attributes.set_integers(node, "pads", pads)
        return node
    builder = site.builder(target)
    inputs = [builder.input(site.node.input[0]), builder.integers(pads, "pads")]
    value = attributes.find(site.node, "value")
    if value is not None and value.f != 0:
        inputs.append(builder.constant(np.array(value.f, _element_dtype(site)), "value"))
    return builder.ending_in(_copy(site, "pads", "paddings", "value"), inputs)


def _dropout(site: Site, target: int) -> Adapted:
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
    return builder.ending_in(node, inputs)


def _batch_normalization(site: Site, target: int) -> Adapted:
    """Before 7 an attribute says whether it is training, before 9 one whether statistics are those of channels."""
    if site.opset < 7 and not attributes.integer(site.node, "is_test", 0):
        return Refusal("it is written for training (is_test is 0); export it for inference")
    if attributes.integer(site.node, "spatial", 1) != 1 and site.opset < 9 <= target:
        return Refusal("spatial=0 has no counterpart from opset 9 on; write it as Sub, Mul and Add in the source")
    used = [name for name in site.node.output[1:] if name]
    if used and site.opset < 14 <= target:
        return Refusal("it gives running statistics, whose meaning changed in opset 14; export it for inference")
    node = _copy(site, *(["is_test"] if target >= 7 else []), *(["spatial"] if target >= 9 else []))
    return None if used or site.opset >= 14 else node


def _broadcasting(site: Site, target: int) -> Adapted:
    """Before 7 ``broadcast`` lined the second input up with ``axis`` of the first; from 7 on with the last axes."""
    node = _copy(site, "broadcast", "axis")
    axis = attributes.find(site.node, "axis")
    if not attributes.integer(site.node, "broadcast", 0) or axis is None:
        return node
    first, second = site.input_type(0), site.input_type(1)
    if first is None or second is None or first.rank is None or second.rank is None:
        return Refusal("it broadcasts along an axis and the ranks are not known; give the model input shapes")
    start = axis.i + first.rank if axis.i < 0 else axis.i
    return _with_trailing_axes(site, target, node, first.rank - start - second.rank)


def _prelu(site: Site, target: int) -> Adapted:
    """Before 7 a slope of one axis is one value a channel; from 7 on it lines up with the last axes."""
    node = _copy(site)
    image, slope = site.input_type(0), site.input_type(1)
    if slope is not None and slope.shape in ((), (1,)):
        return node
    if image is None or slope is None or image.rank is None or slope.rank != 1:
        return Refusal("one slope a channel needs known ranks; give the model input shapes")
    return _with_trailing_axes(site, target, node, image.rank - 2)


def _with_trailing_axes(site: Site, target: int, node: NodeProto, count: int) -> Fragment | Refusal:
    if count < 0:
        return Refusal("its inputs don't broadcast; correct the node")
    if count == 0:
        return node
    rank = getattr(site.input_type(1), "rank", None) or 0
    builder = site.builder(target)
    first, second = (builder.input(name) for name in site.node.input[:2])
    return builder.ending_in(node, [first, builder.unsqueezed(second, *range(rank, rank + count))])


def _gemm(site: Site, target: int) -> Adapted:
    """Before 7 broadcasting of the third input is asked for; from 7 on it is always there."""
    return _copy(site, "broadcast")


def _cast(site: Site, target: int) -> Adapted:
    """Before 6 the type is a name, from 6 on its number."""
    name = site.text("to")
    if name not in TensorProto.DataType.keys():  # noqa: SIM118 - an enum wrapper, not a dict
        return Refusal(f'to="{name}" is not a type')
    node = _copy(site, "to")
    attributes.set_integer(node, "to", TensorProto.DataType.Value(name))
    return node


def _grid_sample(site: Site, target: int) -> Adapted:
    """The modes got other names in 20."""
    names = {"bilinear": "linear", "bicubic": "cubic"}
    mode = site.text("mode", "bilinear")
    node = _copy(site)
    attributes.set_text(node, "mode", names.get(mode, mode))
    return node


def _group_normalization(site: Site, target: int) -> Adapted:
    """Before 21 scale and bias hold one number a group, from 21 on one a channel; it computed in the data's type."""
    groups = attributes.integer(site.node, "num_groups", 1)
    image, node = site.input_type(0), _copy(site)
    channels = image.shape[1] if image is not None and image.shape is not None and len(image.shape) > 1 else None
    if image is not None and image.elem_type not in (TensorProto.UNDEFINED, TensorProto.FLOAT):
        attributes.set_integer(node, "stash_type", image.elem_type)
    if channels == groups:
        return node
    builder = site.builder(target)
    given = [builder.input(name) for name in site.node.input]
    if isinstance(channels, int):
        table = builder.integers([groups, channels // groups], "table")
    else:
        number = builder.op("Shape", [given[0]], {"start": 1, "end": 2})
        count = builder.integers([groups], "groups")
        table = builder.op("Concat", [count, builder.op("Div", [number, count])], {"axis": 0})
    column, flat = (builder.integers([each], "axis") for each in (1, -1))
    each_channel = [
        builder.op("Reshape", [builder.op("Expand", [builder.op("Unsqueeze", [value, column]), table]), flat])
        for value in given[1:]
    ]
    return builder.ending_in(node, [given[0], *each_channel])


_NEVER_BELOW_ZERO = frozenset({"ArgMax", "ArgMin", "NonZero", "Shape", "Size", "TopK", "Unique"})


def _one_hot(site: Site, target: int) -> Adapted:
    """Before 11 a negative index means no element, from 11 on it counts from the end; those are moved past the end."""
    known, constant = site.input_type(0), site.constant(0)
    producer = site.scope.producer(site.input_name(0))
    if (
        (constant is not None and not (constant < 0).any())
        or (producer is not None and producer.op_type in _NEVER_BELOW_ZERO)
        or (known is not None and known.elem_type in (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32))
    ):
        return _copy(site)
    builder = site.builder(target)
    indices, depth, values = (builder.input(name) for name in site.node.input)
    as_integers = builder.op("Cast", [indices], {"to": int(TensorProto.INT64)})
    zero = builder.integers(0, "zero")
    count = builder.op("Cast", [depth], {"to": int(TensorProto.INT64)})
    moved = builder.op("Where", [builder.op("Less", [as_integers, zero]), count, as_integers])
    return builder.ending_in(_copy(site), [moved, depth, values])


def _roi_align(site: Site, target: int) -> Adapted:
    """From 16 on positions are shifted by half a pixel unless an attribute says otherwise."""
    node = _copy(site)
    attributes.set_text(node, "coordinate_transformation_mode", "output_half_pixel")
    return node


def _split(site: Site, target: int) -> Adapted:
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
        inputs.append(builder.integers(lengths, "split"))
    elif lengths is not None:
        attributes.set_integers(node, "split", lengths)
    elif target >= 18 and attributes.find(node, "num_outputs") is None:
        attributes.set_integer(node, "num_outputs", len(node.output))
    return builder.ending_in(node, inputs)


def _dft(site: Site, target: int) -> Adapted:
    """From 20 on the axis is an input, of another default."""
    builder = site.builder(target)
    axis = builder.integers(attributes.integer(site.node, "axis", 1), "axis")
    inputs = [builder.input(site.input_name(0)), builder.input(site.input_name(1)), axis]
    return builder.ending_in(_copy(site, "axis"), inputs)


def _lp(site: Site, target: int) -> Adapted:
    """The exponent ``p`` became an integer in 2."""
    exponent, node = attributes.find(site.node, "p"), _copy(site, "p")
    value = 2.0 if exponent is None else exponent.f
    if not value.is_integer():
        return Refusal(f"its exponent p is {value:g}, and newer versions only have whole numbers")
    attributes.set_integer(node, "p", int(value))
    return node


def _recurrent(site: Site, target: int) -> Adapted:
    """Before 7 ``output_sequence`` says whether there is a first output; since then that it is named."""
    first = site.node.output[0] if site.node.output else ""
    used = site.scope.is_used(first)
    if used and not attributes.integer(site.node, "output_sequence", 0):
        return Refusal("its first output is used although output_sequence is 0; correct the node")
    node = _copy(site, "output_sequence")
    if site.text("direction") == "foward":  # the default of version 1, as its schema spells it
        attributes.set_text(node, "direction", "forward")
    return node


def _reshape(site: Site, target: int) -> Adapted:
    """Before 5 the shape is an attribute."""
    builder = site.builder(target)
    shape = builder.integers(attributes.integers(site.node, "shape") or [], "shape")
    return builder.ending_in(_copy(site, "shape"), [builder.input(site.node.input[0]), shape])


def _tile(site: Site, target: int) -> Adapted:
    """Before 6 it repeats along one axis, both given by inputs."""
    image, tiles, axis = site.input_type(0), site.constant(1), site.constant(2)
    if image is None or image.rank is None or tiles is None or axis is None:
        return Refusal("the rank of its input or how often it repeats is not known; give the model input shapes")
    repeats = np.ones(image.rank, np.int64)
    repeats[int(axis.reshape(-1)[0])] = int(tiles.reshape(-1)[0])
    builder = site.builder(target)
    inputs = [builder.input(site.node.input[0]), builder.constant(repeats, "repeats")]
    return builder.ending_in(_copy(site), inputs)


ADAPTERS: dict[str, tuple[int | None, Adapter]] = {
    "BatchNormalization": (None, _batch_normalization),
    "Cast": (6, _cast),
    "Clip": (11, _clip),
    "DFT": (20, _dft),
    "Dropout": (None, _dropout),
    "Gemm": (7, _gemm),
    "GridSample": (20, _grid_sample),
    "GroupNormalization": (21, _group_normalization),
    "OneHot": (11, _one_hot),
    "PRelu": (7, _prelu),
    "Pad": (None, _pad),
    "Reshape": (5, _reshape),
    "RoiAlign": (16, _roi_align),
    "Split": (None, _split),
    "Tile": (6, _tile),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), (7, _recurrent)),
    **dict.fromkeys(("GlobalLpPool", "LpPool"), (2, _lp)),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), (13, _softmax)),
    **dict.fromkeys(
        ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"), (7, _broadcasting)
    ),
}
"""By operator: the version that changed its meaning, and what a node needs that is moved past it; None for several
such versions."""


def adapted(site: Site, target: int) -> Fragment | Refusal | None:
    """Return what takes the node's place at ``target``; None where the official converter is right."""
    changed, adapter = ADAPTERS.get(site.node.op_type, (None, None))
    if adapter is None or (changed is not None and not site.opset < changed <= target):
        return None
    found = adapter(site, target)
    return Fragment((found,), (), target) if isinstance(found, NodeProto) else found
