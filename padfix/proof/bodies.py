"""Bodies of If, Loop and Scan that no probe ran, each judged as if it were what the model does.

A branch that is never taken hides whatever is in it, and it may want other sizes than the probes have. So its nodes
take the place of the If in both models, and these are proven equal like any two models, on all data and at all sizes
that the original takes then. What a Loop or Scan does is what one turn of it does. Of TensorFlow's the branches of a
condition are judged, as the functions that they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from onnx import GraphProto, ModelProto

from padfix.errors import PadfixError
from padfix.graph.scopes import FunctionKey, all_nodes, bodies_of, call_key, function_key
from padfix.proof.cases import Cases
from padfix.proof.cut import part_of
from padfix.proof.executors import ExecutionFailed, Executor
from padfix.proof.graph_view import NodeView
from padfix.proof.probes import Probe
from padfix.proof.settings import Settings
from padfix.proof.sides import OnnxSide, TensorFlowSide
from padfix.proof.spec_executor import inlined
from padfix.proof.stretches import Judged, Outcome, Stretch
from padfix.proof.unfolding import GOES_ON, unfolded
from padfix.results import Verdict

MOST_BODIES = 40
"""Bodies that are judged; each costs what the proof of a model does."""

SEARCH_SECONDS = 2.0
"""How long to look for a size at which the original runs a body."""

_PREFIX = "\N{BULLET}"
"""In front of the names of a body whose nodes stand outside of it."""

_UNSEEN = "No probe ran"

_STEERING = {"If": 1, "Loop": 2, "Scan": 0}
"""Operators with bodies, and how many of their inputs say whether one runs."""

_OTHER_BRANCH = {"then_branch": "else_branch", "else_branch": "then_branch"}

Prove = Callable[..., Verdict]
"""Proves two models equal: :func:`padfix.proof.whole.verify`, told all but the models and their outputs."""


@dataclass(frozen=True)
class _Body:
    """A body of a node, and the body of the candidate's node that should be its equal."""

    node: NodeView
    attribute: str
    twin: NodeView | None
    partner: str

    @property
    def words(self) -> str:
        if not self.attribute:
            return f"the functions called for {self.node.op_type} {self.node.name!r}"
        if self.attribute in _OTHER_BRANCH:
            return f"the {self.attribute.removesuffix('_branch')} branch of If {self.node.name!r}"
        return f"the body of {self.node.op_type} {self.node.name!r}"


