"""A Cast of integers to fewer bits whose high bits are dropped before it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto, helper

from padfix.operators.integer_ranges import NARROW
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.index_forms import REST_SINCE
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

_OF_INTEGERS: Traits = {"numbers": "integer", "elements": "integer", "unsigned": False, "bytes": "none"}

_WITH_A_NUMBER: Traits = {**_OF_INTEGERS, "constants": "number", "inputs": 2, "type": "int32"}


def wrapped_forms(site: Site) -> Iterator[Form]:
    """Yield a Cast of what is left of a division by as many numbers as its type has, which all fit it.

    With a sign they are counted from the least one, so that the upper half becomes what is below 0.
    """
    own = traits_of(site.scope, site.node) or {}
    known = site.scope.type_of(site.node.output[0])
    ends = np.iinfo(helper.tensor_dtype_to_np_dtype(known.elem_type)) if known and own.get("wraps") else None
    is_narrow = site.elem_type(0) in NARROW
    holder = np.dtype(np.int32) if is_narrow else np.dtype(helper.tensor_dtype_to_np_dtype(site.elem_type(0)))

    def write() -> Rewrite:
        assert ends is not None
        builder = site.builder(max(site.opset, REST_SINCE))
        value = builder.input(site.input_name(0))
        if is_narrow:
            value = builder.op("Cast", [value], {"to": TensorProto.INT32})
        count = builder.constant(np.array(1 << ends.bits, holder), "count")
        value = builder.op("Mod", [value, count])
        if ends.min:
            half = builder.constant(np.array(1 << (ends.bits - 1), holder), "half")
            value = builder.op("Mod", [builder.op("Add", [value, half]), count])
            value = builder.op("Sub", [value, half])
        return Rewrite(builder.ending_in(copied(site.node), [value]), trials_of(site), exact=True)

    to_holder: Traits = {**own, "wraps": False, "gives": "integer", "gives-odd-integers": False}
    shifting: Operators = (("Add", _WITH_A_NUMBER), ("Sub", _WITH_A_NUMBER)) if ends is not None and ends.min else ()
    operators: Operators = (
        *([("Cast", {**to_holder, "gives-unsigned-bytes": False})] if is_narrow else []),
        ("Mod", {"cuts-off": False}),
        *shifting,
        ("Cast", {**own, **_OF_INTEGERS, "wraps": False}),
    )
    why_not = None if ends is not None else Refusal("all its numbers fit, or are no integers")
    yield Form("the low bits of its numbers", operators, write, why_not, REST_SINCE)
