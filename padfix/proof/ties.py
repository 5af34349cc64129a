"""Open lengths of inputs that belong together, because an operator reads both: data and its filter, a list of sizes.

Lengths that are open in each input for itself are chosen without regard for each other. Where an operator takes only
some together, one follows from the other here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from padfix.proof.executors import ExecutionFailed, Executor, TensorSpec, numpy_type
from padfix.proof.graph_view import NodeView
from padfix.proof.sides import Side, side_of

_KEEP_SHAPE = frozenset(
    {"Identity", "Cast", "Relu", "Relu6", "Sigmoid", "Tanh", "Abs", "Neg", "BiasAdd", "Exp", "Log", "Sqrt", "Square"}
)
_KEEP_LAST_AXES = _KEEP_SHAPE | {"Pad", "PadV2", "ExpandDims"}
_KEEP_ELEMENTS = _KEEP_SHAPE | {"ExpandDims", "Squeeze", "Transpose", "Reshape", "Tile"}
"""Operators that keep the shape of their first input, its last axes, or its elements (a whole number of times)."""

_Place = tuple[int, int]
"""An input's position, and an axis of it."""

_SUPPRESSIONS = ("NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5")
_TRANSPOSED = ("Conv2DBackpropInput", "Conv3DBackpropInputV2")
_LITE_TRANSPOSED = ("TRANSPOSE_CONV", "CONV_3D_TRANSPOSE")
"""The same in TensorFlow Lite; the filter's channels of the result come first in two dimensions."""
_SPARSE = ("SparseReshape", "SparseToDense", "SparseFillEmptyRows")
_PADS = ("Pad", "PadV2", "MirrorPad")
_SCATTERS = (
    *("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin"),
    "ScatterNd",
)
_ELEMENTWISE = frozenset(
    {"Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "DivNoNan", "FloorDiv", "FloorMod", "Pow", "Maximum", "Minimum"}
    | {"SquaredDifference", "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"}
    | {"LogicalAnd", "LogicalOr"}
)
"""Operators of two tensors that broadcast to one shape."""

_EQUAL: Mapping[str, tuple[tuple[_Place, _Place], ...]] = {
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative"), (((1, -2), (0, -1)),)),
    **dict.fromkeys((*_TRANSPOSED, *_LITE_TRANSPOSED), (((1, -1), (2, -1)),)),
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), (((1, -2), (0, -1)),)),
    "BiasAdd": (((1, 0), (0, -1)),),
    **dict.fromkeys(
        ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
        tuple(((place, 0), (0, -1)) for place in range(1, 5)),
    ),
    **dict.fromkeys(("SparseReshape", "SparseToDense"), (((1, 0), (0, 1)),)),
    **dict.fromkeys(("SparseFillEmptyRows", "SparseTensorDenseMatMul"), (((1, 0), (0, 0)), ((2, 0), (0, 1)))),
    **dict.fromkeys(_SUPPRESSIONS, (((1, 0), (0, 0)),)),
    "CropAndResize": (((2, 0), (1, 0)),),
    "DynamicPartition": (((1, 0), (0, 0)),),
}
"""Pairs of which the first is as long as the second."""

_LENGTHS: Mapping[str, tuple[tuple[int, int, int], ...]] = {
    **dict.fromkeys(_SPARSE, ((0, 1, 3), (0, 0, 5))),
    **dict.fromkeys(_SUPPRESSIONS, ((0, 1, 4),)),
    **dict.fromkeys(("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2"), ((0, 0, 3), (1, 2, 4))),
    "CropAndResize": ((1, 1, 4),),
}
"""Position, axis and length."""

_AS_LONG_AS_AXES: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(_TRANSPOSED, (0, 2)),
    **dict.fromkeys(_PADS, (1, 0)),
}
"""A list that has a number for each axis of another input."""

_FILTER = 1
"""Where the filter is among the inputs, or the weights of each channel."""

_TURNED: Mapping[int, tuple[str, str]] = {0: ("transpose_a", "adj_x"), 1: ("transpose_b", "adj_y")}
"""Attributes that turn a factor of a matrix product."""

_TAPS = 3
_FILTERED = frozenset({"Conv2D", "Conv3D", "DepthwiseConv2dNative", *_TRANSPOSED})
"""Operators whose second input is a filter, spatial axes first."""


_ROW_IDS = b"VALUE_ROWIDS"
"""A partition of ragged rows that has the row of each value."""

_TYING = (
    _EQUAL.keys() | _LENGTHS.keys() | _AS_LONG_AS_AXES.keys() | _ELEMENTWISE
    | {*_SCATTERS, *_LITE_TRANSPOSED, "Reshape", "RaggedTensorToTensor"}
)  # fmt: skip


@dataclass(frozen=True)
class _Reader:
    """An operator, and by position the inputs of the model that it reads, through what keeps something of them.

    Attributes:
        node: The operator.
        same_shape: Through operators that keep the shape.
        last_axes: Through operators that keep the last axes.
        elements: Through operators that keep the elements.
    """

    node: NodeView
    same_shape: Mapping[int, str]
    last_axes: Mapping[int, str]
    elements: Mapping[int, str]


