"""Open lengths of inputs that belong together, because an operator reads both: data and its filter, a list of sizes.

Lengths that are open in each input for itself are chosen without regard for each other. Where an operator takes only
some together, one follows from the other here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from padfix.proof.executors import ExecutionFailed, Executor, TensorSpec
from padfix.proof.graph_view import GraphView, NodeView
from padfix.proof.sides import side_of

_KEEP_SHAPE = frozenset(
    {"Identity", "Cast", "Relu", "Relu6", "Sigmoid", "Tanh", "Abs", "Neg", "Pad", "PadV2", "BiasAdd", "ExpandDims"}
)

"""Operators that keep the last axes of their first input, or all."""

_Place = tuple[int, int]
"""An input's position, and an axis of it."""

_SUPPRESSIONS = ("NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5")
_TRANSPOSED = ("Conv2DBackpropInput", "Conv3DBackpropInputV2")
_SPARSE = ("SparseReshape", "SparseToDense", "SparseFillEmptyRows")
_PADS = ("Pad", "PadV2", "MirrorPad")

_EQUAL: Mapping[str, tuple[tuple[_Place, _Place], ...]] = {
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative"), (((1, -2), (0, -1)),)),
    **dict.fromkeys(_TRANSPOSED, (((1, -1), (2, -1)),)),
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

_LENGTHS: Mapping[str, tuple[tuple[int, int, int], ...]] = dict.fromkeys(_SPARSE, ((0, 1, 3), (0, 0, 5)))
"""Position, axis and length."""

_AS_LONG_AS_AXES: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(_TRANSPOSED, (0, 2)),
    **dict.fromkeys(_PADS, (1, 0)),
}
"""A list that has a number for each axis of another input."""

_TAPS = 3
_FILTERED = frozenset({"Conv2D", "Conv3D", "DepthwiseConv2dNative", *_TRANSPOSED})
"""Operators whose second input is a filter, spatial axes first."""


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
        side = side_of(executor) if any(any(axes) for axes in self._open.values()) else None
        self._side = side
        self._readers = _readers(side.view, self._open) if side is not None else []
        self._wanted = {node.index: self._size(node) for node, _ in self._readers if node.op_type in _TRANSPOSED}

    def fitted(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """Return the shapes with open lengths that go together."""
        found = {name: list(shape) for name, shape in shapes.items()}
        for node, names in self._readers:
            self._fit(node, names, found)
        return {name: tuple(shape) for name, shape in found.items()}

    def _fit(self, node: NodeView, names: Mapping[int, str], found: dict[str, list[int]]) -> None:
        for place, axis, length in _LENGTHS.get(node.op_type, ()):
            self._set(names.get(place), axis, length, found)
        if node.op_type in _AS_LONG_AS_AXES:
            listed, other = (names.get(each) for each in _AS_LONG_AS_AXES[node.op_type])
            if other is not None:
                self._set(listed, 0, len(found[other]), found)
        if node.op_type in _FILTERED and 1 in names:
            for axis in range(len(found[names[1]]) - 2):
                self._set(names[1], axis, _TAPS, found)
        if self._wanted.get(node.index):
            self._undo(node, names, found)
        for (place_of_one, axis), (place_of_other, other_axis) in _EQUAL.get(node.op_type, ()):
            one, another = names.get(place_of_one), names.get(place_of_other)
            if one is not None and another is not None and -len(found[another]) <= other_axis < len(found[another]):
                length = found[another][other_axis]
                if not self._set(one, axis, length, found) and -len(found[one]) <= axis < len(found[one]):
                    self._set(another, other_axis, found[one][axis], found)

    def _size(self, node: NodeView) -> list[int]:
        """Return the size that a transposed convolution is to give, where it is a constant; else nothing."""
        try:
            size = self._side.values({}, [node.inputs[0]])[node.inputs[0]] if self._side is not None else None
        except ExecutionFailed:
            return []
        return [] if size is None else [int(length) for length in size.reshape(-1)]

    def _undo(self, node: NodeView, names: Mapping[int, str], found: dict[str, list[int]]) -> None:
        """Give the input of a transposed convolution the size that its result asks for."""
        batch, *sizes, channels = self._wanted[node.index]
        strides, padding = node.attribute("strides"), node.attribute("padding")
        self._set(names.get(1), -2, channels, found)
        self._set(names.get(2), 0, batch, found)
        for axis, (size, stride) in enumerate(zip(sizes, (strides or ())[1:-1], strict=False)):
            taps = found[names[1]][axis] if 1 in names else _TAPS
            length = -(-size // stride) if padding == b"SAME" else (size - taps) // stride + 1
            self._set(names.get(2), axis + 1, max(1, length), found)

    def _set(self, name: str | None, axis: int, length: int, found: dict[str, list[int]]) -> bool:
        """Give an axis a length where it is open, and return whether it is."""
        if name is None or not -len(found[name]) <= axis < len(found[name]) or not self._open[name][axis]:
            return False
        found[name][axis] = length
        return True


def _readers(view: GraphView, inputs: Mapping[str, object]) -> list[tuple[NodeView, dict[int, str]]]:
    """Return the operators that read several inputs, or what has their shape, with the input at each position."""
    origin = {name: name for name in inputs}
    found = []
    for node in view.nodes:
        names = {place: origin[name] for place, name in enumerate(node.inputs) if name in origin}
        if 0 in names and node.op_type in _KEEP_SHAPE:
            origin |= dict.fromkeys(filter(None, node.outputs), names[0])
        if names and (node.op_type in _EQUAL or node.op_type in _LENGTHS or node.op_type in _AS_LONG_AS_AXES):
            found.append((node, names))
    return found
