"""What the versions of ONNX say of an operator."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from onnx import defs

from padfix.graph.scopes import DEFAULT_DOMAIN

DRAWS = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
"""Operators that draw other random numbers in every run."""


@lru_cache(maxsize=4096)
def schema(op_type: str, opset: int) -> Any:
    """Return what an opset of the default domain says of an operator, or None where it has none."""
    try:
        return defs.get_schema(op_type, opset, DEFAULT_DOMAIN)
    except defs.SchemaError:
        return None


def has_definition(schema: Any) -> bool:
    """Whether an operator is defined by others, always or for the inputs of a node."""
    return bool(schema.has_function or schema.has_context_dependent_function)
