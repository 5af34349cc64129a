"""PF106: pads that differ between the two sides of an axis, where the user wants them beside the operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from padfix.operators.reading import read, read_attributes_of
from padfix.operators.refusal import Meaningless, Refusal
from padfix.operators.table import PADDED
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Window
from padfix.results import Finding
from padfix.rules.base import Rewrite, Rule, Site
from padfix.rules.build.pads_beside import beside_opset, rewrite_beside, why_not_beside
from padfix.rules.build.transposed import rewrite_transposed

_TRANSPOSED = ("", "ConvTranspose")


class AsymmetricPadding(Rule):
    """An operator pads the two sides of an axis by different amounts, which not every importer can read.

    SAME padding of an even total or a stride above 1 mostly ends up this way. ONNX has no trouble with it, so nothing
    is reported unless `--pads node` (or a target) asks for another form, which padfix then writes:

    - Convolutions and pools get a Pad in front and pad nothing themselves. The Pad holds what the operator would pad
      with: 0, for MaxPool minus infinity (integers: their least value), for quantized convolutions the zero point.
    - An AveragePool that does not count its pads is corrected by a constant factor for the windows at the border, or,
      where a size is dynamic, divided by the average of ones that are padded the same way.
    - The indices of a MaxPool are counted again in the unpadded input.
    - A QLinearAveragePool that does not count its pads can't be corrected after it has rounded: it gets equal pads, and
      a Slice behind it drops the windows that were not there before.
    - A ConvTranspose, whose pads cut elements off, cuts nothing, and a Slice behind it does.

    Operators with equal pads on both sides of each axis stay as they are. The Pad before a pool is written so that
    ONNX Runtime does not fuse it (see PF108). `--pads attribute` is the way back (see PF107).

    Refused: `ceil_mode` where the last window might start in the padding, which a Pad can't say, and a
    QLinearAveragePool whose kernel is too short for equal pads.

    Before, opset 17:

        main (float[1,3,32,32] X, float[8,3,3,3] W) => (float[1,8,16,16] Y) {
          Y = Conv <kernel_shape = [3, 3], pads = [0, 0, 1, 1], strides = [2, 2]> (X, W)
        }

    After:

        padded = Pad <mode = "constant"> (X, pads, zero)
        Y = Conv <kernel_shape = [3, 3], strides = [2, 2]> (padded, W)

    References:

    - The ONNX specification of Pad: <https://onnx.ai/onnx/operators/onnx__Pad.html>
    - The ONNX specification of AveragePool: <https://onnx.ai/onnx/operators/onnx__AveragePool.html>
    """

    code = "PF106"
    name = "asymmetric-padding"
    operators = PADDED | {_TRANSPOSED}
    opt_in: ClassVar[Mapping[str, Any]] = {"pads": "node"}

    def match(self, site: Site) -> Finding | None:
        """Return a finding for explicit pads that differ between the sides of an axis, if the user cares."""
        written = read_attributes_of(site.scope, site.node)
        if site.target.pads != "node" or written.mode:
            return None
        if "pads" in written.references:
            return self.finding(site, f"pads are decided by the callers of {site.scope.path}.", fixable=False)
        pads = written.pads or ()
        half = len(pads) // 2
        if pads[:half] == pads[half:] or isinstance(read(site.scope, site.node), Meaningless):
            return None
        return self.finding(
            site,
            f"pads={list(pads)} differ between the two sides of an axis.",
            f"padfix convert --pads node writes them as a {'Slice' if _is_transposed(site) else 'Pad'}.",
        )

    def refusal(self, site: Site) -> Refusal | None:
        """Return why a Pad or equal pads can't stand for these."""
        window = read(site.scope, site.node)
        if isinstance(window, Refusal):
            return window
        return why_not_beside(window, window.explicit_pads) if isinstance(window, Window) else None

    def minimum_opset(self, site: Site) -> int:
        """Return the version whose Pad takes the element type, or 9 where ones have to be made at run time."""
        window = read(site.scope, site.node)
        if not isinstance(window, Window):
            return 1
        return beside_opset(window)

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the operator without pads behind a Pad, or before a Slice."""
        window = read(site.scope, site.node)
        if isinstance(window, TransposedWindow):
            return rewrite_transposed(site, window)
        if isinstance(window, Window):
            return rewrite_beside(site, window, window.explicit_pads)
        assert isinstance(window, Refusal)
        return window


def _is_transposed(site: Site) -> bool:
    return (site.domain, site.node.op_type) == _TRANSPOSED
