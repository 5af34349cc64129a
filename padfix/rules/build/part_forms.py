"""A part of a volume, picked before the volume is made: what is left has one axis less."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from onnx import NodeProto

from padfix.operators.constant_chains import chain_of
from padfix.operators.picked_parts import Part, picked_part
from padfix.operators.picking_traits import picks_all_in_order
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.forms import SHAPE_AS_INPUT_SINCE, Form
from padfix.rules.build.node_trials import chain_trial, like, trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced


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


def whole_forms(site: Site) -> Iterator[Form]:
    """Yield a Gather of all along an axis, in order, as a Reshape: exporters view a tensor as another so."""
    known, gives = site.input_type(0), site.scope.type_of(site.node.output[0])
    lengths = None if gives is None else gives.lengths
    if known is None or known.lengths is None or lengths is None or not picks_all_in_order(site.scope, site.node):
        return
    operators: Operators = (("Reshape", {"rank": len(lengths)}),)
    since = SHAPE_AS_INPUT_SINCE
    yield Form("a Reshape of all in order", operators, lambda: _reshaped(site, lengths), None, since)


def _reshaped(site: Site, lengths: Sequence[int]) -> Rewrite:
    builder = site.builder(max(site.opset, SHAPE_AS_INPUT_SINCE))
    builder.output(site.node.output[0], builder.reshaped(builder.input(site.input_name(0)), lengths))
    return Rewrite(builder.build(), trials_of(site), exact=True)


def _written(site: Site, part: Part) -> Rewrite | Refusal:
    """Return the Slice, with what comes before it in the axes put together with it."""
    reshape, builder = part.before[0], site.builder()
    chain, known = _shape_chain(site, reshape), site.scope.type_of(reshape.input[0])
    if chain is None or known is None:
        return Refusal("its shape is computed of data")
    constants = {name: site.scope.constant(name) for node in (*part.before, site.node) for name in node.input[1:]}
    told = {name: TrialInput.of(value) for name, value in constants.items() if value is not None}
    trial = {**chain_trial(site.scope, chain), reshape.input[0]: like(known), **told}
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
    return Rewrite(builder.build(), (trial,), exact=True, replaces=(*chain, *part.before))


def _shape_chain(site: Site, reshape: NodeProto) -> list[NodeProto] | None:
    """Return the nodes that compute the shape of a Reshape; None where they compute it of data."""
    name = reshape.input[1]
    producer = site.scope.own_producer(name) if site.scope.constant(name) is None else None
    return [] if producer is None else chain_of(site.scope, producer, open_lengths=True)
