"""What works element by element on data of many axes, as on data of three: for runtimes that know no more of it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from padfix.graph.scopes import normal_domain
from padfix.operators.elementwise import ELEMENTWISE
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared
from padfix.rules.build.objections import Operators
from padfix.targets.marks import MARKS

_FEWER = 3
"""Axes that are left: the batch, the channels, and all others as one."""


def on_fewer_axes(site: Site) -> Iterator[Form]:
    """Yield an operator that works element by element, between a Reshape to three axes and one back."""
    node, result = site.node, site.scope.type_of(site.node.output[0])
    lengths = None if result is None else result.lengths
    if node.op_type not in ELEMENTWISE or normal_domain(node.domain) or len(node.output) != 1:
        return
    types = [site.input_type(place) if name else None for place, name in enumerate(node.input)]
    given = [None if known is None else known.lengths for known in types if known is not None]
    why_not = None
    if lengths is None or 0 in lengths or None in given or len(given) < sum(map(bool, node.input)):
        why_not = Refusal("it needs the lengths of its inputs (--shape)")
    elif any(each != lengths and math.prod(each or ()) != 1 for each in given):
        why_not = Refusal("its inputs have shapes of their own")
    elif len(lengths) <= _FEWER:
        why_not = Refusal("it has few axes already")

    def write() -> Rewrite:
        assert lengths is not None
        builder = site.builder()
        fewer = [*lengths[:2], math.prod(lengths[2:])]
        inputs = [
            builder.reshaped(builder.input(name), fewer)
            if known is not None and known.lengths == lengths
            # A single element has no axes that it would add to the others.
            else builder.reshaped(builder.input(name), [1])
            if known is not None and known.rank
            else builder.input(name)
            for name, known in zip(node.input, types, strict=True)
        ]
        builder.output(node.output[0], builder.reshaped(builder.original(copied(node), inputs), lengths))
        return Rewrite(builder.build(), (as_declared(site),), exact=True)

    # What else is special of it is looked at once it has few axes.
    known_traits = traits_of(site.scope, node) or {}
    own = {**known_traits, **dict.fromkeys(known_traits.keys() & set(MARKS), False), "axes": _FEWER, "rank": _FEWER}
    operators: Operators = (
        ("Reshape", {"rank": _FEWER}),
        (node.op_type, own),
        ("Reshape", {"rank": len(lengths or ())}),
    )
    yield Form("three axes in place of more", operators, write, why_not)
