"""What runtimes make one layer of, and where their layers disagree about the order of channels in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, ValueType, normal_domain
from padfix.operators.clip import clip_bounds
from padfix.operators.data_order import CHANNELS, is_in_blocks, number_of_channels
from padfix.operators.reductions import reduced_axes
from padfix.operators.shape_questions import is_spread
from padfix.operators.window import Shape

_BOTH_BOUNDS = 3
"""Inputs of a Clip of which none is left away at the end."""

_ACTIVATIONS = frozenset(("Elu", "Gelu", "HardSigmoid", "HardSwish", "Mish", "Sigmoid", "Tanh"))
"""What a convolution computes along, but for those that only cut off (Relu, Clip)."""

_PARTS = frozenset(("Add", "Clip", "Div", "Erf", "HardSigmoid", "Mul", "Sigmoid", "Softplus", "Tanh"))
"""What exporters write such activations of: x * sigmoid(x), x * (1 + erf(x / sqrt(2))) / 2 and the like."""

_MOST_PARTS = 6

MATRIX = 2
"""Axes."""

TERMS = 2
"""Of a sum that importers take for a bias."""

PRODUCTS = ("Gemm", "MatMul")

AXES_OF_SEQUENCES = 3


def is_activated_convolution(scope: Scope, name: str) -> bool:
    """Whether data is an activation of what a convolution gives, and read once alone, as is what the convolution gives.

    OpenCV 5 makes them one layer.
    """
    return len(scope.consumers(name)) == 1 and _activates_convolution(scope, name)


def _activates_convolution(scope: Scope, name: str) -> bool:
    """Whether data is an activation, or a product of data and their gate, of what a convolution gives it alone."""
    node = _producer(scope, name)
    if node is None:
        return False
    if node.op_type in _ACTIVATIONS:
        return _is_convolution(scope, node.input[0])
    if node.op_type != "Mul":
        return False
    inner, left, sources = [node], list(node.input), set[str]()
    while left and len(inner) <= _MOST_PARTS:
        each = left.pop()
        part = _producer(scope, each)
        if part is not None and part.op_type in _PARTS:
            inner += [] if part in inner else [part]
            left += part.input
        elif scope.constant(each) is None:
            sources.add(each)
    return not left and len(sources) == 1 and _is_convolution(scope, sources.pop(), within=inner)


_TURNING = ("Dropout", "Identity", "Transpose")
"""What pnnx looks through between a Neg and a Softmax."""

_FUSED = _ACTIVATIONS | {"Clip", "Erf", "LeakyRelu", "Relu", "Softplus"}
"""What ONNX Runtime computes along with a convolution on WebGPU."""

_MOVING = frozenset(("Dropout", "Identity", "Transpose"))
"""What its optimisations take out from between, or move away."""


def follows_convolution(scope: Scope, node: NodeProto) -> str:
    """Return how an activation follows a convolution that nothing else reads: ``alone``, ``activated`` or not, ``no``.

    ``activated`` is behind another activation, which may be written as a product of data and their gate.
    """
    name = node.input[0]
    gated = [each for each in scope.consumers(name) if each.op_type == "Mul" and node.output[0] in each.input]
    name = _read_alone(scope, name, [node, *gated])
    before = _producer(scope, name)
    if before is None:
        return "no"
    if before.op_type == "Conv":
        return "alone"
    if _activates_convolution(scope, name):
        return "activated"
    if before.op_type not in _FUSED:
        return "no"
    source = _producer(scope, _read_alone(scope, before.input[0], [before]))
    return "activated" if source is not None and source.op_type == "Conv" else "no"


def _read_alone(scope: Scope, name: str, readers: list[NodeProto]) -> str:
    """Return what data is before all that only moves it; nothing where others than ``readers`` read it."""
    while name and not scope.is_output(name) and all(each in readers for each in scope.consumers(name)):
        node = _producer(scope, name)
        if node is None or node.op_type not in _MOVING:
            return name
        name, readers = node.input[0], [node]
    return ""


def _is_convolution(scope: Scope, name: str, within: list[NodeProto] | None = None) -> bool:
    node, readers = _producer(scope, name), scope.consumers(name)
    read_elsewhere = len(readers) != 1 if within is None else any(each not in within for each in readers)
    return node is not None and node.op_type == "Conv" and not read_elsewhere


def is_of_transposed_groups(scope: Scope, name: str) -> bool:
    """Whether data is what a transposed convolution of groups gives, with nothing between that changes it."""
    node = _producer(scope, name)
    while node is not None and node.op_type in ("Dropout", "Identity"):
        node = _producer(scope, node.input[0])
    return node is not None and node.op_type == "ConvTranspose" and attributes.integer(node, "group", 1) > 1


def is_product(scope: Scope, name: str) -> bool:
    """Whether data is what a product with a matrix gives, with a constant added to it at most."""
    node = _producer(scope, name)
    if node is not None and node.op_type == "Add" and any(scope.constant(each) is not None for each in node.input):
        producers = [_producer(scope, each) for each in node.input]
        node = next((each for each in producers if each is not None), None)
    return node is not None and node.op_type == "MatMul"


def _added_to_products(scope: Scope, node: NodeProto) -> Iterator[tuple[NodeProto, ValueType | None, Shape]]:
    """Yield what a product that a sum reads is, what it gives, and the shape of the constant that is added to it."""
    for first, second in (node.input, reversed(node.input)):
        if (product := made_by(scope, first, "MatMul")) is not None:
            yield product, scope.type_of(first), constant_shape(scope, second)


def adds_wide_constant(scope: Scope, node: NodeProto) -> bool:
    """Whether it adds to a product with a constant matrix what has more axes than a row, as OpenCV 5 puts into it."""
    for product, gives, shape in _added_to_products(scope, node):
        if len(shape) > MATRIX:
            rank = None if gives is None else gives.rank
            is_matrix = len(constant_shape(scope, product.input[1])) == MATRIX
            return is_matrix and (set(shape[:-1]) == {1} or (rank is not None and len(shape) > rank))
    return False


def adds_more_axes(scope: Scope, node: NodeProto) -> bool:
    """Whether it adds several constants to a product with a constant matrix, and they have more axes than that has."""
    for product, gives, shape in _added_to_products(scope, node):
        if gives is not None and gives.rank is not None and set(shape) - {1}:
            return len(shape) > gives.rank and bool(constant_shape(scope, product.input[1]))
    return False


def adds_to_column(scope: Scope, node: NodeProto) -> bool | None:
    """Whether it adds several numbers to a product with a matrix of one column, but not one to each of three axes.

    OpenCV 4.14 puts them into the product; None where the lengths are not known.
    """
    for product, gives, shape in _added_to_products(scope, node):
        if set(shape) <= {1}:
            continue
        if not constant_shape(scope, product.input[1]):
            return False
        if gives is None or gives.shape is None:
            return None
        return len(gives.shape) > MATRIX and gives.shape[-1] == 1 and shape != gives.shape
    return False


def adds_as_many(scope: Scope, node: NodeProto) -> bool:
    """Whether it adds to a product as many constants as that has columns, but along another axis, as a column has them.

    Runtimes count them, and take them for a bias. The node is a sum, or a Gemm.
    """
    pairs = [(node.output[0], node.input[2])] if node.op_type == "Gemm" and len(node.input) > 2 else []
    if node.op_type in ("Add", "Sum") and len(node.input) == TERMS:
        pairs = [(first, second) for first, second in (node.input, reversed(node.input)) if _is_product(scope, first)]
    for name, constants in pairs:
        gives, shape = scope.type_of(name), constant_shape(scope, constants)
        columns = None if gives is None or not gives.shape else gives.shape[-1]
        lengths = [each for each in shape if isinstance(each, int)]
        if columns != 1 and lengths and math.prod(lengths) == columns and shape[-1] != columns:
            return True
    return False


def adds_as_many_as_channels(scope: Scope, node: NodeProto) -> bool:
    """Whether a sum adds to a convolution as many constants as that has channels, but along another axis."""
    if node.op_type not in ("Add", "Sum") or len(node.input) != TERMS:
        return False
    gives, shape = scope.type_of(node.input[0]), constant_shape(scope, node.input[1])
    if gives is None or gives.shape is None or len(gives.shape) < MATRIX + 2 or len(shape) > len(gives.shape):
        return False
    before = _producer(scope, node.input[0])
    while before is not None and before.op_type in _PART_OF_CONVOLUTION:
        before = _producer(scope, before.input[0])
    if before is None or before.op_type not in ("Conv", "ConvTranspose"):
        return False
    channels, along = gives.shape[CHANNELS], len(gives.shape) - CHANNELS
    count = math.prod(each for each in shape if isinstance(each, int))
    return bool(shape) and count == channels != 1 and (len(shape) < along or shape[-along] != channels)


_PART_OF_CONVOLUTION = frozenset(("BatchNormalization", "Clip", "Identity", "Relu"))
"""What MNN makes part of a convolution, to which it adds as a bias what is added behind it."""


def _is_product(scope: Scope, name: str) -> bool:
    product = _producer(scope, name)
    return product is not None and product.op_type in PRODUCTS


def constant_shape(scope: Scope, name: str) -> Shape:
    """Return the shape of what is constant, wherever its elements are; none of what is not."""
    known = scope.type_of(name)
    return () if known is None or known.shape is None or not is_written(scope, name) else known.shape


def is_written(scope: Scope, name: str) -> bool:
    """Whether a value is a constant, wherever its elements are."""
    node = _producer(scope, name)
    return scope.is_initializer(name) or (node is not None and node.op_type == "Constant")


def spreads_channels(scope: Scope, node: NodeProto) -> bool | None:
    """Whether it joins what windows give, of one channel and of several; None where their number is not known."""
    names = {each for each in node.input if each and scope.constant(each) is None and is_in_blocks(scope, each)}
    counts = {number_of_channels(scope, each) for each in names}
    return None if len(names) > 1 and None in counts else len(counts) > 1


def narrowest(scope: Scope, node: NodeProto) -> int | None:
    """Return which input has one channel where others have several; None where there is none, or it is not known."""
    counts = [number_of_channels(scope, each) for each in node.input]
    return counts.index(1) if 1 in counts and len(set(counts)) > CHANNELS else None


def _producer(scope: Scope, name: str) -> NodeProto | None:
    node = scope.own_producer(name)
    return None if node is None or normal_domain(node.domain) else node


def adds_to_erf(scope: Scope, node: NodeProto) -> bool:
    """Whether a node adds one constant to what an Erf gives, in this order, as exporters write a Gelu."""
    constant = scope.constant(node.input[1])
    return made_by(scope, node.input[0], "Erf") is not None and constant is not None and constant.size == 1


def adds_for_softplus(scope: Scope, node: NodeProto) -> bool:
    """Whether a node adds to an Exp, before a Log, what is not 1, or makes more of it, or one of both is a result.

    OpenCV takes any such sum for a part of a Softplus.
    """
    exponentials = [each for each in node.input if made_by(scope, each, "Exp") is not None]
    if not exponentials or not any(each.op_type == "Log" for each in scope.consumers(node.output[0])):
        return False
    if any(scope.is_output(each) for each in (*exponentials, *node.output)):
        return True
    other = next((scope.constant(each) for each in node.input if each not in exponentials), None)
    if len(exponentials) > 1 or other is None or (other != 1).any():
        return True
    before, summed = (scope.type_of(each) for each in (exponentials[0], node.output[0]))
    return other.ndim > 0 and (before is None or before.shape is None or before != summed)


def adds_one_to_size(scope: Scope, node: NodeProto) -> bool:
    """Whether a node adds 1 to magnitudes, in this order, by which the data are divided, as in an exported Softsign."""
    size, one = made_by(scope, node.input[0], "Abs"), scope.constant(node.input[1])
    if size is None or one is None or one.size != 1 or one.reshape(-1)[0] != 1:
        return False
    readers = scope.consumers(node.output[0])
    return any(each.op_type == "Div" and list(each.input) == [size.input[0], node.output[0]] for each in readers)


def is_log_of_sum(scope: Scope, node: NodeProto | None, name: str) -> bool:
    """Whether a node gives the logarithm of a sum of powers of e with a tensor's numbers."""
    for op_type in ("Log", "ReduceSum", "Exp"):
        if node is None or node.op_type != op_type:
            return False
        before = node.input[0]
        node = _producer(scope, before)
    return bool(before == name)


