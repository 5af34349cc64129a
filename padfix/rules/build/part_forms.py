"""A part of a volume, picked before the volume is made: what is left has one axis less."""

from __future__ import annotations

import math
from collections.abc import Iterator

from onnx import NodeProto

from padfix.operators.constant_chains import chain_of, leaves_of
from padfix.operators.picked_parts import Part, picked_part
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, Trial, TrialInput
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced

_TRIED = 2
"""In place of a length that is left open."""


def part_forms(site: Site) -> Iterator[Form]:
    """Yield a part of what a Reshape makes of the last axis as a Slice of that axis, reshaped and turned."""
    if not (traits_of(site.scope, site.node) or {}).get("picks-part"):
        return
    part = picked_part(site.scope, site.node)
    assert part is not None
    rank = part.kept + len(part.made) - 1
    operators: Operators = (
        ("Slice", {"axes": part.kept + 1}),
        ("Reshape", {"rank": rank}),
        ("Transpose", {"rank": rank}),
    )
    yield Form("a Slice of what the volume is made of", operators, lambda: _written(site, part))


def _written(site: Site, part: Part) -> Rewrite | Refusal:
    """Return the Slice, with what comes before it in the axes put together with it."""
    reshape, builder = part.before[0], site.builder()
    trial = _trial(site, part)
    if isinstance(trial, Refusal):
        return trial
    value = builder.input(reshape.input[0])
    copied, outer, behind = [0] * part.kept, list(part.made[: part.place]), list(part.made[part.place + 1 :])
    inner = math.prod(behind)
    if outer:
        value = builder.reshaped(value, [*copied, *outer, part.made[part.place] * inner])
    value = sliced(builder, value, [part.index * inner], [(part.index + 1) * inner], [part.kept + len(outer)])
    if len(behind) != 1:
        value = builder.reshaped(value, [*copied, *outer, *behind])
    gone = part.kept + part.place
    perm = [each - (each > gone) for each in part.perm if each != gone]
    if perm != sorted(perm):
        value = builder.op("Transpose", [value], {"perm": perm})
    builder.output(site.node.output[0], value)
    replaced = (*(_shape_chain(site, reshape) or ()), *part.before)
    return Rewrite(builder.build(), (trial,), exact=True, replaces=replaced)


def _shape_chain(site: Site, reshape: NodeProto) -> list[NodeProto] | None:
    """Return the nodes that compute the shape of a Reshape; None where they compute it of data."""
    name = reshape.input[1]
    producer = site.scope.own_producer(name) if site.scope.constant(name) is None else None
    return [] if producer is None else chain_of(site.scope, producer, open_lengths=True)


def _trial(site: Site, part: Part) -> Trial | Refusal:
    """Return the data, the constants and what is measured, with a few elements for every open length."""
    scope, reshape = site.scope, part.before[0]
    chain = _shape_chain(site, reshape)
    if chain is None:
        return Refusal("its shape is computed of data")
    constants, measured = leaves_of(scope, chain)
    trial = {}
    for name in dict.fromkeys((reshape.input[0], *measured)):
        known = scope.type_of(name)
        if known is None or known.shape is None:
            return Refusal("it needs the lengths of its data (--shape)")
        lengths = (each if isinstance(each, int) else _TRIED for each in known.shape)
        trial[name] = TrialInput(tuple(lengths), known.elem_type)
    for name in (*constants, *(each for node in (*part.before, site.node) for each in node.input[1:])):
        if (told := scope.constant(name)) is not None:
            trial[name] = TrialInput.of(told)
    return trial
