"""PF103: VALID, which means no pads at all, and ``auto_pad`` that says nothing."""

from __future__ import annotations

import dataclasses

from padfix.operators.reading import read_attributes_of, read_window, window_assumed
from padfix.operators.refusal import Meaningless, Refusal, UnknownRank
from padfix.operators.table import PADDED
from padfix.operators.window import Window
from padfix.results import Finding, Severity
from padfix.rules.base import Rewrite, Rule, Site, Trial
from padfix.rules.build.explicit_pads import explicit_fragment
from padfix.rules.build.trials import trials


class ImplicitValidPadding(Rule):
    """A convolution or pool says `auto_pad=VALID`, or carries an `auto_pad` that says nothing (`NOTSET`, empty).

    `VALID` is another way to write pads of 0; importers without `auto_pad` refuse it. padfix writes the zeros and
    leaves everything else as it is, `ceil_mode` included: runtimes honour it with `VALID` as they do with pads of 0.

    `NOTSET` and the empty text mean "see `pads`". They are reported as info, and removed.

    Where nothing tells how many axes there are, the attribute goes and no zeros are written: without `pads` there are
    none.

    Refused: an attribute that the callers of a function give.

    Before, opset 17:

        main (float[1,3,32,32] X) => (float[1,3,15,15] Y) {
          Y = MaxPool <auto_pad = "VALID", kernel_shape = [3, 3], strides = [2, 2]> (X)
        }

    After:

        Y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [0, 0, 0, 0]> (X)

    References:

    - The ONNX specification of MaxPool: <https://onnx.ai/onnx/operators/onnx__MaxPool.html>
    - `VALID` with `ceil_mode`: <https://github.com/microsoft/onnxruntime/issues/10083>
    - `NOTSET`: <https://github.com/onnx/onnx/issues/1230>
    """

    code = "PF103"
    name = "implicit-valid-padding"
    operators = PADDED

    def match(self, site: Site) -> Finding | None:
        """Return a finding for VALID without pads (warning), NOTSET and empty (info)."""
        written = read_attributes_of(site.scope, site.node)
        mode = written.auto_pad
        if mode is None or "auto_pad" in written.references:
            return None
        if mode == "VALID" and not written.pads:
            found = self.finding(site, "auto_pad=VALID stands for pads of 0.", "padfix convert writes the zeros out.")
            window = read_window(site.scope, site.node)
            if isinstance(window, Refusal) and not isinstance(window, UnknownRank):
                return (
                    None
                    if isinstance(window, Meaningless)
                    else dataclasses.replace(found, fixable=False, hint=window.reason)
                )
            return found
        if mode in ("NOTSET", ""):
            found = self.finding(
                site, f"auto_pad={mode or repr(mode)} says nothing; `pads` decides.", "padfix convert removes it."
            )
            return dataclasses.replace(found, severity=Severity.INFO)
        return None

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the node without ``auto_pad``, with pads of 0 for VALID."""
        window = read_window(site.scope, site.node)
        if isinstance(window, UnknownRank):
            return self._without_rank(site)
        if isinstance(window, Refusal):
            return window
        pads = [0] * (2 * window.rank) if window.auto_pad == "VALID" else None
        fragment = explicit_fragment(site, pads, same=False)
        return Rewrite(fragment, trials(site, window, same=False), exact=window.is_exact)

    @staticmethod
    def _without_rank(site: Site) -> Rewrite | Refusal:
        """Return the node without ``auto_pad``, proven on every number of axes that it may have."""
        cases: list[Trial] = []
        exact = False
        for rank in (1, 2, 3):
            window = window_assumed(site.scope, site.node, rank)
            if not isinstance(window, Window):
                return window
            exact = window.is_exact
            cases += trials(site, window, same=False)[:3]
        return Rewrite(explicit_fragment(site, None, same=False), tuple(cases), exact=exact)