def axes_of_share(scope: Scope, node: NodeProto) -> int:
    """Return along how many axes powers of e are divided by their own sum, which may be taken one after another.

    0 where something else is divided.
    """
    axes, name = 0, node.input[1]
    while (total := made_by(scope, name, "ReduceSum")) is not None:
        reduced = reduced_axes(scope, total)
        axes += 2 if not reduced else len(reduced)
        name = total.input[0]
    return axes if name == node.input[0] and made_by(scope, name, "Exp") is not None else 0


def is_before_softmax(scope: Scope, node: NodeProto) -> bool:
    """Whether a Softmax reads what a node gives, be it turned."""
    return any(
        each.op_type == "Softmax" or (each.op_type in _TURNING and is_before_softmax(scope, each))
        for each in scope.consumers(node.output[0])
    )


def is_within_celu(scope: Scope, node: NodeProto) -> bool:
    """Whether an Elu reads a quotient and stands in a product, as a Celu of older opsets is written."""
    is_multiplied = any(each.op_type == "Mul" for each in scope.consumers(node.output[0]))
    return is_multiplied and made_by(scope, node.input[0], "Div") is not None


def ends_model(scope: Scope, node: NodeProto) -> bool:
    """Whether a result of the model is what a node gives, or what a Relu, LeakyRelu or Clip makes of it."""
    if scope.parent is not None:
        return False
    readers = [each for each in scope.consumers(node.output[0]) if each.op_type in ("Clip", "LeakyRelu", "Relu")]
    return scope.is_output(node.output[0]) or any(scope.is_output(each.output[0]) for each in readers)


