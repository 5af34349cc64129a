"""What the forms of ONNX Runtime's own operators are put together from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.rules.base import Site

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

Write = Callable[[Site, "FragmentBuilder", list[Any]], Any]
"""Appends what a node is to a builder, given its inputs (None for one that is left out); returns its result, or a tuple
of its results, with None for what it can't give."""

LAYER_NORM_SINCE = 17

_OF_FUSIONS = ("activation", "activation_params", "alpha", "beta", "domain")

_ACTIVATIONS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
    "LeakyRelu": (("alpha", 0.01),),
    "HardSigmoid": (("alpha", 0.2), ("beta", 0.5)),
    "Clip": (("min", -math.inf), ("max", math.inf)),
}
"""Activations of fused operators, each with the attributes that ``activation_params`` lists."""


def knows_activation(name: str) -> bool:
    """Whether there is an operator of ONNX for an activation that something is fused with, or there is none."""
    return not name or name in _ACTIVATIONS


def activated(site: Site, builder: FragmentBuilder, result: Any) -> Any:
    """Append the activation that the node is fused with, if any; return what it gives."""
    activation = attributes.text(site.node, "activation", "") or ""
    if not activation:
        return result
    written = attributes.find(site.node, "activation_params")
    listed = list(written.floats) if written is not None else []
    names = _ACTIVATIONS[activation]
    told = {
        name: listed[place] if place < len(listed) else number(site.node, f"activation_{name}", usual)
        for place, (name, usual) in enumerate(names)
    }
    if activation == "Clip" and builder.opset >= 11:
        bounds = [like(site, builder, told[name]) for name in ("min", "max")]
        return builder.op("Clip", [result, *bounds])
    return builder.op(activation, [result], told)


def number(node: NodeProto, name: str, usual: float) -> float:
    """Return an attribute that is a float."""
    found = attributes.find(node, name)
    return usual if found is None else float(found.f)


def like(site: Site, builder: FragmentBuilder, value: float) -> Any:
    """Return a constant of the type of the node's data."""
    return builder.constant(np.array(value, dtype_of(site)), "number")


def dtype_of(site: Site, position: int = 0) -> np.dtype[Any]:
    """Return the type of an input, single precision where it is not known."""
    return np.dtype(helper.tensor_dtype_to_np_dtype(site.elem_type(position) or TensorProto.FLOAT))


def kept(node: NodeProto, without: tuple[str, ...] = _OF_FUSIONS) -> dict[str, Any]:
    """Return the attributes of a node, but for those that an operator of ONNX doesn't have."""
    return {each.name: helper.get_attribute_value(each) for each in node.attribute if each.name not in without}


def there(inputs: list[Any], position: int) -> Any:
    """Return an input, or None where it is left out."""
    return inputs[position] if position < len(inputs) else None


def numbers(builder: FragmentBuilder, operand: list[Any], axis: int | None = None) -> Any:
    """Append what bytes stand for, given them, their scale and their zero point."""
    told = {} if axis is None else {"axis": axis}
    return builder.op("DequantizeLinear", [each for each in operand if each is not None], told)


def bytes_again(builder: FragmentBuilder, value: Any, scale_and_zero: list[Any]) -> Any:
    """Append the bytes that stand for numbers."""
    return builder.op("QuantizeLinear", [value, *(each for each in scale_and_zero if each is not None)])


def last_length(site: Site, position: int) -> int | None:
    """Return how long the last axis of an input is; None where that is not known."""
    known = site.input_type(position)
    length = known.shape[-1] if known is not None and known.shape else None
    return length if isinstance(length, int) else None


def is_there(site: Site, *positions: int) -> bool:
    """Whether one of these inputs is not left out."""
    return any(site.input_name(position) for position in positions)
