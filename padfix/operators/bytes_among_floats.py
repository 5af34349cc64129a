"""Bytes that are made of floats, and floats that are computed of bytes, side by side."""

from __future__ import annotations

from math import prod

from onnx import NodeProto

from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope
from padfix.operators.constant_chains import is_constant
from padfix.operators.elementwise import LAYING_OUT, REDUCTIONS
from padfix.operators.numbers import numbers_of
from padfix.operators.passing import PASSING

MOVING_BYTES = frozenset(
    """
    Concat DepthToSpace Expand Flatten Gather Identity MaxPool Reshape Slice SpaceToDepth Split Squeeze Tile Transpose
    Unsqueeze
    """.split()  # noqa: SIM905
)
"""What gives bytes that it reads."""

_MOVING = MOVING_BYTES - {"MaxPool"} | {"Pad", "Resize"}

_FILTERS = ("Conv", "ConvTranspose")

_POOLS = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")

# fmt: off
_IN_A_ROW = LAYING_OUT | frozenset(REDUCTIONS) | {
    "Abs", "Add", "Ceil", "Concat", "Cos", "CumSum", "DepthToSpace", "Div", "Elu", "Floor", "Gather", "GatherElements",
    "GatherND", "HardSigmoid", "Log", "LpNormalization", "Max", "MaxPool", "Min", "Mul", "Neg", "Round", "Sigmoid",
    "Sign", "Sin", "Slice", "Softplus", "Sqrt", "Sub", "Sum", "Tanh", "Tile", "TopK",
}
# fmt: on
"""What gives its elements in a row, as they lie in the data or one after the other."""

_PAIR = ("QuantizeLinear", "DequantizeLinear")

_OF_FLOATS_ALONE = ("GatherND",)
"""What is computed in floats between bytes as well."""

_IN_ONE_GO = 128
"""How many elements of a row are quantized at once."""

_OF_IMAGES = 4
"""The number of axes from which on each of the batch is a row of its own."""


def moved_from(scope: Scope, name: str) -> list[str]:
    """Return which bytes the node that gives these moves; none where it moves no bytes."""
    maker = scope.own_producer(name)
    if maker is None or maker.op_type not in MOVING_BYTES:
        return []
    return list(maker.input if maker.op_type == "Concat" else maker.input[:1])


def moved_to(scope: Scope, name: str) -> list[str]:
    """Return what the nodes give that move these bytes."""
    moved = [each for each in scope.consumers(name) if each.op_type in MOVING_BYTES]
    return [result for each in moved for result in each.output if result]


def is_of_caller(scope: Scope, name: str) -> bool:
    """Whether a value is an input or an output of the model."""
    return scope.parent is None and (name in scope.inputs or scope.is_output(name))


def leaves_floats_over(scope: Scope, node: NodeProto) -> bool:
    """Whether a QuantizeLinear is of a row of floats that some are left over of where all are taken 128 at a time."""
    maker, known = scope.own_producer(node.input[0]), scope.type_of(node.input[0])
    lengths = None if known is None else known.lengths
    if maker is None or lengths is None or maker.op_type not in _IN_A_ROW:
        return False
    beside = [is_constant(scope, name) and numbers_of(scope, name) == "single" for name in maker.input]
    if maker.op_type not in _OF_FLOATS_ALONE and not any(beside) and not _computes_in_floats(scope, maker):
        return False
    return prod(lengths[1:] if len(lengths) >= _OF_IMAGES else lengths) % _IN_ONE_GO != 0


def is_one_channel_for_bytes(scope: Scope, node: NodeProto) -> bool:
    """Whether a DepthToSpace gives one channel, of whose floats, in whatever row they lie then, bytes are made."""
    known = scope.type_of(node.output[0])
    if known is None or known.shape is None or len(known.shape) != _OF_IMAGES or known.shape[1] not in (1, None):
        return False

    def behind(name: str) -> list[str]:
        in_a_row = [each for each in scope.consumers(name) if each.op_type in (*_IN_A_ROW, "Clip")]
        return [result for each in in_a_row for result in each.output if result]

    names = reached([node.output[0]], behind)
    return any(each.op_type == "QuantizeLinear" for name in names for each in scope.consumers(name))


