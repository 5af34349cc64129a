"""Roots of sums of squares that half precision does not hold: of smaller numbers, and made as large again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.graph.scopes import ValueType
from padfix.operators.reading import read
from padfix.operators.reductions import reduced_axes
from padfix.operators.refusal import Refusal
from padfix.operators.squares import root_of_squares
from padfix.operators.traits import traits_of
from padfix.operators.window import Window
from padfix.operators.written import SAME
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.elementary_forms import AT_ONCE, reduction_traits, steps_of, stepwise
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import declared, like, trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.trials import trials

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_MOST_SUM = 1 << 15
"""What half precision holds, and as much again."""

_STEP = 256.0
"""By how much numbers are made smaller; once more where they are as much larger."""

_SINCE = 9
"""The first opset that has a Where."""


def of_smaller_squares(site: Site) -> Iterator[Form]:
    """Yield a norm, a pool of squares or a root of their sum with squares of smaller numbers."""
    window = read(site.scope, site.node) if site.node.op_type == "LpPool" else None
    if isinstance(window, Window):
        yield _scaled_pool(site, window)
    elif site.node.op_type == "ReduceL2":
        yield _scaled_norm(site)
    else:
        yield from _scaled_root(site)


def _scaled_norm(site: Site) -> Form:
    """Return a ReduceL2 of its data times a factor that leaves their squares small, divided by that."""
    known, axes = site.input_type(0), reduced_axes(site.scope, site.node)
    rank = 0 if known is None or known.rank is None else known.rank
    every = sorted({axis % rank for axis in axes or range(rank)}) if rank and axes is not None else []
    why_not = None if every else Refusal("its axes, or how many there are, are not known")
    kept = attributes.integer(site.node, "keepdims", 1) != 0

    def write() -> Rewrite:
        builder = site.builder(max(site.opset, _SINCE))
        value, *listed = (builder.input(name) for name in site.node.input)
        share, factor = _share(builder, value, every, site, _count(known, every))
        norm = builder.original(copied(site.node), [share, *listed])
        scale = factor if kept else stepwise("ReduceMax", every, AT_ONCE, kept=False)(builder, factor)
        builder.output(site.node.output[0], builder.op("Div", [norm, scale]))
        return Rewrite(builder.build(), trials_of(site))

    # What else the target has against it has forms of its own.
    return Form("that of smaller numbers", _parts(site, every), write, why_not or _unless_floats(site), _SINCE)


def _scaled_pool(site: Site, window: Window) -> Form:
    """Return an LpPool of its data times such a factor for each channel, divided by that."""
    every = list(range(window.leading, window.leading + window.rank))
    taps = math.prod(each or 1 for each in window.kernel)

    def write() -> Rewrite:
        builder = site.builder(max(site.opset, _SINCE))
        share, factor = _share(builder, builder.input(site.input_name(0)), every, site, taps)
        pooled = builder.original(copied(site.node), [share])
        builder.output(site.node.output[0], builder.op("Div", [pooled, factor]))
        return Rewrite(builder.build(), trials(site, window, same=window.auto_pad in SAME))

    return Form("that of smaller numbers", _parts(site, every), write, _unless_floats(site), _SINCE)


def _scaled_root(site: Site) -> Iterator[Form]:
    """Yield the root of a sum or mean of squares as that of data times such a factor, divided by that."""
    own = traits_of(site.scope, site.node) or {}
    found = root_of_squares(site.scope, site.node)
    known = None if found is None else site.scope.type_of(found.data)
    rank = 0 if known is None or known.rank is None else known.rank
    if found is None:
        return
    every = sorted({axis % rank for axis in found.axes or range(rank)}) if rank else []
    kept = attributes.integer(found.nodes[1], "keepdims", 1) != 0
    why_not = None if every else Refusal("how many axes its data have is not known")
    count = 1 if found.nodes[1].op_type == "ReduceMean" else _count(known, every)

    def write() -> Rewrite:
        assert known is not None
        builder = site.builder(max(site.opset, _SINCE))
        share, factor = _share(builder, builder.input(found.data), every, site, count)
        scale = factor if kept else stepwise("ReduceMax", every, AT_ONCE, kept=False)(builder, factor)
        value = stepwise(found.nodes[1].op_type, every, len(every), kept)(builder, builder.op("Mul", [share, share]))
        if found.least:
            # The square of the factor may be less than half precision holds, but not before it is one.
            least = builder.op("Mul", [builder.op("Mul", [builder.input(found.least), scale]), scale])
            value = builder.op(found.nodes[2].op_type, [value, least])
        read = (name for node in found.nodes for name in node.input)
        constants = (name for name in (found.least, *read) if name and site.scope.constant(name) is not None)
        given = {found.data: like(known), **declared(site.scope, constants)}
        root = builder.original(copied(site.node), [value])
        builder.output(site.node.output[0], builder.op("Div", [root, scale]))
        return Rewrite(builder.build(), (given,), replaces=found.nodes)

    summed = (found.nodes[1].op_type, reduction_traits(found.nodes[1].op_type, site.opset, every))
    ends: Operators = (("Add", {}), ("Max", {"inputs": 2, "broadcasts": True})) if found.least else ()
    operators: Operators = (*_parts(site, every), summed, *ends, ("Sqrt", {**own, "squares-far": False}))
    yield Form("that of smaller numbers", operators, write, why_not or _unless_floats(site), _SINCE)


def _share(builder: FragmentBuilder, value: Any, axes: Sequence[int], site: Site, count: int) -> tuple[Any, Any]:
    """Return data times a factor that leaves the sum of so many squares small, 1 where it is, and the factor."""
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))

    def number(each: float) -> Any:
        return builder.constant(np.array(each, dtype), "number")

    most = 2.0 ** max(math.floor(math.log2(_MOST_SUM / max(count, 1)) / 2), 0)
    largest = stepwise("ReduceMax", axes, AT_ONCE, kept=True)(builder, builder.op("Abs", [value]))
    factor = number(1)
    for step in (1, 2):  # powers of two, which change no digits
        above = builder.op("Greater", [largest, number(most * _STEP ** (step - 1))])
        factor = builder.op("Where", [above, number(_STEP**-step), factor])
    return builder.op("Mul", [value, factor]), factor


def _count(known: ValueType | None, axes: Sequence[int]) -> int:
    """Return how many elements lie along axes; as many as there may be where that is not known."""
    lengths = () if known is None or known.shape is None else known.shape
    told = [each for axis in axes if isinstance(each := lengths[axis], int)]
    return math.prod(told) if len(told) == len(axes) else int(_MOST_SUM)


def _parts(site: Site, axes: Sequence[int]) -> Operators:
    """Return what :func:`_share` consists of, and a quotient by the factor."""
    found = tuple(("ReduceMax", reduction_traits("ReduceMax", site.opset, step)) for step in steps_of(axes, AT_ONCE))
    rest: Operators = (
        ("Greater", {}),
        ("Where", {}),
        ("Mul", {"gate-second": False}),
        ("Div", {"from-constant": False}),
    )
    return (("Abs", {}), *found, *rest)


def _unless_floats(site: Site) -> Refusal | None:
    return None if site.elem_type(0) in FLOATS else Refusal("its data are no floats")
