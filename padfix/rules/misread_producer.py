"""PF310: the name of the program that wrote the model, by which the target reads an operator otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

from padfix.graph.scopes import Scope
from padfix.operators.traits import traits_of
from padfix.rules.base import Correction, ScopeRule
from padfix.rules.build.objections import worst_objection
from padfix.targets import PRODUCER, Target


class MisreadProducer(ScopeRule):
    """The model says who wrote it, and the target takes its average pools for others because of that name.

    OpenCV takes the pads of every AveragePool into the average where `producer_name` is `pytorch`, as old versions of
    PyTorch meant it and did not say. Today's say it with `count_include_pad`, and are read wrongly where they don't
    count the pads.

    padfix adds its own name to the producer's, so that the operators are read for what they say. No operator changes.

    Refused: nothing.

    Before, opset 17, for opencv:

        main (float[1,3,8,8] X) => (float[1,3,8,8] Y) {
          Y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (X)
        }

    After:

        Y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (X)

    References:

    - The producer in the ONNX specification: <https://github.com/onnx/onnx/blob/main/docs/IR.md#models>
    """

    code = "PF310"
    name = "misread-producer"
    example_target = "opencv"

    def has_a_say(self, target: Target) -> bool:
        """Whether the target is known to read models by who wrote them."""
        return target.knows_of(PRODUCER)

    def examine(self, scope: Scope, target: Target) -> Iterator[Correction]:
        """Yield the finding of a model whose average pools are misread."""
        model = scope.model
        if model is None or not self.has_a_say(target):
            return
        said = {"written-by": "pytorch" if model.producer_name == "pytorch" else "others"}
        objection = worst_objection(target, PRODUCER, scope.opset, {**said, "averages-pads": _averages_pads(scope)})
        if objection is None:
            return
        says = f"The model says that {model.producer_name} wrote it. {objection.sentence(target, PRODUCER)}"
        hint = f"padfix convert --target {target.name} adds padfix to the name."
        found = self.scope_finding(scope, PRODUCER, says, hint)
        apply = partial(setattr, model, "producer_name", f"{model.producer_name}, padfix")
        yield Correction(dataclasses.replace(found, severity=objection.severity), apply)


def _averages_pads(scope: Scope) -> bool:
    """Whether there may be an AveragePool, here or in a body, with pads or with windows that reach beyond the data."""
    for node in scope.nodes:
        if node.op_type == "AveragePool":
            traits = traits_of(scope, node) or {}
            if traits.get("padding") != "none" or traits.get("rounds-up"):
                return True
    return any(map(_averages_pads, scope.bodies))
