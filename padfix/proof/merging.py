"""Differences that are made up for: an optimiser may move a factor from one weight to the next, or round earlier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isinf

from padfix.proof.constants import Constants
from padfix.proof.graph_view import GraphView
from padfix.proof.steps import are_steps_of
from padfix.proof.stretches import Judged, Stretch, Stretches

MOST_MERGES = 4
"""How often a stretch is merged with what follows it before the difference is taken to be real.

Within a residual block of three convolutions with their norms, the last one makes up for the first.
"""


Rejudge = Callable[[Sequence[Stretch]], list[Judged]]


def made_up_for(
    stretches: Stretches,
    judged: list[Judged],
    wrong: list[Judged],
    rejudge: Rejudge,
    constants: tuple[Constants | None, Constants | None],
) -> tuple[list[Judged], list[Judged]]:
    """Merge wrong stretches with what follows them: an optimiser may move a factor from one weight to the next.

    Merged stretches have to agree when ``rejudge`` judges them on the probes and on data of their own. A difference
    that reaches an output, or that is followed by nothing but what is the same in both models, is one; but for what
    one model has rounded to the very steps that both round it to next.

    All are merged at once. Where that leaves a difference, they are one after the other: of a row that all differ,
    what makes up for the one before may have been merged with the one behind.
    """
    partners = dict(stretches.pairing.partners)
    found = _merged(stretches, judged, wrong, rejudge, constants, at_once=True)
    if not found[1] or len(wrong) < 2:
        return found
    for name, partner in partners.items():
        stretches.pairing.add(name, partner)
    stretches.take_apart(())
    return _merged(stretches, judged, wrong, rejudge, constants, at_once=False)


def _merged(
    stretches: Stretches,
    judged: list[Judged],
    wrong: list[Judged],
    rejudge: Rejudge,
    constants: tuple[Constants | None, Constants | None],
    *,
    at_once: bool,
) -> tuple[list[Judged], list[Judged]]:
    """Return what was judged and what is wrong of it, with wrong stretches merged with what follows.

    What is behind another one waits for it: it may be what makes up for that. If not ``at_once``, the first difference
    for certain is the last that is looked for.
    """
    view = stretches.sides[0].view
    pending = {each.stretch.name: each for each in wrong}
    merges = dict.fromkeys(pending, 0)
    certain: list[Judged] = []
    origin = {name: [each] for name, each in pending.items()}
    while pending and (at_once or not certain):
        names = sorted(pending, key=lambda name: view.producers[name].index)
        names = [name for name in (names if at_once else _first(view, names)) if merges[name] < MOST_MERGES]
        region, ends = _followed_by_others(stretches, constants, names, set(view.outputs))
        behind = view.dependent(region)
        lost = [name for name in pending if name not in region and name not in ends and name not in behind]
        certain += [each for name in lost for each in origin[name]]
        if not region:
            break
        stretches.take_apart(region)
        results = rejudge([stretches.stretch(name) for name in ends])
        judged = [each for each in judged if each.stretch.name not in {*region, *ends}] + results
        bad = {each.stretch.name: each for each in results if not each.difference.equivalent}
        found = {name: _origin(each, ends[name], origin) for name, each in bad.items()}
        merges |= {name: 1 + max(merges[each] for each in ends[name]) for name in bad}
        waiting = {name: each for name, each in pending.items() if name in behind and name not in {*region, *ends}}
        origin = found | {name: origin[name] for name in waiting}
        pending = bad | waiting
    if at_once or not certain:
        certain += [each for name in pending for each in origin[name]]
    unique = list({id(each): each for each in certain}.values())
    kept = [each for each in judged if each.difference.equivalent]
    return kept + unique, unique


def _first(view: GraphView, names: Iterable[str]) -> list[str]:
    """Return those of some names, in order, that are not computed from others of them."""
    found, behind = list[str](), set[str]()
    for name in names:
        if name not in behind:
            found.append(name)
            behind |= view.dependent([name])
    return found


def _origin(bad: Judged, followed: Sequence[str], origin: Mapping[str, list[Judged]]) -> list[Judged]:
    """Return where the difference of a merged stretch comes from: what it ``followed``, or that it is itself.

    Tensors that merely have another shape are made up for once the numbers behind them can be compared.
    """
    before = [each for name in (*followed, bad.stretch.name) for each in origin.get(name, ())]
    is_shape_alone = all(isinf(each.difference.max_abs_diff) for name in followed for each in origin[name])
    return [bad] if is_shape_alone and not isinf(bad.difference.max_abs_diff) else before


def _followed_by_others(
    stretches: Stretches, constants: tuple[Constants | None, Constants | None], names: Iterable[str], outputs: set[str]
) -> tuple[set[str], dict[str, list[str]]]:
    """Return the pairs to take apart, and the ends of the stretches that come to lie over them.

    With each end stand those of ``names`` that it follows.
    """
    every = {name: stretches.stretch(name) for name in stretches.ends()}
    readers: dict[str, list[str]] = {}
    for name, each in every.items():
        for above in each.above:
            readers.setdefault(above, []).append(name)
    region: set[str] = set()
    ends: dict[str, list[str]] = {}
    for name in names:
        if name in ends:  # judged again with what is above it
            continue
        mine, found, rest = {name}, dict[str, None](), [name]
        while rest:
            for below in readers.get(above := rest.pop(), ()):
                is_rounded = above == name and _is_rounded_again(stretches, constants, every[name], every[below])
                if is_rounded or not stretches.same_in_some_version(below):
                    found[below] = None
                elif below not in mine:
                    mine.add(below)
                    rest.append(below)
        if found and not mine & outputs:
            region |= mine
            for end in found:
                ends.setdefault(end, []).append(name)
    return region, {end: followed for end, followed in ends.items() if end not in region}


def _is_rounded_again(
    stretches: Stretches, constants: tuple[Constants | None, Constants | None], wrong: Stretch, below: Stretch
) -> bool:
    """Whether one model has rounded a tensor to the steps that ``below`` rounds it to, where once more is nothing."""
    tensors, rounding = (wrong.name, wrong.partner), (below.nodes[-1], below.candidate_nodes[-1])
    return any(
        are_steps_of(side.view, known, name, node)
        for side, known, name, node in zip(stretches.sides, constants, tensors, rounding, strict=True)
    )
