"""PF308: an operator of ONNX Runtime's own domain that the target does not know."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.operators.other_traits import OTHERS
from padfix.operators.table import CONTRIB
from padfix.rules.base import Site
from padfix.rules.build.contrib_forms import PLAINLY, SINCE, WITHOUT_FORM, why_not_plain, written_plainly
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Objection, Operators, worst_objection
from padfix.rules.build.quantized_window import quantizers_around
from padfix.rules.build.target_rule import TargetRule


class ForeignOperator(TargetRule):
    """An operator of ONNX Runtime's own (com.microsoft) that the target refuses, or computes otherwise.

    ONNX Runtime writes such operators when it saves a model that it has optimised: a convolution with its activation, a
    product with a factor, an activation that was several nodes. Few others know them. Some that do read another
    operator of that name: OpenVINO takes averages of bytes without their scales.

    padfix writes what the operator is: a convolution, what is added to it, and the activation behind it; a product of
    transposed matrices; Gelu in its forms by their formulas; a norm of a sum; a pool between two Transposes; a pool of
    the numbers that bytes stand for. What a rule has to say of these is asked after that.

    Refused: further outputs that something reads, averages of bytes whose channels come last, and operators that are
    none of these.

    Before, opset 17, for opencv:

        main (float[1,3,8,8] X, float[4,3,1,1] W) => (float[1,4,8,8] Y) {
          Y = com.microsoft.FusedConv <activation = "Relu", kernel_shape = [1, 1]> (X, W)
        }

    After:

        conv = Conv <kernel_shape = [1, 1]> (X, W)
        Y = Relu (conv)

    References:

    - The operators of ONNX Runtime: <https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md>
    """

    code = "PF308"
    name = "foreign-operator"
    operators = frozenset((CONTRIB, op_type) for op_type in (*PLAINLY, *WITHOUT_FORM))
    example_target = "opencv"

    def objection(self, site: Site) -> Objection | None:
        """Return the worst thing that the target has against the operator."""
        return worst_objection(site.target, f"{CONTRIB}.{site.node.op_type}", site.opset, {})

    def forms(self, site: Site) -> Iterator[Form]:
        """Yield the operator as what it is."""
        op_type = site.node.op_type
        if op_type not in PLAINLY:
            return
        # Other parts are for the rules about these to judge: what is wrong with a Conv is mended there.
        operators: Operators = ()
        if op_type.startswith("QLinear"):
            operators = quantizers_around(site)
        elif op_type == "GridSample":
            operators = ((op_type, OTHERS[op_type](site.scope, site.node)),)
        opset = SINCE.get(op_type, 1)
        yield Form("operators of ONNX", operators, lambda: written_plainly(site), why_not_plain(site), opset)
