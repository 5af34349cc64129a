"""Equal forms of a Slice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from padfix.graph import attributes
from padfix.operators.axis_order import order_of_axes
from padfix.operators.refusal import Refusal
from padfix.operators.slices import SLICE_AS_INPUTS_SINCE, slice_amounts, sliced_axes, starts_before_first
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.targets.traits import Traits

_NAMES = ("starts", "ends", "axes", "steps")


def reordered_forms(site: Site) -> Iterator[Form]:
    """Yield a Slice whose axes are listed, in the order in which a runtime has them that moves channels to the end.

    What would start before the first element starts with it.
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
        listed = {**amounts, "starts": starts, "axes": axes}
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
        **dict.fromkeys(("axes-out-of-order", "axes-unlisted", "starts-before"), False),
    }
    yield Form("its axes listed in order", (("Slice", told),), write, why_not)
