"""A convolution whose weights or bias are computed: with its kernel written, and its bias as a sum behind it."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.operators.window import Window
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators

_BIAS = 2


def weighed_forms(site: Site, window: Window) -> Iterator[Form]:
    """Yield a Conv of two computed inputs, or with a computed bias, with all that its weights would tell."""
    own = traits_of(site.scope, site.node) or {}
    if site.node.op_type != "Conv" or not (own.get("weights-computed") or own.get("bias-computed")):
        return
    kernel = [taps for taps in window.kernel if taps is not None]
    has_bias = bool(site.input_name(_BIAS))
    channels = None
    if has_bias and (known := site.input_type(_BIAS)) is not None and known.lengths is not None:
        channels = known.lengths[0]

    def write() -> Rewrite:
        builder = site.builder()
        given = [builder.input(name) for name in site.node.input]
        node = copied(site.node)
        attributes.set_integers(node, "kernel_shape", kernel)
        result = builder.original(node, given[:_BIAS])
        if has_bias and channels is not None:
            told, shape = site.constant(_BIAS), [1, channels, *[1] * len(kernel)]
            bias = (
                builder.reshaped(given[_BIAS], shape) if told is None else builder.constant(told.reshape(shape), "bias")
            )
            result = builder.op("Add", [result, bias])
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), trials_of(site))

    why_not = None if len(kernel) == window.rank else Refusal("its kernel is not known")
    if has_bias and channels is None:
        why_not = Refusal("how many channels it gives is not known")
    traits = {**own, "kernel-written": True, "biased": False, "bias-computed": False}
    operators: Operators = (("Conv", traits), *((("Add", {}),) if has_bias else ()))
    yield Form("its kernel written, and its bias behind it", operators, write, why_not)
