"""Lists (data of one axis), which runtimes whose arrays have two axes at least keep as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import NodeProto

from padfix.graph.scopes import Scope
from padfix.operators.constant_chains import COMPUTED, LONGEST_CHAIN, has_chain
from padfix.operators.elementwise import ELEMENTWISE, REDUCTIONS

NUMBERS: Mapping[str, tuple[int, ...]] = {"CumSum": (1,), "Pad": (2,), "Range": (0, 1, 2), "Trilu": (1,)}
"""By the type of an operator: the positions of inputs that are numbers without an axis, if one goes by the letter."""

_MOST_BETWEEN = 8
"""Operators on lists that are looked through, as far as where one comes from."""


def lists_for_numbers(scope: Scope, node: NodeProto) -> list[int]:
    """Return the positions of inputs that are lists of one, where numbers are meant.

    So is what is added to the elements of a product with a matrix.
    """
    if node.op_type in ("Add", "Gemm"):
        return _numbers_added(scope, node)
    places = [place for place in NUMBERS.get(node.op_type, ()) if place < len(node.input) and node.input[place]]
    types = {place: scope.type_of(node.input[place]) for place in places}
    return [place for place, known in types.items() if known is not None and known.rank]


def _numbers_added(scope: Scope, node: NodeProto) -> list[int]:
    """Return which inputs of a Gemm, or of an Add behind one or a product with a matrix, are constants of one."""
    if node.op_type == "Gemm":
        places = [2] if len(node.input) > 2 else []
    else:
        makers = [scope.own_producer(name) for name in node.input]
        factors = [None if each is None else scope.type_of(each.input[1]) for each in makers if _multiplies(each)]
        is_product = len(factors) == 1 and factors[0] is not None and factors[0].rank == 2
        places = [place for place, each in enumerate(makers) if not _multiplies(each)] if is_product else []
    values = {place: scope.constant(node.input[place]) for place in places if node.input[place]}
    return [place for place, value in values.items() if value is not None and value.size == 1 and 0 < value.ndim <= 2]


def _multiplies(node: NodeProto | None) -> bool:
    return node is not None and node.op_type in ("Gemm", "MatMul") and len(node.input) > 1


def is_computed_list(scope: Scope, name: str) -> bool:
    """Whether data, not a constant, is known to have one axis, which is not known to have one element."""
    known = scope.type_of(name) if name else None
    return known is not None and known.shape != (1,) and is_line(scope, name)


def is_line(scope: Scope, name: str) -> bool:
    """Whether data, not a constant, is known to have one axis, of one element or more."""
    known = scope.type_of(name) if name else None
    return known is not None and known.rank == 1 and depends_on_data(scope, name)


# fmt: off
ON_ONE = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Elu", "Erf",
    "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu",
    "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh",
    "ThresholdedRelu",
)
# fmt: on
"""Operators that compute each element from the one at its place."""

SOFTENING = ("LogSoftmax", "Softmax")
"""Operators that compute each element from all along their axis."""

COMPARING = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")

JOINING_TRUTHS = ("And", "Or", "Xor")


def joins_a_list(scope: Scope, node: NodeProto) -> bool:
    """Whether such a list meets something, element by element, that is no list of a caller as it is one itself."""
    lists = [is_computed_list(scope, name) for name in node.input]
    others = [scope.type_of(name) for name, is_list in zip(node.input, lists, strict=True) if not is_list]
    if not any(lists):
        return False
    if node.op_type in COMPARING and others:
        return True
    is_spread = any(each is None or each.shape is None or set(each.shape) - {1} for each in others)
    return (
        is_spread
        or (bool(others) and _counts_axes(scope, node.output[0]))
        or any(is_list and _is_made(scope, name) for name, is_list in zip(node.input, lists, strict=True))
    )


def _counts_axes(scope: Scope, name: str) -> bool:
    """Whether an axis is added to a list, or to what is computed of each of its elements or of all, or it is measured.

    To what is computed of all a Reshape adds one as an Unsqueeze does.
    """
    names, reduced = [name], False
    for _ in range(_MOST_BETWEEN):
        readers = [each for name in names for each in scope.consumers(name)]
        if any(each.op_type in ("Shape", "Unsqueeze") or (reduced and _gives_axes(scope, each)) for each in readers):
            return True
        reduced = reduced or any(each.op_type in REDUCTIONS for each in readers)
        names = [each.output[0] for each in readers if each.op_type in (*ELEMENTWISE, *ON_ONE, *REDUCTIONS)]
    return False


def _gives_axes(scope: Scope, node: NodeProto) -> bool:
    known = scope.type_of(node.output[0]) if node.op_type == "Reshape" else None
    return known is not None and known.rank != 1


def joins_made_lists(scope: Scope, node: NodeProto) -> bool:
    """Whether a node reads lists of data of which some are made of what is none, and some are not."""
    data = [name for name in node.input if depends_on_data(scope, name)]
    return len({is_computed_list(scope, name) and _is_made(scope, name) for name in data}) > 1


def is_of_made_line(scope: Scope, node: NodeProto) -> bool:
    """Whether a node reads a list, be it of one element, that is made of what is none."""
    return is_line(scope, node.input[0]) and _made_of(scope, node.input[0], is_line) is not None


def is_of_made_number(scope: Scope, node: NodeProto) -> bool:
    """Whether a node reads data without an axis that is no number of a caller, nor computed of one by itself."""
    name = node.input[0]
    known = scope.type_of(name)
    is_number = known is not None and known.shape == () and depends_on_data(scope, name)
    return is_number and scope.producer(name) is not None and not is_given_number(scope, name, by_constants=True)


def _is_made(scope: Scope, name: str) -> bool:
    return _made_of(scope, name) is not None


def _made_of(scope: Scope, name: str, is_list: Callable[[Scope, str], bool] = is_computed_list) -> list[str] | None:
    """Return the data of which a list is made, a few operators before, by a reduction, a Reshape or a Gather.

    None where it is made of lists of the model's inputs alone.
    """
    producer = scope.producer(name)
    before: list[str] = []
    for _ in range(_MOST_BETWEEN):
        if producer is None:
            return None
        before = [each for each in producer.input if each and depends_on_data(scope, each)]
        if producer.op_type in ("Gather", "Reshape"):
            break  # they give the axes of indices, or of a shape, and a list of another has that of its column no more
        if not all(is_list(scope, each) for each in before):
            break
        producer = scope.producer(before[0]) if before else None
    return before


def appends_to_input(scope: Scope, node: NodeProto) -> bool:
    """Whether a node reads the model's only input, once, which nothing else reads, and beside it constants alone."""
    data = [name for name in node.input if depends_on_data(scope, name)]
    if len(data) != 1 or scope.parent is not None:
        return False
    given = [name for name in scope.inputs if not scope.is_initializer(name)]
    return given == data and len(scope.consumers(data[0])) == 1 and not scope.is_output(data[0])


