"""What an Identity or a Dropout is like: operators that give what they take, outside of training."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph.scopes import Scope
from padfix.targets.fact import Traits

PASSING = ("Dropout", "Identity")


def passing_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return whether it takes an input of the model, and gives as a result what an input or another result is."""
    given, own = node.output[0], _origin(scope, node.output[0])
    others = [name for name in scope.outputs if name != given and _origin(scope, name) == own]
    is_result = scope.parent is None and given in scope.outputs
    return {
        "of-input": scope.parent is None and node.input[0] in scope.inputs,
        "gives-the-same": is_result and (bool(others) or own in scope.inputs),
    }


def _origin(scope: Scope, name: str) -> str:
    """Return the tensor that a chain of such operators began with."""
    producer = scope.producer(name) if scope.defines(name) else None
    while producer is not None and producer.op_type in PASSING:
        name = producer.input[0]
        producer = scope.producer(name) if scope.defines(name) else None
    return name
