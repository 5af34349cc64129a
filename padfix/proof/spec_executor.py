"""Running a model by the specification."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

from padfix.files.skeleton import load_whole
from padfix.graph.scopes import all_nodes, call_key, function_key
from padfix.process import deadline, watch
from padfix.proof.executors import Array, ExecutionFailed, TensorSpec, flatten_outputs, required_inputs


class SpecExecutor:
    """The ONNX specification: onnx.reference, with padfix's own kernels for windowed and resampling operators.

    The model is a file, whose external data is read too, or serialized with all its weights.

    Raises:
        ExecutionFailed: The model can't be read, or holds an operator that has no reference implementation.
    """

    name = "spec"
    label = "spec"

    def __init__(self, model: Path | bytes) -> None:
        try:
            proto = onnx.load_from_string(model) if isinstance(model, bytes) else load_whole(model)
        except Exception as error:
            raise ExecutionFailed(f"The model can't be read: {_first_line(error)}") from None
        self._prepare(proto)

    @classmethod
    def of(cls, proto: ModelProto) -> SpecExecutor:
        """Return an executor of a model in memory, all its weights in it."""
        executor = cls.__new__(cls)
        executor._prepare(proto)
        return executor

    def _prepare(self, proto: ModelProto) -> None:
        self.proto = proto
        self.graph = proto.graph
        self._output_names = [output.name for output in proto.graph.output]
        try:
            from padfix.kernels.loop import Loop
            from padfix.kernels.reference_ops import SpecEvaluator

            Loop.before_iteration = staticmethod(deadline.require_time)
            self._evaluator = SpecEvaluator(inlined(proto))
        except Exception as error:
            raise ExecutionFailed(_first_line(error), unsupported=True) from None

    @cached_property
    def inputs(self) -> list[TensorSpec]:
        """The inputs that have to be fed.

        Raises:
            ExecutionFailed: An input is not a dense tensor.
        """
        return required_inputs(self.graph)

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs, in order."""
        return list(self._output_names)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model once; see :class:`Executor`."""
        return self.run_to(feeds, self._output_names)

    def run_to(self, feeds: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
        """Run the model once and return the tensors called ``names``, outputs or not.

        Raises:
            ExecutionFailed: An operator refused, or there is no such tensor.
        """
        missing = [spec.name for spec in self.inputs if spec.name not in feeds]
        if missing:
            raise ExecutionFailed(f"Input {missing[0]!r} is not given.")
        try:
            with (
                watch.doing(_SPEC_RUNS),
                deadline.stopping(lambda: None),
                warnings.catch_warnings(),
                np.errstate(all="ignore"),
            ):
                warnings.simplefilter("ignore")
                values = self._evaluator.run(list(names), dict(feeds))
        except deadline.Overdue as error:
            raise ExecutionFailed(str(error), overdue=True) from None
        except Exception as error:
            # Some of its operators say so by another error: a Scan that joins along another axis than the first one.
            is_lacking = isinstance(error, NotImplementedError) or "is not implemented for" in str(error)
            raise ExecutionFailed(_first_line(error), unsupported=is_lacking) from None
        return flatten_outputs(names, values)


def inlined(proto: ModelProto) -> ModelProto:
    """Return the model with its functions' bodies in place of their calls.

    onnx.reference knows no overloads, wants functions in the order of their calls, and fails on an attribute that a
    call leaves out. Functions that import another opset than the model are not inlined: it runs those at their own.
    """
    if not proto.functions:
        return proto
    from onnx import inliner

    copy = ModelProto.FromString(proto.SerializeToString())
    functions = {function_key(each): each for each in copy.functions}
    for nodes in (copy.graph.node, *(each.node for each in copy.functions)):
        for node in all_nodes(nodes):
            called = functions.get(call_key(node))
            if called is not None:  # the inliner forgets the defaults
                given = {each.name for each in node.attribute}
                node.attribute.extend(each for each in called.attribute_proto if each.name not in given)
    try:
        return inliner.inline_local_functions(copy, convert_version=False)
    except Exception:  # recursion, for one: the evaluator says what it thinks of it
        return proto


_SPEC_RUNS = "The specification (--reference spec), running a model,"


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    line = lines[0] if lines else "no message"
    return f"{type(error).__name__}: {line[:400]}"
