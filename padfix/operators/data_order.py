"""Where the order counts in which a runtime's convolutions and pools keep data in memory: channels in blocks."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.table import PADDED

CHANNELS = 1
"""The axis of channels."""

_NEAR = 64  # tensors that are looked at before data counts as far from any window

_REORDERING = frozenset(("Flatten", "Gather", "Gemm", "LayerNormalization", "MatMul", "Shape", "Split", "Transpose"))


def copies_channels(scope: Scope, node: NodeProto) -> bool:
    """Whether a Reshape takes over the number of channels of what comes from a window, but not the length behind it."""
    shape = scope.constant(node.input[1]) if len(node.input) > 1 else None
    if shape is None or len(shape) < CHANNELS + 2 or attributes.integer(node, "allowzero", 0):
        return False  # what is computed are lengths
    return bool(shape[CHANNELS] == 0 != shape[CHANNELS + 1]) and is_behind_window(scope, node.input[0])


def number_of_channels(scope: Scope, name: str) -> int | None:
    """Return how many channels data has, None where that is not known, or it has none."""
    known = scope.type_of(name)
    length = known.shape[CHANNELS] if known is not None and known.shape and len(known.shape) > CHANNELS else None
    return length if isinstance(length, int) else None


def is_behind_window(scope: Scope, name: str) -> bool:
    """Whether data may be in the order in which a window gives it, as what lies between may keep it."""
    seen, left = set[str](), [name]
    while left and len(seen) < _NEAR:
        each = left.pop()
        node = scope.producer(each) if each not in seen and scope.defines(each) else None
        seen.add(each)
        if node is None or node.op_type in _REORDERING:
            continue
        if (normal_domain(node.domain), node.op_type) in PADDED:
            return True
        left += [read for read in node.input if read]
    return False