def is_among_floats(scope: Scope, node: NodeProto) -> bool:
    """Whether bytes are made of what is computed in floats, by no layer, and computed with in floats, by no layer.

    What the caller gives are floats, beside which what moves bytes alone computes in floats as well, and a result.
    """
    quantizer = scope.own_producer(node.input[0])
    if quantizer is None or quantizer.op_type != "QuantizeLinear":
        return False
    given = _before_passing(scope, quantizer)
    maker, of_caller = scope.own_producer(given), is_of_caller(scope, given)
    makes_floats = of_caller if maker is None else maker.op_type not in _FILTERS and _computes_in_floats(scope, maker)
    readers = [each for each in _behind_passing(scope, node) if each.op_type not in (*_FILTERS, *_POOLS)]
    reads_floats = any(_computes_in_floats(scope, each) or (of_caller and each.op_type in _MOVING) for each in readers)
    return makes_floats and (reads_floats or (of_caller and scope.is_output(node.output[0])))


def is_volume_among_floats(scope: Scope, node: NodeProto) -> bool:
    """Whether bytes of five axes or more are of floats, or moved as floats, and of no layer that is computed of bytes.

    None are what a layer alone reads that does not follow another, or what a layer gives the caller.
    """
    quantizer, known = scope.own_producer(node.input[0]), scope.type_of(node.output[0])
    rank = 0 if known is None else known.rank or 0
    if quantizer is None or quantizer.op_type != "QuantizeLinear" or rank <= _OF_IMAGES:
        return False
    maker, readers = scope.own_producer(quantizer.input[0]), scope.consumers(node.output[0])
    if maker is not None and maker.op_type not in _MOVING and not _computes_in_floats(scope, maker):
        return False
    if maker is not None and maker.op_type in _FILTERS:
        return bool(readers)
    return not readers or any(each.op_type not in _FILTERS for each in readers)


def _before_passing(scope: Scope, quantizer: NodeProto) -> str:
    """Return what is quantized, before it is passed on as other bytes."""
    name = str(quantizer.input[0])
    maker = scope.own_producer(name)
    while maker is not None and maker.op_type in PASSING:
        before = scope.own_producer(maker.input[0])
        first = before if before is None else scope.own_producer(before.input[0])
        if first is None or before is None or (first.op_type, before.op_type) != _PAIR:
            break
        name = str(first.input[0])
        maker = scope.own_producer(name)
    return name


def _behind_passing(scope: Scope, node: NodeProto) -> list[NodeProto]:
    """Return what reads numbers of bytes, and what reads them where they are passed on as other bytes."""
    readers = []
    for each in scope.consumers(node.output[0]):
        quantizers = scope.consumers(each.output[0]) if each.op_type in PASSING else []
        last = [one for other in quantizers if other.op_type == _PAIR[0] for one in scope.consumers(other.output[0])]
        readers += [each] if not last else [one for other in last for one in _behind_passing(scope, other)]
    return readers


def _computes_in_floats(scope: Scope, node: NodeProto) -> bool:
    """Whether a node reads anything but what is dequantized, or gives anything but what is quantized."""
    behind = scope.consumers(node.output[0])
    gives_bytes = bool(behind) and all(each.op_type == "QuantizeLinear" for each in behind)
    is_given_bytes = all(is_dequantized(scope, name) for name in node.input if name and not is_constant(scope, name))
    return scope.is_output(node.output[0]) or not (gives_bytes and is_given_bytes)


def is_dequantized(scope: Scope, name: str) -> bool:
    producer = scope.own_producer(name)
    return producer is not None and producer.op_type == "DequantizeLinear"
