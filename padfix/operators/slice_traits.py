"""What a Slice is like, in the words that targets state their facts in."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope
from padfix.operators.axis_order import order_of_axes
from padfix.operators.counted_images import computes_with_count
from padfix.operators.skips import NOTHING, what_a_slice_skips
from padfix.operators.slices import (
    ends_far,
    ends_past_axes,
    listed_axes,
    may_start_before_first,
    slice_steps,
    sliced_axes,
    slices_again_from_end,
    starts_before_first,
)
from padfix.targets.traits import Traits


def slice_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Slice whether its axes are listed in another order than such a runtime has them in."""
    known = scope.type_of(node.input[0])
    axes = sliced_axes(scope, node, known.rank) if known is not None and known.rank else None
    steps = slice_steps(scope, node)
    told = {
        "backwards": None if steps is None else any(step < 0 for step in steps),
        "strided": None if steps is None else any(abs(step) > 1 for step in steps),
        "again-from-end": slices_again_from_end(scope, node),
        "axes-negative": any(axis < 0 for axis in listed_axes(scope, node)),
        "by-number-of-images": computes_with_count(scope, node, 1),
        "axes-unlisted": attributes.find(node, "axes") is None and not any(node.input[3:4]),
    }
    if known is None or axes is None:
        return {**dict.fromkeys(("axes-out-of-order", "rank", "first-axis")), "skips-behind": NOTHING, **told}
    return {
        **told,
        "axes-out-of-order": order_of_axes(scope, node, axes) != list(range(len(axes))),
        "skips-behind": what_a_slice_skips(scope, node),
        "rank": known.rank,
        "takes-nothing": 0 in (_lengths_of_result(scope, node) or ()),
        "first-axis": 0 in axes,
        "open-batch": 0 in axes and not isinstance((known.shape or (1,))[0], int),
        "ends-far": ends_far(scope, node),
        "ends-past-axes": ends_past_axes(scope, node, axes),
        "starts-before": any(starts_before_first(scope, node, axes) or ()),
        "maybe-starts-before": may_start_before_first(scope, node, axes),
    }


def _lengths_of_result(scope: Scope, node: NodeProto) -> Sequence[Dimension] | None:
    known = scope.type_of(node.output[0])
    return None if known is None else known.shape
