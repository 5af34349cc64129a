"""An operator on several images as one on a single image, whose channels are those of all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from onnx import NodeProto

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import MOST_WEIGHTS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import SHAPE_AS_INPUT_SINCE, Form
from padfix.rules.build.node_trials import as_declared

_LEADING = 2
"""Axes before the spatial ones: the batch and the channels."""

_REGIONS_SINCE = 11
"""The version whose Resize has a region before its scales."""

_SIZES = 3

Constants = Mapping[int, np.ndarray]
"""By the position of an input what it is in place of what it was."""


def folded_batch(site: Site) -> Form:
    """Return the node between two Reshapes."""
    known, result = site.input_type(0), site.scope.type_of(site.node.output[0])
    before = None if known is None else known.lengths
    after = None if result is None else result.lengths
    why_not = None
    constants: Constants | Refusal = {}
    if site.node.op_type not in _FOLDED:
        why_not = Refusal("what it gives is not that of every channel, or group of channels, by itself")
    elif before is None or after is None or len(before) < _LEADING:
        why_not = Refusal("it needs all lengths of the data (--shape)")
    elif _folded(site.node, before) == list(before):
        why_not = Refusal("it is of one image already")
    elif site.opset < SHAPE_AS_INPUT_SINCE or len([name for name in site.node.output if name]) > 1:
        why_not = Refusal("this opset has no Reshape to a shape that is an input, or it gives more than one result")
    else:
        constants = _FOLDED[site.node.op_type](site, before)
        why_not = constants if isinstance(constants, Refusal) else None

    def write() -> Rewrite | Refusal:
        assert before is not None
        assert after is not None
        assert not isinstance(constants, Refusal)
        builder = site.builder()
        inputs = [
            builder.constant(constants[position], "folded") if position in constants else builder.input(name)
            for position, name in enumerate(site.node.input)
        ]
        inputs[0] = builder.reshaped(inputs[0], _folded(site.node, before))
        folded = builder.original(_adapted(site.node, before), inputs)
        builder.output(site.node.output[0], builder.reshaped(folded, after))
        return Rewrite(builder.build(), (as_declared(site),))

    reshapes = tuple(
        ("Reshape", {"rank": rank}) for rank in {len(_folded(site.node, before or (1,))), len(after or ())}
    )
    return Form("one image with the channels of all", reshapes, write, why_not)


def _folded(node: NodeProto, shape: tuple[int, ...]) -> list[int]:
    """Return the lengths of the single image: the channels of all, or a list more where all but the batch is a list."""
    if node.op_type == "LayerNormalization" and _normalised_from(node, len(shape)) < _LEADING:
        return [1, *shape]
    return [1, math.prod(shape[:_LEADING]), *shape[_LEADING:]]


def _normalised_from(node: NodeProto, rank: int) -> int:
    return attributes.integer(node, "axis", -1) % rank


def _adapted(node: NodeProto, shape: tuple[int, ...]) -> NodeProto:
    """Return a convolution with the groups of every image, and a norm with its axes counted from the last."""
    found = copied(node)
    if node.op_type in ("Conv", "ConvTranspose"):
        attributes.set_integer(found, "group", shape[0] * attributes.integer(node, "group", 1))
    elif node.op_type == "LayerNormalization":
        attributes.set_integer(found, "axis", _normalised_from(node, len(shape)) - len(shape))
    return found


def _nothing(site: Site, shape: tuple[int, ...]) -> Constants | Refusal:
    return {}


def _norm(site: Site, shape: tuple[int, ...]) -> Constants | Refusal:
    start = _normalised_from(site.node, len(shape))
    return {} if start else Refusal("it takes the batch together")


def _a_channel(site: Site, shape: tuple[int, ...]) -> Constants | Refusal:
    """Return the inputs behind the data, each as often as there are images: one entry a channel or map."""
    found = {}
    for position, name in enumerate(site.node.input):
        value = site.constant(position) if position and name else None
        if position and name and (value is None or value.size * shape[0] > MOST_WEIGHTS):
            return Refusal("its weights are long, or not constant")
        if value is not None:
            found[position] = np.tile(value, (shape[0], *[1] * (value.ndim - 1)))
    return found


def _slopes(site: Site, shape: tuple[int, ...]) -> Constants | Refusal:
    slopes = site.constant(1)
    if slopes is None or slopes.size * shape[0] > MOST_WEIGHTS:
        return Refusal("its slopes are long, or not constant")
    if slopes.size == 1:
        return {}
    if slopes.ndim == len(shape) and slopes.shape[0] != 1:
        return Refusal("its slopes are those of each image")
    own = slopes.reshape(slopes.shape[1:]) if slopes.ndim == len(shape) else slopes
    spatial = own.shape[1:] if own.ndim == len(shape) - 1 else (*[1] * (len(shape) - 2 - own.ndim), *own.shape)
    every = np.broadcast_to(own, (shape[1], *spatial))
    return {1: np.tile(every, (shape[0], *[1] * len(spatial)))}


def _resized(site: Site, shape: tuple[int, ...]) -> Constants | Refusal:
    if attributes.find(site.node, "axes") is not None or (site.node.op_type == "Upsample" and site.opset < 9):
        return Refusal("it lists axes, or has its scales as an attribute")
    is_modern = site.node.op_type == "Resize" and site.opset >= _REGIONS_SINCE
    scales, sizes = _amounts(site, _SIZES - 1 if is_modern else 1), _amounts(site, _SIZES if is_modern else None)
    if scales is not None and scales.size:
        return {} if (scales[:_LEADING] == 1).all() else Refusal("it resizes the batch or the channels")
    if sizes is None:
        return Refusal("its scales or sizes are only known at run time")
    if tuple(sizes[:_LEADING]) != shape[:_LEADING]:
        return Refusal("it resizes the batch or the channels")
    return {_SIZES: np.array([1, math.prod(shape[:_LEADING]), *sizes[_LEADING:]], np.int64)}


def _amounts(site: Site, position: int | None) -> np.ndarray | None:
    return None if position is None or not site.input_name(position) else site.constant(position)


_FOLDED: Mapping[str, Callable[[Site, tuple[int, ...]], Constants | Refusal]] = {
    **dict.fromkeys(
        ("AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool"), _nothing
    ),
    **dict.fromkeys(("BatchNormalization", "Conv", "ConvTranspose", "InstanceNormalization"), _a_channel),
    **dict.fromkeys(("Resize", "Upsample"), _resized),
    "LayerNormalization": _norm,
    "PRelu": _slopes,
}
"""By operator what its inputs become."""
