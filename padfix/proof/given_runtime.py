"""An ONNX file held against a deployment runtime: who says what is meant, on which data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import onnx

from padfix.errors import ProofUnavailableError, SourceError
from padfix.proof.executors import ExecutionFailed, OnnxRuntimeExecutor
from padfix.proof.on_runtime import DeploymentRuntime, Progress, Repro, verify_on
from padfix.proof.probes import with_shapes
from padfix.proof.spec_executor import SpecExecutor
from padfix.proof.user_probes import given_probes
from padfix.results.on_runtime import RuntimeVerdict


def prove_on(
    runtime: DeploymentRuntime,
    path: Path,
    reference: str,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    probes: Iterable[Path] = (),
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[RuntimeVerdict, list[Repro]]:
    """Return what the runtime makes of the file at ``path``; as :func:`padfix.proof.on_runtime.verify_on`.

    Raises:
        ProofUnavailableError: The reference can't run the model.
        SourceError: The weights can't be read, or the model is too large to be handed on whole.
        UsageError: ``shapes`` or the data don't fit the inputs.
    """
    try:
        whole = onnx.load(path)
        whole.SerializeToString()
    except (OSError, ValueError) as error:
        raise SourceError(f"{path} can't be handed to a runtime whole: {error}") from error
    try:
        executor = SpecExecutor(path) if reference == "spec" else OnnxRuntimeExecutor(path, optimised=False)
        inputs = with_shapes(executor.inputs, shapes)
        given = list(given_probes(probes, inputs))
        return verify_on(runtime, executor, whole, inputs, given=given, seed=seed, progress=progress)
    except ExecutionFailed as failure:
        other = "onnxruntime" if reference == "spec" else "spec"
        raise ProofUnavailableError(
            f"The reference ({reference}) can't run the model: {failure}", f"Use --reference {other}."
        ) from failure
