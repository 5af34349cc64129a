"""Proof by stretches: one mechanism for deciding, for forgiving and for locating.

A *stretch* is what lies between a tensor and the nearest tensors above it that both models have. Stretches that are
the same node by node and weight by weight need no run. Every other one is fed the original's own values above and
compared below, whatever the outputs say, because an output may hide a difference. Rounding can't pile up over a few
operators, so the tolerance is tight; what goes beyond it is asked of the allowances, measured on the original alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from padfix.proof.allowances import ALLOWANCES, Case, own_move
from padfix.proof.compare import Distance, compare, described, distance, is_float
from padfix.proof.constants import Constants
from padfix.proof.executors import Array, ExecutionFailed
from padfix.proof.feeding import Feeding
from padfix.proof.graph_view import NodeView
from padfix.proof.layouts import Layouts
from padfix.proof.likeness import Likeness
from padfix.proof.pairing import Pairing
from padfix.proof.probes import Probe
from padfix.proof.rounding import tolerance
from padfix.proof.sides import Side
from padfix.proof.wide_data import largest_limit, wide_data
from padfix.results import OutputDifference

MOST_BYTES = 256_000_000
"""Size of the tensors of one model that are looked at in one run."""

FIRST_LOOK = 24
"""Tensors of the first run, before anything is known of their sizes."""

MOST_MERGES = 3
"""How often a stretch is merged with what follows it before the difference is taken to be real."""

_CASTS: dict[int, np.dtype[np.generic]] = {1: np.dtype(np.float32), 10: np.dtype(np.float16), 11: np.dtype(np.float64)}


@dataclass(frozen=True)
class Stretch:
    """What computes one paired tensor from the nearest paired tensors above it.

    Attributes:
        name: The tensor's name in the original.
        partner: Its name in the candidate.
        above: The paired tensors that either model computes it from, inputs included: the candidate's name for each.
        nodes: The original's nodes between them.
        candidate_nodes: The candidate's.
    """

    name: str
    partner: str
    above: Mapping[str, str]
    nodes: tuple[NodeView, ...]
    candidate_nodes: tuple[NodeView, ...]


@dataclass
class Judged:
    """What was found of one stretch.

    Attributes:
        stretch: The stretch.
        difference: How far the candidate's tensor is at most, beside what is allowed.
        data: The probe, or the words for the data, that showed it.
        optimised: Whether it was seen with all optimisations only.
        allowance: Name of the allowance that it is within; empty where rounding explains it.
        own: Whether the data was made for the stretch: no probe brought it there.
    """

    stretch: Stretch
    difference: OutputDifference
    data: str
    optimised: bool = False
    allowance: str = ""
    own: bool = False


@dataclass
class Outcome:
    """What the proof by stretches says.

    Attributes:
        same: Number of stretches that are the same in both models.
        judged: Every other one that was compared.
        wrong: Those that disagree, in the order of the original's nodes.
        unknown: Names of tensors whose stretch no data could judge.
    """

    same: int = 0
    judged: list[Judged] = field(default_factory=list)
    wrong: list[Judged] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


@dataclass
class _Observation:
    magnitude: float = 0.0
    living: bool = False
    worst: Distance = field(default_factory=lambda: Distance(0.0, 0.0, True))
    seen: list[tuple[int, bool, Distance]] = field(default_factory=list)
    types: tuple[np.dtype[np.generic], ...] = ()


class _NotATensorError(Exception):
    """Some names hold sequences or maps, or the original can't be asked for them."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.names = list(names)


