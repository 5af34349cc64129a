"""PF302: an opset above the highest that the target takes."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.graph.scopes import Scope
from padfix.rules.base import Correction, ScopeRule
from padfix.targets import Target


class OpsetTooNew(ScopeRule):
    """The model, or one of its functions, is written for a newer opset than the target takes.

    An importer that does not know an opset refuses the model, or reads its operators as the newest that it knows. Only
    targets with a ceiling have an objection (`padfix targets NAME` prints it); ONNX itself has none.

    padfix reports this and does not lower an opset: newer operators mean what older ones can't say, and the place to
    choose is the export. A TensorFlow source is converted to an opset below the ceiling to begin with.

    References:

    - The versions of the operators: <https://github.com/onnx/onnx/blob/main/docs/Versioning.md>
    """

    code = "PF302"
    name = "opset-too-new"
    fixable = False

    def examine(self, scope: Scope, target: Target) -> Iterator[Correction]:
        """Yield the finding of a graph or function above the ceiling."""
        if scope.parent is None and target.maximum_opset is not None and scope.opset > target.maximum_opset:
            yield Correction(
                self.scope_finding(
                    scope,
                    "opset_import",
                    f"The opset is {scope.opset}; the target {target.name} takes {target.maximum_opset} at most.",
                    f"Export the model at opset {target.maximum_opset} or below; padfix never lowers an opset.",
                )
            )