class Bodies:
    """The bodies of two models that the probes leave unproven.

    Args:
        cases: The stretches between the models.
        probes: The data that these were judged on.
        is_open: Whether some size of an input is.
        settings: How the proof is to go.
    """

    def __init__(self, cases: Cases, probes: Sequence[Probe], is_open: bool, settings: Settings) -> None:
        self._cases, self._stretches = cases, cases.stretches
        self._probes, self._is_open, self._settings = probes, is_open, settings

    def judge(self, outcome: Outcome, prove: Prove) -> list[str]:
        """Note in ``outcome`` the first stretch with a body that differs, or the bodies that could not be judged.

        A rewritten body was proven by itself, and where the user says what is to be judged by, that is all.

        Returns:
            What is to be said of what was not compared.
        """
        settings = self._settings
        is_told = settings.probes_only or settings.rtol is not None or settings.atol is not None
        first, second = self._stretches.sides
        if outcome.wrong or is_told or not isinstance(second, OnnxSide):
            return []
        is_onnx = isinstance(first, OnnxSide)
        if is_onnx and settings.rewritten:
            return []
        nodes = {node.index: node for each in outcome.judged for node in _steered(each.stretch.nodes)}.values()
        known = settings.known_bodies.union(*(node.outputs for node in nodes))
        prove = partial(prove, **{**vars(settings), "layers": False, "known_bodies": known, "search": SEARCH_SECONDS})
        unseen, said = list[str](), list[str]()
        asked = chain(self._called(outcome), self._asked(outcome, nodes)) if is_onnx else self._unseen(outcome)
        for count, (body, judged) in enumerate(asked):
            outputs = {each.stretch.name: each.stretch.partner for each in judged}
            # A condition on sizes alone may never hold, and tools leave out what it would choose.
            is_chosen = is_onnx and (not body.attribute or self._follows_from_numbers(0, body.node))
            is_judged = count < MOST_BODIES and (is_chosen or body.twin is not None)
            verdict = self._verdict(body, outputs, prove) if is_judged else None
            if verdict is None:
                is_owed = is_chosen and body.twin is not None and self._is_open
                (outcome.unproven if is_owed else unseen).append(body.words)
            elif not verdict.equivalent:
                _note(outcome, judged, verdict, body)
                return []
            else:
                said += [note for note in verdict.notes if note.startswith(_UNSEEN)]
        return _said(unseen) + said

    def _asked(self, outcome: Outcome, nodes: Iterable[NodeView]) -> Iterator[tuple[_Body, list[Judged]]]:
        """Yield the bodies to be judged, and the stretches that they are in."""
        for node in nodes:
            if self._settings.known_bodies.isdisjoint(node.outputs):
                judged = [each for each in outcome.judged if node in each.stretch.nodes]
                yield from ((body, judged) for body in self._unproven(node, judged[0].stretch))

    def _called(self, outcome: Outcome) -> Iterator[tuple[_Body, list[Judged]]]:
        """Yield a body for all functions with bodies, and the stretches that call any; it stands there inlined."""
        calls = set[FunctionKey]()
        for side in self._stretches.sides:
            functions = side.model.proto.functions if side.model is not None else ()
            if any(True for function in functions for node in all_nodes(function.node) for _ in bodies_of(node)):
                calls.update(map(function_key, functions))
        judged = [
            each
            for each in outcome.judged
            if any(
                node.proto is not None and call_key(node.proto) in calls
                for node in (*each.stretch.nodes, *each.stretch.candidate_nodes)
            )
        ]
        if judged:
            yield _Body(judged[0].stretch.nodes[-1], "", None, ""), judged

    def _unseen(self, outcome: Outcome) -> Iterator[tuple[_Body, list[Judged]]]:
        """Yield the candidate's bodies that were not run, where the original's are TensorFlow's, of the same name."""
        seen = set[int]()
        for each in outcome.judged:
            for node in _steered(each.stretch.candidate_nodes):
                if node.index in seen or each.stretch.name in self._cases.switched or not self._may_run(1, node):
                    continue
                seen.add(node.index)
                turns = self._turns(1, node)
                twin = next((one for one in each.stretch.nodes if one.name == node.name), None)
                judged = [one for one in outcome.judged if node in one.stretch.candidate_nodes]
                for attribute in _bodies(node):
                    if not _has_run(attribute, turns):
                        yield _Body(twin or node, attribute, node if twin else None, attribute), judged

    def _unproven(self, node: NodeView, stretch: Stretch) -> Iterator[_Body]:
        """Yield the bodies of a node that no probe ran, or in which there are others, unless they are the same."""
        places, twins = _steered(stretch.nodes), _steered(stretch.candidate_nodes)
        is_paired = [each.op_type for each in places] == [each.op_type for each in twins]
        twin = twins[places.index(node)] if is_paired else None
        ours = self._turns(0, node)
        theirs = self._turns(1, twin) if twin is not None else ours
        is_turned = node.op_type == "If" and theirs == [not each for each in ours]
        if theirs != ours and not is_turned:
            twin = None
        others = _bodies(twin) if twin is not None else {}
        for attribute, graph in _bodies(node).items():
            partner = _OTHER_BRANCH.get(attribute, attribute) if is_turned else attribute
            holds_others = any(True for inner in graph.node for _ in bodies_of(inner))
            has_run = _has_run(attribute, ours)
            is_asked = (holds_others and twin is not None) if has_run else self._may_run(0, node)
            if is_asked and not (partner in others and self._stretches.same_body(graph, others[partner])):
                yield _Body(node, attribute, twin, partner)

    def _turns(self, side: int, node: NodeView) -> list[bool]:
        """Return for each probe whether a node takes a turn; of an If, whether that is the first branch."""
        constants, model = self._cases.constants[side], self._stretches.sides[side]
        names = _steering(node)
        found = []
        for probe in self._probes:
            arrays = probe.arrays if side == 0 else self._stretches.translate(probe.arrays)
            computed = [name for name in names if name in model.view.producers]
            values = {**arrays, **(model.values(arrays, computed) if computed else {})}
            read = [values.get(name) if constants is None or name in values else constants.find(name) for name in names]
            found.append(all(array is None or bool((array > 0).all()) for array in read))
        return found

    def _may_run(self, side: int, node: NodeView) -> bool:
        """Whether other data may run a body that the probes did not: what follows from fixed sizes never changes."""
        if self._follows_from_numbers(side, node):
            return True
        view = self._stretches.sides[side].view
        return self._is_open and not view.needed(_steering(node)).isdisjoint(view.inputs)

    def _follows_from_numbers(self, side: int, node: NodeView) -> bool:
        return any(map(self._stretches.sides[side].view.follows_from_numbers, _steering(node)))

    def _verdict(self, body: _Body, outputs: Mapping[str, str], prove: Prove) -> Verdict | None:
        """Return what the proof of a body says; None where nothing could be said."""
        first, second = self._stretches.sides
        assert isinstance(second, OnnxSide)
        names = dict(outputs)
        if body.node.op_type == "Loop" and body.twin is not None:
            names[body.node.outputs[0] + GOES_ON] = body.twin.outputs[0] + GOES_ON
        theirs = _model_of(second, names.values(), body.twin, body.partner)
        try:
            ours: Executor
            if isinstance(first, OnnxSide):
                ours = first.load(_model_of(first, names.keys(), body.node, body.attribute), optimised=False)
            else:
                assert isinstance(first, TensorFlowSide)
                ours = first.with_branch(body.node.name, body.attribute, tuple(names))
            made = [partial(second.load, theirs, optimised=level) for level in self._cases.levels]
            return prove(ours, made, output_names=names)
        except (ExecutionFailed, PadfixError):
            return None


