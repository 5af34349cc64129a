"""The scale and bias of a norm, in the whole shape that it normalises."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of

_WEIGHTS = (1, 2)
"""The inputs that are the scale and the bias."""

_MOST_ELEMENTS = 1 << 22


def in_whole(told: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
    """Return a scale or bias in the whole shape that is normalised."""
    whole = np.broadcast_to(told, [*[1] * (told.ndim - len(lengths)), *lengths])
    return np.ascontiguousarray(whole.reshape(lengths))


def whole_weights(site: Site) -> Iterator[Form]:
    """Yield a LayerNormalization whose constants have the shape of all the axes that it normalises."""
    known, axis = site.input_type(0), attributes.integer(site.node, "axis", -1) or 0
    shape = () if known is None or known.shape is None else known.shape
    normalised = shape[axis % len(shape) :] if shape else ()
    lengths = [each for each in normalised if isinstance(each, int)]
    weights = {place: site.constant(place) for place in _WEIGHTS if site.input_name(place)}

    def write() -> Rewrite:
        builder = site.builder()
        inputs = [builder.input(site.input_name(0))]
        for told in weights.values():
            assert told is not None
            inputs.append(builder.constant(in_whole(told, lengths), "weights"))
        return Rewrite(builder.ending_in(copied(site.node), inputs), trials_of(site))

    why_not = None
    if not normalised or len(lengths) < len(normalised):
        why_not = Refusal("it needs the lengths of what it normalises (--shape)")
    elif any(told is None for told in weights.values()) or math.prod(lengths) > _MOST_ELEMENTS:
        why_not = Refusal("its scale or bias is not constant, or would be very long")
    elif all(told is not None and list(told.shape) == lengths for told in weights.values()):
        why_not = Refusal("they have it")
    own = {**(traits_of(site.scope, site.node) or {}), "weights-spread": False, "weights-of-fewer-axes": False}
    yield Form("its scale and bias in the whole shape", (("LayerNormalization", own),), write, why_not)
