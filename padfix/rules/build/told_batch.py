"""What tells a runtime that guesses the batch from the layers of a model which axis of a volume it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from onnx import helper

from padfix.operators.batches import is_of_another_batch
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of, window_traits
from padfix.operators.window import Window
from padfix.operators.written import Written
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators

_SPATIAL = 3
"""Axes of a volume without its batch and channels."""

_ONE = (1,) * _SPATIAL


def pooled_forms(site: Site) -> Iterator[Form]:
    """Yield what makes or turns a volume with a layer of images behind it that leaves it as it is."""
    own, known = traits_of(site.scope, site.node) or {}, site.scope.type_of(site.node.output[0])
    shape = () if known is None or known.shape is None else known.shape
    why_not = None
    if len(shape) != _SPATIAL + 2:
        why_not = Refusal("it gives no volume")
    elif site.elem_type(0) not in FLOATS:
        why_not = Refusal("pools are of floats")
    elif own.get("moves-batch") or is_of_another_batch(site.scope, site.node.output[0]) is not False:
        why_not = Refusal("its first axis is another than the batch")

    def write(layer: str) -> Rewrite:
        builder = site.builder()
        given = [builder.input(name) for name in site.node.input]
        told: list[Any] = [builder.original(copied(site.node), given)]
        attributes: dict[str, Any] = {"kernel_shape": list(_ONE), "strides": list(_ONE)}
        if layer == "Conv":
            dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
            told.append(builder.constant(np.ones((channels, 1, *_ONE), dtype), "ones"))
            attributes["group"] = channels
        builder.output(site.node.output[0], builder.op(layer, told, attributes))
        return Rewrite(builder.build(), trials_of(site), exact=layer == "MaxPool")

    channels = shape[1] if len(shape) > 1 and isinstance(shape[1], int) else 0
    written = Written(kernel_shape=_ONE, strides=_ONE)
    plain = Window("", "MaxPool", written, _ONE, _ONE, _ONE, shape[-_SPATIAL:], site.elem_type(0))
    grouped = dataclasses.replace(
        plain, op_type="Conv", written=dataclasses.replace(written, group=channels), channels=channels, maps=channels
    )
    for name, layer in (("a pool of single elements", plain), ("a convolution with weights of 1", grouped)):
        reason = why_not or (None if channels or layer is plain else Refusal("how many channels it has is not known"))
        operators: Operators = ()
        if reason is None:
            operators = ((site.node.op_type, {**own, "batch-told": True}), (layer.op_type, window_traits(layer)))
        yield Form(f"{name} behind it", operators, partial(write, layer.op_type), reason)
