"""Equal forms of a Split: with its axis or the length of each piece, and a Slice for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.written_forms import axis_forms

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_SIZES_AS_INPUT_SINCE = 13


def split_forms(site: Site) -> Iterator[Form]:
    """Yield a Split that says its axis, or the length of each piece, and as a Slice for each."""
    yield from axis_forms(site, 0)
    sizes = _sizes(site)
    unread = Refusal("it needs the length that it splits (--shape)") if sizes is None else None
    told = {**(traits_of(site.scope, site.node) or {}), "axis-written": True, "split-evenly": True}
    told["pieces-told"] = True
    yield Form("the length of each piece", (("Split", told),), partial(_written, site, _split), unread)
    yield Form(
        "a Slice for each piece", (("Slice", {"behind-window": False}),), partial(_written, site, _sliced), unread
    )


def _sizes(site: Site) -> list[int] | None:
    """Return the length of each piece, or None where that is not known."""
    told = attributes.integers(site.node, "split") if len(site.node.input) < 2 else site.constant(1)
    if told is not None:
        return [int(each) for each in told]
    known, axis = site.input_type(0), attributes.integer(site.node, "axis", 0) or 0
    shape = () if known is None or known.shape is None else known.shape
    length = shape[axis] if -len(shape) <= axis < len(shape) else None
    if not isinstance(length, int) or site.input_name(1):
        return None
    count = len(site.node.output)
    each = -(-length // count)
    return [max(0, min(each, length - each * place)) for place in range(count)]


def _written(site: Site, write: Callable[[Site, FragmentBuilder, Any, list[int]], list[Any]]) -> Rewrite:
    sizes, builder = _sizes(site), site.builder()
    assert sizes is not None
    pieces = write(site, builder, builder.input(site.input_name(0)), sizes)
    for name, piece in zip(site.node.output, pieces, strict=True):
        if name:
            builder.output(name, piece)
    return Rewrite(builder.build(), trials_of(site), exact=True)


def _split(site: Site, builder: FragmentBuilder, value: Any, sizes: list[int]) -> list[Any]:
    node, inputs = copied(site.node, without=("num_outputs",)), [value]
    attributes.set_integer(node, "axis", attributes.integer(node, "axis", 0) or 0)
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
