"""Shapes that leave one length open, and may hold a zero beside it: an empty batch.

``tf.reshape(x, [tf.shape(x)[0], -1, 48])`` is how networks write it. TensorFlow leaves the zeros out on both sides when
it works out what the open length is. To ONNX a zero beside an open length has no meaning, and ONNX Runtime refuses it.
So the open length is written as what TensorFlow makes of it: a number, where the other open lengths are the data's own,
and else a quotient of products. Nor does a zero that is computed mean the length that the data has at its place.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from onnx import NodeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.graph.fragment_builder import FragmentBuilder, Value
from padfix.graph.scopes import DEFAULT_DOMAIN, Dimension, Scope, normal_domain
from padfix.graph.splice import apply_splices, drop_unread, plan_splice

_OLDEST_OPSET = 14
"""Before it, a zero in a shape always means the length that the data has there."""


_Parts = Sequence[str | int]
"""What a shape is put together from: names of values, and numbers."""


def has_some(scope: Scope) -> bool:
    """Whether ``scope`` has a Reshape to a shape that is computed."""
    return any(_is_computed(scope, node) for node in scope.nodes)


def settle(scope: Scope) -> None:
    """Write the open length of such Reshapes, in place, and what a zero means; the scope's types are known."""
    unread: set[str] = set()
    for index, node in enumerate(scope.nodes):
        if not _is_computed(scope, node):
            continue
        parts = _parts(scope, node)
        if parts is None:
            continue
        if parts.count(-1) == 1 and 0 not in parts:
            builder = FragmentBuilder(scope.opset)
            shape = _shape(builder, scope, node, parts)
            data = builder.input(node.input[0])
            builder.output(node.output[0], builder.op("Reshape", [data, shape], {"allowzero": 1}))
            plan_splice(scope, index, builder.build())
            unread.update(_chain(scope, node.input[1]))
        elif not _keeps_zeros(scope, node, parts):
            node.attribute.append(helper.make_attribute("allowzero", 1))
    if unread:
        apply_splices(scope)
        drop_unread(scope, unread)


def _is_computed(scope: Scope, node: NodeProto) -> bool:
    is_reshape = node.op_type == "Reshape" and normal_domain(node.domain) == DEFAULT_DOMAIN
    return (
        is_reshape
        and scope.opset >= _OLDEST_OPSET
        and attributes.find(node, "allowzero") is None
        and scope.constant(node.input[1]) is None
    )


def _keeps_zeros(scope: Scope, node: NodeProto, parts: _Parts) -> bool:
    """Whether each length that may be zero is the data's at the same place, or nothing is known of them."""
    data, result = (scope.type_of(name) for name in (node.input[0], node.output[0]))
    if {0, -1} & set(parts) or data is None or data.shape is None or result is None:
        return True
    own = dict(enumerate(data.shape))
    return all(
        isinstance(length, int) or (length is not None and own.get(place) == length)
        for place, length in enumerate(result.shape or ())
    )


def _parts(scope: Scope, node: NodeProto) -> _Parts | None:
    """Return what the shape of a Reshape is put together from; None where it is not."""
    *_, first = _chain(scope, node.input[1])
    joined = scope.producer(first)
    if joined is None or joined.op_type != "Concat":
        return [first] if _is_of_a_shape(scope, first) else None
    parts: list[str | int] = []
    for name in joined.input:
        values = scope.constant(name)
        parts += [name] if values is None else [int(value) for value in values.reshape(-1)]
    return parts


def _is_of_a_shape(scope: Scope, name: str) -> bool:
    """Whether a list holds lengths of a tensor, some of them or in another order, and nothing else."""
    node = scope.producer(name)
    while node is not None and node.op_type in ("Gather", "Slice", "Cast", "Identity"):
        node = scope.producer(node.input[0])
    return node is not None and node.op_type == "Shape"


def _chain(scope: Scope, name: str) -> list[str]:
    """Return ``name`` and what it is but for its type."""
    names = [name]
    while (node := scope.producer(names[-1])) is not None and node.op_type in ("Cast", "Identity"):
        names.append(node.input[0])
    return names


def _known_length(scope: Scope, node: NodeProto, parts: _Parts) -> int | None:
    """Return the open length where all the others that are computed are the data's own."""
    data, result = (scope.type_of(name) for name in (node.input[0], node.output[0]))
    if data is None or data.shape is None or result is None or len(result.shape or ()) != len(parts):
        return None  # a part may be several lengths
    rest: Counter[Dimension] = Counter(data.shape)
    known = 1
    for part, length in zip(parts, result.shape or (), strict=True):
        if isinstance(part, int):
            known *= abs(part)
        elif isinstance(length, int):
            known *= length
        elif length is None or not rest[length]:
            return None
        else:
            rest[length] -= 1
    left = list(rest.elements())
    total = math.prod(length for length in left if isinstance(length, int))
    return total // known if all(isinstance(length, int) for length in left) and known else None


def _shape(builder: FragmentBuilder, scope: Scope, node: NodeProto, parts: _Parts) -> Value:
    """Return the shape with the open length in it."""
    length = _known_length(scope, node, parts)
    given = [_wide(builder, scope, part) for part in parts if isinstance(part, str)]
    if length is None:
        numbers = builder.integers([abs(part) for part in parts if isinstance(part, int)])
        one = builder.integers([1])
        others = builder.op("Concat", given, {"axis": 0})
        least = builder.op("ReduceMin", [others], {"keepdims": 1})
        is_empty = builder.op("Equal", [least, builder.integers([0])])
        floor = builder.op("Cast", [is_empty], {"to": TensorProto.INT64})
        size = builder.op("Shape", [builder.input(node.input[0])])
        total = builder.op("ReduceProd", [builder.op("Max", [size, floor])], {"keepdims": 1})
        known = builder.op("Concat", [builder.op("Max", [others, one]), numbers], {"axis": 0})
        left = builder.op("Div", [total, builder.op("ReduceProd", [known], {"keepdims": 1})])
    else:
        left = builder.integers([length])
    waiting = iter(given)
    lengths = [
        next(waiting) if isinstance(part, str) else left if part == -1 else builder.integers([part]) for part in parts
    ]
    return builder.op("Concat", lengths, {"axis": 0})


def _wide(builder: FragmentBuilder, scope: Scope, name: str) -> Value:
    known = scope.type_of(name)
    value = builder.input(name)
    if known is not None and known.elem_type == TensorProto.INT64:
        return value
    return builder.op("Cast", [value], {"to": TensorProto.INT64})
