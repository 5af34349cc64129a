"""Whether an operator makes one result of several images, which runtimes that take images one by one can't."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.batches import OF_IMAGES, depends_on_images, images_at_once, open_batches
from padfix.operators.data_order import AXES_OF_IMAGES
from padfix.operators.elementwise import ELEMENTWISE
from padfix.operators.equations import letters_of
from padfix.operators.shape_questions import rank_of

_MOST = 16
"""Nodes that are looked through, as far as a result."""


def mixes_images(scope: Scope, node: NodeProto) -> bool:
    """Whether it multiplies images with one another or sums over them, or gives a result with them along another axis.

    The model's inputs and results are then of several images, which are along the first axis of them all.
    """
    if node.op_type == "Reshape":
        return scope.parent is None and _puts_images_first(scope, node)
    if node.op_type == "Flatten" and scope.parent is None and _joins_open_images(scope, node):
        return True
    asked = _MIXING.get(node.op_type)
    batch = images_at_once(scope) if asked is not None and scope.parent is None else None
    return asked is not None and batch is not None and asked(scope, node, batch)


def _puts_images_first(scope: Scope, node: NodeProto) -> bool:
    """Whether a Reshape gives an open number of images along the first axis that lay along another one."""
    given, gives = scope.type_of(node.input[0]), scope.type_of(node.output[0])
    if given is None or gives is None or not given.shape or not gives.shape:
        return False
    first, told = given.shape[0], gives.shape[0]
    moved = open_batches(scope) & set(given.shape[1:])
    if first in (1, *moved) or len(moved) != 1 or isinstance(told, int):
        return False
    rest = [[each for each in shape if isinstance(each, int)] for shape in (given.shape, gives.shape)]
    are_all = len(rest[0]) == len(given.shape) - 1 and len(rest[1]) == len(gives.shape) - 1
    return told in moved or (are_all and math.prod(rest[0]) == math.prod(rest[1]))


def _joins_open_images(scope: Scope, node: NodeProto) -> bool:
    """Whether a Flatten puts an open number of images in one row, or beside channels, where layers take images."""
    known = scope.type_of(node.input[0])
    if known is None or not known.shape or known.shape[0] not in open_batches(scope):
        return False
    axis = attributes.integer(node, "axis", 1) % (len(known.shape) + 1)
    if axis and all(length == 1 for length in known.shape[1:axis]):
        return False
    return len(known.shape) > AXES_OF_IMAGES or any(each.op_type in OF_IMAGES for each in scope.nodes)


def _is_along_images(scope: Scope, name: str, batch: int) -> bool:
    """Whether the first axis of data is as long as there are images."""
    known = scope.type_of(name)
    return known is not None and bool(known.shape) and known.shape is not None and known.shape[0] == batch


def _product(scope: Scope, node: NodeProto, batch: int) -> bool:
    """Whether the second factor, a list or a matrix, is made of images, or the first is a list of them."""
    first, second = (depends_on_images(scope, name) for name in node.input[:2])
    if second and 0 < rank_of(scope, node.input[1]) <= 2:
        return first or _is_along_images(scope, node.input[1], batch)
    return first and rank_of(scope, node.input[0]) == 1


def _dense(scope: Scope, node: NodeProto, batch: int) -> bool:
    first, second = (depends_on_images(scope, name) for name in node.input[:2])
    if first and second:
        return True
    summed = [
        name
        for name, is_data, is_summed in (
            (node.input[0], first, attributes.integer(node, "transA", 0) != 0),
            (node.input[1], second, attributes.integer(node, "transB", 0) == 0),
        )
        if is_data and is_summed
    ]
    return any(_is_along_images(scope, name, batch) for name in summed)


def _equation(scope: Scope, node: NodeProto, batch: int) -> bool:
    """Whether the first axis of a factor with images is another than the first of the result."""
    found = letters_of(scope, node)
    if found is None:
        return False
    pairs = zip(node.input, found[0], strict=True)
    of_images = [
        term for name, term in pairs if _is_along_images(scope, name, batch) and depends_on_images(scope, name)
    ]
    return any(term[:1] != found[1][:1] for term in of_images)


def _laid_out(scope: Scope, node: NodeProto, batch: int) -> bool:
    """Whether a Flatten puts all images in one row."""
    axis, rank = attributes.integer(node, "axis", 1), rank_of(scope, node.input[0])
    return (
        axis in (0, -rank) and _is_along_images(scope, node.input[0], batch) and depends_on_images(scope, node.input[0])
    )


def _turned(scope: Scope, node: NodeProto, batch: int) -> bool:
    perm = attributes.integers(node, "perm")
    if (perm and perm[0] == 0) or not _is_along_images(scope, node.input[0], batch):
        return False
    return depends_on_images(scope, node.input[0]) and _is_result(scope, node.output[0])


def _is_result(scope: Scope, name: str) -> bool:
    """Whether data, or what is made of it element by element, is a result of the model."""
    seen, left = set[str](), [name]
    while left and len(seen) < _MOST:
        each = left.pop()
        if scope.is_output(each):
            return True
        seen.add(each)
        readers = (reader for reader in scope.consumers(each) if reader.op_type in ELEMENTWISE)
        left += [reader.output[0] for reader in readers if reader.output[0] not in seen]
    return False


_MIXING: Mapping[str, Callable[[Scope, NodeProto, int], bool]] = {
    "Einsum": _equation,
    "Flatten": _laid_out,
    "Gemm": _dense,
    "MatMul": _product,
    "Transpose": _turned,
}
