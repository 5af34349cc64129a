"""Forms of TopK: its number as an input, its axis from the begin, and places that are told by its values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.elementary_forms import reduced, reduction_traits
from padfix.rules.build.explicit_pads import bind, copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import as_node
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_COMPARING_FLOATS_SINCE = 11
"""The first opset that asks of floats whether they are equal, and sums them up one after the other."""

_COMPARING_ORDER_SINCE = 12
"""The first opset that asks whether one is no less, or no more, than the other."""

_BY_EXTREMES = ("Max", "Min", "LessOrEqual")

_WHICH = {1: "", 2: ", which are no less and no more", 3: ", whose larger is no larger than the smaller"}

_MOST_QUESTIONS = 1 << 25
"""Pairs of a result and an element that are asked whether they are equal."""

_NUMBER_AS_INPUT_SINCE = 10
"""The first opset that says by an input how many are wanted."""


def _numbered_by_input(site: Site) -> Form:
    """Return a TopK that is told by an input how many it gives, as later opsets do."""

    def write() -> Rewrite:
        builder = site.builder(_NUMBER_AS_INPUT_SINCE)
        number = builder.integers([attributes.integer(site.node, "k", 1) or 1], "number")
        node = copied(site.node, without=("k",))
        return Rewrite(
            builder.ending_in(node, [builder.input(site.input_name(0)), number]), trials_of(site), exact=True
        )

    own = {**(traits_of(site.scope, site.node) or {}), "number-as-attribute": False}
    return Form("its number as an input", (("TopK", own),), write, None, _NUMBER_AS_INPUT_SINCE)


def sorted_forms(site: Site) -> Iterator[Form]:
    """Yield a TopK whose axis is counted from the begin, and one that sorts the only element that it gives."""
    if site.opset < _NUMBER_AS_INPUT_SINCE:
        yield _numbered_by_input(site)
        return
    known, number = site.input_type(0), site.constant(1)
    rank, axis = 0 if known is None else known.rank or 0, attributes.integer(site.node, "axis", -1) or 0
    own = {
        **(traits_of(site.scope, site.node) or {}),
        "axis-from-end": False,
        "inner-axis-from-end": False,
        "sorted": True,
    }

    def write() -> Rewrite:
        node = copied(site.node, without=("sorted",))
        attributes.set_integer(node, "axis", axis % rank)
        return as_node(site, node, exact=True)

    why_not = None if rank else Refusal("how many axes its data have is not known")
    if not attributes.integer(site.node, "sorted", 1) and (number is None or number.reshape(-1)[0] != 1):
        why_not = Refusal("in which order it gives them is not told")
    yield Form("its axis from the begin", (("TopK", own),), write, why_not)
    if own["gives-places"]:
        yield _counted_equals(site, ("Equal",))
        yield _counted_equals(site, ("GreaterOrEqual", "LessOrEqual"))
        yield _counted_equals(site, _BY_EXTREMES)


def _counted_equals(site: Site, asking: Sequence[str]) -> Form:
    """Return a TopK whose places are told by its values: of elements equal to one, the first that is not taken.

    Equal is of what all comparisons of ``asking`` are true, or whose larger is no larger than the smaller. Where all
    lengths are known it is of the axes before, its own, and those behind in one each.
    """
    known, number = site.input_type(0), site.constant(1)
    shape = () if known is None or known.shape is None else known.shape
    lengths = [each for each in shape if isinstance(each, int)]
    is_told = bool(shape) and number is not None and number.size == 1
    taken = int(number.reshape(-1)[0]) if is_told and number is not None else 0
    axis = (attributes.integer(site.node, "axis", -1) or 0) % max(len(shape), 1)
    rows, columns = math.prod(lengths[:axis]), math.prod(lengths[axis + 1 :])
    apart = [rows, lengths[axis], *([columns] if columns > 1 else [])] if is_told and len(lengths) == len(shape) else []
    axes, along = (len(apart), 1) if apart else (len(shape), axis)
    is_moved = bool(apart) and apart != lengths

    def write() -> Rewrite:
        builder = site.builder(since if site.opset < since else None)
        data, wanted = (builder.input(name) for name in site.node.input)
        data = builder.reshaped(data, apart) if is_moved else data
        node = copied(site.node)
        attributes.set_integer(node, "axis", along)
        values, _ = builder.original(node, [data, wanted])
        places = _places(builder, asking, (data, values), taken, along, axes)
        gives = [*lengths[:axis], taken, *lengths[axis + 1 :]]
        for name, result in zip(site.node.output, (values, places), strict=True):
            builder.output(name, builder.reshaped(result, gives) if is_moved else result)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    since = _COMPARING_FLOATS_SINCE if asking == ("Equal",) else _COMPARING_ORDER_SINCE
    from_begin: Traits = {"axis-from-end": False, "inner-axis-from-end": False, "gives-places": False}
    own = {**(traits_of(site.scope, site.node) or {}), **from_begin}
    rank = axes + 1
    operators: Operators = (
        *((("Reshape", {"rank": axes}), ("Reshape", {"rank": len(shape)})) if is_moved else ()),
        ("TopK", {**own, "rank": axes}),
        ("Unsqueeze", {"rank": axes}),
        *((each, _asked(each, rank, asking)) for each in asking),
        (
            "Cast",
            {"numbers": "boolean", "elements": "float", "unsigned": False, "gives": "single", "changes-type": True},
        ),
        ("CumSum", {}),
        ("ReduceSum", reduction_traits("ReduceSum", site.opset, [along + 1])),
        ("And", {"rank": rank}),
        ("ArgMax", {"rank": rank, "keeps-axis": False, "takes-last": False, "numbers": "single"}),
    )
    why_not = None if is_told else Refusal("how many axes its data have, or how many it gives, is not known")
    if taken * math.prod(lengths) > _MOST_QUESTIONS:
        why_not = Refusal("it would ask too many pairs of elements whether they are equal")
    way = "the places of equal elements counted" + _WHICH[len(asking)]
    return Form(way, operators, write, why_not, since)


def _asked(op_type: str, rank: int, asking: Sequence[str]) -> Traits:
    if asking != _BY_EXTREMES:
        return {"rank": rank, "broadcasts": True, "both-broadcast": True}
    return {"rank": rank, "broadcasts": False} if op_type == asking[-1] else {"inputs": 2, "broadcasts": True}


def _places(
    builder: FragmentBuilder, asking: Sequence[str], given: tuple[Any, Any], taken: int, axis: int, rank: int
) -> Any:
    """Return where along an axis of data values stand, each of several equal ones at the next place.

    ``given`` are the data and the values.
    """

    def equal(first: Any, second: Any) -> Any:
        if asking == _BY_EXTREMES:
            return builder.op(asking[-1], [builder.op(each, [first, second]) for each in asking[:-1]])
        answers = [builder.op(each, [first, second]) for each in asking]
        return answers[0] if len(answers) == 1 else builder.op("And", answers)

    def as_numbers(asked: Any) -> Any:
        return builder.op("Cast", [asked], {"to": int(TensorProto.FLOAT)})

    data, values = given
    each = builder.unsqueezed(values, axis + 1)
    is_there = equal(each, builder.unsqueezed(data, axis))
    up_to = builder.op("CumSum", [as_numbers(is_there), builder.constant(np.array(axis + 1), "axis")])
    is_alike = as_numbers(equal(each, builder.unsqueezed(values, axis)))
    pairs = [*[1] * axis, taken, taken, *[1] * (rank - 1 - axis)]
    until = builder.constant(np.tril(np.ones((taken, taken), np.float32)).reshape(pairs), "until")
    own_number = reduced(builder, "ReduceSum", builder.op("Mul", [is_alike, until]), [axis + 1])
    is_next = builder.op("And", [equal(up_to, own_number), is_there])
    return builder.op("ArgMax", [as_numbers(is_next)], {"axis": axis + 1, "keepdims": 0})


def listed_unique(site: Site) -> Iterator[Form]:
    """Yield the unique elements of data, wherever they lie, as those of a list, and of those along its axis."""
    own = traits_of(site.scope, site.node) or {}

    def write(*, along: bool = False) -> Rewrite:
        builder, node = site.builder(), copied(site.node)
        if along:
            attributes.set_integer(node, "axis", 0)
        bind(builder, site.node, builder.original(node, [builder.reshaped(builder.input(site.input_name(0)), [-1])]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = Refusal("it compares what lies along an axis") if own.get("along-axis") else None
    operators: Operators = (("Reshape", {"rank": 1}), ("Unique", {**own, "axes": 1}))
    yield Form("that of a list", operators, write, why_not)
    operators = (("Reshape", {"rank": 1}), ("Unique", {**own, "axes": 1, "along-axis": True}))
    yield Form("that along the axis of a list", operators, partial(write, along=True), why_not)
