"""A Pad before the DequantizeLinear that feeds an operator, so that quantized runtimes still see the pair as one.

Runtimes fuse DequantizeLinear, operator and QuantizeLinear into a quantized operator; a Pad of floats in between would
keep them from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.graph.scopes import normal_domain
from padfix.operators.window import Window
from padfix.rules.base import Site, Trial, TrialInput

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_PADDED_SINCE = 11
"""Pad takes 8-bit integers from this version on."""


@dataclass(frozen=True)
class DequantizedInput:
    """The DequantizeLinear before an operator.

    Attributes:
        node: The DequantizeLinear.
        scale: Its scale, one number above 0.
        zero_point: Its zero point, or None where it has none.
        value: What stands for the operator's padding among the quantized numbers, a scalar.
        elem_type: Of the quantized data.
    """

    node: NodeProto
    scale: np.ndarray
    zero_point: np.ndarray | None
    value: np.ndarray
    elem_type: int


def dequantized_input(site: Site, window: Window, opset: int) -> DequantizedInput | None:
    """Return the DequantizeLinear that feeds ``site``, where a Pad can stand before it and mean the same.

    0 is the zero point; an operator that takes the maximum gets the type's least number, which no element is below.
    Scale and zero point have to be constants for the whole tensor.
    """
    node = site.scope.producer(site.node.input[0])
    if window.operator.is_maximum and max(window.dilations) > 1:
        return None  # a window may lie in the padding with all its taps: minus infinity has no quantized number
    if opset < _PADDED_SINCE or node is None or not site.scope.defines(site.node.input[0]):
        return None
    if node.op_type != "DequantizeLinear" or normal_domain(node.domain) or attributes.integer(node, "block_size", 0):
        return None
    quantized = site.scope.type_of(node.input[0])
    scale = site.scope.constant(node.input[1])
    zero_name = node.input[2] if len(node.input) > 2 else ""
    zero_point = site.scope.constant(zero_name) if zero_name else None
    if quantized is None or quantized.elem_type not in (TensorProto.INT8, TensorProto.UINT8):
        return None
    if scale is None or scale.size != 1 or not scale.item() > 0 or (zero_name and zero_point is None):
        return None
    if zero_point is not None and zero_point.size != 1:
        return None
    dtype = helper.tensor_dtype_to_np_dtype(quantized.elem_type)
    zero = 0 if zero_point is None else zero_point.item()
    value = np.array(np.iinfo(dtype).min if window.operator.is_maximum else zero, dtype)
    return DequantizedInput(node, scale, zero_point, value, quantized.elem_type)


def padded_before(builder: FragmentBuilder, found: DequantizedInput, source: Any, pads: Any) -> Any:
    """Return the dequantized values of ``source``, the quantized data, behind a Pad; ``pads`` is a list or computed."""
    if isinstance(pads, list):
        pads = builder.constant(np.array(pads, np.int64), "pads")
    value = builder.constant(found.value, "quantized_padding")
    padded = builder.op("Pad", [source, pads, value], {"mode": "constant"})
    return builder.original(found.node, [padded, *(builder.input(name) for name in found.node.input[1:])])


def with_quantized_data(found: DequantizedInput, trials: Sequence[Trial], name: str) -> tuple[Trial, ...]:
    """Return the shape cases with quantized data, scale and zero point in the place of the float input ``name``."""
    cases = []
    for trial in trials:
        case = {key: each for key, each in trial.items() if key != name}
        case[found.node.input[0]] = TrialInput(trial[name].shape, found.elem_type)
        case[found.node.input[1]] = TrialInput.of(found.scale)
        if found.zero_point is not None:
            case[found.node.input[2]] = TrialInput.of(found.zero_point)
        cases.append(case)
    return tuple(cases)
