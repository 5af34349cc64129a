"""What works element by element, or along axes side by side, on data of many axes, as on data of three."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from onnx import helper

from padfix.graph import attributes
from padfix.graph.scopes import normal_domain
from padfix.operators.axis_order import alike_axes
from padfix.operators.elementwise import ELEMENTWISE, REDUCTIONS
from padfix.operators.reductions import reduced_axes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.elementary_forms import reduced, reduction_traits, written
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared, trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.marks import MARKS
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_ALONG_THE_SECOND: Traits = {
    "axes": 3,
    "rank": 3,
    "reduces-all": False,
    "keeps-axis": True,
    "over-batch": False,
    "moves-batch": False,
    "of-volume": False,
    "several-of-volume": False,
    "across-images": False,
    "one-element": False,
}

_ALONG_ONE = {"ArgMax": 0, "ArgMin": 0, "TopK": -1}
"""Operators that look for extremes along an axis, and which that is where none is told."""

_FEWER = 3
"""Axes that are left: the batch, the channels, and all others as one."""


def on_fewer_axes(site: Site) -> Iterator[Form]:
    """Yield an operator that works element by element, between a Reshape to three axes and one back."""
    if site.node.op_type in REDUCTIONS and not normal_domain(site.node.domain):
        yield from _reduced(site)
        return
    if site.node.op_type in _ALONG_ONE and not normal_domain(site.node.domain):
        yield _along_one(site)
        return
    node, result = site.node, site.scope.type_of(site.node.output[0])
    lengths = None if result is None else result.lengths
    if node.op_type not in ELEMENTWISE or normal_domain(node.domain) or len(node.output) != 1:
        return
    types = [site.input_type(place) if name else None for place, name in enumerate(node.input)]
    given = [None if known is None else known.lengths for known in types if known is not None]
    why_not = None
    if lengths is None or 0 in lengths or None in given or len(given) < sum(map(bool, node.input)):
        why_not = Refusal("it needs the lengths of its inputs (--shape)")
    elif any(each != lengths and math.prod(each or ()) != 1 for each in given):
        why_not = Refusal("its inputs have shapes of their own")
    elif len(lengths) <= _FEWER:
        why_not = Refusal("it has few axes already")

    def write() -> Rewrite:
        assert lengths is not None
        builder = site.builder()
        fewer = [*lengths[:2], math.prod(lengths[2:])]
        inputs = [
            builder.reshaped(builder.input(name), fewer)
            if known is not None and known.lengths == lengths
            # A single element has no axes that it would add to the others.
            else builder.reshaped(builder.input(name), [1])
            if known is not None and known.rank
            else builder.input(name)
            for name, known in zip(node.input, types, strict=True)
        ]
        builder.output(node.output[0], builder.reshaped(builder.original(copied(node), inputs), lengths))
        return Rewrite(builder.build(), (as_declared(site),), exact=True)

    # What else is special of it is looked at once it has few axes.
    known_traits = traits_of(site.scope, node) or {}
    own = {**known_traits, **dict.fromkeys(known_traits.keys() & set(MARKS), False), "axes": _FEWER, "rank": _FEWER}
    operators: Operators = (
        ("Reshape", {"rank": _FEWER}),
        (node.op_type, own),
        ("Reshape", {"rank": len(lengths or ())}),
    )
    yield Form("three axes in place of more", operators, write, why_not)


def _along_one(site: Site) -> Form:
    """Return what looks for extremes along one axis on the axes before that, itself, and those behind it."""
    node, data = site.node, site.input_type(0)
    lengths = () if data is None or data.lengths is None else data.lengths
    axis = (attributes.integer(node, "axis", _ALONG_ONE[node.op_type]) or 0) % max(len(lengths), 1)
    fewer = [math.prod(lengths[:axis]), *lengths[axis : axis + 1], math.prod(lengths[axis + 1 :])]
    results = {name: site.scope.type_of(name) for name in node.output if name}
    told = {name: known.lengths for name, known in results.items() if known is not None and known.lengths is not None}
    why_not = None if lengths and len(told) == len(results) else Refusal("it needs the lengths of its input (--shape)")
    if len(lengths) <= _FEWER:
        why_not = Refusal("it has few axes already")

    def write() -> Rewrite:
        builder = site.builder()
        inputs = [builder.reshaped(builder.input(node.input[0]), fewer), *map(builder.input, node.input[1:])]
        written_node = copied(node, without=("axis",))
        written_node.attribute.append(helper.make_attribute("axis", 1))
        values = builder.originals(written_node, inputs)
        for name, value in zip(results, values, strict=True):
            builder.output(name, builder.reshaped(value, told[name]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    own: Traits = {**(traits_of(site.scope, node) or {}), "axes": _FEWER, "rank": _FEWER}
    operators: Operators = (("Reshape", {"rank": _FEWER}), (node.op_type, own), ("Reshape", {"rank": len(lengths)}))
    return Form("three axes in place of more", operators, write, why_not)


def _unwritten() -> Refusal:
    return Refusal("it is not written")


def _reduced(site: Site) -> Iterator[Form]:
    """Yield a reduction of axes that stand side by side as that of the second of three."""
    data, result = site.input_type(0), site.scope.type_of(site.node.output[0])
    lengths, given = (None if each is None else each.lengths for each in (data, result))
    axes = reduced_axes(site.scope, site.node)
    if lengths is None or given is None or not lengths or 0 in lengths or axes is None:
        yield Form("fewer axes", (), _unwritten, Refusal("it needs the lengths of its data (--shape)"))
        return
    rank, op_type = len(lengths), site.node.op_type
    listed = sorted({axis % rank for axis in axes}) or list(range(rank))
    first, last = listed[0], listed[-1] + 1
    fewer = [math.prod(lengths[:first]), math.prod(lengths[first:last]), math.prod(lengths[last:])]
    why_not = None
    if not axes and attributes.integer(site.node, "noop_with_empty_axes", 0):
        why_not = Refusal("it reduces nothing")
    elif len(listed) < last - first:
        why_not = Refusal("the axes that it reduces are apart")
    elif rank <= _FEWER:
        why_not = Refusal("it has few axes already")

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.reshaped(reduced(builder, op_type, builder.reshaped(value, fewer), [1]), given)

    own = {**(traits_of(site.scope, site.node) or {}), **reduction_traits(op_type, site.opset, [1])}
    own |= {**dict.fromkeys(own.keys() & set(MARKS), False), **_ALONG_THE_SECOND}
    own["alike"] = alike_axes([fewer, [fewer[0], 1, fewer[2]]])
    operators: Operators = (("Reshape", {"rank": _FEWER}), (op_type, own), ("Reshape", {"rank": len(given)}))
    yield Form("fewer axes", operators, partial(written, site, write), why_not)
