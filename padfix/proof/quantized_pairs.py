"""Numbers rounded to bytes and back: how bytes are held is a runtime's own affair, and which way a tie goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from padfix.graph import attributes
from padfix.proof.executors import Array

_NEAR = 1e-3
"""How near to the middle between two steps, in steps, a number may take either."""


class Pairs:
    """What QuantizeLinears give that DequantizeLinears alone read.

    Attributes:
        held: The QuantizeLinear by what it gives.
    """

    def __init__(self, model: ModelProto) -> None:
        graph = model.graph
        others = {value.name for value in graph.output}
        for node in graph.node:
            others.update(node.input[1:] if node.op_type == "DequantizeLinear" else node.input)
        quantizers = [node for node in graph.node if node.op_type == "QuantizeLinear"]
        self.held: Mapping[str, NodeProto] = {
            node.output[0]: node for node in quantizers if node.output[0] not in others
        }
        self._constants = {tensor.name: tensor for tensor in graph.initializer}

    def read_through(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the tensors, what was quantised in place of what is held in bytes."""
        return tuple(self.held[name].input[0] if name in self.held else name for name in names)

    def ties(self, node: NodeProto, feeds: Mapping[str, Array], rounding: float = 1.0) -> dict[str, Array]:
        """Return by how much each number may be off that a DequantizeLinear gives: a step where it lies at a tie.

        ``rounding`` is how many times as far as in single precision numbers may be off.
        """
        before = self.held.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        if before is None or before.input[0] not in feeds or before.input[1] not in self._constants:
            return {}
        data = feeds[before.input[0]].astype(np.float64)
        scale = numpy_helper.to_array(self._constants[before.input[1]]).astype(np.float64)
        if scale.size > 1:
            axis = attributes.integer(before, "axis", 1) or 0
            lengths = [1] * data.ndim
            lengths[axis] = scale.size
            if scale.ndim != 1 or data.shape[axis] != scale.size:
                return {}
            scale = scale.reshape(lengths)
        steps = data / scale
        is_tie = np.abs(np.abs(steps - np.rint(steps)) - 0.5) < _NEAR * rounding
        return {node.output[0]: np.where(is_tie, 1.001 * scale, 0.0)}
