"""Equal forms of a transposed convolution, each with the operators that it is made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

from padfix.graph import attributes
from padfix.operators.constant_chains import worked_out
from padfix.operators.picking_traits import computed_weights
from padfix.operators.refusal import Refusal
from padfix.operators.traits import pad_before, transposed_traits
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Pair
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.explicit_pads import copied, flat
from padfix.rules.build.forms import Form, by_another_rule
from padfix.rules.build.groups_apart import groups_apart
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.plane_forms import plane_forms
from padfix.rules.build.transposed import (
    TO_THE_END,
    cases_as_written,
    pads_of,
    rewrite_transposed,
    transposed_cases,
)
from padfix.rules.build.window_along_axes import grown, spread_form, with_weights
from padfix.rules.build.window_forms import all_written, written_out
from padfix.rules.build.without_groups import without_groups
from padfix.targets.traits import Traits


def transposed_forms(site: Site, window: TransposedWindow) -> Iterator[Form]:
    """Yield the forms of a transposed convolution, the nearest to what stands there first."""
    own = {"behind-pad": pad_before(site.scope, site.node), **computed_weights(site.scope, site.node)}
    plain = [
        dataclasses.replace(form, operators=_with_own(form.operators, own))
        for form in _transposed_plainly(site, window)
    ]
    yield from plain
    if window.has_bias:
        traits = {**transposed_traits(all_written(window)), **own}
        as_it_is = Form("as it is", (("ConvTranspose", traits),), by_another_rule)
        for form in (as_it_is, *plain):
            operators = _with_own(form.operators, {"biased": False, "bias-computed": False})
            name = f"{form.name}, the bias added behind it"
            yield Form(name, (*operators, ("Add", {})), lambda: _bias_behind(site, window), form.why_not)
    spread = pads_of(window)
    if window.written.group > 1:
        cases = partial(cases_as_written, site, window)
        yield without_groups(site, all_written(window), cases, own)
        yield groups_apart(site, all_written(window), cases, own)
    if spread is not None:
        yield spread_form(site, window, *spread)
        if window.written.group > 1:
            yield spread_form(site, window, *spread, keeps_groups=False)


def _with_own(operators: Operators, own: Traits) -> Operators:
    """Return operators of which the transposed convolution has traits of its own."""
    return tuple((each, {**traits, **own} if each == "ConvTranspose" else traits) for each, traits in operators)


def _transposed_plainly(site: Site, window: TransposedWindow) -> Iterator[Form]:
    yield written_out(site, window, transposed_traits(all_written(window)))
    found = pads_of(window)
    if found is None:
        yield Form("explicit pads", (), by_another_rule, Refusal("its pads depend on lengths that are not known"))
        return
    pads, added = found
    explicit = _transposed_with(window, pads, added)
    if window.auto_pad or window.output_shape is not None:
        yield Form("explicit pads", (("ConvTranspose", transposed_traits(explicit)),), by_another_rule)
    yield _even_pads(site, explicit, pads, added)
    bare = _transposed_with(window, ((0, 0),) * window.rank, added)
    yield Form(
        "a Slice behind it",
        (("ConvTranspose", transposed_traits(bare)), ("Slice", {"behind-window": True})),
        lambda: rewrite_transposed(site, explicit),
        None if any(map(any, pads)) else Refusal("it cuts nothing off"),
    )
    if max(window.dilations) > 1:
        yield _between_taps(site, explicit, pads, is_sliced=False)
        yield _between_taps(site, explicit, pads, is_sliced=True)
    if window.rank == 1:
        yield from plane_forms(site, explicit, pads, added)
        if any(map(any, pads)):
            yield from plane_forms(site, explicit, pads, added, sliced_off=True)


def _between_taps(site: Site, explicit: TransposedWindow, pads: tuple[Pair, ...], *, is_sliced: bool) -> Form:
    """Return zeros between the taps in place of dilations, and what is cut off as pads or by a Slice."""
    weights = worked_out(site.scope, site.input_name(1))
    kept = ((0, 0),) * explicit.rank if is_sliced else pads
    plain = _transposed_with(explicit, kept, explicit.output_padding)
    dense = dataclasses.replace(plain, kernel=explicit.spans, dilations=(1,) * explicit.rank)

    def write() -> Rewrite | Refusal:
        assert weights is not None
        cases = transposed_cases(site, explicit, pads)
        if isinstance(cases, Refusal):
            return cases
        other = grown(weights, explicit.dilations)
        node = copied(site.node, without=("auto_pad", "dilations", "output_shape"))
        attributes.set_integers(node, "kernel_shape", other.shape[2:])
        attributes.set_integers(node, "pads", flat(kept))
        attributes.set_integers(node, "output_padding", explicit.output_padding)
        builder = site.builder()
        inputs = [builder.input(name) for name in site.node.input]
        inputs[1] = builder.constant(other, "weights")
        result = builder.original(node, inputs)
        cut = [axis for axis, pair in enumerate(pads) if any(pair)]
        if is_sliced:
            starts, ends = [pads[axis][0] for axis in cut], [-pads[axis][1] or TO_THE_END for axis in cut]
            result = sliced(builder, result, starts, ends, [axis + 2 for axis in cut])
        builder.output(site.node.output[0], result)
        maps = weights.shape[1] * explicit.written.group
        return Rewrite(builder.build(), with_weights(site, cases, TrialInput.of(weights), weights.shape[0], maps))

    why_not = None
    if weights is None or explicit.domain or None in explicit.spans:
        why_not = Refusal("the weights are long, or not constant")
    elif is_sliced and not any(map(any, pads)):
        why_not = Refusal("it cuts nothing off")
    cutting: Operators = (("Slice", {"behind-window": True}),) if is_sliced else ()
    name = "zeros between the taps" + (", and a Slice behind it" if is_sliced else "")
    return Form(name, (("ConvTranspose", transposed_traits(dense)), *cutting), write, why_not)


def _bias_behind(site: Site, window: TransposedWindow) -> Rewrite | Refusal:
    """Return the node without its bias, which is added to what it gives."""
    cases = cases_as_written(site, window)
    if isinstance(cases, Refusal):
        return cases
    builder = site.builder()
    data, weights, bias = (builder.input(name) for name in site.node.input[:3])
    node = copied(site.node)
    added = builder.reshaped(bias, [1, -1, *[1] * window.rank])
    result = builder.op("Add", [builder.original(node, [data, weights]), added])
    builder.output(site.node.output[0], result)
    return Rewrite(builder.build(), cases)


def _transposed_with(window: TransposedWindow, pads: tuple[Pair, ...], added: tuple[int, ...]) -> TransposedWindow:
    whole = all_written(window)
    written = dataclasses.replace(whole.written, auto_pad=None, pads=tuple(flat(pads)), output_shape=None)
    return dataclasses.replace(whole, written=written, output_padding=added, output_shape=None)


def _even_pads(site: Site, window: TransposedWindow, pads: tuple[Pair, ...], added: tuple[int, ...]) -> Form:
    """Return equal pads, with what the end has too much of them given back by ``output_padding``."""
    even = tuple((begin, begin) for begin, _ in pads)
    given_back = tuple(more + begin - end for more, (begin, end) in zip(added, pads, strict=True))
    why_not = None
    if any(begin < end for begin, end in pads):
        why_not = Refusal("more is cut off at the end than at the begin")
    elif even == pads:
        why_not = Refusal("its pads are equal already")
    elif any(more >= stride for more, stride in zip(given_back, window.strides, strict=True)):
        why_not = Refusal("output_padding would be as long as the stride")

    def write() -> Rewrite | Refusal:
        cases = transposed_cases(site, window, pads)
        if isinstance(cases, Refusal):
            return cases
        node = copied(site.node, without=("auto_pad", "output_shape"))
        attributes.set_integers(node, "pads", flat(even))
        attributes.set_integers(node, "output_padding", given_back)
        return Rewrite(site.only(node), cases)

    traits = transposed_traits(_transposed_with(window, even, given_back))
    return Form("equal pads and output_padding", (("ConvTranspose", traits),), write, why_not)
