"""The TensorFlow witness: runs the original, under the names of the ONNX model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from padfix.process import watch
from padfix.process.deadline import Overdue

if TYPE_CHECKING:
    from padfix.proof.executors import TensorSpec
    from padfix.proof.inner import InnerExecutor

Runner = Callable[[Mapping[str, npt.NDArray[Any]]], Mapping[str, Any]]
"""Takes arrays by public input name and returns arrays by public output name."""


class TensorFlowExecutor:
    """Runs the loaded signature, the graph in a session, or the Keras model.

    Attributes:
        name: ``"tensorflow"``.
        inputs: Name, element type and shape of each input, in the model's order.
        outputs: Names of the outputs, in the model's order.
        inner: Runs pieces of it; None where that can't be.
        fresh_runner: Makes a runner in another interpreter, for what may crash; None where every run is apart.
        draws: Its operators that draw random numbers, wherever they stand.
    """

    name = "tensorflow"

    def __init__(
        self,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[str],
        runner: Runner,
        inner: InnerExecutor | None = None,
        fresh_runner: Callable[[], Runner] | None = None,
        draws: Sequence[str] = (),
    ) -> None:
        self.draws = draws
        self.inner = inner
        self.fresh_runner = fresh_runner
        self.inputs: list[TensorSpec] = list(inputs)
        self.outputs: list[str] = list(outputs)
        self._runner = runner

    def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Return the outputs by name.

        Raises:
            ExecutionFailed: TensorFlow can't run this.
        """
        from padfix.sources.tensorflow_runtime import quiet

        with told(), quiet(), watch.doing("TensorFlow, running the original,"):
            results = self._runner(feeds)
        return {name: np.asarray(results[name]) for name in self.outputs}


@contextlib.contextmanager
def told(beginning: str = "") -> Iterator[None]:
    """Turn what TensorFlow raises into the error of the proof, with a beginning."""
    from padfix.proof.executors import ExecutionFailed
    from padfix.sources.tensorflow_runtime import first_line

    try:
        yield
    except ExecutionFailed:
        raise
    except Exception as error:  # TensorFlow raises its own errors, and TypeError and ValueError as well
        overdue = isinstance(error, Overdue)
        raise ExecutionFailed(f"{beginning}{first_line(error)}", overdue=overdue) from error


def lengths_of(shape: Any) -> tuple[int | None, ...] | None:
    """Return a ``TensorShape`` as lengths, None for a free one; None for an unknown rank."""
    return None if shape.rank is None else tuple(shape.as_list())


def element_type(dtype: Any) -> int:
    """Return the ``TensorProto.DataType`` of a TensorFlow dtype; 0 when ONNX has none."""
    if dtype.name == "string":
        return int(TensorProto.STRING)
    try:
        return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype.as_numpy_dtype)))
    except (KeyError, TypeError, ValueError):
        return 0
