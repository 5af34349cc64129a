"""PF102: SAME padding whose amount depends on a length that is known at run time only."""

from __future__ import annotations

from padfix.operators.reading import asks_for_same, read_attributes_of, read_window
from padfix.operators.refusal import Refusal
from padfix.results import Finding
from padfix.rules.base import Site
from padfix.rules.build.pads_at_run_time import SameRule
from padfix.rules.build.window_forms import is_best_as_written


class DynamicSamePadding(SameRule):
    """A convolution or pool asks for SAME, and a length that its pads depend on is only known at run time.

    Where a length is dynamic and the stride is above 1, SAME pads one amount for one length and another for the next,
    so no `pads` attribute is right for all. padfix leaves in `pads` what is the same for every length: the shortest
    begin, the longest end (elements at the end that no window reaches do no harm), and axes whose pads are known. What
    the begin lacks depends on the length modulo the stride: a Pad adds it, and one model is right for every size. (For
    a kernel of 3 at stride 2 it is that very remainder; for others a Gather looks it up.) With `--pads node`, and
    before dilated pools and pools with indices, the Pad holds all, and the node pads nothing.

    MaxPool is padded with minus infinity (integer types: their least value). AveragePool that does not count its pads
    is divided by the average of ones padded the same way. Indices of a MaxPool are counted again in the unpadded input.
    The Pad needs opset 11.

    If only one size is ever used, fix it (`--shape NAME=1,3,224,224`) and the pads become an attribute.

    For a target that is known to refuse a Pad with computed amounts, and against whose reading of SAME nothing is
    known, the operator stays as it is.

    Refused: what PF101 refuses, an input whose element type is not known, a quantized average that does not count
    its pads, and a model that can't be moved to opset 11.

    Before, opset 17:

        main (float[1,3,N] X, float[8,3,3] W) => (float[1,8,M] Y) {
          Y = Conv <auto_pad = "SAME_UPPER", strides = [2]> (X, W)
        }

    After (the stride and zeros are constants):

        length = Shape <start = 2> (X)
        begin = Mod (length, stride)
        pads = Concat <axis = 0> (zeros, begin, zeros)
        padded = Pad <mode = "constant"> (X, pads, zero)
        Y = Conv <strides = [2], pads = [0, 1]> (padded, W)

    References:

    - The ONNX specification of Conv: <https://onnx.ai/onnx/operators/onnx__Conv.html>
    - An importer that asks for SAME on dynamic sizes: <https://github.com/tracel-ai/burn-onnx/issues/468>
    - Another: <https://github.com/apache/tvm/pull/11127>
    """

    code = "PF102"
    name = "dynamic-same-padding"

    def match(self, site: Site) -> Finding | None:
        """Return a finding for SAME where some axis has pads that depend on an unknown length."""
        if not asks_for_same(read_attributes_of(site.scope, site.node)):
            return None
        window = read_window(site.scope, site.node)
        if isinstance(window, Refusal):
            return None
        axes = [window.leading + axis for axis, pair in enumerate(window.same_pads()) if pair is None]
        if not axes or is_best_as_written(site, window):
            return None
        where = f"axis {axes[0]}" if len(axes) == 1 else f"axes {', '.join(map(str, axes))}"
        return self.finding(
            site,
            f"auto_pad={window.auto_pad} on a dynamic length ({where}): the pads differ from size to size.",
            "padfix convert computes them in the graph; with --shape they become an attribute.",
        )
