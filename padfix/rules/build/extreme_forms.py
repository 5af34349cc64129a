"""The maximum or minimum along axes as a pool of planes whose windows are as long as these axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_PLANE = 4
"""Axes of an image with its batch and channels."""


def extreme_form(site: Site, axes: Sequence[int], kept: bool) -> Form:
    """Return a ReduceMax or ReduceMin of some axes as a MaxPool of images."""
    known = site.input_type(0)
    lengths = [each if isinstance(each, int) else 0 for each in (known.shape or ())] if known is not None else []
    why_not = None
    if site.elem_type(0) not in FLOATS:
        why_not = Refusal("pools are of floats")
    elif not lengths or 0 in lengths[1:]:
        why_not = Refusal("it needs the lengths of its input (--shape)")
    elif 0 in axes:
        why_not = Refusal("it takes out the batch")

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(0))
        turns = site.node.op_type == "ReduceMin"
        value = builder.op("Neg", [value]) if turns else value
        value, now = pooled(builder, value, lengths, axes)
        value = builder.op("Neg", [value]) if turns else value
        left = [each for axis, each in enumerate(now) if axis and (kept or axis not in axes)]
        builder.output(site.node.output[0], builder.reshaped(value, [0, *left]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    operators = pooling(site, lengths, axes, len(lengths) - (0 if kept else len(axes)))
    return Form("a pool of planes", operators, write, why_not)


def pooling(site: Site, lengths: Sequence[int], axes: Sequence[int], rank: int) -> Operators:
    """Return what the maximum of data of these lengths along axes consists of, that has ``rank`` axes in the end."""
    planes = [(math.prod(lengths[1 : each[0]]), *_along(lengths, each)) for each in _neighbours(axes)]
    within = {"batch-within": is_of_another_batch(site.scope, site.input_name(0))}
    pools: Operators = tuple(("MaxPool", {**window_traits(_pool(site, *each)), **within}) for each in planes)
    return (("Reshape", {"rank": _PLANE}), ("Reshape", {"rank": rank}), *pools)


def pooled(builder: FragmentBuilder, value: Any, lengths: Sequence[int], axes: Sequence[int]) -> tuple[Any, list[int]]:
    """Return the maximum along axes as pools of planes give it, and the lengths that it is to be laid out in."""
    now = list(lengths)
    for group in _neighbours(axes):
        length, behind = _along(now, group)
        value = builder.reshaped(value, [0, math.prod(now[1 : group[0]]), length, behind])
        value = builder.op("MaxPool", [value], {"kernel_shape": [length, 1], "strides": [1, 1]})
        for axis in group:
            now[axis] = 1
    return value, now


def _neighbours(axes: Sequence[int]) -> list[list[int]]:
    """Return axes that stand side by side together."""
    groups: list[list[int]] = []
    for axis in axes:
        if groups and groups[-1][-1] == axis - 1:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _along(lengths: Sequence[int], axes: Sequence[int]) -> tuple[int, int]:
    """Return how many elements lie along axes, and how many behind them."""
    return math.prod(lengths[each] for each in axes), math.prod(lengths[axes[-1] + 1 :])


def _pool(site: Site, channels: int, length: int, behind: int) -> Window:
    plain: dict[str, Any] = {"kernel": (length, 1), "strides": (1, 1), "dilations": (1, 1), "sizes": (length, behind)}
    written = Written(kernel_shape=(length, 1), strides=(1, 1))
    return Window(
        **plain, domain="", op_type="MaxPool", written=written, elem_type=site.elem_type(0), channels=channels
    )


def infinite_form(site: Site) -> Form:
    """Return an extreme that is infinite where all of its numbers are, and which is as it was elsewhere."""
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    end = -math.inf if site.node.op_type == "ReduceMax" else math.inf

    def write() -> Rewrite:
        builder = site.builder()
        value, *axes = (builder.input(name) for name in site.node.input)
        infinity = builder.constant(np.array(end, dtype), "infinity")
        found = builder.op("Cast", [builder.op("Equal", [value, infinity])], {"to": site.elem_type(0)})
        every = builder.op(
            "ReduceMin", [found, *axes], {each.name: helper.get_attribute_value(each) for each in site.node.attribute}
        )
        half = builder.constant(np.array(0.5, dtype), "half")
        known = builder.original(copied(site.node), [value, *axes])
        builder.output(
            site.node.output[0], builder.op("Where", [builder.op("Greater", [every, half]), infinity, known])
        )
        return Rewrite(builder.build(), trials_of(site), exact=True)

    own = {**(traits_of(site.scope, site.node) or {}), "asked-for-infinity": False}
    operators: Operators = (
        ("Equal", {"meets-infinity": True}),
        ("Cast", {"changes-type": True}),
        ("ReduceMin", own),
        (site.node.op_type, own),
        ("Greater", {}),
        ("Where", {}),
    )
    why_not = None if site.elem_type(0) in FLOATS else Refusal("it is of no floats")
    return Form("an infinity where all of its numbers are", operators, write, why_not)
