"""The lengths that a graph takes alone, where a constant decides them.

A filter tells how many channels its convolution reads, and a constant result size what size a transposed convolution
reads, yet code often leaves the input's batch, height, width or channels open. Written into the placeholder, the length
is declared in the ONNX model, TensorFlow's inference knows it everywhere, and the proof knows what to feed. (TensorFlow
also takes multiples of a filter's channels, as groups; ONNX states the number of groups.)
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from padfix.geometry.padding import effective_kernel
from padfix.sources.fixed_inputs import constant_of, split
from padfix.sources.tf_ops.batch_norm import NORMALISATIONS
from padfix.sources.tf_ops.conv_transpose import input_size
from padfix.sources.tf_ops.windows import CONVOLUTIONS, GRADIENTS

_SAME_SIZE = NORMALISATIONS | {
    "Abs",
    "BiasAdd",
    "Cast",
    "Elu",
    "Erf",
    "Exp",
    "Identity",
    "LRN",
    "LeakyRelu",
    "Neg",
    "Relu",
    "Relu6",
    "Selu",
    "Sigmoid",
    "Softplus",
    "Square",
    "StopGradient",
    "Tanh",
}
_WITH_CONSTANT = frozenset({"Add", "AddV2", "Maximum", "Minimum", "Mul", "RealDiv", "Sub"})
_PADS = frozenset({"Pad", "PadV2", "MirrorPad"})
_POOLS = frozenset({"MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D"})
_RESIZES = frozenset({"ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"})
_BLOCKS = frozenset({"BatchToSpaceND", "SpaceToBatchND"})

_LENGTHS: Mapping[str, tuple[tuple[int, int, int, int], ...]] = {
    **dict.fromkeys((f"NonMaxSuppression{version}" for version in ("", "V2", "V3", "V4", "V5")), ((0, 1, 2, 4),)),
    "CropAndResize": ((1, 1, 2, 4), (3, 0, 1, 2)),
    **dict.fromkeys(_PADS, ((1, 1, 2, 2),)),
    **dict.fromkeys(_BLOCKS, ((2, 1, 2, 2),)),
    **dict.fromkeys((*_RESIZES, "ScaleAndTranslate"), ((1, 0, 1, 2),)),
}
"""Position, axis, rank and length of what an operator takes at one length alone."""

_ALIKE: Mapping[str, tuple[int, int]] = {"Slice": (1, 3), "StridedSlice": (1, 4), **dict.fromkeys(_BLOCKS, (1, 3))}
"""The inputs that are lists of one length."""


def declare(graph_def: Any) -> None:
    """Write the lengths that constants demand into the placeholders of a GraphDef."""
    nodes = {node.name: node for node in graph_def.node}
    demanded: dict[tuple[str, int], set[int]] = defaultdict(set)
    for node in graph_def.node:
        for axis, length in _demands(node, nodes):
            found = _origin(axis, nodes)
            if found is not None and length > 0:
                demanded[found].add(length)
    changed = False
    for (name, index), lengths in demanded.items():
        dimensions, most = nodes[name].attr["shape"].shape.dim, max(lengths)
        open_there = index < len(dimensions) and dimensions[index].size < 0
        if open_there and all(most % length == 0 for length in lengths):  # a filter of fewer channels has groups
            dimensions[index].size = most
            changed = True
    for node in graph_def.node if changed else ():
        node.attr.pop("_output_shapes", None)  # written for the open shapes


@dataclass(frozen=True)
class _Axis:
    """One axis of a tensor, from 0 on, of as many as ``rank``; None where that is not known."""

    tensor: str
    index: int
    rank: int | None


def _demands(node: Any, nodes: Mapping[str, Any]) -> Iterator[tuple[_Axis, int]]:
    """Yield what a node demands of the lengths of its data."""
    if node.op in GRADIENTS:
        spatial = GRADIENTS[node.op]
        kernel = constant_of(nodes, node.input[1])
        first = _first(node)
        for index, length in zip((0, *range(first, first + spatial)), _sizes_read(node, spatial, nodes), strict=True):
            if length is not None:
                yield _Axis(node.input[2], index, spatial + 2), length
        if kernel is not None and kernel.ndim == spatial + 2:
            read = kernel.shape[-2:] if node.op.startswith("Depthwise") else kernel.shape[-1:]
            yield _Axis(node.input[2], _channels(node, spatial + 2), spatial + 2), math.prod(read)
    elif node.op in CONVOLUTIONS:
        rank = CONVOLUTIONS[node.op] + 2
        kernel = constant_of(nodes, node.input[1])
        if kernel is not None and kernel.ndim == rank:
            yield _Axis(node.input[0], _channels(node, rank), rank), kernel.shape[-2]
    elif node.op in NORMALISATIONS:
        parameters = [constant_of(nodes, name) for name in node.input[1:5]]
        for length in {each.size for each in parameters if each is not None and each.size}:
            yield _Axis(node.input[0], _channels(node, 4), 4), length
            yield from ((_Axis(name, 0, 1), length) for name in node.input[1:5])
    elif node.op == "ReverseSequence":
        lengths = constant_of(nodes, node.input[1])
        if lengths is not None:
            yield _Axis(node.input[0], node.attr["batch_dim"].i, None), lengths.size
    for position, index, rank, length in _LENGTHS.get(node.op, ()):
        yield _Axis(node.input[position], index, rank), length
    alike = [(name, constant_of(nodes, name)) for name in node.input[slice(*_ALIKE.get(node.op, (0, 0)))]]
    for length in {len(each) for _, each in alike if each is not None and each.ndim}:
        yield from (
            (_Axis(name, 0, 2 if node.op in _BLOCKS and name == node.input[2] else 1), length) for name, _ in alike
        )


def _sizes_read(node: Any, spatial: int, nodes: Mapping[str, Any]) -> list[int | None]:
    """Return the batch and the input length of each spatial axis; None where what decides it isn't constant."""
    first = _first(node)
    batch, *sizes = _sizes(node.input[0], nodes, first, spatial)
    kernel = constant_of(nodes, node.input[1])
    if kernel is None or kernel.ndim != spatial + 2:
        return [batch] + [None] * spatial
    strides = list(node.attr["strides"].list.i)[first : first + spatial]
    rates = list(node.attr["dilations"].list.i)[first : first + spatial] or [1] * spatial
    padding = node.attr["padding"].s.decode()
    explicit = list(node.attr["explicit_paddings"].list.i) if padding == "EXPLICIT" else [0] * (2 * spatial + 4)
    lengths = [batch]
    for axis, size in enumerate(sizes):
        around = (explicit[2 * (first + axis)], explicit[2 * (first + axis) + 1])
        span = effective_kernel(kernel.shape[axis], rates[axis])
        lengths.append(None if size is None else input_size(padding, around, size, span, strides[axis]))
    return lengths


