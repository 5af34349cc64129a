"""What a user can do about a part of a TensorFlow source that has no ONNX form."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from padfix.errors import UnsupportedError
from padfix.files.detection import Kind
from padfix.sources.executor import element_type

Types = Mapping[str, tuple[Any, Sequence[int | None] | None]]
"""TensorFlow dtype and shape of each input by name; None for a free length, and for an unknown rank."""

_AROUND: Mapping[Kind, str] = {
    "frozen_graph": "Replace that part of the model, or name the tensors around it with --input and --output.",
    "saved_model": "Replace that part of the model, or export a signature that leaves it out and give padfix that.",
    "keras": "Replace that part of the model, or save a model of the layers without it.",
    "keras_h5": "Replace that part of the model, or save a model of the layers without it.",
}


def require_onnx_types(kind: Kind, types: Types) -> None:
    """Refuse inputs of types that no operator of ONNX computes with: handles of variables and lists, complex numbers.

    Raises:
        UnsupportedError: Naming the input.
    """
    for name, (dtype, _) in types.items():
        if dtype.is_complex:
            hint = "Let the model take the real and the imaginary parts as two inputs."
        elif not element_type(dtype):
            hint = _AROUND[kind]
        else:
            continue
        raise UnsupportedError(f"The input {name} is {_type_words(dtype)}, which no operator of ONNX reads.", hint)


def require_real(name: str, dtype: Any) -> None:
    """Refuse an output of complex numbers.

    Raises:
        UnsupportedError: Naming the output.
    """
    if dtype.is_complex:
        raise UnsupportedError(
            f"The output {name} is {_type_words(dtype)}, which no operator of ONNX gives.",
            "Let the model give the real and the imaginary parts as two outputs.",
        )


def _type_words(dtype: Any) -> str:
    meant = {"resource": "a variable, a table or the like", "variant": "a list, a data set or the like"}.get(dtype.name)
    return f"of TensorFlow's type {dtype.name}{f' ({meant})' if meant else ''}"


def hint_for(message: str, kind: Kind, types: Types, pinned: Container[str]) -> str:
    """Return what to do about a graph that can't be converted, for the reason in ``message``.

    Args:
        message: Why.
        kind: What the source is.
        types: Its inputs.
        pinned: Names of inputs whose shape the user fixed.
    """
    unranked = [name for name, (_, shape) in types.items() if shape is None and name not in pinned]
    switches = [name for name, (dtype, _) in types.items() if dtype.name == "bool"]
    decided = [name for name in switches if name in unranked] or unranked
    if "Merge" in message or "Switch" in message:
        decided = switches or decided
    if not decided:
        return _AROUND[kind]
    name = decided[0]
    fixed = f"--constant {name}=False (or True), if it is a switch"
    if name not in unranked:
        return f"Fix the input {name} with {fixed}."
    if name not in switches:
        fixed = f"--shape {name}=1,224,224,3, or with --constant {name}=VALUE if it is a switch"
    return f"The number of axes of the input {', '.join(unranked)} is not known: fix it with {fixed}."
