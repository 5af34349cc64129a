"""Equal forms of RoiAlign."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.other_traits import OTHERS
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.targets.traits import Traits

MODES_SINCE = 16
"""The opset from which on a RoiAlign tells its coordinates."""


def roi_forms(site: Site) -> Iterator[Form]:
    """Yield the node with its boxes multiplied by ``spatial_scale`` before it."""
    written = attributes.find(site.node, "spatial_scale")
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(1))
    node = copied(site.node, without=("spatial_scale",))

    def write() -> Rewrite:
        builder = site.builder()
        data, boxes, numbers = (builder.input(name) for name in site.node.input)
        factor = builder.constant(np.array(1 if written is None else written.f, dtype), "scale")
        builder.output(site.node.output[0], builder.original(node, [data, builder.op("Mul", [boxes, factor]), numbers]))
        return Rewrite(builder.build(), trials_of(site))

    own = OTHERS["RoiAlign"](site.scope, site.node)
    yield _with_ratio(site)
    yield Form("boxes that are scaled before it", (("RoiAlign", {**own, "scaled": False}),), write)
    yield _with_mode(site)


def _with_ratio(site: Site) -> Form:
    """Return the node with ``sampling_ratio`` written, which is 0 where it is not."""
    is_written = attributes.find(site.node, "sampling_ratio") is not None
    why_not = Refusal("its sampling_ratio is written") if is_written else None
    traits = {**OTHERS["RoiAlign"](site.scope, site.node), "ratio-written": True}
    return _with_attribute(site, traits, "sampling_ratio", 0, why_not)


def _with_mode(site: Site) -> Form:
    """Return the node of today, which says what it did before opset 16."""
    own = OTHERS["RoiAlign"](site.scope, site.node)
    why_not = None if site.opset < MODES_SINCE else Refusal("it says so already")
    return _with_attribute(site, own, "coordinate_transformation_mode", own["coordinates"], why_not, MODES_SINCE)


def _with_attribute(site: Site, traits: Traits, name: str, value: Any, why_not: Refusal | None, since: int = 1) -> Form:
    """Return the node with an attribute written that it is without."""

    def write() -> Rewrite:
        builder, node = site.builder(max(site.opset, since)), copied(site.node)
        node.attribute.append(helper.make_attribute(name, value))
        return Rewrite(builder.ending_in(node, [builder.input(each) for each in site.node.input]), trials_of(site))

    return Form(f"its {name} written", (("RoiAlign", traits),), write, why_not, since)
