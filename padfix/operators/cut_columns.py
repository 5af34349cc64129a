"""The columns that a Slice or a Split leaves to the end of images, before which others are added."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.data_order import is_behind_images
from padfix.operators.lists import depends_on_data
from padfix.operators.slices import slice_amounts, sliced_axes


def leaves_last_columns(scope: Scope, name: str, rank: int) -> bool:
    """Whether data are what a Slice or a Split leaves of images of so many axes without their first columns."""
    cut = scope.own_producer(name)
    if cut is None or normal_domain(cut.domain) or cut.op_type not in ("Slice", "Split"):
        return False
    if not is_behind_images(scope, cut.input[0]):
        return False
    if cut.op_type == "Split":
        return name != cut.output[0] and attributes.integer(cut, "axis", 0) in (rank - 1, -1)
    told, axes = slice_amounts(scope, cut), sliced_axes(scope, cut, rank)
    place = axes.index(rank - 1) if axes is not None and rank - 1 in axes else None
    starts = [] if told is None else told.get("starts", [])
    return place is not None and place < len(starts) and starts[place] != 0


def joins_before_cut_columns(scope: Scope, node: NodeProto) -> bool:
    """Whether a Concat joins one constant with the columns behind it that a Slice leaves of images."""
    if len(node.input) != 2 or depends_on_data(scope, node.input[0]):
        return False
    known = scope.type_of(node.input[0])
    rank = 0 if known is None or known.rank is None else known.rank
    is_last = attributes.integer(node, "axis", 1) in (rank - 1, -1)
    return rank > 1 and is_last and leaves_last_columns(scope, node.input[1], rank)
