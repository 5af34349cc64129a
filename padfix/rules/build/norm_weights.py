"""The scale and bias of a norm, in the whole shape that it normalises."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from padfix.operators.layer_traits import normalised_shape
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of

_WEIGHTS = (1, 2)
"""The inputs that are the scale and the bias."""

_MOST_ELEMENTS = 1 << 22


def in_whole(told: np.ndarray, lengths: Sequence[int]) -> np.ndarray | None:
    """Return a scale or bias in the whole shape that is normalised; None where it does not fit or is very long."""
    wanted = [1] * (told.ndim - len(lengths)) + list(lengths)
    if math.prod(lengths) > _MOST_ELEMENTS:
        return None
    fits = all(have in (1, length) for have, length in zip(reversed(told.shape), reversed(wanted), strict=False))
    return np.ascontiguousarray(np.broadcast_to(told, wanted).reshape(lengths)) if fits else None


def whole_weights(site: Site) -> Iterator[Form]:
    """Yield a LayerNormalization whose constants have the shape of all the axes that it normalises."""
    normalised = normalised_shape(site.scope, site.node)
    lengths = [each for each in normalised if isinstance(each, int)]
    given = [site.constant(place) for place in _WEIGHTS if site.input_name(place)]
    whole = [None if told is None else in_whole(told, lengths) for told in given]

    def write() -> Rewrite:
        builder = site.builder()
        inputs = [builder.input(site.input_name(0))]
        inputs += [builder.constant(each, "weights") for each in whole if each is not None]
        return Rewrite(builder.ending_in(copied(site.node), inputs), trials_of(site))

    why_not = None
    if not normalised or len(lengths) < len(normalised):
        why_not = Refusal("it needs the lengths of what it normalises (--shape)")
    elif any(each is None for each in whole):
        why_not = Refusal("its scale or bias is not constant, does not fit or would be very long")
    elif all(told is not None and list(told.shape) == lengths for told in given):
        why_not = Refusal("they have it")
    own = {**(traits_of(site.scope, site.node) or {}), "weights-spread": False, "weights-of-fewer-axes": False}
    yield Form("its scale and bias in the whole shape", (("LayerNormalization", own),), write, why_not)
