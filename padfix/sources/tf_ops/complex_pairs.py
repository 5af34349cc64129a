"""Complex numbers, which ONNX's operators don't take: real and imaginary parts, each a tensor of floats.

The graph is gone through from its inputs on, before tf2onnx maps it. What moves, joins or adds numbers is written once
for each part, as the TensorFlow operator that it is; products, quotients and Fourier transforms are written out; where
a result is real again, it takes the place of the old one. What is not known here stays as it is, so that tf2onnx names
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from padfix.sources.tf_ops import fourier
from padfix.sources.tf_ops.tensor import Builder, Tensor, filled

Parts = tuple[Tensor, Tensor]

_PART_BY_PART = frozenset(
    {"Identity", "StopGradient", "Snapshot", "Reshape", "Squeeze", "ExpandDims", "Transpose", "ConcatV2", "Slice"}
    | {"StridedSlice", "GatherV2", "GatherNd", "Pack", "Unpack", "Split", "SplitV", "Tile", "BroadcastTo", "ReverseV2"}
    | {"Pad", "PadV2", "MirrorPad", "Roll", "ZerosLike", "Select", "SelectV2", "SpaceToBatchND", "BatchToSpaceND"}
    | {"Add", "AddV2", "AddN", "Sub", "Neg", "Sum", "Mean", "Cumsum", "UnsortedSegmentSum", "MatrixDiag", "EnsureShape"}
)
"""Operators that do to the real parts what they do to the imaginary parts."""

_OF_SHAPES = frozenset({"Shape", "Size", "Rank"})
_PRODUCTS = frozenset({"Mul", "MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
_COMPLEX = {14: 1, 15: 11}
"""``TensorProto.DataType`` of complex numbers, and of their parts."""


def separate(graph: Any, nodes: Sequence[Any]) -> Any:
    """Rewrite the complex numbers of a graph, as tf2onnx's ``custom_rewriter`` takes it."""
    if any(graph.get_dtype(output) in _COMPLEX for node in nodes for output in node.output):
        graph.topological_sort(graph.get_nodes())
        pairs = _Pairs(graph)
        for node in list(graph.get_nodes()):
            pairs.visit(node)
    return graph.get_nodes()


class _Pairs:
    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._parts: dict[str, Parts] = {}

    def visit(self, node: Any) -> None:
        """Write a node in parts where it reads or gives complex numbers that are known in parts."""
        if not any(self._is_complex(name) for name in (*node.input, *node.output)) or node.is_graph_input():
            return
        builder = Builder(self._graph, node.name)
        if node.is_const():
            values = node.get_tensor_value(as_list=False)
            self._parts[node.output[0]] = self._constant(builder, values)
        elif not all(name in self._parts for name in node.input if self._is_complex(name)):
            return
        elif node.type in _TO_REAL and not self._is_complex(node.output[0]):
            result = _TO_REAL[node.type](builder, node, self._parts[node.input[0]])
            builder.finish(result, node)
        elif node.type in _OF_SHAPES:
            self._graph.replace_input(node, node.input[0], self._parts[node.input[0]][0].name, 0)
        elif node.type in _PART_BY_PART:
            self._copy(builder, node)
        elif node.type in _PRODUCTS:
            self._parts[node.output[0]] = self._product(builder, node)
        elif node.type in _TO_COMPLEX:
            read = [self._parts.get(name) or (builder.read(name),) for name in node.input]
            self._parts[node.output[0]] = _TO_COMPLEX[node.type](builder, node, read)

    def _is_complex(self, name: str) -> bool:
        return self._graph.get_dtype(name) in _COMPLEX

    @staticmethod
    def _constant(builder: Builder, values: Any) -> Parts:
        array = np.asarray(values)
        return builder.constant(array.real, array.real.dtype), builder.constant(array.imag, array.real.dtype)

    def _copy(self, builder: Builder, node: Any) -> None:
        copies = [self._copied(builder, node, [side] * len(node.input)) for side in (0, 1)]
        self._parts |= {name: (copies[0][place], copies[1][place]) for place, name in enumerate(node.output)}

    def _copied(self, builder: Builder, node: Any, sides: Sequence[int]) -> list[Tensor]:
        """Return the results of the same operator on parts of its inputs; ``sides`` says which part of each."""
        from tf2onnx import utils

        inputs = [
            self._parts[name][side].name if self._is_complex(name) else name
            for name, side in zip(node.input, sides, strict=True)
        ]
        types = [_COMPLEX.get(self._graph.get_dtype(name), self._graph.get_dtype(name)) for name in node.output]
        attributes = {name: _of_parts(attribute) for name, attribute in node.attr.items()}
        made = self._graph.make_node(
            *(node.type, inputs, attributes, len(node.output)),
            skip_conversion=False,
            name=utils.make_name(f"{node.name}_part"),
            infer_shape_dtype=False,
            dtypes=types,
        )
        for result, name in zip(made.output, node.output, strict=True):
            if self._graph.get_shape(name) is not None:
                self._graph.set_shape(result, self._graph.get_shape(name))
        return [builder.read(name) for name in made.output]

    def _product(self, builder: Builder, node: Any) -> Parts:
        """Return ``(a + bi)(c + di)`` as ``ac - bd`` and ``ad + bc``; an adjoint factor has its sign turned."""
        first, second = (-1.0 if node.get_attr_value(name, 0) else 1.0 for name in ("adj_x", "adj_y"))
        part = {sides: self._copied(builder, node, sides)[0] for sides in ((0, 0), (1, 1), (0, 1), (1, 0))}
        crossed = _signed(part[0, 1], second) + _signed(part[1, 0], first)
        return part[0, 0] - _signed(part[1, 1], first * second), crossed


