"""What a Reshape is like: whether it says lengths or copies them, of what it is, and what it moves."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope
from padfix.operators.batches import is_of_another_batch, numbers_images
from padfix.operators.constant_chains import is_steered_by_data, worked_out
from padfix.operators.data_order import (
    AXES_OF_IMAGES,
    copies_behind_reshape,
    copies_channels,
    is_before_images,
    is_behind_images,
    is_behind_window,
)
from padfix.operators.fused_layers import PRODUCTS
from padfix.operators.held_lengths import is_told_late
from padfix.operators.lists import is_given_number
from padfix.operators.open_lengths import flattens_open, leaves_known_lengths
from padfix.operators.picked_parts import is_taken_apart
from padfix.operators.shuffles import shuffles_channels, shuffles_pixels
from padfix.operators.told_lengths import measures_images
from padfix.operators.turned_volumes import axes_turned_before
from padfix.targets.traits import Traits

_MATRIX = 2

_MOST_BETWEEN = 8
"""Operators that are looked through, as far as a product."""


_VOLUMES = 5
"""Axes of a batch of volumes."""


def reshape_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return how a Reshape tells lengths, and what it does to images."""
    known = scope.type_of(node.output[0])
    rank = None if known is None else known.rank
    if rank is None and len(node.input) > 1 and (shape := worked_out(scope, node.input[1])) is not None:
        rank = shape.size
    return {
        "rank": rank,
        "of-number-given": is_given_number(scope, node.input[0], by_constants=False),
        "many-axes-or-none": bool(attributes.integer(node, "allowzero", 0)) and _has_many_axes(scope, node),
        "numbers-images": numbers_images(scope, node),
        "copies-channels": copies_channels(scope, node),
        "copies-behind-reshape": copies_behind_reshape(scope, node),
        "shuffles": shuffles_channels(scope, node) or shuffles_pixels(scope, node),
        "measures-images": measures_images(scope, node),
        "measures-by-lists": is_told_late(scope, node) and not is_steered_by_data(scope, node),
        "rank-untold": rank is None,
        "axes-turned-before": axes_turned_before(scope, node),
        "of-thin-image": _is_of_thin_image(scope, node),
        "of-square-product": known is not None and is_of_square_product(scope, node.input[0], known.shape or ()),
        "leaves-known-lengths": leaves_known_lengths(scope, node),
        "goes-back": known is not None and _goes_back(scope, node.input[0], known.shape or ()),
        "taken-apart": is_taken_apart(scope, node),
        "batch-told": is_batch_told(scope, node) and is_of_another_batch(scope, node.output[0]) is False,
    }


def _has_many_axes(scope: Scope, node: NodeProto) -> bool:
    """Whether more than five axes are given or taken."""
    types = [scope.type_of(name) for name in (node.input[0], node.output[0])]
    return any(each is not None and (each.rank or 0) > _VOLUMES for each in types)


def _is_of_thin_image(scope: Scope, node: NodeProto) -> bool:
    """Whether a Reshape takes what a convolution gives, an image of one row or column."""
    before, known = scope.own_producer(node.input[0]), scope.type_of(node.input[0])
    is_thin = known is not None and known.rank == AXES_OF_IMAGES and 1 in (known.shape or ())[2:]
    return is_thin and before is not None and before.op_type == "Conv"


def is_of_square_product(scope: Scope, name: str, shape: Sequence[Dimension]) -> bool:
    """Whether a product's rows, reshaped or not, become volumes whose last two lengths are equal."""
    if not is_square_volume(shape):
        return False
    producer = scope.own_producer(name)
    for _ in range(_MOST_BETWEEN):
        if producer is None or producer.op_type not in ("Identity", "Reshape"):
            break
        producer = scope.own_producer(producer.input[0])
    return producer is not None and producer.op_type in PRODUCTS and is_by_matrix(scope, producer)


def _goes_back(scope: Scope, name: str, shape: Sequence[Dimension]) -> bool:
    """Whether a product of what a Reshape put into its last axis gets the lengths before that, but for the last."""
    product = scope.own_producer(name)
    if product is None or product.op_type not in PRODUCTS or not is_by_matrix(scope, product):
        return False
    before = scope.own_producer(product.input[0])
    if before is None or before.op_type != "Reshape":
        return False
    shapes = [
        None if (known := scope.type_of(each)) is None else known.shape for each in (before.input[0], before.output[0])
    ]
    if not shapes[0] or not shapes[1] or shapes[0][-1] == shapes[1][-1]:
        return False
    return tuple(shapes[0][:-1]) == tuple(shape[:-1])


def is_square_volume(shape: Sequence[Dimension]) -> bool:
    """Whether these are the lengths of volumes of which the last two are equal."""
    return len(shape) == AXES_OF_IMAGES + 1 and shape[-1] == shape[-2]


def is_by_matrix(scope: Scope, node: NodeProto) -> bool:
    """Whether the second factor of a product is a matrix."""
    second = scope.type_of(node.input[1])
    return second is not None and second.rank == _MATRIX


def is_batch_told(scope: Scope, node: NodeProto) -> bool:
    """Whether it stands next to what works on images, and so tells how many there are."""
    return is_behind_images(scope, node.input[0]) or is_before_images(scope, node.output[0])


def flatten_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return how many axes a Flatten has, what it stands behind, and whether it makes one row of an open length."""
    known = scope.type_of(node.input[0])
    return {
        "rank": None if known is None else known.rank,
        "behind-window": is_behind_window(scope, node.input[0]),
        "flattens-open": flattens_open(scope, node),
    }
