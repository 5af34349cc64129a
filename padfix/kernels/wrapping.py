"""Kernels, which are plain functions, as operators of onnx.reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx.reference.op_run import OpRun

WINDOW = ("kernel_shape", "strides", "dilations", "pads", "auto_pad")
CONVOLUTION = (*WINDOW, "group")


def chosen(attributes: dict[str, Any], *names: str) -> dict[str, Any]:
    """Keep the attributes of these names that have a value; onnx.reference passes None for absent ones."""
    return {name: attributes[name] for name in names if attributes.get(name) is not None}


def operator(
    name: str, kernel: Callable[..., Any], *names: str, domain: str = "", base: type[OpRun] = OpRun
) -> type[OpRun]:
    """Return the operator ``name`` of one output: ``kernel``, given all inputs and the attributes called ``names``."""

    def run(self: OpRun, *inputs: Any, **attributes: Any) -> tuple[Any]:
        return (kernel(*inputs, **chosen(attributes, *names)),)

    return type(name, (base,), {"op_domain": domain, "_run": run})
