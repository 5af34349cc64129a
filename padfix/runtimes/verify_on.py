"""Whether a deployment runtime computes what an ONNX file means, and which nodes it gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path

from padfix.results import RuntimeVerdict


def verify_on(
    model: str | PathLike[str],
    runtime: str,
    *,
    reference: str = "onnxruntime",
    shapes: Mapping[str, Sequence[int]] | None = None,
    probes: Sequence[str | PathLike[str]] = (),
    seed: int = 0,
    keep_repro: str | PathLike[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> RuntimeVerdict:
    """Run an ONNX model on a deployment runtime and hold its outputs against what the model means.

    Where an output disagrees, every node is run by itself on the right values of what it reads, which names those that
    the runtime computes otherwise.

    Args:
        model: An ONNX file.
        runtime: A name of :func:`padfix.runtimes.names`.
        reference: Who says what is meant: ``"onnxruntime"`` without optimisations, or ``"spec"``.
        shapes: Fixed shapes of inputs.
        probes: Files of data, in place of made ones.
        seed: Of made data.
        keep_repro: A folder for a tiny model, its data and a script for each node that the runtime gets wrong.
        progress: Called with a short sentence at each stage.

    Raises:
        UsageError: There is no such runtime, or the data don't fit.
        ProofUnavailableError: The runtime is not installed, or the reference can't run the model.
        OutputError: The folder can't be written.
        SourceError: The file can't be read as ONNX.
    """
    from padfix.errors import OutputError
    from padfix.proof.on_runtime import prove_on
    from padfix.runtimes.adapter import open_runtime
    from padfix.runtimes.repro import write_repro
    from padfix.sources.onnx_file import open_onnx

    open_onnx(Path(model))  # which says what is wrong with a file better than a runtime does
    found = open_runtime(runtime)
    try:
        verdict, repros = prove_on(
            found, Path(model), reference, shapes=shapes, probes=map(Path, probes), seed=seed, progress=progress
        )
    finally:
        found.close()
    if keep_repro is None:
        return verdict
    for number, repro in enumerate(repros, 1):
        title = f"{found.label} and {repro.found.op_type}: what it computes and what the specification says."
        folder = Path(keep_repro) / f"{number:03}-{repro.found.op_type}"
        try:
            write_repro(folder, found, title, repro.model, repro.feeds, repro.expected, place=repro.place)
        except OSError as error:
            raise OutputError(f"{folder} can't be written: {error.strerror or error}.") from error
    return verdict
