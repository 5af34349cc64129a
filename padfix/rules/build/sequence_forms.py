"""What takes tensors from lists, as the tensors that are known to be in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import numpy_helper

from padfix.graph import attributes
from padfix.operators.constant_chains import worked_out
from padfix.operators.refusal import Refusal
from padfix.operators.sequences import Piece, taken
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import like
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


def list_forms(site: Site) -> Iterator[Form]:
    """Yield a tensor that a list holds, a part of what a list is split from, a Concat of all, and their number."""
    held = taken(site.scope, site.node)
    is_stacked = attributes.integer(site.node, "new_axis", 0) == 1
    rank = 0 if held is None else _rank(site, held.pieces[0]) + is_stacked
    axis = attributes.integer(site.node, "axis", 0) or 0

    def write() -> Rewrite:
        assert held is not None
        builder = site.builder()
        read = dict.fromkeys(each.name for each in held.pieces)
        inputs = {name: builder.input(name) for name in read}
        is_counted = site.node.op_type == "SequenceLength"
        values = [] if is_counted else [_part(builder, inputs[each.name], each) for each in held.pieces]
        if is_counted:
            value = builder.op("Constant", [], {"value": numpy_helper.from_array(np.array(len(held.pieces), np.int64))})
        elif site.node.op_type == "ConcatFromSequence":
            values = [builder.unsqueezed(value, axis % rank) for value in values] if is_stacked else values
            value = builder.op("Concat", values, {"axis": axis % rank})
        else:
            value = values[0] if held.pieces[0].axis is not None else builder.op("Identity", values)
        builder.output(site.node.output[0], value)
        nodes = {id(each): each for each in held.made_by}
        before = tuple(each for each in site.scope.nodes if id(each) in nodes)
        return Rewrite(builder.build(), (_trial(site, (*before, site.node)),), exact=True, replaces=before)

    why_not = None
    if held is None:
        why_not = Refusal("what the list holds is only known at run time")
    elif any(site.scope.type_of(each.name) is None for each in held.pieces):
        why_not = Refusal("of which type its tensors are is not known")
    elif site.node.op_type == "ConcatFromSequence" and not rank:
        why_not = Refusal("how many axes its tensors have is not known")
    operators: Operators = (("Constant", {"of-tensor": True}),) if site.node.op_type == "SequenceLength" else ()
    if held is not None and not operators and any(each.axis is not None for each in held.pieces):
        operators = (("Slice", {"axes": rank - is_stacked}),)
    yield Form("the tensors in it", operators, write, why_not)


def _rank(site: Site, piece: Piece) -> int:
    """Return how many axes a tensor in a list has; 0 where that is not known."""
    known = site.scope.type_of(piece.name)
    rank = 0 if known is None or known.rank is None else known.rank
    return rank - (not piece.keeps_axis)


def _part(builder: FragmentBuilder, value: Any, piece: Piece) -> Any:
    if piece.axis is None:
        return value
    value = sliced(builder, value, [piece.start], [piece.end], [piece.axis])
    return value if piece.keeps_axis else builder.unsqueezed(value, piece.axis, back=True)


def _trial(site: Site, nodes: tuple[Any, ...]) -> dict[str, TrialInput]:
    """Return data and constants for what nodes read that none of them gives."""
    made = {name for node in nodes for name in node.output}
    found: dict[str, TrialInput] = {}
    for name in (each for node in nodes for each in node.input if each and each not in made):
        value, known = worked_out(site.scope, name), site.scope.type_of(name)
        if value is not None:
            found[name] = TrialInput.of(value)
        elif known is not None:
            found[name] = like(known)
    return found
