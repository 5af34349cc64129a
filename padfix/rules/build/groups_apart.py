"""A convolution in groups, transposed or not, as one of each group by itself, whose weights need not be constant."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from padfix.operators.data_order import CHANNELS
from padfix.operators.refusal import Refusal
from padfix.operators.traits import transposed_traits, window_traits
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Window
from padfix.rules.base import Rewrite, Site, Trial, TrialInput
from padfix.rules.build.explicit_pads import bind, copied
from padfix.rules.build.forms import Form
from padfix.rules.build.window_along_axes import with_weights
from padfix.targets.traits import Traits

_MOST_GROUPS = 64
"""So many nodes stand in the place of one at most."""


def groups_apart(
    site: Site, window: Window | TransposedWindow, cases: Callable[[], Iterable[Trial] | Refusal], own: Traits
) -> Form:
    """Return a convolution of each group, joined, tried on ``cases``; each has the traits ``own`` as well."""
    group, weights = window.written.group, site.input_type(1)
    shape = () if weights is None or weights.lengths is None else weights.lengths
    channels, maps = window.channels, window.maps
    each: Traits = {"grouped": False, "map-each": False, "multiplies-channels": False, "one-filter-a-group": False}
    alone = dataclasses.replace(window, written=dataclasses.replace(window.written, group=1))
    traits = transposed_traits(alone) if isinstance(alone, TransposedWindow) else window_traits(alone)
    why_not: Refusal | None = None
    if not 1 < group <= _MOST_GROUPS or window.domain or window.op_type not in ("Conv", "ConvTranspose"):
        why_not = Refusal("it has no groups, or very many")
    elif not shape or channels is None or maps is None or shape[0] % group or channels % group:
        why_not = Refusal("how many channels and maps a group has is not known, or how long its kernel is")

    def write() -> Rewrite | Refusal:
        tried = cases()
        if isinstance(tried, Refusal):
            return tried
        assert channels is not None
        assert maps is not None
        builder = site.builder()
        data, *others = (builder.input(name) for name in site.node.input if name)
        pieces = [builder.split(data, CHANNELS, [channels // group] * group)]
        for value, length in zip(others, (shape[0], maps), strict=False):
            pieces.append(builder.split(value, 0, [length // group] * group))
        node = copied(site.node, without=("group",))
        results: list[Any] = [builder.original(node, list(inputs)) for inputs in zip(*pieces, strict=True)]
        bind(builder, site.node, builder.op("Concat", results, {"axis": CHANNELS}))
        like = TrialInput(shape, site.elem_type(1))
        return Rewrite(builder.build(), with_weights(site, tried, like, channels, maps))

    operators = (
        ("Split", {"axis-written": True, "split-evenly": True, "pieces-told": True, "behind-window": False}),
        (window.op_type, {**traits, **own, **each, "one-channel": channels == group}),
        ("Concat", {"inputs": group}),
    )
    return Form("each group by itself", operators, write, why_not)
