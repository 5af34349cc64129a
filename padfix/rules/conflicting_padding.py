"""PF104: ``auto_pad`` beside ``pads``, or with a value that the specification does not know."""

from __future__ import annotations

import dataclasses

from padfix.operators.reading import read_attributes_of, read_window
from padfix.operators.refusal import Refusal
from padfix.operators.table import PADDED
from padfix.operators.written import PADDING_MODES
from padfix.results import Finding, Severity
from padfix.rules.base import Rewrite, Rule, Site
from padfix.rules.build.explicit_pads import explicit_fragment, flat, needed_opset
from padfix.rules.build.pads_at_run_time import rewrite_same
from padfix.rules.build.trials import trials


class ConflictingPadding(Rule):
    """A convolution or pool has `auto_pad` and `pads`, or an `auto_pad` that does not exist.

    The specification forbids both together. ONNX Runtime refuses such a convolution; for pools it lets `auto_pad` win,
    while ONNX's own shape inference lets `pads` win. padfix keeps what runs: for pools `auto_pad` is written out and
    the given pads go. For convolutions it only rewrites where both say the same; else it refuses, since nobody can
    tell which one was meant.

    Refused: a convolution whose `auto_pad` and `pads` say different things.

    Before, opset 17:

        main (float[1,3,6,7] X) => (float[1,3,6,7] Y) {
          Y = MaxPool <auto_pad = "SAME_UPPER", kernel_shape = [3, 3], pads = [0, 0, 0, 0]> (X)
        }

    After:

        Y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (X)

    References:

    - The ONNX specification of MaxPool: <https://onnx.ai/onnx/operators/onnx__MaxPool.html>
    - The text of the specification: <https://github.com/onnx/onnx/issues/1230>
    """

    code = "PF104"
    name = "conflicting-padding"
    severity = Severity.ERROR
    operators = PADDED

    def match(self, site: Site) -> Finding | None:
        """Return a finding for auto_pad together with pads, and for an unknown auto_pad."""
        written = read_attributes_of(site.scope, site.node)
        mode = written.auto_pad
        if mode is None or "auto_pad" in written.references:
            return None
        if mode not in PADDING_MODES:
            return self.finding(
                site,
                f"auto_pad={mode!r} is no value of the specification.",
                "Use NOTSET, SAME_UPPER, SAME_LOWER or VALID.",
                fixable=False,
            )
        if not written.mode or not written.pads:
            return None
        fixable = not isinstance(self.rewrite(site), Refusal)
        hint = "padfix convert keeps what ONNX Runtime does: auto_pad wins." if fixable else "Remove one of the two."
        found = self.finding(
            site, f"auto_pad={mode} and pads={list(written.pads)} exclude each other.", hint, fixable=fixable
        )
        return found if fixable else dataclasses.replace(found, illustration=None)  # neither padding is what it means

    def needs_specification(self, site: Site) -> bool:
        """Whether ONNX Runtime refuses the node: pools let ``auto_pad`` win, convolutions take no two paddings."""
        window = read_window(site.scope, site.node)
        return not isinstance(window, Refusal) and not window.operator.is_pool

    def minimum_opset(self, site: Site) -> int:
        """Return 11 where the pads have to be computed at run time, or integers padded by a Pad."""
        window = read_window(site.scope, site.node)
        if isinstance(window, Refusal) or window.auto_pad == "VALID":
            return 1
        return needed_opset(window, window.same_pads())

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the pool as its auto_pad says; a convolution only where its pads say the same."""
        window = read_window(site.scope, site.node)
        if isinstance(window, Refusal):
            return window
        pads = list(window.written.pads or ())
        pairs = ((0, 0),) * window.rank if window.auto_pad == "VALID" else window.same_pads()
        known = [pair for pair in pairs if pair is not None]
        if not window.operator.is_pool and (len(known) != len(pairs) or flat(known) != pads):
            return Refusal(
                f"auto_pad={window.auto_pad} and pads={pads} exclude each other, no runtime accepts both, and they do "
                "not say the same: remove the one that is not meant."
            )
        if window.auto_pad != "VALID":
            return rewrite_same(site, window, pairs)
        fragment = explicit_fragment(site, flat(known), same=False)
        return Rewrite(fragment, trials(site, window, same=False), exact=window.is_exact)