def _sizes(name: str, nodes: Mapping[str, Any], first: int, spatial: int) -> list[int | None]:
    """Return the batch and the spatial lengths of the result."""
    entries = _entries(name, nodes)
    if entries is None:
        return [None] * (spatial + 1)
    if len(entries) == spatial:
        return [None, *entries]
    return [entries[axis] for axis in (0, *range(first, first + spatial))]


def _entries(name: str, nodes: Mapping[str, Any]) -> list[int | None] | None:
    """Return the entries of a list of integers, None for one that is computed; None where their number is open."""
    values = constant_of(nodes, name)
    if values is not None:
        return [int(value) for value in values.ravel()]
    node = _node(name, nodes)
    if node is None:
        return None
    if node.op in ("Identity", "Cast"):
        return _entries(node.input[0], nodes)
    if node.op == "Pack":
        parts = [constant_of(nodes, each) for each in node.input]
        return [None if part is None or part.size != 1 else int(part.ravel()[0]) for part in parts]
    if node.op == "ConcatV2":
        joined = [_entries(each, nodes) for each in node.input[:-1]]
        return None if any(each is None for each in joined) else [entry for each in joined for entry in each or ()]
    if node.op == "StridedSlice":
        return _sliced(node, nodes)
    return None


def _sliced(node: Any, nodes: Mapping[str, Any]) -> list[int | None] | None:
    """Return the entries that a slice of a list keeps."""
    entries = _entries(node.input[0], nodes)
    bounds = [constant_of(nodes, each) for each in node.input[1:4]]
    if entries is None or any(bound is None or bound.size != 1 for bound in bounds):
        return None
    begin, end, step = (int(bound.ravel()[0]) for bound in bounds if bound is not None)
    if node.attr["shrink_axis_mask"].i:
        return entries[begin : begin + 1] if begin >= 0 else None
    return entries[None if node.attr["begin_mask"].i else begin : None if node.attr["end_mask"].i else end : step]


