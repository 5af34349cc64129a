"""Whether a model fits into the machine at all, told from its shapes before anything runs."""

from __future__ import annotations

from onnx import TensorProto

from padfix.errors import ProofUnavailableError
from padfix.files.model import Model
from padfix.files.tensors import payload_size
from padfix.operators.inference import infer
from padfix.process import memory


def require_room(model: Model) -> None:
    """Make sure that no single result of the main graph is larger than all the memory that there is.

    Args:
        model: The model; its weights are not needed.

    Raises:
        ProofUnavailableError: One is; the model can't run here, whatever its runtime.
    """
    there = memory.total()
    if there is None:
        return
    scope = infer(model)[0]
    for node in scope.container.node:
        for name in node.output:
            known = scope.types.get(name)
            lengths = [each for each in known.shape or () if isinstance(each, int)] if known is not None else []
            if known is None or not lengths or max(lengths) >= 2**63:
                continue
            size = payload_size(TensorProto(data_type=known.elem_type, dims=lengths)) or 0
            if size / 2**20 > there:
                wanted = f"The tensor {name!r} alone takes {size / 2**30:,.0f} GiB"
                raise ProofUnavailableError(
                    f"{wanted}; this machine has {there / 1024:,.0f} GiB.",
                    "Nothing was written. Look whether its size is meant, or use a machine with more memory.",
                )
