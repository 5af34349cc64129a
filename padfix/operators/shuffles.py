"""Channels that change places between groups, or with rows and columns: runtimes know it by three nodes in a row."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope, normal_domain
from padfix.operators.fused_layers import is_product

_GROUPS_EXCHANGED = [0, 2, 1, 3, 4]
_SPREAD, _GATHERED = [0, 1, 4, 2, 5, 3], [0, 1, 3, 5, 2, 4]
_AXES_OF_PIXELS = 6
_CHANNELS = 1
_SPLIT_ROWS = 5


def shuffles_channels(scope: Scope, node: NodeProto) -> bool:
    """Whether a Reshape splits the channels of images into groups that a Transpose and a Reshape bring back alike."""
    exchange = only_reader(scope, node, "Transpose")
    if exchange is None or attributes.integers(exchange, "perm") != _GROUPS_EXCHANGED:
        return False
    back = only_reader(scope, exchange, "Reshape")
    if back is None:
        return False
    before, split, after = (_lengths(scope, name) for name in (node.input[0], node.output[0], back.output[0]))
    spatial = before[_CHANNELS + 1 :]
    return bool(spatial) and None not in spatial and split[_CHANNELS + 2 :] == spatial and after[1:] == before[1:]


def shuffles_pixels(scope: Scope, node: NodeProto) -> bool:
    """Whether a Reshape, or the Transpose behind it, spreads channels over as many rows as columns, or the way back.

    So PyTorch has it: the channels of one place lie side by side.
    """
    split = scope.own_producer(node.input[0]) if node.op_type == "Transpose" else node
    exchange = None if split is None or split.op_type != "Reshape" else only_reader(scope, split, "Transpose")
    back = None if exchange is None else only_reader(scope, exchange, "Reshape")
    if split is None or exchange is None or back is None:
        return False
    perm, lengths = attributes.integers(exchange, "perm"), _lengths(scope, split.output[0])
    before, after = _lengths(scope, split.input[0]), _lengths(scope, back.output[0])
    if len(lengths) != _AXES_OF_PIXELS or {len(before), len(after)} != {4} or before[0] != after[0]:
        return False
    if perm == _SPREAD:
        return lengths[2] == lengths[3] and [*before[2:], after[_CHANNELS]] == [*lengths[4:], lengths[_CHANNELS]]
    if perm == _GATHERED:
        return lengths[3] == lengths[5] and [before[_CHANNELS], *after[2:]] == [lengths[_CHANNELS], *lengths[2:5:2]]
    return False


def only_reader(scope: Scope, node: NodeProto, op_type: str) -> NodeProto | None:
    """Return what alone reads what a node gives, as its data, if it is of a type; no output of the model is read so."""
    readers = [] if scope.is_output(node.output[0]) else scope.consumers(node.output[0])
    if len(readers) != 1 or readers[0].op_type != op_type or readers[0].input[0] != node.output[0]:
        return None
    return None if normal_domain(readers[0].domain) else readers[0]


def _lengths(scope: Scope, name: str) -> tuple[Dimension, ...]:
    known = scope.type_of(name)
    return () if known is None or known.shape is None else tuple(known.shape)


def turns_split_rows(scope: Scope, node: NodeProto) -> bool:
    """Whether a Transpose turns rows of a product that a Reshape splits, five axes and more of several elements.

    The columns stay whole, as where the windows of an image are put together again behind a dense layer.
    """
    split = scope.own_producer(node.input[0])
    if split is None or split.op_type != "Reshape" or normal_domain(split.domain):
        return False
    before, after = _lengths(scope, split.input[0]), _lengths(scope, split.output[0])
    is_whole = bool(before) and bool(after) and before[-1] == after[-1]
    dense = scope.own_producer(split.input[0])
    is_dense = is_product(scope, split.input[0]) or (dense is not None and dense.op_type == "Gemm")
    return is_whole and is_dense and sum(each != 1 for each in after) >= _SPLIT_ROWS
