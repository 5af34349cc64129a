"""Equal forms of what gives its data as they are, of a Concat with nothing, and of a power."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.operators.axis_order import ORDER
from padfix.operators.constant_chains import chain_of
from padfix.operators.passing import passed_on, pieces_of
from padfix.operators.reduced_lines import by_channels_of_lines
from padfix.operators.refusal import Refusal
from padfix.operators.spelled_norms import is_norm_of_squares, squared
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.index_forms import MAXIMUM_OF_INTEGERS_SINCE
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.node_trials import chain_trial, like, trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

SIGN_SINCE = 9
"""The opset from which on there is a Sign."""

_SIGNED = (*FLOATS, TensorProto.INT32, TensorProto.INT64)

_HALF = 0.5
"""The exponent of a square root."""

_MOST_FACTORS = 16


_TO_EACH_ELEMENT: Mapping[str, str] = {
    **dict.fromkeys(("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"), "Identity"),
    **dict.fromkeys(("ReduceL1", "ReduceL2"), "Abs"),
    "ReduceLogSum": "Log",
    "ReduceLogSumExp": "Identity",
    "ReduceSumSquare": "Mul",
}
"""What a reduction does to each element by itself."""


def reducing_nothing(site: Site) -> Form:
    """Return what reduces no axis as what it does to each element: most leave it as it is."""
    op_type = _TO_EACH_ELEMENT[site.node.op_type]

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(0))
        builder.output(site.node.output[0], builder.op(op_type, [value, value] if op_type == "Mul" else [value]))
        return Rewrite(builder.build(), trials_of(site), exact=op_type == "Identity")

    traits: Traits = {"gate-second": False} if op_type == "Mul" else {}
    return Form("what it does to each element", ((op_type, traits),), write)


def negated_twice(site: Site) -> Form:
    """Return what gives its data as they are with the sign changed and changed back, which is not taken away."""
    name = passed_on(site.scope, site.node)
    others = [each for each in site.node.input if each and each != name]
    chain = [one for each in others if site.scope.constant(each) is None for one in _computing(site, each)]

    def write() -> Rewrite:
        builder = site.builder()
        back = builder.op("Neg", [builder.op("Neg", [builder.input(name)])])
        builder.output(site.node.output[0], back)
        if not chain:
            return Rewrite(builder.build(), trials_of(site))
        # What is neutral is so for the lengths that there are alone.
        trial = {**chain_trial(site.scope, chain), **({} if known is None else {name: like(known)})}
        given = {each: TrialInput.of(value) for each in others if (value := site.scope.constant(each)) is not None}
        return Rewrite(builder.build(), ({**trial, **given},), replaces=tuple(chain))

    known = site.scope.type_of(name)
    why_not = None
    if site.scope.constant(name) is not None:
        why_not = Refusal("it is a constant, whatever the data")
    elif known is None or known.elem_type not in _SIGNED:
        why_not = Refusal("such numbers have no sign")
    elif any(site.scope.is_used(more) for more in site.node.output[1:] if more):
        why_not = Refusal("it gives more than its data")
    return Form("the sign changed twice", (("Neg", {}),), write, why_not)


def _computing(site: Site, name: str) -> list[NodeProto]:
    """Return the nodes that work a value out of constants and lengths; none where it is a constant."""
    producer = site.scope.own_producer(name)
    return (chain_of(site.scope, producer) or []) if producer is not None else []


def multiplied_by_one(site: Site) -> Form:
    """Return what changes a result of the model one by one, of that result times 1, before which nothing moves it."""
    own = traits_of(site.scope, site.node) or {}

    def write() -> Rewrite:
        def behind(builder: FragmentBuilder, value: Any, *others: Any) -> Any:
            one = builder.constant(np.ones(1, helper.tensor_dtype_to_np_dtype(site.elem_type(0))), "one")
            return builder.original(copied(site.node), [builder.op("Mul", [value, one]), *others])

        return of_inputs(site, behind, exact=True)

    why_not = None
    if not all(site.node.input) or site.elem_type(0) not in _SIGNED:
        why_not = Refusal("it leaves an input out, or its data are no numbers with a sign")
    marks = ("reads-moved-result", "activates-result", "cuts-volume-off")
    operators: Operators = (
        ("Mul", {}),
        (site.node.op_type, {**own, **{mark: False for mark in marks if mark in own}}),
    )
    return Form("its data times 1", operators, write, why_not)


APART = ("by-channels-of-lines", "sums-dequantized-lines", "cuts-quantized", "from-other-bytes", "scales-groups")
"""Traits of what a runtime joins with what is before it, and that a maximum keeps apart from that."""


def behind_maximum(site: Site) -> Form:
    """Return what is joined with what is before it, apart from that: of the larger of its data and themselves."""
    own, place = traits_of(site.scope, site.node) or {}, by_channels_of_lines(site.scope, site.node)
    computed = [at for at, name in enumerate(site.node.input) if name and site.constant(at) is None]
    at = computed[0] if place is None and computed else place or 0
    since = 1 if site.elem_type(at) in FLOATS else MAXIMUM_OF_INTEGERS_SINCE

    def write() -> Rewrite:
        builder = site.builder(max(site.opset, since))
        given = [builder.input(name) for name in site.node.input]
        given[at] = builder.op("Max", [given[at]] * 2)
        return Rewrite(builder.ending_in(copied(site.node), given), trials_of(site), exact=True)

    operators: Operators = (
        ("Max", {"inputs": 2, "broadcasts": False}),
        (site.node.op_type, {**own, **dict.fromkeys(APART, False)}),
    )
    return Form("the larger of its data and themselves before it", operators, write, None, since)


def of_fewer_axes(site: Site) -> Form:
    """Return what is computed with a constant of one element as with a number, and given that one's axes behind it."""
    own, known = traits_of(site.scope, site.node) or {}, site.scope.type_of(site.node.output[0])
    told = [site.constant(place) for place in range(len(site.node.input))]
    types = [site.input_type(place) for place, value in enumerate(told) if value is None]
    rank = max((each.rank or 0 for each in types if each is not None), default=0)
    more = 0 if known is None or known.rank is None else known.rank - rank

    def write() -> Rewrite:
        builder = site.builder()
        given = [
            builder.input(name)
            if value is None
            else builder.constant(value.reshape(()) if value.size == 1 else value, "number")
            for name, value in zip(site.node.input, told, strict=True)
        ]
        result = builder.original(copied(site.node), given)
        builder.output(site.node.output[0], builder.unsqueezed(result, *range(more)))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    is_alone = all(value is None or value.ndim <= rank or value.size == 1 for value in told)
    why_not = None if rank and more > 0 and is_alone else Refusal("how many axes its data have is not known")
    operators: Operators = (
        (site.node.op_type, {**own, "one-of-more-axes": False, "one-first": False}),
        ("Unsqueeze", {"rank": rank}),
    )
    return Form("a number, and more axes behind it", operators, write, why_not)


