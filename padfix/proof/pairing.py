"""Which tensor of one graph is which of another.

Wiring decides: nodes of one operator that read paired tensors compute paired ones, weights and attributes left aside,
because these are what is to be compared. Names decide where the wiring differs (an optimiser fused a node, a converter
wrote another one), and only where both tensors are computed from the same paired tensors: "17" of one exporter is not
"17" of another. Of a quantised operator that one graph writes as one node, and the other as an operator of floats,
the bytes are the pair. Where the candidate is the reference rewritten, every name means the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from padfix.graph.scopes import normal_domain
from padfix.proof.constants import Constants
from padfix.proof.facts import RANDOM
from padfix.proof.graph_view import Border, GraphView, NodeView
from padfix.proof.likeness import Meanings
from padfix.proof.quantized_forms import QuantizedForm, quantized_form

COMMUTATIVE = frozenset({"Add", "Mul", "And", "Or", "Xor", "Equal", "Max", "Min", "Sum", "Mean"})

_FROM_BYTES = "DequantizeLinear"

MOST_WIDENINGS = 8
"""How often a stretch is widened until both models compute it from the same tensors."""

_WIDEST_SEARCH = 64
"""Nodes above a name that are looked through for what it is computed from."""

_FormKey = tuple[str, tuple[str, ...], bool]
_Key = tuple[str, str, tuple[str, ...], int]


@dataclass
class Pairing:
    """Pairs of tensors.

    Attributes:
        partners: The candidate's name for each tensor of the reference, inputs and outputs included.
        back: The reference's name for each of these.
    """

    partners: dict[str, str] = field(default_factory=dict)
    back: dict[str, str] = field(default_factory=dict)

    def add(self, ours: str, theirs: str) -> None:
        """Pair two tensors that have no partner yet."""
        if ours not in self.partners and theirs not in self.back:
            self.partners[ours] = theirs
            self.back[theirs] = ours

    def remove(self, ours: str) -> None:
        """Take a pair apart."""
        del self.back[self.partners.pop(ours)]


def pair_by_name(views: tuple[GraphView, GraphView], inputs: Mapping[str, str], outputs: Mapping[str, str]) -> Pairing:
    """Pair inputs, outputs and every tensor that both compute under one name; ``:0`` is no part of a name.

    ``inputs`` and ``outputs`` are the candidate's names of the reference's.
    """
    pairing = Pairing()
    for ours, theirs in (*inputs.items(), *_computed(views, outputs)):
        pairing.add(ours, theirs)
    plain = {_plain(name): name for name in views[1].producers if name in views[1].live}
    for name in views[0].producers:
        if name not in views[0].live:
            continue
        twin = name if name in views[1].producers and name in views[1].live else plain.get(_plain(name))
        if twin is not None:
            pairing.add(name, twin)
    return pairing


def pair_by_wiring(
    views: tuple[GraphView, GraphView],
    meanings: tuple[Meanings, Meanings],
    constants: tuple[Constants, Constants],
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
) -> Pairing:
    """Pair what is computed alike in two ONNX graphs, from the inputs on; what no output depends on stays alone.

    ``inputs`` and ``outputs`` are the candidate's names of the reference's.
    """
    pairing = Pairing()
    for ours, theirs in inputs.items():
        pairing.add(ours, theirs)
    aligner = _Aligner(views, meanings, constants, pairing, dict(_computed(views, outputs)))
    aligner.run()
    return pairing


def _computed(views: tuple[GraphView, GraphView], outputs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for ours, theirs in outputs.items():
        if ours in views[0].producers and theirs in views[1].producers:
            yield ours, theirs


def _plain(name: str) -> str:
    return name.removesuffix(":0")


class _Aligner:
    def __init__(
        self,
        views: tuple[GraphView, GraphView],
        meanings: tuple[Meanings, Meanings],
        constants: tuple[Constants, Constants],
        pairing: Pairing,
        outputs: Mapping[str, str],
    ) -> None:
        self._views = views
        self._meanings = meanings
        self._constants = constants
        self._pairing = pairing
        self._outputs = outputs
        self._taken: set[int] = set()
        self._origins = _origins(views[0], meanings[0], constants[0]), _origins(views[1], meanings[1], constants[1])
        self._index: dict[_Key, list[NodeView]] = {}
        self._forms: dict[_FormKey, list[tuple[NodeView, QuantizedForm]]] = {}
        for node in views[0].nodes:
            if any(name in views[0].live for name in node.outputs):
                self._index.setdefault(self._key(node, 0, lambda name: name), []).append(node)
                if (form := quantized_form(node, views[0], constants[0])) is not None:
                    key = self._form_key(form, 0, lambda name: name)
                    self._forms.setdefault((*key, form.is_spread), []).append((node, form))

    def run(self) -> None:
        view = self._views[1]
        ends = {theirs: ours for ours, theirs in self._outputs.items()}
        for node in view.nodes:
            copied = self._origins[1].get(node.outputs[0], node.outputs[0]) != node.outputs[0]
            if (copied and not ends.keys() & set(node.outputs)) or not any(name in view.live for name in node.outputs):
                continue
            twin = self._aligned(node) or self._aligned_in_bytes(node)
            if twin is not None:
                self._taken.add(twin.index)
                for ours, theirs in _output_pairs(twin.outputs, node.outputs):
                    if ours and theirs and ours in self._views[0].live and theirs in view.live:
                        self._pair(ours, theirs, ends)
            else:
                for theirs in node.outputs:
                    self._by_name(theirs, ends)
        for ours, theirs in self._outputs.items():
            self._pairing.add(ours, theirs)

    def _pair(self, ours: str, theirs: str, ends: Mapping[str, str]) -> None:
        """Pair two tensors; outputs only with each other, because the user knows which is which."""
        if ends.get(theirs, ours) == ours and self._outputs.get(ours, theirs) == theirs:
            self._pairing.add(ours, theirs)

    def _partner(self, theirs: str) -> str | None:
        """Return the reference's tensor that is paired with one of the candidate, or the first that is a copy of it."""
        ours = self._pairing.back.get(theirs)
        return ours and self._origins[0].get(ours, ours)

    def _key(self, node: NodeView, side: int, partner: Callable[[str], str | None]) -> _Key:
        """Return what a node of one side reads, in the reference's names, and which operator it is."""
        assert node.proto is not None
        origins = self._origins[side]
        names = [self._part(origins.get(name, name), partner, self._constants[side]) for name in node.inputs]
        if node.op_type in COMMUTATIVE:
            names.sort()
        return normal_domain(node.proto.domain), node.op_type, tuple(names), len(node.outputs)

    @staticmethod
    def _part(name: str, partner: Callable[[str], str | None], constants: Constants) -> str:
        if not name or name in constants:
            return "#" if name else ""
        return partner(name) or "?"

    def _aligned(self, node: NodeView) -> NodeView | None:
        """Return the free node of the reference that reads the partners of what ``node`` reads, the likest of them."""
        key = self._key(node, 1, self._partner)
        if "?" in key[2]:
            return None
        free = [twin for twin in self._index.get(key, ()) if twin.index not in self._taken]
        if not {*key[2]} - {"#", ""}:  # constants alone: no wiring tells one such node from another
            free = [twin for twin in free if self._same_constants(twin, node) or {*twin.outputs} & {*node.outputs}]
        for twin in sorted(free, key=lambda each: (self._likeness(each, node), -each.index), reverse=True):
            if not self._has_likelier(twin, node, key):
                return twin
        return None

    def _form_key(
        self, form: QuantizedForm, side: int, partner: Callable[[str], str | None]
    ) -> tuple[str, tuple[str, ...]]:
        """Return what is computed of which bytes, in the reference's names."""
        origins = self._origins[side]
        names = [self._part(origins.get(name, name), partner, self._constants[side]) for name in form.read]
        return form.operator, tuple(sorted(names) if form.operator in COMMUTATIVE else names)

    def _aligned_in_bytes(self, node: NodeView) -> NodeView | None:
        """Return the free node of the reference that gives the bytes that ``node`` gives, in the other form."""
        form = quantized_form(node, self._views[1], self._constants[1])
        if form is None:
            return None
        key = self._form_key(form, 1, self._partner)
        twins = self._forms.get((*key, not form.is_spread), ())
        free = [(twin, other) for twin, other in twins if twin.index not in self._taken]
        if not free or "?" in key[1] or not form.read:
            return None
        return max(free, key=lambda each: (len(each[1].constants & form.constants), -each[0].index))[0]

    def _has_likelier(self, twin: NodeView, node: NodeView, key: _Key) -> bool:
        """Whether another node that reads what ``node`` reads, and is still to come, is likelier to be ``twin``.

        Of several that read one tensor, an optimiser may have made another operator of some.
        """
        readers = self._views[1].readers
        read = [readers[name] for name in node.inputs if name and name not in self._constants[1]]
        # A rival reads all that the node reads, so that it is among the readers of what few read.
        few = min(read, key=len, default=[])
        rivals = [rival for rival in few if rival.index > node.index and rival.op_type == node.op_type]
        own = self._likeness(twin, node) if rivals else None
        return any(
            self._likeness(twin, rival) > own and self._key(rival, 1, self._partner) == key
            for rival in rivals
            if own is not None
        )

    def _likeness(self, node: NodeView, twin: NodeView) -> tuple[int, int, int, int]:
        """Return how much speaks for two nodes to be one: equal constants, names, attributes, kinds of constants."""
        assert node.proto is not None and twin.proto is not None
        ours, theirs = self._constants
        pairs = [(a, b) for a, b in zip(node.inputs, twin.inputs, strict=False) if a in ours and b in theirs]
        equal = sum(ours.digest(a) == theirs.digest(b) for a, b in pairs)
        alike = sum(ours.shape(a) == theirs.shape(b) for a, b in pairs)
        names = len({*node.outputs, node.name} & {*twin.outputs, twin.name} - {""})
        attributes = self._meanings[0].attributes(node.proto) == self._meanings[1].attributes(twin.proto)
        return equal, names, int(attributes), alike

    def _same_constants(self, node: NodeView, twin: NodeView) -> bool:
        ours, theirs = self._constants
        return all(ours.digest(a) == theirs.digest(b) for a, b in zip(node.inputs, twin.inputs, strict=True) if a and b)

    def _by_name(self, theirs: str, ends: Mapping[str, str]) -> None:
        """Pair a tensor with that of its name, where both are computed from the same paired tensors."""
        ours = ends.get(theirs, theirs)
        first, second = self._views
        if theirs not in second.live or ours not in first.producers or ours not in first.live:
            return
        if theirs in ends:
            self._pairing.add(ours, theirs)
            return
        if (first.producers[ours].op_type == _FROM_BYTES) != (second.producers[theirs].op_type == _FROM_BYTES):
            return  # quantisers leave a tensor's name to what it was before it was rounded, or to what it is after
        if self._are_of_the_same(ours, theirs):
            self._pair(ours, theirs, ends)

    def _are_of_the_same(self, ours: str, theirs: str) -> bool:
        """Whether two tensors are computed from the same paired tensors, where need be from those above the nearest.

        One model may read a tensor where the other reads what that is made of, or know lengths that the other computes.
        """
        skipped = set[str]()
        for _ in range(MOST_WIDENINGS):
            above = self._above(ours, theirs, skipped)
            numbers = self._above(ours, theirs, skipped, of_numbers=True)
            if above is None or numbers is None:
                return False
            if above[0] == above[1] or (numbers[0] and numbers[0] == numbers[1]):
                return True
            inner = (above[0] ^ above[1]) & self._views[0].producers.keys()
            if not inner:
                return False
            skipped |= inner
        return False

    def _above(
        self, ours: str, theirs: str, skipped: set[str], *, of_numbers: bool = False
    ) -> tuple[set[str], set[str]] | None:
        """Return the pairs next above two tensors, but for those that are skipped; None where they are too far."""
        first, second = self._views
        partners, back = self._pairing.partners, self._pairing.back
        borders = Border(partners, skipped), Border(back, {partners[name] for name in skipped})
        above, nodes = first.stretch(ours, borders[0], most=_WIDEST_SEARCH, of_numbers=of_numbers)
        beyond, others = second.stretch(theirs, borders[1], most=_WIDEST_SEARCH, of_numbers=of_numbers)
        is_near = max(len(nodes), len(others)) <= _WIDEST_SEARCH
        return ({*above}, {back[name] for name in beyond}) if is_near else None


