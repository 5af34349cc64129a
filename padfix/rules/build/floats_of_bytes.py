"""The ways from bytes to floats that hold the same whole numbers, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from onnx import TensorProto, helper

from padfix.operators.quantizers import quantizer_traits
from padfix.rules.base import Site
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

Way = Literal["cast", "steps", "integers"]
"""By a Cast; by what quantizes or dequantizes in steps of 1; by a Cast to integers of 32 bits, and another one."""

WAYS: dict[Way, str] = {
    "cast": "numbers that a Cast makes of bytes, or bytes of them",
    "steps": "numbers in steps of 1, with the scale and the zero point apart",
    "integers": "numbers that Casts make of bytes by way of integers",
}

_OF_BYTES: Traits = {"elements": "byte", "unsigned": True, "changes-type": True, "changes-numbers": False}

TO_FLOATS: Operators = (("Cast", {**_OF_BYTES, "gives": "single"}),)
"""The Cast of bytes without a sign to floats."""

OF_INTEGERS: Operators = (
    ("Cast", {"elements": "integer", "numbers": "integer", "gives": "single", "changes-type": True}),
)
"""The Cast of integers of 32 bits to floats."""

BACK: Operators = (
    (
        "Cast",
        {
            "numbers": "single",
            "elements": "float",
            "unsigned": False,
            "gives": "integer",
            "changes-type": True,
            "changes-numbers": False,
        },
    ),
)
"""The Cast of floats to integers."""


def to_floats(site: Site, elem_type: int, way: Way) -> Operators:
    """Return what makes floats of bytes."""
    if way == "steps":
        return _in_steps(site, "DequantizeLinear")
    if elem_type == TensorProto.INT32:
        return OF_INTEGERS
    return TO_FLOATS if way == "cast" else (("Cast", {**_OF_BYTES, "gives": "integer"}), *OF_INTEGERS)


def back_to_bytes(site: Site, elem_type: int, way: Way) -> Operators:
    """Return what makes bytes of floats."""
    if way == "steps":
        return _in_steps(site, "QuantizeLinear")
    kind = {"gives-odd-integers": True, "gives-unsigned-bytes": elem_type == TensorProto.UINT8}
    return tuple((op_type, {**traits, **kind}) for op_type, traits in BACK)


_PLAIN = dict.fromkeys(
    """
    as-result blocked computed-scale in-other-steps leaves-floats-over lists-scales of-input saturates
    scales-by-open-axis
    """.split(),  # noqa: SIM905
    False,
)


def _in_steps(site: Site, op_type: str) -> Operators:
    """Return what quantizes or dequantizes in steps of 1, as facts tell it apart from the operator of the site."""
    told = {**_PLAIN, "zero-point-written": True, "zero-point-alike": True}
    return ((op_type, {**quantizer_traits(site.scope, site.node), **told}),)


def as_floats(builder: FragmentBuilder, value: Any, elem_type: int, way: Way) -> Any:
    """Return the numbers that bytes are, in floats."""
    if way == "steps":
        return builder.op("DequantizeLinear", [value, *_steps_of_one(builder, elem_type)])
    if way == "integers":
        value = builder.op("Cast", [value], {"to": TensorProto.INT32})
    return builder.op("Cast", [value], {"to": TensorProto.FLOAT})


def as_bytes(builder: FragmentBuilder, value: Any, elem_type: int, way: Way) -> Any:
    """Return whole numbers in floats, within the bounds of bytes, as bytes."""
    if way == "steps":
        return builder.op("QuantizeLinear", [value, *_steps_of_one(builder, elem_type)])
    return builder.op("Cast", [value], {"to": elem_type})


def _steps_of_one(builder: FragmentBuilder, elem_type: int) -> list[Any]:
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    return [builder.constant(np.ones((), np.float32), "step"), builder.constant(np.zeros((), dtype), "from_zero")]