class Ties:
    """What ties the open lengths of the inputs together.

    Args:
        executor: Runs the original.
        inputs: The inputs.
    """

    def __init__(self, executor: Executor, inputs: Sequence[TensorSpec]) -> None:
        self._open = {
            spec.name: [not isinstance(length, int) for length in spec.shape]
            for spec in inputs
            if spec.shape is not None
        }
        self._types = {spec.name: numpy_type(spec.elem_type) for spec in inputs}
        self._side = side_of(executor) if any(any(axes) for axes in self._open.values()) else None
        self._readers = _readers(self._side, self._open) if self._side is not None else []

    def fitted(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """Return the shapes with open lengths that go together."""
        found = {name: list(shape) for name, shape in shapes.items()}
        for reader in self._readers:
            self._fit(reader, found)
        return {name: tuple(shape) for name, shape in found.items()}

    def _fit(self, reader: _Reader, found: dict[str, list[int]]) -> None:
        node, names, operator = reader.node, reader.last_axes, reader.node.op_type
        for place, axis, length in _LENGTHS.get(operator, ()):
            self._set(names.get(place), axis, length, found)
        if operator in _AS_LONG_AS_AXES:
            listed, other = (names.get(each) for each in _AS_LONG_AS_AXES[operator])
            if other is not None:
                self._set(listed, 0, len(found[other]), found)
        if operator in _FILTERED and 1 in names:
            for axis in range(len(found[names[1]]) - 2):
                self._set(names[1], axis, _TAPS, found)
        if operator in (*_TRANSPOSED, *_LITE_TRANSPOSED) and not _has_channels_first(node):
            self._undo(node, names, found)
        for pair in _EQUAL.get(operator, ()):
            self._equate(reader, _as_laid_out(node, pair), found)
        if operator in _SCATTERS:
            self._scatter(reader, found)
        elif operator in _ELEMENTWISE:
            self._broadcast(reader, found)
        elif operator == "Reshape" and 0 in reader.elements:
            self._divide(reader.elements[0], self._declared(node.outputs[0]), found)
        elif operator == "RaggedTensorToTensor" and (node.attribute("row_partition_types") or ())[-1:] == [_ROW_IDS]:
            self._equate(reader, ((1, 0), (len(node.inputs) - 1, 0)), found)

    def _declared(self, name: str) -> tuple[int | None, ...]:
        """Return the lengths of a tensor that the graph tells, None for one that it doesn't; nothing of no rank."""
        return (self._side.lengths(name) if self._side is not None else None) or ()

    def _shape(
        self, reader: _Reader, place: int, names: Mapping[int, str], found: Mapping[str, list[int]]
    ) -> Sequence[int | None]:
        """Return the lengths of what is read: those chosen for an input, or those that the graph tells."""
        if place in names:
            return found[names[place]]
        return self._declared(reader.node.inputs[place]) if place < len(reader.node.inputs) else ()

    def _equate(self, reader: _Reader, pair: tuple[_Place, _Place], found: dict[str, list[int]]) -> None:
        """Give the axis of one operand the length of the other's, or the other way round."""
        for (place, axis), (place_of_other, other_axis) in (pair, pair[::-1]):
            shape = self._shape(reader, place_of_other, reader.last_axes, found)
            length = shape[other_axis] if -len(shape) <= other_axis < len(shape) else None
            if length is not None and self._set(reader.last_axes.get(place), axis, length, found):
                return

    def _broadcast(self, reader: _Reader, found: dict[str, list[int]]) -> None:
        """Let inputs be as long as what they are joined with, where that is a constant say."""
        for place, name in reader.same_shape.items():
            if 1 - place in reader.same_shape or place > 1:
                continue
            for axis, length in enumerate(reversed(self._declared(reader.node.inputs[1 - place])), 1):
                if length is not None and length > 1:
                    self._set(name, -axis, length, found)

    def _divide(self, name: str, wanted: Sequence[int | None], found: dict[str, list[int]]) -> None:
        """Give an input as many elements as a Reshape needs: where it can, with the last axes of the result."""
        shape, known = found[name], math.prod(length for length in wanted if length)
        if math.prod(shape) == known or (None in wanted and math.prod(shape) % known == 0):
            return
        for axis, length in enumerate(reversed(wanted), 1):
            if axis > len(shape) or not length or not (self._set(name, -axis, length, found) or shape[-axis] == length):
                break
        axes = [axis for axis, is_open in enumerate(self._open[name]) if is_open]
        if axes and math.prod(shape) % known:
            self._set(name, axes[0], shape[axes[0]] * (known // math.gcd(known, math.prod(shape))), found)

    def _scatter(self, reader: _Reader, found: dict[str, list[int]]) -> None:
        """Fit what is scattered, where it goes, and what it goes into, for indices of as many axes as that leaves."""
        is_new = reader.node.op_type == "ScatterNd"
        places = (0, 1, 2) if is_new else (1, 2, 0)
        indices, updates, whole = (list(self._shape(reader, each, reader.same_shape, found)) for each in places)
        names = [reader.same_shape.get(each) for each in places]
        if not indices or not updates:
            return
        kept = len(updates) - len(indices) + 1
        if is_new:
            given = None if self._is_open(names[0], -1) else indices[-1]
            indexed = whole[0] - kept if whole and whole[0] and not self._is_open(names[2], 0) else given or 1
            self._set(names[2], 0, indexed + kept, found)
            whole = []
        else:
            indexed = len(whole) - kept
        self._set(names[0], -1, indexed, found)
        for axis, (index, update) in enumerate(zip(indices[:-1], updates, strict=False)):
            if not (update and self._set(names[0], axis, update, found)) and index:
                self._set(names[1], axis, index, found)
        for axis, (length, update) in enumerate(zip(whole[indexed:], updates[len(indices) - 1 :], strict=False)):
            if not (update and self._set(names[2], indexed + axis, update, found)) and length:
                self._set(names[1], len(indices) - 1 + axis, length, found)

    def _undo(self, node: NodeView, names: Mapping[int, str], found: dict[str, list[int]]) -> None:
        """Give the input of a transposed convolution the size that its result asks for."""
        result: Sequence[int | None] = self._declared(node.outputs[0]) or (None, None)
        if 2 in names and None in result:
            computed = self._computed(node.inputs[0], found) or ()
            # TensorFlow also takes the spatial sizes alone.
            result = computed if len(computed) == len(found[names[2]]) else result
        batch, *sizes, channels = result
        strides, padding = node.attribute("strides"), node.attribute("padding")
        kernel = found[names[1]] if 1 in names else self._declared(node.inputs[1])
        if node.op_type == "TRANSPOSE_CONV":
            kernel = kernel[1:3]
        elif channels is not None:
            self._set(names.get(1), -2, channels, found)
        if batch is not None:
            self._set(names.get(2), 0, batch, found)
        for axis, (size, stride) in enumerate(zip(sizes, (strides or ())[1:-1], strict=False)):
            if size is None:
                continue
            taps = dict(enumerate(kernel)).get(axis) or _TAPS
            length = -(-size // stride) if padding == b"SAME" else (size - taps) // stride + 1
            place = axis + 1 - len(result)
            # A line is made a plane before it is read: the axis that is put in is none of the input's.
            if 2 in names and -place < len(found[names[2]]):
                self._set(names[2], place, max(1, length), found)

    def _computed(self, name: str, found: Mapping[str, list[int]]) -> list[int] | None:
        """Return a list of sizes as the graph computes it from the lengths of the inputs; None from their numbers."""
        told = []
        for number in (0, 1):
            arrays = {each: np.full(shape, number, self._types[each]) for each, shape in found.items()}
            try:
                told.append(self._side.values(arrays, [name])[name].tolist() if self._side is not None else None)
            except ExecutionFailed:
                return None
        return told[0] if told[0] == told[1] else None

    def _is_open(self, name: str | None, axis: int) -> bool:
        return name is not None and self._open[name][axis]

    def _set(self, name: str | None, axis: int, length: int, found: dict[str, list[int]]) -> bool:
        """Give an axis a length where it is open, and return whether it is."""
        if name is None or not -len(found[name]) <= axis < len(found[name]) or not self._open[name][axis]:
            return False
        found[name][axis] = length
        return True


def _has_channels_first(node: NodeView) -> bool:
    return bool((node.attribute("data_format") or b"").startswith(b"NC"))


def _as_laid_out(node: NodeView, pair: tuple[_Place, _Place]) -> tuple[_Place, _Place]:
    """Return a pair of axes as they are where channels come second (not of filters), or a factor is transposed."""
    is_first = _has_channels_first(node)

    def laid_out(place: int, axis: int) -> _Place:
        if any(node.attribute(name) for name in _TURNED.get(place, ())):
            return place, -3 - axis  # the last but one for the last, and the other way round
        return place, 1 if is_first and axis == -1 and place != _FILTER else axis

    return laid_out(*pair[0]), laid_out(*pair[1])


def _readers(side: Side, inputs: Mapping[str, object]) -> list[_Reader]:
    """Return the operators that tie lengths together and read an input, or what has its shape or its elements."""
    origins: list[dict[str, str]] = [{name: name for name in inputs} for _ in range(3)]
    found = []
    for node in side.view.nodes:
        read = [{place: origin[name] for place, name in enumerate(node.inputs) if name in origin} for origin in origins]
        for keep, origin, names in zip((_KEEP_SHAPE, _KEEP_LAST_AXES, _KEEP_ELEMENTS), origins, read, strict=True):
            kept = _kept(side, node, names, keep)
            if kept is not None:
                origin |= dict.fromkeys(filter(None, node.outputs), kept)
        if any(read) and node.op_type in _TYING:
            found.append(_Reader(node, *read))
    return found


def _kept(side: Side, node: NodeView, names: Mapping[int, str], keep: Collection[str]) -> str | None:
    """Return the input of the model whose shape (or axes, or elements) a result has; a scalar changes none."""
    if node.op_type in _ELEMENTWISE:
        return next((name for place, name in names.items() if side.lengths(node.inputs[1 - place]) == ()), None)
    return names.get(0) if node.op_type in keep else None
