"""Operators that give what they take: an Identity, or a product with 1, a sum with 0, a Pad of nothing and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, ValueType, normal_domain
from padfix.operators.constant_chains import is_constant, worked_out
from padfix.operators.constant_pad import given_pads
from padfix.operators.elementwise import RESHAPING
from padfix.operators.reading import read
from padfix.operators.resample import Resample
from padfix.operators.slices import slice_amounts, takes_all
from padfix.targets.traits import Traits

PASSING = ("Dropout", "Identity")

_ARITHMETIC = ("Add", "Div", "Max", "Min", "Mul", "Sub")
"""Operators that compute with both of what they take."""

_MODE = 2
"""The input of a Dropout that tells whether it trains."""


def passing_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return whether an Identity or a Dropout takes an input of the model, gives a result, or is told if it trains."""
    is_inner = scope.parent is not None
    return {
        "training-given": node.op_type == "Dropout" and any(node.input[_MODE:]),
        "of-input": not is_inner and node.input[0] in scope.inputs,
        "as-result": not is_inner and scope.is_output(node.output[0]),
    }


def same_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return whether a node gives what there is already, or an input that was only laid out otherwise in between."""
    return {"gives-the-same": gives_the_same(scope, node), "laid-back": _is_laid_back(scope, node)}


def _is_laid_back(scope: Scope, node: NodeProto) -> bool:
    """Whether a result of the model is an input behind a Reshape or several, the last to the lengths that it had."""
    given = node.output[0]
    if scope.parent is not None or given not in scope.outputs or node.op_type not in RESHAPING:
        return False
    name = _origin(scope, given, laid_out=True)
    before, behind = scope.type_of(name), scope.type_of(given)
    shape = None if before is None else before.shape
    return name in scope.inputs and shape is not None and behind is not None and shape == behind.shape


def gives_the_same(scope: Scope, node: NodeProto) -> bool:
    """Whether a node gives as a result of the model what an input, a constant or another result is."""
    given = node.output[0]
    if scope.parent is not None or given not in scope.outputs or not passed_on(scope, node):
        return False
    own = _origin(scope, given)
    is_another = any(name != given and _origin(scope, name) == own for name in scope.outputs)
    return is_another or own in scope.inputs or scope.constant(own) is not None


def passed_on(scope: Scope, node: NodeProto) -> str:
    """Return which tensor a node gives as it is; nothing where it computes something."""
    read = _READ.get(node.op_type) if not normal_domain(node.domain) else None
    return "" if read is None else read(scope, node)


def _origin(scope: Scope, name: str, *, laid_out: bool = False) -> str:
    """Return the tensor that a chain of such operators, or of such that lay it out otherwise too, began with."""

    def before(node: NodeProto) -> str:
        is_reshaped = laid_out and node.op_type in RESHAPING and not normal_domain(node.domain)
        return str(node.input[0]) if is_reshaped else passed_on(scope, node)

    producer = scope.own_producer(name)
    while producer is not None and name == producer.output[0] and (passed := before(producer)):
        name = passed
        producer = scope.own_producer(name)
    return name


def reads_nothing(scope: Scope, node: NodeProto) -> bool:
    """Whether what a node computes with is a constant without elements: its first input, or either of arithmetic."""
    names = node.input[: 2 if node.op_type in _ARITHMETIC else 1]
    known = {name: scope.type_of(name) for name in names if name and is_constant(scope, name)}
    return any(each is not None and each.shape is not None and 0 in each.shape for each in known.values())


def pieces_of(scope: Scope, node: NodeProto) -> list[str]:
    """Return what a Concat joins, without what is known to have no elements."""
    types = {name: scope.type_of(name) for name in node.input}
    filled = {name for name, known in types.items() if known is None or known.shape is None or 0 not in known.shape}
    return [name for name in node.input if name in filled]


def _first(scope: Scope, node: NodeProto) -> str:
    return str(node.input[0])


def _only_piece(scope: Scope, node: NodeProto) -> str:
    pieces = pieces_of(scope, node) if len(set(node.input)) == len(node.input) else []
    return pieces[0] if len(pieces) == 1 else ""


def _if_the_shape_stays(scope: Scope, node: NodeProto, name: str) -> str:
    before, after = scope.type_of(name), scope.type_of(node.output[0])
    lengths = None if before is None else before.lengths
    return name if lengths is not None and after is not None and lengths == after.lengths else ""


def _with(neutral: int, *, swaps: bool) -> Callable[[Scope, NodeProto], str]:
    """Return what tells of an operator on two inputs which of them the other one, all ``neutral``, leaves as it is."""

    def read(scope: Scope, node: NodeProto) -> str:
        for data, other in ((0, 1), (1, 0))[: 2 if swaps else 1]:
            known = worked_out(scope, node.input[other])
            if known is None or not known.size or not bool((known == neutral).all()):
                continue
            if known.size == 1 and known.ndim <= _rank(scope.type_of(node.input[data])):
                return str(node.input[data])
            return _if_the_shape_stays(scope, node, node.input[data])
        return ""

    return read


def _rank(known: ValueType | None) -> int:
    return 0 if known is None else known.rank or 0


def _padded(scope: Scope, node: NodeProto) -> str:
    amounts = given_pads(scope, node)
    return node.input[0] if amounts is not None and not any(amounts) else ""


def _turned(scope: Scope, node: NodeProto) -> str:
    perm = attributes.integers(node, "perm")
    return node.input[0] if perm and perm == sorted(perm) else ""


def _resized(scope: Scope, node: NodeProto) -> str:
    """Return the data of a Resize by factors of 1, or to the lengths that it has: every place stays what it is."""
    resize = read(scope, node)
    if not isinstance(resize, Resample) or resize.coordinates == "tf_crop_and_resize":
        return ""
    if resize.scales is not None or resize.scales_name:
        return str(node.input[0]) if set(resize.scales or ()) == {1.0} else ""
    return _if_the_shape_stays(scope, node, node.input[0])


def _sliced(scope: Scope, node: NodeProto) -> str:
    amounts = slice_amounts(scope, node, partial(worked_out, scope))
    if amounts is None or any(step < 0 for step in amounts.get("steps", [])):
        return ""
    is_whole = takes_all(amounts["starts"], amounts["ends"], amounts.get("steps", [1]))
    return str(node.input[0]) if is_whole else _if_the_shape_stays(scope, node, node.input[0])


def _putting_nothing(scope: Scope, node: NodeProto) -> str:
    updates = scope.type_of(node.input[2])
    return str(node.input[0]) if updates is not None and 0 in (updates.shape or ()) else ""


def _cast(scope: Scope, node: NodeProto) -> str:
    return "" if changes_type(scope, node) is not False else node.input[0]


def changes_type(scope: Scope, node: NodeProto) -> bool | None:
    """Whether a Cast is to another type than its data have; None where that is not known."""
    known = scope.type_of(node.input[0])
    return None if known is None or not known.elem_type else known.elem_type != attributes.integer(node, "to", 0)


_READ: Mapping[str, Callable[[Scope, NodeProto], str]] = {
    **dict.fromkeys(PASSING, _first),
    "Add": _with(0, swaps=True),
    "Cast": _cast,
    "Concat": _only_piece,
    "Div": _with(1, swaps=False),
    "Mul": _with(1, swaps=True),
    "Pad": _padded,
    "Pow": _with(1, swaps=False),
    **dict.fromkeys(("Scatter", "ScatterElements", "ScatterND"), _putting_nothing),
    "Reshape": lambda scope, node: _if_the_shape_stays(scope, node, node.input[0]),
    "Resize": _resized,
    "Slice": _sliced,
    "Sub": _with(0, swaps=False),
    "Transpose": _turned,
}
