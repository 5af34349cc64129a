"""Whether a deployment runtime computes what an ONNX file means, and which nodes it gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from padfix.config.options import PathArgument, VerifyOptions
from padfix.errors import NotEquivalent, OutputError, UsageError
from padfix.results import RuntimeVerdict

if TYPE_CHECKING:
    from padfix.proof.executors import Executor
    from padfix.proof.runtime_nodes import Repro
    from padfix.runtimes.adapter import Runtime


def verify_on(
    model: PathArgument,
    runtime: str,
    *,
    original: PathArgument | None = None,
    keep_repro: PathArgument | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> RuntimeVerdict:
    """Run an ONNX model on a deployment runtime and hold its outputs against what the model means.

    All nodes are run on the right values of what they read as well, many at a time, and where the model goes wrong its
    beginnings, which names the nodes that the runtime computes otherwise.

    Args:
        model: An ONNX file.
        runtime: A name of :func:`padfix.runtimes.names`.
        original: The model, of any kind, whose numbers are right; None for ``model`` itself, as ONNX Runtime runs it
            without optimisations.
        keep_repro: A folder for a tiny model, its data and a script for each node that the runtime gets wrong.
        progress: Called with a short sentence at each stage.
        options: The fields of :class:`VerifyOptions`, by name. ``rtol`` is a share of an output's largest magnitude.

    Raises:
        UsageError: There is no such runtime, or the data don't fit.
        ProofUnavailableError: The runtime is not installed, or the reference can't run the model.
        OutputError: The folder can't be written.
        SourceError: The file can't be read as ONNX.
    """
    from padfix.proof.witnesses import candidates_of, executor_of, witness_name
    from padfix.sources import SourceOptions, detect, open_source

    wanted = VerifyOptions(**options)
    path, first = Path(model), Path(model if original is None else original)
    if detect(path) != "onnx":
        raise UsageError(f"{path} is not ONNX, which is what runtimes are given.", "Convert it first: padfix convert.")
    opened = open_source(path, SourceOptions(shapes=wanted.pinned, trust=wanted.trust))
    meant = opened if original is None else open_source(first, SourceOptions.told(wanted))
    judge = executor_of(meant, meant.model, first, witness_name(wanted.reference, meant))
    result = judge
    if original is not None:
        in_runtime = partial(executor_of, meant, meant.model, meant.model.path, "onnxruntime")
        (result, *_), _ = candidates_of(path, judge.name, stand_in=in_runtime)
    return run_on(runtime, judge, result, path, wanted, keep_repro=keep_repro, progress=progress)


def run_on(
    name: str,
    judge: Executor,
    result: Executor,
    path: Path,
    wanted: VerifyOptions,
    *,
    rewritten: bool = False,
    keep_repro: PathArgument | None = None,
    progress: Callable[[str], None] | None = None,
) -> RuntimeVerdict:
    """Return what the runtime called ``name`` makes of the ONNX file at ``path``.

    Args:
        name: Of the runtime.
        judge: Says which numbers are right.
        result: Runs the file itself; the judge, where that is the file.
        path: The file.
        wanted: How to prove.
        rewritten: Whether the file is what the judge runs, rewritten node by node.
        keep_repro: As in :func:`verify_on`, like the next.
        progress: Likewise.

    Raises:
        PadfixError: As in :func:`verify_on`.
    """
    from padfix.files.model import Model
    from padfix.proof.on_runtime import prove_on
    from padfix.proof.witnesses import how_to_prove
    from padfix.proof.work import allow_work
    from padfix.runtimes.adapter import open_runtime

    found = open_runtime(name)
    graph = getattr(result, "skeleton", None)
    work = allow_work(graph) if isinstance(graph, Model) else 0
    told = how_to_prove(wanted, judge, work)
    try:
        verdict, repros = prove_on(found, judge, result, path, **told, rewritten=rewritten, progress=progress)
    finally:
        found.close()
    if keep_repro is not None:
        _keep(Path(keep_repro), found, repros)
    return verdict


def require_agreement(verdict: RuntimeVerdict) -> None:
    """Raise :class:`NotEquivalent` where a runtime does not compute what it should."""
    if not verdict.agrees:
        said = f"{verdict.runtime} does not compute what the result means: {verdict.summary}."
        name = verdict.runtime.partition(" ")[0]
        hint = f"Without --prove-on it is written, and padfix verify OUT --on {name} --keep-repro DIR keeps the node."
        raise NotEquivalent(f"{said} {verdict.first_node}".rstrip(), f"Nothing was written. {hint}")


def _keep(folder: Path, runtime: Runtime, repros: Sequence[Repro]) -> None:
    from padfix.runtimes.repro import write_repro

    for number, repro in enumerate(repros, 1):
        title = f"{runtime.label} and {repro.found.op_type}: what it computes and what the specification says."
        place = folder / f"{number:03}-{repro.found.op_type}"
        try:
            write_repro(place, runtime, title, repro.model, repro.feeds, repro.expected, place=repro.place)
        except OSError as error:
            raise OutputError(f"{place} can't be written: {error.strerror or error}.") from error
