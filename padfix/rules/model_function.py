"""PF307: a function of the model's own, for a target that knows no such functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from onnx import FunctionProto

from padfix.graph.scopes import Scope
from padfix.rules.base import Correction, ScopeRule
from padfix.rules.build.objections import worst_objection
from padfix.targets import FUNCTION, Target


class ModelFunction(ScopeRule):
    """The model calls a function that it defines itself, and the target reads no functions.

    Exporters keep the modules of a network as functions. Most importers look up the operator of each node by its name,
    and refuse a name that is not among their own, whatever the model says of it.

    padfix puts the nodes of the function in the place of each call, with the attributes that the call gives, before it
    looks at anything else: lengths and constants that calls hand over are known there, so that pads and resizes are
    written out for each.

    Refused: a function that is written for another opset than the model.

    Before, opset 17, for openvino:

        main (float[1,3,8,8] X) => (float[1,3,1,1] Y) {
          rows = local.Mean (X)
          Y = local.Mean (rows)
        }
        <domain: "local", opset_import: ["" : 17]>
        Mean (data) => (means) {
          mean = ReduceMean <axes = [-1]> (data)
          means = Transpose <perm = [0, 1, 3, 2]> (mean)
        }

    After:

        mean = ReduceMean <axes = [-1]> (X)
        rows = Transpose <perm = [0, 1, 3, 2]> (mean)
        mean_2 = ReduceMean <axes = [-1]> (rows)
        Y = Transpose <perm = [0, 1, 3, 2]> (mean_2)

    References:

    - Functions in the ONNX specification: <https://github.com/onnx/onnx/blob/main/docs/IR.md>
    """

    code = "PF307"
    name = "model-function"
    example_target = "openvino"

    def has_a_say(self, target: Target) -> bool:
        """Whether the target is known to read no functions."""
        return target.knows_of(FUNCTION)

    def examine(self, scope: Scope, target: Target) -> Iterator[Correction]:
        """Yield the finding of a function that the target does not read."""
        function = scope.container
        if scope.parent is not None or not isinstance(function, FunctionProto):
            return
        objection = worst_objection(target, FUNCTION, scope.opset, {})
        if objection is not None:
            hint = f"padfix convert --target {target.name} puts its nodes in the place of its calls."
            says = f"The model defines {function.name!r} itself. {objection.sentence(target, FUNCTION)}"
            found = self.scope_finding(scope, function.name, says, hint)
            yield Correction(dataclasses.replace(found, severity=objection.severity), inlines=True)
