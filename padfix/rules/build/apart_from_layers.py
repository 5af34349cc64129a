"""Sums that a runtime makes part of the layer before them, apart from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from padfix.operators.traits import traits_of
from padfix.rules.base import Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


def apart_from_convolution(site: Site) -> Form:
    """Return a sum with an Identity before each of its terms, one of which a convolution gives."""

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        return builder.original(copied(site.node), [builder.op("Identity", [each]) for each in values])

    own = {**(traits_of(site.scope, site.node) or {}), "adds-to-convolution": False, "spreads-channels": False}
    return Form(
        "an Identity before each of its terms",
        ((site.node.op_type, own),),
        lambda: of_inputs(site, write, exact=True),
    )
