"""Reductions beside lengths that are left open: with an axis of one element more, as pools, and as convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.graph.scopes import Dimension
from padfix.operators.batches import is_of_another_batch
from padfix.operators.data_order import CHANNELS
from padfix.operators.reductions import reduced_axes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import window_traits
from padfix.operators.window import Window
from padfix.operators.written import Written
from padfix.rules.base import Site
from padfix.rules.build.along_axes import FLOATS, LONGEST
from padfix.rules.build.elementary_forms import OF_ONES, about_sum, reduced, reduction_traits, written
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators
from padfix.rules.build.told_batch import pool_traits, pooled
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_LINES, _IMAGES, _VOLUMES = 3, 4, 5
"""Axes of lines, of images and of volumes, with their batch and channels."""

_EXTREMES = ("ReduceMax", "ReduceMin")


def open_reductions(site: Site) -> Iterator[Form]:
    """Yield a reduction of lines, images or volumes, but for their batch, in forms that leave lengths open."""
    known, listed = site.input_type(0), reduced_axes(site.scope, site.node)
    shape = () if known is None or known.shape is None else tuple(known.shape)
    if not listed or len(shape) not in (_LINES, _IMAGES, _VOLUMES):
        return
    axes, kept = sorted({axis % len(shape) for axis in listed}), attributes.integer(site.node, "keepdims", 1) != 0
    if 0 in axes or site.elem_type(0) not in FLOATS:
        return
    if len(shape) == _LINES and len(axes) == 1:
        yield _beside_one(site, axes[0], kept=kept)
    if site.node.op_type in _EXTREMES and len(shape) != _VOLUMES:
        yield _of_all(site, axes, len(shape), kept=kept)
        yield from _along(site, axes, shape, kept=kept)
    elif site.node.op_type in {"ReduceMean", *OF_ONES} and axes == [CHANNELS]:
        yield from _weighed(site, shape, kept=kept)
    if len(shape) != _LINES and len(axes) == 1:
        yield _laid_out(site, axes[0], shape, kept=kept)


def _beside_one(site: Site, axis: int, *, kept: bool) -> Form:
    """Return the reduction along an axis of lines and one of one element behind it."""
    op_type, pair = site.node.op_type, [axis, axis + 1]

    def write(builder: FragmentBuilder, value: Any) -> Any:
        value = reduced(builder, op_type, builder.unsqueezed(value, axis + 1), pair, kept=kept)
        return builder.unsqueezed(value, axis + 1, back=True) if kept else value

    told: Traits = {**reduction_traits(op_type, site.opset, pair), "rank": _IMAGES, "keeps-axis": kept}
    operators: Operators = (("Unsqueeze", {"rank": _LINES}), (op_type, told))
    operators = (*operators, *((("Squeeze", {"rank": _IMAGES}),) if kept else ()))
    return Form("an axis of one element beside it", operators, partial(written, site, write))


def _laid_out(site: Site, axis: int, shape: Sequence[Dimension], *, kept: bool) -> Form:
    """Return the reduction along an axis and one of one element, with all before it in one axis, and all behind it."""
    op_type = site.node.op_type
    outer, length, inner = (_in_one(part) for part in (shape[1:axis], shape[axis : axis + 1], shape[axis + 1 :]))
    before, pair = ([outer], [2, 3]) if outer != 1 else ([], [1, 2])
    told = [0, *before, *([length, 1, inner] if not before or inner != 1 else [1, length])]
    left = [*shape[1:axis], *([1] if kept else []), *shape[axis + 1 :]]
    result = [0, *(each if isinstance(each, int) else -1 for each in left)]
    why_not = None
    if max(told.count(-1), result.count(-1)) > 1 or 0 in shape:
        why_not = Refusal("it needs all lengths of its data but one (--shape)")
    elif -1 in (*told, *result) and not isinstance(shape[0], int):
        why_not = Refusal("a batch without images leaves no length to be found")
    elif _VOLUMES in (len(told), len(result)) and is_of_another_batch(site.scope, site.input_name(0)) is not False:
        why_not = Refusal("its first axis is another than the batch")

    def write(builder: FragmentBuilder, value: Any) -> Any:
        for at, lengths in enumerate((told, result)):
            value = builder.reshaped(value, lengths)
            value = pooled(builder, value) if len(lengths) == _VOLUMES else value
            value = value if at else reduced(builder, op_type, value, pair)
        return value

    is_volume = len(told) == _VOLUMES
    traits = {"rank": len(told), "keeps-axis": True, "of-volume": is_volume, "several-of-volume": is_volume}
    operators: Operators = (
        *_reshaping(site, told),
        (op_type, {**reduction_traits(op_type, site.opset, pair), **traits}),
        *_reshaping(site, result),
    )
    return Form("its axis beside one of one element", operators, partial(written, site, write), why_not)


def _in_one(lengths: Sequence[Dimension]) -> int:
    """Return how many elements axes have together, -1 where that is not known."""
    known = [each for each in lengths if isinstance(each, int)]
    return math.prod(known) if len(known) == len(lengths) else -1


def _reshaping(site: Site, told: Sequence[int]) -> Operators:
    """Return a Reshape to these lengths, of which a volume is told which axis is its batch."""
    is_volume = len(told) == _VOLUMES
    reshape = ("Reshape", {"rank": len(told), "batch-told": is_volume})
    sizes: list[Dimension] = [each if each > 0 else None for each in told]
    return (reshape, *((("MaxPool", pool_traits(site, sizes)),) if is_volume else ()))


def _of_all(site: Site, axes: Sequence[int], rank: int, *, kept: bool) -> Form:
    """Return the maximum or minimum of lines or of images as a pool of all, behind a Transpose where need be."""
    is_turned = rank == _LINES and list(axes) == [CHANNELS]
    why_not = None if is_turned or list(axes) == list(range(2, rank)) else Refusal("it leaves axes of its images")

    def write(builder: FragmentBuilder, value: Any) -> Any:
        value = builder.op("GlobalMaxPool", [_turned(builder, value, rank * is_turned)])
        if kept:
            return _turned(builder, value, rank * is_turned)
        return builder.unsqueezed(value, *range(2, rank), back=True)

    pool = ("GlobalMaxPool", {"rank": rank, **_within(site)})
    operators: Operators = (pool, *_about(site, rank, turns=is_turned, squeezes=not kept))
    return Form("a pool of all", operators, partial(written, site, partial(_signed, site, write)), why_not)


def _along(site: Site, axes: Sequence[int], shape: Sequence[Dimension], *, kept: bool) -> Iterator[Form]:
    """Yield the maximum or minimum along one axis of images, whose length is known, as a pool along it."""
    length = shape[axes[0]]
    if len(shape) != _IMAGES or len(axes) > 1 or not isinstance(length, int) or not 0 < length <= LONGEST:
        return
    turned = _IMAGES * (axes[0] == CHANNELS)  # which changes places with the rows
    kernel = (1, length) if axes[0] == _IMAGES - 1 else (length, 1)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        told = {"kernel_shape": list(kernel), "strides": [1, 1]}
        value = _turned(builder, builder.op("MaxPool", [_turned(builder, value, turned)], told), turned)
        return value if kept else builder.unsqueezed(value, axes[0], back=True)

    sizes = (length, shape[3]) if turned else tuple(shape[2:])
    plain: dict[str, Any] = {"strides": (1, 1), "dilations": (1, 1), "sizes": sizes, "kernel": kernel}
    window = Window(
        **plain,
        domain="",
        op_type="MaxPool",
        written=Written(kernel_shape=kernel, strides=(1, 1)),
        elem_type=site.elem_type(0),
        channels=None,
    )
    pool = ("MaxPool", {**window_traits(window), **_within(site)})
    operators: Operators = (pool, *_about(site, _IMAGES, turns=bool(turned), squeezes=not kept))
    yield Form("a pool along its axis", operators, partial(written, site, partial(_signed, site, write)))


def _weighed(site: Site, shape: Sequence[Dimension], *, kept: bool) -> Iterator[Form]:
    """Yield the sum or the mean of the channels, whose number is known, as a convolution with one tap."""
    channels, rank = shape[CHANNELS], len(shape)
    if not isinstance(channels, int) or not 0 < channels <= LONGEST:
        return
    taps, factor = (1,) * (rank - 2), 1 / channels if site.node.op_type == "ReduceMean" else 1
    weights = np.full((1, channels, *taps), factor, helper.tensor_dtype_to_np_dtype(site.elem_type(0)))

    before, after = about_sum(site.node.op_type)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        given = [before(builder, value), builder.constant(weights, "ones")]
        value = after(builder, builder.op("Conv", given, {"kernel_shape": list(taps)}))
        return value if kept else builder.unsqueezed(value, CHANNELS, back=True)

    plain: dict[str, Any] = {"kernel": taps, "strides": taps, "dilations": taps, "sizes": tuple(shape[2:])}
    window = Window(
        **plain,
        domain="",
        op_type="Conv",
        written=Written(kernel_shape=taps),
        elem_type=site.elem_type(0),
        channels=channels,
        maps=1,
    )
    convolution = ("Conv", {**window_traits(window), **_within(site), "biased": False})
    operators: Operators = (convolution, *_about(site, rank, turns=False, squeezes=not kept))
    yield Form("a convolution of all channels", operators, partial(written, site, write))


def _turned(builder: FragmentBuilder, value: Any, rank: int) -> Any:
    """Return data of so many axes with the channels behind the axis after them; as they are for none."""
    return builder.op("Transpose", [value], {"perm": [0, 2, 1, 3][:rank]}) if rank else value


def _signed(site: Site, write: Callable[..., Any], builder: FragmentBuilder, value: Any) -> Any:
    """Return what is written of the data, or the minimum as what is of their negatives."""
    is_least = site.node.op_type == "ReduceMin"
    value = write(builder, builder.op("Neg", [value]) if is_least else value)
    return builder.op("Neg", [value]) if is_least else value


def _about(site: Site, rank: int, *, turns: bool, squeezes: bool) -> Operators:
    """Return what stands about a pool or a convolution: changes of the sign, a Transpose, and a Squeeze."""
    return (
        *((("Neg", {}),) if site.node.op_type == "ReduceMin" else ()),
        *((("Transpose", {"rank": rank}),) if turns else ()),
        *((("Squeeze", {"rank": rank}),) if squeezes else ()),
    )


def _within(site: Site) -> Traits:
    return {"batch-within": is_of_another_batch(site.scope, site.input_name(0))}
