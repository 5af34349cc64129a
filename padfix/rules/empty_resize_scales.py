"""PF204: an empty tensor where a Resize has no scales or no region of interest to name."""

from __future__ import annotations

from padfix.operators.refusal import Refusal
from padfix.results import Finding
from padfix.rules.base import Rewrite, Rule, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.resize_trials import SCALES, SIZES, is_empty, resize_trials

_ROI = 1
_OMITTED_SINCE = 13
"""The first opset whose Resize may leave out its region of interest and its scales."""


class EmptyResizeScales(Rule):
    """A Resize with `sizes` also gets an empty tensor as its `scales` or its `roi`.

    At opset 11 and 12 that is how it has to be written, because both inputs are required. Since opset 13 they may be
    left out, and a Resize has either scales or sizes: importers that look at which inputs are there, and not at how
    many elements they hold, find both and refuse the model (TVM, WebNN). tf2onnx writes every Resize this way.

    padfix leaves the empty inputs out; nothing else changes. The region of interest stays in mode
    `tf_crop_and_resize`, which needs one.

    Refused: a node whose input has an unknown rank, because then it can't be proven on its own.

    Before, opset 13:

        main (float[1,3,8,8] X) => (float[1,3,16,16] Y)
        <float[0] empty = {}, int64[4] sizes = {1, 3, 16, 16}> {
          Y = Resize <mode = "linear"> (X, empty, empty, sizes)
        }

    After:

        Y = Resize <mode = "linear"> (X, , , sizes)

    References:

    - The ONNX specification of Resize: <https://onnx.ai/onnx/operators/onnx__Resize.html>
    - Which inputs may be left out since when: <https://github.com/onnx/onnx/issues/3500>
    """

    code = "PF204"
    name = "empty-resize-scales"
    operators = frozenset({("", "Resize")})

    def match(self, site: Site) -> Finding | None:
        """Return a finding for a Resize with sizes and with empty inputs that it need not have."""
        empty = _needless(site)
        if not empty:
            return None
        words = " and ".join({_ROI: "roi", SCALES: "scales"}[position] for position in empty)
        return self.finding(site, f"An empty tensor is given as {words} beside sizes.", "padfix convert leaves it out.")

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the same node without the empty inputs."""
        trials = resize_trials(site)
        if isinstance(trials, Refusal):
            return trials
        empty = _needless(site)
        node = copied(site.node)
        for position in empty:
            node.input[position] = ""
        return Rewrite(site.only(node), trials, exact=site.text("mode", "nearest") == "nearest")


def _needless(site: Site) -> list[int]:
    """Return the positions of the empty inputs that may be left out."""
    if site.scope.opset < _OMITTED_SINCE or not site.input_name(SIZES) or is_empty(site, SIZES):
        return []
    cropped = site.text("coordinate_transformation_mode") == "tf_crop_and_resize"
    optional = (SCALES,) if cropped else (_ROI, SCALES)
    return [position for position in optional if site.input_name(position) and is_empty(site, position)]
