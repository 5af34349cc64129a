"""Axes of one element that are added or taken away behind all others, where open lengths lie on both sides of them."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.operators.reductions import reduced_axes
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.forms import SHAPE_AS_INPUT_SINCE, Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.space_forms import kept


def axes_put_last(site: Site) -> Iterator[Form]:
    """Yield a Reshape that copies all lengths but those of one element, which come last, and a Transpose.

    What adds no axis is its data as they are.
    A Reshape alone can copy no length behind an axis that it adds, and finds one by itself unless there is no image.
    """
    known, listed = site.input_type(0), reduced_axes(site.scope, site.node)
    before = None if known is None else known.shape
    adds = site.node.op_type == "Unsqueeze"
    if adds and listed == []:
        yield kept(site)
    if before is None or not listed:
        return
    rank = len(before) + len(listed) * adds
    axes = sorted({axis % rank for axis in listed}) if rank and all(-rank <= axis < rank for axis in listed) else []
    others = [axis for axis in range(rank) if axis not in axes]
    lengths = before if adds else [before[axis] for axis in others]
    first = axes[0] if axes else 0
    is_open = [not isinstance(each, int) for each in lengths]
    if not axes or not any(is_open[:first]) or not any(is_open[first:]):
        return
    turned = [*others, *axes]

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(0))
        if adds:
            value = builder.reshaped(value, [*[0] * len(others), *[1] * len(axes)])
            value = builder.op("Transpose", [value], {"perm": [turned.index(axis) for axis in range(rank)]})
        else:
            value = builder.op("Transpose", [value], {"perm": turned})
            value = builder.reshaped(value, [0] * len(others))
        builder.output(site.node.output[0], value)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    operators = (
        ("Reshape", {"rank": rank if adds else len(others)}),
        ("Transpose", {"rank": rank, "moves-batch": first == 0}),
    )
    why_not = None
    if not adds and any(before[axis] != 1 for axis in axes):
        why_not = Refusal("it takes axes away that may have more elements than one")
    if site.opset < SHAPE_AS_INPUT_SINCE:
        why_not = Refusal("this opset has no Reshape to a shape that is an input")
    yield Form("all lengths copied, and the axes of one element last", operators, write, why_not)
