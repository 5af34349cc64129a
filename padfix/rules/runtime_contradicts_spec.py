"""PF109: a windowed operator that ONNX Runtime refuses, or runs to another result than the specification gives."""

from __future__ import annotations

from onnx import TensorProto

from padfix.geometry.padding import effective_kernel, same_output_size, window_output_size
from padfix.geometry.runtimes import ONNX_RUNTIME, convolution_agrees, pool_agrees, pool_axis, unclamped_total
from padfix.geometry.transposed import same_axis
from padfix.graph.lengths import known_residue
from padfix.graph.scopes import Dimension
from padfix.operators.reading import read
from padfix.operators.refusal import Refusal
from padfix.operators.table import PADDED
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Pair, Window
from padfix.operators.written import SAME
from padfix.results import Finding
from padfix.rules.base import Rewrite, Rule, Site, Trial
from padfix.rules.build.explicit_pads import (
    copied,
    is_too_long,
    needed_opset,
    needs_separate_pad,
    reads_padding_only,
)
from padfix.rules.build.pads_at_run_time import pad_at_run_time
from padfix.rules.build.trials import trials

_TRANSPOSED = ("", "ConvTranspose")

_MOST_RESIDUES = 4096


class RuntimeContradictsSpec(Rule):
    """A convolution or pool is one that ONNX Runtime refuses, or runs to other numbers than the specification gives.

    Measured on the CPU kernels of ONNX Runtime 1.31.1:

    - SAME with dilations: convolutions are refused; pools take the pads of the undilated kernel, so that the
      output is short.
    - SAME where the stride is longer than the (dilated) kernel, and elements are left over: the total of the pads is
      negative and not cut to 0. MaxPool without dilations and AveragePool before opset 19 are refused when they run;
      the others start inside the input and read other elements.
    - ConvTranspose with SAME and a kernel shorter than the stride: the output is shorter than `length * stride`.
    - Pools with a pad as long as the kernel has taps, or longer: refused when the model is loaded, although dilated
      taps span more.
    - Pools with ceil_mode before opset 22, where the last window would start in the end padding (or behind the input)
      and is left out: with optimisations, a Shape behind the pool is folded to one element more than there is.
    - Dilated pools with a window whose taps all lie in the padding: MaxPool gives the lowest finite number instead of
      minus infinity, AveragePool 0 instead of not-a-number.

    Where `auto_pad` is the cause, writing the pads out (PF101, PF102, PF105) removes it. Pads that are too long become
    a Pad of their own. A model with such a node can't be proven with ONNX Runtime as the judge of the original:
    `padfix convert --reference spec` holds the result against the specification. Nodes that no list knows are found
    when a rewrite is proven; both are in the report, with the shapes and values of the two results.

    Refused: averages of windows that lie in the padding, which have no value, and long pads together with a `ceil_mode`
    that adds a window.

    Before, opset 17:

        main (float[1,2,9,8] X) => (float[1,2,11,8] Y) {
          Y = MaxPool <kernel_shape = [2, 2], dilations = [3, 1], pads = [3, 1, 2, 0]> (X)
        }

    After:

        padded = Pad <mode = "constant"> (X, pads, minus_infinity)
        Y = MaxPool <kernel_shape = [2, 2], dilations = [3, 1]> (padded)

    References:

    - The ONNX specification of MaxPool: <https://onnx.ai/onnx/operators/onnx__MaxPool.html>
    - Dilations with SAME: <https://github.com/microsoft/onnxruntime/issues/20582>
    - Long pads: <https://github.com/microsoft/onnxruntime/issues/23088>
    """

    code = "PF109"
    name = "runtime-contradicts-spec"
    operators = PADDED | {_TRANSPOSED}

    def match(self, site: Site) -> Finding | None:
        """Return a finding for a node that is known to be run against the specification."""
        window = read(site.scope, site.node)
        if isinstance(window, TransposedWindow):
            return self._short_transpose(site, window)
        if not isinstance(window, Window):
            return None
        if window.auto_pad in SAME and not window.written.pads:
            words = _same_slip(site, window)
            hint = "padfix convert writes the pads out; explicit pads are run as specified."
            return self._finding(site, words, hint) if words else None
        pairs = _explicit(window)
        if not window.operator.is_pool:
            return None
        if _ceiling_is_misread(site, window):
            return self._finding(
                site,
                "takes the output to be one element longer than it is, because of ceil_mode, when it folds shapes",
                "padfix convert removes ceil_mode, which changes nothing for this size.",
            )
        if not pairs:
            return None
        if is_too_long(window, pairs):
            hint = "padfix convert puts a Pad before the pool."
            words = "refuses to load pads that are as long as the kernel has taps"
            reason = _why_not(window)
            return self._finding(site, words, reason or hint, fixable=not reason)
        if reads_padding_only(window, pairs):
            words = {
                "MaxPool": "gives the lowest finite number for a window that lies in the padding, not minus infinity",
                "AveragePool": "gives 0 for a window that lies in the padding, not not-a-number",
            }.get(window.op_type)
            reason = _why_not(window)
            if window.op_type != "MaxPool":
                reason = "Correct the dilations or the pads: such a window holds no data."
            return self._finding(
                site, words, reason or "padfix convert puts a Pad before the pool.", fixable=not reason
            )
        return None

    def _finding(self, site: Site, words: str | None, hint: str, *, fixable: bool = True) -> Finding | None:
        if words is None:
            return None
        return self.finding(site, f"{ONNX_RUNTIME} {words}.", hint, fixable=fixable)

    def _short_transpose(self, site: Site, window: TransposedWindow) -> Finding | None:
        if window.auto_pad not in SAME or window.output_shape is not None:
            return None
        axes = zip(window.axes, window.output_padding, strict=True)
        missing = [
            0 if taps is None else same_axis(taps, stride, dilation, more).output_padding - more
            for (_, taps, stride, dilation), more in axes
        ]
        if not any(missing):
            return None
        return self._finding(
            site,
            f"leaves {missing} elements of the output out on the spatial axes, because the kernel is shorter than the "
            "stride",
            "padfix convert writes the pads out; explicit pads are run as specified.",
        )

    def needs_specification(self, site: Site) -> bool:
        """Return True: that is what the rule is about."""
        return True

    def minimum_opset(self, site: Site) -> int:
        """Return 11 where a Pad of integers has to stand before the pool."""
        window = _separable(site)
        return 1 if window is None else needed_opset(window, _explicit(window))

    def trials(self, site: Site) -> tuple[Trial, ...]:
        """Return shapes that show what the node does as it stands."""
        window = read(site.scope, site.node)
        return trials(site, window, same=False) if isinstance(window, Window) else ()

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return a pool behind a Pad for pads that are too long for an attribute, or a pool without ceil_mode."""
        window = read(site.scope, site.node)
        if isinstance(window, Window) and window.auto_pad not in SAME and _ceiling_is_misread(site, window):
            node = copied(site.node, without=("ceil_mode",))
            return Rewrite(site.only(node), trials(site, window, same=False), exact=window.is_exact)
        separable = _separable(site)
        if separable is None:
            return Refusal("It goes when the pads are written out, which was not possible here.")
        reason = _why_not(separable)
        return Refusal(reason) if reason else pad_at_run_time(site, separable, _explicit(separable))


def _explicit(window: Window) -> tuple[Pair, ...]:
    """Return the pads of a node without auto_pad; empty when it has none."""
    pairs = window.explicit_pads
    return pairs if any(map(any, pairs)) else ()


def _separable(site: Site) -> Window | None:
    window = read(site.scope, site.node)
    if not isinstance(window, Window):
        return None
    pairs = _explicit(window)
    return window if pairs and needs_separate_pad(window, pairs) else None


def _ceiling_is_misread(site: Site, window: Window) -> bool:
    """Whether ceil_mode adds no window on any axis, and would add one that starts in the end padding on some."""
    if not window.operator.is_pool or site.scope.opset >= 22 or not window.written.ceil_mode:
        return False
    if window.auto_pad in SAME:
        return False
    pairs = _explicit(window) or ((0, 0),) * window.rank
    misread = False
    for (size, taps, stride, dilation), (begin, end) in zip(window.axes, pairs, strict=True):
        if not isinstance(size, int) or taps is None:
            return False
        floor, ceiling = (
            window_output_size(size, taps, stride, dilation, begin, end, ceil_mode=mode) for mode in (False, True)
        )
        if floor != ceiling:
            return False
        span = size + begin + end - effective_kernel(taps, dilation)
        misread |= -(-span // stride) + 1 > ceiling
    return misread


def _why_not(window: Window) -> str:
    """Return why the pads can't be a Pad before the pool; empty when they can."""
    if not window.written.ceil_mode:
        return ""
    for (size, taps, stride, dilation), pair in zip(window.axes, _explicit(window), strict=True):
        if not isinstance(size, int) or taps is None:
            return "With ceil_mode a Pad before the pool would add windows: set ceil_mode=0, or fix the size (--shape)."
        lengths = {window_output_size(size, taps, stride, dilation, *pair, ceil_mode=mode) for mode in (False, True)}
        if len(lengths) > 1:
            return "With ceil_mode the last window goes beyond the pads, which a Pad before the pool can't say."
    return ""


