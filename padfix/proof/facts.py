"""What a graph says about its inputs beyond their declared shapes: rank, channels, and which are not data.

A fully dynamic input can't be given data blindly: a convolution wants its own channel count, and a resize wants scales
that make sense. Both are written in the graph, next to the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, numpy_helper

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, ValueType, all_nodes, bodies_of, normal_domain
from padfix.operators.reading import is_resampling, read_at
from padfix.operators.resample import input_roles
from padfix.operators.schemas import DRAWS
from padfix.operators.shared_lengths import shared_lengths
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Window
from padfix.operators.written import Place
from padfix.proof.constants import constant_tensors
from padfix.proof.executors import TensorSpec

# Operators whose output has the axes of their first input.
_KEEPS_AXES = frozenset(
    {
        "Identity",
        "Cast",
        "Relu",
        "LeakyRelu",
        "Clip",
        "Sigmoid",
        "Tanh",
        "Neg",
        "Abs",
        "QuantizeLinear",
        "Pad",
        "Dropout",
    }
    | {"MaxPool", "AveragePool", "LpPool", "Upsample", "Resize", "DequantizeLinear", "BatchNormalization"}
)
_KNOWN_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})
# Dropout only draws in training, which depends on an input.
RANDOM = DRAWS | {"Dropout", "Attention", "MultiHeadAttention", "Sampling"}
_LONGEST_LIST, _LARGEST_NAMED, _MOST_NAMED = 16, 4096, 64
_MOST_TEXTS = 4096
_SETTINGS = frozenset({"activations", "nodes_modes"})
"""Attributes whose texts are an operator's own words, and no data."""

_SHORT_FLOATS = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})


@dataclass(frozen=True)
class Control:
    """An input that steers a resampling instead of holding data.

    Attributes:
        kind: ``"scales"``, ``"sizes"`` or ``"roi"``.
        axes: The axes of the data that its entries are for; None for all, in order.
        data: The graph input that is resampled, when it is one.
    """

    kind: str
    axes: tuple[int, ...] | None
    data: str | None


def control_inputs(graph: GraphProto) -> dict[str, Control]:
    """Return the graph inputs that are scales, sizes or regions of a resampling operator."""
    names = {value.name for value in graph.input}
    found: dict[str, Control] = {}
    for node in graph.node:
        for position, name in enumerate(node.input):
            if name not in names or not is_resampling(node):
                continue
            kind = input_roles(node).get(position)
            if kind is None:
                continue
            axes = attributes.integers(node, "axes")
            data = node.input[0] if node.input[0] in names else None
            found[name] = Control(kind, None if axes is None else tuple(axes), data)
    return found


def may_vary(graph: GraphProto) -> bool:
    """Whether the graph may give other numbers each time: it draws some, or calls what can't be looked into."""
    return any(
        node.domain not in _KNOWN_DOMAINS
        or node.op_type in RANDOM
        or any(may_vary(body) for _, body in bodies_of(node))
        for node in graph.node
    )


def drawing(graph: GraphProto) -> set[str]:
    """Return the operators of the graph that draw random numbers whatever their inputs are."""
    return {node.op_type for node in all_nodes(graph.node)} & DRAWS


def cast_types(graph: GraphProto) -> set[int]:
    """Return the float types below 32 bits that values are cast to: what is computed with, whatever goes in and out.

    Weights that are stored in fewer bits and cast up lose nothing.
    """
    found: set[int] = set()
    for node in graph.node:
        if node.op_type == "Cast" and attributes.integer(node, "to", 0) in _SHORT_FLOATS:
            found.add(attributes.integer(node, "to", 0))
        for _, body in bodies_of(node):
            found |= cast_types(body)
    return found


def named_lengths(graph: GraphProto) -> list[int]:
    """Return lengths that constants name, in bodies too: what lists hold, how long weights are, and one more each."""
    found: set[int] = set()
    for tensor in constant_tensors(graph).values():
        is_list = tensor.data_type == TensorProto.INT64 and len(tensor.dims) < 2 and sum(tensor.dims) <= _LONGEST_LIST
        held = numpy_helper.to_array(tensor).ravel().tolist() if is_list else tensor.dims
        found.update(each + more for each in held for more in (0, 1))
    for node in graph.node:
        for _, body in bodies_of(node):
            found.update(named_lengths(body))
    return sorted(each for each in found if 1 < each <= _LARGEST_NAMED)[:_MOST_NAMED]


def named_texts(nodes: Iterable[NodeProto], tensors: Iterable[TensorProto] = ()) -> list[str]:
    """Return the texts that operators and constants name, in bodies too: among which text is looked up."""
    found: dict[bytes, None] = {}
    for tensor in tensors:
        found.update(dict.fromkeys(tensor.string_data))
    for node in all_nodes(nodes):
        for attribute in node.attribute:
            if attribute.name not in _SETTINGS:
                found.update(dict.fromkeys((*attribute.strings, *attribute.t.string_data)))
    return [each.decode("utf-8", "replace") for each in found][:_MOST_TEXTS]