def kept_written(site: Site) -> Form:
    """Return the place of an extreme with what is left to the default: that its axis is kept."""
    node = copied(site.node)
    attributes.set_integer(node, "keepdims", 1)

    def write() -> Rewrite:
        return Rewrite(site.only(node), trials_of(site), exact=True)

    # What else the target has against it has forms of its own.
    return Form("that its axis is kept, written", (), write)


def identity_behind(site: Site) -> Form:
    """Return a node with an Identity behind it, and none before it, so that it gives no result of the model itself."""
    first, before = site.node.input[0], list[NodeProto]()
    while (maker := site.scope.own_producer(first)) is not None and maker.op_type == "Identity":
        first = maker.input[0]
        before.insert(0, maker)

    def write() -> Rewrite:
        builder = site.builder()
        whole = builder.original(copied(site.node), [builder.input(name) for name in (first, *site.node.input[1:])])
        builder.output(site.node.output[0], builder.op("Identity", [whole]))
        trials = tuple(
            {first if name == site.node.input[0] else name: data for name, data in each.items()}
            for each in trials_of(site)
        )
        return Rewrite(builder.build(), trials, exact=True, replaces=tuple(before))

    own = traits_of(site.scope, site.node) or {}
    maker = site.scope.own_producer(first)
    why_not = Refusal("it is of a square") if maker is not None and maker.op_type in ("Mul", "Pow") else None
    return Form("an Identity behind it", ((site.node.op_type, {**own, "gives-squeezed": False}),), write, why_not)