def _same_slip(site: Site, window: Window) -> str | None:
    """Return what ONNX Runtime does with this SAME; None when it does as specified."""
    pool, dilated = window.operator.is_pool, max(window.dilations) > 1
    if dilated and not pool:
        return "refuses to run SAME with dilations"
    upper = window.auto_pad == "SAME_UPPER"
    axes = [
        [(length, taps, stride, dilation) for length in _lengths(size, taps, stride, dilation)]
        for size, taps, stride, dilation in window.axes
        if taps is not None
    ]
    if not dilated and _refuses_negative_totals(site, window):
        negative = any(unclamped_total(n, taps, stride) < 0 for axis in axes for n, taps, stride, _ in axis)
        return "refuses to run SAME where the stride is longer than the kernel" if negative else None
    ceil_mode = window.written.ceil_mode
    cases = [case for axis in axes for case in axis]
    counts = window.written.count_include_pad
    if pool and all(pool_agrees(*case, upper=upper, ceil_mode=ceil_mode, counts_pads=counts) for case in cases):
        return None
    if not pool and all(convolution_agrees(*case[:3], upper=upper) for case in cases):
        return None
    if dilated:
        sizes = window.sizes
        if all(isinstance(size, int) for size in sizes):
            meant = [same_output_size(*case[0][::2]) for case in axes]
            given = [pool_axis(*case[0], upper=upper, ceil_mode=ceil_mode)[1] for case in axes]
            if meant != given:
                return f"takes the pads of the undilated kernel: the output is {given} instead of {meant}"
        return "takes the pads of the undilated kernel"
    return "starts inside the input, because the stride is longer than the kernel"


def _lengths(size: Dimension, taps: int | None, stride: int, dilation: int) -> list[int]:
    """Return the length, or one of each residue modulo the stride when it is not known.

    Of a stride beyond any model's these are the first, where a total turns negative.
    """
    if isinstance(size, int):
        return [size] if size > 0 else []
    span = effective_kernel(taps or 1, dilation)
    residue = known_residue(size, stride)
    if residue is not None:
        return [span + (residue - span) % stride]
    return list(range(span, span + min(stride, _MOST_RESIDUES)))


def _refuses_negative_totals(site: Site, window: Window) -> bool:
    """Whether the kernel of the node refuses a negative total when it runs, rather than using it."""
    if window.domain:
        return False
    if window.operator.is_average:
        return site.scope.opset < 19 and not (window.written.ceil_mode and window.written.count_include_pad)
    return window.operator.is_maximum and not window.has_indices and window.elem_type in (None, TensorProto.FLOAT)
