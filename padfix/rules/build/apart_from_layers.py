"""Sums that a runtime makes part of the layer before them, apart from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from padfix.operators.fused_layers import is_of_convolution, narrowest
from padfix.operators.traits import traits_of
from padfix.rules.base import Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


def apart_from_convolution(site: Site) -> Form:
    """Return a sum with an Identity before each term that a convolution gives, and before that of one channel."""
    own = traits_of(site.scope, site.node) or {}
    places = {place for place, name in enumerate(site.node.input) if is_of_convolution(site.scope, name)}
    if own.get("spreads-channels") is not False:
        narrow = narrowest(site.scope, site.node)
        places |= set(range(len(site.node.input))) if narrow is None else {narrow}

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        terms = [builder.op("Identity", [each]) if place in places else each for place, each in enumerate(values)]
        return builder.original(copied(site.node), terms)

    return Form(
        "an Identity behind the convolution",
        ((site.node.op_type, {**own, "adds-to-convolution": False, "spreads-channels": False}),),
        lambda: of_inputs(site, write, exact=True),
    )
