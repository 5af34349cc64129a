"""PF309: a branch that is sure to be taken, or turns that are counted, for a target that refuses what holds them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

from padfix.graph.placed_bodies import put_in_place
from padfix.graph.scopes import Scope, bodies_of, label
from padfix.operators.decided_bodies import decided_body
from padfix.operators.traits import traits_of
from padfix.rules.base import Correction, ScopeRule
from padfix.rules.build.objections import worst_objection
from padfix.targets import Target

_HOLDERS = ("If", "Loop", "Scan")


class DecidedBody(ScopeRule):
    """An If, Loop or Scan of which it is known beforehand what it runs and how often, and that the target refuses.

    Exporters write an If wherever a program asks for a length or a number of axes, as PyTorch's squeeze does, and a
    Loop for what is to be done three times. With fixed lengths (`--shape`) there is nothing left to decide.

    padfix puts the nodes of the branch that is taken in the place of the If, and those of all turns, one after the
    other, in the place of a Loop or Scan, before it looks at anything else. The branch that is not taken goes, and so
    does what only led to it.

    Refused: what data decide, turns that have more than 2,000 nodes together, and what stands in a function.

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
        return any(holder in fact.operators for fact in target.facts for holder in _HOLDERS)

    def examine(self, scope: Scope, target: Target) -> Iterator[Correction]:
        """Yield the finding of each node whose body can stand in its place, innermost last."""
        if not target.facts or is_left_out(scope, target):
            return
        for index, node in enumerate(scope.nodes):
            if node.op_type not in _HOLDERS:
                continue
            objection = worst_objection(target, node.op_type, scope.opset, traits_of(scope, node) or {})
            decided = decided_body(scope, node) if objection is not None else None
            if objection is None or decided is None:
                continue
            hint = f"padfix convert --target {target.name} puts what it runs in its place."
            subject = label(node, index)
            found = self.scope_finding(scope, subject, objection.sentence(target, node.op_type), hint, node.op_type)
            output = next(filter(None, node.output))
            apply = partial(put_in_place, scope, output, decided.attribute, decided.turns)
            yield Correction(dataclasses.replace(found, severity=objection.severity), apply, inlines=True)


def is_left_out(scope: Scope, target: Target) -> bool:
    """Whether a scope is the branch that is never taken of an If that goes because the target refuses it."""
    parent = scope.parent
    if parent is None:
        return False
    for node in parent.nodes:
        for attribute, graph in bodies_of(node):
            if graph is scope.container and node.op_type == "If":
                decided = decided_body(parent, node)
                is_other = decided is not None and decided.attribute != attribute
                if is_other and worst_objection(target, "If", scope.opset, traits_of(parent, node) or {}) is not None:
                    return True
    return is_left_out(parent, target)