def is_beside_numbers(scope: Scope) -> bool:
    """Whether an input or a result of the model has a number for its name, as PyTorch's exporter gives results."""
    return any(name.isdecimal() for name in (*scope.root.inputs, *scope.root.outputs))


def adds_turned_half(scope: Scope, node: NodeProto) -> bool:
    """Whether a node adds to a product of data that of their second half, negated, and their first, by Slices.

    So exporters write a rotary embedding.
    """
    products = [_producer(scope, name) for name in node.input]
    if any(each is None or each.op_type != "Mul" for each in products):
        return False
    data, turned = (each.input[0] for each in products if each is not None)
    joined = _producer(scope, turned)
    if joined is None or joined.op_type != "Concat" or len(joined.input) != len(products):
        return False
    negated, first = (_producer(scope, name) for name in joined.input)
    second = _producer(scope, negated.input[0]) if negated is not None and negated.op_type == "Neg" else None
    halves = [each for each in (first, second) if each is not None and each.op_type == "Slice"]
    return [each.input[0] for each in halves] == [data, data]


def spreads_norm(scope: Scope, node: NodeProto) -> bool:
    """Whether a Clip keeps from zero the norm that an Expand spreads over the data it is of, which are divided by it.

    So PyTorch exports a normalisation, as one attribute of which pnnx reads what cuts off.
    """
    return _spread_norm(scope, node) is not None and clip_bounds(scope, node)[1] == math.inf


