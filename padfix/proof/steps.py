"""What a tensor of quantised numbers can hold: the steps that its DequantizeLinear gives, and nothing between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from padfix.graph import attributes
from padfix.proof.constants import Constants
from padfix.proof.exactness import MOVING, PICKING
from padfix.proof.executors import Array
from padfix.proof.graph_view import GraphView, NodeView

_CHOOSING = (MOVING - {"Concat"}) | PICKING | {"MaxPool", "GlobalMaxPool", "DepthToSpace", "SpaceToDepth"}
"""Operators that give nothing but numbers that they read first."""

_DEEPEST = 8
"""Operators above a tensor that are looked at."""


@dataclass(frozen=True)
class Steps:
    """The numbers that bytes stand for.

    Attributes:
        scale: The length of a step; several along ``axis``.
        zero: The byte that stands for zero; likewise.
        axis: The axis of several.
    """

    scale: Array
    zero: Array
    axis: int

    @property
    def ends(self) -> tuple[Array, Array]:
        """The number of the first step and of the last, that of zero being 0; whole bytes and signed ones may agree."""
        limits, zero = np.iinfo(self.zero.dtype), self.zero.astype(np.float64)
        return limits.min - zero, limits.max - zero

    def nearest(self, array: Array) -> Array:
        """Return the step that is nearest to each number; the last one beyond them."""
        shape = [1] * array.ndim
        if self.scale.size > 1:
            shape[self.axis] = self.scale.size
        scale = self.scale.astype(np.float64).reshape(shape)
        low, high = (each.reshape(shape if each.size > 1 else [1] * array.ndim) for each in self.ends)
        numbers = np.nan_to_num(array.astype(np.float64))
        steps = np.clip(np.rint(numbers / scale), low, high)
        # As the operator does, in the type that it gives: nothing else is a fixed point of rounding once more.
        return np.asarray(steps.astype(array.dtype) * self.scale.astype(array.dtype).reshape(shape))

    def fits(self, array: Array) -> bool:
        """Whether they are the steps of an array of this shape."""
        if self.scale.size == 1:
            return self.zero.size == 1
        is_along = self.scale.ndim == 1 and -array.ndim <= self.axis < array.ndim
        return is_along and array.shape[self.axis] == self.scale.size and self.zero.size in (1, self.scale.size)


def steps_of(view: GraphView, constants: Constants | None, name: str) -> Steps | None:
    """Return the steps between which a tensor holds nothing; None where it may hold any number."""
    is_moved = False
    for _ in range(_DEEPEST):
        node = view.producers.get(name)
        if node is None or constants is None or node.proto is None:
            return None
        if node.op_type == "DequantizeLinear":
            found = _of(node, constants)
            # Where axes were moved, steps of their own for each place of one are of others now.
            return None if found is None or (is_moved and found.scale.size > 1) else found
        if node.op_type not in _CHOOSING or not node.inputs:
            return None
        name, is_moved = node.inputs[0], True
    return None


def are_steps_of(view: GraphView, constants: Constants | None, name: str, node: NodeView) -> bool:
    """Whether ``node`` is a QuantizeLinear that rounds a tensor to the steps that it lies on already."""
    if node.op_type != "QuantizeLinear" or node.inputs[0] != name or constants is None:
        return False
    known, wanted = steps_of(view, constants, name), _of(node, constants)
    if known is None or wanted is None or known.scale.size > 1:
        return False
    if known.scale.dtype != wanted.scale.dtype or not np.array_equal(known.scale, wanted.scale):
        return False
    return all(np.array_equal(one, other) for one, other in zip(known.ends, wanted.ends, strict=True))


def _of(node: NodeView, constants: Constants) -> Steps | None:
    """Return the steps of a node that quantises or dequantises."""
    scale = constants.find(node.inputs[1])
    zero = constants.find(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    assert node.proto is not None
    if scale is None or zero is None or scale.ndim > 1 or not np.all(scale > 0):
        return None
    if zero.dtype.kind not in "iu":  # small floats have steps of many lengths
        return None
    return Steps(scale.ravel(), zero.ravel(), attributes.integer(node.proto, "axis", 1))
