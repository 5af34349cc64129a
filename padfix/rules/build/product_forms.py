"""The product along an axis as products of its halves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_LONGEST = 1 << 12
"""Elements that are multiplied along an axis; more overflow, or vanish, in another order."""


def product_form(site: Site, axes: Sequence[int], kept: bool) -> Form:
    """Return a ReduceProd as the product of the halves of an axis, of their halves, and so on."""
    known = site.input_type(0)
    shape = () if known is None or known.shape is None else known.shape
    lengths = [shape[axis] for axis in axes if axis < len(shape)]
    sizes = [each for each in lengths if isinstance(each, int) and 0 < each <= _LONGEST]
    operators: Operators = (
        ("Split", {"axis-written": True, "split-evenly": True, "pieces-told": True}),
        ("Mul", {"gate-second": False}),
    )
    if not kept:
        operators = (*operators, ("Squeeze", {"rank": len(shape), "axes-written": True, "moves-batch": 0 in axes}))
    why_not = None if len(sizes) == len(axes) else Refusal("it needs the lengths of its axes (--shape), none very long")
    return Form("products of halves", operators, partial(_written, site, axes, sizes, kept), why_not)


def _written(site: Site, axes: Sequence[int], sizes: Sequence[int], kept: bool) -> Rewrite:
    builder = site.builder()
    data = builder.input(site.input_name(0))
    value = data
    for axis, size in zip(axes, sizes, strict=True):
        value = _halved(builder, value, axis, size)
    if not kept:
        value = builder.unsqueezed(value, *axes, back=True)
    builder.output(site.node.output[0], builder.op("Identity", [value]) if value is data else value)
    return Rewrite(builder.build(), trials_of(site))


def _halved(builder: FragmentBuilder, value: Any, axis: int, size: int) -> Any:
    """Return the product along an axis of ``size`` elements, of which an odd one is multiplied last."""
    if size == 1:
        return value
    half, is_odd = size // 2, size % 2
    first, second, *rest = builder.split(value, axis, [half, half, *[1] * is_odd])
    result = _halved(builder, builder.op("Mul", [first, second]), axis, half)
    return builder.op("Mul", [result, *rest]) if rest else result
