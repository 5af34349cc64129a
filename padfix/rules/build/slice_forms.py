"""Equal forms of a Slice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from padfix.graph import attributes
from padfix.graph.scopes import Dimension
from padfix.operators.axis_order import order_of_axes
from padfix.operators.refusal import Refusal
from padfix.operators.slices import (
    SLICE_AS_INPUTS_SINCE,
    slice_amounts,
    sliced_axes,
    starts_before_first,
    without_far_ends,
)
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.index_forms import MAXIMUM_OF_INTEGERS_SINCE
from padfix.rules.build.node_trials import as_declared, trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.transposed import TO_THE_END
from padfix.targets.traits import Traits

_NAMES = ("starts", "ends", "axes", "steps")

_SPECIAL = ("again-from-end", "axes-negative", "axes-out-of-order", "axes-unlisted", "ends-far", "starts-before")
"""What nothing is of once the axes are listed in order, from the begin."""

_BEFORE_FIRST = -(1 << 31) + 1
"""Where a Slice ends that takes all backwards."""

_LONGEST_TRIAL = 256
"""Elements of an open axis that a Slice is tried with."""


def slice_forms(site: Site) -> Iterator[Form]:
    """Yield a Slice whose axes are listed in order, one whose starts are cut at run time, and two for one."""
    yield from _reordered(site)
    yield _from_first(site)
    yield _turned_last(site)


def _reordered(site: Site) -> Iterator[Form]:
    """Yield a Slice whose axes are listed, in the order in which a runtime has them that moves channels to the end.

    What would start before the first element starts with it, and what would end far behind the last has no end.
    """
    known = site.input_type(0)
    rank = None if known is None else known.rank
    axes = None if rank is None else sliced_axes(site.scope, site.node, rank)
    amounts = slice_amounts(site.scope, site.node)
    if rank is None or axes is None or amounts is None:
        why_not: Refusal | None = Refusal("its axes, or from where to where it takes them, are only known at run time")
        order: list[int] = []
    else:
        why_not = None
        order = order_of_axes(site.scope, site.node, axes)

    def write() -> Rewrite:
        assert axes is not None
        assert amounts is not None
        before = starts_before_first(site.scope, site.node, axes) or [False] * len(axes)
        starts = [0 if is_before else start for start, is_before in zip(amounts["starts"], before, strict=True)]
        listed = {**amounts, "starts": starts, "ends": without_far_ends(amounts["ends"]), "axes": axes}
        builder = site.builder()
        node = copied(site.node, without=_NAMES)
        inputs = [builder.input(site.input_name(0))]
        for name in _NAMES:
            if name in listed:
                values = [listed[name][place] for place in order]
                if site.opset < SLICE_AS_INPUTS_SINCE:
                    attributes.set_integers(node, name, values)
                else:
                    inputs.append(builder.constant(np.array(values, np.int64), name))
        builder.output(site.node.output[0], builder.original(node, inputs))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    told: Traits = {
        **(traits_of(site.scope, site.node) or {}),
        **dict.fromkeys(_SPECIAL, False),
    }
    yield Form("its axes listed in order", (("Slice", told),), write, why_not)


def _from_first(site: Site) -> Form:
    """Return a Slice whose starts are the larger of themselves and the first element, as lengths are at run time."""
    known, amounts = site.input_type(0), slice_amounts(site.scope, site.node)
    rank = None if known is None else known.rank
    axes = None if rank is None else sliced_axes(site.scope, site.node, rank)
    starts = (amounts or {}).get("starts", [])
    steps = (amounts or {}).get("steps", [1] * len(starts))
    why_not = None
    if axes is None or not starts:
        why_not = Refusal("its axes, or from where to where it takes them, are only known at run time")
    elif any(start < -1 and step < 0 for start, step in zip(starts, steps, strict=True)):
        why_not = Refusal("it runs backwards from before the end")

    def write() -> Rewrite:
        assert amounts is not None
        builder = site.builder(max(site.opset, MAXIMUM_OF_INTEGERS_SINCE))
        data, taken = builder.input(site.input_name(0)), builder.integers(axes or [], "axes")
        lengths = builder.op("Gather", [builder.op("Shape", [data]), taken], {"axis": 0})
        first = builder.op("Max", [builder.integers(starts, "starts"), builder.op("Neg", [lengths])])
        others = [builder.integers(amounts["ends"], "ends"), taken, builder.integers(steps, "steps")]
        node = copied(site.node, without=_NAMES)
        builder.output(site.node.output[0], builder.original(node, [data, first, *others]))
        tried = {1, 2, *(1 - start for start in starts if -_LONGEST_TRIAL < start < 0)}
        return Rewrite(builder.build(), tuple(as_declared(site, each) for each in sorted(tried)), exact=True)

    unlisted = dict.fromkeys(("axes-unlisted", "starts-before", "maybe-starts-before"), False)
    operators: Operators = (
        ("Shape", {}),
        ("Gather", {"axis-written": True, "picks-a-list": True}),
        ("Neg", {"numbers": "integer"}),
        ("Max", {"inputs": 2, "numbers": "integer", "broadcasts": False}),
        ("Slice", {**(traits_of(site.scope, site.node) or {}), **unlisted}),
    )
    name = "the first element where it would start before"
    return Form(name, operators, write, why_not, MAXIMUM_OF_INTEGERS_SINCE)


def _turned_last(site: Site) -> Form:
    """Return a Slice that takes forwards what another one turns round, all of it."""
    amounts, known = slice_amounts(site.scope, site.node), site.input_type(0)
    axes = None if known is None or not known.rank else sliced_axes(site.scope, site.node, known.rank)
    cuts: list[tuple[int, int, int]] | Refusal
    if known is None or known.shape is None or axes is None or amounts is None or "ends" not in amounts:
        cuts = Refusal("its axes, or from where to where it takes them, are only known at run time")
    else:
        cuts = _forwards(amounts, [known.shape[axis] for axis in axes])
    steps = (amounts or {}).get("steps", [])

    def write() -> Rewrite:
        assert axes is not None
        assert not isinstance(cuts, Refusal)
        builder = site.builder()
        starts, ends, strides = zip(*cuts, strict=True)
        lists = [builder.integers(each, name) for each, name in zip((starts, ends, axes, strides), _NAMES, strict=True)]
        taken = builder.op("Slice", [builder.input(site.input_name(0)), *lists])
        turned = [(-1, _BEFORE_FIRST, axis, step) for axis, step in zip(axes, steps, strict=True) if step < 0]
        node = copied(site.node, without=_NAMES)
        columns = zip(zip(*turned, strict=True), _NAMES, strict=True)
        inputs = [taken, *(builder.integers(each, f"turned_{name}") for each, name in columns)]
        builder.output(site.node.output[0], builder.original(node, inputs))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    own: Traits = {**(traits_of(site.scope, site.node) or {}), "ends-past-axes": False}
    plain = dict.fromkeys((*_SPECIAL, "maybe-starts-before", "strided"), False)
    operators: Operators = (("Slice", {**own, "backwards": False}), ("Slice", {**own, **plain}))
    return Form("a Slice that turns it round", operators, write, cuts if isinstance(cuts, Refusal) else None)


def _forwards(amounts: dict[str, list[int]], lengths: list[Dimension]) -> list[tuple[int, int, int]] | Refusal:
    """Return starts, ends and steps that take forwards what others take backwards too, or why there are none."""
    starts, ends = amounts["starts"], amounts["ends"]
    steps = amounts.get("steps", [1] * len(starts))
    if all(step > 0 for step in steps):
        return Refusal("nothing of it runs backwards")
    cuts = []
    for start, end, step, length in zip(starts, ends, steps, lengths, strict=True):
        if step > 0:
            cuts.append((start, end, step))
            continue
        first = max(start + length, 0) if start < -1 and isinstance(length, int) else start
        if first < -1 or end == -1:
            return Refusal("it may take nothing, or start before the first element")
        behind = TO_THE_END if first == -1 else min(first + 1, TO_THE_END)
        cuts.append((max(end + 1, 0) if end < _BEFORE_FIRST else end + 1, behind, 1))
    return cuts
