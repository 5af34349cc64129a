"""Integers of 64 bits that a node makes, and where they end: in results of the model, or in what counts with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from onnx import NodeProto, TensorProto

from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.constant_chains import STEERED, has_chain, is_of_data
from padfix.operators.numbers import elements_of

_COUNTING = ("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "CumSum", "Einsum", "MatMul", "Sign", "TopK")
"""What is done with integers and not with lengths."""

_ON_IMAGES = frozenset(
    """
    AveragePool BatchNormalization Conv ConvTranspose DepthToSpace GlobalAveragePool GlobalMaxPool GridSample
    InstanceNormalization LRN MaxPool Resize SpaceToDepth Upsample
    """.split()  # noqa: SIM905
)

_PICKING = ("Gather", "GatherElements", "GatherND")

_NEW = ("Abs", "ArgMax", "ArgMin", "Cast", "CastLike", "NonZero", "Shape", "Size")
"""What gives integers of its own, whatever it reads."""

_MOST_READERS = 64


def ends_as_long(scope: Scope, node: NodeProto) -> bool:
    """Whether the 64-bit integers that a node makes are a result of the main graph, or are counted with, as they are.

    Those that a Cast makes of integers are looked at where they depend on data.
    """
    gives, read = scope.type_of(node.output[0]), scope.type_of(node.input[0]) if node.input else None
    if gives is None or gives.elem_type != TensorProto.INT64 or scope.parent is not None:
        return False
    is_of_integers = read is None or elements_of(read.elem_type) == "integer"
    if node.op_type == "Cast" and is_of_integers and _is_of_lengths(scope, node):
        return False
    return any(
        scope.is_output(name) or any(reader.op_type in _COUNTING for reader in scope.consumers(name))
        for name in _behind(scope, node.output[0], partial(_given_on, scope))
    )


def is_behind_images(scope: Scope, name: str) -> bool:
    """Whether something computes a value that works on images, however far before it."""
    seen, waiting = set[str](), [name]
    while waiting and len(seen) < _MOST_READERS:
        node = scope.own_producer(each) if (each := waiting.pop()) not in seen else None
        seen.add(each)
        if node is not None:
            if node.op_type in _ON_IMAGES and not normal_domain(node.domain):
                return True
            waiting += node.input
    return False


def steers(scope: Scope, name: str) -> bool:
    """Whether a value, or what is computed of it, says what another operator does."""
    return any(
        reader.input[place] == each
        for each in _behind(scope, name, lambda reader, _: [given for given in reader.output if given])
        for reader in scope.consumers(each)
        for place in STEERED.get(reader.op_type, ())
        if place < len(reader.input)
    )


def _behind(scope: Scope, name: str, given_on: Callable[[NodeProto, str], list[str]]) -> Iterator[str]:
    """Yield a value and what its readers give on of it, each once, and no more than a bounded number."""
    seen, waiting = set[str](), [name]
    while waiting and len(seen) < _MOST_READERS:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            yield name
            waiting += [each for reader in scope.consumers(name) for each in given_on(reader, name)]


def turns_longs(scope: Scope, node: NodeProto) -> bool:
    """Whether a result of the model is 64-bit integers that a Transpose turns, or places in what one turns.

    Or what a Gather picks of such integers that are computed of data.
    """
    known = scope.type_of(node.output[0])
    if known is None or known.elem_type != TensorProto.INT64 or scope.parent is not None:
        return False
    maker = node if node.op_type == "Transpose" else scope.own_producer(node.input[0])
    if maker is None or not scope.is_output(node.output[0]):
        return False
    return is_of_data(scope, maker) if node.op_type == "Gather" else maker.op_type == "Transpose"


def is_result_of_whole_numbers(scope: Scope, node: NodeProto) -> bool:
    """Whether a Cast makes 64-bit integers of other numbers that are computed, or of no integers, as a result."""
    before, behind = (scope.type_of(name) for name in (node.input[0], node.output[0]))
    if scope.parent is not None or not scope.is_output(node.output[0]) or before is None or behind is None:
        return False
    is_made = elements_of(before.elem_type) == "float" or before.elem_type == TensorProto.BOOL
    is_computed = before.elem_type != behind.elem_type and node.input[0] not in scope.inputs
    return behind.elem_type == TensorProto.INT64 and (is_made or is_computed)


def _is_of_lengths(scope: Scope, node: NodeProto) -> bool:
    return has_chain(scope, node, open_lengths=True)


def _given_on(scope: Scope, reader: NodeProto, name: str) -> list[str]:
    """Return what of a node's results are such integers again."""
    if reader.op_type in _NEW or (reader.op_type in _PICKING and reader.input[0] != name):
        return []
    types = {each: scope.type_of(each) for each in reader.output if each}
    return [each for each, known in types.items() if known is not None and known.elem_type == TensorProto.INT64]
