"""Equal forms of a Transpose: in more axes or fewer, or in two steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from padfix.graph import attributes
from padfix.graph.scopes import Dimension
from padfix.operators.axis_order import alike_axes, before_reshapes, order_of
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import SHAPE_AS_INPUT_SINCE, Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

_EXCHANGE = [0, 2, 1]

_MATRIX = 2

_MOST_PIECES = 64
"""Rows or columns that are put elsewhere one by one."""


def exchange_forms(site: Site) -> Iterator[Form]:
    """Yield the exchange of the last two axes as one of four axes, of which one has a single element."""

    def write() -> Rewrite:
        builder = site.builder()
        plane = builder.unsqueezed(builder.input(site.input_name(0)), 1)
        turned = builder.op("Transpose", [plane], {"perm": [0, 3, 1, 2]})
        builder.output(site.node.output[0], builder.unsqueezed(turned, 2, back=True))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    traits = traits_of(site.scope, site.node) or {}
    rank = traits.get("rank")
    why_not = (
        None if rank == len(_EXCHANGE) and _perm(site) == _EXCHANGE else Refusal("it exchanges no two axes of three")
    )
    yield Form("a Transpose of four axes", (("Transpose", {"rank": 4, "turned-back": False}),), write, why_not)
    yield _in_two_steps(site, traits)
    yield _joined(site)
    yield _beside_open_length(site)


def _beside_open_length(site: Site) -> Form:
    """Return a Transpose that keeps the one open length first, between what brings it there from rows and back."""
    known, perm = site.input_type(0), _perm(site)
    shape = () if known is None or known.shape is None else known.shape
    open_axes = [axis for axis, each in enumerate(shape) if not isinstance(each, int)]
    at = open_axes[0] if len(open_axes) == 1 else 0
    goes = perm.index(at) if at in perm else 0
    first = [at, *(axis for axis in range(len(shape)) if axis != at)]
    turned = [at, *(axis for axis in perm if axis != at)]
    told = [each if isinstance(each, int) else -1 for each in shape]
    result = [told[axis] for axis in perm] if shape else []
    before, behind = math.prod(told[:at]), math.prod(result[:goes])

    def write() -> Rewrite:
        builder = site.builder()
        data = builder.input(site.input_name(0))
        if at:
            rows = builder.split(builder.reshaped(data, [before, -1]), 0, [1] * before)
            columns = [builder.reshaped(each, [-1, math.prod(told[at + 1 :])]) for each in rows]
            data = builder.reshaped(builder.op("Concat", columns, {"axis": 1}), [told[axis] for axis in first])
        if turned != first:
            data = builder.op("Transpose", [data], {"perm": [first.index(axis) for axis in turned]})
        if goes:
            width = math.prod(result[goes + 1 :])
            pieces = builder.split(builder.reshaped(data, [-1, behind * width]), 1, [width] * behind)
            row = builder.op("Concat", [builder.reshaped(each, [1, -1]) for each in pieces], {"axis": 1})
            data = builder.reshaped(row, result)
        builder.output(site.node.output[0], data)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None
    if len(open_axes) != 1 or 0 in shape:
        why_not = Refusal("it is not one length that is left open")
    elif at == goes or site.opset < SHAPE_AS_INPUT_SINCE:
        why_not = Refusal("the length that is left open stays in its place, or this opset has no Reshape to an input")
    elif min(before, behind) < 1 or not 1 < max(before, behind) <= _MOST_PIECES:
        why_not = Refusal(f"it would be more than {_MOST_PIECES} pieces, or none")
    alike = alike_axes([[shape[axis] for axis in order] for order in (first, turned)] if shape else [])
    written: Traits = {"channels-last": False}
    operators: Operators = (
        ("Reshape", {"rank": _MATRIX, **order_of(site.scope, before_reshapes(site.scope, site.input_name(0)))}),
        ("Split", {"pieces-told": True, "axis-written": True, "split-evenly": True, "alike": "none", **written}),
        ("Concat", {"alike": "none", "axes": _MATRIX, **written}),
        ("Reshape", {"rank": len(shape), "alike": "none", **written}),
        *((("Transpose", {"alike": alike, "moves-batch": False, **written}),) if turned != first else ()),
    )
    return Form("the open length by rows", operators, write, why_not)


def _joined(site: Site) -> Form:
    """Return the Transpose with axes that stay together as one, and without those of one element."""
    known, gives, perm = site.input_type(0), site.scope.type_of(site.node.output[0]), _perm(site)
    shape = () if known is None or known.shape is None else known.shape
    result = () if gives is None or gives.shape is None else gives.shape
    open_ones = [each for each in shape if not isinstance(each, int)]
    groups = _together(shape, perm) if len(shape) == len(perm) == len(result) else []
    why_not = None
    if not shape or len(open_ones) > 1 or 0 in shape or len(result) != len(shape):
        why_not = Refusal("it needs the lengths of the input (--shape)")
    elif not 1 < len(groups) < len(shape):
        why_not = Refusal("no axes stay together")
    elif site.opset < SHAPE_AS_INPUT_SINCE:
        why_not = Refusal("this opset has no Reshape to a shape that is an input")

    def write() -> Rewrite:
        builder = site.builder()
        ordered = sorted(groups)
        known_ones = [[each for axis in group if isinstance(each := shape[axis], int)] for group in ordered]
        lengths = [
            math.prod(each) if len(each) == len(group) else -1 for each, group in zip(known_ones, ordered, strict=True)
        ]
        data = builder.reshaped(builder.input(site.input_name(0)), lengths)
        turned = builder.op("Transpose", [data], {"perm": [ordered.index(group) for group in groups]})
        told = [each if isinstance(each, int) else -1 for each in result]
        builder.output(site.node.output[0], builder.reshaped(turned, told))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    rank = len(groups)
    own: Traits = {"rank": rank, "axes": rank, "turned-back": False, "turned-back-alike": False}
    operators = (("Reshape", {"rank": rank}), ("Transpose", own), ("Reshape", {"rank": len(shape)}))
    return Form("a Transpose of fewer axes", operators, write, why_not)


def _together(shape: Sequence[Dimension], perm: Sequence[int]) -> list[list[int]]:
    """Return the axes in the order of the result, without single elements; those that stay neighbours together."""
    left = [axis for axis, length in enumerate(shape) if length != 1]
    groups: list[list[int]] = []
    for axis in (each for each in perm if each in left):
        if groups and left.index(axis) == left.index(groups[-1][-1]) + 1:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _in_two_steps(site: Site, traits: Traits) -> Form:
    """Return the channels put first by reversing the other axes, and then all of them; or last the other way round."""
    perm = _perm(site)
    rank = len(perm)
    inner, whole = [0, *range(rank - 2, 0, -1), rank - 1], [0, *range(rank - 1, 0, -1)]
    is_first, is_last = perm == [0, rank - 1, *range(1, rank - 1)], perm == [0, *range(2, rank), 1]

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(0))
        for order in (inner, whole) if is_first else (whole, inner):
            value = builder.op("Transpose", [value], {"perm": order})
        builder.output(site.node.output[0], value)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None if rank > 3 and (is_first or is_last) else Refusal("it puts channels neither first nor last")
    step = ("Transpose", {**traits, "turned-back-alike": False})
    return Form("two Transposes", (step, step), write, why_not)


def _perm(site: Site) -> list[int]:
    known = site.input_type(0)
    rank = 0 if known is None else known.rank or 0
    return attributes.integers(site.node, "perm") or list(reversed(range(rank)))


def written_order(site: Site) -> Iterator[Form]:
    """Yield a Transpose that says that it reverses the axes, where it leaves that to the default."""
    node, perm = copied(site.node), _perm(site)
    attributes.set_integers(node, "perm", perm)
    traits = {**(traits_of(site.scope, site.node) or {}), "order-unwritten": False}
    if attributes.find(site.node, "perm") is None:
        why_not = None if perm else Refusal("how many axes it has is not known")

        def write() -> Rewrite:
            return Rewrite(site.only(node), trials_of(site), exact=True)

        yield Form("the order of its axes written", (("Transpose", traits),), write, why_not)