def _signed(tensor: Tensor, sign: float) -> Tensor:
    return tensor if sign > 0 else tensor * sign


def _of_parts(attribute: Any) -> Any:
    """Return an attribute of a node as its parts have it: a type is that of the parts."""
    if attribute.type == attribute.INT and attribute.i in _COMPLEX and attribute.name in ("T", "dtype", "type"):
        changed = type(attribute)()
        changed.CopyFrom(attribute)
        changed.i = _COMPLEX[attribute.i]
        return changed
    return attribute


def _part_type(builder: Builder, node: Any) -> np.dtype[Any]:
    return np.dtype(np.float64 if builder.ctx.get_dtype(node.output[0]) == 15 else np.float32)


def _joined(builder: Builder, node: Any, read: Sequence[Sequence[Tensor]]) -> Parts:
    """Return the two parts in one shape: one number may be given for all of the other part."""
    (real,), (imaginary,) = read
    shapes = [builder.ctx.get_shape(each.name) for each in (real, imaginary)]
    if shapes[0] == shapes[1] and shapes[0] is not None and -1 not in shapes[0]:
        return real, imaginary
    return real.expand(imaginary.shape()), imaginary.expand(real.shape())


def _widened(builder: Builder, node: Any, read: Sequence[Sequence[Tensor]]) -> Parts:
    """Return a Cast to complex numbers, from real ones or from others."""
    dtype = _part_type(builder, node)
    parts = [each.cast(dtype) for each in read[0]]
    return (parts[0], parts[1] if len(parts) > 1 else filled(0, dtype, parts[0].shape()))


def _quotient(builder: Builder, node: Any, read: Sequence[Sequence[Tensor]]) -> Parts:
    """Return ``(a + bi)/(c + di)`` as the product with ``(c - di)/(c² + d²)``."""
    (a, b), (c, d) = read
    size = c * c + d * d
    return (a * c + b * d) / size, (b * c - a * d) / size


def _inverse(builder: Builder, node: Any, read: Sequence[Sequence[Tensor]]) -> Parts:
    ((c, d),) = read
    size = c * c + d * d
    return c / size, d * -1.0 / size


def _square(builder: Builder, node: Any, read: Sequence[Sequence[Tensor]]) -> Parts:
    ((a, b),) = read
    return a * a - b * b, a * b * 2.0


def _exponential(builder: Builder, node: Any, read: Sequence[Sequence[Tensor]]) -> Parts:
    ((a, b),) = read
    grown = a.exponential()
    return grown * b.cosine(), grown * b.sine()


_TO_COMPLEX: Mapping[str, Callable[[Builder, Any, Sequence[Sequence[Tensor]]], Parts]] = {
    "Complex": _joined,
    "Cast": _widened,
    "Conj": lambda builder, node, read: (read[0][0], read[0][1] * -1.0),
    "RealDiv": _quotient,
    "Div": _quotient,
    "Inv": _inverse,
    "Reciprocal": _inverse,
    "Square": _square,
    "Exp": _exponential,
    **dict.fromkeys(fourier.FORWARD, fourier.transformed),
}


def _size(builder: Builder, node: Any, parts: Parts) -> Tensor:
    """Return how long each number is. The larger part is divided out: squares overflow, and vanish, long before it."""
    first, second = (part.absolute() for part in parts)
    larger, smaller = first.maximum(second), first.minimum(second)
    ratio = smaller / builder.choose(larger.greater(0.0), larger, 1.0)
    return larger * (ratio * ratio + 1.0).root()


def _angle(builder: Builder, node: Any, parts: Parts) -> Tensor:
    """Return the angle of each number, which tf2onnx computes from ``Atan2``."""
    made = builder.ctx.make_node(
        *("Atan2", [parts[1].name, parts[0].name]),
        skip_conversion=False,
        dtypes=[builder.ctx.get_dtype(node.output[0])],
        shapes=[builder.ctx.get_shape(node.output[0])],
    )
    return builder.read(made.output[0])


_TO_REAL: Mapping[str, Callable[[Builder, Any, Parts], Tensor]] = {
    **dict.fromkeys(("Real", "TFL_REAL"), lambda builder, node, parts: parts[0]),
    **dict.fromkeys(("Imag", "TFL_IMAG"), lambda builder, node, parts: parts[1]),
    **dict.fromkeys(("ComplexAbs", "Abs", "TFL_MAGNITUDE"), _size),
    "Angle": _angle,
    "Cast": lambda builder, node, parts: parts[0].cast(builder.type_of(node.output[0])),
    **dict.fromkeys(fourier.TO_REAL, fourier.real_inverse),
}
