"""The stretches of two models: what lies between a tensor and the nearest tensors above it that both models have."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from onnx import GraphProto

from padfix.proof.executors import Array, ExecutionFailed
from padfix.proof.feeding import Feeding
from padfix.proof.graph_view import Border, NodeView
from padfix.proof.likeness import Likeness
from padfix.proof.matching import Layouts
from padfix.proof.pairing import MOST_WIDENINGS, Pairing
from padfix.proof.probes import Probe
from padfix.proof.sides import Side
from padfix.results import OutputDifference

MOST_BYTES = 256_000_000
"""Size of the tensors of one model that are looked at in one run."""

FIRST_LOOK = 24
"""Tensors of the first run, before anything is known of their sizes."""


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

    def twin(self, node: NodeView, position: int) -> NodeView | None:
        """Return the candidate's operator of the kind of ``node`` whose input at ``position`` is the same."""
        partner = self.above[node.inputs[position]]
        return next(
            (
                each
                for each in self.candidate_nodes
                if each.op_type == node.op_type and each.inputs[position : position + 1] == (partner,)
            ),
            None,
        )


@dataclass
class Judged:
    """What was found of one stretch.

    Attributes:
        stretch: The stretch.
        difference: How far the candidate's tensor is at most, beside what is allowed.
        data: The probe, or the words for the data, that showed it.
        optimised: Whether it was seen with all optimisations only.
        allowance: Name of the allowance that it is within; empty where rounding explains it.
        unoptimised: The largest difference on the probes without optimisations.
        own: Whether the data was made for the stretch: no probe brought it there.
        largest: The largest difference on the probes, which an allowance may put further from its limit than another.
    """

    stretch: Stretch
    difference: OutputDifference
    data: str
    optimised: bool = False
    allowance: str = ""
    own: bool = False
    unoptimised: float = 0.0
    largest: float = 0.0


@dataclass
class Outcome:
    """What the proof by stretches says.

    Attributes:
        same: Number of stretches that are the same in both models.
        judged: Every other one that was compared, in the order of the original's nodes.
        wrong: Those that disagree, likewise.
        unknown: Names of tensors whose stretch no data could judge.
        unproven: The bodies that the original ran on no data, in words.
    """

    same: int = 0
    judged: list[Judged] = field(default_factory=list)
    wrong: list[Judged] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)


