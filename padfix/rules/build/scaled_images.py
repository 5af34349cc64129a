"""Products and quotients that a runtime would make part of something else: a convolution behind them, or a PRelu."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.objections import Operators
from padfix.rules.build.slope_forms import listed_slopes

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


def scaled_forms(site: Site) -> Iterator[Form]:
    """Yield the larger of it and itself, and slopes of as many axes as the data."""
    yield _behind_maximum(site)
    yield from listed_slopes(site)


def _behind_maximum(site: Site) -> Form:
    """Return a product or quotient of images behind which the larger of it and itself stands."""
    own = traits_of(site.scope, site.node) or {}

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        product = builder.original(copied(site.node), list(values))
        return builder.op("Max", [product, product])

    why_not = None if own.get("scales-window") else Refusal("it scales no images as large as a window behind them")
    operators: Operators = ((site.node.op_type, {**own, "scales-window": False}), ("Max", {"constants": "none"}))
    return Form("the larger of it and itself", operators, lambda: of_inputs(site, write, exact=True), why_not)
