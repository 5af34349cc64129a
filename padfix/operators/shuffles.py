"""Channels that change places between groups, as ShuffleNet has them: runtimes know it by three nodes in a row."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope, normal_domain

_GROUPS_EXCHANGED = [0, 2, 1, 3, 4]
_CHANNELS = 1


def shuffles_channels(scope: Scope, node: NodeProto) -> bool:
    """Whether a Reshape splits the channels of images into groups that a Transpose and a Reshape bring back alike."""
    exchange = _only_reader(scope, node, "Transpose")
    if exchange is None or attributes.integers(exchange, "perm") != _GROUPS_EXCHANGED:
        return False
    back = _only_reader(scope, exchange, "Reshape")
    if back is None:
        return False
    before, split, after = (_lengths(scope, name) for name in (node.input[0], node.output[0], back.output[0]))
    spatial = before[_CHANNELS + 1 :]
    return bool(spatial) and None not in spatial and split[_CHANNELS + 2 :] == spatial and after[1:] == before[1:]


def _only_reader(scope: Scope, node: NodeProto, op_type: str) -> NodeProto | None:
    readers = scope.consumers(node.output[0])
    if len(readers) != 1 or scope.is_output(node.output[0]) or readers[0].op_type != op_type:
        return None
    return None if normal_domain(readers[0].domain) else readers[0]


def _lengths(scope: Scope, name: str) -> tuple[Dimension, ...]:
    known = scope.type_of(name)
    return () if known is None or known.shape is None else tuple(known.shape)
