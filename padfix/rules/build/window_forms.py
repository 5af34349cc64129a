"""Equal forms of a convolution or pool, each with the operators that it is made of.

Which of them a runtime gets right is the target's to say.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import TypeVar

import numpy as np
from onnx import TensorProto

from padfix.geometry.padding import effective_kernel, end_without_ceil_mode
from padfix.graph import attributes
from padfix.operators.numbers import elements_of, multiplies_whole_numbers
from padfix.operators.pad_traits import is_end_alone, outer_traits
from padfix.operators.picking_traits import computed_weights
from padfix.operators.refusal import Refusal
from padfix.operators.traits import (
    is_dense_behind_extremes,
    pad_before,
    padding_of,
    traits_of,
    traits_with_pad,
    window_traits,
)
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Pair, Window, is_row_of_nine
from padfix.operators.written import SAME
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import bare_node, bind, copied, flat, is_too_long, needs_separate_pad
from padfix.rules.build.forms import Form, by_another_rule, objection_to
from padfix.rules.build.groups_apart import groups_apart
from padfix.rules.build.largest_of_slices import largest_of_slices
from padfix.rules.build.more_taps import behind_taps, between_taps, beyond_pads, dilated_along_one_tap, unstrided
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import known_amounts
from padfix.rules.build.pads_beside import rewrite_beside, rewrite_counting, why_not_beside, why_not_counting
from padfix.rules.build.plane_forms import plane_forms
from padfix.rules.build.power_pools import averaged_powers
from padfix.rules.build.transposed import cases_as_written
from padfix.rules.build.trials import trials
from padfix.rules.build.volume_planes import AXES_OF_VOLUME, in_planes
from padfix.rules.build.window_along_axes import pools_along_axes
from padfix.rules.build.windows_within import windows_within
from padfix.rules.build.without_groups import without_groups
from padfix.targets.traits import Traits

AnyWindow = TypeVar("AnyWindow", Window, TransposedWindow)

_WANTED = ("strides", "kernel_shape")
"""Attributes with a default that importers read as if they had none."""

_UNWANTED = ("dilations", "storage_order")
"""Attributes that importers refuse where they say nothing."""

_TOO_LONG = "pads as long as the kernel are refused by runtimes"


def window_forms(site: Site, window: Window) -> Iterator[Form]:
    """Yield the forms of a convolution or pool, the nearest to what stands there first."""
    own: Traits = {
        "behind-pad": pad_before(site.scope, site.node),
        "dense-behind-extremes": is_dense_behind_extremes(site.scope, site.node, window),
        **traits_with_pad(site.scope, site.node, window),
    }
    whole: Traits = {
        "of-whole-numbers": multiplies_whole_numbers(site.scope, site.node),
        **(computed_weights(site.scope, site.node) if window.op_type == "Conv" else {}),
    }
    for form in _nearest_first(site, window, own):  # none of them makes other numbers of these
        operators = tuple(
            (each, {**whole, **traits} if each == window.op_type else traits) for each, traits in form.operators
        )
        yield dataclasses.replace(form, operators=operators)


def _nearest_first(site: Site, window: Window, own: Traits) -> Iterator[Form]:
    yield from _of_same_groups(site, window, own)
    if window.written.group > 1:
        cases = partial(trials, site, window, same=window.auto_pad in SAME)
        yield without_groups(site, window, cases, own)
        yield groups_apart(site, window, cases, own)


def _of_same_groups(site: Site, window: Window, own: Traits) -> Iterator[Form]:
    yield written_out(site, window, {**window_traits(all_written(window)), **own})
    yield from _of_other_data(site, window)
    if window.auto_pad:
        yield from _without_auto_pad(window)
    pairs = _explicit_pairs(window)
    if isinstance(pairs, Refusal):
        return
    explicit = as_it_was = _with_pads(window, pairs)
    if explicit.written.ceil_mode:
        evened = _reached_pairs(explicit)
        yield windows_within(site, explicit, pairs)
        yield _without_ceil_mode(site, explicit, evened)
        if not isinstance(evened, Refusal):
            explicit, pairs = _with_pads(explicit, evened, ceil_mode=False), evened
    if window.op_type == "AveragePool":
        yield _counting_pads(site, explicit, pairs)
    yield _behind_pad(site, explicit, pairs)
    if window.operator.is_maximum:
        yield _behind_edges(site, explicit, pairs)
    if window.op_type == "LpPool":
        yield from averaged_powers(site, explicit, pairs, traits_of_pad(window, pairs))
    if window.rank == 1:
        yield from plane_forms(site, explicit, pairs)
    yield from pools_along_axes(site, as_it_was)
    if window.operator.is_maximum:
        yield largest_of_slices(site, explicit, pairs, traits_of_pad(window, pairs))
    if window.op_type == "Conv":
        yield beyond_pads(site, explicit, pairs)
    if window.op_type == "Conv" and max(window.dilations) > 1:
        yield between_taps(site, explicit, pairs)
    elif window.op_type == "Conv" and is_row_of_nine(window.kernel):
        yield dilated_along_one_tap(site, explicit, pairs)
        yield behind_taps(site, explicit, pairs)
        if window.rank == 1:
            yield from plane_forms(site, explicit, pairs, across=2)
    if window.op_type == "Conv" and (max(window.dilations) > 1 or not is_row_of_nine(window.kernel)):
        yield behind_taps(site, explicit, pairs)
    if window.op_type == "Conv" and max(window.strides) > 1:
        yield unstrided(site, explicit, pairs)
    if window.op_type == "Conv" and window.rank == AXES_OF_VOLUME:
        yield in_planes(site, explicit, pairs)


def _of_other_data(site: Site, window: Window) -> Iterator[Form]:
    """Yield the operator apart from the DequantizeLinears before it, and the maximum of integers as one of floats."""
    before = site.scope.producer(site.input_name(0))
    traits = window_traits(window)
    cases = partial(trials, site, window, same=window.auto_pad in SAME)

    def write(types: tuple[int, int] | None) -> Rewrite:
        builder = site.builder()
        data, *rest = (builder.input(name) for name in site.node.input)
        first, last = ({"to": each} for each in types) if types else (None, None)
        moved = builder.op("Cast", [data], first) if first else builder.op("Identity", [data])
        result = builder.original(copied(site.node), [moved, *rest])
        bind(builder, site.node, builder.op("Cast", [result], last) if last else result)
        return Rewrite(builder.build(), cases(), exact=window.is_exact)

    def write_apart(position: int, op_type: str, times: int) -> Rewrite:
        builder = site.builder()
        inputs = [builder.input(name) for name in site.node.input]
        inputs[position] = builder.op(op_type, [inputs[position]] * times)
        bind(builder, site.node, builder.original(copied(site.node), inputs))
        return Rewrite(builder.build(), cases(), exact=window.is_exact)

    operators: Operators
    weights = window.operator.weights
    own: Traits = {**traits, "behind-pad": pad_before(site.scope, site.node)}
    if before is not None and before.op_type == "DequantizeLinear":
        known = traits_of(site.scope, site.node) or {}
        alone = {**traits, **{name: known.get(name) for name in ("joined-bytes", "of-bytes")}}
        yield Form("an Identity before it", ((window.op_type, alone),), partial(write, None))
        if weights is None:
            operators = (("Max", {}), (window.op_type, own))
            yield Form("the larger of its data and themselves", operators, partial(write_apart, 0, "Max", 2))
    maker = None if weights is None else site.scope.producer(site.input_name(weights))
    if weights is not None and maker is not None and maker.op_type == "DequantizeLinear":
        operators = (("Clip", {}), (window.op_type, own))
        yield Form("a Clip without bounds behind its weights", operators, partial(write_apart, weights, "Clip", 1))
    if window.operator.is_maximum and not window.has_indices and elements_of(window.elem_type) == "byte":
        types = (int(TensorProto.FLOAT), site.elem_type(0))
        is_unsigned = window.elem_type == TensorProto.UINT8
        from_bytes: Traits = {"elements": "byte", "numbers": "integer", "unsigned": is_unsigned, "gives": "single"}
        to_bytes: Traits = {"elements": "float", "numbers": "single", "unsigned": False, "gives": "integer"}
        operators = (("Cast", from_bytes), (window.op_type, {**traits, "elements": "float"}), ("Cast", to_bytes))
        yield Form("the maximum of floats", operators, partial(write, types))
        # What the target has against this maximum has forms of its own.
        yield Form("the maximum of floats in another form", (operators[0], operators[2]), partial(write, types))


def all_written(window: AnyWindow) -> AnyWindow:
    """Return the window with what some importers want to find, and without what others refuse where it says nothing.

    Dilations of 1 say nothing, nor does the order of places of which none is given.
    """
    kernel = tuple(taps for taps in window.kernel if taps is not None)
    written = dataclasses.replace(
        window.written,
        strides=window.strides,
        kernel_shape=kernel if len(kernel) == window.rank else window.written.kernel_shape,
        dilations=window.written.dilations if max(window.dilations) > 1 else None,
        storage_order=window.written.storage_order if isinstance(window, Window) and window.has_indices else 0,
    )
    return dataclasses.replace(window, written=written)


def written_out(site: Site, window: AnyWindow, traits: Traits) -> Form:
    """Return the node as :func:`all_written` says."""
    whole = all_written(window).written
    missing = {name: getattr(whole, name) for name in _WANTED if getattr(window.written, name) is None}
    unwanted = [name for name in _UNWANTED if getattr(window.written, name) and not getattr(whole, name)]

    def write() -> Rewrite | Refusal:
        node = copied(site.node, without=unwanted)
        for name, values in missing.items():
            if values is not None:
                attributes.set_integers(node, name, values)
        if isinstance(window, TransposedWindow):
            cases = cases_as_written(site, window)
            return cases if isinstance(cases, Refusal) else Rewrite(site.only(node), cases)
        return Rewrite(site.only(node), trials(site, window, same=window.auto_pad in SAME), exact=window.is_exact)

    why_not = None if missing or unwanted else Refusal("all of it is written out")
    return Form("attributes written out", ((window.op_type, traits),), write, why_not)


def _explicit_pairs(window: Window) -> tuple[Pair, ...] | Refusal:
    pairs = window.same_pads() if window.auto_pad in SAME else window.explicit_pads
    known = tuple(pair for pair in pairs if pair is not None)
    return known if len(known) == len(pairs) else Refusal("the pads depend on a length that is not known (--shape)")


def _with_pads(window: Window, pairs: tuple[Pair, ...], *, ceil_mode: bool | None = None) -> Window:
    """Return the window with these pads written out; SAME makes the division exact, so that ceil_mode goes with it."""
    keeps = window.written.ceil_mode and window.auto_pad not in SAME
    whole = all_written(window)
    written = dataclasses.replace(
        whole.written, auto_pad=None, pads=tuple(flat(pairs)), ceil_mode=keeps if ceil_mode is None else ceil_mode
    )
    return dataclasses.replace(whole, written=written)


def _without_auto_pad(window: Window) -> Iterator[Form]:
    """Yield what the rules that write out ``auto_pad`` make of the node."""
    pairs = _explicit_pairs(window)
    if isinstance(pairs, Refusal):
        yield Form("a Pad with computed amounts", _behind_computed_pad(window), by_another_rule)
    else:
        explicit = _with_pads(window, pairs)
        why_not = Refusal(_TOO_LONG) if needs_separate_pad(window, pairs) else None
        yield Form("explicit pads", ((window.op_type, window_traits(explicit)),), by_another_rule, why_not)


def _behind_computed_pad(window: Window) -> Operators:
    bare = _with_pads(window, ((0, 0),) * window.rank)
    return ("Pad", traits_of_pad(window, None)), (window.op_type, {**window_traits(bare), "behind-pad": None})


def is_best_as_written(site: Site, window: Window) -> bool:
    """Whether the target takes SAME on a length that is not known as it is, and not the Pad that would say the same."""
    own = ((window.op_type, window_traits(window)),)
    return objection_to(site, own) is None and objection_to(site, _behind_computed_pad(window)) is not None


def why_no_pad_before(site: Site, window: Window) -> Refusal | None:
    """Return what the target has against the Pad that SAME of a pool needs where its pads can be no attribute."""
    pairs = _explicit_pairs(window)
    if not site.target.facts or isinstance(pairs, Refusal) or not needs_separate_pad(window, pairs):
        return None
    objection = objection_to(site, _behind_pad(site, _with_pads(window, pairs), pairs).operators)
    return (
        None if objection is None else Refusal(f"Its pads need a Pad, and {site.target.title} {objection.fact.says}.")
    )


def traits_of_pad(window: Window, pairs: tuple[Pair, ...] | None, mode: str = "constant") -> Traits:
    """Return what the Pad is like that gives a window these pads; None for those that are computed."""
    floats = window.elem_type in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)
    value = "zero" if not window.operator.is_maximum else "infinite" if floats else "finite"
    computed = None if pairs is None else False  # what nobody reads from a Pad with computed amounts
    outside: Pair = (0, 0)
    amounts = None if pairs is None else flat((outside, outside, *pairs))
    return {
        "mode": mode,
        "mode-written": True,
        "amounts": "run-time" if pairs is None else "sizes",
        "negative": computed,
        "end-alone": None if pairs is None else is_end_alone(pairs[-1]),
        "axes-listed": False,
        **outer_traits(amounts),
        "rank": window.rank + 2,
        "before-average": window.operator.is_average,
        "elements": elements_of(window.elem_type),
        "value": value if mode == "constant" else "zero",
    }


def _reached_pairs(window: Window) -> tuple[Pair, ...] | Refusal:
    """Return pads that end where the last windows of ceil_mode do; or why these are not the same."""
    reached: list[Pair] = []
    for (size, taps, stride, dilation), windows, (begin, end) in zip(
        window.axes, window.output_sizes(), window.explicit_pads, strict=True
    ):
        if taps is None:
            return Refusal("the length of its windows is not known")
        reach = end_without_ceil_mode(taps, stride, dilation, end)
        if isinstance(size, int) and isinstance(windows, int):
            reach = max(0, (windows - 1) * stride + effective_kernel(taps, dilation) - size - begin)
        if reach is None:
            return Refusal("how far ceil_mode reaches depends on a length that is not known (--shape)")
        if reach > end and window.operator.is_average and window.written.count_include_pad:
            return Refusal("elements that ceil_mode adds don't count in the average, and pads would")
        reached.append((begin, reach))
    return tuple(reached)


def _without_ceil_mode(site: Site, window: Window, pairs: tuple[Pair, ...] | Refusal) -> Form:
    """Return the pool with end pads as long as its last windows reach."""
    name = "end pads instead of ceil_mode"
    if isinstance(pairs, Refusal):
        return Form(name, (), by_another_rule, pairs)
    evened = _with_pads(window, pairs, ceil_mode=False)
    too_long = is_too_long(window, pairs)

    def write() -> Rewrite | Refusal:
        node = copied(site.node, without=("auto_pad", "ceil_mode"))
        attributes.set_integers(node, "pads", flat(pairs))
        cases = trials(site, window, same=False, as_declared=True)
        return Rewrite(site.only(node), cases, exact=window.operator.is_maximum)

    why_not = Refusal(_TOO_LONG) if too_long else None
    return Form(name, ((window.op_type, window_traits(evened)),), write, why_not)


def _behind_pad(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Form:
    bare = _with_pads(window, ((0, 0),) * window.rank, ceil_mode=False)
    written = dataclasses.replace(bare.written, count_include_pad=False)
    joined: Traits = {
        "behind-pad": padding_of(pairs),
        **traits_with_pad(site.scope, site.node, window),
    }
    operators: tuple[tuple[str, Traits], ...] = (
        ("Pad", traits_of_pad(window, pairs)),
        (
            window.op_type,
            {
                **window_traits(dataclasses.replace(bare, written=written)),
                **({} if window.operator.is_maximum else joined),
            },
        ),
    )
    if window.leaves_pads_out:
        operators = (*operators, ("Mul", {}))
    why_not = why_not_beside(window, pairs)
    if why_not is None and window.written.ceil_mode:
        why_not = Refusal("a Pad before it would keep ceil_mode")
    if why_not is None and not any(map(any, pairs)):
        why_not = Refusal("it has no pads that could stand before it")
    return Form("a Pad before it", operators, lambda: rewrite_beside(site, window, pairs), why_not)


def _counting_pads(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Form:
    counting = dataclasses.replace(window, written=dataclasses.replace(window.written, count_include_pad=True))
    return Form(
        "an average that counts its pads, times what it counts too many",
        ((window.op_type, window_traits(counting)), ("Mul", {"gate-second": False})),
        lambda: rewrite_counting(site, window, pairs),
        why_not_counting(window, pairs),
    )


def _behind_edges(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Form:
    """Return the pool behind a Pad that repeats the elements at the edges, which every window there holds anyway."""
    bare = _with_pads(window, ((0, 0),) * window.rank, ceil_mode=False)
    operators = (("Pad", traits_of_pad(window, pairs, "edge")), (window.op_type, window_traits(bare)))
    why_not = None
    if max(window.dilations) > 1:
        why_not = Refusal("a dilated window may step over the element at the edge")
    elif window.has_indices or window.operator.mask is not None:
        why_not = Refusal("repeated elements would be counted among the positions")
    elif window.written.ceil_mode:
        why_not = Refusal("a Pad before it would keep ceil_mode")
    elif any(taps is None or max(pair) >= taps for taps, pair in zip(window.kernel, pairs, strict=True)):
        why_not = Refusal("some window lies in the pads with all its taps")

    def write() -> Rewrite | Refusal:
        builder = site.builder()
        amounts = known_amounts(window, pairs)
        source = builder.input(site.input_name(0))
        if builder.opset < 11:
            padded = builder.op("Pad", [source], {"mode": "edge", "pads": amounts})
        else:
            padded = builder.op(
                "Pad", [source, builder.constant(np.array(amounts, np.int64), "pads")], {"mode": "edge"}
            )
        bind(builder, site.node, builder.original(bare_node(site), [padded]))
        return Rewrite(builder.build(), trials(site, window, same=False), exact=True)

    return Form("a Pad of the edges before it", operators, write, why_not)
