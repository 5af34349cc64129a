"""Equal forms of squares of integers."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.operators.numbers import numbers_of
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.forms import Form
from padfix.rules.build.index_forms import MAXIMUM_OF_INTEGERS_SINCE
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators

_SQUARE = 2
"""The exponent of a square."""


def squared_integer_forms(site: Site) -> Iterator[Form]:
    """Yield the square of integers as a product with the larger of them and themselves, which are two factors."""
    is_power = site.node.op_type == "Pow"
    told = site.constant(1) if is_power else None
    why_not = None
    if (
        not (told is not None and told.size == 1 and told.item() == _SQUARE)
        if is_power
        else len(set(site.node.input)) > 1
    ):
        why_not = Refusal("it is no square")
    elif numbers_of(site.scope, site.input_name(0)) != "integer":
        why_not = Refusal("its data are no integers")

    operators: Operators = (
        ("Max", {"inputs": 2, "broadcasts": False, "numbers": "integer"}),
        ("Mul", {"gate-second": False, "numbers": "integer"}),
    )
    since = MAXIMUM_OF_INTEGERS_SINCE

    def rewritten() -> Rewrite:
        builder = site.builder(max(site.opset, since))
        value = builder.input(site.input_name(0))
        builder.output(site.node.output[0], builder.op("Mul", [value, builder.op("Max", [value, value])]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    yield Form("a product with the larger of its data and themselves", operators, rewritten, why_not, since)
