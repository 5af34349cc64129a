"""Equal forms of a Split: with its axis or the length of each piece, and a Slice for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.picking_traits import pieces_told
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.written_forms import axis_forms
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_SIZES_AS_INPUT_SINCE = 13

_OF_LENGTHS: Traits = {"numbers": "integer", "elements": "integer", "inputs": 2, "constants": "number"}

_COUNTING: Operators = (
    ("Shape", {"as-result": False}),
    *((op_type, _OF_LENGTHS) for op_type in ("Add", "Div", "Mul")),
    ("Slice", {"elements": "integer"}),
    ("Slice", {"behind-window": False}),
)
"""What cuts pieces of a length out that a model works out as it runs."""


def split_forms(site: Site) -> Iterator[Form]:
    """Yield a Split that says its axis, or the length of each piece, and as a Slice for each."""
    yield from axis_forms(site, 0)
    sizes = pieces_told(site.scope, site.node)
    untold = Refusal("it needs the length that it splits (--shape)") if sizes is None else None
    unread = untold or _why_not_empty(site, sizes or [])
    told = {**(traits_of(site.scope, site.node) or {}), "axis-written": True, "split-evenly": True}
    is_even = site.opset < _SIZES_AS_INPUT_SINCE and len(set(sizes or ())) < 2
    told |= {"pieces-told": True, "empty-piece": False, "even-by-itself": is_even}
    if sizes is not None and 0 in sizes:
        named = (("Split", {**told, "empty-piece": True}),)
        yield Form("the length of each piece, with those without elements", named, partial(_told, site, sizes))
    yield Form("the length of each piece", (("Split", told),), partial(_written, site, _split), unread)
    yield Form(
        "a Slice for each piece", (("Slice", {"behind-window": False}),), partial(_written, site, _sliced), unread
    )
    known = site.input_type(0)
    if sizes is None and attributes.integer(site.node, "num_outputs", 0) and known is not None and known.rank:
        yield Form("a Slice for each piece, as many as are counted", _COUNTING, partial(_counted, site, known.rank))


def _why_not_empty(site: Site, sizes: list[int]) -> Refusal | None:
    """Return why there is no constant for a piece without elements, which all the rest goes without."""
    known = site.input_type(0)
    if all(sizes) or (known is not None and known.lengths is not None):
        return None
    read = [name for name, size in zip(site.node.output, sizes, strict=False) if name and not size]
    is_read = any(site.scope.consumers(name) or site.scope.is_output(name) for name in read)
    return Refusal("it gives a piece without elements, of an open length") if is_read or not any(sizes) else None


def _written(site: Site, write: Callable[[Site, FragmentBuilder, Any, list[int]], list[Any]]) -> Rewrite:
    sizes, builder = pieces_told(site.scope, site.node), site.builder()
    assert sizes is not None
    value = builder.input(site.input_name(0))
    filled = [size for size in sizes if size]
    pieces = iter(write(site, builder, value, filled) if len(filled) > 1 or len(sizes) == 1 else [value])
    for name, size in zip(site.node.output, sizes, strict=True):
        piece = next(pieces) if size else None
        if not name:
            continue
        if piece is value:
            piece = builder.op("Identity", [value])
        builder.output(name, _empty(site, builder) if piece is None else piece)
    return Rewrite(builder.build(), trials_of(site), exact=True)


def _told(site: Site, sizes: list[int]) -> Rewrite:
    builder = site.builder()
    pieces = _split(site, builder, builder.input(site.input_name(0)), sizes)
    for name, piece in zip(site.node.output, pieces, strict=True):
        if name:
            builder.output(name, piece)
    return Rewrite(builder.build(), trials_of(site), exact=True)


def _counted(site: Site, rank: int) -> Rewrite:
    """Write a Slice for each piece of a length that is left open; all are as long as the first, up to the end."""
    builder, axis = site.builder(), (attributes.integer(site.node, "axis", 0) or 0) % rank
    value = builder.input(site.input_name(0))
    length = sliced(builder, builder.op("Shape", [value]), [axis], [axis + 1], [0])
    count, places = len(site.node.output), builder.integers([axis], "axes")
    rounded_up = builder.op("Add", [length, builder.integers([count - 1], "rest")])
    each = builder.op("Div", [rounded_up, builder.integers([count], "count")])
    bounds = [builder.op("Mul", [each, builder.integers([place], "place")]) for place in range(count + 1)]
    for name, ends in zip(site.node.output, pairwise(bounds), strict=True):
        if name:
            builder.output(name, builder.op("Slice", [value, *ends, places]))
    return Rewrite(builder.build(), trials_of(site), exact=True)


def _empty(site: Site, builder: FragmentBuilder) -> Any:
    """Return a piece without elements; where lengths are open, which nothing reads, of another shape."""
    known = site.input_type(0)
    lengths = [] if known is None or known.lengths is None else list(known.lengths)
    if lengths:
        lengths[attributes.integer(site.node, "axis", 0) or 0] = 0
    nothing = np.zeros(lengths or [0], helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
    return builder.op("Identity", [builder.constant(nothing, "nothing")])


def _split(site: Site, builder: FragmentBuilder, value: Any, sizes: list[int]) -> list[Any]:
    node, inputs = copied(site.node, without=("num_outputs",)), [value]
    attributes.set_integer(node, "axis", attributes.integer(node, "axis", 0) or 0)
    del node.output[len(sizes) :]
    if builder.opset < _SIZES_AS_INPUT_SINCE:
        attributes.set_integers(node, "split", sizes)
    else:
        inputs.append(builder.integers(sizes, "split"))
    pieces = builder.original(node, inputs)
    return [pieces] if len(sizes) == 1 else list(pieces)


def _sliced(site: Site, builder: FragmentBuilder, value: Any, sizes: list[int]) -> list[Any]:
    axis = attributes.integer(site.node, "axis", 0) or 0
    bounds = pairwise(accumulate(sizes, initial=0))
    return [sliced(builder, value, [start], [end], [axis]) for start, end in bounds]
