"""Slices and elements that a ScatterND puts elsewhere, by places that count along one axis."""

from __future__ import annotations

import math

import numpy as np

from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators

_ROWS = 2
"""Axes of a list of places: its last holds what one place counts along each axis."""


def along_one_axis(site: Site) -> Form:
    """Return a ScatterND of slices with a list of places, and the axes along which they count made one."""
    known, listed, places = site.input_type(0), site.input_type(1), site.constant(1)
    data = () if known is None or known.lengths is None else known.lengths
    told = listed.shape if listed is not None and listed.shape else (None,)
    counted = told[-1] if isinstance(told[-1], int) else 0
    is_known = bool(data) and 0 < counted < max(len(data), 2) and 0 not in data
    own = traits_of(site.scope, site.node) or {}
    is_placed = places is not None or counted == 1

    def write() -> Rewrite:
        builder = site.builder()
        value, indices, updates = (builder.input(name) for name in site.node.input)
        if counted > 1:
            value = builder.reshaped(value, [math.prod(data[:counted]), *data[counted:]])
        if places is None:
            indices = builder.reshaped(indices, [-1, 1])
        else:
            strides = [math.prod(data[axis + 1 : counted]) for axis in range(counted)]
            counts = np.where(places < 0, places + np.array(data[:counted]), places) * strides
            indices = builder.constant(np.sum(counts, axis=-1).reshape(-1, 1).astype(np.int64), "places")
        if len(told) != _ROWS:
            updates = builder.reshaped(updates, [-1, *data[counted:]])
        node = builder.original(copied(site.node), [value, indices, updates])
        builder.output(site.node.output[0], builder.reshaped(node, data) if counted > 1 else node)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    left = {**own, "puts-slices": False, "places-in-rows": False} | (
        {} if places is None else {"negative-indices": False}
    )
    rank = len(data) - counted + 1
    operators: Operators = (
        *((("Reshape", {"rank": rank}),) if counted > 1 or len(told) != _ROWS else ()),
        ("ScatterND", {**left, "rank": rank}),
        *((("Reshape", {"rank": len(data)}),) if counted > 1 else ()),
    )
    why_not = None if is_known and is_placed else Refusal("its places are not constant, or lengths are open (--shape)")
    return Form("a list of places along one axis", operators, write, why_not)
