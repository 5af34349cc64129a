"""The first tensor that differs between two ONNX models whose outputs disagree, and the node that computes it.

Tensors that bear one name in both models are compared from a wrong output upward: :data:`WIDTH` of them are taken
evenly from everything the wrong one depends on, and made outputs of both models, which are cut down to what these need.
The first wrong one takes the output's place, and so on. A tensor that agrees makes what it depends on unlikely to be
the place, not impossible (a maximum may hide it), so the search only ends when the nearest tensors upstream of the
wrong one have all been seen to agree. No more than :data:`WIDTH` tensors of each model are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from onnx import GraphProto, NodeProto

from padfix.diagnose.causes import border_split, likely_cause
from padfix.diagnose.graph_difference import differences
from padfix.files.model import Model
from padfix.graph.scopes import label, outer_names_of
from padfix.proof.compare import DEFAULT_ATOL, compare
from padfix.proof.executors import Array, ExecutionFailed
from padfix.proof.inner_tensors import Exposable
from padfix.proof.matching import order_between
from padfix.proof.noise import FACTOR, spread
from padfix.proof.stretches import Stretches
from padfix.results import Difference, FirstDifference, OutputDifference

WIDTH = 8
"""Tensors that are looked at in one run of each model."""

MOST_RUNS = 60
"""Runs after which the tensor found so far is reported."""

MOST_LOOKED_AT_IN_ORDER = 64
"""Tensors computed by other nodes or weights up to which they are simply looked at from the inputs on."""

SHOWN = 3
"""Positions that are shown with both values."""


@dataclass(frozen=True)
class _Producer:
    node: NodeProto
    index: int


class _Graph:
    """A main graph seen by its tensors: who computes a name, and what a name is computed from."""

    def __init__(self, graph: GraphProto) -> None:
        self.nodes = list(graph.node)
        self.producers = {
            name: _Producer(node, index) for index, node in enumerate(self.nodes) for name in node.output if name
        }

    @cached_property
    def readers(self) -> dict[str, list[NodeProto]]:
        """The nodes that read each name, in bodies too."""
        found: dict[str, list[NodeProto]] = {}
        for node in self.nodes:
            for name in {*node.input, *outer_names_of(node)}:
                found.setdefault(name, []).append(node)
        return found

    def read_by(self, name: str) -> list[str]:
        node = self.producers[name].node
        return [each for each in (*node.input, *sorted(outer_names_of(node))) if each in self.producers]

    def upstream(self, name: str) -> set[str]:
        """Return every name that ``name`` is computed from."""
        found: set[str] = set()
        rest = self.read_by(name)
        while rest:
            each = rest.pop()
            if each not in found:
                found.add(each)
                rest.extend(self.read_by(each))
        return found

    def downstream(self, name: str) -> set[str]:
        """Return every name that is computed from ``name``."""
        found: set[str] = set()
        rest = [name]
        while rest:
            for node in self.readers.get(rest.pop(), ()):
                new = {each for each in node.output if each} - found
                found |= new
                rest.extend(new)
        return found

    def stretch(self, name: str, stop: Iterable[str]) -> tuple[list[str], list[NodeProto]]:
        """Return the names of ``stop`` next upstream of ``name``, and the nodes between these and it, in order."""
        ends, seen, nodes = set(stop), set[str](), set[int]()
        border: set[str] = set()
        rest = [name]
        while rest:
            each = rest.pop()
            if each in seen:
                continue
            seen.add(each)
            nodes.add(self.producers[each].index)
            for above in self.read_by(each):
                if above in ends:
                    border.add(above)
                else:
                    rest.append(above)
        between = [self.nodes[index] for index in sorted(nodes) if self.nodes[index].op_type != "Constant"]
        return sorted(border, key=lambda each: self.producers[each].index), between

    def label(self, name: str) -> str:
        producer = self.producers[name]
        return label(producer.node, producer.index)


def first_difference(
    reference: Exposable,
    candidate: Exposable,
    feeds: tuple[Mapping[str, Array], Mapping[str, Array]],
    outputs: Mapping[str, str],
    *,
    rtol: float | None = None,
    atol: float | None = None,
    types: Sequence[np.dtype[np.generic]] = (),
    inputs: Mapping[str, str] | None = None,
) -> FirstDifference | None:
    """Return where two models part, or None when their outputs agree on these inputs.

    Args:
        reference: The original.
        candidate: The result.
        feeds: The inputs of each.
        outputs: The candidate's name for each output of the reference, those that matter first.
        rtol: As for :func:`padfix.proof.compare.compare`, as are ``atol`` and ``types``.
        atol: See ``rtol``.
        types: Types that the models compute in beside the compared tensor's own.
        inputs: The candidate's name for each input of the reference; None where they bear the same names.

    Raises:
        ExecutionFailed: One of the models can't be run.
    """
    search = Search(reference, candidate, feeds, rtol, atol, tuple(types), inputs or {name: name for name in feeds[0]})
    return search.run(outputs)


class Search:
    """Tensors of two models that are looked at step by step.

    Attributes:
        sides: The original and the result.
        graphs: Their main graphs.
        runs: How often each was run.
        largest: Bytes of the largest tensor so far.
        seen: What was found of each tensor, by its name in the original.
        others: The candidate's name for each tensor that can be looked at in both.
        inputs: The candidate's name for each graph input.
        strict: Whether a tensor of one name must have one shape. Converters from TensorFlow move transpositions about
            and leave the names.
    """

    def __init__(
        self,
        reference: Exposable,
        candidate: Exposable,
        feeds: tuple[Mapping[str, Array], Mapping[str, Array]],
        rtol: float | None,
        atol: float | None,
        types: tuple[np.dtype[np.generic], ...],
        inputs: Mapping[str, str],
        *,
        strict: bool = False,
    ) -> None:
        self.inputs = inputs
        self.strict = strict
        self.sides = (reference, candidate)
        self.graphs = _Graph(reference.model.proto.graph), _Graph(candidate.model.proto.graph)
        self.feeds = feeds
        self.rtol, self.atol, self.types = rtol, atol, types
        self.runs = 0
        self.largest = 0
        self.seen: dict[str, OutputDifference] = {}
        self.others: dict[str, str] = {}

    def run(self, outputs: Mapping[str, str]) -> FirstDifference | None:
        ours, theirs = (graph.producers for graph in self.graphs)
        self.pair_by_name()
        computed = {name: other for name, other in outputs.items() if name in ours and other in theirs}
        self.others.update(computed)
        wrong = None
        for name in computed:
            self.look([name], required=True)
            if name in self.seen and not self.agrees(name):
                wrong = name
                break
        if wrong is None:
            return None
        for name in self._computed_otherwise(wrong):
            if not self.agrees(name):
                return self.climb(name)
        return self.climb(wrong)

    def _computed_otherwise(self, wrong: str) -> Iterator[str]:
        """Yield, from the inputs on, what the models compute by other nodes or weights on the way to a wrong output."""
        above = self.upstream(wrong)
        found = [name for name in self.order(above) if not self.stretches.likeness(name).same]
        if len(found) > MOST_LOOKED_AT_IN_ORDER:
            return  # Almost everything is another: bisection is shorter.
        for start in range(0, len(found), WIDTH):
            chosen = found[start : start + WIDTH]
            self.look(chosen)
            yield from chosen

    @cached_property
    def stretches(self) -> Stretches:
        """What the two graphs say of the shared tensors."""
        ours, theirs = ({name: producer.node for name, producer in graph.producers.items()} for graph in self.graphs)
        return Stretches((self.sides[0].model, self.sides[1].model), (ours, theirs), self.others, self.inputs)

    def pair_by_name(self) -> None:
        """Take tensors that bear one name in both models for the same."""
        ours, theirs = (graph.producers for graph in self.graphs)
        self.others = {
            name: name
            for name, producer in ours.items()
            if name in theirs and producer.node.op_type != "Constant" and theirs[name].node.op_type != "Constant"
        }

    def climb(self, wrong: str) -> FirstDifference:
        """Go upstream from a wrong tensor to one whose neighbours above all agree, and describe that."""
        self.runs = 0
        complete = False
        while self.runs < MOST_RUNS:
            above = self._next_wrong(wrong)
            if above is None:
                complete = True
                break
            wrong = above
        return self.describe(wrong, complete=complete)

    def agrees(self, name: str) -> bool:
        """Whether nothing is known against a tensor."""
        return name not in self.seen or self.seen[name].equivalent

    def order(self, names: Iterable[str]) -> list[str]:
        """Return names in the order in which the original computes them."""
        return sorted(names, key=lambda name: self.graphs[0].producers[name].index)

    def downstream(self, name: str) -> set[str]:
        """Return the shared names that are computed from ``name`` in either model."""
        back = {other: each for each, other in self.others.items()}
        ours, theirs = self.graphs[0].downstream(name), self.graphs[1].downstream(self.others[name])
        return {each for each in ours if each in self.others} | {back[each] for each in theirs if each in back}

    def upstream(self, name: str) -> set[str]:
        """Return the shared names that ``name`` is computed from in either model."""
        ours = self.graphs[0].upstream(name)
        back = {other: each for each, other in self.others.items()}
        theirs = {back[each] for each in self.graphs[1].upstream(self.others[name]) if each in back}
        return {each for each in ours | theirs if each in self.others} - {name}

    def _next_wrong(self, wrong: str) -> str | None:
        """Return a wrong tensor upstream of ``wrong``, or None when those next to it all agree."""
        above = self.upstream(wrong)
        unlikely: set[str] = set()
        for name in self.order(above):
            if name in self.seen and self.seen[name].equivalent and self.seen[name].tolerance > 0:
                unlikely |= {name, *self.upstream(name)}
        while self.runs < MOST_RUNS:
            rest = self.order(name for name in above - unlikely if name not in self.seen)
            if not rest:
                break
            chosen = [rest[(step + 1) * len(rest) // (WIDTH + 1)] for step in range(min(WIDTH, len(rest)))]
            chosen = self.order({*chosen, rest[-1]} if len(rest) > WIDTH else set(rest))[-WIDTH:]
            self.look(chosen)
            bad = [name for name in chosen if not self.agrees(name)]
            if bad:
                return bad[0]
            for name in chosen:
                # A whole number that agrees (a length, say) tells nothing about the tensors it comes from.
                if name in self.seen and self.seen[name].tolerance > 0:
                    unlikely |= {name, *self.upstream(name)}
        near = [name for name in self.order(self.near(wrong)) if name not in self.seen]
        for start in range(0, len(near), WIDTH):
            self.look(near[start : start + WIDTH])
        bad = [name for name in self.order(self.near(wrong)) if not self.agrees(name)]
        return bad[0] if bad else None

    def near(self, name: str) -> set[str]:
        """Return the nearest shared names that ``name`` is computed from in either model."""
        back = {other: each for each, other in self.others.items()}
        ours, _ = self.graphs[0].stretch(name, self.others)
        theirs, _ = self.graphs[1].stretch(self.others[name], back)
        return {*ours, *(back[each] for each in theirs)} - {name}

    def look(self, names: Sequence[str], *, required: bool = False) -> None:
        """Compare some tensors; what the original can't be asked for is left out of the search."""
        names = [name for name in names if name in self.others and name not in self.seen]
        if not names:
            return
        self.runs += 1
        try:
            first = self.sides[0].run(self.feeds[0], names)
        except ExecutionFailed:
            if required:
                raise
            self._one_by_one(names)
            return
        try:
            second = self.sides[1].run(self.feeds[1], [self.others[name] for name in names])
        except ExecutionFailed as failure:
            if len(names) > 1:
                self._one_by_one(names)
            else:
                self.seen[names[0]] = _not_computed(names[0], failure.message)
            return
        for name in names:
            ours, theirs = first.get(name), second.get(self.others[name])
            if ours is None and theirs is None:
                if not required:
                    del self.others[name]  # A sequence or a map.
                continue
            self.largest = max(self.largest, 0 if ours is None else ours.nbytes)
            if ours is not None and theirs is not None and not self.strict:
                second[self.others[name]] = theirs = in_shape_of(ours, theirs)
            self.seen[name] = compare(name, ours, theirs, rtol=self.rtol, atol=self.atol, input_types=self.types)
        self._allow_for_noise(names, first, second)

    def _allow_for_noise(self, names: Sequence[str], first: Mapping[str, Array], second: Mapping[str, Array]) -> None:
        """Compare what differs again, with the original's own spread under last-bit changes allowed for."""
        wrong = [name for name in names if name in self.seen and self.seen[name].tolerance > 0]
        wrong = [name for name in wrong if not self.agrees(name) and np.isfinite(self.seen[name].max_abs_diff)]
        if not wrong or self.rtol is not None or self.atol is not None:
            return
        part = _Part(self.sides[0], wrong)
        noise = spread(part, self.feeds[0], {name: first[name] for name in wrong}, 0)
        for name in wrong:
            allowed = DEFAULT_ATOL + FACTOR * noise.get(name, 0.0)
            found = second.get(self.others[name])
            self.seen[name] = compare(name, first[name], found, atol=allowed, input_types=self.types)

    def _one_by_one(self, names: Sequence[str]) -> None:
        if len(names) == 1:
            del self.others[names[0]]
            return
        for name in names:
            self.look([name])

    def _pair(self, name: str, other: str) -> tuple[Array | None, Array | None]:
        try:
            first, second = self.sides[0].run(self.feeds[0], [name]), self.sides[1].run(self.feeds[1], [other])
        except ExecutionFailed:
            return None, None
        return first.get(name), second.get(other)

    def describe(self, name: str, *, complete: bool) -> FirstDifference:
        """Return what there is to say of a tensor that was looked at."""
        other = self.others[name]
        found = self.seen[name]
        back = {each: mine for mine, each in self.others.items()}
        _, before = self.graphs[0].stretch(name, self.others)
        _, after = self.graphs[1].stretch(other, back)
        models: tuple[Model, Model] = (self.sides[0].model, self.sides[1].model)
        ours, theirs = self._pair(name, other)
        if ours is not None and theirs is not None and not self.strict:
            theirs = in_shape_of(ours, theirs)
        border, interior, shown = _positions(ours, theirs, found.tolerance)
        nodes = tuple(graph.producers[each] for graph, each in zip(self.graphs, (name, other), strict=True))
        return FirstDifference(
            tensor=name,
            candidate_tensor=other,
            node=self.graphs[0].label(name),
            op_type=nodes[0].node.op_type,
            candidate_node=self.graphs[1].label(other),
            candidate_op_type=nodes[1].node.op_type,
            nodes=tuple(node.name or node.op_type for node in before),
            candidate_nodes=tuple(node.name or node.op_type for node in after),
            difference=found,
            positions=shown,
            border=border,
            interior=interior,
            cause="" if ours is None or theirs is None else likely_cause(ours, theirs, found.tolerance),
            graph_differences=differences(*models, before, after),
            complete=complete,
        )


