"""Which rows the indices of a GatherElements or ScatterElements are for."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope
from padfix.operators.slices import slice_starts, sliced_axes

_ENDS = 2


def has_fewer_rows(scope: Scope, node: NodeProto, shapes: Sequence[Sequence[Dimension] | None]) -> bool:
    """Whether a GatherElements or ScatterElements has indices for a part of its rows alone, or may have."""
    data, indices = shapes[0], shapes[1]
    if node.op_type.endswith("ND") or data is None or indices is None:
        return False
    axis = (attributes.integer(node, "axis", 0) or 0) % max(len(data), 1)
    pairs = enumerate(zip(data, indices, strict=False))
    unlike = {place for place, (here, there) in pairs if here != there and place != axis}
    return bool(unlike) and not _are_cut(scope, node, indices, unlike)


def _are_cut(scope: Scope, node: NodeProto, indices: Sequence[Dimension], axes: set[int]) -> bool:
    """Whether a Slice takes as many rows from the first on as there are indices, with a Max of them alone behind it."""
    maker = scope.own_producer(node.input[0])
    if maker is not None and maker.op_type == "Max" and len(set(maker.input)) == 1:
        maker = scope.own_producer(maker.input[0])
    if maker is None or maker.op_type != "Slice" or len(maker.input) <= _ENDS:
        return False
    cut, starts = sliced_axes(scope, maker, len(indices)), slice_starts(scope, maker)
    if cut is None or starts is None or any(starts) or not axes <= set(cut):
        return False
    ends = scope.constant(maker.input[_ENDS])
    if ends is not None:
        return [indices[each] for each in cut] == ends.reshape(-1).tolist()
    picked = scope.own_producer(maker.input[_ENDS])
    counted = None if picked is None or picked.op_type != "Gather" else scope.own_producer(picked.input[0])
    return counted is not None and counted.op_type == "Shape" and counted.input[0] == node.input[1]
