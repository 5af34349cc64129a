"""In which steps bytes are made and taken for numbers, before and behind what moves them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from onnx import NodeProto

from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope
from padfix.operators.bytes_among_floats import moved_from, moved_to
from padfix.operators.numbers import bytes_of
from padfix.operators.padded_bytes import PADDING, pads_line_of_bytes
from padfix.targets.traits import Traits

OPERATOR_OF_BYTES = "QLinearConv"


def is_of_quantizer(scope: Scope, node: NodeProto) -> bool:
    """Whether a node reads bytes that a QuantizeLinear or QLinearConv in the model makes, moved at most."""
    makers = [each for name in filter(None, node.input) for each in _byte_makers(scope, name)]
    return any(each is not None and is_quantized(scope, each.output[0]) for each in makers)


def byte_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of which bytes the data of a node are, and whether the model makes them."""
    kind = bytes_of(scope, "".join(node.input[1:2] if node.op_type == "Where" else node.input[:1]))
    found: Traits = {"bytes": kind, "of-quantizer": kind != "none" and is_of_quantizer(scope, node)}
    return {**found, "pads-line-of-bytes": pads_line_of_bytes(scope, node)} if node.op_type in PADDING else found


def _byte_makers(scope: Scope, name: str) -> list[NodeProto | None]:
    """Return what gives bytes, and what moves them before others do; None for what is given."""
    return [scope.own_producer(each) for each in reached([name], partial(moved_from, scope))]


def steps_beside(scope: Scope, node: NodeProto, places: Iterable[int]) -> tuple[float, int] | None:
    """Return the scale and zero point that bytes have before or behind what moves them, 1 and 0 where none has any.

    None where they differ, or are lists, or not known.
    """
    makers = [each for place in places for each in _byte_makers(scope, node.input[place])]
    results = reached([node.output[0]], partial(moved_to, scope))
    takers = [each for name in results for each in scope.consumers(name)]
    beside = [
        *(each.input[1:] for each in makers if each is not None and each.op_type == "QuantizeLinear"),
        *(each.input[6:8] for each in makers if each is not None and each.op_type == OPERATOR_OF_BYTES),
        *(each.input[1:] for each in takers if each.op_type == "DequantizeLinear"),
        *(each.input[1:3] for each in takers if each.op_type == OPERATOR_OF_BYTES),
    ]
    found = set[tuple[float, int]]()
    for names in beside:
        scale, zero = scope.constant(names[0]), scope.constant(names[1]) if names[1:] and names[1] else np.zeros(1)
        if scale is None or zero is None or scale.size != 1 or zero.size != 1 or scale.dtype != np.float32:
            return None
        found.add((float(scale.item()), int(zero.item())))
    return None if len(found) > 1 else next(iter(found), (1.0, 0))


def is_quantized(scope: Scope, name: str) -> bool:
    """Whether a QuantizeLinear or QLinearConv gives these bytes."""
    producer = scope.own_producer(name)
    return producer is not None and producer.op_type in ("QuantizeLinear", OPERATOR_OF_BYTES)
