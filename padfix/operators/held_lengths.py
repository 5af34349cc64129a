"""What an importer holds in place of lengths as it reads a model, and of what is made of them.

One that works lengths out keeps what a Shape gives as a list of its own, single lengths of that as numbers, and all
else as constants; what it can't work out it leaves to run time, with the lengths of what is laid out by it.
"""

from __future__ import annotations

from enum import Enum, auto

from onnx import NodeProto, TensorProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.constant_chains import STEERED, is_constant, is_of_data, readers_behind
from padfix.operators.elementwise import REDUCTIONS
from padfix.operators.lists import depends_on_data
from padfix.operators.reductions import reduced_axes

_OF_NUMBERS = ("Add", "Div", "Identity", "Mod", "Mul", "Neg", "Pow", "Sub")
"""What an importer computes with numbers."""

# fmt: off
_LATE = frozenset(
    {
        *REDUCTIONS, "Ceil", "Clip", "CumSum", "Elu", "Erf", "Expand", "Floor", "GatherElements", "HardSigmoid",
        "LeakyRelu", "Not", "Reciprocal", "Relu", "Round", "ScatterElements", "Sigmoid", "Sign", "Size", "Slice",
        "Softplus", "Split", "Sqrt", "Tanh", "Tile",
    }
)
# fmt: on
"""What is computed as the model runs, even of constants."""

_LISTING = ("Concat", "Identity", "Reshape", "Shape", "Unsqueeze", "Where")
"""What may give a list of lengths, where its inputs are such."""

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)


class _Kind(Enum):
    """What an importer holds in place of a value."""

    LIST = auto()
    NUMBER = auto()
    CONSTANT = auto()
    LATE = auto()


_Known = dict[str, _Kind]


def makes_lengths_late(scope: Scope, node: NodeProto) -> bool:
    """Whether lengths that are told of others are left to run time, or held as a number among tensors, for this node.

    That is a Slice of what is no Shape's list, a Gather of several lengths of one, a Gather of a number that is
    computed with as a tensor, and a product of lengths.
    """
    if node.op_type != "Gather" and node.op_type not in _LATE:
        return False
    if normal_domain(node.domain) or is_of_data(scope, node):
        return False
    known: _Known = {}
    if node.op_type != "Gather":
        return _given(scope, node, known) is _Kind.LATE and _tells_lengths(scope, node)
    if _kind(scope, node.input[0], known) is not _Kind.LIST:
        return False
    return _is_no_number(scope, node.output[0]) if _is_number(scope, node.input[1]) else _tells_lengths(scope, node)


def is_told_late(scope: Scope, node: NodeProto) -> bool:
    """Whether an importer leaves to run time what tells a node what it does: data, or lengths that are made late."""
    names = [node.input[place] for place in STEERED.get(node.op_type, ()) if place < len(node.input)]
    producers = {name: scope.own_producer(name) for name in names if name and not is_constant(scope, name)}
    known: _Known = {}
    return any(
        each is None or is_of_data(scope, each) or _kind(scope, name, known) is _Kind.LATE
        for name, each in producers.items()
    )


def reads_list_of_lengths(scope: Scope, node: NodeProto) -> bool:
    """Whether a node reads lengths as a Shape lists them, which some importers keep apart from tensors."""
    return any(name and is_list_of_lengths(scope, name) for name in node.input)


def is_list_of_lengths(scope: Scope, name: str) -> bool:
    """Whether a value is what a Shape gives, also with all its axes, chosen from, or joined with what is as well known.

    What is cut of it, or given another type or by places, is a tensor as any other.
    """
    node = scope.own_producer(name)
    if node is None or normal_domain(node.domain) or node.op_type not in _LISTING or is_constant(scope, name):
        return False
    is_told = node.op_type == "Shape" or not is_of_data(scope, node)
    return is_told and _kind(scope, name, {}) is _Kind.LIST


def _is_number(scope: Scope, name: str) -> bool:
    known = scope.type_of(name)
    return known is not None and known.rank == 0


