"""The one size that a graph takes, where a transposed convolution with a constant result size decides it.

Code that computes the result's size from a constant leaves the input's batch, height and width open, yet TensorFlow
accepts a single size there. Written into the placeholder, it is declared in the ONNX model, and the proof knows what to
feed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from padfix.geometry.padding import effective_kernel
from padfix.sources.fixed_inputs import constant_of, split
from padfix.sources.tf_ops.conv_transpose import input_size

_TRANSPOSED = {"Conv2DBackpropInput": 2, "Conv3DBackpropInputV2": 3}
_SAME_SIZE = frozenset(
    {
        "Abs",
        "BiasAdd",
        "Cast",
        "Elu",
        "Erf",
        "Exp",
        "FusedBatchNorm",
        "FusedBatchNormV2",
        "FusedBatchNormV3",
        "Identity",
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
)
_WITH_CONSTANT = frozenset({"Add", "AddV2", "Maximum", "Minimum", "Mul", "RealDiv", "Sub"})
_CONVOLUTIONS = {"Conv2D": 2, "Conv3D": 3, "DepthwiseConv2dNative": 2}


def declare(graph_def: Any) -> None:
    """Write the lengths that a transposed convolution demands into the placeholders of a GraphDef."""
    nodes = {node.name: node for node in graph_def.node}
    for node in graph_def.node:
        spatial = _TRANSPOSED.get(node.op)
        if spatial is None:
            continue
        lengths = _demanded(node, spatial, nodes)
        placeholder = _placeholder(node.input[2], nodes)
        if placeholder is None or "shape" not in placeholder.attr:
            continue
        dimensions = placeholder.attr["shape"].shape.dim
        first = _first(node)
        if len(dimensions) != spatial + 2:
            continue
        changed = False
        demanded = [dimensions[0], *dimensions[first : first + spatial]]
        for dimension, length in zip(demanded, lengths, strict=True):
            if length is not None and length > 0 and dimension.size < 0:
                dimension.size = length
                changed = True
        if changed:
            for other in graph_def.node:
                other.attr.pop("_output_shapes", None)  # written for the open shapes


def _demanded(node: Any, spatial: int, nodes: Mapping[str, Any]) -> list[int | None]:
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
    values = constant_of(nodes, name)
    if values is not None and values.size == spatial:
        return [None, *(int(value) for value in values.ravel())]
    if values is not None:
        return [int(values.ravel()[axis]) for axis in (0, *range(first, first + spatial))]
    packed = _node(name, nodes)
    if packed is None or packed.op != "Pack" or len(packed.input) < spatial + 2:
        return [None] * (spatial + 1)
    parts = [constant_of(nodes, packed.input[axis]) for axis in (0, *range(first, first + spatial))]
    return [None if part is None or part.size != 1 else int(part.ravel()[0]) for part in parts]


def _placeholder(name: str, nodes: Mapping[str, Any]) -> Any:
    """Return the placeholder whose height and width the tensor ``name`` has, if that is certain."""
    while (node := _node(name, nodes)) is not None:
        if node.op == "Placeholder":
            return node
        if node.op in _WITH_CONSTANT:
            data = [each for each in node.input[:2] if not _spreads_nothing(each, nodes)]
            if len(data) != 1:
                return None
            name = data[0]
        elif node.op in _SAME_SIZE or (node.op in _CONVOLUTIONS and _keeps_size(node)):
            name = node.input[0]
        else:
            return None
    return None


def _spreads_nothing(name: str, nodes: Mapping[str, Any]) -> bool:
    """Whether ``name`` is a constant that can't make what it meets larger along height or width."""
    values = constant_of(nodes, name)
    return values is not None and all(length == 1 for length in values.shape[:-1])


def _keeps_size(node: Any) -> bool:
    return bool(node.attr["padding"].s == b"SAME" and all(stride == 1 for stride in node.attr["strides"].list.i))


def _first(node: Any) -> int:
    return 2 if node.attr["data_format"].s.startswith(b"NC") else 1


def _node(name: str, nodes: Mapping[str, Any]) -> Any:
    stem, port = split(name)
    return None if port or name.startswith("^") else nodes.get(stem)
