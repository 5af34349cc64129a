"""PF309: branches, of which one is sure to be taken or both can be run, and counted turns, where a target has none."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial

from onnx import NodeProto

from padfix.graph.placed_bodies import put_all_in_place, put_in_place
from padfix.graph.scopes import Scope, bodies_of, label
from padfix.operators.both_branches import both_can_run
from padfix.operators.decided_bodies import Decided, decided_body
from padfix.operators.traits import traits_of
from padfix.rules.base import Correction, ScopeRule
from padfix.rules.build.objections import Objection, worst_objection
from padfix.rules.build.scan_forms import counts_from_end_alone
from padfix.targets import Target

_HOLDERS = ("If", "Loop", "Scan", "SequenceMap")


class DecidedBody(ScopeRule):
    """An If, Loop or Scan that the target refuses, where what it runs is known beforehand or both branches can be.

    Exporters write an If wherever a program asks for a length or a number of axes, as PyTorch's squeeze does, and a
    Loop for what is to be done three times; tf2onnx one for each layer over time, which goes on by a count of its own.
    With fixed lengths (`--shape`) there is nothing left to decide.

    padfix puts the nodes of the branch that is taken in the place of the If, and those of all turns, one after the
    other, in the place of a Loop, Scan or SequenceMap, before it looks at anything else. The branch that is not taken
    goes, and so does what only led to it. Where data decide, both branches take the place of the If, and a Where
    chooses among their results: they cost the time of both.

    Refused: what data decide where branches give other shapes, or might fail for data that the If keeps from them
    (places and lengths that are computed, whole numbers that are divided by 0); turns that data end; more than 2,000
    nodes; and what stands in a function.

    Before, opset 17, for tract:

        main (float[1,3,1] X) => (float[Z] Y) {
          two = Constant <value_int = 2> ()
          on = Constant <value: tensor = bool {1}> ()
          twice = Loop (two, on, X) <body = turn (int64 i, bool c, float[1,3,1] A) => (bool c, float[1,3,1] B) {
            B = Relu (A)
          }>
          Y = Neg (twice)
        }

    After:

        Loop/B = Relu (X)
        twice = Relu (Loop/B)
        Y = Neg (twice)

    References:

    - The ONNX specification of If: <https://onnx.ai/onnx/operators/onnx__If.html>
    - The ONNX specification of Loop: <https://onnx.ai/onnx/operators/onnx__Loop.html>
    """

    code = "PF309"
    name = "decided-body"
    example_target = "tract"

    def has_a_say(self, target: Target) -> bool:
        """Whether the target is known to refuse operators with bodies."""
        return target.knows_of(*_HOLDERS)

    def examine(self, scope: Scope, target: Target) -> Iterator[Correction]:
        """Yield the finding of each node whose body can stand in its place, innermost last."""
        if not self.has_a_say(target):
            return
        for index, node in enumerate(scope.nodes):
            if node.op_type not in _HOLDERS:
                continue
            objection, decided = _decided(scope, node, target)
            if objection is None or _is_left_out(scope, target):
                continue
            output = next(filter(None, node.output), "")
            if decided is not None:
                apply, placed = partial(put_in_place, scope, output, decided.attribute, decided.turns), "what it runs"
            elif both_can_run(scope, node) and not _is_to_be_placed(scope, target):
                apply, placed = partial(put_all_in_place, scope, output), "both branches and a choice"
            else:
                continue
            hint = f"padfix convert --target {target.name} puts {placed} in its place."
            subject = label(node, index)
            found = self.scope_finding(scope, subject, objection.sentence(target, node.op_type), hint, node.op_type)
            yield Correction(dataclasses.replace(found, severity=objection.severity), apply, inlines=True)


def kept(scopes: Sequence[Scope], target: Target) -> list[Scope]:
    """Return the scopes, those around others first, without branches never taken of an If that goes for the target."""
    if not target.knows_of("If"):
        return list(scopes)
    found, left_out = list[Scope](), set[Scope]()
    for scope in scopes:
        if scope not in left_out and scope.parent not in left_out:
            found.append(scope)
            left_out.update(_left_out(scope, target))
        else:
            left_out.add(scope)
    return found


def _is_left_out(scope: Scope, target: Target) -> bool:
    """Whether a scope is such a branch, or lies in one."""
    parent = scope.parent
    return parent is not None and (scope in _left_out(parent, target) or _is_left_out(parent, target))


def _is_to_be_placed(scope: Scope, target: Target) -> bool:
    """Whether a scope is, or lies in, a body that takes the place of its holder: turns may decide what is data now."""
    if scope.parent is None:
        return False
    holder = next(node for node in scope.parent.nodes if any(graph is scope.container for _, graph in bodies_of(node)))
    objection, decided = _decided(scope.parent, holder, target)
    if objection is not None and (decided is not None or both_can_run(scope.parent, holder)):
        return True
    return _is_to_be_placed(scope.parent, target)


def _left_out(scope: Scope, target: Target) -> Iterator[Scope]:
    """Yield the branches of the nodes of a scope that are never taken."""
    bodies = iter(scope.bodies)
    for node in scope.nodes:
        held = [(attribute, body) for (attribute, _), body in zip(bodies_of(node), bodies, strict=False)]
        if not held or node.op_type != "If":
            continue
        objection, decided = _decided(scope, node, target)
        if objection is not None and decided is not None:
            yield from (body for attribute, body in held if attribute != decided.attribute)


def _decided(scope: Scope, node: NodeProto, target: Target) -> tuple[Objection | None, Decided | None]:
    """Return what the target has against a node that holds bodies, and, where it has something, which of them runs.

    Axes that are to be counted from the begin are left to be.
    """
    if counts_from_end_alone(scope, node, target):
        return None, None
    objection = worst_objection(target, node.op_type, scope.opset, traits_of(scope, node) or {})
    return objection, decided_body(scope, node) if objection is not None else None
