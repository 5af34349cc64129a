"""What a session of ONNX Runtime takes and gives, in its own words and in those of ONNX."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from onnx import TensorProto

from padfix.graph.scopes import Dimension

RAW_TYPES = {
    TensorProto.BFLOAT16,
    TensorProto.FLOAT8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ,
    TensorProto.FLOAT8E5M2,
    TensorProto.FLOAT8E5M2FNUZ,
}
"""What NumPy holds through ml_dtypes and ONNX Runtime's Python API takes only as raw bytes."""


def elem_type_of(text: str) -> int | None:
    """Return the ``TensorProto.DataType`` of ONNX Runtime's ``"tensor(float)"``, or None for what is no tensor."""
    match = re.fullmatch(r"tensor\((\w+)\)", text)
    if match is None:
        return None
    name = match[1].upper()
    return dict(TensorProto.DataType.items()).get("FLOAT" if name == "FLOAT32" else name)


@dataclass(frozen=True)
class _Value:
    """An input or output as a session lists it."""

    name: str
    type: str
    shape: tuple[Dimension, ...]


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a session, without the session."""

    inputs: tuple[_Value, ...]
    outputs: tuple[_Value, ...]

    @classmethod
    def of(cls, session: Any) -> Signature:
        """Return those of an ``onnxruntime.InferenceSession``."""
        inputs, outputs = (
            tuple(_Value(each.name, each.type, tuple(each.shape)) for each in values)
            for values in (session.get_inputs(), session.get_outputs())
        )
        return cls(inputs, outputs)

    @property
    def raw(self) -> dict[str, int]:
        """The element types that only raw bytes can hold, by name."""
        types = ((value.name, elem_type_of(value.type)) for value in (*self.inputs, *self.outputs))
        return {name: elem_type for name, elem_type in types if elem_type in RAW_TYPES}
