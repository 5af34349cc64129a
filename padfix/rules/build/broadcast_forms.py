"""Equal forms of operators whose inputs have shapes of their own: Mul, Sum, Mean, Max, Min, Where, and differences."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.graph.scopes import ValueType
from padfix.operators.elementwise import PLACES
from padfix.operators.fused_layers import TERMS, adds_wide_constant
from padfix.operators.lists import SOFTENING, depends_on_data, is_computed_list, joins_a_list
from padfix.operators.numbers import computes_in_widened
from padfix.operators.other_traits import OTHERS
from padfix.operators.passing import reads_nothing
from padfix.operators.refusal import Refusal
from padfix.operators.spelled_norms import BY_NORM
from padfix.operators.taken_axes import LEAST_RANK
from padfix.operators.traits import axes_of, traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.channel_forms import by_channel
from padfix.rules.build.elementary_forms import AS_NUMBER, as_number
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.index_forms import chosen_within_bounds
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.node_trials import as_declared, trials_of
from padfix.rules.build.nothing_forms import with_parts
from padfix.rules.build.objections import Operators
from padfix.rules.build.truth_forms import infinite_forms, truth_forms
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_SUMS_BROADCAST_SINCE = 8
_MOST_ELEMENTS = 1 << 20
"""Of a constant that is written as often as it is read."""

_PAIRWISE = {"Sum": "Add", "Mean": "Add"}


_OF_FEWER = ("computed-fewer-axes", "fed-fewer-axes-first", "fewer-axes", "list-for-channels", "moves-fewer-axes")
"""What is told of data of fewer axes than others."""


def exchanged_forms(site: Site) -> Iterator[Form]:
    """Yield a product with its factors exchanged, a sum with its terms, or an extreme of two the other way round."""
    op_type, own = site.node.op_type, traits_of(site.scope, site.node) or {}
    apart = (
        "gate-second",
        "scales-one-query",
        "adds-to-erf",
        "adds-one-to-size",
        "adds-turned-half",
        "joins-constant-first",
        "rows-before-open",
        "constant-before-layer",
        "scales-a-volume",
        "shifts-scaled-line",
    )
    traits = {**own, **dict.fromkeys(apart, False)}

    def write(builder: FragmentBuilder, first: Any, second: Any) -> Any:
        return builder.op(op_type, [second, first])

    why_not = None if len(site.node.input) == TERMS else Refusal("it has one input, or more than two")
    yield Form("its inputs exchanged", ((op_type, traits),), lambda: of_inputs(site, write, exact=True), why_not)


def inverse_forms(site: Site) -> Iterator[Form]:
    """Yield a reciprocal, or the quotient of a constant, as a power of -1."""
    is_quotient = site.node.op_type == "Div"
    first, place = (site.constant(0), 1) if is_quotient else (None, 0)
    why_not = Refusal("it divides no constant") if is_quotient and first is None else None
    if site.elem_type(place) not in FLOATS:
        why_not = Refusal("its data are no floats")

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        exponent = np.array(-1, helper.tensor_dtype_to_np_dtype(site.elem_type(place)))
        inverse = builder.op("Pow", [values[place], builder.constant(exponent, "exponent")])
        return builder.op("Mul", [inverse, values[0]]) if is_quotient else inverse

    own = traits_of(site.scope, site.node) or {}
    operators: Operators = (("Pow", {"exponent": "others"}),)
    if is_quotient:
        operators = (*operators, ("Mul", {"constants": own.get("constants"), "gate-second": False}))
    yield Form("a power of -1", operators, lambda: of_inputs(site, write, exact=False), why_not)


def rows_first(forms: Callable[[Site], Iterator[Form]]) -> Callable[[Site], Iterator[Form]]:
    """Return the forms of what works element by element: that on rows first, where it spreads a list, as others do."""

    def both(site: Site) -> Iterator[Form]:
        is_list_joined = joins_a_list(site.scope, site.node)
        is_of_nothing = reads_nothing(site.scope, site.node)
        yield from with_parts(site)
        yield _with_all_axes(site)
        yield from on_rows(site) if is_list_joined else ()
        for form in forms(site):
            kept = {"joins-a-list": is_list_joined, "reads-nothing": is_of_nothing}
            told = ((op_type, {**kept, **traits}) for op_type, traits in form.operators)
            yield dataclasses.replace(form, operators=tuple(told))
        yield _whole(site)
        yield by_channel(site)

    return both


def row_of(site: Site, place: int) -> list[int]:
    """Return the shape of a matrix whose one row is a list; OpenCV 4.14 counts -1 wrong beside an open batch."""
    known = site.input_type(place)
    length = known.shape[0] if known is not None and known.shape else None
    is_number = known is not None and known.rank == 0
    return [1, length if isinstance(length, int) else 1 if is_number else -1]


def on_rows(site: Site) -> Iterator[Form]:
    """Yield an operator that has no axis of its own with lists that are computed as matrices of one row.

    So is a number, or a list of one element, of which it computes another.
    """
    if site.node.op_type in (*PLACES, *SOFTENING):
        return
    own = traits_of(site.scope, site.node) or {}
    is_of_one = bool(own.get("of-made-list") or own.get("of-made-number"))
    lists = [is_computed_list(site.scope, name) for name in site.node.input]
    lists[0] = lists[0] or is_of_one
    types = [site.input_type(position) for position in range(len(lists))]
    ranks = [None if known is None else known.rank for known in types]
    left = {**own, "joins-a-list": False, "of-made-list": False, "of-made-number": False, **_apart_from_norm(lists)}

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        # OpenCV 4.14 refuses an Unsqueeze of a list that another operator reads as well.
        rows = [
            builder.reshaped(value, row_of(site, place)) if is_list else value
            for place, (value, is_list) in enumerate(zip(values, lists, strict=True))
        ]
        result = builder.original(copied(site.node), rows)
        if max(rank or 0 for rank in ranks) > 1:
            return result
        return as_number(builder, result) if own.get("of-made-number") else builder.reshaped(result, [-1])

    why_not = Refusal("how many axes its inputs have is not known") if None in ranks else None
    last: Operators = AS_NUMBER if own.get("of-made-number") else (("Reshape", {"rank": 1}),)
    operators: Operators = (("Reshape", {"rank": 2}), (site.node.op_type, left), *last)
    yield Form("rows in place of lists", operators, lambda: of_inputs(site, write, exact=True), why_not)


def _apart_from_norm(reshaped: Sequence[bool]) -> Traits:
    """Return what a Div is like of whose inputs some are behind a Reshape."""
    return dict.fromkeys(BY_NORM, False) if any(reshaped[1:]) else {}


def _whole(site: Site) -> Form:
    """Return the operator with constants of the shape of what it gives; of one image where their number is open."""
    result = site.scope.type_of(site.node.output[0])
    shape = () if result is None or result.shape is None else result.shape
    lengths = [each if isinstance(each, int) else 0 for each in shape]
    if lengths and not isinstance(shape[0], int):
        lengths[0] = 1
    values = [site.constant(place) for place in range(len(site.node.input))]

    def write(builder: FragmentBuilder, *given: Any) -> Any:
        whole = [
            data if value is None else builder.constant(_spread(value, lengths), "whole")
            for data, value in zip(given, values, strict=True)
        ]
        return builder.original(copied(site.node), whole)

    why_not, is_number = None, all(value is None or value.size == 1 for value in values)
    if (not lengths or 0 in lengths) and not is_number:
        why_not = Refusal("it needs the lengths of what it gives (--shape)")
    elif all(value is None for value in values) or math.prod(lengths) > _MOST_ELEMENTS:
        why_not = Refusal("it reads no constant, or gives too many elements")
    elif not is_number and any(
        value is not None and value.ndim == len(lengths) and value.shape[0] > lengths[0] for value in values
    ):
        why_not = Refusal("it needs to know how many images there are (--shape)")
    kind = "none" if is_number else _kind_of_whole(result)
    own = {
        **(traits_of(site.scope, site.node) or {}),
        "constants": kind,
        "one-first": False,
        "joins-constant-first": False,
        "lists-for-numbers": False,
    }
    own.update({name: is_number and own.get(name) for name in ("adds-as-many", "adds-as-many-channels")})
    own |= {"by-one-each": own.get("numbers") == "integer" and not is_number} if "by-one-each" in own else {}
    operators: Operators = ((site.node.op_type, own),)
    return Form("constants of the whole shape", operators, partial(_as_they_are, site, write), why_not)


def _with_all_axes(site: Site) -> Form:
    """Return the operator on computed data with as many axes as the result has.

    Where constants spread the data, these are behind a Reshape, and constants have the shape of the result.
    """
    own, result = traits_of(site.scope, site.node) or {}, site.scope.type_of(site.node.output[0])
    rank = 0 if result is None or result.rank is None else result.rank
    places = range(len(site.node.input))
    constants = [site.constant(place) for place in places]
    types = [site.input_type(place) for place in places]
    shapes = [() if known is None or known.shape is None else known.shape for known in types]
    lengths = [[each if isinstance(each, int) else -1 for each in shape] for shape in shapes]
    is_spread, whole = bool(own.get("spreads-data")), () if result is None else result.copied or ()
    whole = (max(1, *whole[:1]), *whole[1:]) if whole else ()  # what is for one image is for all
    changed = [
        0 < len(each) < rank + is_spread and (is_spread or told is None)
        for told, each in zip(constants, lengths, strict=True)
    ]

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        given = [
            value
            if not is_changed
            else builder.reshaped(value, [1] * (rank - len(each)) + each)
            if told is None
            else builder.constant(_spread(told, whole), "whole")
            for value, told, each, is_changed in zip(values, constants, lengths, changed, strict=True)
        ]
        return builder.original(copied(site.node), given)

    why_not = None
    if not any(changed):
        why_not = Refusal("all that it computes with has all axes, or how many is not known")
    elif any(each.count(-1) > 1 or 0 in each for each in lengths) or (is_spread and (not whole or 0 in whole)):
        why_not = Refusal("it needs the lengths of its inputs (--shape)")
    elif is_spread and math.prod(whole) > _MOST_ELEMENTS:
        why_not = Refusal("its constants would be very large")
    traits: dict[str, Any] = {**own, **dict.fromkeys(_OF_FEWER, False), **_apart_from_norm(changed)}
    traits["list-for-channels"] = bool(own.get("list-for-channels")) and rank == LEAST_RANK
    if is_spread:
        traits |= {"spreads-data": False, "channels-last": False, "constants": _kind_of_whole(result)}
        traits |= {"by-one-each": own.get("numbers") == "integer"} if "by-one-each" in own else {}
    operators: Operators = (("Reshape", {"rank": rank}), (site.node.op_type, traits))
    return Form("axes of one element before it", operators, partial(_as_they_are, site, write), why_not)


def _kind_of_whole(result: ValueType | None) -> str:
    """Return how constants of the whole shape of a result take it, of which one image is all where that is open."""
    return "image" if result is not None and result.shape and not isinstance(result.shape[0], int) else "none"


def _as_they_are(site: Site, write: Callable[..., Any]) -> Rewrite:
    """Return what is written for the lengths that the inputs have."""
    return dataclasses.replace(of_inputs(site, write, exact=True), trials=(as_declared(site),))


def _spread(value: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
    return value.reshape(()) if value.size == 1 else np.broadcast_to(value, lengths).copy()


def appended_forms(site: Site) -> Iterator[Form]:
    """Yield a Concat that reads an Identity of what depends on data."""
    is_data = [depends_on_data(site.scope, name) for name in site.node.input if name]

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        apart = [
            builder.op("Identity", [value]) if moves else value for value, moves in zip(values, is_data, strict=True)
        ]
        return builder.original(copied(site.node), apart)

    own = {**(traits_of(site.scope, site.node) or {}), "appends-to-input": False}
    own["joins-constant-again"] = False  # for another form to mend
    operators: Operators = (("Concat", own),)
    yield Form("an Identity before it", operators, lambda: of_inputs(site, write, exact=True))


def in_rows(site: Site) -> Iterator[Form]:
    """Yield a Concat of lists as that of matrices of one row."""
    own = traits_of(site.scope, site.node) or {}
    if not own.get("of-lists"):
        return
    told = [site.constant(place) for place in range(len(site.node.input))]

    def write() -> Rewrite:
        builder = site.builder()
        rows = [
            builder.reshaped(builder.input(name), row_of(site, place))
            if value is None
            else builder.constant(value.reshape(1, -1), "row")
            for place, (name, value) in enumerate(zip(site.node.input, told, strict=True))
        ]
        joined = builder.op("Concat", rows, {"axis": 1})
        builder.output(site.node.output[0], builder.reshaped(joined, [-1]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    left = dict.fromkeys(("of-lists", "lists-differ", "axis-from-end", "appends-to-input"), False)
    traits = {**own, **left}
    operators: Operators = (("Reshape", {"rank": 2}), ("Concat", traits), ("Reshape", {"rank": 1}))
    yield Form("rows in place of lists", operators, write)


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
    yield Form("its constant without axes of one", operators, lambda: of_inputs(site, narrowed, exact=True), why_not)
    yield Form("an Identity before both", operators, lambda: of_inputs(site, apart, exact=True))


def summed_forms(site: Site) -> Iterator[Form]:
    """Yield a sum of two as one of any number, which is no part of the convolution before it."""
    traits = {
        **OTHERS["Sum"](site.scope, site.node),
        "axes": axes_of(site.scope, site.node),
        "doubles-of-floats": computes_in_widened(site.scope, site.node),
    }
    spreads = site.opset < _SUMS_BROADCAST_SINCE and traits["broadcasts"] is not False
    why_not = Refusal("a Sum takes inputs of one shape at this opset") if spreads else None
    if site.elem_type(0) not in FLOATS:
        why_not = Refusal("a Sum takes no integers")

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        return builder.op("Sum", list(values))

    yield Form("a Sum", (("Sum", traits),), lambda: of_inputs(site, write, exact=True), why_not)


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

    is_other = count > 1 and (count, joint) != (2, op_type)
    why_not = None if is_other else Refusal("it has one input alone, or two of an operator of two")
    alone = None if count == 1 else Refusal("it has several inputs")
    yield Form(
        "an Identity",
        (("Identity", {}),),
        lambda: of_inputs(site, lambda builder, value: builder.op("Identity", [value]), exact=True),
        alone,
    )
    is_widened = computes_in_widened(site.scope, site.node)
    operators: Operators = ((joint, {"inputs": 2, "broadcasts": True, "doubles-of-floats": is_widened}),)
    yield Form("two at a time", operators, lambda: of_inputs(site, write, exact=joint == op_type), why_not)


def choice_forms(site: Site) -> Iterator[Form]:
    """Yield a Where whose branches are exchanged."""

    def write(builder: FragmentBuilder, condition: Any, chosen: Any, other: Any) -> Any:
        return builder.op("Where", [builder.op("Not", [condition]), other, chosen])

    turned = copied(site.node)
    turned.input[1], turned.input[2] = site.node.input[2], site.node.input[1]
    operators = (("Where", OTHERS["Where"](site.scope, turned)),)
    yield Form("the branches exchanged", operators, lambda: of_inputs(site, write, exact=True))
    yield from infinite_forms(site)
    yield from truth_forms(site)
    yield from chosen_within_bounds(site)
    yield _beside_zeros(site)


def _beside_zeros(site: Site) -> Form:
    """Return a Where as the sum of two that choose between one of its branches and 0."""
    elem_type = site.elem_type(1)

    def write(builder: FragmentBuilder, condition: Any, chosen: Any, other: Any) -> Any:
        zero = builder.constant(np.zeros((), helper.tensor_dtype_to_np_dtype(elem_type)), "zero")
        there = builder.op("Where", [condition, chosen, zero])
        return builder.op("Add", [there, builder.op("Where", [builder.op("Not", [condition]), other, zero])])

    own = traits_of(site.scope, site.node) or {}
    operators: Operators = (
        ("Where", {**own, "broadcasts": False}),
        ("Not", {}),
        ("Add", {name: own[name] for name in ("axes", "numbers") if name in own}),
    )
    is_number = elem_type in (*FLOATS, TensorProto.INT32, TensorProto.INT64)
    why_not = None if is_number else Refusal("it chooses no numbers that are added without a loss")
    return Form("both branches beside 0, and their sum", operators, lambda: of_inputs(site, write, exact=True), why_not)


def reciprocal_forms(site: Site) -> Iterator[Form]:
    """Yield what is divided by the sum of its own numbers as a product with the reciprocal of that."""
    own = traits_of(site.scope, site.node) or {}
    if own.get("by-own-sums") or own.get("by-own-sum") or own.get("by-open-length"):

        def write(builder: FragmentBuilder, dividend: Any, divisor: Any) -> Any:
            return builder.op("Mul", [dividend, builder.op("Reciprocal", [divisor])])

        operators: Operators = (("Reciprocal", {}), ("Mul", {"one-first": own.get("one-first")}))
        yield Form("a product with the reciprocal", operators, lambda: of_inputs(site, write, exact=False))


def negated_forms(site: Site) -> Iterator[Form]:
    """Yield a difference as a sum, and a quotient as that of both with the other sign."""
    first, is_sum = site.constant(0), site.node.op_type == "Sub"
    why_not = None if is_sum or first is not None else Refusal("it divides no constant")
    if site.elem_type(1) not in FLOATS:
        why_not = Refusal("only floats are negated without a loss")

    def write(builder: FragmentBuilder, minuend: Any, subtrahend: Any) -> Any:
        negative = builder.op("Neg", [subtrahend])
        if is_sum:
            return builder.op("Add", [minuend, negative])
        assert first is not None
        return builder.op("Div", [builder.constant(-first, "negative"), negative])

    own = traits_of(site.scope, site.node) or {}
    if is_sum and (own.get("from-softmax") or (own.get("constant-first") and not own.get("from-constant"))):

        def turned(builder: FragmentBuilder, minuend: Any, subtrahend: Any) -> Any:
            return builder.op("Neg", [builder.op("Sub", [subtrahend, minuend])])

        operators: Operators = (
            ("Sub", {"constant-first": False, "from-constant": False, "from-softmax": False}),
            ("Neg", {}),
        )
        yield Form("the difference negated", operators, lambda: of_inputs(site, turned, exact=True), why_not)
    name, joint = ("a sum", "Add") if is_sum else ("both with the other sign", "Div")
    of_quotients = () if is_sum else ("constant-first", "from-softmax", "constant-before-layer")
    told: Traits = {name: own.get(name) for name in ("axes", "one-first", "rows-before-open", *of_quotients)}
    yield Form(name, (("Neg", {}), (joint, told)), lambda: of_inputs(site, write, exact=True), why_not)
