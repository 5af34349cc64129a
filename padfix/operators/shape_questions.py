"""Questions about shapes of which a part may not be known."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnx import NodeProto

from padfix.graph.scopes import Scope
from padfix.operators.lists import depends_on_data


def is_by_a_number(scope: Scope, node: NodeProto) -> bool:
    """Whether one of the matrices that a node multiplies has one element, and depends on no data."""
    return any(is_a_number(scope, name) for name in node.input)


def is_a_number(scope: Scope, name: str) -> bool:
    """Whether a value has one element and depends on no data: runtimes work it out, and take it for a number."""
    known = scope.type_of(name)
    is_one = known is not None and known.lengths is not None and math.prod(known.lengths) == 1
    return is_one and not depends_on_data(scope, name)


def any_of(known: Sequence[bool | None]) -> bool | None:
    """Return whether one is true, None where that depends on one that is not known."""
    if any(known):
        return True
    return None if None in known else False


def is_spread(scope: Scope, node: NodeProto, position: int) -> bool | None:
    """Return whether an input takes a shape of the result that is not its own; None where that is not known."""
    given, gives = scope.type_of(node.input[position]), scope.type_of(node.output[0])
    if given is None or gives is None or given.shape is None or gives.shape is None:
        return None
    if len(given.shape) != len(gives.shape):
        return True
    return any_of([None if None in pair else pair[0] != pair[1] for pair in zip(given.shape, gives.shape, strict=True)])