class Stretches:
    """The stretches of two models.

    Args:
        sides: The original and the candidate.
        pairing: Which tensor is which; taken apart where a pair turns out to be none.
        likeness: Compares the graphs, where both are ONNX.
        constants: The constants of both, likewise.
        feeding: Makes the candidate's inputs of the original's.
        levels: Whether to optimise the candidate's parts, for each way to run them.
        rewritten: Whether every pair means the same for certain, and each rewrite was proven on its own data.
        rtol: The user's tolerances in place of rounding; see :func:`padfix.proof.compare.compare`.
        atol: Likewise.
        probes_only: Whether no other data than the probes' is to be used.
        progress: Told how much is left.
    """

    def __init__(
        self,
        sides: tuple[Side, Side],
        pairing: Pairing,
        likeness: Likeness | None,
        constants: tuple[Constants | None, Constants | None],
        feeding: Feeding,
        *,
        levels: Sequence[bool] = (False,),
        rewritten: bool = False,
        rtol: float | None = None,
        atol: float | None = None,
        probes_only: bool = False,
        progress: Callable[[str], None] = lambda words: None,
    ) -> None:
        self.sides = sides
        self.pairing = pairing
        self.layouts = Layouts()
        self._likeness = likeness
        self._constants = constants
        self._feeding = feeding
        self._levels = levels
        self._rewritten = rewritten
        self._rtol, self._atol = rtol, atol
        self._probes_only = probes_only
        self._progress = progress
        self._bytes: dict[str, int] = {}
        self._types: dict[str, tuple[np.dtype[np.generic], ...]] = {}

    def run(self, probes: Sequence[Probe]) -> Outcome:
        """Judge every stretch that is not the same in both models.

        Args:
            probes: Data that the original runs on.

        Raises:
            ExecutionFailed: The original can't be looked into at all.
        """
        while True:
            try:
                return self._run(probes)
            except _NotATensorError as lost:
                known = [name for name in lost.names if name in self.pairing.partners]
                if not known:
                    raise ExecutionFailed("The tensors inside the original can't be looked at.") from None
                self._take_apart(known)

    def _run(self, probes: Sequence[Probe]) -> Outcome:
        every = self.ends()
        changed = [self.stretch(name) for name in every if not self._same(name)]
        outcome = Outcome(same=len(every) - len(changed))
        if not changed or not probes:
            return outcome
        if not self._rewritten:
            changed = self._learn_layouts(changed, probes[0])
        judged, unknown = self._judge(changed, probes)
        wrong = [each for each in judged if not each.difference.equivalent]
        if wrong and not self._rewritten:
            judged, wrong = self._made_up_for(judged, wrong, probes)
        outcome.judged, outcome.wrong, outcome.unknown = judged, self._in_order(wrong), unknown
        return outcome

    def rerun(self, judged: Judged, probes: Sequence[Probe]) -> tuple[Array | None, Array | None]:
        """Return both arrays of a stretch on the probe that it was judged by; None where they can't be had again."""
        probe = next((each for each in probes if each.name == judged.data), None)
        if probe is None or judged.own:
            return None, None
        stretch = judged.stretch
        try:
            values = self.values(probe, (stretch.name, *stretch.above))
        except _NotATensorError:
            return None, None
        found = self._candidate([stretch], probe.arrays, values, optimised=judged.optimised)[stretch.name]
        return values[stretch.name], None if isinstance(found, str) else found

    def translate(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return the original's inputs as the candidate takes them."""
        return self._feeding.of_candidate(0, arrays)

    def ends(self) -> list[str]:
        """Return the paired tensors that both compute, and that some output depends on, in the original's order."""
        first, second = (side.view for side in self.sides)
        found = [
            name
            for name, other in self.pairing.partners.items()
            if name in first.producers and other in second.producers and name in first.live and other in second.live
        ]
        return sorted(found, key=lambda name: first.producers[name].index)

    def stretch(self, name: str) -> Stretch:
        """Return the stretch that ends with a paired tensor."""
        first, second = (side.view for side in self.sides)
        partner = self.pairing.partners[name]
        above, nodes = first.stretch(name, self.pairing.partners)
        beyond, others = second.stretch(partner, self.pairing.back)
        names = {each: self.pairing.partners[each] for each in above}
        names |= {self.pairing.back[each]: each for each in beyond}
        return Stretch(name, partner, names, tuple(nodes), tuple(others))

    def _take_apart(self, names: Iterable[str]) -> None:
        for name in names:
            self.pairing.remove(name)
        if self._likeness is not None:
            self._likeness.forget()

    def _same(self, name: str) -> bool:
        return self._likeness is not None and self._likeness.same(name, self.pairing.partners[name])

    def _in_order(self, judged: Iterable[Judged]) -> list[Judged]:
        producers = self.sides[0].view.producers
        return sorted(judged, key=lambda each: producers[each.stretch.name].index)

    def values(self, probe: Probe, names: Iterable[str]) -> dict[str, Array]:
        """Return tensors of the original on a probe; inputs too.

        Raises:
            _NotATensorError: Some of them are no tensors, or the original can't be asked for them.
        """
        wanted = [name for name in dict.fromkeys(names) if name not in probe.arrays]
        found = dict(probe.arrays)
        try:
            found.update(self.sides[0].values(probe.arrays, wanted) if wanted else {})
        except ExecutionFailed:
            found.update(self._one_by_one(probe, wanted))
        lost = [name for name in wanted if name not in found]
        if lost:
            raise _NotATensorError(lost)
        self._bytes.update((name, found[name].nbytes) for name in wanted)
        return found

    def _one_by_one(self, probe: Probe, names: Sequence[str]) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for name in names:
            try:
                found.update(self.sides[0].values(probe.arrays, [name]))
            except ExecutionFailed:
                continue
        return found

    def _groups(self, stretches: Sequence[Stretch]) -> Iterator[list[Stretch]]:
        """Yield stretches that can be looked at in one run, as many as memory should hold."""
        rest = list(stretches)
        while rest:
            known = [self._bytes[each.name] for each in stretches if each.name in self._bytes]
            usual = max(1, sum(known) // len(known)) if known else 0
            budget, group = MOST_BYTES, list[Stretch]()
            while rest and (not group or (budget > 0 and (known or len(group) < FIRST_LOOK))):
                group.append(rest.pop(0))
                budget -= sum(self._bytes.get(name, usual) for name in (group[-1].name, *group[-1].above))
            yield group

    def _learn_layouts(self, changed: Sequence[Stretch], probe: Probe) -> list[Stretch]:
        """Find how the axes of the tensors in question correspond, and take apart pairs that can't be one tensor."""
        lost: set[str] = set()
        for group in self._groups(changed):
            names = {each.name for each in group} | {name for each in group for name in each.above}
            names = {name for name in names if name in self.sides[0].view.producers}
            ours = self.values(probe, names)
            partners = [self.pairing.partners[name] for name in names]
            try:
                theirs = self.sides[1].values(self.translate(probe.arrays), partners)
            except ExecutionFailed:
                continue  # what can't be run so far is judged part by part
            for name in names:
                other = theirs.get(self.pairing.partners[name])
                if other is None:
                    continue
                # An optimiser writes another type under the old name: no difference yet, but no pair either.
                if other.dtype != ours[name].dtype or (
                    not self.layouts.learn(name, ours[name], other) and not self._like_producers(name)
                ):
                    lost.add(name)
        lost -= set(self.sides[0].view.outputs)
        self._take_apart(lost)
        return [self.stretch(name) for name in self.ends() if not self._same(name)] if lost else list(changed)

    def _like_producers(self, name: str) -> bool:
        """Whether two ONNX nodes of one operator compute a pair: another shape is a difference then, and no layout."""
        first, second = (side.view.producers for side in self.sides)
        partner = self.pairing.partners[name]
        return self._likeness is not None and first[name].op_type == second[partner].op_type

    def _judge(self, stretches: Sequence[Stretch], probes: Sequence[Probe]) -> tuple[list[Judged], list[str]]:
        """Return what was found of each stretch on the probes and on data of its own, and what nothing could judge."""
        judged: list[Judged] = []
        unknown: list[str] = []
        left = len(stretches)
        for group in self._groups(stretches):
            self._progress(f"Proving {left} stretches on the original's own values")
            left -= len(group)
            seen = self._observe(group, probes)
            judged.extend(self._verdict(each, seen[each.name], probes) for each in group)
            alive = [each for each in group if seen[each.name].living]
            right = {each.stretch.name for each in judged if each.difference.equivalent}
            loose = self._rtol is not None or self._atol is not None
            if not self._probes_only and not loose and (not self._rewritten or len(alive) < len(group)):
                asked = [each for each in group if each.name in right and not (self._rewritten and each in alive)]
                found, reached = self._on_wide_data(asked, seen, probes[0])
                judged = [found.get(each.stretch.name, each) for each in judged]
                alive += [each for each in asked if each.name in reached]
            unknown += [each.name for each in group if each not in alive and each.name in right]
        return judged, unknown

    def _observe(self, group: Sequence[Stretch], probes: Sequence[Probe]) -> dict[str, _Observation]:
        seen = {each.name: _Observation() for each in group}
        for number, probe in enumerate(probes):
            values = self.values(probe, [name for each in group for name in (each.name, *each.above)])
            for optimised in self._levels:
                found = self._candidate(group, probe.arrays, values, optimised=optimised)
                for each in group:
                    self._note(each, seen[each.name], values, found[each.name], number, optimised)
        return seen

    def _candidate(
        self, group: Sequence[Stretch], feeds: Mapping[str, Array], values: Mapping[str, Array], *, optimised: bool
    ) -> dict[str, Array | str]:
        """Return what the candidate's stretches give for the original's values; a sentence where they can't be run."""
        above = {name: partner for each in group for name, partner in each.above.items() if name not in feeds}
        inner = {partner: self.layouts.to_candidate(name, values[name]) for name, partner in above.items()}
        names = [each.partner for each in group]
        try:
            found = self.sides[1].fed(self.translate(feeds), inner, names, optimised=optimised)
        except ExecutionFailed as failure:
            if len(group) == 1:
                return {group[0].name: f"the result can't be run to here: {failure.message}"}
            alone = [self._candidate([each], feeds, values, optimised=optimised) for each in group]
            return dict(itertools.chain.from_iterable(each.items() for each in alone))
        return {
            each.name: self.layouts.to_reference(each.name, found[each.partner])
            if each.partner in found
            else "the result gives no such tensor"
            for each in group
        }

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
        if expected.dtype.kind == "f":
            finite = np.isfinite(expected)
            seen.living |= bool(finite.any())
            seen.magnitude = max(
                seen.magnitude, float(np.abs(expected, where=finite, out=np.zeros_like(expected)).max(initial=0))
            )
        else:
            seen.living |= bool(expected.size)
            seen.magnitude = max(seen.magnitude, apart.magnitude)
        seen.types = self._types_of(stretch, values)
        if apart.largest > 0:
            seen.seen.append((number, optimised, apart))
        if apart.largest > seen.worst.largest or apart.detail:
            seen.worst = apart

    def _types_of(self, stretch: Stretch, values: Mapping[str, Array]) -> tuple[np.dtype[np.generic], ...]:
        """Return what the original computes a stretch in: the types that come in, go out, and are cast to between."""
        if stretch.name not in self._types:
            types: set[np.dtype[np.generic]] = {values[name].dtype for name in (stretch.name, *stretch.above)}
            for node in stretch.nodes:
                if node.proto is not None and node.op_type == "Cast":
                    target = next((each.i for each in node.proto.attribute if each.name == "to"), 0)
                    types |= {known for number, known in _CASTS.items() if number == target}
            self._types[stretch.name] = tuple(types)
        return self._types[stretch.name]

    def _verdict(self, stretch: Stretch, seen: _Observation, probes: Sequence[Probe]) -> Judged:
        """Return whether rounding, or one of the allowances, explains all that was seen of a stretch."""
        allowed = tolerance(seen.types, seen.magnitude) if seen.worst.is_float else 0.0
        best: Judged | None = None
        for number, optimised, apart in sorted(seen.seen, key=lambda each: -each[2].largest):
            probe = probes[number]
            judged = self._explained(stretch, seen, probe, optimised, apart, allowed)
            if not judged.difference.equivalent:
                return judged
            if best is None or judged.difference.share >= best.difference.share or judged.allowance:
                best = judged
        return best or Judged(stretch, described(stretch.name, seen.worst, allowed), probes[0].name)

    def _explained(
        self, stretch: Stretch, seen: _Observation, probe: Probe, optimised: bool, apart: Distance, allowed: float
    ) -> Judged:
        if self._rtol is None and self._atol is None and apart.largest <= allowed and not apart.detail:
            return Judged(stretch, described(stretch.name, apart, allowed), probe.name, optimised)
        values = self.values(probe, (stretch.name, *stretch.above))
        found = self._candidate([stretch], probe.arrays, values, optimised=optimised)[stretch.name]
        if isinstance(found, str):
            return Judged(stretch, described(stretch.name, apart, allowed), probe.name, optimised)
        expected = values[stretch.name]
        if self._rtol is not None or self._atol is not None:
            difference = compare(
                stretch.name, expected, found, rtol=self._rtol, atol=self._atol, input_types=seen.types
            )
            return Judged(stretch, difference, probe.name, optimised)
        case = self._case(stretch, probe.arrays, values, found, seen.magnitude)
        for allowance in ALLOWANCES:
            more = allowance.allows(case)
            if more is not None:
                difference = described(stretch.name, apart, max(allowed, more))
                return Judged(stretch, difference, probe.name, optimised, allowance.name)
        return Judged(stretch, described(stretch.name, apart, allowed, expected, found), probe.name, optimised)

    def _case(
        self,
        stretch: Stretch,
        feeds: Mapping[str, Array],
        values: Mapping[str, Array],
        found: Array,
        magnitude: float,
    ) -> Case:
        inner = {name: values[name] for name in stretch.above if name not in feeds}
        types = self._types[stretch.name]
        return Case(
            self.sides[0], feeds, inner, stretch.name, stretch.nodes, values[stretch.name], found, magnitude, types
        )

    def _on_wide_data(
        self, group: Sequence[Stretch], seen: Mapping[str, _Observation], probe: Probe
    ) -> tuple[dict[str, Judged], set[str]]:
        """Judge stretches on data that no probe brings; return those that differ, and those that said something."""
        wrong: dict[str, Judged] = {}
        living: set[str] = set()
        if not group or not self.sides[0].can_be_fed:
            return wrong, living
        nodes = {node.index: node for each in group for node in each.nodes}.values()
        others = {node.index: node for each in group for node in each.candidate_nodes}.values()
        limit = max(largest_limit(nodes, self._constants[0]), largest_limit(others, self._constants[1]))
        values = self.values(probe, {name for each in group for name in each.above})
        for words, data in wide_data(values, limit):
            shared = self._feeding.common(Probe(words, {**probe.arrays, **data})).arrays
            feeds = {name: shared[name] for name in probe.arrays}
            inner = {name: array for name, array in data.items() if name not in feeds}
            expected = self._original(group, feeds, inner)
            asked = [each for each in group if each.name in expected and each.name not in wrong]
            found = self._candidate(asked, feeds, data, optimised=False) if asked else {}
            for each in asked:
                result = found[each.name]
                if isinstance(result, str):
                    continue  # what is no index any more, say: such data never comes
                judged = self._on_own_data(each, feeds, {**data, each.name: expected[each.name]}, result, words)
                living |= {each.name} if np.isfinite(_floats(expected[each.name])).any() else set()
                if judged is not None:
                    wrong[each.name] = judged
        return wrong, living

    def _original(
        self, group: Sequence[Stretch], feeds: Mapping[str, Array], inner: Mapping[str, Array]
    ) -> dict[str, Array]:
        try:
            return self.sides[0].fed(feeds, inner, [each.name for each in group])
        except ExecutionFailed:
            if len(group) == 1:
                return {}
            return {name: array for each in group for name, array in self._original([each], feeds, inner).items()}

    def _on_own_data(
        self,
        stretch: Stretch,
        feeds: Mapping[str, Array],
        values: Mapping[str, Array],
        found: Array,
        words: str,
    ) -> Judged | None:
        """Return the stretch as wrong where data of its own shows more than rounding, and more than its own moves."""
        expected = values[stretch.name]
        if not is_float(expected.dtype) or expected.shape != found.shape:
            return (
                None if expected.shape == found.shape else self._shown(stretch, distance(expected, found), 0.0, words)
            )
        usual = np.isfinite(_floats(expected)) & np.isfinite(_floats(found))
        if not usual.any():
            return None
        first, second = expected[usual], found[usual]
        apart = distance(first, second)
        allowed = tolerance(self._types[stretch.name], apart.magnitude)
        if apart.largest <= allowed:
            return None
        case = self._case(stretch, feeds, values, found, apart.magnitude)
        # However much the original itself moves here: ill-conditioned data tells nothing.
        if apart.largest <= 16 * own_move(case) or any(each.allows(case) is not None for each in ALLOWANCES):
            return None
        return self._shown(stretch, apart, allowed, words)

    def _shown(self, stretch: Stretch, apart: Distance, allowed: float, words: str) -> Judged:
        difference = described(stretch.name, apart, allowed)
        detail = f"on {words} data made for these operators, which no probe brought there"
        difference = OutputDifference(
            stretch.name, difference.max_abs_diff, difference.max_rel_diff, allowed, False, difference.detail or detail
        )
        return Judged(stretch, difference, f"{words} data of its own", own=True)

    def _made_up_for(
        self, judged: list[Judged], wrong: list[Judged], probes: Sequence[Probe]
    ) -> tuple[list[Judged], list[Judged]]:
        """Merge wrong stretches with what follows them: an optimiser may move a factor from one weight to the next.

        Merged stretches have to agree on the probes and on data of their own. A difference that reaches an output, or
        that is followed by nothing but what is the same in both models, is one.
        """
        pending = {each.stretch.name: each for each in wrong if not each.own}
        certain = [each for each in wrong if each.own]
        origin = {name: [each] for name, each in pending.items()}
        outputs = set(self.sides[0].view.outputs)
        for _ in range(MOST_MERGES):
            if not pending:
                break
            region, ends = self._followed_by_others(pending, outputs)
            lost = [name for name in pending if name not in region and name not in ends]
            certain += [each for name in lost for each in origin[name]]
            if not region:
                break
            self._take_apart(region)
            merged = [self.stretch(name) for name in ends]
            results, _ = self._judge(merged, probes)
            judged = [each for each in judged if each.stretch.name not in {*region, *ends}] + results
            sources = [each for name in pending if name in region for each in origin[name]]
            bad = [each for each in results if not each.difference.equivalent]
            origin = {each.stretch.name: sources for each in bad}
            pending = {each.stretch.name: each for each in bad}
        certain += [each for name in pending for each in origin[name]]
        unique = list({id(each): each for each in certain}.values())
        kept = [each for each in judged if each.difference.equivalent]
        return kept + unique, unique

    def _followed_by_others(self, names: Iterable[str], outputs: set[str]) -> tuple[set[str], list[str]]:
        """Return the pairs to take apart and the ends of the stretches that come to lie over them."""
        every = {name: self.stretch(name) for name in self.ends()}
        readers: dict[str, list[str]] = {}
        for name, each in every.items():
            for above in each.above:
                readers.setdefault(above, []).append(name)
        region: set[str] = set()
        ends: dict[str, None] = {}
        for name in names:
            if name in ends:  # judged again with what is above it
                continue
            mine, found, rest = {name}, dict[str, None](), [name]
            while rest:
                for below in readers.get(rest.pop(), ()):
                    if not self._same(below):
                        found[below] = None
                    elif below not in mine:
                        mine.add(below)
                        rest.append(below)
            if found and not mine & outputs:
                region |= mine
                ends.update(found)
        return region, [name for name in ends if name not in region]


def _floats(array: Array) -> Array:
    return array if array.dtype.kind in "fc" else array.astype(np.float64)
