"""Which nodes of a model a deployment runtime computes otherwise, or refuses.

Nodes in a row are run together, all that they compute asked for, and where these are wrong in halves, down to each by
itself, fed with the right values of what they read: what the runtime computes otherwise is then the node's own, however
much those behind it amplify or hide it. But a runtime may fuse nodes, and it may refuse by itself, or misread the
layout of, what it runs within a network. So the beginnings of the model are run as well: between the longest that is
right and the shortest that is not lies the first node at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from onnx import ModelProto, NodeProto, helper, numpy_helper

from padfix.graph.scopes import label, outer_names_of
from padfix.operators.schemas import DRAWS
from padfix.proof.allowances import APPROXIMATED, gated_by
from padfix.proof.cut import part_of
from padfix.proof.executors import Array, ExecutionFailed
from padfix.proof.probes import Probe
from padfix.proof.quantized_pairs import Pairs
from padfix.proof.runtime_runs import (
    NODE,
    DeploymentRuntime,
    is_undefined,
    judged,
    whole_share,
    with_shapes,
)
from padfix.proof.sides import OnnxSide
from padfix.proof.stretches import FIRST_LOOK
from padfix.results.on_runtime import OnRuntime

_BEYOND = 10.0
"""By how many times what is allowed a node is off that is at fault by itself."""

MOST_TOGETHER = 6
"""How many nodes before it a node is run together with, where it is right by itself and wrong behind them."""


@dataclass(frozen=True)
class Repro:
    """A node as a tiny model with its data: what shows the runtime's fault without padfix."""

    found: OnRuntime
    model: bytes
    feeds: Mapping[str, Array]
    expected: Array
    place: int


@dataclass(frozen=True)
class _Wired:
    """A node with its index, what it reads that is computed from the inputs, and what it computes."""

    index: int
    node: NodeProto
    read: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def label(self) -> str:
        return label(self.node, self.index)


