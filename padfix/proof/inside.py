"""Tensors inside two models whose outputs agree: an output may hide a difference.

A network that nobody trained gives one number whatever it is fed, and a branch with a small gain is lost in the
tolerance of a sum. Tensors that bear one name in both models and are not computed by the same nodes from the same
weights are compared one by one, each in its own tolerance.

A tensor may differ and the models still be equal: optimisers move factors from one weight to the next. So a difference
counts unless a later tensor, computed from a differing one by other weights or other operators, agrees again. A weight
that differs without any tensor showing it (one sign among ten thousand) is a difference all the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from padfix.proof.executors import Array
from padfix.proof.inner_tensors import Exposable
from padfix.proof.locate import WIDTH, Search
from padfix.proof.stretches import Likeness, other_weights
from padfix.results import FirstDifference, OutputDifference

MOST_BYTES = 200_000_000
"""Size of the tensors of one model that are looked at in one run."""

MOST_RUNS = 40
"""Runs of each model after which no more tensors are looked at."""


@dataclass(frozen=True)
class Inside:
    """What was found inside.

    Attributes:
        place: Where the models part; None where nothing was found.
        compared: How many tensors were looked at.
        alike: How many others are computed by the same nodes and weights in both, so that looking was not needed.
    """

    place: FirstDifference | None
    compared: int
    alike: int


def compare_inside(
    reference: Exposable,
    candidate: Exposable,
    feeds: tuple[Mapping[str, Array], Mapping[str, Array]],
    inputs: Mapping[str, str],
    *,
    rewritten: bool = False,
    quantized: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    types: Sequence[np.dtype[np.generic]] = (),
) -> Inside:
    """Compare the tensors that two models whose outputs agree compute in different ways.

    Args:
        reference: The original.
        candidate: The result.
        feeds: The inputs of each.
        inputs: The candidate's name for each input of the reference.
        rewritten: Whether every shared name must mean the same; nothing can make up for a difference then.
        quantized: Whether the models round to steps; rounding may take place before or after another operator there, so
            only tensors that are wired alike are compared.
        rtol: As for :func:`padfix.proof.compare.compare`, as are ``atol`` and ``types``. Where one is given, weights
            that no tensor shows are not held against the candidate.
        atol: See ``rtol``.
        types: See ``rtol``.

    Raises:
        ExecutionFailed: The original can't be run.
    """
    search = Search(reference, candidate, feeds, rtol, atol, tuple(types), inputs, strict=rewritten)
    search.pair_by_name()
    sweep = _Sweep(search, wired_alike=quantized and not rewritten, trusted=rewritten)
    place = sweep.run(rewritten=rewritten)
    if place is None and not rewritten and rtol is None and atol is None:
        place = sweep.hidden_weight()
    return Inside(place, len(search.seen), sweep.alike)


class _Sweep:
    def __init__(self, search: Search, *, wired_alike: bool, trusted: bool) -> None:
        self.search = search
        self.stretches = search.stretches
        self.stretches.trusted = trusted
        # Nothing is known of sizes yet: 64 channels at half the size are five times three channels.
        self.first = max(WIDTH, MOST_BYTES // max(1, 5 * sum(array.nbytes for array in search.feeds[0].values())))
        self.likeness: dict[str, Likeness] = {}
        self.alike = 0
        for name in search.order(search.others):
            found = self.stretches.likeness(name)
            if found.same:
                self.alike += 1
            elif found.spelled or found.weights or not wired_alike:
                self.likeness[name] = found

    def run(self, *, rewritten: bool) -> FirstDifference | None:
        search = self.search
        outputs = {value.name for value in search.sides[0].model.proto.graph.output}
        rest = [name for name in self.likeness if name not in outputs]
        count = min(8 * WIDTH, self.first)
        while rest and search.runs < MOST_RUNS:
            chosen, rest = rest[:count], rest[count:]
            search.look(chosen)
            for name in chosen:
                if not search.agrees(name) and (rewritten or not self._is_made_up_for(name)):
                    return search.climb(name)
            count = max(1, min(8 * WIDTH, MOST_BYTES // max(search.largest, 1)))
        return None

    def _is_made_up_for(self, wrong: str) -> bool:
        """Whether a tensor that is computed from a wrong one by other means agrees again."""
        search = self.search
        below = search.downstream(wrong)
        for name in [each for each in self.likeness if each in below]:
            if self.likeness[name].spelled:
                continue  # Another spelling of one function makes up for nothing.
            if self._agrees_above(name) is False and name in search.seen and search.agrees(name):
                return True
        return False

    def _agrees_above(self, name: str) -> bool | None:
        """Look at a tensor and at those that it is computed from; return whether the latter agree."""
        search = self.search
        if name not in search.others:
            return None
        above = search.near(name)
        search.look([name, *sorted(above)])
        return all(search.agrees(each) for each in above)

    def hidden_weight(self) -> FirstDifference | None:
        """Return the first tensor whose weights differ though its numbers don't show it."""
        search = self.search
        for name, likeness in self.likeness.items():
            for pair in likeness.weights:
                old, new = self.stretches.constant_pair(pair)
                if old is None or new is None:
                    continue
                found = other_weights(old, new)
                if found is None or not self._agrees_above(name):
                    continue  # What comes in differs as well: a factor was moved from one weight to the next.
                seen = search.seen.get(name)
                if seen is None or not seen.equivalent:
                    continue
                detail = (
                    f"{found[0]} of {old.size} weights of {pair[0]!r} differ, the first at {list(found[1])}; "
                    "the probes don't show it"
                )
                difference: OutputDifference = dataclasses.replace(seen, equivalent=False, detail=detail)
                search.seen[name] = difference
                return search.describe(name, complete=True)
        return None
