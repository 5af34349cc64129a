"""Where two models part, for people: the first stretch that disagrees, in nodes, numbers and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from padfix.diagnose.causes import border_split, likely_cause
from padfix.diagnose.graph_difference import differences
from padfix.proof.compare import compare, is_number
from padfix.proof.executors import Array, member_of, output_of
from padfix.proof.judging import StretchJudge
from padfix.proof.probes import Probe
from padfix.proof.stretches import Judged, Stretch, Stretches
from padfix.proof.verdict import IN_CONVERSION, Failure, Inside
from padfix.results import Difference, FirstDifference, Verdict

SHOWN = 3
"""Positions that are shown with both values."""


def describe(inside: Inside, failure: Failure | None) -> FirstDifference | None:
    """Return the first stretch that disagrees; None where every one agrees, or none could be looked at."""
    if inside.judge is None or inside.outcome is None:
        return None
    if not inside.outcome.wrong:
        wrong = _list_that_differs(inside, failure) if failure is not None else None
    else:
        wrong = _first_part(inside.judge, inside.outcome.wrong[0], inside.probes)
    return None if wrong is None else _described(inside.judge, wrong, inside)


def _list_that_differs(inside: Inside, failure: Failure) -> Judged | None:
    """Return what computes a list or map that differs, which no stretch ends with as it is no tensor."""
    assert inside.judge is not None
    stretches, found = inside.judge.stretches, failure.found or {}
    for name, array in failure.results.items():
        output = output_of(name)
        theirs = inside.outputs.get(output, output)
        difference = compare(name, array, found.get(member_of(theirs, name[len(output) :])))
        if output == name or difference.equivalent or not _is_computed(stretches, output, theirs):
            continue
        stretches.pairing.add(output, theirs)
        return Judged(stretches.stretch(output), difference, failure.probe.name, failure.optimised)
    return None


def _is_computed(stretches: Stretches, ours: str, theirs: str) -> bool:
    return all(name in side.view.producers for side, name in zip(stretches.sides, (ours, theirs), strict=True))


def _first_part(judge: StretchJudge, wrong: Judged, probes: Sequence[Probe]) -> Judged:
    """Return the first part of a stretch that disagrees, or of what it reads, by what is no ground for a verdict.

    Where a node reads another tensor, wiring pairs nothing behind it, and a name that both models have says where to
    look. Where one order of axes is made up for nowhere, the node that made it is the place.
    """
    stretches, pairing = judge.stretches, judge.stretches.pairing
    for name in _turned(stretches, wrong.stretch):
        stretches.layouts.forget(name)
        if (part := _disagreeing(judge, wrong, name, probes, is_pair=True)) is not None:
            return part
    theirs = {name: node for node in wrong.stretch.candidate_nodes for name in node.outputs if name}
    for node in sorted(wrong.stretch.nodes, key=lambda each: each.index):
        for name in node.outputs:
            twin = theirs.get(name)
            if twin is None or twin.op_type != node.op_type or name in pairing.partners or name in pairing.back:
                continue
            pairing.add(name, name)
            if (part := _disagreeing(judge, wrong, name, probes)) is not None:
                return part
    return wrong


def _turned(stretches: Stretches, wrong: Stretch) -> list[str]:
    """Return the tensors above a stretch whose axes the same operators leave in another order."""
    layouts = stretches.layouts
    if not layouts.are_moved(wrong.above):
        return []
    needed = stretches.sides[0].view.needed([wrong.name])
    turned = [stretches.stretch(name) for name in stretches.ends() if name in needed and layouts.are_moved([name])]
    return [each.name for each in turned if not layouts.are_moved(each.above) and _is_of_the_same_operators(each)]


def _is_of_the_same_operators(stretch: Stretch) -> bool:
    before, after = ([node.op_type for node in nodes] for nodes in (stretch.nodes, stretch.candidate_nodes))
    return before == after


def _disagreeing(
    judge: StretchJudge, wrong: Judged, name: str, probes: Sequence[Probe], *, is_pair: bool = False
) -> Judged | None:
    """Return the stretch that ends with a pair as the wrong one, if it is.

    One of other lengths is no pair, unless that ``is_pair`` is known.
    """
    part = replace(wrong, stretch=judge.stretches.stretch(name))
    ours, other = judge.rerun(part, probes)
    if ours is None or other is None or (ours.shape != other.shape and not is_pair):
        judge.stretches.pairing.remove(name)
        return None
    difference = compare(name, ours, other)
    return None if difference.equivalent else replace(part, difference=difference)


def _described(judge: StretchJudge, wrong: Judged, inside: Inside) -> FirstDifference:
    stretch = wrong.stretch
    before = [node.proto for node in stretch.nodes if node.proto is not None]
    after = [node.proto for node in stretch.candidate_nodes if node.proto is not None]
    models = [side.model for side in judge.stretches.sides]
    ours, theirs = judge.rerun(wrong, inside.probes)
    border, interior, shown = _positions(ours, theirs, wrong.difference.tolerance)
    node, twin = stretch.nodes[-1], stretch.candidate_nodes[-1]
    said: tuple[str, ...] = ()
    if models[0] is not None and models[1] is not None:
        said = differences(models[0], models[1], before, after)
    return FirstDifference(
        tensor=stretch.name,
        candidate_tensor=stretch.partner,
        node=node.name,
        op_type=node.op_type,
        candidate_node=twin.name,
        candidate_op_type=twin.op_type,
        nodes=tuple(each.proto.name or each.op_type if each.proto is not None else each.name for each in stretch.nodes),
        candidate_nodes=tuple(
            each.proto.name or each.op_type if each.proto is not None else each.name for each in stretch.candidate_nodes
        ),
        difference=wrong.difference,
        positions=shown,
        border=border,
        interior=interior,
        cause="" if ours is None or theirs is None else likely_cause(ours, theirs, wrong.difference.tolerance),
        graph_differences=said,
    )


def _positions(
    first: Array | None, second: Array | None, tolerance: float
) -> tuple[tuple[int, int] | None, tuple[int, int] | None, tuple[Difference, ...]]:
    """Return (outside, all) at the border and inside, and the worst positions with both values."""
    if first is None or second is None or first.shape != second.shape:
        return None, None, ()
    if not (is_number(first.dtype) and is_number(second.dtype)):
        return None, None, ()
    wide, other = first.astype(np.float64), second.astype(np.float64)
    with np.errstate(invalid="ignore"):
        distance = np.asarray(np.abs(wide - other))  # of single numbers NumPy makes no array
    distance[(np.isnan(wide) & np.isnan(other)) | (wide == other)] = 0
    distance[np.isnan(distance)] = np.inf
    outside = distance > tolerance
    split = border_split(outside)
    shown = []
    for flat in np.argsort(distance, axis=None)[::-1][:SHOWN]:
        index = tuple(int(each) for each in np.unravel_index(int(flat), first.shape))
        if outside[index]:
            shown.append(Difference(index, float(first[index]), float(second[index])))
    return (*(split or (None, None)), tuple(shown))


def origin(verdict: Verdict) -> str:
    """Return where a TensorFlow source and its result begin to differ, as a sentence; empty if nobody knows."""
    place = verdict.first_difference
    if place is not None:
        return f"The difference arises in the conversion from TensorFlow, at {place.op_type} {place.node!r}."
    return "The difference arises in the conversion from TensorFlow." if IN_CONVERSION in verdict.notes else ""
