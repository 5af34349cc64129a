"""Whether data has the model's own batch, or one that operators made of other axes."""

from __future__ import annotations

from onnx import FunctionProto, NodeProto

from padfix.graph.scopes import Dimension, Scope

OF_IMAGES = frozenset(
    {
        *("AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "GlobalAveragePool", "GlobalLpPool"),
        *("GlobalMaxPool", "InstanceNormalization", "LRN", "LayerNormalization", "LpPool", "MaxPool", "PRelu"),
        *("Resize", "Upsample"),
    }
)
"""Operators to which the first axis is a batch of images, or of lists."""


def is_of_another_batch(scope: Scope, name: str) -> bool | None:
    """Whether the first axis of data is another than that of the model's inputs; None where that is not known.

    What has a length that the first axis of an input has as well is taken for that input's batch, and so is any open
    length where an input leaves its own open: exporters name one batch in many ways.
    """
    known = scope.type_of(name)
    if known is None or not known.shape:
        return None
    length = known.shape[0]
    if length == 1:
        return False
    if isinstance(scope.root.container, FunctionProto):
        return None
    batches = _batches(scope)
    if not isinstance(length, int):
        return False if any(not isinstance(each, int) for each in batches) else None
    return length not in batches


def numbers_images(scope: Scope, node: NodeProto) -> bool:
    """Whether a Reshape says of several images how many there are, so that it fits no other number of them."""
    shape = scope.constant(node.input[1]) if len(node.input) > 1 else None
    batches = _batches(scope)
    batch = batches.pop() if len(batches) == 1 else None
    if not isinstance(batch, int) or batch < 2 or shape is None or not bool((shape > 0).all()):
        return False
    return int(shape.prod()) % batch == 0


def gives_each_image_its_own(scope: Scope, node: NodeProto, within: int = 0) -> bool:
    """Whether a constant that a node joins with data has other numbers for each of several images.

    ``within`` are the axes that no batch is among: those of a product's matrices.
    """
    batches, gives = _batches(scope), scope.type_of(node.output[0])
    batch = batches.pop() if len(batches) == 1 else None
    if not isinstance(batch, int) or batch < 2 or gives is None or gives.rank is None:
        return False
    constants = [scope.constant(each) for each in node.input if each] if gives.rank > within else []
    return any(each is not None and each.ndim == gives.rank and each.shape[0] == batch for each in constants)


def _batches(scope: Scope) -> set[Dimension]:
    """Return how long the first axes of the inputs of the model, or of the function, are."""
    root = scope.root
    types = [root.type_of(name) for name in root.inputs if root.constant(name) is None]
    return {each.shape[0] if each is not None and each.shape else None for each in types}
