"""The largest element and the sum along one axis, as parts of forms: reductions, or a pool and a product with ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.rules.base import Site
from padfix.rules.build.along_axes import FLOATS, LONGEST, multiplied, multiplying
from padfix.rules.build.elementary_forms import AT_ONCE, Write, reduction_traits, stepwise
from padfix.rules.build.extreme_forms import pooled, pooling
from padfix.rules.build.forms import objection_to
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

Part = tuple[Operators, Write]
"""What a part of a form consists of, and what writes it."""


def largest_along(site: Site, axis: int) -> Part:
    """Return what takes the largest element along an axis, kept: a pool where the target takes no maximum along it."""
    lengths = _lengths(site)
    plain: Part = (
        (("ReduceMax", {**reduction_traits("ReduceMax", site.opset, [axis]), "axes-listed": len(lengths) != 1}),),
        stepwise("ReduceMax", [axis], AT_ONCE, True),
    )
    is_told = axis > 0 and len(lengths) > axis and 0 not in lengths[1:] and site.elem_type(0) in FLOATS
    if not is_told or objection_to(site, plain[0]) is None:
        return plain

    def write(builder: FragmentBuilder, value: Any) -> Any:
        largest, now = pooled(builder, value, lengths, [axis])
        return builder.reshaped(largest, [0, *now[1:]])

    return pooling(site, lengths, [axis], len(lengths)), write


def sum_along(site: Site, axis: int) -> Part | None:
    """Return the sum along an axis, kept, as a product with ones; None where the length is not known, or too long."""
    known = site.input_type(0)
    shape = () if known is None or known.shape is None else known.shape
    length = shape[axis] if axis < len(shape) else None
    if not isinstance(length, int) or not 0 < length <= LONGEST or site.elem_type(0) not in FLOATS:
        return None
    ones = np.ones((1, length), helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
    return multiplying([axis], shape), lambda builder, value: multiplied(builder, value, {axis: ones}, shape)


def _lengths(site: Site) -> list[int]:
    """Return the lengths of the data, 0 for what is left open."""
    known = site.input_type(0)
    shape = () if known is None or known.shape is None else known.shape
    return [each if isinstance(each, int) else 0 for each in shape]