def refine(specs: Sequence[TensorSpec], graph: GraphProto) -> list[TensorSpec]:
    """Return the specs with ranks and lengths that the first operators behind an input ask for, as their weights tell.

    Only unknown and symbolic axes are filled in; declared lengths stay.
    """
    dims: dict[str, tuple[int, ...]] = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    consumers: dict[str, list[NodeProto]] = {}
    for node in graph.node:
        if node.op_type == "Constant":
            value = attributes.find(node, "value")
            if value is not None and value.type == AttributeProto.TENSOR:
                dims[node.output[0]] = tuple(value.t.dims)
        for name in set(node.input):
            consumers.setdefault(name, []).append(node)
    return [_refine(spec, consumers, dims) for spec in specs]


def _refine(
    spec: TensorSpec, consumers: Mapping[str, list[NodeProto]], dims: Mapping[str, tuple[int, ...]]
) -> TensorSpec:
    if spec.is_fixed:
        return spec
    shape: list[Dimension] | None = None if spec.shape is None else list(spec.shape)
    # `order[axis]` is the axis of the graph input that the value's axis came from; None while it is the identity.
    queue: list[tuple[str, tuple[int, ...] | None]] = [(spec.name, None)]
    seen = {spec.name}
    while queue:
        name, order = queue.pop(0)
        for node in consumers.get(name, []):
            if not node.input or node.input[0] != name:
                continue
            rank, channels, channels_last = _wanted(node, dims)
            if rank is not None and shape is None:
                shape = [None] * rank
            if shape is not None:
                told = list(_told_lengths(node, dims, len(shape)))
                if channels is not None and len(shape) > 1:
                    told.append((len(shape) - 1 if channels_last else 1, channels))
                for place, length in told:
                    axis = place if order is None else order[place]
                    if not isinstance(shape[axis], int):
                        shape[axis] = length
            if not node.output or node.output[0] in seen:
                continue
            if node.op_type == "Transpose":
                permutation = attributes.integers(node, "perm")
                if permutation is None or (order is not None and len(order) != len(permutation)):
                    continue
                if shape is None:
                    shape = [None] * len(permutation)
                if len(shape) != len(permutation):
                    continue
                following = tuple(order[axis] if order is not None else axis for axis in permutation)
            elif node.op_type in _KEEPS_AXES:
                following = order  # type: ignore[assignment]
            else:
                continue
            seen.add(node.output[0])
            queue.append((node.output[0], following))
    return replace(spec, shape=None if shape is None else tuple(shape))


def _told_lengths(node: NodeProto, dims: Mapping[str, tuple[int, ...]], rank: int) -> Iterator[tuple[int, int]]:
    """Yield axes of the data of an operator without windows, and the lengths that its constants and attributes tell."""
    if normal_domain(node.domain):
        return
    shapes = {position: dims[name] for position, name in enumerate(node.input) if position and name in dims}
    ranks = {position: len(shape) for position, shape in shapes.items()}
    for axes, may_be_one in shared_lengths(node, {0: rank, **ranks}):
        lengths = (shapes[position][axis] for position, axis in axes if position in shapes)
        length = next((each for each in lengths if each > 1 or not may_be_one), None)
        if length is not None:
            yield from ((axis, length) for position, axis in axes if not position)
    pieces = attributes.integers(node, "split") if node.op_type == "Split" else None
    axis = attributes.integer(node, "axis", 0)
    if pieces and -rank <= axis < rank:
        yield axis % rank, sum(pieces)


def _wanted(node: NodeProto, dims: Mapping[str, tuple[int, ...]]) -> tuple[int | None, int | None, bool]:
    """Return the axes and channels that an operator wants its data to have, and whether the channels come last."""
    if is_resampling(node):
        return _resampled_rank(node, dims), None, False

    def type_of(name: str) -> ValueType | None:
        return ValueType(TensorProto.UNDEFINED, dims[name]) if name in dims else None

    reading = read_at(node, Place("", None, type_of, lambda name: None))
    if isinstance(reading, Window | TransposedWindow):
        return reading.rank + 2, reading.channels, isinstance(reading, Window) and reading.channels_last
    return None, None, False


def _resampled_rank(node: NodeProto, dims: Mapping[str, tuple[int, ...]]) -> int | None:
    """Return the rank that the lists of a resampling tell, which have an entry for each axis."""
    if attributes.find(node, "axes") is not None:
        return None
    scales = attributes.find(node, "scales")
    if scales is not None:
        return len(scales.floats)
    for position, role in input_roles(node).items():
        shape = dims.get(node.input[position]) if position < len(node.input) else None
        if role != "roi" and shape and shape[0]:
            return shape[0]
    return None
