"""Where two models part, for people: the first stretch that disagrees, in nodes, numbers and words."""

from __future__ import annotations

import numpy as np

from padfix.diagnose.causes import border_split, likely_cause
from padfix.diagnose.graph_difference import differences
from padfix.proof.executors import Array
from padfix.proof.judging import StretchJudge
from padfix.proof.stretches import Judged
from padfix.proof.verdict import IN_CONVERSION, Failure, Inside
from padfix.results import Difference, FirstDifference, Verdict

SHOWN = 3
"""Positions that are shown with both values."""


def describe(inside: Inside, failure: Failure | None) -> FirstDifference | None:
    """Return the first stretch that disagrees; None where every one agrees, or none could be looked at."""
    if inside.judge is None or inside.outcome is None or not inside.outcome.wrong:
        return None
    return _described(inside.judge, inside.outcome.wrong[0], inside)


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
    if first.dtype.kind not in "fiub" or second.dtype.kind not in "fiub":
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
