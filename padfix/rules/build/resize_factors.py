"""A Resize by sizes that the model computes as whole multiples of its own lengths, by these factors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto

from padfix.graph import attributes
from padfix.operators.constant_chains import chain_of
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.node_trials import chain_trial, like
from padfix.rules.build.resize_trials import SIZES

SAID_ANEW = (
    "nearest_mode",
    "axes",
    "antialias",
    "cubic_coeff_a",
    "exclude_outside",
    "keep_aspect_ratio_policy",
)
"""Attributes of a Resize that other words for it leave out, or write themselves."""

OMITTED_SINCE = 13
"""The opset from which on an input that is left out has no name; before that it is a list of nothing."""


def why_not_by_factors(site: Site) -> Refusal | None:
    """Return why the sizes of a Resize can't be left out; None where they can."""
    return Refusal("its sizes are computed of data") if _sizing(site) is None else None


def by_factors(site: Site, words: tuple[str, str], factors: Mapping[int, int]) -> Rewrite | Refusal:
    """Return the Resize with coordinates and a rounding by the ``factors`` of its axes; others keep their lengths."""
    chain, known = _sizing(site), site.input_type(0)
    if chain is None or known is None or known.shape is None:
        return Refusal("Its sizes are computed of data.")
    node, builder = copied(site.node, without=SAID_ANEW), site.builder()
    coordinates, rounding = words
    attributes.set_text(node, "coordinate_transformation_mode", coordinates)
    attributes.set_text(node, "nearest_mode", rounding)
    scales = np.array([factors.get(axis, 1) for axis in range(len(known.shape))], np.float32)
    nothing = builder.input("") if site.opset >= OMITTED_SINCE else builder.constant(np.zeros(0, np.float32), "empty")
    given = [builder.input(site.input_name(0)), nothing, builder.constant(scales, "scales")]
    builder.output(site.node.output[0], builder.original(node, given))
    left_out = {site.input_name(place): site.constant(place) for place in range(1, SIZES)}
    trial = {**chain_trial(site.scope, chain), site.input_name(0): like(known)}
    trial |= {name: TrialInput.of(value) for name, value in left_out.items() if name and value is not None}
    is_nearest = site.text("mode", "nearest") == "nearest"
    return Rewrite(builder.build(), (trial,), exact=is_nearest, replaces=tuple(chain))


def _sizing(site: Site) -> list[NodeProto] | None:
    """Return the nodes that compute the sizes from lengths and constants alone; None where data enter into them."""
    producer = site.scope.own_producer(site.input_name(SIZES))
    return None if producer is None else chain_of(site.scope, producer, open_lengths=True)
