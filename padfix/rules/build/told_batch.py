"""What tells a runtime that guesses the batch from the layers of a model which axis of a volume it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph.scopes import Dimension
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
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_SPATIAL = 3
"""Axes of a volume without its batch and channels."""

_ONE = (1,) * _SPATIAL


def pooled_before(site: Site) -> Iterator[Form]:
    """Yield the node behind a layer of images that leaves the volume that it reads as it is."""
    known = site.input_type(0)
    shape = () if known is None or known.shape is None else known.shape
    yield from _with_layer(site, shape, None, is_before=True)


def pooled_forms(site: Site) -> Iterator[Form]:
    """Yield what makes or turns a volume with a layer of images behind it that leaves it as it is."""
    own, known = traits_of(site.scope, site.node) or {}, site.scope.type_of(site.node.output[0])
    shape = () if known is None or known.shape is None else known.shape
    why_not = None
    if own.get("moves-batch") or is_of_another_batch(site.scope, site.node.output[0]) is not False:
        why_not = Refusal("its first axis is another than the batch")
    yield from _with_layer(site, shape, why_not, is_before=False)


def pool_traits(site: Site, shape: Sequence[Dimension]) -> Traits:
    """Return what :func:`pooled` is like, of a volume of this shape."""
    return window_traits(_telling(site, shape))


def pooled(builder: FragmentBuilder, value: Any) -> Any:
    """Return a volume behind a pool of its single elements, which tells that its first axis is the batch."""
    return builder.op("MaxPool", [value], {"kernel_shape": list(_ONE), "strides": list(_ONE)})


def _telling(site: Site, shape: Sequence[Dimension]) -> Window:
    written = Written(kernel_shape=_ONE, strides=_ONE)
    return Window("", "MaxPool", written, _ONE, _ONE, _ONE, tuple(shape[-_SPATIAL:]), site.elem_type(0))


def _with_layer(site: Site, shape: Sequence[Dimension], why_not: Refusal | None, *, is_before: bool) -> Iterator[Form]:
    """Yield the node with a pool of single elements, or a convolution with weights of 1, before or behind it."""
    own = {**(traits_of(site.scope, site.node) or {}), "batch-told": True, "of-untold-volume": False}
    if len(shape) != _SPATIAL + 2:
        why_not = Refusal("it is of no volume")
    elif site.elem_type(0) not in FLOATS:
        why_not = Refusal("pools are of floats")
    channels = shape[1] if len(shape) > 1 and isinstance(shape[1], int) else 0

    def told(builder: FragmentBuilder, layer: str, value: Any) -> Any:
        if layer == "MaxPool":
            return pooled(builder, value)
        ones = np.ones((channels, 1, *_ONE), helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
        told = {"kernel_shape": list(_ONE), "strides": list(_ONE), "group": channels}
        return builder.op(layer, [value, builder.constant(ones, "ones")], told)

    def write(layer: str) -> Rewrite:
        builder = site.builder()
        first, *others = (builder.input(name) for name in site.node.input)
        trials, is_exact = trials_of(site), layer == "MaxPool"
        if is_before:
            fragment = builder.ending_in(copied(site.node), [told(builder, layer, first), *others])
            return Rewrite(fragment, trials, exact=is_exact)
        result = builder.original(copied(site.node), [first, *others])
        builder.output(site.node.output[0], told(builder, layer, result))
        return Rewrite(builder.build(), trials, exact=is_exact)

    plain = _telling(site, shape)
    grouped = dataclasses.replace(
        plain,
        op_type="Conv",
        written=dataclasses.replace(plain.written, group=channels),
        channels=channels,
        maps=channels,
    )
    for name, layer in (("a pool of single elements", plain), ("a convolution with weights of 1", grouped)):
        reason = why_not or (None if channels or layer is plain else Refusal("how many channels it has is not known"))
        operators: Operators = ()
        if reason is None:
            operators = ((site.node.op_type, own), (layer.op_type, window_traits(layer)))
        side = "before" if is_before else "behind"
        yield Form(f"{name} {side} it", operators, partial(write, layer.op_type), reason)
