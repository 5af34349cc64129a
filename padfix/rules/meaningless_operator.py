"""PF110: an operator that no runtime can give a meaning to."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.reading import read_attributes_of, why_meaningless
from padfix.operators.table import PADDED
from padfix.operators.written import PADDING_MODES
from padfix.results import Severity
from padfix.rules.base import Correction, ScopeRule, Site
from padfix.targets import Target


class MeaninglessOperator(ScopeRule):
    """An operator can't have a meaning: it has the wrong number of inputs, or attributes that contradict its data.

    Reported are operators of ONNX with fewer or more inputs than the specification gives them, or without one that it
    requires; and convolutions, pools and resizes with

    - an input of another rank than the kernel, the weights or the scales are for;
    - a kernel, strides or dilations below 1, negative pads, or lists of a wrong length;
    - no kernel at all, a group below 1, scales of 0 and less, or an `auto_pad` that does not exist (convolutions and
      pools with the latter have PF104).

    No runtime loads such a model, so `padfix convert` does not write one: it ends with exit code 2, as it does for a
    file that is no model. Correct what made the file.

    References:

    - The ONNX specification of the operators: <https://onnx.ai/onnx/operators/>
    """

    code = "PF110"
    name = "meaningless-operator"
    severity = Severity.ERROR
    fixable = False

    def examine(self, scope: Scope, target: Target) -> Iterator[Correction]:
        """Yield one finding for each node without a meaning; nothing corrects it."""
        for index, node in enumerate(scope.nodes):
            reason = why_meaningless(scope, node)
            if reason and not _has_unknown_mode(scope, node):
                hint = "No runtime can run it; export the model again."
                yield Correction(self.finding(Site(scope, index, node), reason, hint))


def _has_unknown_mode(scope: Scope, node: NodeProto) -> bool:
    """Whether PF104 reports the node's ``auto_pad``."""
    if (normal_domain(node.domain), node.op_type) not in PADDED:
        return False
    written = read_attributes_of(scope, node)
    return written.auto_pad is not None and written.auto_pad not in PADDING_MODES
