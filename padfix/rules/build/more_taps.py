"""A convolution with more taps, of zero, or with dilations that say nothing: forms that runtimes read otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from padfix.graph import attributes
from padfix.operators.constant_chains import worked_out
from padfix.operators.refusal import Refusal
from padfix.operators.traits import joined_pairs, traits_of, window_traits
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

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_STEPS_SINCE = 10

_MOST_TAPS = 64
"""That are added along an axis."""


def between_taps(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Form:
    """Return the convolution with zeros between its taps in place of dilations; ``window`` has ``pairs`` for pads."""
    weights = worked_out(site.scope, site.input_name(1))
    dense = dataclasses.replace(window, dilations=(1,) * window.rank, kernel=window.spans)

    def write() -> Rewrite | Refusal:
        assert weights is not None
        return _with(site, dense, pairs, weights, partial(grown, dilations=window.dilations))

    operators: Operators = (*_of_bytes(site), ("Conv", window_traits(dense)))
    return Form("zeros between the taps", operators, write, _why_not(weights))


def behind_taps(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Form:
    """Return the convolution with a further tap along its last axis, of zero."""
    weights = _told(site)
    reach = (*pairs[:-1], (pairs[-1][0], pairs[-1][1] + window.dilations[-1]))
    written = dataclasses.replace(window.written, pads=tuple(flat(reach)))
    kernel = (*window.kernel[:-1], None if window.kernel[-1] is None else window.kernel[-1] + 1)
    longer = dataclasses.replace(window, written=written, kernel=kernel)

    def write() -> Rewrite | Refusal:
        assert weights is not None
        behind = [(0, 0)] * (weights.ndim - 1)
        return _with(site, window, reach, weights, partial(np.pad, pad_width=[*behind, (0, 1)]))

    operators: Operators = (*_of_bytes(site), ("Conv", window_traits(longer)))
    return Form("a further tap of zero", operators, write, _why_not(weights))


def beyond_pads(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Form:
    """Return the convolution with as many further taps, of zero, as no window lies in the pads at a begin with all.

    Those that a Pad before it adds count, which runtimes take for pads of the convolution.
    """
    weights, joined = _told(site), joined_pairs(site.scope, site.node, window)
    begins = [0 if pair is None else pair[0] for pair in joined or pairs]
    further = [
        0 if taps is None else max(0, begin // dilation + 1 - taps)
        for taps, dilation, begin in zip(window.kernel, window.dilations, begins, strict=True)
    ]
    reach = tuple(
        (begin, end + more * dilation)
        for (begin, end), more, dilation in zip(pairs, further, window.dilations, strict=True)
    )
    behind = [(0, more) for more in further]
    kernel = tuple(None if taps is None else taps + more for taps, more in zip(window.kernel, further, strict=True))
    written = dataclasses.replace(window.written, pads=tuple(flat(reach)))
    longer = dataclasses.replace(window, written=written, kernel=kernel)

    def write() -> Rewrite | Refusal:
        assert weights is not None
        return _with(site, window, reach, weights, partial(np.pad, pad_width=[(0, 0), (0, 0), *behind]))

    why_not = _why_not(weights)
    if why_not is None and not any(further):
        why_not = Refusal("no window lies in the pads at a begin")
    elif joined is None or max(further) > _MOST_TAPS:
        why_not = Refusal("its pads are not known, or very long")
    operators: Operators = (*_of_bytes(site), ("Conv", {**window_traits(longer), "wide-pads": False}))
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


def _told(site: Site) -> np.ndarray | None:
    """Return the weights as numbers, also where constant bytes stand for them."""
    return worked_out(site.scope, site.input_name(1)) if _of_bytes(site) else site.constant(1)


def _of_bytes(site: Site) -> Operators:
    """Return what makes numbers of weights that are bytes, as an operator of a form; none where they are no bytes."""
    maker = site.scope.own_producer(site.input_name(1))
    if maker is None or maker.op_type != "DequantizeLinear":
        return ()
    return ((maker.op_type, traits_of(site.scope, maker) or {}),)


def _with(
    site: Site,
    window: Window,
    pairs: tuple[Pair, ...],
    weights: np.ndarray,
    change: Callable[[np.ndarray], np.ndarray],
) -> Rewrite:
    """Return the convolution with weights that ``change`` adds zeros to, and the dilations of ``window``."""
    builder = site.builder()
    other = change(weights)
    node = copied(site.node, without=("auto_pad", "dilations"))
    attributes.set_integers(node, "kernel_shape", other.shape[2:])
    attributes.set_integers(node, "strides", window.strides)
    if max(window.dilations) > 1:
        attributes.set_integers(node, "dilations", window.dilations)
    attributes.set_integers(node, "pads", flat(pairs))
    inputs = [builder.input(name) for name in site.node.input]
    inputs[1] = _changed_bytes(site, builder, change) if _of_bytes(site) else builder.constant(other, "weights")
    bind(builder, site.node, builder.original(node, inputs))
    channels, maps = weights.shape[1] * window.written.group, weights.shape[0]
    cases = with_weights(site, trials(site, window, same=False), TrialInput.of(weights), channels, maps)
    return Rewrite(builder.build(), cases)


def _changed_bytes(site: Site, builder: FragmentBuilder, change: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Return the numbers of the changed bytes: a zero is the byte that stands for it."""
    maker = site.scope.own_producer(site.input_name(1))
    assert maker is not None
    told = [worked_out(site.scope, name) for name in maker.input if name]
    held, scale, *zeros = (each for each in told if each is not None)
    middle = zeros[0].astype(np.int64) if zeros else np.zeros((), np.int64)
    axis = attributes.integer(maker, "axis", 1) or 0
    if middle.ndim:
        middle = middle.reshape([-1 if each == axis % held.ndim else 1 for each in range(held.ndim)])
    # What is added is 0 beside numbers from which the middle is taken, so that it is put back everywhere.
    whole = change(held - middle) + middle
    values = [whole.astype(held.dtype), scale, *zeros]
    return builder.original(copied(maker), [builder.constant(each, "weights") for each in values])


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