_AS_RESULT = ("as-result", "turns-longs")
"""Traits of what makes integers that are a result of the model."""


def summed_with_nothing(site: Site) -> Form:
    """Return what makes integers with 0 added behind it, so that it gives no result of the model itself."""
    own = traits_of(site.scope, site.node) or {}

    def write() -> Rewrite:
        builder = site.builder()
        whole = builder.original(copied(site.node), [builder.input(name) for name in site.node.input])
        nothing = builder.constant(np.zeros((), np.int64), "nothing")
        builder.output(site.node.output[0], builder.op("Add", [whole, nothing]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None if any(own.get(each) for each in _AS_RESULT) else Refusal("it gives no result")
    told = {each: False for each in _AS_RESULT if each in own}
    operators = ((site.node.op_type, {**own, **told}), ("Add", {"numbers": "integer"}))
    return Form("a sum with 0 behind it", operators, write, why_not)


def joined_forms(site: Site) -> Iterator[Form]:
    """Yield a Concat of those inputs that have elements."""
    pieces = pieces_of(site.scope, site.node)

    def write() -> Rewrite:
        builder = site.builder()
        axis = attributes.integer(site.node, "axis", 1)
        builder.output(
            site.node.output[0], builder.op("Concat", [builder.input(each) for each in pieces], {"axis": axis})
        )
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None if 0 < len(pieces) < len(site.node.input) else Refusal("every input has elements, or none has")
    own: Traits = {"joins-nothing": False, "joins-empty-constant": False}
    yield Form("what has elements, joined", (("Concat", own),), write, why_not)


def doubled_forms(site: Site) -> Iterator[Form]:
    """Yield a Concat with a constant of one element, first or last, as one with two of them, less the one too many."""
    told = [site.constant(place) for place in range(len(site.node.input))]
    own, known = traits_of(site.scope, site.node) or {}, site.input_type(0)
    axis, rank = attributes.integer(site.node, "axis", 1) or 0, 0 if known is None else known.rank or 0
    ends = (0, len(told) - 1)
    doubled = [place for place, value in enumerate(told) if value is not None and value.size == 1]
    why_not = None
    if not doubled or not set(doubled) <= set(ends) or not rank:
        why_not = Refusal("no constant of one element is its first or last input, or another one is")

    def write() -> Rewrite:
        builder = site.builder()
        given = [builder.input(name) for name in site.node.input]
        for place, value in enumerate(told):
            if value is not None and place in doubled:
                given[place] = builder.constant(np.concatenate([value] * 2, axis), "twice")
        joined = builder.op("Concat", given, {"axis": axis})
        bounds = [int(ends[0] in doubled), -1 if ends[1] in doubled else int(np.iinfo(np.int64).max)]
        result = sliced(builder, joined, bounds[:1], bounds[1:], [axis % rank])
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    order = {name: own[name] for name in ORDER if name in own}
    operators: Operators = (
        ("Concat", {**own, "joins-a-number": False}),
        ("Slice", {"rank": rank, **order}),
    )
    yield Form("its number twice, and a Slice", operators, write, why_not)


def power_forms(site: Site) -> Iterator[Form]:
    """Yield a power of a whole number as a product, one of a half as a root, and one of what is kept from zero."""
    exponents = site.constant(1)
    number = float(exponents.reshape(-1)[0]) if exponents is not None and exponents.size == 1 else 0.5
    factors = abs(int(number))
    why_not = _why_not_raised(site, exponents)
    if why_not is None and (not number.is_integer() or not 0 < factors <= _MOST_FACTORS):
        why_not = Refusal(f"its exponent is no whole number from 1 to {_MOST_FACTORS}, or one below 0")

    def write() -> Rewrite:
        builder = site.builder()
        data = builder.input(site.input_name(0))
        value = _product(builder, data, factors) if factors > 1 else builder.op("Identity", [data])
        builder.output(site.node.output[0], value if number > 0 else builder.op("Reciprocal", [value]))
        return Rewrite(builder.build(), trials_of(site))

    squares = {"squares-for-norm": number == 2 and is_norm_of_squares(site.scope, site.node)}
    product = {
        "gate-second": False,
        "squares": factors > 1,
        "of-longs": site.elem_type(0) == TensorProto.INT64,
        **squares,
    }
    yield Form("a product", (("Mul", product), ("Reciprocal", {})), write, why_not)
    yield _of_sizes(site, why_not if number == 2 else Refusal("it is no square"))
    yield _root(site, number, _why_not_raised(site, exponents))
    yield _kept_from_zero(site, number, _why_not_raised(site, exponents))


def squared_forms(site: Site) -> Iterator[Form]:
    """Yield a product of data with themselves as a power, and as one of their sizes."""
    makers = () if len(set(site.node.input)) == 1 else _alike_makers(site)
    types = {name: site.scope.type_of(name) for each in makers for name in each.input}
    trial = {name: like(known) for name, known in types.items() if known is not None}

    def write() -> Rewrite:
        builder = site.builder()
        two = builder.constant(np.array(2, helper.tensor_dtype_to_np_dtype(site.elem_type(0))), "two")
        if not makers:
            builder.output(site.node.output[0], builder.op("Pow", [builder.input(site.input_name(0)), two]))
            return Rewrite(builder.build(), trials_of(site))
        data = builder.original(copied(makers[0]), [builder.input(name) for name in makers[0].input])
        builder.output(site.node.output[0], builder.op("Pow", [data, two]))
        return Rewrite(builder.build(), (trial,), replaces=makers)

    why_not = Refusal("its factors are two") if len(set(site.node.input)) > 1 and not makers else None
    if site.elem_type(0) not in FLOATS:
        why_not = Refusal("its data are no floats")
    elif makers and None in types.values():
        why_not = Refusal("the types of what its factors are computed from are not known")
    squares = {"squares-for-norm": is_norm_of_squares(site.scope, site.node)}
    yield Form("a power", (("Pow", {"exponent": "two", **squares}),), write, why_not)
    why_not = why_not or (Refusal("its factors are two") if makers else None)
    yield _of_sizes(site, why_not)


def _alike_makers(site: Site) -> tuple[NodeProto, ...]:
    """Return the two differences that are one, of which a product is the square."""
    if not squared(site.scope, site.node):
        return ()
    makers = [site.scope.own_producer(name) for name in site.node.input]
    return tuple(each for each in makers if each is not None and each.op_type == "Sub")


def _of_sizes(site: Site, why_not: Refusal | None) -> Form:
    """Return a square as that of the size, which is the same and read by nothing else."""

    def write() -> Rewrite:
        builder = site.builder()
        size = builder.op("Abs", [builder.input(site.input_name(0))])
        builder.output(site.node.output[0], builder.op("Mul", [size, size]))
        return Rewrite(builder.build(), trials_of(site))

    return Form("the square of its size", (("Abs", {}), ("Mul", {"gate-second": False})), write, why_not)


def typed_forms(site: Site) -> Iterator[Form]:
    """Yield a power of floats whose exponents are floats of their type as well."""
    told, elem_type = site.constant(1), site.elem_type(0)

    def write() -> Rewrite:
        builder = site.builder()
        data, exponent = (builder.input(name) for name in site.node.input)
        if told is None:
            exponent = builder.op("Cast", [exponent], {"to": elem_type})
        else:
            exponent = builder.constant(told.astype(helper.tensor_dtype_to_np_dtype(elem_type)), "exponent")
        builder.output(site.node.output[0], builder.original(copied(site.node), [data, exponent]))
        return Rewrite(builder.build(), trials_of(site))

    own = {**(traits_of(site.scope, site.node) or {}), "types-differ": False}
    operators: Operators = (("Pow", own),) if told is not None else (("Cast", {"gives": "single"}), ("Pow", own))
    why_not = None if own.get("exponent") and elem_type in FLOATS else Refusal("its data are no floats")
    if site.elem_type(1) == elem_type:
        why_not = Refusal("they are of one type")
    yield Form("exponents of the type of its data", operators, write, why_not)


def _why_not_raised(site: Site, exponents: np.ndarray | None) -> Refusal | None:
    """Return why a power is not that of one constant exponent, in the shape of its data."""
    known = site.input_type(0)
    if exponents is None or exponents.size != 1:
        return Refusal("its exponent is not one constant")
    if known is None or known.rank is None or known.rank < exponents.ndim or site.elem_type(0) not in FLOATS:
        return Refusal("its data are no floats, or of fewer axes than its exponent")
    return None


def _root(site: Site, number: float, why_not: Refusal | None) -> Form:
    """Return a power of a half as a square root."""

    def write() -> Rewrite:
        builder = site.builder()
        root = builder.op("Sqrt", [builder.input(site.input_name(0))])
        builder.output(site.node.output[0], root if number > 0 else builder.op("Reciprocal", [root]))
        return Rewrite(builder.build(), trials_of(site))

    if why_not is None and abs(number) != _HALF:
        why_not = Refusal("its exponent is no half")
    return Form("a square root", (("Sqrt", {}), ("Reciprocal", {})), write, why_not)


def _kept_from_zero(site: Site, number: float, why_not: Refusal | None) -> Form:
    """Return a power of numbers to which 1 is added where they are zero, and which is zero there."""

    def write() -> Rewrite:
        builder = site.builder(max(site.opset, SIGN_SINCE))
        data, exponent = (builder.input(name) for name in site.node.input)
        one = builder.constant(np.array(1, helper.tensor_dtype_to_np_dtype(site.elem_type(0))), "one")
        sign = builder.op("Sign", [builder.op("Abs", [data])])
        kept = builder.op("Add", [data, builder.op("Sub", [one, sign])])
        power = builder.original(copied(site.node), [kept, exponent])
        builder.output(site.node.output[0], builder.op("Mul", [power, sign]))
        return Rewrite(builder.build(), trials_of(site))

    own = {**(traits_of(site.scope, site.node) or {}), "of-positive": True}
    operators: Operators = (*((each, {}) for each in ("Abs", "Sign", "Sub", "Add", "Mul")), ("Pow", own))
    if why_not is None and (number <= 0 or number.is_integer()):
        why_not = Refusal("its exponent is no fraction above 0")
    return Form("a power of what is kept from zero", operators, write, why_not, SIGN_SINCE)


def _product(builder: FragmentBuilder, value: Any, factors: int) -> Any:
    """Return a value multiplied with itself, by squares of squares."""
    if factors == 1:
        return value
    half = _product(builder, value, factors // 2)
    square = builder.op("Mul", [half, half])
    return builder.op("Mul", [square, value]) if factors % 2 else square


def parted_forms(site: Site) -> Iterator[Form]:
    """Yield a Concat in which each constant is one of its own, where one is joined several times."""

    def write() -> Rewrite:
        builder = site.builder()
        told = [site.constant(place) for place in range(len(site.node.input))]
        given = [
            builder.input(name) if value is None else builder.constant(value, "given")
            for name, value in zip(site.node.input, told, strict=True)
        ]
        axis = attributes.integer(site.node, "axis", 1)
        builder.output(site.node.output[0], builder.op("Concat", given, {"axis": axis}))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    own = {**(traits_of(site.scope, site.node) or {}), "joins-constant-again": False}
    yield Form("constants of its own", (("Concat", own),), write)
