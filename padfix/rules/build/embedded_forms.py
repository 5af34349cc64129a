"""A Gather of rows of weights, as an embedding that importers know."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from padfix.operators.picking_traits import FEW_ROWS
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of


def embedded_forms(site: Site) -> Iterator[Form]:
    """Yield a Gather of rows of weights that leaves its axis to the default, which is the first.

    A table of few rows stands there several times, as a whole: an index from the end picks the same row as before.
    """
    own = traits_of(site.scope, site.node) or {}
    if not own.get("embeds"):
        return
    table = site.constant(0)

    def write() -> Rewrite:
        builder = site.builder()
        rows, indices = (builder.input(name) for name in site.node.input)
        if table is not None and own.get("few-rows"):
            times = -(-FEW_ROWS // len(table))
            rows = builder.constant(np.concatenate([table] * times), "table")
        node = copied(site.node, without=("axis",))
        return Rewrite(builder.ending_in(node, [rows, indices]), trials_of(site), exact=True)

    why_not = None
    if own.get("few-rows") and (table is None or not len(table)):
        why_not = Refusal("its table is not known, or empty")
    operators = (("Gather", {**own, "axis-written": False, "few-rows": False}),)
    yield Form("its axis left out", operators, write, why_not)
