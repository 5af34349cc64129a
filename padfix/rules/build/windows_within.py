"""A pool by windows longer than the image, as by ones that end with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import window_traits
from padfix.operators.window import Pair, Window
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied, flat
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared
from padfix.rules.build.objections import Operators


def windows_within(site: Site, window: Window, pairs: Sequence[Pair]) -> Form:
    """Return a pool whose windows are no longer than the image with its pads, along axes that have one window alone.

    Only under ``ceil_mode`` is there such a window: what lies behind the pads counts in no maximum and no average.
    """
    kernel, is_cut = [taps or 0 for taps in window.kernel], False
    for axis, (size, pair) in enumerate(zip(window.sizes, pairs, strict=True)):
        taps = kernel[axis]
        if isinstance(size, int) and taps and window.dilations[axis] == 1:
            whole = size + sum(pair)
            if taps > whole > 0:
                kernel[axis], is_cut = whole, True
    written = dataclasses.replace(window.written, kernel_shape=tuple(kernel), auto_pad=None, pads=tuple(flat(pairs)))
    within = dataclasses.replace(window, kernel=tuple(kernel), written=written)
    why_not = None if is_cut and window.operator.is_pool else Refusal("none of its windows is longer than the image")

    def write() -> Rewrite:
        node = copied(site.node, without=("auto_pad",))
        attributes.set_integers(node, "kernel_shape", kernel)
        attributes.set_integers(node, "pads", flat(pairs))
        return Rewrite(site.only(node), (as_declared(site),), exact=window.is_exact)

    if window.has_indices:
        why_not = Refusal("it gives positions as well")
    operators: Operators = ((window.op_type, {**window_traits(within), "beyond-image": False}),)
    return Form("windows as long as the image", operators, write, why_not)
