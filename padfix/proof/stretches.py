"""What two graphs compute alike, by their nodes and weights alone, without running anything.

A *stretch* is what lies between a tensor and the nearest tensors above it that bear one name in both models. Where the
stretches of a tensor are the same node by node and weight by weight, the two models compute the same function there,
and a difference can only come from above. So only the other tensors have to be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from onnx import NodeProto, TensorProto

from padfix.diagnose.graph_difference import Constants
from padfix.files.model import Model
from padfix.files.payloads import has_mark
from padfix.proof.executors import Array

DEEPEST = 200
"""Nodes below each other after which two stretches are taken to differ."""

SAME_WEIGHT = 1e-5
"""Weights that differ by less than this share of themselves were rounded in another way."""

NOTHING = 1e-30
"""Weights below this share of the largest are subnormal, or as good as nothing."""


@dataclass(frozen=True)
class Likeness:
    """How two stretches compare.

    Attributes:
        same: Whether they are the same, weights included.
        spelled: Whether nothing but attributes differs, as where ``auto_pad`` became pads.
        weights: The constants that differ, by their names in both models, where nothing but weights does; for
            convolutions, where nothing but weights and attributes does. No attribute of theirs reorders the weights.
    """

    same: bool
    spelled: bool = False
    weights: tuple[tuple[str, str], ...] = ()


@dataclass
class _Seen:
    attributes: bool = False
    convolution: bool = True
    weights: list[tuple[str, str]] = field(default_factory=list)


class Stretches:
    """The stretches of two main graphs.

    Args:
        models: The original and the result.
        producers: The node that computes each name in each of them.
        shared: The candidate's name for each tensor that both have.
        inputs: The candidate's name for each graph input.

    Attributes:
        trusted: Whether large weights of one name, type and shape are the same: the writer of the result copied them.
    """

    def __init__(
        self,
        models: tuple[Model, Model],
        producers: tuple[Mapping[str, NodeProto], Mapping[str, NodeProto]],
        shared: Mapping[str, str],
        inputs: Mapping[str, str],
    ) -> None:
        self._constants = Constants(models[0]), Constants(models[1])
        self._producers = producers
        self._shared = shared
        self._inputs = inputs
        self.trusted = False
        self._alike: dict[tuple[str, str], bool] = {}

    def likeness(self, name: str) -> Likeness:
        """Compare what computes ``name``, one of the shared names, in both models."""
        seen = _Seen()
        if not self._same_node(name, self._shared[name], seen, 0):
            return Likeness(False)
        if seen.attributes and not seen.convolution:
            return Likeness(False, spelled=not seen.weights)
        return Likeness(
            not seen.attributes and not seen.weights,
            spelled=seen.attributes and not seen.weights,
            weights=tuple(seen.weights),
        )

    def constant_pair(self, pair: tuple[str, str]) -> tuple[Array | None, Array | None]:
        """Return two constants by their names."""
        return self._constants[0].find(pair[0]), self._constants[1].find(pair[1])

    def _same_value(self, ours: str, theirs: str, seen: _Seen, depth: int) -> bool:
        if not ours or not theirs:
            return ours == theirs
        if self._shared.get(ours) == theirs:
            return True
        if self._inputs.get(ours) == theirs:
            return True
        first, second = (each.tensor(name) for each, name in zip(self._constants, (ours, theirs), strict=True))
        if first is not None and second is not None:
            return self._same_constant((ours, theirs), first, second, seen)
        if first is not None or second is not None or depth > DEEPEST:
            return False
        return self._same_node(ours, theirs, seen, depth + 1)

    def _same_node(self, ours: str, theirs: str, seen: _Seen, depth: int) -> bool:
        node, twin = (producers.get(name) for producers, name in zip(self._producers, (ours, theirs), strict=True))
        if node is None or twin is None or len(node.input) != len(twin.input) or _operator(node) != _operator(twin):
            return False
        if not _same_attributes(node, twin):
            seen.attributes = True
            seen.convolution &= node.op_type in _CONVOLUTIONS
        if list(node.output).index(ours) != list(twin.output).index(theirs):
            return False
        return all(self._same_value(one, other, seen, depth) for one, other in zip(node.input, twin.input, strict=True))

    def _same_constant(self, names: tuple[str, str], first: TensorProto, second: TensorProto, seen: _Seen) -> bool:
        if first.data_type != second.data_type or list(first.dims) != list(second.dims):
            return False
        if self.trusted and names[0] == names[1] and has_mark(first) and has_mark(second):
            return True
        if names not in self._alike:
            old, new = self.constant_pair(names)
            if old is None or new is None:
                self._alike[names] = first.SerializeToString() == second.SerializeToString()
            else:
                self._alike[names] = old.tobytes() == new.tobytes()
        if self._alike[names]:
            return True
        if first.data_type not in _WEIGHT_TYPES:
            return False
        seen.weights.append(names)
        return True


_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose", "ConvInteger", "QLinearConv"})

_WEIGHT_TYPES = {
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.DOUBLE,
    TensorProto.BFLOAT16,
    TensorProto.INT8,
    TensorProto.UINT8,
}


def _operator(node: NodeProto) -> tuple[str, str, str]:
    return node.op_type, "" if node.domain == "ai.onnx" else node.domain, node.overload


def _same_attributes(node: NodeProto, twin: NodeProto) -> bool:
    first, second = ({each.name: each for each in one.attribute} for one in (node, twin))
    return first.keys() == second.keys() and all(first[name] == second[name] for name in first)


def other_weights(old: Array, new: Array) -> tuple[int, tuple[int, ...]] | None:
    """Return how many weights differ by more than another rounding, and where the first is; None when none does."""
    if old.dtype.kind in "iu":
        different = old != new
    else:
        wide, other = old.astype(np.float64), new.astype(np.float64)
        magnitude = np.maximum(np.abs(wide), np.abs(other))
        largest = float(magnitude.max(initial=0.0, where=np.isfinite(magnitude)))
        with np.errstate(invalid="ignore"):
            near = np.abs(wide - other) <= SAME_WEIGHT * magnitude + NOTHING * largest
        different = ~(near | (wide == other) | (np.isnan(wide) & np.isnan(other)))
    count = int(np.count_nonzero(different))
    return (count, tuple(int(each) for each in np.argwhere(different)[0])) if count else None
