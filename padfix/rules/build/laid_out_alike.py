"""Data and the places of single elements of them, all behind a Reshape, where but one of them is."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of


def laid_out_alike(site: Site) -> Iterator[Form]:
    """Yield what picks or puts single elements with a Reshape of each input to the shape that it has."""
    types = [site.input_type(place) for place in range(len(site.node.input))]
    shapes = [None if known is None or not known.shape else list(known.shape) for known in types]
    # Lengths that are left open are copied.
    written = [[each if isinstance(each, int) else 0 for each in shape] for shape in shapes if shape is not None]

    def write() -> Rewrite:
        builder = site.builder()
        given = [
            builder.reshaped(builder.input(name), shape) for name, shape in zip(site.node.input, written, strict=True)
        ]
        return Rewrite(builder.ending_in(copied(site.node), given), trials_of(site), exact=True)

    own = {**(traits_of(site.scope, site.node) or {}), "laid-out-apart": False}
    why_not = Refusal("how many axes its inputs have is not known") if None in shapes else None
    operators = (("Reshape", {"rank": len(written[0]) if written else None}), (site.node.op_type, own))
    yield Form("all its inputs behind a Reshape", operators, write, why_not)
