"""Equal forms of products of matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from padfix.operators.axis_order import alike_axes
from padfix.operators.fused_layers import MATRIX
from padfix.operators.refusal import Refusal
from padfix.operators.reshape_traits import is_square_volume
from padfix.operators.shape_questions import copied_along_first, is_a_number
from padfix.operators.traits import traits_of
from padfix.rules.base import Site
from padfix.rules.build.forms import Form
from padfix.rules.build.moved_forms import product_from_left
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_VOLUMES = 4
"""Axes of matrices that are counted by two."""


def matrix_forms(site: Site) -> Iterator[Form]:
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
    traits = {**traits, "by-a-number": own["by-a-number"]}
    yield _by_a_number(site)
    operators: Operators = (("Unsqueeze", {"rank": 1}), ("MatMul", traits), ("Squeeze", {"rank": traits["rank"]}))
    why_not = None if None not in ranks else Refusal("the ranks of what it multiplies are not known")
    if own["list-first"] or own["list-second"]:
        yield Form("matrices in place of lists", operators, lambda: of_inputs(site, write, exact=False), why_not)
    yield _without_first(site)
    yield _repeated(site)
    yield _of_as_many_axes(site, ranks)
    yield _of_volumes(site, ranks)
    yield from _row_by_row(site)
    yield from _turned_about(site)
    yield from product_from_left(site)


def _without_first(site: Site) -> Form:
    """Return a product in which a factor has its matrices alone that is copied along the first axis of the other."""
    places = copied_along_first(site.scope, site.node)
    types = [site.input_type(0), site.input_type(1)]
    lengths = [None if known is None else known.lengths for known in types]
    left = {place: _alone(lengths[place] or ()) for place in places}

    def write(builder: FragmentBuilder, *given: Any) -> Any:
        factors = [builder.reshaped(each, left[place]) if place in left else each for place, each in enumerate(given)]
        return builder.op("MatMul", factors)

    # What is against a single matrix is asked of what is written.
    own = {**(traits_of(site.scope, site.node) or {}), "copied-along-first": False, "by-a-matrix": False}
    operators: Operators = (
        *(("Reshape", {"rank": len(each)}) for each in left.values()),
        ("MatMul", {**own, "rank": len(left.get(0, lengths[0] or ()))}),
    )
    why_not = None if left else Refusal("no factor is copied along the first axis")
    if None in lengths:
        why_not = Refusal("it needs the lengths of its input (--shape)")
    return Form("matrices without a first axis", operators, lambda: of_inputs(site, write, exact=False), why_not)


def _repeated(site: Site) -> Form:
    """Return a product whose first factor has as many matrices as the result, where both factors had fewer."""
    first, second = (None if (each := site.input_type(place)) is None else each.lengths for place in (0, 1))
    shape: tuple[int, ...] = ()
    if first is not None and second is not None and min(len(first), len(second)) >= MATRIX:
        shape = (*np.broadcast_shapes(first[:-MATRIX], second[:-MATRIX]), *first[-MATRIX:])

    def write(builder: FragmentBuilder, first: Any, second: Any) -> Any:
        repeated = builder.op("Expand", [first, builder.constant(np.array(shape, np.int64), "shape")])
        return builder.op("MatMul", [repeated, second])

    own = traits_of(site.scope, site.node) or {}
    operators: Operators = (("Expand", {}), ("MatMul", {**own, "spread-alike": False, "rank": len(shape)}))
    why_not = None if shape else Refusal("it needs the lengths of its inputs (--shape)")
    if own.get("spread-alike") is False:
        why_not = Refusal("one of its factors is not repeated")
    return Form("its first matrices repeated", operators, lambda: of_inputs(site, write, exact=False), why_not)


def _of_as_many_axes(site: Site, ranks: Sequence[int | None]) -> Form:
    """Return a product whose first factor has as many axes as the second, of which the first are of one element."""
    first, second = (each or 0 for each in ranks)
    axes = [*range(second - first)]

    def write(builder: FragmentBuilder, one: Any, other: Any) -> Any:
        return builder.op("MatMul", [builder.unsqueezed(one, *axes), other])

    own = {**(traits_of(site.scope, site.node) or {}), "shares-of-fewer-axes": False, "rank": second}
    why_not = None if first > 1 and axes else Refusal("its first factor has as many axes as the second, or is a list")
    operators: Operators = (("Unsqueeze", {"rank": first}), ("MatMul", own))
    return Form("axes of one element before the first", operators, lambda: of_inputs(site, write, exact=False), why_not)


def _of_volumes(site: Site, ranks: Sequence[int | None]) -> Form:
    """Return a product of matrices in three axes as one in four, of which the first is of one element."""
    first, second = (each or 0 for each in ranks)
    axes = [*range(_VOLUMES - first)]

    def write(builder: FragmentBuilder, one: Any, other: Any) -> Any:
        result = builder.op("MatMul", [builder.unsqueezed(one, *axes), builder.unsqueezed(other, 0)])
        return builder.unsqueezed(result, 0, back=True)

    own = {**(traits_of(site.scope, site.node) or {}), "open-rows-by-several": False, "rank": _VOLUMES}
    why_not = None if 1 < first < _VOLUMES == second + 1 else Refusal("it is no product with matrices in three axes")
    operators: Operators = (("Unsqueeze", {"rank": first}), ("MatMul", own), ("Squeeze", {"rank": _VOLUMES}))
    return Form("matrices in four axes", operators, lambda: of_inputs(site, write, exact=False), why_not)


def _alone(shape: Sequence[int]) -> list[int]:
    """Return the lengths of matrices without those before the first of several elements."""
    first = next((axis for axis, each in enumerate(shape[:-MATRIX]) if each != 1), max(len(shape) - MATRIX, 0))
    return list(shape[first:])


def _by_a_number(site: Site) -> Form:
    """Return a product with a constant matrix of one element as what is multiplied by a number: it sums nothing."""
    ranks = [0 if (known := site.input_type(place)) is None else known.rank or 0 for place in (0, 1)]
    place = next((place for place in (1, 0) if is_a_number(site.scope, site.input_name(place))), None)
    axes = 0 if place is None else ranks[1 - place]

    def write(builder: FragmentBuilder, *given: Any) -> Any:
        assert place is not None
        told = site.constant(place)
        number = builder.reshaped(given[place], [1]) if told is None else builder.constant(told.reshape(1), "number")
        product = builder.op("Mul", [given[1 - place], number])
        # A list of one takes the axis out that it is multiplied along: the last, or the one before it.
        along = max(axes - 1 - (place == 0), 0)
        return builder.unsqueezed(product, along, back=True) if ranks[place] == 1 else product

    why_not = None
    if place is None:
        why_not = Refusal("it is by no constant of one element")
    elif not axes or ranks[place] > axes:
        why_not = Refusal("the constant has more axes than the data, or these are not known")
    squeeze: Operators = (("Squeeze", {"rank": axes}),) if place is not None and ranks[place] == 1 else ()
    operators: Operators = (("Mul", {"constants": "one", "gate-second": False}), *squeeze)
    return Form("a product with a number", operators, lambda: of_inputs(site, write, exact=False), why_not)


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

    traits: Traits = {
        "rank": 2,
        "by-a-matrix": True,
        "by-a-number": (traits_of(site.scope, site.node) or {}).get("by-a-number"),
        "list-first": False,
        "list-second": False,
        "alike": "none",
    }
    is_square = is_square_volume((*before, columns))
    back: Traits = {"rank": len(lengths), "of-square-product": is_square}
    operators: Operators = (("Reshape", {"rank": 2}), ("MatMul", traits), ("Reshape", back))
    yield Form("all rows in one matrix", operators, lambda: of_inputs(site, write, exact=False), why_not)


def _turned_about(site: Site) -> Iterator[Form]:
    """Yield a product with matrices as that of them, turned, with what is turned before it and back behind it."""
    ranks = [0 if (known := site.input_type(place)) is None or known.rank is None else known.rank for place in (0, 1)]
    matrices = site.constant(1)

    def write(builder: FragmentBuilder, first: Any, second: Any) -> Any:
        if matrices is None:
            left = builder.turned(second, ranks[1])
        else:
            left = builder.constant(np.ascontiguousarray(np.swapaxes(matrices, -1, -2)), "turned")
        product = builder.op("MatMul", [left, builder.turned(first, ranks[0])])
        return builder.turned(product, max(ranks))

    types = (site.input_type(0), site.scope.type_of(site.node.output[0]))
    alike = alike_axes([known.shape for known in types if known is not None and known.shape is not None])
    turns: Traits = {"rank": max(ranks), "about-a-product": True, "alike": alike}
    traits: Traits = {
        "rank": ranks[1],
        "by-a-matrix": ranks[0] == MATRIX,
        "by-fewer-constants": False,
        "turns-heads-once": False,
        "list-first": False,
        "list-second": False,
        "alike": "none",
    }
    is_by_constants = matrices is not None and min(ranks) >= MATRIX
    weighs_heads = (traits_of(site.scope, site.node) or {}).get("turns-heads-once") is True
    why_not = None
    if max(ranks) <= MATRIX or not (is_by_constants or weighs_heads or (ranks[1] == MATRIX and ranks[0])):
        why_not = Refusal("it is no product of several matrices with one, with constants or of an attention")
    operators: Operators = (("Transpose", turns), ("MatMul", traits))
    yield Form("matrices before what is turned", operators, lambda: of_inputs(site, write, exact=False), why_not)
