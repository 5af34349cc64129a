"""What stands in the place of a node, made of all that it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from padfix.rules.base import Rewrite, Site
from padfix.rules.build.node_trials import trials_of


def of_inputs(site: Site, write: Callable[..., Any], *, exact: bool) -> Rewrite:
    """Return what ``write`` makes of a builder and of all the inputs that there are."""
    builder = site.builder()
    inputs = [builder.input(name) for name in site.node.input if name]
    builder.output(site.node.output[0], write(builder, *inputs))
    return Rewrite(builder.build(), trials_of(site), exact=exact)
