"""Equal forms of what copies its data along its axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope
from padfix.operators.constant_chains import chain_of, leaves_of
from padfix.operators.lists import depends_on_data
from padfix.operators.refusal import Refusal
from padfix.operators.told_lengths import told_lengths
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.node_trials import chain_trial, like
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_AT_ONCE = 2
"""Axes that a Tile repeats along."""

_MOST_COPIES = 64
"""Copies that are worth an input each of a Concat."""


def _once_more(site: Site) -> Form:
    """Return the copies behind the larger of them and themselves, where a product or a recurrent layer reads them."""
    own = traits_of(site.scope, site.node) or {}

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        copies = builder.original(copied(site.node), values)
        return builder.op("Max", [copies, copies])

    operators: Operators = (
        (site.node.op_type, {**own, "multiplied-copies": False}),
        ("Max", {"inputs": 2, "broadcasts": False}),
    )
    why_not = None if own.get("multiplied-copies") else Refusal("nothing multiplies its copies")
    if site.elem_type(0) not in FLOATS:
        why_not = Refusal("its data are no floats")
    return Form(
        "the larger of its copies and themselves", operators, lambda: of_inputs(site, write, exact=True), why_not
    )


def _for_all_axes(site: Site) -> Form:
    """Return an Expand with a length of 1 for each axis of its data that it is given none for."""
    own, data, lengths = traits_of(site.scope, site.node) or {}, site.input_type(0), site.input_type(1)
    count = None if lengths is None or not lengths.shape else lengths.shape[0]
    more = (data.rank or 0) - count if data is not None and isinstance(count, int) else 0

    def write(builder: FragmentBuilder, value: Any, listed: Any) -> Any:
        whole = builder.op("Concat", [builder.constant(np.ones(more, np.int64), "ones"), listed], {"axis": 0})
        return builder.original(copied(site.node), [value, whole])

    why_not = None if more > 0 else Refusal("it is given a length for each axis, or how many is not known")
    operators: Operators = (("Concat", {}), ("Expand", {**own, "fewer-lengths": False}))
    return Form("a length for each axis", operators, lambda: of_inputs(site, write, exact=True), why_not)


def _told_each(site: Site) -> Form:
    """Return an Expand that is told the lengths of its data in place of a 1."""
    own, data, lengths = traits_of(site.scope, site.node) or {}, site.input_type(0), site.input_type(1)
    count = None if lengths is None or not lengths.shape else lengths.shape[0]
    more = (data.rank or 0) - count if data is not None and data.rank and isinstance(count, int) else -1

    def write(builder: FragmentBuilder, value: Any, listed: Any) -> Any:
        if more:
            listed = builder.op("Concat", [builder.constant(np.ones(more, np.int64), "ones"), listed], {"axis": 0})
        # A tensor, where it is lengths as a Shape gives.
        listed = builder.op("Cast", [listed], {"to": TensorProto.INT64})
        one = builder.constant(np.ones((), np.int64), "one")
        measured = builder.op("Cast", [builder.op("Shape", [value])], {"to": TensorProto.INT64})
        is_one = builder.op("Cast", [builder.op("Equal", [listed, one])], {"to": TensorProto.INT64})
        told = builder.op("Add", [listed, builder.op("Mul", [is_one, builder.op("Sub", [measured, one])])])
        return builder.original(copied(site.node), [value, told])

    why_not = None if more >= 0 else Refusal("it is given more lengths than axes, or how many is not known")
    parts = (*(("Concat",) if more else ()), "Shape", "Cast", "Equal", "Sub", "Mul", "Add")
    kept = {**own, "may-keep-lengths": False, "fewer-lengths": False}
    operators: Operators = (*((each, {}) for each in parts), ("Expand", kept))
    return Form("the lengths of its data", operators, lambda: of_inputs(site, write, exact=True), why_not)


def joined_copies(site: Site) -> Iterator[Form]:
    """Yield a Tile as its copies joined, axis by axis; and before what multiplies them as what it gives, once more."""
    yield _once_more(site)
    repeats = site.constant(1)
    copies = [] if repeats is None else [int(number) for number in repeats.reshape(-1)]

    def write(builder: FragmentBuilder, value: Any, _: Any) -> Any:
        for axis, number in enumerate(copies):
            if number > 1:
                value = builder.op("Concat", [value] * number, {"axis": axis})
        return value if max(copies, default=1) > 1 else builder.op("Identity", [value])

    why_not = None
    if repeats is None:
        why_not = Refusal("how often it repeats is not constant")
    elif 0 in copies or sum(copies) - len(copies) > _MOST_COPIES:
        why_not = Refusal("it repeats nothing at all, or too often")
    yield Form("its copies joined", (("Concat", {}),), lambda: of_inputs(site, write, exact=True), why_not)
    yield _two_axes_at_once(site)


def _two_axes_at_once(site: Site) -> Form:
    """Return a Tile that is told how often at run time as several, each of which repeats along two axes."""
    known, listed = site.input_type(0), site.input_type(1)
    rank = 0 if known is None or known.rank is None else known.rank

    def write(builder: FragmentBuilder, value: Any, repeats: Any) -> Any:
        for start in range(0, rank, _AT_ONCE):
            end = min(start + _AT_ONCE, rank)
            before, behind = (np.ones(each, np.int64) for each in (start, rank - end))
            parts = [builder.constant(before, "ones")] if start else []
            parts.append(sliced(builder, repeats, [start], [end], [0]))
            parts += [builder.constant(behind, "ones")] if end < rank else []
            value = builder.original(copied(site.node), [value, builder.op("Concat", parts, {"axis": 0})])
        return value

    own = {**(traits_of(site.scope, site.node) or {}), "repeats-many-axes": False}
    operators: Operators = (("Slice", {"axes": 1}), ("Concat", {}), ("Tile", own))
    why_not = None if rank > _AT_ONCE and listed is not None else Refusal("it repeats along two axes at most")
    return Form("two axes at a time", operators, lambda: of_inputs(site, write, exact=True), why_not)


def _of_all_axes(site: Site) -> Form:
    """Return an Expand of a list as one of as many axes as it gives, but for axes of one element at the end."""
    own, known, result = (
        traits_of(site.scope, site.node) or {},
        site.input_type(0),
        site.scope.type_of(site.node.output[0]),
    )
    before = None if known is None else known.lengths
    after = () if result is None or result.lengths is None else result.lengths
    count = max((axis + 1 for axis, length in enumerate(after) if length > 1), default=1)
    taken = len(after) - count
    told = (1, *after[:count]) if taken and count == 1 else after[:count]  # a list would be a column again

    def write(builder: FragmentBuilder, value: Any, shape: Any) -> Any:
        kept = (before or ())[: len(before or ()) - taken]
        value = builder.reshaped(value, [*[1] * (len(told) - len(kept)), *kept])
        if not taken:
            return builder.original(copied(site.node), [value, shape])
        copies = builder.original(copied(site.node), [value, builder.constant(np.array(told, np.int64), "shape")])
        return builder.reshaped(copies, after)

    expand = {**own, "of-lists": False, "copies-columns": False}
    operators: Operators = (("Reshape", {"rank": len(told)}), ("Expand", expand))
    operators = (*operators, ("Reshape", {"rank": len(after)})) if taken else operators
    why_not = None
    if before is None or not after or 0 in after:
        why_not = Refusal("it needs the lengths of the input (--shape)")
    elif not own.get("copies-columns") and (not own.get("of-lists") or count == 1):
        why_not = Refusal("its data are no list that gets more axes, and no columns")
    return Form("a row of its list", operators, lambda: of_inputs(site, write, exact=True), why_not)


def _as_long(site: Site) -> Form:
    """Return an Expand to lengths that its data have already, those that are left open among them, as the data."""
    known, producer = site.input_type(0), site.scope.own_producer(site.input_name(1))
    shape = () if known is None or known.shape is None else known.shape
    told = told_lengths(site.scope, site.input_name(1)) or []
    chain = None if producer is None else chain_of(site.scope, producer, open_lengths=True)

    def write() -> Rewrite:
        assert chain is not None
        assert known is not None
        builder = site.builder()
        builder.output(site.node.output[0], builder.op("Identity", [builder.input(site.input_name(0))]))
        trial = {**chain_trial(site.scope, chain), site.input_name(0): like(known)}
        return Rewrite(builder.build(), (trial,), exact=True, replaces=tuple(chain))

    pairs = zip(reversed(told), reversed(shape), strict=False)
    is_kept = 0 < len(told) <= len(shape) and all(each in (1, own) and each is not None for each, own in pairs)
    why_not = None if is_kept and chain is not None else Refusal("it gives other lengths, or how long it is not known")
    if not depends_on_data(site.scope, site.input_name(0)):
        why_not = Refusal("what it copies is made of lengths alone")
    _, measured = leaves_of(site.scope, chain or [])
    behind = [site.input_name(0), *measured]
    if any(isinstance(each, str) and not _are_of_one_input(site.scope, behind, each) for each in told):
        why_not = Refusal("several inputs have a length of that name, which may differ")
    return Form("its data, which are as long", (("Identity", {}),), write, why_not)


def _are_of_one_input(scope: Scope, names: Iterable[str], length: str) -> bool:
    """Whether what is computed has a length of one input alone: nothing makes sure that those of two are alike."""

    def before(name: str) -> list[str]:
        producer = scope.producer(name)
        return [] if producer is None else [each for each in producer.input if each]

    given = [name for name in reached(names, before) if scope.producer(name) is None]
    types = [scope.type_of(name) for name in given]
    return sum(length in (known.shape or ()) for known in types if known is not None) <= 1


def repeated_copies(site: Site) -> Iterator[Form]:
    """Yield an Expand as copies of what has one element, joined; and before what multiplies them, once more."""
    yield _once_more(site)
    yield _of_all_axes(site)
    yield _as_long(site)
    yield _for_all_axes(site)
    yield _told_each(site)
    known, result = site.input_type(0), site.scope.type_of(site.node.output[0])
    before = None if known is None else known.lengths
    after = None if result is None else result.lengths
    lengths = () if before is None or after is None else (*[1] * (len(after) - len(before)), *before)
    copies = [there if here == 1 else 1 for here, there in zip(lengths, after or (), strict=False)]

    def write(builder: FragmentBuilder, value: Any, _: Any) -> Any:
        if before is not None and len(lengths) > len(before):
            value = builder.reshaped(value, lengths)
        for axis, number in enumerate(copies):
            if number > 1:
                value = builder.op("Concat", [value] * number, {"axis": axis})
        return value if max(copies, default=1) > 1 or lengths != before else builder.op("Identity", [value])

    operators: Operators = (("Concat", {}),)
    if before is not None and len(lengths) > len(before):
        operators = (("Reshape", {"rank": len(lengths)}), *operators)
    why_not = None
    if before is None or after is None:
        why_not = Refusal("it needs the lengths of the input (--shape)")
    elif 0 in after or sum(copies) - len(copies) > _MOST_COPIES:
        why_not = Refusal("it repeats nothing at all, or too often")
    yield Form("its copies joined", operators, lambda: of_inputs(site, write, exact=True), why_not)
