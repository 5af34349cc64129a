"""Proof by stretches: one mechanism for deciding, for forgiving and for locating.

Stretches that are the same node by node and weight by weight need no run. Every other one is fed the original's own
values above and compared below, whatever the outputs say, because an output may hide a difference. Rounding can't pile
up over a few operators, so the tolerance is tight; what goes beyond it is asked of the allowances, measured on the
original alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from padfix.proof.allowances import allowed_by, own_moves
from padfix.proof.cases import Cases
from padfix.proof.compare import Distance, compare, described, distance, is_real
from padfix.proof.constants import Constants
from padfix.proof.executors import Array, ExecutionFailed
from padfix.proof.merging import made_up_for
from padfix.proof.own_data import OwnData
from padfix.proof.probes import Probe, Ranges
from padfix.proof.rounding import farthest_slice, tolerance
from padfix.proof.stretches import Judged, NotATensorError, Outcome, Stretch, Stretches
from padfix.proof.sweep import sweep
from padfix.proof.wide_data import is_arithmetic
from padfix.results import OutputDifference


@dataclass
class _Observation:
    magnitude: float = 0.0
    living: bool = False
    worst: Distance = field(default_factory=lambda: Distance(0.0, 0.0, True))
    seen: list[tuple[int, bool, Distance]] = field(default_factory=list)
    types: tuple[np.dtype[np.generic], ...] = ()


REPEATED_PROBES = 2
"""Probes for a stretch that does what another one does, where all that differs is the versions of its operators."""


class StretchJudge:
    """Judges the stretches of two models.

    Args:
        stretches: The stretches.
        constants: The constants of both models, where they are ONNX.
        levels: Whether to optimise the candidate's parts, for each way to run them.
        rewritten: Whether every pair means the same for certain, and each rewrite was proven on its own data.
        rtol: The user's tolerances in place of rounding; see :func:`padfix.proof.compare.compare`.
        atol: Likewise.
        probes_only: Whether no other data than the probes' is to be used.
        ranges: What the data that is made for an input lies within, by its name in the original.
        progress: Told how much is left.
    """

    def __init__(
        self,
        stretches: Stretches,
        constants: tuple[Constants | None, Constants | None],
        *,
        levels: Sequence[bool] = (False,),
        rewritten: bool = False,
        rtol: float | None = None,
        atol: float | None = None,
        probes_only: bool = False,
        ranges: Ranges | None = None,
        progress: Callable[[str], None] = lambda words: None,
    ) -> None:
        self.stretches = stretches
        self.cases = Cases(stretches, constants, levels, ranges or {})
        self._rewritten = rewritten
        self._rtol, self._atol = rtol, atol
        self._probes_only = probes_only
        self._progress = progress

    def run(self, probes: Sequence[Probe]) -> Outcome:
        """Judge every stretch that is not the same in both models, on data that the original runs on.

        Raises:
            ExecutionFailed: The original can't be looked into at all.
        """
        while True:
            try:
                return self._run(probes)
            except NotATensorError as lost:
                known = [name for name in lost.names if name in self.stretches.pairing.partners]
                if not known:
                    raise ExecutionFailed("The tensors inside the original can't be looked at.") from None
                self.stretches.take_apart(known)

    def _run(self, probes: Sequence[Probe]) -> Outcome:
        every = self.stretches.ends()
        changed = [self.stretches.stretch(name) for name in every if not self.stretches.same(name)]
        outcome = Outcome(same=len(every) - len(changed))
        if not changed or not probes:
            return outcome
        if not self._rewritten:
            changed = self.stretches.learn_layouts(changed, probes[0])
        judged, unknown = self._judge_once_a_version(changed, probes)
        wrong = [each for each in judged if not each.difference.equivalent]
        if wrong and not self._rewritten:
            judged, wrong = made_up_for(
                self.stretches, judged, wrong, lambda merged: self.judge(merged, probes)[0], self.cases.constants
            )
        outcome.judged, outcome.wrong = self.in_order(judged), self.in_order(wrong)
        outcome.unknown = unknown
        return outcome

    def _judge_once_a_version(
        self, stretches: Sequence[Stretch], probes: Sequence[Probe]
    ) -> tuple[list[Judged], list[str]]:
        """Judge stretches; of those that do one thing in another version, the first on everything, the rest on less."""
        first: dict[Hashable, Stretch] = {}
        for each in stretches:
            change = self.stretches.version_change(each)
            first.setdefault(each.name if change is None else change, each)
        chosen = {each.name for each in first.values()}
        judged, unknown = self.judge([each for each in stretches if each.name in chosen], probes)
        rest = [each for each in stretches if each.name not in chosen]
        more, lost = self.judge(rest, probes[:REPEATED_PROBES], repeated=True) if rest else ([], [])
        return judged + more, unknown + lost

    def rerun(self, judged: Judged, probes: Sequence[Probe]) -> tuple[Array | None, Array | None]:
        """Return both arrays of a stretch on the probe that it was judged by; None where they can't be had again."""
        probe = next((each for each in probes if each.name == judged.data), None)
        if probe is None or judged.own:
            return None, None
        stretch = judged.stretch
        try:
            values = self.stretches.values(probe, (stretch.name, *stretch.above))
        except NotATensorError:
            return None, None
        found = self.stretches.candidate([stretch], probe.arrays, values, optimised=judged.optimised)[stretch.name]
        return values[stretch.name], None if isinstance(found, str) else found

    def beyond_rounding(self, judged: Iterable[Judged], probes: Sequence[Probe]) -> list[Judged]:
        """Return the stretches that differ somewhere by more than the rounding there, however small numbers are there.

        To be asked where outputs disagree and every stretch agrees: the tolerance of a stretch goes by its largest
        numbers, and what follows may enlarge the smallest ones. Only plain arithmetic is asked: a function is
        approximated to parts of its largest result.
        """
        found = []
        for each in judged:
            nodes = (*each.stretch.nodes, *each.stretch.candidate_nodes)
            if each.largest > 0 and not each.allowance and is_arithmetic(nodes):
                found += [wrong for probe in probes if (wrong := self._in_detail(each, probe)) is not None][:1]
        return self.in_order(found)

    def _in_detail(self, judged: Judged, probe: Probe) -> Judged | None:
        """Return the stretch as wrong where some slice of its tensor differs by more than its rounding on a probe."""
        stretch = judged.stretch
        values = self.stretches.values(probe, (stretch.name, *stretch.above))
        expected = values[stretch.name]
        found = self.stretches.candidate([stretch], probe.arrays, values, optimised=False)[stretch.name]
        if isinstance(found, str) or not is_real(expected.dtype) or not self.stretches.sides[0].can_be_fed:
            return None
        case = self.cases.case(stretch, probe.arrays, values, found, judged.difference.tolerance)
        apart, allowed = farthest_slice(self.cases.types_of(stretch, values), expected, found, 0.0, own_moves(case))
        if apart <= allowed:
            return None
        relative = apart / max(float(np.abs(expected).max()), apart)
        words = "in a part of the tensor where numbers are small; what follows enlarges it"
        difference = OutputDifference(stretch.name, apart, relative, allowed, False, words)
        return Judged(stretch, difference, probe.name)

    def in_order(self, judged: Iterable[Judged]) -> list[Judged]:
        producers = self.stretches.sides[0].view.producers
        return sorted(judged, key=lambda each: producers[each.stretch.name].index)

    def judge(
        self, stretches: Sequence[Stretch], probes: Sequence[Probe], *, repeated: bool = False
    ) -> tuple[list[Judged], list[str]]:
        """Return what was found of each stretch, and what nothing could judge.

        Args:
            stretches: What to judge.
            probes: Data that the original runs on.
            repeated: Whether the like of these was judged on data of its own, so that the probes are enough.
        """
        judged: list[Judged] = []
        unknown: list[str] = []
        done = 0
        for group in self.stretches.groups(stretches):
            self._progress(f"Proving stretches on the original's own values ({done} of {len(stretches)} done)")
            done += len(group)
            seen = self._observe(group, probes)
            found = [self._verdict(each, seen[each.name], probes) for each in group]
            judged += [self._without_copies(each, probes) for each in found]
            alive = {each.name for each in group if seen[each.name].living}
            right = {each.stretch.name for each in judged if each.difference.equivalent}
            loose = self._rtol is not None or self._atol is not None or self._probes_only or repeated
            if not loose and (not self._rewritten or len(alive) < len(group)):
                asked = [each for each in group if each.name in right and not (self._rewritten and each.name in alive)]
                wrong, reached = self._on_own_data(asked, _roomiest(probes))
                judged = [wrong.get(each.stretch.name, each) for each in judged]
                alive |= reached
            if not loose:
                right = {each.stretch.name for each in judged if each.difference.equivalent}
                swept = sweep(OwnData(self.cases), [each for each in group if each.name in right], probes[0])
                worse = {each.stretch.name: each for each in swept}
                judged = [worse.get(each.stretch.name, each) for each in judged]
            unknown += [each.name for each in group if each.name not in alive and each.name in right]
        return judged, unknown

    def _on_own_data(self, group: Sequence[Stretch], probe: Probe) -> tuple[dict[str, Judged], set[str]]:
        """Judge stretches on data of their own; those that had to be widened each alone, as their borders differ."""
        wider = {each.name: self.stretches.common_stretch(each.name) for each in group}
        plain = [each for each in group if wider[each.name] == each]
        alone = [[each] for before in group if (each := wider[before.name]) is not None and each != before]
        own = OwnData(self.cases)
        found, reached = dict[str, Judged](), set[str]()
        for some in [plain, *alone]:
            wrong, living = own.judge(some, probe)
            found |= {name: each for name, each in wrong.items() if self._is_confirmed(own, each, probe)}
            reached |= living
        return found, reached

    def _without_copies(self, judged: Judged, probes: Sequence[Probe]) -> Judged:
        """Judge a stretch that differs once more where nothing that it is fed is computed in it again.

        What is fed bears the original's rounding, the copy the candidate's, and their difference may be all there is.
        """
        if judged.difference.equivalent or not self._may_repeat(judged.stretch):
            return judged
        free = self.stretches.common_stretch(judged.stretch.name, independent=True)
        if free is None or free.above == judged.stretch.above:
            return judged
        self.cases.types.pop(free.name, None)
        again = self._verdict(free, self._observe([free], probes)[free.name], probes)
        return again if again.difference.equivalent else judged

    def _is_confirmed(self, own: OwnData, judged: Judged, probe: Probe) -> bool:
        """Whether a stretch differs as well where nothing that it is fed contradicts another part of it."""
        if not self._may_repeat(judged.stretch):
            return True
        free = self.stretches.common_stretch(judged.stretch.name, independent=True)
        if free is None or free.above == judged.stretch.above:
            return True
        wrong, living = own.judge([free], probe)
        return bool(wrong) or not living

    def _may_repeat(self, stretch: Stretch) -> bool:
        """Whether one of the models may compute in the stretch once more what it is fed."""
        first, second = (side.view.producers for side in self.stretches.sides)
        return any(
            {node.op_type for node in nodes} & {producers[name].op_type for name in fed if name in producers}
            for producers, nodes, fed in (
                (first, stretch.nodes, stretch.above.keys()),
                (second, stretch.candidate_nodes, stretch.above.values()),
            )
        )

    def _observe(self, group: Sequence[Stretch], probes: Sequence[Probe]) -> dict[str, _Observation]:
        seen = {each.name: _Observation() for each in group}
        for number, probe in enumerate(probes):
            values = self.stretches.values(probe, [name for each in group for name in (each.name, *each.above)])
            for optimised in self.cases.levels:
                found = self.stretches.candidate(group, probe.arrays, values, optimised=optimised)
                for each in group:
                    self._note(each, seen[each.name], values, found[each.name], number, optimised)
        return seen

    def _note(
        self,
        stretch: Stretch,
        seen: _Observation,
        values: Mapping[str, Array],
        found: Array | str,
        number: int,
        optimised: bool,
    ) -> None:
        expected = values[stretch.name]
        refused = isinstance(found, str)
        apart = Distance(float("inf"), 0.0, False, str(found)) if refused else distance(expected, cast(Array, found))
        if apart.is_float and np.isfinite(apart.largest):
            seen.living |= bool(expected.size)
            seen.magnitude = max(seen.magnitude, apart.magnitude)
        elif is_real(expected.dtype):
            finite = np.isfinite(expected)
            seen.living |= bool(finite.any())
            seen.magnitude = max(
                seen.magnitude, float(np.abs(expected, where=finite, out=np.zeros_like(expected)).max(initial=0))
            )
        else:
            seen.living |= bool(expected.size)
            seen.magnitude = max(seen.magnitude, apart.magnitude)
        seen.types = self.cases.types_of(stretch, values)
        self.cases.magnitudes[stretch.name] = seen.magnitude
        if apart.largest > 0:
            seen.seen.append((number, optimised, apart))
        if apart.largest > seen.worst.largest or apart.detail:
            seen.worst = apart

    def _verdict(self, stretch: Stretch, seen: _Observation, probes: Sequence[Probe]) -> Judged:
        """Return whether rounding, or one of the allowances, explains all that was seen of a stretch."""
        allowed = tolerance(seen.types, seen.magnitude) if seen.worst.is_float else 0.0
        plain = max((apart.largest for _, optimised, apart in seen.seen if not optimised), default=0.0)
        best: Judged | None = None
        for number, optimised, apart in sorted(seen.seen, key=lambda each: -each[2].largest):
            probe = probes[number]
            judged = self._explained(stretch, seen, probe, optimised, apart, allowed)
            if not judged.difference.equivalent:
                return judged
            if best is None or judged.difference.share >= best.difference.share or judged.allowance:
                best = judged
        best = best or Judged(stretch, described(stretch.name, seen.worst, allowed), probes[0].name)
        best.unoptimised = plain
        best.largest = max((apart.largest for _, _, apart in seen.seen), default=0.0)
        return best

    def _explained(
        self, stretch: Stretch, seen: _Observation, probe: Probe, optimised: bool, apart: Distance, allowed: float
    ) -> Judged:
        if self._rtol is None and self._atol is None and apart.largest <= allowed and not apart.detail:
            return Judged(stretch, described(stretch.name, apart, allowed), probe.name, optimised)
        values = self.stretches.values(probe, (stretch.name, *stretch.above))
        found = self.stretches.candidate([stretch], probe.arrays, values, optimised=optimised)[stretch.name]
        if isinstance(found, str):
            return Judged(stretch, described(stretch.name, apart, allowed), probe.name, optimised)
        expected = values[stretch.name]
        if self._rtol is not None or self._atol is not None:
            difference = compare(
                stretch.name, expected, found, rtol=self._rtol, atol=self._atol, input_types=seen.types
            )
            return Judged(stretch, difference, probe.name, optimised)
        case = self.cases.case(stretch, probe.arrays, values, found, seen.magnitude)
        more = allowed_by(case)
        if more is not None:
            difference = described(stretch.name, apart, max(allowed, more[1]))
            return Judged(stretch, difference, probe.name, optimised, more[0].name)
        return Judged(stretch, described(stretch.name, apart, allowed, expected, found), probe.name, optimised)


def _roomiest(probes: Sequence[Probe]) -> Probe:
    """Return the first probe with the fewest axes of one element, along which no order shows, and no copy."""
    return min(probes, key=lambda probe: sum(shape.count(1) for shape in probe.shapes.values()))
