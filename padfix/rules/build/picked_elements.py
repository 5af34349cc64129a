"""A convolution or a Slice that leaves elements out, behind a Gather of those that it reads."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.skips import NOTHING, skipping_axes, what_a_window_skips
from padfix.operators.slices import slice_amounts, sliced_axes
from padfix.operators.traits import window_traits
from padfix.operators.window import Window
from padfix.operators.written import SAME
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import (
    LONGEST,
    TAKING,
    Lengths,
    multiplying,
    one_by_one,
    selection,
    taken,
    weighed_and_summed,
    why_not_multiplied,
)
from padfix.rules.build.explicit_pads import bind, copied, flat
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.trials import trials

_NEEDS_LENGTHS = "it needs the lengths of the input (--shape)"
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
    pads = tuple(flat(known)) if len(known) == len(pairs) else None
    written = dataclasses.replace(window.written, auto_pad=None, pads=pads, strides=strides, dilations=dilations)
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


def slices_of_picked(site: Site) -> Iterator[Form]:
    """Yield a Slice as one Gather an axis, and as one product."""
    known = site.input_type(0)
    lengths: Lengths = known.shape if known is not None and known.shape else ()
    found = _picked(site, lengths)
    picked = {} if isinstance(found, Refusal) else found
    why_not = found if isinstance(found, Refusal) else None
    yield Form(
        "a Gather an axis", TAKING, lambda: Rewrite(one_by_one(site, picked), trials_of(site), exact=True), why_not
    )
    sizes = {axis: length for axis, length in enumerate(lengths) if isinstance(length, int)}
    matrices = [(sizes[axis], len(places)) for axis, places in picked.items()]

    def multiply() -> Rewrite:
        dtype: Any = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        chosen = {axis: selection(places, sizes[axis]).astype(dtype) for axis, places in picked.items()}
        return Rewrite(weighed_and_summed(site, chosen, lengths), trials_of(site))

    yield Form(
        "products with matrices of 0 and 1",
        multiplying(picked, lengths, site),
        multiply,
        why_not or why_not_multiplied(None if known is None else known.elem_type, matrices),
    )


def _picked(site: Site, lengths: Lengths) -> dict[int, list[int]] | Refusal:
    """Return which elements a Slice takes of each axis of which it does not take all as they are."""
    axes = sliced_axes(site.scope, site.node, len(lengths)) if lengths else None
    amounts = slice_amounts(site.scope, site.node)
    if axes is None or amounts is None:
        return Refusal("its axes, or from where to where it takes them, are only known at run time")
    found = {}
    steps = amounts.get("steps", [1] * len(axes))
    for axis, start, end, step in zip(axes, amounts["starts"], amounts["ends"], steps, strict=False):
        length = lengths[axis]
        if not isinstance(length, int):
            return Refusal(_NEEDS_LENGTHS)
        if length > LONGEST:
            return Refusal(_TOO_LONG)
        # What reaches beyond the first element backwards goes on to it.
        places = list(range(length))[slice(start, None if step < 0 and end < -length else end, step)]
        if places != list(range(length)):
            found[axis] = places
    return found


def rows_of_picked(site: Site) -> Iterator[Form]:
    """Yield a GatherND by constant indices of the first axes as a Gather of the rows that these axes make together."""
    known, indices = site.input_type(0), site.constant(1)
    shape = () if known is None or known.shape is None else known.shape
    images = attributes.integer(site.node, "batch_dims", 0) or 0
    depth = images + (0 if indices is None or not indices.ndim else indices.shape[-1])
    first = [each for each in shape[:depth] if isinstance(each, int)]
    rest = [each if isinstance(each, int) else -1 for each in shape[depth:]]
    why_not = None
    if indices is None:
        why_not = Refusal("its indices are not constant, or very many")
    elif not depth or len(first) != depth or rest.count(-1) > 1 or 0 in (*first, *rest):
        why_not = Refusal("it needs the lengths of its input (--shape)")

    def write() -> Rewrite:
        assert indices is not None
        lengths = np.array(first, np.int64)
        strides = np.append(np.cumprod(lengths[:0:-1])[::-1], 1)
        own = np.indices(indices.shape[:-1])[:images].reshape(images, indices[..., 0].size, 1)
        flat = indices.reshape(-1, indices.shape[-1])
        counted = np.where(flat < 0, flat + lengths[images:], flat)
        places = (np.concatenate([*own, counted], -1) * strides).sum(-1)
        builder = site.builder()
        rows = builder.reshaped(
            builder.input(site.input_name(0)), [math.prod(first), -1 if -1 in rest else math.prod(rest)]
        )
        picked = builder.op("Gather", [rows, builder.constant(places, "places")], {"axis": 0})
        builder.output(site.node.output[0], builder.reshaped(picked, [*indices.shape[:-1], *rest]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    rank = 0 if indices is None else indices.ndim - 1 + len(rest)
    gather = ("Gather", {"picks-a-list": True, "picks-a-matrix": False, "both-computed": False})
    operators = (("Reshape", {"rank": 2, "copies-channels": False}), gather, ("Reshape", {"rank": rank}))
    yield Form("a Gather of rows", operators, write, why_not)