class NodeSearch:
    """Looks for the nodes of ``model`` that a runtime gets wrong on the data of ``probe``.

    Attributes:
        looked_at: How many nodes were run, in stretches and by themselves.
    """

    def __init__(
        self,
        runtime: DeploymentRuntime,
        side: OnnxSide,
        model: ModelProto,
        probe: Probe,
        tell: Callable[[str], None],
    ) -> None:
        self.looked_at = 0
        self._runtime, self._side, self._model, self._probe, self._tell = runtime, side, model, probe, tell
        self._fixed = _fixed_names(model)
        self._pairs = Pairs(model)
        # One step of bytes elsewhere goes on and on, and is not what is looked for.
        self._share = whole_share(model) * (2 if self._pairs.held else 1)
        self._computed = {name for node in model.graph.node if node.op_type != "Constant" for name in node.output}
        self._nodes = [
            _Wired(index, node, _read(node, self._fixed), tuple(filter(None, node.output)))
            for index, node in enumerate(model.graph.node)
            if not self._fixed.issuperset(filter(None, node.output))
        ]
        self._outputs = {value.name for value in model.graph.output}
        self._known: dict[str, Array] = dict(probe.arrays)

    def found(self, *, is_wrong: bool, is_refused: bool) -> list[Repro]:
        """Return the nodes at fault in the graph's order, the first of all first.

        Args:
            is_wrong: Whether the whole model is computed otherwise, or refused.
            is_refused: Whether it is refused; then nodes that are refused by themselves are at fault as well.
        """
        suspects = {
            each.index: (each, repro)
            for each, repro in self._by_themselves()
            if not repro.found.agrees and (is_refused or not repro.found.refused)
            if (is_wrong or _is_beyond_rounding(repro)) and (repro.found.refused or self._shows(each))
        }
        if not is_wrong:
            wrong_ones = self._wrong_in_the_model([each for each, _ in suspects.values()])
            return [repro for each, repro in suspects.values() if each.index in wrong_ones]
        right, wrong = self._first_fault(is_refused=is_refused)
        guilty = {index: repro for index, (_, repro) in suspects.items() if right < index <= wrong}
        is_found = any(bool(each.found.refused) == is_refused for each in guilty.values())
        left_out = set(guilty) or {wrong}
        for index, (each, repro) in suspects.items():
            # What is refused may be so for the shape that a node before it gives.
            is_left = index > wrong or (is_refused and not repro.found.refused)
            if is_left and _is_beyond_rounding(repro) and self._is_wrong_in_place(each, left_out):
                guilty[index] = repro
        if not is_found:
            first = next(each for each in self._nodes if each.index == wrong)
            together = self._behind_constants(first, is_refused=is_refused) or self._together(first)
            named = {repro.found.node for repro in guilty.values()}
            if together is not None and named.isdisjoint(together.found.together):
                guilty[wrong] = together
        return [guilty[index] for index in sorted(guilty)]

    def _by_themselves(self) -> Iterator[tuple[_Wired, Repro]]:
        """Yield what the runtime makes of every node that is by itself what it gets wrong; lists are passed by."""
        for start in range(0, len(self._nodes), FIRST_LOOK):
            group = self._nodes[start : start + FIRST_LOOK]
            done = f"{start + 1} of {len(self._nodes)}"
            self._tell(f"Looking for nodes that {self._runtime.label} computes otherwise: {done}")
            self._forget()
            self._learn(group)
            self.looked_at += sum(self._known.keys() >= {*each.read, *each.outputs} for each in group)
            yield from self._faults(group)

    def _faults(self, stretch: Sequence[_Wired]) -> Iterator[tuple[_Wired, Repro]]:
        """Yield what the runtime makes of the nodes in a row that it gets wrong, halving them down to single ones."""
        asked = [each for each in stretch if self._is_computed(each)]
        half = len(stretch) // 2
        if not asked or (half and self._agrees_on(stretch, asked)):
            return
        if half:
            yield from self._faults(stretch[:half])
            yield from self._faults(stretch[half:])
            return
        repro = self._run(stretch[0], self._pairs.read_through(stretch[0].read), NODE)
        if repro is not None:
            yield stretch[0], repro

    def _shows(self, each: _Wired) -> bool:
        """Whether a node's fault shows in what reads it: bounded functions make 1 of all that is large."""
        readers = [other for other in self._nodes if not set(other.read).isdisjoint(each.outputs)]
        is_read_whole = any(other.node.op_type not in APPROXIMATED for other in readers)
        if is_read_whole or not readers or not self._outputs.isdisjoint(each.outputs):
            return True
        behind = [self._behind(other, [each], NODE) for other in readers]
        return any(repro is None or not repro.found.agrees for repro in behind)

    def _is_computed(self, each: _Wired) -> bool:
        """Whether a node is the runtime's to compute: how bytes are held is its affair, and an Identity is nothing."""
        return each.node.op_type != "Identity" and self._pairs.held.keys().isdisjoint(each.outputs)

    def _agrees_on(self, stretch: Sequence[_Wired], asked: Sequence[_Wired]) -> bool:
        """Whether the runtime computes nodes in a row as it should, fed with the right values above them."""
        inside = {name for each in stretch for name in each.outputs}
        fed = {*self._pairs.read_through(name for each in stretch for name in each.read if name not in inside)}
        names = [name for each in asked for name in each.outputs]  # all: one could hide another
        if not self._known.keys() >= {*fed, *names} or any(map(self._is_text, (*fed, *names))):
            return False
        expected = {name: self._known[name] for name in names}
        part = self._part({name: self._known[name] for name in fed}, expected, folded=True)
        feeds = self._feeds(part)
        unnamed = [("", "")] * len(expected)
        found = self._judged(part, feeds, expected, unnamed, NODE)
        return all(each.agrees for each in found)

    def _judged(
        self,
        part: ModelProto,
        feeds: Mapping[str, Array],
        expected: Mapping[str, Array],
        places: Sequence[tuple[str, str]],
        share: float,
        ties: Mapping[str, Array] | None = None,
    ) -> list[OnRuntime]:
        """Return what the runtime makes of a part of the model, whose own outputs alone need all axes of one."""
        probe, inside = Probe(self._probe.name, feeds), expected.keys() - self._outputs
        return list(judged(self._runtime, part, probe, expected, places, share, ties=ties, inside=inside))

    def _is_text(self, name: str) -> bool:
        return self._known[name].dtype.kind in "OSU"

    def _forget(self) -> None:
        """Let go of what was computed from the data, which may be much."""
        kept = self._fixed | set(self._probe.arrays)
        self._known = {name: array for name, array in self._known.items() if name in kept}

    def _learn(self, nodes: Sequence[_Wired]) -> None:
        """Find what some nodes read and compute, in one run; node by node where not all can be asked for."""
        names = dict.fromkeys(
            name
            for each in nodes
            for name in (*self._pairs.read_through(each.read), *each.read, *each.outputs, *_all_read(each.node))
            if name in self._computed and name not in self._known
        )
        try:
            self._known.update(self._side.values(self._probe.arrays, list(names)) if names else {})
        except ExecutionFailed:
            for each in nodes if len(nodes) > 1 else ():
                self._learn([each])

    def _run(
        self, last: _Wired, fed: Sequence[str], share: float, together: Sequence[str] = (), *, folded: bool = True
    ) -> Repro | None:
        """Run what lies between the tensors ``fed`` and a node; None where not all are known, or tell nothing of it."""
        if not self._known.keys() >= {*fed, *last.outputs}:
            return None
        expected = {name: self._known[name] for name in last.outputs}
        feeds = {name: self._known[name] for name in fed if name not in expected}
        if any(map(self._is_text, (*expected, *feeds))):
            return None
        if last.node.op_type != "IsNaN" and any(map(is_undefined, feeds.values())):
            return None
        part = self._part(feeds, expected, folded=folded)
        feeds = self._feeds(part)
        places = [(last.label, last.node.op_type)] * len(expected)
        may = self._pairs.ties(last.node, feeds, self._runtime.rounding)
        if (gated := gated_by(last.node.op_type, feeds.get(next(iter(last.node.input), "")))) is not None:
            may[last.outputs[0]] = gated
        found = self._judged(part, feeds, expected, places, share, may)
        worst = next((each for each in found if not each.agrees), found[0])
        place = last.outputs.index(worst.name)
        worst = replace(worst, together=tuple(together))
        return Repro(worst, part.SerializeToString(), feeds, expected[worst.name], place)

    def _part(self, feeds: Mapping[str, Array], expected: Mapping[str, Array], *, folded: bool) -> ModelProto:
        """Return the part of the model between tensors; what does not depend on the data is constant if ``folded``."""
        fixed = {name: array for name, array in self._known.items() if name in self._fixed and name not in expected}
        given = {**(fixed if folded else {}), **feeds}
        kinds = {
            name: (int(helper.np_dtype_to_tensor_dtype(array.dtype)), tuple(array.shape))
            for name, array in given.items()
        }
        part = part_of(self._model, list(expected), kinds)
        for value in [each for each in part.graph.input if each.name in self._fixed]:
            part.graph.input.remove(value)
            if value.name in given:
                part.graph.initializer.append(numpy_helper.from_array(given[value.name], value.name))
        return with_shapes(part, {**self._probe.arrays, **feeds}, expected)  # constants may read the inputs' shapes

    def _feeds(self, part: ModelProto) -> dict[str, Array]:
        """Return what a part of the model is fed; an input with a default keeps that."""
        held = {tensor.name for tensor in part.graph.initializer}
        return {value.name: self._known[value.name] for value in part.graph.input if value.name not in held}

    def _first_fault(self, *, is_refused: bool) -> tuple[int, int]:
        """Return between which nodes the model goes wrong: the last index that is right, and the first that is not."""
        right, wrong = -1, len(self._nodes) - 1
        untold: set[int] = set()
        while True:
            inside = [place for place in range(right + 1, wrong) if place not in untold]
            if not inside:
                break
            middle = min(inside, key=lambda place: abs(2 * place - right - wrong))
            state = self._state(middle)
            if state == "untold" or (state == "refused" and not is_refused):
                untold.add(middle)
            elif state == "right" or (is_refused and state == "wrong"):
                right = middle
            else:
                wrong = middle
        return (self._nodes[right].index if right >= 0 else -1), self._nodes[wrong].index

    def _state(self, place: int) -> str:
        """Return what the runtime makes of the model's beginning, up to a node: right, wrong or refused.

        Untold where a sequence or another value that is no array leaves that beginning.
        """
        names = [name for name in self._alive(place) if name not in self._pairs.held]
        if not names:
            return "refused"
        missing = [name for name in names if name not in self._known]
        try:
            self._known.update(self._side.values(self._probe.arrays, missing) if missing else {})
        except ExecutionFailed:
            return "refused"
        if not self._known.keys() >= set(names):
            return "untold"
        self._tell(f"Running the beginning of the model on {self._runtime.label}: {place + 1} nodes")
        found = self._beginning(names)
        if any(each.refused for each in found):
            return "refused"
        return "right" if all(each.agrees for each in found) else "wrong"

    def _alive(self, place: int) -> list[str]:
        """Return what the nodes up to a place compute and those behind it, or nobody but the user, read."""
        behind = {name for each in self._nodes[place + 1 :] for name in each.read}
        every = [name for each in self._nodes[: place + 1] for name in each.outputs]
        return [name for name in every if name in behind or name in self._outputs]

    def _behind_constants(self, last: _Wired, *, is_refused: bool) -> Repro | None:
        """Return a node that is wrong behind what computes its constants, where that is not done before."""
        makers = [each for each in self._model.graph.node if self._fixed.issuperset(filter(None, each.output))]
        wanted, before = set(_all_read(last.node)), []
        for node in reversed(makers):
            if not wanted.isdisjoint(node.output):
                before.append(label(node, list(self._model.graph.node).index(node)))
                wanted.update(_all_read(node))
        if not before:
            return None
        self._learn([last])
        found = self._run(last, last.read, self._share, before[::-1], folded=False)
        return (
            found if found is not None and not found.found.agrees and bool(found.found.refused) == is_refused else None
        )

    def _wrong_in_the_model(self, suspects: Sequence[_Wired]) -> set[int]:
        """Return which of some nodes are wrong within the model too, as the runtime computes what they read."""
        if not suspects:
            return set()
        self._learn(suspects)
        names = [name for each in suspects for name in each.outputs]
        found = self._beginning(names) if self._known.keys() >= set(names) else []
        if found and not any(each.refused for each in found):
            wrong = {each.name for each in found if not each.agrees}
            return {each.index for each in suspects if wrong & set(each.outputs)}
        if len(suspects) == 1:
            return set()
        half = len(suspects) // 2
        return self._wrong_in_the_model(suspects[:half]) | self._wrong_in_the_model(suspects[half:])

    def _beginning(self, names: Sequence[str]) -> list[OnRuntime]:
        """Return what the runtime makes of the model up to some tensors, whose right values are known."""
        expected = {name: self._known[name] for name in names}
        part = with_shapes(part_of(self._model, names), self._probe.arrays, expected)
        feeds = self._feeds(part)
        unnamed = [("", "")] * len(expected)
        return self._judged(part, feeds, expected, unnamed, self._share)

    def _is_wrong_in_place(self, last: _Wired, left_out: Container[int]) -> bool:
        """Whether a node that is wrong by itself stays so behind those before it, known faults left out."""
        before = list(self._before(last, left_out))
        found = self._behind(last, before[-1], NODE) if before else None
        return found is None or not found.found.agrees

    def _before(self, last: _Wired, left_out: Container[int] = ()) -> Iterator[list[_Wired]]:
        """Yield the nearest node before one, the nearest two, and so on."""
        before: list[_Wired] = []
        while len(before) < MOST_TOGETHER:
            inside = {output for each in before for output in each.outputs}
            read = {name for each in (last, *before) for name in each.read} - inside
            nearest = [each for each in self._nodes if each.index not in left_out and read & set(each.outputs)]
            if not nearest:
                return
            before = [*before, nearest[-1]]
            yield before

    def _behind(self, last: _Wired, before: Sequence[_Wired], share: float) -> Repro | None:
        """Run a node and some of those before it together, fed with the right values of what these read."""
        stretch = [*sorted(before, key=lambda each: each.index), last]
        inside = {output for each in stretch for output in each.outputs}
        fed = dict.fromkeys(each for node in stretch for each in node.read if each not in inside)
        self._learn(stretch)
        return self._run(last, list(fed), share, [each.label for each in stretch[:-1]])

    def _together(self, last: _Wired) -> Repro | None:
        """Return a node that is wrong behind others alone, with as few of these as show it; at last with all."""
        for before in self._before(last):
            found = self._behind(last, before, self._share)
            if found is not None and not found.found.agrees:
                return found
        every = [each.label for each in self._nodes if each.index < last.index]
        found = self._run(last, list(self._probe.arrays), self._share, every, folded=False)
        return None if found is None or found.found.agrees else found


def _is_beyond_rounding(repro: Repro) -> bool:
    """Whether a node is at fault though another is, or none: quick convolutions and functions are no fault."""
    return bool(repro.found.refused) or repro.found.share > _BEYOND


def _fixed_names(model: ModelProto) -> set[str]:
    """Return the tensors that do not depend on the data, once the shapes of the inputs are known."""
    graph = model.graph
    fixed = {tensor.name for tensor in graph.initializer} | {each.values.name for each in graph.sparse_initializer}
    for node in graph.node:
        read = _all_read(node)
        is_shape = node.op_type in ("Shape", "Size")
        if node.op_type not in DRAWS and (is_shape or fixed.issuperset(read)):
            fixed.update(filter(None, node.output))
    return fixed


def _all_read(node: NodeProto) -> list[str]:
    return [name for name in dict.fromkeys((*node.input, *outer_names_of(node))) if name]


def _read(node: NodeProto, fixed: set[str]) -> tuple[str, ...]:
    return tuple(name for name in _all_read(node) if name not in fixed)
