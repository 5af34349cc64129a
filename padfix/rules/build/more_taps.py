"""A convolution with more taps, of zero, or with dilations that say nothing: forms that runtimes read otherwise."""

from __future__ import annotations

import dataclasses

import numpy as np

from padfix.graph import attributes
from padfix.operators.constant_chains import worked_out
from padfix.operators.refusal import Refusal
from padfix.operators.traits import joined_pairs, window_traits
from padfix.operators.window import Pair, Window
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.explicit_pads import bind, copied, flat
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.transposed import TO_THE_END
from padfix.rules.build.trials import trials
from padfix.rules.build.window_along_axes import grown, with_weights
from padfix.targets.traits import Traits

_STEPS_SINCE = 10

_MOST_TAPS = 64
"""That are added along an axis."""


def between_taps(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Form:
    """Return the convolution with zeros between its taps in place of dilations; ``window`` has ``pairs`` for pads."""
    weights = worked_out(site.scope, site.input_name(1))
    dense = dataclasses.replace(window, dilations=(1,) * window.rank, kernel=window.spans)

    def write() -> Rewrite | Refusal:
        assert weights is not None
        return _with(site, dense, pairs, weights, grown(weights, window.dilations))

    return Form("zeros between the taps", (("Conv", window_traits(dense)),), write, _why_not(weights))


def behind_taps(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Form:
    """Return the convolution with a further tap along its last axis, of zero."""
    weights = site.constant(1)
    reach = (*pairs[:-1], (pairs[-1][0], pairs[-1][1] + window.dilations[-1]))
    written = dataclasses.replace(window.written, pads=tuple(flat(reach)))
    kernel = (*window.kernel[:-1], None if window.kernel[-1] is None else window.kernel[-1] + 1)
    longer = dataclasses.replace(window, written=written, kernel=kernel)

    def write() -> Rewrite | Refusal:
        assert weights is not None
        behind = [(0, 0)] * (weights.ndim - 1)
        return _with(site, window, reach, weights, np.pad(weights, [*behind, (0, 1)]))

    return Form("a further tap of zero", (("Conv", window_traits(longer)),), write, _why_not(weights))


def beyond_pads(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Form:
    """Return the convolution with as many further taps, of zero, as no window lies in the pads at a begin with all.

    Those that a Pad before it adds count, which runtimes take for pads of the convolution.
    """
    weights, joined = site.constant(1), joined_pairs(site.scope, site.node, window)
    begins = [0 if pair is None else pair[0] for pair in joined or pairs]
    further = [
        0 if taps is None else max(0, begin // dilation + 1 - taps)
        for taps, dilation, begin in zip(window.kernel, window.dilations, begins, strict=True)
    ]
    reach = tuple(
        (begin, end + more * dilation)
        for (begin, end), more, dilation in zip(pairs, further, window.dilations, strict=True)
    )
    kernel = tuple(None if taps is None else taps + more for taps, more in zip(window.kernel, further, strict=True))
    written = dataclasses.replace(window.written, pads=tuple(flat(reach)))
    longer = dataclasses.replace(window, written=written, kernel=kernel)

    def write() -> Rewrite | Refusal:
        assert weights is not None
        return _with(site, window, reach, weights, np.pad(weights, [(0, 0), (0, 0), *((0, more) for more in further)]))

    why_not = _why_not(weights)
    if why_not is None and not any(further):
        why_not = Refusal("no window lies in the pads at a begin")
    elif joined is None or max(further) > _MOST_TAPS:
        why_not = Refusal("its pads are not known, or very long")
    operators: Operators = (("Conv", {**window_traits(longer), "wide-pads": False}),)
    return Form("further taps of zero, more than pads", operators, write, why_not)


def unstrided(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Form:
    """Return the convolution at every place, of which a Slice takes those that its strides lead to."""
    ones = (1,) * window.rank
    written = dataclasses.replace(window.written, strides=ones)
    plain = dataclasses.replace(window, written=written, strides=ones)

    def write() -> Rewrite:
        builder = site.builder()
        node = copied(site.node, without=("auto_pad",))
        attributes.set_integers(node, "strides", ones)
        attributes.set_integers(node, "pads", flat(pairs))
        every = builder.original(node, [builder.input(name) for name in site.node.input])
        bind(builder, site.node, sliced(builder, every, [0] * window.rank, [TO_THE_END] * window.rank, axes, steps))
        return Rewrite(builder.build(), trials(site, window, same=False))

    axes, steps = list(range(2, window.rank + 2)), list(window.strides)
    why_not = None
    if window.domain or site.opset < _STEPS_SINCE:
        why_not = Refusal("its results are no numbers, or this opset has no Slice with steps")
    takes: Traits = {"behind-window": True, "strided": True, "skips-behind": "window", "rank": window.rank + 2}
    return Form("a Slice of all places", (("Conv", window_traits(plain)), ("Slice", takes)), write, why_not)


def _why_not(weights: np.ndarray | None) -> Refusal | None:
    return None if weights is not None else Refusal("the weights are long, or not constant")


def _with(site: Site, window: Window, pairs: tuple[Pair, ...], weights: np.ndarray, other: np.ndarray) -> Rewrite:
    """Return the convolution with ``other`` for its weights, and the dilations of ``window``."""
    builder = site.builder()
    node = copied(site.node, without=("auto_pad", "dilations"))
    attributes.set_integers(node, "kernel_shape", other.shape[2:])
    attributes.set_integers(node, "strides", window.strides)
    if max(window.dilations) > 1:
        attributes.set_integers(node, "dilations", window.dilations)
    attributes.set_integers(node, "pads", flat(pairs))
    inputs = [builder.input(name) for name in site.node.input]
    inputs[1] = builder.constant(other, "weights")
    bind(builder, site.node, builder.original(node, inputs))
    channels, maps = weights.shape[1] * window.written.group, weights.shape[0]
    cases = with_weights(site, trials(site, window, same=False), TrialInput.of(weights), channels, maps)
    return Rewrite(builder.build(), cases)


def dilated_along_one_tap(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Form:
    """Return the convolution with dilations along the axes on which it has one tap, where they are all the same."""
    dilations = tuple(2 if taps == 1 else each for taps, each in zip(window.kernel, window.dilations, strict=True))
    written = dataclasses.replace(window.written, dilations=dilations)
    spread = dataclasses.replace(window, written=written, dilations=dilations)

    def write() -> Rewrite | Refusal:
        node = copied(site.node, without=("auto_pad",))
        attributes.set_integers(node, "dilations", dilations)
        attributes.set_integers(node, "pads", flat(pairs))
        return Rewrite(site.only(node), trials(site, window, same=False))

    why_not = None if dilations != window.dilations else Refusal("it has several taps along every axis")
    return Form("dilations where there is one tap", (("Conv", window_traits(spread)),), write, why_not)
