"""Equal forms of comparisons, slopes, picked elements, pieces, copies, running sums, products and transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from padfix.graph import attributes
from padfix.operators.plain_traits import DFT_AXIS_AS_INPUT_SINCE, PICKING, dft_axis
from padfix.operators.refusal import Refusal
from padfix.operators.reshape_traits import is_square_volume
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import multiplied, multiplying, why_not_multiplied
from padfix.rules.build.byte_forms import byte_forms, dynamic_forms
from padfix.rules.build.constant_forms import filled_forms
from padfix.rules.build.element_forms import element_forms, type_forms
from padfix.rules.build.equation_forms import equation_forms
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.moved_forms import moved_forms, product_from_left
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.passing_forms import summed_with_nothing
from padfix.rules.build.picked_elements import sorted_forms
from padfix.rules.build.place_forms import compressed_forms, extreme_place_forms
from padfix.rules.build.sampled_forms import sampled_forms
from padfix.rules.build.split_forms import split_forms
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_SIZES_AS_INPUT_SINCE = 13

_NOTHING_DROPPED_SINCE = 7
"""Opset from which on a Dropout is for training only where it is told so."""

_MASK_OF_BOOLEANS_SINCE = 10

_MOST_COPIES = 64
"""Copies that are worth an input each of a Concat."""


def _less(site: Site) -> Iterator[Form]:
    def write(builder: FragmentBuilder, first: Any, second: Any) -> Any:
        return builder.op("Greater", [second, first])

    yield Form("what is greater, the other way round", (("Greater", {}),), lambda: of_inputs(site, write, exact=True))


def _sloped(site: Site) -> Iterator[Form]:
    """Yield a PRelu behind an Identity, with slopes for every axis, and as what is above zero and a slope below."""
    known, slopes = site.input_type(0), site.constant(1)
    own = traits_of(site.scope, site.node) or {}

    def apart(builder: FragmentBuilder, value: Any, slope: Any) -> Any:
        return builder.original(copied(site.node), [builder.op("Identity", [value]), slope])

    operators: Operators = (("PRelu", {**own, "behind-window": False}),)
    yield Form("an Identity before it", operators, lambda: of_inputs(site, apart, exact=True))
    rank = None if known is None else known.rank

    def whole(builder: FragmentBuilder, value: Any, slope: Any) -> Any:
        assert slopes is not None and rank is not None
        wide = slopes.reshape([1] * (rank - slopes.ndim) + list(slopes.shape))
        return builder.original(copied(site.node), [value, builder.constant(wide, "slope")])

    why_not = Refusal("its slopes are not constant") if slopes is None else None
    if rank is None or (slopes is not None and slopes.ndim >= rank):
        why_not = Refusal("it has slopes for every axis, or how many there are is not known")
    operators = (("PRelu", {**own, "slopes": "others"}),)
    yield Form("slopes for every axis", operators, lambda: of_inputs(site, whole, exact=True), why_not)

    def write(builder: FragmentBuilder, value: Any, slope: Any) -> Any:
        below = builder.op("Neg", [builder.op("Relu", [builder.op("Neg", [value])])])
        return builder.op("Add", [builder.op("Relu", [value]), builder.op("Mul", [below, slope])])

    operators = (("Relu", {}), ("Neg", {}), ("Mul", {"gate-second": False}), ("Add", {}))
    yield Form("the sum of both sides of zero", operators, lambda: of_inputs(site, write, exact=False))


def _softened(site: Site) -> Iterator[Form]:
    """Yield Softsign as a product, as pnnx takes the quotient for a Softsign again."""
    one = np.array(1, helper.tensor_dtype_to_np_dtype(site.elem_type(0) or 1))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        length = builder.op("Add", [builder.op("Abs", [value]), builder.constant(one, "one")])
        return builder.op("Mul", [value, builder.op("Reciprocal", [length])])

    operators: Operators = (("Abs", {}), ("Add", {}), ("Reciprocal", {}), ("Mul", {"gate-second": False}))
    yield Form("a product", operators, lambda: of_inputs(site, write, exact=False))


def _cut_off(site: Site) -> Iterator[Form]:
    """Yield a ThresholdedRelu as a product with 1 above its limit, and with 0 elsewhere."""
    found = attributes.find(site.node, "alpha")
    limit = np.array(1 if found is None else found.f, helper.tensor_dtype_to_np_dtype(site.elem_type(0) or 1))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        above = builder.op("Relu", [builder.op("Sub", [value, builder.constant(limit, "limit")])])
        return builder.op("Mul", [value, builder.op("Sign", [above])])

    operators: Operators = (("Sub", {}), ("Relu", {}), ("Sign", {}), ("Mul", {"gate-second": False}))
    yield Form("a product with 0 and 1", operators, lambda: of_inputs(site, write, exact=True))


def _scaled(site: Site) -> Iterator[Form]:
    """Yield Celu as Elu of what is divided by alpha."""
    found = attributes.find(site.node, "alpha")
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0) or 1)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        alpha = builder.constant(np.array(1 if found is None else found.f, dtype), "alpha")
        curve = builder.op("Elu", [builder.op("Div", [value, alpha])])
        return builder.op("Mul", [curve, alpha])

    yield Form(
        "a scaled Elu",
        (("Div", {}), ("Elu", {"behind-depthwise-volume": False}), ("Mul", {"gate-second": False})),
        lambda: of_inputs(site, write, exact=False),
    )


def _multiplied_elu(site: Site) -> Iterator[Form]:
    """Yield Selu as an Elu with a factor."""
    alpha, gamma = (attributes.find(site.node, name) for name in ("alpha", "gamma"))
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0) or 1)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        curve = builder.op("Elu", [value], {"alpha": _SELU[0] if alpha is None else alpha.f})
        factor = np.array(_SELU[1] if gamma is None else gamma.f, dtype)
        return builder.op("Mul", [curve, builder.constant(factor, "gamma")])

    operators: Operators = (("Elu", {"behind-depthwise-volume": False}), ("Mul", {"gate-second": False}))
    yield Form("an Elu with a factor", operators, lambda: of_inputs(site, write, exact=False))


_SELU = (1.67326319217681884765625, 1.05070102214813232421875)
"""The factors of a Selu that names none."""


def _matrices(site: Site) -> Iterator[Form]:
    """Yield a product with a list as one with a matrix of one row or column."""
    own = traits_of(site.scope, site.node) or {}
    ranks = [None if (known := site.input_type(place)) is None else known.rank for place in (0, 1)]
    told = site.constant(1) if own["list-second"] else None

    def write(builder: FragmentBuilder, first: Any, second: Any) -> Any:
        left = builder.unsqueezed(first, 0) if own["list-first"] else first
        right = second if told is None else builder.constant(told.reshape(-1, 1), "column")
        if own["list-second"] and told is None:
            right = builder.unsqueezed(second, 1)
        result = builder.op("MatMul", [left, right])
        if own["list-second"]:
            result = builder.unsqueezed(result, max(2, *(each or 0 for each in ranks)) - 1, back=True)
        if own["list-first"]:
            result = builder.unsqueezed(result, max(2, *(each or 0 for each in ranks)) - 2, back=True)
        return result

    traits: Traits = {"rank": max(2, ranks[0] or 0), "list-first": False, "list-second": False, "alike": "none"}
    operators: Operators = (("Unsqueeze", {"rank": 1}), ("MatMul", traits), ("Squeeze", {"rank": traits["rank"]}))
    why_not = None if None not in ranks else Refusal("the ranks of what it multiplies are not known")
    if own["list-first"] or own["list-second"]:
        yield Form("matrices in place of lists", operators, lambda: of_inputs(site, write, exact=False), why_not)
    yield from _row_by_row(site)
    yield from _turned_about(site)
    yield from product_from_left(site)


def _row_by_row(site: Site) -> Iterator[Form]:
    """Yield a product with a matrix as that of all the rows that there are."""
    known, second = site.input_type(0), site.input_type(1)
    lengths = () if known is None or known.shape is None else known.shape
    before = [each if isinstance(each, int) else -1 for each in lengths[:-1]]
    columns = second.shape[1] if second is not None and second.shape is not None and len(second.shape) == 2 else None
    why_not = None
    if len(lengths) < 3 or not isinstance(lengths[-1], int) or not isinstance(columns, int):
        why_not = Refusal("it is no product of rows with a matrix, or how long they are is not known (--shape)")
    elif before.count(-1) > 1 or 0 in before:
        why_not = Refusal("it needs the lengths of its input (--shape)")

    def write(builder: FragmentBuilder, first: Any, matrix: Any) -> Any:
        assert isinstance(columns, int)
        assert isinstance(lengths[-1], int)
        product = builder.op("MatMul", [builder.reshaped(first, [-1, lengths[-1]]), matrix])
        return builder.reshaped(product, [*before, columns])

    traits: Traits = {"rank": 2, "by-a-matrix": True, "list-first": False, "list-second": False, "alike": "none"}
    is_square = is_square_volume((*before, columns))
    back: Traits = {"rank": len(lengths), "of-square-product": is_square}
    operators: Operators = (("Reshape", {"rank": 2}), ("MatMul", traits), ("Reshape", back))
    yield Form("all rows in one matrix", operators, lambda: of_inputs(site, write, exact=False), why_not)


def _turned_about(site: Site) -> Iterator[Form]:
    """Yield a product with a matrix as that of the matrix, turned, with what is turned before it and back behind it."""
    known, second = site.input_type(0), site.input_type(1)
    rank = 0 if known is None or known.rank is None else known.rank
    turned, matrix = [*range(rank - 2), rank - 1, rank - 2], site.constant(1)
    is_by_matrix = second is not None and second.rank == 2

    def write(builder: FragmentBuilder, first: Any, other: Any) -> Any:
        if matrix is None:
            left = builder.op("Transpose", [other], {"perm": [1, 0]})
        else:
            left = builder.constant(np.ascontiguousarray(matrix.T), "turned")
        product = builder.op("MatMul", [left, builder.op("Transpose", [first], {"perm": turned})])
        return builder.op("Transpose", [product], {"perm": turned})

    turns: Traits = {"rank": rank, "about-a-product": True}
    traits: Traits = {"rank": 2, "by-a-matrix": False, "list-first": False, "list-second": False, "alike": "none"}
    why_not = None if rank > 2 and is_by_matrix else Refusal("it is no product of several matrices with one")
    operators: Operators = (("Transpose", turns), ("MatMul", traits))
    yield Form("the matrix before what is turned", operators, lambda: of_inputs(site, write, exact=False), why_not)


def _transformed(site: Site) -> Iterator[Form]:
    """Yield a DFT of the first axis behind the batch, before and behind which that axis is exchanged with its own."""
    axis, known = dft_axis(site.scope, site.node), site.input_type(0)
    rank = 0 if known is None or known.rank is None else known.rank
    order = list(range(rank))
    if axis is not None and rank > max(axis, 1):
        order[1], order[axis] = axis, 1

    def write(builder: FragmentBuilder, value: Any, *others: Any) -> Any:
        turned = builder.op("Transpose", [value], {"perm": order}) if axis != 1 else value
        node = copied(site.node, without=("axis",))
        if builder.opset < DFT_AXIS_AS_INPUT_SINCE:
            attributes.set_integer(node, "axis", 1)
            inputs = [turned, *others]
        else:
            inputs = [turned, builder.input(site.input_name(1)), builder.constant(np.array(1, np.int64), "axis")]
        result = builder.original(node, inputs)
        return builder.op("Transpose", [result], {"perm": order}) if axis != 1 else result

    own = {**(traits_of(site.scope, site.node) or {}), "first-axis": True, "axis-written": True}
    turns = ("Transpose", {"rank": rank, "turned-back": False, "turned-back-alike": False})
    why_not = None if rank and axis is not None else Refusal("its axis, or how many there are, is not known")
    yield Form("the first axis", (turns, ("DFT", own)), lambda: of_inputs(site, write, exact=False), why_not)


def _joined(site: Site) -> Iterator[Form]:
    """Yield a Tile as its copies joined, axis by axis."""
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


def _repeated(site: Site) -> Iterator[Form]:
    """Yield an Expand as copies of what has one element, joined axis by axis."""
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


def _added_up(site: Site) -> Iterator[Form]:
    """Yield a CumSum as a product with a matrix of ones on one side of its diagonal."""
    known, number = site.input_type(0), site.constant(1)
    lengths = () if known is None or known.shape is None else known.shape
    axis = 0 if number is None or not lengths else int(number.reshape(-1)[0]) % len(lengths)
    size = lengths[axis] if lengths else None
    why_not = None
    if number is None or not isinstance(size, int):
        why_not = Refusal("its axis, or how long that is, is not known")
    else:
        why_not = why_not_multiplied(site.elem_type(0), [(size, size)])

    def write(builder: FragmentBuilder, value: Any, _: Any) -> Any:
        assert isinstance(size, int)
        ones = np.ones((size, size), helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
        skipped = 1 if attributes.integer(site.node, "exclusive", 0) else 0
        turned = attributes.integer(site.node, "reverse", 0)
        matrix = np.triu(ones, skipped) if turned else np.tril(ones, -skipped)
        return multiplied(builder, value, {axis: matrix}, lengths)

    operators = multiplying([axis], lengths) if lengths else ()
    yield Form("a product with ones", operators, lambda: of_inputs(site, write, exact=False), why_not)


def _passed(site: Site) -> Iterator[Form]:
    """Yield a Dropout as the Identity that it is where nothing is dropped, and all of its mask as kept."""
    mode = site.constant(2) if site.input_name(2) else np.array(False)
    is_old = site.opset < _NOTHING_DROPPED_SINCE and not attributes.integer(site.node, "is_test", 0)
    is_random = is_old or mode is None or bool(mode)
    mask = site.node.output[1] if len(site.node.output) > 1 else ""
    why_not = Refusal("it drops elements, or whether it does is not known") if is_random else None
    known = site.input_type(0)
    lengths = None if known is None else known.lengths
    is_asked = site.scope.is_used(mask)
    if is_asked and site.opset < _MASK_OF_BOOLEANS_SINCE:
        why_not = Refusal("its mask is of numbers in this opset")
    kept: Operators = ()
    if is_asked:
        kept = (("Identity", {}),) if lengths else (("Shape", {}), ("ConstantOfShape", {}))
    traits = {**(traits_of(site.scope, site.node) or {}), "constant-booleans": False}
    operators: Operators = (("Identity", traits),)

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(0))
        builder.output(site.node.output[0], builder.op("Identity", [value]))
        if is_asked and lengths:
            builder.output(mask, builder.op("Identity", [builder.constant(np.ones(lengths, np.bool_), "kept")]))
        elif is_asked:
            true = helper.make_tensor("", TensorProto.BOOL, [1], [True])
            builder.output(mask, builder.op("ConstantOfShape", [builder.op("Shape", [value])], {"value": true}))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    yield Form("an Identity", (*operators, *kept), write, why_not)


def _named(site: Site) -> Iterator[Form]:
    """Yield a Squeeze with its axes, which are all that have one element; and as it is, in an opset of today."""
    lengths = shape if (known := site.input_type(0)) is not None and (shape := known.shape) is not None else (None,)
    axes = [axis for axis, length in enumerate(lengths) if length == 1]
    why_not = None if all(isinstance(length, int) for length in lengths) else Refusal("a length is left open (--shape)")

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.unsqueezed(value, *axes, back=True)

    def modern(builder: FragmentBuilder, value: Any) -> Any:
        return builder.original(copied(site.node), [value])

    operators: Operators = (("Squeeze", {"axes-written": True}),)
    yield Form("its axes written", operators, lambda: of_inputs(site, write, exact=True), why_not)
    operators = (("Squeeze", {"axes-written": False}),)
    as_it_is = _SIZES_AS_INPUT_SINCE
    yield Form("as opset 13 has it", operators, lambda: of_inputs(site, modern, exact=True), opset=as_it_is)


def _limited(site: Site) -> Iterator[Form]:
    """Yield a NonMaxSuppression whose limits are lists of one number."""
    limits = range(2, len(site.node.input))
    unread = any(site.input_name(place) and site.constant(place) is None for place in limits)

    def write() -> Rewrite:
        builder = site.builder()
        inputs = [builder.input(site.input_name(place)) for place in range(2)]
        for place in limits:
            told = site.constant(place)
            inputs.append(builder.input("") if told is None else builder.constant(told.reshape(-1), "limit"))
        builder.output(site.node.output[0], builder.original(copied(site.node), inputs))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = Refusal("its limits are not constant") if unread else None
    own = {**(traits_of(site.scope, site.node) or {}), "limits-as-numbers": False}
    yield Form("its limits as lists", (("NonMaxSuppression", own),), write, why_not)


def _cast_twice(site: Site) -> Iterator[Form]:
    """Yield a Cast by way of whole numbers of 32 bits, which all bytes are."""

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.original(copied(site.node), [builder.op("Cast", [value], {"to": TensorProto.INT32})])

    own = traits_of(site.scope, site.node) or {}
    casts = ({**own, "gives": "integer"}, {**own, "elements": "integer", "unsigned": False})
    why_not = Refusal("its data are no bytes") if own.get("elements") != "byte" else None
    operators = tuple(("Cast", each) for each in casts)
    yield Form("a Cast to whole numbers before it", operators, lambda: of_inputs(site, write, exact=True), why_not)
    yield summed_with_nothing(site)


def _as_tensor(site: Site) -> Iterator[Form]:
    """Yield a Constant of a tensor."""
    value = site.scope.constant(site.node.output[0])

    def write() -> Rewrite:
        assert value is not None
        node = helper.make_node("Constant", [], [site.node.output[0]], value=numpy_helper.from_array(value))
        return Rewrite(site.only(node), ({},), exact=True)

    why_not = Refusal("it holds no numbers") if value is None else None
    own = traits_of(site.scope, site.node) or {}
    yield Form("a tensor", (("Constant", {**own, "of-tensor": True}),), write, why_not)


PLAIN_FORMS: Mapping[str, Callable[[Site], Iterator[Form]]] = {
    **dict.fromkeys(PICKING, element_forms),
    "ReverseSequence": moved_forms,
    **dict.fromkeys(("ArgMax", "ArgMin"), extreme_place_forms),
    "Cast": _cast_twice,
    "CastLike": type_forms,
    "Celu": _scaled,
    "Constant": _as_tensor,
    "ConstantOfShape": filled_forms,
    "Compress": compressed_forms,
    "CumSum": _added_up,
    "DFT": _transformed,
    "DynamicQuantizeLinear": dynamic_forms,
    "Dropout": _passed,
    "Einsum": equation_forms,
    "Expand": _repeated,
    "GridSample": sampled_forms,
    "Less": _less,
    "MatMul": _matrices,
    **dict.fromkeys(("MatMulInteger", "QLinearMatMul"), byte_forms),
    "NonMaxSuppression": _limited,
    "PRelu": _sloped,
    "Selu": _multiplied_elu,
    "Softsign": _softened,
    "Split": split_forms,
    "Squeeze": _named,
    "ThresholdedRelu": _cut_off,
    "Tile": _joined,
    "TopK": sorted_forms,
}
"""By the type of an operator: what yields its forms."""