def is_given_number(scope: Scope, name: str, *, by_constants: bool) -> bool:
    """Whether a value has no axes, and is an input of the model or computed of one element by element.

    ``by_constants`` tells whether constants may be among what computes it.
    """
    known = scope.type_of(name)
    while known is not None and known.shape == () and scope.parent is None:
        producer = scope.own_producer(name)
        if producer is None:
            return name in scope.inputs and scope.constant(name) is None
        read = [each for each in producer.input if each and depends_on_data(scope, each)]
        is_alone = by_constants or len(list(filter(None, producer.input))) == 1
        if producer.op_type not in ELEMENTWISE or len(read) != 1 or not is_alone:
            return False
        name, known = read[0], scope.type_of(read[0])
    return False


def depends_on_data(scope: Scope, name: str) -> bool:
    """Whether a tensor is, or is computed from, more than constants and lengths."""
    owner = scope.owner(name)
    if owner is None or owner.is_initializer(name):
        return False
    producer = scope.producer(name)
    if producer is None:
        return True
    if producer.op_type == "Constant" or has_chain(owner, producer, open_lengths=True):
        return False
    return not _is_of_defaults(owner, producer)


def _is_of_defaults(scope: Scope, node: NodeProto) -> bool:
    """Whether a node computes with constants alone, among them defaults of inputs, which a caller could replace."""
    if not any(scope.is_initializer(name) and not scope.is_fixed(name) for name in scope.inputs):
        return False
    found, waiting = set[int](), [node]
    while waiting:
        each = waiting.pop()
        if id(each) in found:
            continue
        found.add(id(each))
        if (each.op_type != "Constant" and each.op_type not in COMPUTED) or len(found) > LONGEST_CHAIN:
            return False
        for name in filter(None, each.input):
            computer = scope.own_producer(name)
            if computer is not None:
                waiting.append(computer)
            elif not scope.is_initializer(name):
                return False
    return True
