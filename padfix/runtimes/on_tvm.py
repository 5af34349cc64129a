"""TVM's Relax, compiled for the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from padfix.runtimes.adapter import Request


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    def run(request: Request) -> list[Any]:
        shapes = {name: list(array.shape) for name, array in request.feeds.items()}
        model = onnx.load_from_string(request.model)
        in_order = [request.feeds[each.name] for each in model.graph.input if each.name in request.feeds]
        module = from_onnx(model, shape_dict=shapes, keep_params_in_input=False)
        module = relax.transform.DecomposeOpsForInference()(module)
        machine = relax.VirtualMachine(tvm.compile(module, tvm.target.Target("llvm")), tvm.cpu())
        found = machine["main"](*(tvm.runtime.tensor(array) for array in in_order))
        return [each.numpy() for each in ([found] if hasattr(found, "numpy") else found)]

    return run
