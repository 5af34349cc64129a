"""PF101: SAME padding whose amount is known before the model runs."""

from __future__ import annotations

from padfix.graph.lengths import is_expression, is_made_up
from padfix.operators.reading import asks_for_same, read_attributes_of, read_window
from padfix.operators.refusal import Meaningless, Refusal
from padfix.operators.window import Window
from padfix.results import Finding
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import flat
from padfix.rules.build.pads_at_run_time import SameRule
from padfix.rules.build.window_forms import why_no_pad_before


def _where(window: Window) -> str:
    """Return the expressions that the model declares for lengths and that the pads rest on."""
    pairs = zip(window.sizes, window.strides, strict=True)
    declared = [size for size, stride in pairs if stride > 1 and isinstance(size, str) and is_expression(size)]
    return "".join(f" for a length of {size}" for size in dict.fromkeys(declared) if not is_made_up(size))


class ImplicitSamePadding(SameRule):
    """A convolution or pool leaves its pads to `auto_pad=SAME_UPPER` or `SAME_LOWER`, and they are known numbers.

    Runtimes disagree about what `auto_pad` means: with dilations ONNX Runtime refuses convolutions and computes pools
    from the undilated kernel; with a stride longer than the kernel it reads other elements or refuses the node; others
    put the odd element on the other side, or know no `auto_pad` at all.

    padfix writes the pads out. For an input length `n`, with `span = (kernel - 1) * dilation + 1`:

        output = ceil(n / stride)
        total  = max(0, (output - 1) * stride + span - n)

    The odd element goes to the end for `SAME_UPPER` and to the begin for `SAME_LOWER`. The total depends on `n` only
    through `n % stride`, so it is known for every length where the stride is 1, and for one that doubling an unknown
    length gives; what an input declares (`32*k`) is a name that no runtime enforces. It is known as well where only the
    end depends on the length (a kernel of 2 at stride 2, say): the longest end makes no window more. The meaning is
    that of the specification from opset 11 on, which is also what runtimes do for older models.

    Pads of a dilated pool may be longer than its kernel has taps; ONNX Runtime refuses those as an attribute, so padfix
    writes a Pad (of minus infinity for MaxPool) before the pool.

    Known operators: Conv, ConvInteger, QLinearConv, MaxPool, AveragePool and LpPool of ONNX; FusedConv, NhwcConv,
    NhwcFusedConv, NhwcMaxPool, MaxpoolWithMask, QLinearAveragePool and QLinearConv of ONNX Runtime (com.microsoft).
    Those that ONNX Runtime writes for its own layout of memory are reported and left. An operator of any other domain
    is left alone, whatever it is called.

    Refused: a kernel whose shape nothing tells, attributes that the callers of a function give, lists of a wrong
    length, and the indices of a MaxPool with a window that lies in the padding with all its taps.

    Before, opset 17:

        main (float[1,3,32,32] X) => (float[1,3,16,16] Y) {
          Y = MaxPool <auto_pad = "SAME_UPPER", kernel_shape = [3, 3], strides = [2, 2]> (X)
        }

    After:

        Y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [0, 0, 1, 1]> (X)

    References:

    - The ONNX specification of Conv: <https://onnx.ai/onnx/operators/onnx__Conv.html>
    - ONNX Runtime refuses SAME with dilations: <https://github.com/microsoft/onnxruntime/issues/20582>
    - ONNX Runtime reads other elements with a stride above the kernel: <https://github.com/microsoft/onnxruntime/issues/10086>
    - Pads longer than the kernel has taps: <https://github.com/microsoft/onnxruntime/issues/23088>
    """

    code = "PF101"
    name = "implicit-same-padding"

    def match(self, site: Site) -> Finding | None:
        """Return a finding for SAME with known pads, and for SAME that can't be read though it has a meaning."""
        written = read_attributes_of(site.scope, site.node)
        if "auto_pad" in written.references:
            window = read_window(site.scope, site.node)
            hint = window.reason if isinstance(window, Refusal) else ""
            return self.finding(site, f"auto_pad is decided by the callers of {site.scope.path}.", hint, fixable=False)
        if not asks_for_same(written):
            return None
        window = read_window(site.scope, site.node)
        if isinstance(window, Meaningless):
            return None
        mode = written.mode
        if isinstance(window, Refusal):
            return self.finding(site, f"auto_pad={mode} leaves the pads to the runtime.", window.reason, fixable=False)
        pairs = window.same_pads()
        known = [pair for pair in pairs if pair is not None]
        if len(known) != len(pairs):
            return None
        return self.finding(
            site,
            f"auto_pad={mode} leaves the pads to the runtime; here they are {flat(known)}{_where(window)}.",
            "padfix convert writes them out.",
        )

    def refusal(self, site: Site) -> Refusal | None:
        """Return what the target has against the Pad that a pool with pads as long as its kernel needs."""
        window = read_window(site.scope, site.node)
        return None if isinstance(window, Refusal) else why_no_pad_before(site, window)

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the operator with its pads written out, as attribute or as a Pad before it."""
        return self.refusal(site) or super().rewrite(site)
