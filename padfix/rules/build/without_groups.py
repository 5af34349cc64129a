"""A convolution, transposed or not, of all channels, with zeros where one in groups has no weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from padfix.operators.refusal import Refusal
from padfix.operators.traits import transposed_traits, window_traits
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Window
from padfix.rules.base import Rewrite, Site, Trial, TrialInput
from padfix.rules.build.explicit_pads import bind, copied
from padfix.rules.build.forms import Form
from padfix.rules.build.window_along_axes import joined_groups, with_weights
from padfix.targets.traits import Traits

_MOST_WEIGHTS = 1 << 24
"""So many are written out at most: as many times more as there are groups."""


def without_groups(
    site: Site, window: Window | TransposedWindow, cases: Callable[[], Iterable[Trial] | Refusal], own: Traits
) -> Form:
    """Return the node without groups, tried on ``cases``; it has the traits ``own`` besides those of its window."""
    group = window.written.group
    weights = site.constant(1)
    whole = dataclasses.replace(window, written=dataclasses.replace(window.written, group=1))
    traits = transposed_traits(whole) if isinstance(whole, TransposedWindow) else window_traits(whole)
    why_not: Refusal | None = None
    if group == 1 or window.domain or window.op_type not in ("Conv", "ConvTranspose"):
        why_not = Refusal("it has no groups, or is more than a convolution of numbers")
    elif weights is None or weights.size * group > _MOST_WEIGHTS:
        why_not = Refusal("the weights are long, or not constant")

    def write() -> Rewrite | Refusal:
        assert weights is not None
        tried = cases()
        if isinstance(tried, Refusal):
            return tried
        builder = site.builder()
        inputs = [builder.input(name) for name in site.node.input]
        inputs[1] = builder.constant(joined_groups(weights, group), "weights")
        bind(builder, site.node, builder.original(copied(site.node, without=("group",)), inputs))
        rows, columns = weights.shape[0], weights.shape[1] * group
        channels, maps = (rows, columns) if isinstance(window, TransposedWindow) else (columns, rows)
        return Rewrite(builder.build(), with_weights(site, tried, TrialInput.of(weights), channels, maps))

    return Form("without groups", ((window.op_type, {**traits, **own}),), write, why_not)
