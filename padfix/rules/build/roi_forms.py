"""Equal forms of RoiAlign."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.other_traits import OTHERS
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of


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

    traits = {**OTHERS["RoiAlign"](site.scope, site.node), "scaled": False}
    yield Form("boxes that are scaled before it", (("RoiAlign", traits),), write)