def spreads_other_norm(scope: Scope, node: NodeProto) -> bool:
    """Whether a Clip does so with places for both bounds, for squares that are summed along more than the channels.

    OpenCV 4.14 takes that for its layer, which normalises along the channels.
    """
    norm = _spread_norm(scope, node)
    if norm is None or norm.op_type != "ReduceL2" or len(node.input) != _BOTH_BOUNDS:
        return False
    known = scope.type_of(norm.input[0])
    rank = None if known is None else known.rank
    return [axis % rank if rank else axis for axis in reduced_axes(scope, norm) or ()] != [CHANNELS]


def _spread_norm(scope: Scope, node: NodeProto) -> NodeProto | None:
    norm = _producer(scope, node.input[0])
    if norm is None or norm.op_type not in ("ReduceL1", "ReduceL2"):
        return None
    spread = [each for each in scope.consumers(node.output[0]) if each.op_type == "Expand"]
    readers = [reader for each in spread for reader in scope.consumers(each.output[0])]
    is_divided = any(each.op_type == "Div" and each.input[0] == norm.input[0] for each in readers)
    return norm if is_divided else None


def takes_largest_off(scope: Scope, name: str, axis: int) -> bool:
    """Whether data are what is left of other data without their largest along an axis, counted from the begin."""
    node = _producer(scope, name)
    largest = _producer(scope, node.input[1]) if node is not None and node.op_type == "Sub" else None
    if node is None or largest is None or largest.op_type != "ReduceMax" or largest.input[0] != node.input[0]:
        return False
    return reduced_axes(scope, largest) == [axis] and attributes.integer(largest, "keepdims", 1) != 0


def made_by(scope: Scope, name: str, op_type: str) -> NodeProto | None:
    """Return the operator of this type that gives a value; None where another does."""
    node = _producer(scope, name)
    return node if node is not None and node.op_type == op_type else None


def adds_to_convolution(scope: Scope, node: NodeProto) -> bool:
    """Whether a convolution gives a term to this sum alone, and another one is computed, in another shape.

    OpenCV 5 makes the sum part of the convolution.
    """
    computed = [name for name in node.input if scope.producer(name) is not None and scope.constant(name) is None]
    is_unlike = any(is_spread(scope, node, place) for place in range(len(node.input)))
    return is_unlike and len(computed) > 1 and any(is_of_convolution(scope, name) for name in computed)


def is_of_convolution(scope: Scope, name: str) -> bool:
    """Whether a convolution gives this, or a norm of one, and a single node reads it."""
    before = None if scope.is_output(name) or len(scope.consumers(name)) > 1 else scope.own_producer(name)
    if before is None or normal_domain(before.domain):
        return False
    is_norm = before.op_type == "BatchNormalization"
    return before.op_type == "Conv" or (is_norm and is_of_convolution(scope, before.input[0]))
