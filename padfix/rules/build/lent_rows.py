"""A product that adds a row which the model is fed or gives, and uses for more."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.operators.lent_rows import lent_row
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators


def lent_rows(site: Site) -> Iterator[Form]:
    """Yield a Gemm, or a sum that becomes one, that adds the row as a list; nothing where it adds no such row."""
    row = lent_row(site.scope, site.node)
    if not row:
        return

    def write() -> Rewrite:
        builder = site.builder()
        inputs = [builder.input(name) for name in site.node.input]
        place = len(inputs) - 1 - list(site.node.input)[::-1].index(row)
        inputs[place] = builder.unsqueezed(inputs[place], 0, back=True)
        return Rewrite(builder.ending_in(copied(site.node), inputs), trials_of(site))

    own = {**(traits_of(site.scope, site.node) or {}), "adds-lent-row": False, "bias-spread": False}
    operators: Operators = (("Squeeze", {"rank": 2}), (site.node.op_type, own))
    yield Form("a list in place of the row that it adds", operators, write)
