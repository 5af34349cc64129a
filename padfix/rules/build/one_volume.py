"""Images as one volume: with an axis of one element before the others, which goes again behind the operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

IMAGES, VOLUMES = 4, 5
"""The axes of images, and of volumes."""


def as_one_volume(
    site: Site,
    names: Sequence[str],
    traits: Traits,
    write: Callable[..., Any],
    why_not: Refusal | None = None,
) -> Form:
    """Return the node with these inputs as volumes; ``write`` takes a builder and them, and returns the result."""

    def rewrite() -> Rewrite:
        builder = site.builder()
        volumes = [builder.unsqueezed(builder.input(name), 0) for name in names]
        builder.output(site.node.output[0], builder.unsqueezed(write(builder, *volumes), 0, back=True))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    own = {**traits, "rank": VOLUMES}
    operators: Operators = (("Unsqueeze", {"rank": IMAGES}), (site.node.op_type, own), ("Squeeze", {"rank": VOLUMES}))
    return Form("volumes of one image", operators, rewrite, why_not)
