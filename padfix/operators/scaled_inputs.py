"""What is multiplied by a number, and then laid out with other axes or added to another number."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.elementwise import LAYING_OUT, RESHAPING
from padfix.operators.shape_questions import rank_of

_AXES_OF_VOLUMES = 5


def scales_a_volume(scope: Scope, node: NodeProto) -> bool:
    """Whether a product of an input of the model and a number, in this order, gets or loses five axes behind it.

    Transposes may stand between.
    """
    if node.op_type != "Mul" or node.input[0] not in scope.root.inputs or scope.constant(node.input[0]) is not None:
        return False
    if not _is_number(scope, node.input[1]):
        return False

    def laid_out(name: str) -> list[str]:
        readers = [each for each in scope.consumers(name) if not normal_domain(each.domain)]
        return [each.output[0] for each in readers if each.op_type in LAYING_OUT]

    names = reached([node.output[0]], laid_out)
    makers = [scope.own_producer(name) for name in names]
    reshaping = [each for each in makers if each is not None and each.op_type in RESHAPING]
    return any(
        rank_of(scope, name) == _AXES_OF_VOLUMES for each in reshaping for name in (each.input[0], each.output[0])
    )


def shifts_scaled_line(scope: Scope, node: NodeProto) -> bool:
    """Whether an Add of a number, behind, is of a product with one, behind, of five axes, the fourth of one element.

    What lays elements in a row may stand between.
    """
    name = node.input[0]
    maker = scope.own_producer(name) if _is_number(scope, node.input[-1]) else None
    while maker is not None and maker.op_type in RESHAPING:
        name = maker.input[0]
        maker = scope.own_producer(name)
    if maker is None or maker.op_type != "Mul" or not _is_number(scope, maker.input[1]):
        return False
    known = scope.type_of(name)
    shape = known.shape if known is not None else None
    return shape is not None and len(shape) == _AXES_OF_VOLUMES and not (isinstance(shape[3], int) and shape[3] != 1)


def _is_number(scope: Scope, name: str) -> bool:
    number = scope.constant(name)
    return number is not None and number.size == 1
