"""What a Concat is like, in the words that targets state their facts in."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.axis_order import lies_before_alike
from padfix.operators.batches import gives_each_image_its_own
from padfix.operators.constant_chains import is_constant
from padfix.operators.cut_columns import joins_before_cut_columns
from padfix.operators.data_order import joins_images
from padfix.operators.followed_batch import joins_along_images
from padfix.operators.lists import appends_to_input, depends_on_data, joins_made_lists
from padfix.operators.loaded_lengths import counted_lengths_differ
from padfix.operators.passing import pieces_of
from padfix.operators.shared_constants import joins_constant_again
from padfix.operators.taken_axes import LEAST_RANK
from padfix.targets.traits import Traits


def joined_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Concat what it joins: constants again, nothing, lists of data, or such with constants."""
    of_data = [depends_on_data(scope, name) for name in node.input]
    known = [scope.type_of(name) for name in node.input]
    are_lists = any(of_data) and all(each is not None and each.rank == 1 for each in known)
    axis, rank = attributes.integer(node, "axis", 1) or 0, None if known[0] is None else known[0].rank
    pieces = pieces_of(scope, node)
    return {
        "first-axis": True if axis == 0 else None if axis < 0 and rank is None else axis == -(rank or 0),
        "appends-to-input": appends_to_input(scope, node),
        "joins-constant-again": joins_constant_again(scope, node),
        "numbers-images": gives_each_image_its_own(scope, node),
        "joins-images": joins_images(scope, node) or joins_along_images(scope, node),
        "joins-nothing": len(pieces) < len(node.input),
        "joins-empty-constant": any(is_constant(scope, name) for name in node.input if name not in pieces),
        "of-lists": are_lists,
        "lists-differ": are_lists and joins_made_lists(scope, node),
        "joins-a-number": any(of_data)
        and any(value is not None and value.size == 1 for value in map(scope.constant, node.input)),
        "axis-from-end": axis < 0,
        "counts-differ": any(of_data) and counted_lengths_differ(scope, node),
        "of-constants-too": any(of_data) and not all(of_data),
        "joins-cut-columns": joins_before_cut_columns(scope, node),
        "before-alike": _joins_before_alike(scope, node, axis),
    }


def _joins_before_alike(scope: Scope, node: NodeProto, axis: int) -> bool | None:
    """Whether data of one shape are joined along an axis as long as one behind it, channels being last in images."""
    shapes = [None if (known := scope.type_of(name)) is None else known.shape for name in node.input]
    is_any_constant = any(scope.constant(name) is not None for name in node.input)
    if axis == 0 or is_any_constant or shapes[0] is None or len(shapes[0]) < LEAST_RANK or len(set(shapes)) > 1:
        return False
    return len(shapes) > 1 and lies_before_alike(scope, node.input[0], axis)
