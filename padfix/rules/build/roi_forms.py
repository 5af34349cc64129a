"""Equal forms of RoiAlign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from padfix.rules.build.objections import Operators

HALF_PIXEL_SINCE = 16
"""The opset from which on a RoiAlign may take half a pixel off."""


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
    yield _half_a_pixel_on(site)


def _with_ratio(site: Site) -> Form:
    """Return the node with ``sampling_ratio`` written, which is 0 where it is not."""

    def write() -> Rewrite:
        builder, node = site.builder(), copied(site.node)
        node.attribute.append(helper.make_attribute("sampling_ratio", 0))
        builder.output(site.node.output[0], builder.original(node, [builder.input(name) for name in site.node.input]))
        return Rewrite(builder.build(), trials_of(site))

    is_written = attributes.find(site.node, "sampling_ratio") is not None
    why_not = Refusal("its sampling_ratio is written") if is_written else None
    traits = {**OTHERS["RoiAlign"](site.scope, site.node), "ratio-written": True}
    return Form("its sampling_ratio written", (("RoiAlign", traits),), write, why_not)


_BEGINS = ((1, 0, 1, 0), (0, 1, 0, 1), (0, 0, 0, 0), (0, 0, 0, 0))
_LENGTHS = ((0, 0, -1, 0), (0, 0, 0, -1), (0, 0, 1, 0), (0, 0, 0, 1))
"""What the x and y of a box's begin and end add to its begin, twice, and to how long it is."""


def _half_a_pixel_on(site: Site) -> Form:
    """Return the node with boxes half a pixel further on and one pixel long at the least, and half a pixel off again.

    That is what it does before opset 16, and under ``output_half_pixel``; the boxes are in pixels of the image.
    """
    written, own = attributes.find(site.node, "spatial_scale"), OTHERS["RoiAlign"](site.scope, site.node)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(site.elem_type(1)))
    pixel = 1 / (1.0 if written is None else written.f)

    def write() -> Rewrite:
        builder = site.builder(max(site.opset, HALF_PIXEL_SINCE))
        data, boxes, numbers = (builder.input(name) for name in site.node.input)

        def by(matrix: Sequence[Sequence[int]]) -> Any:
            return builder.op("MatMul", [boxes, builder.constant(np.array(matrix, dtype), "corners")])

        def row(begin: float, end: float) -> Any:
            return builder.constant(np.array([[begin, begin, end, end]], dtype), "pixels")

        longer = builder.op("Relu", [builder.op("Sub", [by(_LENGTHS), row(0, pixel)])])
        moved = builder.op("Add", [builder.op("Add", [by(_BEGINS), longer]), row(pixel / 2, 1.5 * pixel)])
        node = copied(site.node, without=("coordinate_transformation_mode",))
        node.attribute.append(helper.make_attribute("coordinate_transformation_mode", "half_pixel"))
        builder.output(site.node.output[0], builder.original(node, [data, moved, numbers]))
        return Rewrite(builder.build(), trials_of(site))

    why_not = Refusal("it takes half a pixel off already") if own["coordinates"] == "half_pixel" else None
    if why_not is None and not pixel > 0:
        why_not = Refusal("its spatial_scale is not above 0")
    operators: Operators = (
        ("MatMul", {"rank": 2, "by-a-matrix": True}),
        *((each, {}) for each in ("Sub", "Relu", "Add")),
        ("RoiAlign", {**own, "coordinates": "half_pixel"}),
    )
    return Form("boxes half a pixel further on", operators, write, why_not, HALF_PIXEL_SINCE)