def _steered(nodes: Iterable[NodeView]) -> list[NodeView]:
    return [each for each in nodes if each.op_type in _STEERING and each.is_standard]


def _has_run(attribute: str, turns: Sequence[bool]) -> bool:
    return not all(turns) if attribute == "else_branch" else any(turns)


def _said(unseen: Iterable[str]) -> list[str]:
    listed = ", ".join(unseen)
    return [f"{_UNSEEN} {listed}; what is in there was not compared."] if listed else []


def _steering(node: NodeView) -> list[str]:
    return [name for name in node.inputs[: _STEERING[node.op_type]] if name]


def _bodies(node: NodeView) -> dict[str, GraphProto]:
    assert node.proto is not None
    return dict(bodies_of(node.proto))


def _model_of(side: OnnxSide, outputs: Iterable[str], node: NodeView | None, attribute: str) -> ModelProto:
    """Return what computes tensors of a model, with one turn of a body in place of its node; all inputs stay."""
    model = side.model.proto if attribute else inlined(side.model.proto)
    whole = (
        model
        if node is None or not attribute
        else unfolded(model, next(filter(None, node.outputs)), attribute, _PREFIX)
    )
    part = part_of(whole, list(outputs))
    held = {value.name for value in (*part.graph.input, *model.graph.initializer)}
    part.graph.input.extend(value for value in model.graph.input if value.name not in held)
    return part


def _note(outcome: Outcome, judged: Sequence[Judged], verdict: Verdict, body: _Body) -> None:
    """Note the first stretch that a body makes another one."""
    failed = next(run for run in verdict.runs if not run.equivalent)
    worst = next(each for each in failed.outputs if not each.equivalent)
    wrong = next((each for each in judged if each.stretch.name == worst.name), judged[0])
    said = f": {worst.detail}" if worst.detail else ""
    data = failed.probe if failed.probe.endswith(" data") else f"{failed.probe} data"
    words = f"in {body.words}, run by itself on {data}, as no probe ran all of it{said}"
    wrong.difference = replace(worst, name=wrong.stretch.name, detail=words)
    wrong.data, wrong.own = data, True
    outcome.wrong = [wrong]