def _is_no_number(scope: Scope, name: str) -> bool:
    """Whether something takes a number for a tensor: all but arithmetic with integers and data, and an axis for it."""
    seen, waiting = set[str](), [name]
    while waiting:
        each = waiting.pop()
        if scope.is_output(each):
            return True
        known = scope.type_of(each)
        is_float = known is not None and known.elem_type in _FLOATS
        for reader in scope.consumers(each):
            found = _still_a_number(scope, reader, each, is_float=is_float)
            if found is None:
                return True
            if found and reader.output[0] not in seen:
                seen.add(reader.output[0])
                waiting.append(reader.output[0])
    return False


def _still_a_number(scope: Scope, reader: NodeProto, name: str, *, is_float: bool) -> bool | None:
    """Return whether what reads a number gives one again; None where it would have a tensor in its place."""
    others = [each for each in reader.input if each and each != name]
    if normal_domain(reader.domain):
        return None
    if reader.op_type == "Cast":
        to = attributes.integer(reader, "to", 0)
        return True if to == TensorProto.INT64 or (to in _FLOATS and not is_float) else None
    if reader.op_type == "Unsqueeze":
        return False if list(reduced_axes(scope, reader) or ()) == [0] and not is_float else None
    if reader.op_type not in _OF_NUMBERS:
        return None
    if any(depends_on_data(scope, each) for each in others):
        return False
    return True if not is_float and all(_is_number(scope, each) for each in others) else None


def _tells_lengths(scope: Scope, node: NodeProto) -> bool:
    """Whether what is made of a node's result and of other lengths tells something what it does."""
    return any(
        reader.input[place] == name
        for reader, name in readers_behind(scope, node)
        if not normal_domain(reader.domain)
        for place in STEERED.get(reader.op_type, ())
        if place < len(reader.input)
    )


def _kind(scope: Scope, name: str, known: _Known) -> _Kind:
    """Return what an importer holds in place of a value that is computed of lengths and constants alone."""
    waiting = [name]
    while waiting:
        each = waiting[-1]
        node = scope.own_producer(each)
        if is_constant(scope, each) or node is None or normal_domain(node.domain):
            known[each] = _Kind.CONSTANT
        ahead = [] if each in known or node is None or node.op_type == "Shape" else list(filter(None, node.input))
        if missing := [one for one in ahead if one not in known]:
            waiting += missing
            continue
        waiting.pop()
        if node is not None:
            known.setdefault(each, _of_inputs(scope, node, [known[one] for one in ahead]))
    return known[name]


def _given(scope: Scope, node: NodeProto, known: _Known) -> _Kind:
    """Return what an importer holds in place of what a node gives."""
    return _of_inputs(scope, node, [_kind(scope, name, known) for name in node.input if name])


def _of_inputs(scope: Scope, node: NodeProto, read: list[_Kind]) -> _Kind:
    """Return what an importer holds in place of what a node gives that reads this."""
    if node.op_type == "Shape":
        return _Kind.LIST
    first = read[0] if read else _Kind.CONSTANT
    if node.op_type == "Slice" and first is _Kind.LIST:
        return _Kind.CONSTANT
    if node.op_type in _LATE or _Kind.LATE in read:
        return _Kind.LATE
    match node.op_type:
        case "Gather" if first is _Kind.LIST:
            return _Kind.NUMBER if _is_number(scope, node.input[1]) else _Kind.LATE
        case "Cast":
            return _Kind.CONSTANT if first is _Kind.LIST else first
        case "Squeeze":
            return _Kind.NUMBER if first is _Kind.LIST else first
        case "Unsqueeze":
            return _Kind.LIST if first is _Kind.NUMBER else first
        case "Reshape" if first is _Kind.LIST:
            shape = scope.constant(node.input[1]) if len(node.input) > 1 else None
            return _Kind.LIST if shape is not None and shape.tolist() == [-1] else _Kind.LATE
        case "Identity" | "Reshape":
            return first
        case "Concat":
            return _Kind.LIST if all(map(_is_list, [scope] * len(node.input), node.input)) else _Kind.CONSTANT
        case "Where":
            return _Kind.LIST if _Kind.LIST in read else _Kind.CONSTANT
        case _:
            return _Kind.NUMBER if _Kind.NUMBER in read else _Kind.CONSTANT


def _is_list(scope: Scope, name: str) -> bool:
    """Whether a value is a list of integers of 64 bits."""
    known = scope.type_of(name)
    return known is not None and known.elem_type == TensorProto.INT64 and known.rank == 1
