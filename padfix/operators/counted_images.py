"""Whether a node computes with the number of images, which runtimes that take images one by one count as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import NodeProto

from padfix.graph.scopes import Scope, ValueType
from padfix.operators.constant_chains import chain_of, has_chain, values_of

_LONGEST = 64
"""Nodes of a chain that is worked out to see what it counts."""

_COUNTS = (5, 7)
_MOST_ASKED_FOR = 64
"""The most images that a chain is worked out for because it names them."""

_OPEN_LENGTH = 11
"""Lengths to work it out with where they are left open."""


def computes_with_count(scope: Scope, node: NodeProto, first: int = 0) -> bool:
    """Whether an input of a node, from the ``first`` on, is another number where there are more images.

    It depends on no data, but on the length of a first axis.
    """
    return scope.parent is None and any(_counts(scope, name) for name in node.input[first:] if name)


def _counts(scope: Scope, name: str) -> bool:
    producer = scope.own_producer(name) if scope.constant(name) is None else None
    chain = None if producer is None else chain_of(scope, producer, open_lengths=True)
    if chain is None or len(chain) > _LONGEST or not any(each.op_type in ("Shape", "Size") for each in chain):
        return False
    counts = (*_COUNTS, *_asked_for(scope, chain)) if not has_chain(scope, chain[-1]) else (None,)
    try:
        one, *found = (values_of(scope, chain, _with_images(scope, count))[name] for count in (1, *counts))
    except (KeyError, ValueError):
        return False
    return any(not np.array_equal(one, each) for each in found)


def _asked_for(scope: Scope, chain: Sequence[NodeProto]) -> list[int]:
    """Return the numbers in a chain that may be those of images, which it may compare with or take off."""
    held = (scope.constant(name) for node in chain for name in node.input if name)
    numbers = [value.item() for value in held if value is not None and value.size == 1 and value.dtype.kind in "iuf"]
    return sorted({int(number) + more for number in numbers for more in (0, 1) if 1 <= number < _MOST_ASKED_FOR})


def _with_images(scope: Scope, count: int | None) -> Callable[[str], ValueType | None]:
    """Return what tells types in which there are so many images, or as many as there are."""

    def type_of(name: str) -> ValueType | None:
        known = scope.type_of(name)
        if known is None or not known.shape or count is None:
            return known
        return ValueType(
            known.elem_type, (count, *(each if isinstance(each, int) else _OPEN_LENGTH for each in known.shape[1:]))
        )

    return type_of
