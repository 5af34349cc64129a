"""What one node gives for the values of its inputs, as ONNX's evaluator has it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

LARGEST = 1 << 22
"""Elements of a constant that is worked out; more would make a file large for nothing."""

_SIZES = 3
"""The input that gives a Resize its sizes, behind its scales."""

_EVALUATED_SINCE = {"DequantizeLinear": 19}
"""Versions that mean the same as those before them, which onnx's evaluator does not have."""


def evaluated(node: NodeProto, given: Mapping[str, np.ndarray | None], opset: int) -> dict[str, np.ndarray]:
    """Return what a node of the default domain gives for the values of its inputs, by name.

    Raises:
        ValueError: It can't be run.
    """
    from padfix.kernels.reference_ops import SpecEvaluator  # imported late, for where something is computed only

    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in given.items()]
    outputs = [name for name in node.output if name]
    types = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs]
    graph = helper.make_graph([node], "constant", [], types, tensors)
    imports = [helper.make_opsetid("", max(opset, _EVALUATED_SINCE.get(node.op_type, 1)))]
    try:
        found = SpecEvaluator(helper.make_model(graph, opset_imports=imports)).run(None, {})
    except Exception as error:
        raise ValueError(f"{node.op_type} can't be run: {error}") from error
    return {name: np.asarray(each) for name, each in zip(outputs, found, strict=True)}


def require_room(node: NodeProto, given: list[np.ndarray | None]) -> None:
    """Raise :class:`ValueError` for a node that would make very much of little."""
    told = [np.ones(0) if each is None else np.maximum(each.astype(float).reshape(-1), 1) for each in given]
    size = 0.0 if not given or given[0] is None else float(given[0].size)
    match node.op_type:
        case "ConstantOfShape" | "Expand":
            number = _product(told[-1])
        case "Tile":
            number = size * _product(told[-1])
        case "Resize":
            is_sized = len(told) > _SIZES and told[_SIZES].size
            number = _product(told[_SIZES]) if is_sized else size * _product(told[min(len(told) - 1, _SIZES - 1)])
        case "Range" if any(each is not None and each.size != 1 for each in given):
            raise ValueError("Range counts from one number to one number by one number")
        case "Range" if all(each is not None for each in given):
            start, limit, step = (float(each.reshape(-1)[0]) for each in given if each is not None)
            number = abs((limit - start) / step) if step else np.inf
        case _:
            return
    if not number <= LARGEST:
        raise ValueError(f"{node.op_type} gives more than {LARGEST} elements")


def _product(factors: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        return float(np.prod(factors))