def _output_pairs(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the outputs of two nodes in pairs: by position, or by name where one has the other's in another order."""
    is_reordered = sorted(ours) == sorted(theirs)
    yield from zip(ours, ours if is_reordered else theirs, strict=False)


def _origins(view: GraphView, meanings: Meanings, constants: Constants) -> dict[str, str]:
    """Return for each tensor the first one that holds the same numbers in the same graph, where that is another.

    A runtime's optimiser writes a node once more for each reader, or once where there were several, and drops nodes
    that hand on what they read.
    """
    origins: dict[str, str] = {}
    first: dict[Hashable, tuple[str, ...]] = {}
    for node in view.nodes:
        assert node.proto is not None
        if node.op_type == "Identity" and node.inputs[0] not in constants:
            origins[node.outputs[0]] = origins.get(node.inputs[0], node.inputs[0])
            continue
        if any(each.HasField("g") for each in node.proto.attribute) or node.op_type in RANDOM:
            continue
        inputs = tuple(
            ("", constants.digest(name)) if name in constants else (origins.get(name, name), None)
            for name in node.inputs
        )
        key = (meanings.operator(node.proto), meanings.attributes(node.proto), inputs, tuple(map(bool, node.outputs)))
        known = first.setdefault(key, node.outputs)
        if known is not node.outputs:
            origins.update((mine, theirs) for mine, theirs in zip(node.outputs, known, strict=True) if mine)
    return origins
