"""Lengths that a user gives to a model's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import ModelProto

from padfix.errors import UsageError


def fix_input_shapes(proto: ModelProto, shapes: Mapping[str, Sequence[int]]) -> None:
    """Write ``shapes`` into the inputs of the main graph, in place.

    A length below 1 leaves its axis as it is. A symbolic dimension that gets a number gets it in every input.

    Raises:
        UsageError: A name is no input, its rank is another, or a length contradicts the one that the model fixes.
    """
    weights = {tensor.name for tensor in proto.graph.initializer}
    inputs = {value.name: value for value in proto.graph.input}
    symbols: dict[str, int] = {}
    for name, shape in shapes.items():
        if name not in inputs:
            names = ", ".join(sorted(set(inputs) - weights)) or "none"
            raise UsageError(f"The model has no input {name!r}.", f"Its inputs are: {names}.")
        value = inputs[name]
        if not value.type.HasField("tensor_type"):
            raise UsageError(f"The input {name!r} is not a tensor, so it has no shape to fix.")
        tensor = value.type.tensor_type
        if not tensor.HasField("shape"):
            for _ in shape:
                tensor.shape.dim.add()
        if len(tensor.shape.dim) != len(shape):
            raise UsageError(
                f"The input {name!r} has {len(tensor.shape.dim)} axes, but {len(shape)} lengths were given."
            )
        for axis, (dimension, length) in enumerate(zip(tensor.shape.dim, shape, strict=True)):
            if length < 1:
                continue
            if dimension.HasField("dim_value") and dimension.dim_value not in (length, -1):
                raise UsageError(
                    f"Axis {axis} of the input {name!r} is fixed to {dimension.dim_value} in the model, "
                    f"but {length} was given."
                )
            symbol = dimension.dim_param if dimension.HasField("dim_param") else ""
            if symbol and symbols.setdefault(symbol, length) != length:
                raise UsageError(
                    f"The dimension {symbol!r} was given two lengths, {symbols[symbol]} and {length}.",
                    "Axes that share a symbol have the same length.",
                )
            dimension.dim_value = length
    for value in inputs.values():
        for dimension in value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ():
            if dimension.HasField("dim_param") and dimension.dim_param in symbols:
                dimension.dim_value = symbols[dimension.dim_param]
