"""Weights that are quantised while the data is not ("dynamic range"): what a file says, and what kernels make of it.

TensorFlow Lite's kernels for such operators quantise the data in every run, to 8 bits, with scales that they take from
that very data; another machine's do not. What the file itself says is a product of floats with weights that stand in 8
bits, so that is what is converted, and what runs as the original: the file with a DEQUANTIZE before such weights. That
this is what the file's operators compute is not believed: each of them is run as the file has it, by itself, and has to
lie within one step of its data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from padfix.sources.tflite_inner import LiteInner
from padfix.sources.tflite_schema import (
    float_copy,
    is_constant,
    is_quantised,
    operator,
    operators,
    real_values,
)

if TYPE_CHECKING:
    from padfix.proof.executors import Array

_OPERANDS = {
    "CONV_2D": (0, 1),
    "DEPTHWISE_CONV_2D": (0, 1),
    "FULLY_CONNECTED": (0, 1),
    "BATCH_MATMUL": (0, 1),
    "CONV_3D": (0, 1),
    "TRANSPOSE_CONV": (2, 1),
}
"""Positions of data and weights."""

_STEPS = 127.0
"""Steps from 0 to the largest number of the data."""


@dataclass(frozen=True)
class Hybrid:
    """An operator whose data its kernel quantises.

    Attributes:
        kind: The operator.
        data: Position of the tensor of data in its subgraph.
        result: That of its result.
        reach: The largest sum of absolute weights that one element of the result is made of.
    """

    kind: str
    data: int
    result: int
    reach: float


def write_out(model: Any) -> dict[int, list[Hybrid]]:
    """Put a DEQUANTIZE before quantised weights that meet float data, in place; return these operators by subgraph."""
    return {number: found for number, graph in enumerate(model.subgraphs) if (found := _write_out(model, graph))}


def _write_out(model: Any, graph: Any) -> list[Hybrid]:
    written: list[Any] = []
    found: list[Hybrid] = []
    floats: dict[int, int] = {}
    for each, kind in operators(model, graph):
        at, place = _OPERANDS.get(kind, (0, 0))
        data, weights = (int(each.inputs[index]) if place else -1 for index in (at, place))
        if place and is_quantised(graph.tensors[weights]) and not is_quantised(graph.tensors[data]):
            found.append(Hybrid(kind, data, int(each.outputs[0]), _reach(model, graph.tensors[weights], kind)))
            if weights not in floats:
                floats[weights] = float_copy(graph, weights)
                written.append(operator(model, "DEQUANTIZE", [weights], floats[weights], "DequantizeOptions"))
            each.inputs = [*each.inputs[:place], floats[weights], *each.inputs[place + 1 :]]
            if hasattr(each.builtinOptions, "asymmetricQuantizeInputs"):
                each.builtinOptions.asymmetricQuantizeInputs = False
        written.append(each)
    graph.operators = written
    return found


def _reach(model: Any, tensor: Any, kind: str) -> float:
    if not is_constant(model, tensor):
        return float("inf")
    sizes = np.abs(real_values(model, tensor).astype(np.float64))
    if kind == "DEPTHWISE_CONV_2D":
        return float(sizes.sum(axis=(0, 1, 2)).max(initial=0))
    if kind == "BATCH_MATMUL":
        return max(float(sizes.sum(axis=each).max(initial=0)) for each in (-1, -2))
    if kind == "CONV_3D":
        return float(sizes.reshape(-1, sizes.shape[-1]).sum(axis=0).max(initial=0))
    return float(sizes.reshape(len(sizes), -1).sum(axis=1).max(initial=0))


def contradicted(
    found: Sequence[Hybrid], pieces: tuple[LiteInner, LiteInner], names: Sequence[str], feeds: Mapping[str, Array]
) -> list[str]:
    """Return the operators of a file that compute something else than floats with its weights, by the results' names.

    Args:
        found: The operators of the subgraph.
        pieces: Runs pieces of it with the weights written out as floats, and pieces of it as it stands.
        names: Names of the subgraph's tensors.
        feeds: Its inputs.
    """
    plain, hybrid = pieces
    wrong = []
    for each in found:
        data, result = names[each.data], names[each.result]
        values = plain.run_inner(feeds, [data, result])
        other = hybrid.run_inner({**feeds, data: values[data]}, [result])[result]
        step = float(np.abs(values[data]).max(initial=0)) / _STEPS
        apart = np.abs(other.astype(np.float64) - values[result].astype(np.float64)).max(initial=0)
        if not apart <= each.reach * step * (1 + 2.0**-10):
            wrong.append(result)
    return wrong