def _origin(axis: _Axis | None, nodes: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the placeholder and the axis of it that is as long as ``axis``, if that is certain."""
    while axis is not None and (node := _node(axis.tensor, nodes)) is not None:
        if node.op == "Placeholder":
            return node.name, axis.index
        axis = _axis_read(node, axis, nodes)
    return None


def _axis_read(node: Any, axis: _Axis, nodes: Mapping[str, Any]) -> _Axis | None:
    """Return the axis of an input of ``node`` that the axis of its result is as long as."""
    index, rank, tensor = axis.index, axis.rank, node.input[0] if node.input else ""
    if rank is None:
        return _Axis(tensor, index, rank) if node.op in ("Identity", "Cast") else None
    if node.op in _WITH_CONSTANT:
        data = [each for each in node.input[:2] if not _spreads_nothing(each, axis, nodes)]
        return _Axis(data[0], index, rank) if len(data) == 1 else None
    if node.op in _SAME_SIZE or (node.op in CONVOLUTIONS and index != _channels(node, rank) and _keeps_size(node)):
        return _Axis(tensor, index, rank)
    if node.op in _POOLS and (index == 0 or (index == _channels(node, rank) and node.attr["ksize"].list.i[index] == 1)):
        return _Axis(tensor, index, rank)
    if node.op in _RESIZES and index in (0, 3):
        return _Axis(tensor, index, rank)
    given = constant_of(nodes, node.input[1]) if node.op in _PADS | {"Transpose", "ExpandDims"} else None
    if given is not None and node.op == "Transpose":
        return _Axis(tensor, int(given.reshape(-1)[index]), rank)
    if given is not None and node.op == "ExpandDims":
        added = int(given.reshape(-1)[0]) % rank
        return None if index == added else _Axis(tensor, index - (index > added), rank - 1)
    if given is not None and not given[index].any():
        return _Axis(tensor, index, rank)
    return None


def _spreads_nothing(name: str, axis: _Axis, nodes: Mapping[str, Any]) -> bool:
    """Whether ``name`` is a constant that can't make what it meets longer along an axis."""
    values = constant_of(nodes, name)
    if values is None or axis.rank is None or values.ndim > axis.rank:
        return False
    place = axis.index - axis.rank + values.ndim
    return place < 0 or values.shape[place] == 1


def _keeps_size(node: Any) -> bool:
    return bool(node.attr["padding"].s == b"SAME" and all(stride == 1 for stride in node.attr["strides"].list.i))


def _first(node: Any) -> int:
    return 2 if node.attr["data_format"].s.startswith(b"NC") else 1


def _channels(node: Any, rank: int) -> int:
    return 1 if _first(node) == 2 else rank - 1


def _node(name: str, nodes: Mapping[str, Any]) -> Any:
    stem, port = split(name)
    return None if port or name.startswith("^") else nodes.get(stem)
