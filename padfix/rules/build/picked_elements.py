"""A convolution or a Slice that leaves elements out, behind a Gather of those that it reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.skips import NOTHING, skipping_axes, what_a_window_skips
from padfix.operators.slices import slice_amounts, sliced_axes
from padfix.operators.traits import window_traits
from padfix.operators.window import Window
from padfix.operators.written import SAME
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import LONGEST, TAKING, one_by_one, taken
from padfix.rules.build.explicit_pads import bind, copied, flat
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.trials import trials

_TOO_LONG = f"an axis is longer than {LONGEST} elements, more than is written out one by one"


def forms_of_what_skips(site: Site, window: Window, forms: Iterable[Form]) -> Iterator[Form]:
    """Yield the forms of a convolution or pool, told what they skip, and one that skips nothing."""
    skipped = what_a_window_skips(site.scope, site.node, window, explicit=True)
    if skipped == NOTHING:
        yield from forms
        return
    for form in forms:
        told = ((op_type, {**traits, "skips-behind": skipped}) for op_type, traits in form.operators)
        yield dataclasses.replace(form, operators=tuple(told))
    yield _window_of_picked(site, window)


def _window_of_picked(site: Site, window: Window) -> Form:
    axes = skipping_axes(window)
    pairs = window.same_pads() if window.auto_pad in SAME else window.explicit_pads
    strides = tuple(1 if axis in axes else stride for axis, stride in enumerate(window.strides))
    dilations = tuple(
        max(1, dilation // window.strides[axis]) if axis in axes else dilation
        for axis, dilation in enumerate(window.dilations)
    )
    picked: dict[int, list[int]] = {}
    for axis in axes:
        size = window.sizes[axis]
        if isinstance(size, int) and size <= LONGEST:
            picked[window.leading + axis] = list(range(0, size, window.strides[axis]))
    known = [pair for pair in pairs if pair is not None]
    why_not = None
    if len(picked) < len(axes):
        why_not = Refusal(_TOO_LONG if all(isinstance(each, int) for each in window.sizes) else _NEEDS_LENGTHS)
    elif len(known) < len(pairs):
        why_not = Refusal(_NEEDS_LENGTHS)
    written = dataclasses.replace(
        window.written, auto_pad=None, pads=tuple(flat(known)), strides=strides, dilations=dilations
    )
    sizes = tuple(
        len(picked.get(window.leading + axis, ())) if axis in axes else size for axis, size in enumerate(window.sizes)
    )
    plain = dataclasses.replace(window, written=written, strides=strides, dilations=dilations, sizes=sizes)

    def write() -> Rewrite | Refusal:
        builder = site.builder()
        node = copied(site.node, without=("auto_pad",))
        for name, values in (("pads", flat(known)), ("strides", strides), ("dilations", dilations)):
            attributes.set_integers(node, name, values)
        data, *rest = (builder.input(name) for name in site.node.input)
        bind(builder, site.node, builder.original(node, [taken(builder, data, picked), *rest]))
        return Rewrite(builder.build(), trials(site, window, same=window.auto_pad in SAME, as_declared=True))

    return Form("a Gather of what it reads", (*TAKING, (window.op_type, window_traits(plain))), write, why_not)


_NEEDS_LENGTHS = "it needs the lengths of the input (--shape)"


def slices_of_picked(site: Site) -> Iterator[Form]:
    """Yield a Slice as one Gather an axis."""
    known = site.input_type(0)
    shape = None if known is None else known.shape
    axes = sliced_axes(site.scope, site.node, len(shape)) if shape else None
    amounts = slice_amounts(site.scope, site.node)
    picked: dict[int, list[int]] = {}
    why_not = None
    if shape is None or axes is None or amounts is None:
        why_not = Refusal("its axes, or from where to where it takes them, are only known at run time")
    else:
        steps = amounts.get("steps", [1] * len(axes))
        for axis, start, end, step in zip(axes, amounts["starts"], amounts["ends"], steps, strict=False):
            length = shape[axis]
            if not isinstance(length, int):
                why_not = Refusal(_NEEDS_LENGTHS)
            elif length > LONGEST:
                why_not = Refusal(_TOO_LONG)
            else:
                picked[axis] = _taken(length, start, end, step)

    def write() -> Rewrite:
        return Rewrite(one_by_one(site, picked), trials_of(site), exact=True)

    yield Form("a Gather an axis", TAKING, write, why_not)


def _taken(length: int, start: int, end: int, step: int) -> list[int]:
    """Return the indices that a Slice takes; what reaches beyond the first element backwards goes on to it."""
    if step < 0 and end < -length:
        return list(range(length))[slice(start, None, step)]
    return list(range(length))[slice(start, end, step)]
