"""PF301: an opset below the least that the target takes, and what a move to a newer one has to edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from padfix.graph.scopes import DEFAULT_DOMAIN, Scope
from padfix.rules.base import Correction, ScopeRule
from padfix.targets import Target


class LegacyOpset(ScopeRule):
    """The model, or one of its functions, is written for an older opset than the target takes, or than a rewrite needs.

    Importers implement the operators of recent years; of older ones they know some, and take others for their newer
    namesakes, whose defaults may differ. No opset is too old for ONNX itself, so `check` reports one only for a target
    with a floor (`--target portable`), or when the rule is selected by its code or name.

    padfix moves the whole model: to the target's floor, to `--opset N`, or to what another rewrite needs (a Pad with
    computed amounts is as old as opset 11). Every operator whose meaning changes on the way is rewritten and proven on
    its own, in bodies and functions too, and reported under this rule. What loses its meaning on the way is rewritten
    before the move by the rule that knows it (PF201, PF202, PF203). Only a target's ceiling
    lowers an opset (PF302).

    Refused: an operator that has no equal in the newer opset, which the reason names; then nothing is moved at all.

    Before, opset 11:

        main (float[1,3,8,8] X) => (float[1,3,1,1] Y) {
          Y = ReduceSum <axes = [2, 3], keepdims = 1> (X)
        }

    After, opset 13:

        axes = Constant <value: tensor = int64[2] {2, 3}> ()
        Y = ReduceSum <keepdims = 1> (X, axes)

    References:

    - The versions of the operators: <https://github.com/onnx/onnx/blob/main/docs/Versioning.md>
    - What changed from version to version: <https://github.com/onnx/onnx/blob/main/docs/Changelog.md>
    """

    code = "PF301"
    name = "legacy-opset"
    opt_in: ClassVar[Mapping[str, Any]] = {"minimum_opset": 13}

    def examine(self, scope: Scope, target: Target) -> Iterator[Correction]:
        """Yield the move of a graph or function below the floor; bodies are moved with what is around them.

        What imports none of ONNX's own operators (a model of classical machine learning alone) has no opset to be old.
        """
        if scope.parent is None and DEFAULT_DOMAIN in scope.opsets and scope.opset < target.minimum_opset:
            floor = target.minimum_opset
            yield Correction(
                self.scope_finding(
                    scope,
                    "opset_import",
                    f"The opset is {scope.opset}; the target {target.name} takes {floor} and newer.",
                    f"padfix convert --target {target.name} moves it to opset {floor}.",
                ),
                opset=floor,
            )
