"""Softmax, LogSoftmax and Hardmax in other equal forms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.axis_order import before_reshapes, order_of
from padfix.operators.numbers import numbers_of
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Site
from padfix.rules.build.along_axes import multiplied, multiplying, why_not_multiplied
from padfix.rules.build.elementary_forms import (
    AT_ONCE,
    Write,
    in_a_row,
    reduction_traits,
    steps_of,
    stepwise,
    unranked,
    written,
)
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators
from padfix.rules.build.one_axis import largest_along, sum_along
from padfix.rules.build.passing_forms import SIGN_SINCE
from padfix.rules.build.transposed import TO_THE_END
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_FROM_THE_END = 11
"""The first opset whose Softmax counts its axis from the end, as tells that it is the last whatever their number."""

_MOST_ELEMENTS = 1 << 20

_ONE_AXIS_SINCE = 13
"""The first opset whose Softmax is along one axis alone."""


def softmax_forms(site: Site) -> Iterator[Form]:
    """Yield a Softmax with a Relu behind it, of its data without their largest, and of the matrix that it means."""
    own = {**(traits_of(site.scope, site.node) or {}), "between-bytes": False}
    known, axis = site.input_type(0), attributes.integer(site.node, "axis", -1) or 0
    rank = 0 if known is None or known.rank is None else known.rank

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.op("Relu", [builder.original(copied(site.node), [value])])

    yield Form("a Relu behind it", (("Softmax", own), ("Relu", {})), partial(written, site, write, 2))

    largest, taken = largest_along(site, axis % max(rank, 1))

    def lessened(builder: FragmentBuilder, value: Any) -> Any:
        return builder.original(copied(site.node), [builder.op("Sub", [value, taken(builder, value)])])

    operators: Operators = (
        *largest,
        ("Sub", {"from-constant": False}),
        ("Softmax", {**own, "largest-off": True}),
    )
    why_not = Refusal("it is along several axes, or of how many is not known") if own["takes-axes-together"] else None
    yield Form("its largest taken off", operators, partial(written, site, lessened), why_not or unranked(site))
    yield from matrix_forms(site)
    yield _of_rows(site)
    for is_divided in (True, False):
        yield _share(site, is_divided=is_divided)


def _share(site: Site, *, is_divided: bool) -> Form:
    """Return a Softmax as each power divided by their sum, or times its reciprocal, whatever the lengths are."""
    axes, at_once, largest, total = _along(site)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        apart = builder.op("Sub", [value, stepwise("ReduceMax", axes, at_once, True)(builder, value)])
        powers = builder.op("Exp", [apart])
        summed = stepwise("ReduceSum", axes, at_once, True)(builder, powers)
        if is_divided:
            return builder.op("Div", [powers, summed])
        return builder.op("Mul", [powers, builder.op("Reciprocal", [summed])])

    ends: Operators = (("Reciprocal", {}), ("Mul", {}))
    if is_divided:
        several = len(axes) > 1
        told: Traits = {"by-own-sum": not several, "by-own-sums": several}
        ends = (("Div", {**told, "numbers": numbers_of(site.scope, site.input_name(0))}),)
    rows_out = (traits_of(site.scope, site.node) or {}).get("leaves-rows-out", False)
    operators = (*largest, ("Exp", {"falls-far": True, "leaves-rows-out": rows_out}), *total, *ends)
    name = "shares of a sum" if is_divided else "powers times the reciprocal of their sum"
    return Form(name, operators, partial(written, site, write), unranked(site))


def _along(site: Site) -> tuple[list[int], int, Operators, Operators]:
    """Return the axes of a Softmax, how many are reduced at once, and what finds the largest and what sums."""
    known = site.input_type(0)
    rank = 0 if known is None or known.rank is None else known.rank
    together = site.opset < _ONE_AXIS_SINCE
    first = (attributes.integer(site.node, "axis", 1 if together else -1) or 0) % max(rank, 1)
    axes = list(range(first, rank)) if together else [first]
    at_once = 1 if len(axes) == rank else AT_ONCE  # runtimes mind all axes at once
    largest, total = (
        tuple(
            (each, {**reduction_traits(each, site.opset, step), "axes-listed": len(step) < rank})
            for step in steps_of(axes, at_once)
        )
        for each in ("ReduceMax", "ReduceSum")
    )
    return axes, at_once, largest, total


def _with_axis(site: Site) -> Iterator[Form]:
    """Yield a Softmax whose axis is written, and counted from the begin."""
    own = traits_of(site.scope, site.node) or {}
    axis = attributes.integer(site.node, "axis", -1 if site.opset >= _ONE_AXIS_SINCE else 1) or 0

    def write(axis: int, builder: FragmentBuilder, value: Any) -> Any:
        node = copied(site.node)
        attributes.set_integer(node, "axis", axis)
        return builder.original(node, [value])

    told = {**own, "axis-written": True}
    if not own["axis-written"]:
        yield Form("its axis written", ((site.node.op_type, told),), partial(written, site, partial(write, axis)))
    known = site.input_type(0)
    if axis < 0 and known is not None and known.rank:
        told = {**told, "axis-from-end": False}
        write_it = partial(written, site, partial(write, axis + known.rank))
        yield Form("its axis counted from the begin", ((site.node.op_type, told),), write_it)


def matrix_forms(site: Site) -> Iterator[Form]:
    """Yield a Softmax with its axis written, and one that takes axes together as that of the matrix that it means."""
    yield from _with_axis(site)
    if (traits_of(site.scope, site.node) or {}).get("takes-axes-together") is False:
        return
    known = site.input_type(0)
    shape = None if known is None else known.shape
    axis = attributes.integer(site.node, "axis", 1) or 0
    why_not, behind = None, list[int]()
    if shape is None:
        why_not = Refusal("an equal form needs the lengths of its input (--shape)")
    else:
        axis %= max(len(shape), 1)
        behind = [each for each in shape[1:] if isinstance(each, int)]
        if len(behind) < len(shape) - 1:
            why_not = Refusal("an equal form needs the lengths of its input (--shape)")
    batch = shape[0] if shape and isinstance(shape[0], int) else -1
    first = batch if axis == 0 else 0 if axis == 1 else -1

    def write(builder: FragmentBuilder, value: Any) -> Any:
        rows = builder.op("Flatten", [value], {"axis": axis})
        return builder.reshaped(builder.op(site.node.op_type, [rows], {"axis": 1}), [first, *behind])

    rank = 0 if shape is None else len(shape)
    operators: Operators = (
        (site.node.op_type, {"rank": 2, "takes-axes-together": False, "axis-written": True}),
        ("Reshape", {"rank": rank}),
    )
    yield Form("the matrix that it works on", operators, partial(written, site, write), why_not)

    def measured(builder: FragmentBuilder, value: Any) -> Any:
        rows = builder.op("Flatten", [value], {"axis": axis})
        softened = builder.op(site.node.op_type, [rows], {"axis": -1})
        lengths = builder.op("Shape", [value])
        if axis == 0:  # the matrix has one row, which a batch without images would get for its length
            inner = builder.op("Slice", [lengths, *map(builder.integers, ([1], [rank or TO_THE_END]))])
            lengths = builder.op("Concat", [builder.integers([-1]), inner], {"axis": 0})
        return builder.op("Reshape", [softened, lengths])

    operators = (operators[0], ("Shape", {"sizes": "dynamic"}), ("Reshape", {"rank": rank or None}))
    if axis == 0:
        lengths: Operators = (("Slice", {"elements": "integer"}), ("Concat", {"rank": 1, "elements": "integer"}))
        operators = (*operators, *lengths)
    too_old = None if site.opset >= _FROM_THE_END else Refusal("an axis is not counted from the end before opset 11")
    least = abs(axis) + 2
    yield Form("that matrix, measured at run time", operators, partial(written, site, measured, least), too_old)


def _of_rows(site: Site) -> Form:
    """Return a Softmax along one axis as that of the rows of a matrix, into which a Gather brings the axis."""
    known, own = site.input_type(0), traits_of(site.scope, site.node) or {}
    shape = () if known is None or known.shape is None else known.shape
    behind = [each for each in shape[1:] if isinstance(each, int)]
    axis = (attributes.integer(site.node, "axis", -1 if site.opset >= _ONE_AXIS_SINCE else 1) or 0) % max(len(shape), 1)
    images = shape[0] if shape and isinstance(shape[0], int) else -1
    lengths = behind if axis else [images, *behind]
    whole = math.prod(lengths)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        length = lengths[axis - 1 if axis else 0]
        order = np.moveaxis(np.arange(whole).reshape(lengths), axis - 1 if axis else 0, -1).reshape(-1)
        is_moved = bool((np.diff(order) != 1).any())

        def brought(rows: Any, places: np.ndarray) -> Any:
            return builder.op("Gather", [rows, builder.constant(places, "places")], {"axis": 1})

        if is_moved:
            value = brought(builder.reshaped(value, [-1, whole]), order)
        value = builder.op(site.node.op_type, [builder.reshaped(value, [-1, length])], {"axis": 1})
        if is_moved:
            value = brought(builder.reshaped(value, [-1, whole]), np.argsort(order))
        return builder.reshaped(value, [images, *behind])

    why_not = None
    if len(behind) + 1 < len(shape) or not shape or whole <= 0 or whole > _MOST_ELEMENTS:
        why_not = Refusal("it needs the lengths of its input (--shape), or has too many elements")
    elif own["takes-axes-together"] is not False:
        why_not = Refusal("it takes axes together")
    matrix: Traits = {
        "rank": 2,
        "takes-axes-together": False,
        "axis-written": True,
        "alike": "none",
        "before-alike": False,
        "one-element": own.get("one-element"),
    }
    operators: Operators = (
        ("Reshape", {"rank": 2, **order_of(site.scope, before_reshapes(site.scope, site.input_name(0)))}),
        ("Gather", {"picks-a-list": True, "alike": "none", "axes": 2}),
        (site.node.op_type, matrix),
        ("Reshape", {"rank": len(shape)}),
    )
    return Form("the rows of a matrix", operators, partial(written, site, write), why_not)


def hardmax_forms(site: Site) -> Iterator[Form]:
    """Yield a Hardmax as a Softmax is written, and by asking of each place whether it is that of the maximum."""
    yield from matrix_forms(site)
    known, own = site.input_type(0), traits_of(site.scope, site.node) or {}
    shape = () if known is None or known.shape is None else known.shape
    first = (attributes.integer(site.node, "axis", -1 if site.opset >= _ONE_AXIS_SINCE else 1) or 0) % max(
        len(shape), 1
    )
    together = own["takes-axes-together"] is not False
    behind = [each for each in shape[first if together else 1 :] if isinstance(each, int)]
    length = math.prod(behind) if together else shape[first] if shape else None
    why_not = None
    if not isinstance(length, int) or (together and len(behind) < len(shape) - first):
        why_not = Refusal("an equal form needs the lengths of its input (--shape)")

    def write(builder: FragmentBuilder, value: Any) -> Any:
        assert isinstance(length, int)
        axis, rank = (1, 2) if together else (first, len(shape))
        rows = builder.op("Flatten", [value], {"axis": first}) if together else value
        places = builder.constant(np.arange(length).reshape([-1, *[1] * (rank - axis - 1)]), "places")
        largest = builder.op("ArgMax", [rows], {"axis": axis, "keepdims": 1})
        result = builder.op("Cast", [builder.op("Equal", [largest, places])], {"to": site.elem_type(0)})
        if not together:
            return result
        return builder.op("Reshape", [result, builder.op("Shape", [value])])

    asked: Traits = {"rank": 2 if together else len(shape), "broadcasts": True, "numbers": "integer"}
    cast: Traits = {"elements": "integer", "unsigned": False, "gives": "single"}
    rank = asked["rank"]
    operators: Operators = (
        ("ArgMax", {"takes-last": False, "keeps-axis": True, "rank": rank}),
        ("Equal", asked),
        ("Cast", cast),
    )
    if together:
        measured = "static" if all(isinstance(each, int) for each in shape[1:]) else "dynamic"
        operators = (*operators, ("Shape", {"sizes": measured}), ("Reshape", {"rank": len(shape)}))
    yield Form("the place of the maximum", operators, partial(written, site, write), why_not)
    yield _counted_maxima(site, first, together=together)


def _counted_maxima(site: Site, axis: int, *, together: bool) -> Form:
    """Return a Hardmax as the first of what nothing along the axis is above, counted by a product with ones."""
    known, elem_type = site.input_type(0), site.elem_type(0)
    shape = () if known is None or known.shape is None else known.shape
    length = shape[axis] if shape else None
    why_not: Refusal | None = Refusal("it takes several axes together, or their length is not known (--shape)")
    if isinstance(length, int) and not (together and axis < len(shape) - 1):
        why_not = why_not_multiplied(elem_type, [(length, length)])

    def write(builder: FragmentBuilder, value: Any) -> Any:
        assert isinstance(length, int)
        dtype = helper.tensor_dtype_to_np_dtype(elem_type)
        one = builder.constant(np.array(1, dtype), "one")

        def asked(rest: Any) -> Any:
            return builder.op("Sub", [one, builder.op("Sign", [rest])])

        largest = asked(builder.op("Sub", [stepwise("ReduceMax", [axis], AT_ONCE, True)(builder, value), value]))
        before = multiplied(builder, largest, {axis: np.tril(np.ones((length, length), dtype), -1)}, shape)
        return builder.op("Mul", [largest, asked(before)])

    operators: Operators = (
        *(("ReduceMax", {**reduction_traits("ReduceMax", site.opset, step)}) for step in steps_of([axis], AT_ONCE)),
        *((each, {}) for each in ("Sub", "Sign")),
        ("Mul", {"gate-second": False}),
        *multiplying([axis], shape),
    )
    return Form("counted maxima", operators, partial(written, site, write, opset=SIGN_SINCE), why_not, SIGN_SINCE)


def logarithm_forms(site: Site) -> Iterator[Form]:
    """Yield a LogSoftmax as that of a matrix, and as a difference of logarithms, infinite for no small share."""
    yield from in_a_row(site)
    yield from matrix_forms(site)
    yield _of_rows(site)
    axes, at_once, largest, total = _along(site)
    first = axes[0] if axes else 0

    def difference(summed: Write, taken: Write) -> Write:
        def write(builder: FragmentBuilder, value: Any) -> Any:
            apart = builder.op("Sub", [value, taken(builder, value)])
            total = summed(builder, builder.op("Exp", [apart]))
            # With a Sub of the logarithm, OpenCV takes it for a LogSoftmax.
            return builder.op("Add", [apart, builder.op("Neg", [builder.op("Log", [total])])])

        return write

    reduce = partial(stepwise, axes=axes, most=at_once, kept=True)
    why_not, write = unranked(site), difference(reduce("ReduceSum"), reduce("ReduceMax"))
    yield Form("a difference of logarithms", (*largest, *total), partial(written, site, write), why_not)
    summed = sum_along(site, first) if len(axes) == 1 else None
    if summed is not None:
        apart, taken = largest_along(site, first)
        write = difference(summed[1], taken)
        yield Form("one with a product", (*apart, *summed[0]), partial(written, site, write), why_not)