def in_shape_of(first: Array, second: Array) -> Array:
    """Return ``second`` in the shape of ``first`` where it holds the same numbers in another layout; else as it is."""
    if first.shape == second.shape or first.size != second.size:
        return second
    order = order_between(first.shape, second.shape)
    if order is not None:
        return second.transpose(np.argsort(order))
    longer, shorter = sorted((first.shape, second.shape), key=len, reverse=True)
    if [length for length in longer if length != 1] == [length for length in shorter if length != 1]:
        return second.reshape(first.shape)
    return second


@dataclass
class _Part:
    """A model that gives some of its inner tensors."""

    side: Exposable
    names: Sequence[str]

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        return self.side.run(feeds, self.names)


def _not_computed(name: str, message: str) -> OutputDifference:
    infinite = float("inf")
    return OutputDifference(name, infinite, infinite, 0.0, False, f"the result can't be run to here: {message}")


def _positions(
    first: Array | None, second: Array | None, tolerance: float
) -> tuple[tuple[int, int] | None, tuple[int, int] | None, tuple[Difference, ...]]:
    """Return (outside, all) at the border and inside, and the worst positions with both values."""
    if first is None or second is None or first.shape != second.shape:
        return None, None, ()
    if first.dtype.kind not in "fiub" or second.dtype.kind not in "fiub":
        return None, None, ()
    with np.errstate(invalid="ignore"):
        distance = np.abs(first.astype(np.float64) - second.astype(np.float64))
    distance[np.isnan(first.astype(np.float64)) & np.isnan(second.astype(np.float64))] = 0
    distance[np.isnan(distance)] = np.inf
    outside = distance > tolerance
    split = border_split(outside)
    worst = np.argsort(distance, axis=None)[::-1][:SHOWN]
    shown = []
    for flat in worst:
        index = tuple(int(each) for each in np.unravel_index(int(flat), first.shape))
        if outside[index]:
            shown.append(Difference(index, float(first[index]), float(second[index])))
    return (*(split or (None, None)), tuple(shown))
