"""Equal forms of operators whose inputs have shapes of their own: Mul, Sum, Mean, Max, Min, Where, and differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.operators.fused_layers import adds_wide_constant, narrowest
from padfix.operators.lists import depends_on_data, is_computed_list, spreads_a_list
from padfix.operators.other_traits import OTHERS
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_SUMS_BROADCAST_SINCE = 8
_PAIRWISE = {"Sum": "Add", "Mean": "Add"}


def apart_forms(site: Site) -> Iterator[Form]:
    """Yield the node with an Identity before the input of one channel, or before all where that is not known."""
    place, own = narrowest(site.scope, site.node), OTHERS[site.node.op_type](site.scope, site.node)
    traits = {**own, "spreads-channels": False}

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        apart = [
            builder.op("Identity", [value]) if place in (None, number) else value for number, value in enumerate(values)
        ]
        return builder.original(copied(site.node), apart)

    is_open = own.get("spreads-channels") is None
    why_not = Refusal("no input has one channel alone") if place is None and not is_open else None
    yield Form(
        "an Identity before it", ((site.node.op_type, traits),), lambda: _written(site, write, exact=True), why_not
    )


def exchanged_forms(site: Site) -> Iterator[Form]:
    """Yield a product with its factors exchanged."""

    def write(builder: FragmentBuilder, first: Any, second: Any) -> Any:
        return builder.op("Mul", [second, first])

    yield Form("the factors exchanged", (("Mul", {"gate-second": False}),), lambda: _written(site, write, exact=True))


def rows_first(forms: Callable[[Site], Iterator[Form]]) -> Callable[[Site], Iterator[Form]]:
    """Return the forms of what works element by element: that on rows, where it spreads a list, which all others do."""

    def both(site: Site) -> Iterator[Form]:
        yield from _on_rows(site) if spreads_a_list(site.scope, site.node) else forms(site)

    return both


def _on_rows(site: Site) -> Iterator[Form]:
    """Yield the operator with lists that are computed as matrices of one row."""
    lists = [is_computed_list(site.scope, name) for name in site.node.input]
    types = [site.input_type(position) for position in range(len(lists))]
    ranks = [None if known is None else known.rank for known in types]
    own = {**(traits_of(site.scope, site.node) or {}), "spreads-a-list": False}

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        rows = [
            builder.unsqueezed(value, 0) if is_list else value for value, is_list in zip(values, lists, strict=True)
        ]
        result = builder.original(copied(site.node), rows)
        return builder.unsqueezed(result, 0, back=True) if max(rank or 0 for rank in ranks) == 1 else result

    why_not = Refusal("how many axes its inputs have is not known") if None in ranks else None
    operators: Operators = (("Unsqueeze", {}), (site.node.op_type, own), ("Squeeze", {}))
    yield Form("rows in place of lists", operators, lambda: _written(site, write, exact=True), why_not)


def appended_forms(site: Site) -> Iterator[Form]:
    """Yield a Concat that reads an Identity of what depends on data."""
    is_data = [depends_on_data(site.scope, name) for name in site.node.input]

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        apart = [
            builder.op("Identity", [value]) if moves else value for value, moves in zip(values, is_data, strict=True)
        ]
        return builder.original(copied(site.node), apart)

    operators: Operators = (("Concat", {"appends-to-input": False}),)
    yield Form("an Identity before it", operators, lambda: _written(site, write, exact=True))


def narrowed_forms(site: Site) -> Iterator[Form]:
    """Yield a sum whose constant has no axes of one element before the others, and one behind an Identity."""
    if not adds_wide_constant(site.scope, site.node):
        return
    place = 0 if site.constant(0) is not None else 1
    constant, known = site.constant(place), site.input_type(1 - place)
    traits = {**OTHERS["Add"](site.scope, site.node), "adds-wide-constant": False}
    why_not = None
    if constant is None or known is None or known.rank is None or known.rank < constant.ndim:
        why_not = Refusal("its constant is not read, or gives the result its axes")

    def narrowed(builder: FragmentBuilder, *values: Any) -> Any:
        assert constant is not None
        lengths = constant.shape[next((axis for axis, each in enumerate(constant.shape) if each != 1), -1) :]
        terms = list(values)
        terms[place] = builder.constant(constant.reshape(lengths or (1,)), "narrow")
        return builder.op("Add", terms)

    def apart(builder: FragmentBuilder, *values: Any) -> Any:
        return builder.op("Add", [builder.op("Identity", [value]) for value in values])

    operators = (("Add", traits),)
    yield Form("its constant without axes of one", operators, lambda: _written(site, narrowed, exact=True), why_not)
    yield Form("an Identity before both", operators, lambda: _written(site, apart, exact=True))


def summed_forms(site: Site) -> Iterator[Form]:
    """Yield a sum of two as one of any number, which is no part of the convolution before it."""
    traits = OTHERS["Sum"](site.scope, site.node)
    spreads = site.opset < _SUMS_BROADCAST_SINCE and traits["broadcasts"] is not False
    why_not = Refusal("a Sum takes inputs of one shape at this opset") if spreads else None

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        return builder.op("Sum", list(values))

    yield Form("a Sum", (("Sum", traits),), lambda: _written(site, write, exact=True), why_not)


def paired_forms(site: Site) -> Iterator[Form]:
    """Yield what joins many inputs as what joins two of them at a time; a mean as the sum that is divided."""
    op_type = site.node.op_type
    joint = _PAIRWISE.get(op_type, op_type)
    count = len(site.node.input)

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        joined, *others = values
        for other in others:
            joined = builder.op(joint, [joined, other])
        if op_type != "Mean":
            return joined
        number = np.array(count, helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
        return builder.op("Div", [joined, builder.constant(number, "number")])

    why_not = None if count > 1 else Refusal("it has one input alone")
    operators = ((joint, {"inputs": 2, "broadcasts": True}),)
    yield Form("two at a time", operators, lambda: _written(site, write, exact=joint == op_type), why_not)


def choice_forms(site: Site) -> Iterator[Form]:
    """Yield a Where whose branches are exchanged."""

    def write(builder: FragmentBuilder, condition: Any, chosen: Any, other: Any) -> Any:
        return builder.op("Where", [builder.op("Not", [condition]), other, chosen])

    turned = copied(site.node)
    turned.input[1], turned.input[2] = site.node.input[2], site.node.input[1]
    operators = (("Where", OTHERS["Where"](site.scope, turned)),)
    yield Form("the branches exchanged", operators, lambda: _written(site, write, exact=True))


def negated_forms(site: Site) -> Iterator[Form]:
    """Yield a difference as a sum, and a quotient as that of both with the other sign."""
    first, is_sum = site.constant(0), site.node.op_type == "Sub"
    why_not = None if first is not None else Refusal("it takes nothing from a constant")
    if site.elem_type(1) not in FLOATS:
        why_not = Refusal("only floats are negated without a loss")

    def write(builder: FragmentBuilder, minuend: Any, subtrahend: Any) -> Any:
        assert first is not None
        negative = builder.op("Neg", [subtrahend])
        if is_sum:
            return builder.op("Add", [minuend, negative])
        return builder.op("Div", [builder.constant(-first, "negative"), negative])

    name, joint = ("a sum", "Add") if is_sum else ("both with the other sign", "Div")
    yield Form(name, (("Neg", {}), (joint, {})), lambda: _written(site, write, exact=True), why_not)


def _written(site: Site, write: Callable[..., Any], *, exact: bool) -> Rewrite:
    """Return what ``write`` makes of all the inputs."""
    builder = site.builder()
    builder.output(site.node.output[0], write(builder, *(builder.input(name) for name in site.node.input)))
    return Rewrite(builder.build(), trials_of(site), exact=exact)
