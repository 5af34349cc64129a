"""What takes axes of images away or copies them, and whether those that are left keep the order of images."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.constant_chains import is_constant
from padfix.operators.data_order import CHANNELS
from padfix.operators.elementwise import PLACES, REDUCTIONS
from padfix.operators.reductions import reduced_axes

LEAST_RANK = 3
"""Axes of data that has channels to move."""

_LEAVING = ("Expand", "Gather", "Squeeze", "Tile", "TopK")
"""Operators that copy axes, or take parts of them or whole ones."""


def leaves_order_of_images(scope: Scope, node: NodeProto) -> bool:
    """Whether a node that orders the axes of other data leaves them in the order of images where it reads an image.

    So do copies and parts of what has as many axes, and what takes an axis behind the channels away.
    """
    if normal_domain(node.domain) or node.op_type not in _LEAVING:
        return False
    known, gives = scope.type_of(node.input[0]), scope.type_of(node.output[0])
    if known is None or gives is None or not known.rank or gives.rank is None:
        return False
    if known.rank < LEAST_RANK or is_constant(scope, node.input[0]):
        return False
    if known.rank == gives.rank:
        return node.op_type != "Squeeze"
    axes = _taken_axes(scope, node, known.rank)
    return len(axes) == known.rank - gives.rank and min(axes) > CHANNELS


def _taken_axes(scope: Scope, node: NodeProto, rank: int) -> list[int]:
    """Return the axes that a node takes away by their numbers; none where it does not list them, or adds others."""
    if node.op_type == "Gather":
        return [(attributes.integer(node, "axis", 0) or 0) % rank]
    if node.op_type != "Squeeze":
        return []
    return [axis % rank for axis in reduced_axes(scope, node) or ()]


def takes_channels(scope: Scope, node: NodeProto) -> bool:
    """Whether a reduction takes the axis of channels away, and what is left has its axes in the order of the model."""
    if normal_domain(node.domain) or node.op_type not in (*REDUCTIONS, *PLACES):
        return False
    if attributes.integer(node, "keepdims", 1):
        return False
    known = scope.type_of(node.input[0])
    axes = [attributes.integer(node, "axis", 0) or 0] if node.op_type in PLACES else reduced_axes(scope, node)
    rank = None if known is None else known.rank
    return not axes or CHANNELS in {axis % rank if rank else axis for axis in axes}
