"""Images that are multiplied place by place, before a convolution whose window is as large as they are."""

from __future__ import annotations

from itertools import zip_longest

from onnx import NodeProto

from padfix.graph.scopes import Scope, normal_domain

_SCALING = ("Div", "Mul")

_BEFORE_SPACE = 2
"""The axes of images, and of weights, before those of space."""


def scales_whole_window(scope: Scope, node: NodeProto) -> bool:
    """Whether a Mul or Div by a constant scales the places of images as large as the window of the Conv behind it.

    The constant's lengths are those of the window, or 1, and it has fewer elements than the images. Nothing else reads
    the product but what multiplies it by a number.
    """
    if node.op_type not in _SCALING:
        return False
    constants = [value for name in node.input if (value := scope.constant(name)) is not None]
    window = _window_behind(scope, node)
    if len(constants) != 1 or window is None:
        return False
    told, rank = constants[0].shape, len(window) + _BEFORE_SPACE
    places = told[-len(window) :]
    known = scope.type_of(node.output[0])
    if all(each == 1 for each in places) or len(told) > rank or (len(told) == rank and told[0] != 1):
        return False
    if known is None or known.shape == told:
        return False
    pairs = zip_longest(reversed(places), reversed(window), fillvalue=1)
    return all(place in (1, length) for place, length in pairs)


def _window_behind(scope: Scope, node: NodeProto) -> tuple[object, ...] | None:
    """Return the lengths of the window of the Conv that alone reads a product, also multiplied by numbers."""
    name = node.output[0]
    while len(readers := scope.consumers(name)) == 1 and not scope.is_output(name):
        (reader,) = readers
        if normal_domain(reader.domain):
            return None
        if reader.op_type == "Conv":
            weights = scope.type_of(reader.input[1]) if reader.input[0] == name else None
            return weights.shape[_BEFORE_SPACE:] if weights is not None and weights.shape else None
        others = [scope.constant(each) for each in reader.input if each != name]
        is_passed = reader.op_type == "Identity" or (
            reader.op_type in _SCALING and len(others) == 1 and others[0] is not None and others[0].size == 1
        )
        if not is_passed:
            return None
        name = reader.output[0]
    return None
