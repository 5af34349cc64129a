"""Inputs of a model that are multiplied by a number, and then laid out with other axes."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.elementwise import LAYING_OUT, RESHAPING

_AXES_OF_VOLUMES = 5


def scales_a_volume(scope: Scope, node: NodeProto) -> bool:
    """Whether a product of an input of the model and a number, in this order, gets or loses five axes behind it.

    Transposes may stand between.
    """
    if node.op_type != "Mul" or node.input[0] not in scope.root.inputs or scope.constant(node.input[0]) is not None:
        return False
    number = scope.constant(node.input[1])
    if number is None or number.size != 1:
        return False
    ranks: list[int | None] = []

    def behind(name: str) -> list[str]:
        readers = [each for each in scope.consumers(name) if not normal_domain(each.domain)]
        for reader in readers:
            if reader.op_type in RESHAPING:
                ranks.extend(_rank(scope, each) for each in (name, reader.output[0]))
        return [reader.output[0] for reader in readers if reader.op_type in LAYING_OUT]

    reached([node.output[0]], behind)
    return _AXES_OF_VOLUMES in ranks


def _rank(scope: Scope, name: str) -> int | None:
    known = scope.type_of(name)
    return None if known is None else known.rank
