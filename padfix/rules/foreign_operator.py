"""PF308: an operator of ONNX Runtime's own domain that the target does not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import TensorProto

from padfix.graph import attributes
from padfix.operators.clip import BOUNDS_AS_INPUT_SINCE
from padfix.operators.other_traits import OTHERS
from padfix.operators.table import CONTRIB
from padfix.rules.base import Site
from padfix.rules.build.contrib_forms import (
    PLAINLY,
    SINCE,
    TWO_BYTES_SINCE,
    WITHOUT_FORM,
    why_not_plain,
    written_plainly,
)
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Objection, Operators, worst_objection
from padfix.rules.build.quantized_window import quantizers_around
from padfix.rules.build.rounded_forms import WAYS_TO_ROUND
from padfix.rules.build.target_rule import TargetRule
from padfix.targets.traits import Traits

_BITS: Mapping[int, str] = {4: "half-bytes", 8: "bytes"}


class ForeignOperator(TargetRule):
    """An operator of ONNX Runtime's own (com.microsoft) that the target refuses, or computes otherwise.

    ONNX Runtime writes such operators when it saves a model that it has optimised: a convolution with its activation, a
    product with a factor, an activation that was several nodes. Few others know them. Some that do read another
    operator of that name: OpenVINO takes averages of bytes without their scales.

    padfix writes what the operator is: a convolution, what is added to it, and the activation behind it; a product of
    transposed matrices, with what weights of a few bits stand for, or of bytes with a factor; Gelu in its forms by
    their formulas; a norm of a sum, or of the rows of words, places and segments; the attention of the heads, with its
    masks, as products and a Softmax; pairs that are turned by tables; a pool between two Transposes; a pool of the
    numbers that bytes stand for; the operator of ONNX that means the same. What a rule has to say of these is asked
    after that.

    Refused: further outputs that something reads, averages of bytes whose channels come last, attention to what came
    before, products that make bytes of their data by the way, and operators that are none of these.

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
        return worst_objection(site.target, f"{CONTRIB}.{site.node.op_type}", site.opset, _traits(site))

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
        opset = max(SINCE.get(op_type, 1), TWO_BYTES_SINCE if _traits(site).get("quantized-to") == "two-bytes" else 1)
        yield Form("operators of ONNX", operators, lambda: written_plainly(site), why_not_plain(site), opset)
        # The rules for its quantizers write these.
        for way, rounding in WAYS_TO_ROUND.items() if op_type.startswith("QLinear") else ():
            least = max(opset, BOUNDS_AS_INPUT_SINCE)
            yield Form(f"operators of ONNX, {way}", rounding, lambda: written_plainly(site), why_not_plain(site), least)


def _traits(site: Site) -> Traits:
    """Return what numbers are kept as: of how many bits the weights are, or what is made of data."""
    if site.node.op_type == "MatMulNBits":
        return {"quantized-to": _BITS.get(attributes.integer(site.node, "bits", 4) or 4, "others")}
    if site.node.op_type in ("DequantizeLinear", "QuantizeLinear"):
        kept = site.elem_type(2 if site.node.op_type == "QuantizeLinear" else 0)
        return {"quantized-to": "two-bytes" if kept in (TensorProto.INT16, TensorProto.UINT16) else "bytes"}
    return {}
