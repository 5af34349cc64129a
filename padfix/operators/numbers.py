"""What kind of numbers data are, in the words that targets state their facts in."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto, helper

from padfix.graph.scopes import Scope

_FLOATS: Mapping[int, str] = {TensorProto.FLOAT16: "half", TensorProto.BFLOAT16: "half", TensorProto.DOUBLE: "double"}


def numbers_of(scope: Scope, name: str) -> str:
    """Return what kind of numbers data are; the usual floats where that is not known."""
    known = scope.type_of(name) if name else None
    elem_type = TensorProto.FLOAT if known is None else known.elem_type
    if elem_type == TensorProto.BOOL:
        return "boolean"
    return _FLOATS.get(elem_type, "single" if elements_of(elem_type) in (None, "float") else "integer")


def elements_of(elem_type: int | None) -> str | None:
    """Return what kind of numbers a type holds; integers of 8 bits are apart. None where it is not known."""
    if not elem_type:
        return None
    if elem_type in (TensorProto.INT8, TensorProto.UINT8):
        return "byte"
    return "integer" if np.dtype(helper.tensor_dtype_to_np_dtype(elem_type)).kind in "iu" else "float"