class NotATensorError(Exception):
    """Some names hold sequences or maps, or the original can't be asked for them."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.names = list(names)


class Stretches:
    """The stretches between an original and a candidate; pairs are taken apart where they turn out to be none.

    ``likeness`` compares the graphs, where both are ONNX; ``unversioned`` likewise, whatever the versions of their
    operators.
    """

    def __init__(
        self,
        sides: tuple[Side, Side],
        pairing: Pairing,
        likeness: Likeness | None,
        feeding: Feeding,
        unversioned: Likeness | None,
    ) -> None:
        self.sides = sides
        self.pairing = pairing
        self.layouts = Layouts()
        self.feeding = feeding
        self._likeness = likeness
        self._unversioned = unversioned
        self._bytes: dict[str, int] = {}
        self._known_lists: set[str] | None = None

    def translate(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return the original's inputs as the candidate takes them."""
        return self.feeding.of_candidate(0, arrays)

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
        return self._between(name)

    def common_stretch(self, name: str, *, through_lists: bool = False, independent: bool = False) -> Stretch | None:
        """Return the shortest stretch that both models compute from the same tensors, or None.

        One model may read a tensor where the other reads what that is made of; fed with data of its own, the two would
        contradict each other. ``through_lists``, lists (sizes, scales, shapes) are computed in the stretch, as they
        follow from the size of what is fed. ``independent``, so is what is computed from others that are fed: where
        one model computes it twice, its copies would contradict each other as well.
        """
        first, second = (side.view for side in self.sides)
        partners, back = self.pairing.partners, self.pairing.back
        skipped = set(self._lists) if through_lists else set[str]()
        for _ in range(len(partners) if independent else MOST_WIDENINGS):
            above, _ = first.stretch(name, Border(partners, skipped))
            beyond, _ = second.stretch(partners[name], Border(back, {partners[each] for each in skipped}))
            uneven = {*above} ^ {back[each] for each in beyond}
            # Of an input that only one model reads, the other reads what is made of it.
            inner = [each for each in uneven if each not in first.inputs]
            if uneven:
                inner = inner or [each for each in above if each not in first.inputs]
            elif independent:
                inner = [each for each in above if first.is_computed_from(each, above)]
            if not uneven and not inner:
                return self._between(name, skipped)
            if not inner:
                return None
            skipped.update(inner)
        return None

    @property
    def _lists(self) -> set[str]:
        """The paired tensors of one axis at most; they stay such when pairs are taken apart."""
        if self._known_lists is None:
            shapes = {each: self.sides[0].lengths(each) for each in self.pairing.partners}
            self._known_lists = {each for each, shape in shapes.items() if shape is not None and len(shape) <= 1}
        return self._known_lists & self.pairing.partners.keys()

    def _between(self, name: str, skipped: Collection[str] = ()) -> Stretch:
        """Return the stretch that ends with a pair, through the pairs that are skipped."""
        first, second = (side.view for side in self.sides)
        partners, back = self.pairing.partners, self.pairing.back
        above, nodes = first.stretch(name, Border(partners, skipped))
        beyond, others = second.stretch(partners[name], Border(back, {partners[each] for each in skipped}))
        names = {each: partners[each] for each in above}
        names |= {back[each]: each for each in beyond}
        return Stretch(name, partners[name], names, tuple(nodes), tuple(others))

    def take_apart(self, names: Iterable[str]) -> None:
        for name in names:
            self.pairing.remove(name)
        for each in (self._likeness, self._unversioned):
            if each is not None:
                each.forget()

    def same(self, name: str) -> bool:
        return self._are_alike(self._likeness, name)

    def same_in_some_version(self, name: str) -> bool:
        """Whether the stretches that end with a pair are the same, but for the versions of their operators."""
        return self._are_alike(self._unversioned, name)

    def _are_alike(self, likeness: Likeness | None, name: str) -> bool:
        """Whether the stretches that end with a pair are the same, and read the same.

        The same nodes do other things with data whose axes stand in another order.
        """
        if likeness is None or not likeness.same(name, self.pairing.partners[name]):
            return False
        return not self.layouts.are_moved(self.pairing.partners) or not self.layouts.are_moved(self.stretch(name).above)

    def same_body(self, ours: GraphProto, theirs: GraphProto) -> bool:
        """Whether two bodies are the same and read the same from outside."""
        if self._likeness is None or self.layouts.are_moved(self.pairing.partners):
            return False
        return self._likeness.same_body(ours, theirs)

    def version_change(self, stretch: Stretch) -> Hashable | None:
        """Return what a stretch does where nothing but the versions of its operators differs; None where more does."""
        if self._unversioned is None or not self.same_in_some_version(stretch.name):
            return None
        protos = [node.proto for node in stretch.nodes if node.proto is not None]
        return tuple((each.domain, each.op_type, self._unversioned.attributes(each)) for each in protos)

    def values(self, probe: Probe, names: Iterable[str]) -> dict[str, Array]:
        """Return tensors of the original on a probe; inputs too.

        Raises:
            NotATensorError: Some of them are no tensors, or the original can't be asked for them.
        """
        wanted = [name for name in dict.fromkeys(names) if name not in probe.arrays]
        found = dict(probe.arrays)
        try:
            found.update(self.sides[0].values(probe.arrays, wanted) if wanted else {})
        except ExecutionFailed:
            found.update(self._one_by_one(probe, wanted))
        lost = [name for name in wanted if name not in found]
        if lost:
            raise NotATensorError(lost)
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

    def groups(self, stretches: Sequence[Stretch]) -> Iterator[list[Stretch]]:
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

    def learn_layouts(self, changed: Sequence[Stretch], probe: Probe) -> list[Stretch]:
        """Find how the axes of the tensors in question correspond, and take apart pairs that can't be one tensor.

        What reads a tensor whose axes stand in another order is in question as well.
        """
        known: set[str] = set()
        while unknown := [each for each in changed if each.name not in known]:
            known |= {each.name for each in unknown}
            self.take_apart(self._learn(unknown, probe))
            changed = [self.stretch(name) for name in self.ends() if not self.same(name)]
        return list(changed)

    def _learn(self, changed: Sequence[Stretch], probe: Probe) -> set[str]:
        """Note the order of the axes of each tensor in question; return the pairs that are none."""
        lost: set[str] = set()
        outputs = set(self.sides[0].view.outputs)
        for group in self.groups(changed):
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
                is_one = other.dtype == ours[name].dtype
                if not is_one or (
                    not self.layouts.learn(name, ours[name], other, is_output=name in outputs)
                    and not self._like_producers(name)
                ):
                    lost.add(name)
        return lost - outputs

    def _like_producers(self, name: str) -> bool:
        """Whether two ONNX nodes of one operator compute a pair: another shape is a difference then, and no layout."""
        first, second = (side.view.producers for side in self.sides)
        partner = self.pairing.partners[name]
        return self._likeness is not None and first[name].op_type == second[partner].op_type

    def candidate(
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
            alone: dict[str, Array | str] = {}
            for each in group:
                alone |= self.candidate([each], feeds, values, optimised=optimised)
            return alone
        return {
            each.name: self.layouts.to_reference(each.name, found[each.partner])
            if each.partner in found
            else "the result gives no such tensor"
            for each in group
        }
