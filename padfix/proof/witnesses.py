"""Who runs the original and who runs the candidate, and what to say when one of them can't."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from padfix.config.options import VerifyOptions
from padfix.errors import ProofUnavailableError, UnusableResultError, UsageError
from padfix.files.model import Model
from padfix.proof.executors import Array, ExecutionFailed, Executor, OnnxRuntimeExecutor
from padfix.proof.matching import InputMatch
from padfix.proof.probes import Probe
from padfix.proof.spec_executor import SpecExecutor
from padfix.proof.user_probes import given_probes
from padfix.proof.work import patience, rows

REFERENCES = ("auto", "onnxruntime", "spec", "tensorflow")


class Opened(Protocol):
    """What is asked of an opened source: its kind of file, and who makes a runner in its own runtime, if any."""

    @property
    def kind(self) -> str: ...

    @property
    def executor(self) -> Callable[[], Executor] | None: ...


def witness_name(reference: str, opened: Opened) -> str:
    """Return which witness a reference means for a source.

    Raises:
        UsageError: TensorFlow can't run this kind of source.
    """
    if reference == "auto":
        return "onnxruntime" if opened.executor is None else "tensorflow"
    if reference == "tensorflow" and opened.executor is None:
        raise UsageError(
            "TensorFlow can only be the reference of a TensorFlow or Keras source.",
            "Use --reference onnxruntime or --reference spec for an ONNX file.",
        )
    return reference


def candidates_of(
    path: Path, witness: str, *, stand_in: Callable[[], Executor], contradicted: bool = False
) -> tuple[list[Executor], tuple[str, ...]]:
    """Return who runs the result: ONNX Runtime without and with its optimiser, or the specification where it can't.

    The second only when the user asked for the specification as the reference, and where ONNX Runtime has no kernel for
    the result or refuses the original as well (``stand_in`` loads that); then also for a result with nodes that no
    rewrite touched and that ONNX Runtime runs against the specification (``contradicted``).
    """
    if witness == "spec" and contradicted:
        note = (
            "ONNX Runtime runs nodes that no rewrite touched against the specification, so that the specification ran "
            "both models; ONNX Runtime ran each rewrite on its own."
        )
        return [SpecExecutor(path)], (note,)
    if witness == "spec":
        try:
            OnnxRuntimeExecutor(path, optimised=False)
        except ExecutionFailed as failure:
            if failure.unsupported or refuses(stand_in):
                return in_specification(path, f"ONNX Runtime can't run the result: {failure}")
    return _runtime_pair(path), ()


def in_specification(path: Path, why: str) -> tuple[list[Executor], tuple[str, ...]]:
    """Return the specification as what runs the result, with a note; ``why`` says why ONNX Runtime doesn't.

    Raises:
        ProofUnavailableError: It can't be loaded there either.
    """
    try:
        return [SpecExecutor(path)], (f"{why.rstrip('.')}. The specification ran both models.",)
    except ExecutionFailed as refusal:
        raise ProofUnavailableError(
            f"{why.rstrip('.')}. The specification can't run the result: {refusal}"
        ) from refusal


def refuses(made: Callable[[], Executor], data: Mapping[str, Array] | None = None) -> bool:
    """Whether an executor can't be made, or does not run on ``data``."""
    try:
        executor = made()
        if data is not None:
            executor.run(data)
    except (ExecutionFailed, ProofUnavailableError):
        return True
    return False


def _runtime_pair(path: Path) -> list[Executor]:
    try:
        plain = OnnxRuntimeExecutor(path, optimised=False)
        return [plain, plain.optimised_twin]
    except ExecutionFailed as failure:
        raise UnusableResultError(
            f"ONNX Runtime can't load the result: {failure}",
            "It has no kernel for all that the model needs." if failure.unsupported else "",
        ) from failure


def executor_of(opened: Opened, original: Model, path: Path | None, witness: str) -> Executor:
    """Return who runs the original.

    Raises:
        ProofUnavailableError: It can't be loaded.
    """
    if witness == "tensorflow":
        assert opened.executor is not None
        return opened.executor()
    model: Path | bytes = path if opened.kind == "onnx" and path is not None else original.proto.SerializeToString()
    try:
        return SpecExecutor(model) if witness == "spec" else OnnxRuntimeExecutor(model, optimised=False)
    except ExecutionFailed as failure:
        other = "onnxruntime" if witness == "spec" else "spec"
        raise ProofUnavailableError(
            f"The reference ({witness}) can't load the original: {failure}",
            f"Use --reference {other}.",
        ) from failure


def load_probes(
    paths: Sequence[str | PathLike[str]] | None, executor: Executor
) -> Callable[[Sequence[InputMatch]], Iterator[Probe]] | None:
    """Return a function that reads the user's data, file by file, under the names of ``executor``, the reference."""
    if not paths:
        return None
    try:
        inputs = executor.inputs
    except ExecutionFailed as failure:
        raise ProofUnavailableError(f"The model's inputs can't be fed: {failure}") from failure
    return lambda matches: given_probes([Path(path) for path in paths], inputs, matches)


def how_to_prove(options: VerifyOptions, judge: Executor, work: int) -> dict[str, Any]:
    """Return what the user said about the proof of a whole model, as its keyword arguments; a run is so much work."""
    names = ("rtol", "atol", "seed", "layers", "probes_only")
    told = {name: getattr(options, name) for name in names}
    for name in ("ranges", "usual_ranges"):
        told[name] = {key: (low, high) for key, (low, high) in (getattr(options, name) or {}).items()}
    told |= {"patience": patience(work), "rows": rows(work)}
    return {**told, "shapes": options.pinned or None, "probes": load_probes(options.probes, judge)}
