"""Equal forms of a Transpose of three axes."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.rules.base import Rewrite, Site
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of


def exchange_forms(site: Site) -> Iterator[Form]:
    """Yield the exchange of the last two axes as one of four axes, of which one has a single element."""

    def write() -> Rewrite:
        builder = site.builder()
        plane = builder.unsqueezed(builder.input(site.input_name(0)), 1)
        turned = builder.op("Transpose", [plane], {"perm": [0, 3, 1, 2]})
        builder.output(site.node.output[0], builder.unsqueezed(turned, 2, back=True))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    yield Form("a Transpose of four axes", (("Transpose", {"rank": 4, "turned-back": False}),), write)
