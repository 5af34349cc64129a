"""PF302: an opset above the highest that the target takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from padfix.graph.scopes import DEFAULT_DOMAIN, Scope, all_nodes, label, normal_domain
from padfix.operators.schemas import has_definition, schema
from padfix.results import Finding
from padfix.rules.base import Correction, ScopeRule
from padfix.targets import Target


class OpsetTooNew(ScopeRule):
    """The model, or one of its functions, is written for a newer opset than the target takes.

    An importer that does not know an opset refuses the model, or reads its operators as the newest that it knows. Only
    targets with a ceiling have an objection (`padfix targets NAME` prints it); ONNX itself has none.

    padfix moves the whole model down to the ceiling, once nothing else is left to rewrite. Most operators only gained
    types, and stay as they are. What became an input is an attribute again where it is constant (the `axes` of a
    reduction), what may be left out is left out, and amounts of listed axes (Pad, Resize) become those of all axes. An
    operator that the older opset lacks (Gelu, GroupNormalization, Mish, RMSNormalization) is written as ONNX defines it
    by others, with all worked out that is constant. Each node is proven on its own, also one that stays as it is, in
    bodies and functions too.

    Refused: what the older opset can't say, such as a type that came later, a reduction along axes that are known at
    run time only, or an operator that nothing defines (Col2Im). The reason names the node, and nothing is moved at all.

    Before, opset 18, for portable:

        main (float[1,3,8,8] X) => (float[1,3,1,1] Y) {
          axes = Constant <value: tensor = int64[2] {2, 3}> ()
          Y = ReduceMean (X, axes)
        }

    After, opset 17:

        Y = ReduceMean <axes = [2, 3]> (X)

    References:

    - The versions of the operators: <https://github.com/onnx/onnx/blob/main/docs/Versioning.md>
    - What changed from version to version: <https://github.com/onnx/onnx/blob/main/docs/Changelog.md>
    """

    code = "PF302"
    name = "opset-too-new"
    opt_in: ClassVar[Mapping[str, Any]] = {}
    example_target = "portable"

    def examine(self, scope: Scope, target: Target) -> Iterator[Correction]:
        """Yield the finding of a graph or function above the ceiling; bodies are moved with what is around them."""
        ceiling = target.maximum_opset
        if scope.parent is not None or ceiling is None or scope.opset <= ceiling:
            return
        finding = self.scope_finding(
            scope,
            "opset_import",
            f"The opset is {scope.opset}; the target {target.name} takes {ceiling} at most.",
            f"padfix convert --target {target.name} moves it down to opset {ceiling}, if that can say what it says.",
        )
        yield Correction(_as_it_can_be(finding, scope, ceiling), opset=ceiling, lowers=True)


def _as_it_can_be(finding: Finding, scope: Scope, ceiling: int) -> Finding:
    """Return the finding, not fixable where an operator of the scope has no counterpart at the ceiling."""
    for index, node in enumerate(all_nodes(scope.nodes)):
        if normal_domain(node.domain) != DEFAULT_DOMAIN or not _is_lost(node.op_type, scope.opset, ceiling):
            continue
        hint = (
            f"Export the model at opset {ceiling} or below: {node.op_type} {label(node, index)!r} is in no opset up to "
            f"{ceiling}, and no other operators define it."
        )
        return dataclasses.replace(finding, fixable=False, hint=hint)
    return finding


def _is_lost(op_type: str, opset: int, ceiling: int) -> bool:
    """Whether the lower opset neither has the operator nor what defines it."""
    own = schema(op_type, opset)
    return own is not None and schema(op_type, ceiling) is None and not has_definition(own)
