"""Constants that several nodes read, or one node twice: what importers keep of them for the first alone."""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import takewhile

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.constant_chains import is_constant, is_given_by_node, is_of_constants

_WEIGHING = ("BatchNormalization", "Gemm", "LayerNormalization", "MatMul", "PRelu")
_JOINING = frozenset(
    "Add Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Pow Sub Sum Where".split()  # noqa: SIM905
)
"""What takes constants for weights, and what takes them for data as any other."""

TOLD = frozenset(("Pad", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Unsqueeze"))
"""What is told by constants behind its data what to do."""

_AS_IT_IS, _TURNED = "as it is", ("Conv", "ConvTranspose", "Gemm")
"""How a constant lies in memory for what reads it, and what may want its weights in an order of its own."""


def reads_constant_again(scope: Scope, node: NodeProto) -> bool:
    """Whether a node takes a constant for its weights that an operator before it takes for data.

    The sum behind a product has weights as well, as it becomes the product's bias. What normalises instances makes a
    list of its own of a constant, also for what takes it for data behind it. And whether a constant tells a node what
    to do that an operator before it takes for data, or for indices.
    """
    if node.op_type in TOLD:
        return _is_told_again(scope, node)
    weighs = node.op_type in _WEIGHING or _is_bias(scope, node)
    if not weighs and node.op_type not in _JOINING:
        return False
    readers = {
        reader.output[0]
        for name in node.input
        if scope.is_initializer(name) or is_given_by_node(scope, name)
        for reader in scope.consumers(name)
        if reader.op_type == "InstanceNormalization"
        or (weighs and reader.op_type in _JOINING and not _is_bias(scope, reader))
        or (node.op_type == "MatMul" and _takes_for_data(reader, name))
    }
    return _is_before(scope, node, readers)


def _takes_for_data(node: NodeProto, name: str) -> bool:
    """Whether what weighs nothing takes a constant for its data, or a product for its first factor."""
    return node.op_type == "Concat" or (node.op_type in ("Gather", "MatMul") and name == node.input[0])


def _is_before(scope: Scope, node: NodeProto, outputs: Collection[str]) -> bool:
    """Whether something before a node gives one of these first."""
    before = takewhile(lambda each: each.output[:1] != node.output[:1], scope.nodes if outputs else ())
    return any(each.output[0] in outputs for each in before if each.output)


def _is_told_again(scope: Scope, node: NodeProto) -> bool:
    names = [name for name in node.input[1:] if name and is_constant(scope, name)]
    readers = [each for name in dict.fromkeys(names) for each in scope.consumers(name)]
    outputs = {each.output[0] for each in readers if each.op_type == "Gather" or each.op_type in _JOINING}
    return _is_before(scope, node, outputs)


def weighs_number_again(scope: Scope, node: NodeProto) -> bool:
    """Whether a layer has a constant of one element for a weight that arithmetic before it takes, as a number."""
    if node.op_type in _JOINING:
        return False
    told = {name: scope.type_of(name) for name in node.input[1:] if scope.is_initializer(name)}
    lengths = {name: known.lengths for name, known in told.items() if known is not None}
    numbers = [name for name, each in lengths.items() if each is not None and math.prod(each) == 1]
    readers = {each.output[0] for name in numbers for each in scope.consumers(name) if each.op_type in _JOINING}
    return _is_before(scope, node, readers)


def joins_constant_again(scope: Scope, node: NodeProto) -> bool:
    """Whether a Concat joins a constant twice, or one that something before it takes for data."""
    constants = [name for name in node.input if is_constant(scope, name)]
    outputs = {
        each.output[0]
        for name in constants
        for each in scope.consumers(name)
        if _takes_for_data(each, name) or each.op_type in _JOINING
    }
    return len(set(constants)) < len(constants) or _is_before(scope, node, outputs)


def reads_turned_constant(scope: Scope, node: NodeProto) -> bool:
    """Whether a node wants its constant weights in another order of axes than something else that reads them.

    A Gemm may read them for what it adds as well.
    """
    weights = node.input[1] if len(node.input) > 1 else ""
    wanted = _orders_of(scope, node, weights) - {_AS_IT_IS} if weights else set()
    if not wanted or not is_of_constants(scope, weights):
        return False
    return any(_orders_of(scope, reader, weights) - wanted for reader in scope.consumers(weights))


def _orders_of(scope: Scope, node: NodeProto, name: str) -> set[str]:
    """Return whose orders of axes a node wants a constant in; none for what takes it in any.

    A Gemm of matrices as they are wants its second one turned; a product takes that either way, unless a sum makes a
    Gemm of it, and a Gather of a constant by constants is worked out.
    """
    is_weight = name in node.input[1:2] and name not in node.input[:1]
    if node.op_type == "Gather":
        return set()
    if node.op_type == "MatMul" and is_weight:
        return {"Gemm"} if becomes_gemm(scope, node) else set()
    if node.op_type not in _TURNED or not is_weight or attributes.integer(node, "transB", 0):
        return {_AS_IT_IS}
    return {node.op_type, _AS_IT_IS} if name in node.input[2:] else {node.op_type}


def becomes_gemm(scope: Scope, node: NodeProto) -> bool:
    """Whether a product with a matrix is summed with a matrix or a row, and read by nothing else."""
    given = node.output[0]
    readers = scope.consumers(given)
    if len(readers) != 1 or readers[0].op_type != "Add" or scope.is_output(given):
        return False
    added = [name for name in readers[0].input if name != given]
    types = [scope.type_of(name) for name in (*node.input, *added)]
    ranks = [None if known is None else known.rank for known in types]
    return len(ranks) == 3 and ranks[1] == 2 and (ranks[2] == 1 or ranks[0] == ranks[2] == 2)


def _is_bias(scope: Scope, node: NodeProto) -> bool:
    """Whether a node adds to a product with a constant: two computed ones take no bias."""
    producers = (scope.producer(name) for name in node.input) if node.op_type == "Add" else ()
    return any(
        producer is not None
        and producer.op_type == "MatMul"
        and any(scope.constant(name) is not None for name in producer.input)
        for producer in producers
    )
