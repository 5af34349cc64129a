"""The public functions: check, convert, verify and inspect. The command line is a thin layer over them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from padfix.errors import NotEquivalent, PadfixError, ProofUnavailableError, UsageError
from padfix.process import watch
from padfix.results import Certificate, CheckReport, ConvertReport, Finding, OpRecord, OutputDifference, Verdict

if TYPE_CHECKING:
    from padfix.files.model import Model
    from padfix.proof.executors import Executor
    from padfix.proof.matching import InputMatch
    from padfix.proof.probes import Probe
    from padfix.rewrite.engine import Rewriting
    from padfix.sources import Source

PathArgument = str | PathLike[str]
Progress = Callable[[str], None]
Shapes = Mapping[str, Sequence[int]]

REFERENCES = ("auto", "onnxruntime", "spec", "tensorflow")
TARGETS = ("onnx",)


def check(
    source: PathArgument,
    *,
    target: str = "onnx",
    select: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
) -> CheckReport:
    """Say what is implicit, legacy or unsafe in an ONNX file; needs neither TensorFlow nor the weights.

    Args:
        source: An ONNX file.
        target: The runtime to judge by.
        select: Rule codes, families (``"PF1"``) or names to keep; None keeps all. PF106, which is no problem in ONNX
            itself, is reported only when it is named here.
        ignore: Rule codes, families or names to leave out.

    Raises:
        SourceError: The file can't be read as ONNX.
        UsageError: ``select``, ``ignore`` or ``target`` names something that does not exist.
    """
    from padfix.graph.shapes import infer
    from padfix.rewrite.engine import findings
    from padfix.rules.base import RewriteOptions
    from padfix.sources.onnx_file import open_onnx

    _known_target(target)
    wanted = _rule_filter(select, ignore)
    model = open_onnx(Path(source))
    scopes = infer(model)
    found = [finding for finding in findings(scopes) if wanted(finding)]
    if select is not None and not {"PF106", "asymmetric-padding"}.isdisjoint(select):
        style = RewriteOptions(pads="node")
        found += [each for each in findings(scopes, options=style) if each.rule == "PF106" and wanted(each)]
    return CheckReport(str(source), target, found)


def convert(
    source: PathArgument,
    output: PathArgument,
    *,
    opset: int | None = None,
    target: str = "onnx",
    pads: str = "attribute",
    shapes: Shapes | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    constants: Mapping[str, object] | None = None,
    signature: str | None = None,
    tag: str | Sequence[str] | None = None,
    reference: str = "auto",
    probes: Sequence[PathArgument] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    verify: bool = True,
    external_data: bool = False,
    in_place: bool = False,
    backup: bool = True,
    certificate: bool = False,
    layers: bool = False,
    trust: bool = False,
    progress: Progress | None = None,
) -> ConvertReport:
    """Make every pad and resize of a model explicit, prove that nothing changed, and only then write it.

    Args:
        source: SavedModel folder, frozen graph, Keras file, TensorFlow Lite file or ONNX file.
        output: The ONNX file to write; appears whole or not at all.
        opset: Lowest default-domain opset of the result.
        target: The runtime to write for.
        pads: ``"attribute"`` writes pads into the operators; ``"node"`` writes those that differ between the two
            sides of an axis as a Pad before the operator (a Slice behind ConvTranspose).
        shapes: Input shapes to fix, by input name.
        inputs: Names of the inputs of a frozen graph, when those found are not the right ones.
        outputs: Names of the outputs of a frozen graph.
        constants: Values to fix inputs of a TensorFlow source to, by name: ``{"is_training": False}``. They are no
            inputs of the result.
        signature: Signature of a SavedModel or a TensorFlow Lite file.
        tag: Tag set of a SavedModel.
        reference: Who runs the original: ``"onnxruntime"``, ``"spec"``, ``"tensorflow"``, or ``"auto"`` for
            TensorFlow when the source is TensorFlow's and ONNX Runtime when it is ONNX.
        probes: ``.npz`` and ``.npy`` files, images, and folders of these to prove on, beside the generated data.
        rtol: Allowed difference as a fraction of the output's range; None for the documented defaults.
        atol: Allowed absolute difference, added to it.
        seed: Seed of the generated inputs.
        verify: False writes without the whole proof, and the report says so.
        external_data: Write the weights beside the model even when it is small.
        in_place: ``output`` is the source itself, an ONNX file, which is replaced; not touched when nothing changes.
        backup: With ``in_place``, keep the original beside it as ``<name>.bak`` (``.bak.1`` when that is taken).
        certificate: Whether the verdict is to name the files by their SHA-256, which means reading them whole. The
            output's metadata then bears the certificate's digest, unless it is equal to the source.
        layers: Whether the verdict is to say how far inner tensors are, which means running the models again.
        trust: Whether code that the source itself holds may run (Lambda layers), and files that it names be read and
            written. Only for sources that you would run as a program.
        progress: Called with a short sentence at each stage.

    Raises:
        NotEquivalent: The proof failed; nothing was written.
        ProofUnavailableError: The proof could not run.
        PadfixError: Any other trouble; see :mod:`padfix.errors`.
    """
    from padfix.checking.certificate import mark, with_output
    from padfix.files.sink import stage
    from padfix.rewrite.engine import rewrite_model
    from padfix.rules.base import PADS_STYLES, RewriteOptions
    from padfix.sources import SourceOptions, open_source

    _known_target(target)
    _known_reference(reference)
    if pads not in PADS_STYLES:
        raise UsageError(f"There is no way {pads!r} to write pads.", f"Ways: {', '.join(PADS_STYLES)}.")
    tell = progress or (lambda stage_name: None)
    tell("Reading the model")
    pinned = {name: tuple(shape) for name, shape in (shapes or {}).items()}
    tags = (tag,) if isinstance(tag, str) else tuple(tag or ())
    options = SourceOptions(
        inputs=tuple(inputs or ()),
        outputs=tuple(outputs or ()),
        constants=dict(constants or {}),
        signature=signature,
        tag=",".join(tags) or None,
        shapes=pinned,
        opset=opset,
        trust=trust,
    )
    opened = open_source(Path(source), options)
    if in_place:
        _only_replace_onnx(Path(source), Path(output), opened)
    witness = _witness_name(reference, opened)
    original = opened.model.copy()
    rewriting = rewrite_model(
        opened.model,
        opset=opset,
        shapes=pinned if opened.kind == "onnx" else None,
        prove=verify,
        options=RewriteOptions(pads=pads),
        progress=tell,
    )
    report = _report(source, output, opened, rewriting, target)
    written = None
    if certificate and verify:
        tell("Computing digests")
        files = _files_of(original, Path(source), opened)
        written = _certificate(files, (), probes, seed=seed, rtol=rtol, atol=atol)
        if opened.kind != "onnx" or rewriting.changed:
            mark(opened.model.proto, written)
    with stage(
        opened.model, Path(output), external_data=external_data, source=Path(source), replace_source=in_place
    ) as staged:
        if in_place and not staged.differs_from(Path(source)):
            verdict = _nothing_changed(witness)
            if written is not None:
                verdict = dataclasses.replace(verdict, certificate=with_output(written, staged.files))
            return dataclasses.replace(report, verdict=verdict, unchanged=True)
        if not verify:
            report.notes.append("Written without proof (--no-verify).")
            _note_backup(report, staged.commit(None, verified=False, backup=in_place and backup))
            return report
        if opened.kind == "onnx" and not rewriting.changed and not pinned:
            verdict = _nothing_changed(witness)
        else:
            _refuse_contradictions(rewriting, witness, report)
            tell("Proving the whole model")
            verdict = _prove_whole(
                original,
                opened,
                staged.path,
                witness,
                probes,
                pinned,
                contradicted=bool(rewriting.untouched_contradictions),
                rtol=rtol,
                atol=atol,
                seed=seed,
                layers=layers,
                progress=tell,
            )
        report = _with_verdict(report, verdict)
        if not verdict.equivalent:
            raise _not_equivalent(verdict, opened.faults() if witness == "tensorflow" else [], report)
        if written is not None:
            tell("Computing digests")
            verdict = dataclasses.replace(verdict, certificate=with_output(written, staged.files))
            report = _with_verdict(report, verdict)
        tell("Writing")
        _note_backup(report, staged.commit(verdict, verified=True, backup=in_place and backup))
    return report


def verify(
    a: PathArgument,
    b: PathArgument,
    *,
    reference: str = "auto",
    probes: Sequence[PathArgument] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    shapes: Shapes | None = None,
    locate: bool = False,
    certificate: bool = False,
    layers: bool = False,
    trust: bool = False,
    progress: Progress | None = None,
) -> Verdict:
    """Prove that two models agree: ``a`` is the reference, ``b`` the candidate; any two supported kinds.

    The arguments are those of :func:`convert`, and ``locate``: whether to look for the first tensor that differs, which
    the verdict then names as ``first_difference``; :func:`convert` always does. The verdict says no with ``equivalent``
    False; it does not raise.

    Raises:
        ProofUnavailableError: A model could not be run.
        PadfixError: A file could not be read.
    """
    from padfix.proof.whole import verify as prove_whole
    from padfix.proof.work import multiplications, result_bytes
    from padfix.sources import SourceOptions, open_source

    _known_reference(reference)
    tell = progress or (lambda stage_name: None)
    pinned = {name: tuple(shape) for name, shape in (shapes or {}).items()}
    options = SourceOptions(shapes=pinned, trust=trust)
    tell("Reading the models")
    first, second = open_source(Path(a), options), open_source(Path(b), options)
    for opened in (first, second):
        watch.allow_work(multiplications(opened.model), result_bytes(opened.model))
    witness = _witness_name(reference, first)
    judge = _executor_of(first, first.model, Path(a), witness)
    candidates = _candidates_of(second, Path(b))
    verdict = prove_whole(
        judge,
        candidates,
        probes=_load_probes(probes, judge),
        shapes=pinned or None,
        rtol=rtol,
        atol=atol,
        seed=seed,
        locate=locate,
        layers=layers,
        stand_in=lambda: _executor_of(first, first.model, first.model.path, "onnxruntime"),
        progress=tell,
    )
    if certificate:
        tell("Computing digests")
        files = _files_of(first.model, Path(a), first), _files_of(second.model, Path(b), second)
        made = _certificate(*files, probes, seed=seed, rtol=rtol, atol=atol)
        verdict = dataclasses.replace(verdict, certificate=made)
    return verdict


def inspect(source: PathArgument, *, trust: bool = False) -> list[OpRecord]:
    """List every windowed and resampling operator of a TensorFlow or ONNX file; ``trust`` as in :func:`convert`.

    Raises:
        PadfixError: The file could not be read.
    """
    from padfix.operators.inspection import inspect_path

    return inspect_path(Path(source), trust=trust)


def _only_replace_onnx(source: Path, output: Path, opened: Source) -> None:
    if opened.kind != "onnx":
        raise UsageError(f"{source} is not ONNX, so it can't be replaced by the result.", "Name an output.")
    if source.resolve() != output.resolve():
        raise UsageError("In place means that the output is the source.", "Leave one of the two out.")


def _nothing_changed(witness: str) -> Verdict:
    return Verdict(True, witness, (), ("Nothing was rewritten; the graph is the source's own.",))


def _note_backup(report: ConvertReport, kept: Path | None) -> None:
    if kept is not None:
        report.notes.append(f"The original is kept as {kept.name}.")


def _known_target(target: str) -> None:
    from padfix.config import suggestion

    if target not in TARGETS:
        raise UsageError(f"There is no target {target!r}.", suggestion(target, TARGETS, "Targets"))


def _known_reference(reference: str) -> None:
    if reference not in REFERENCES:
        raise UsageError(f"There is no reference {reference!r}.", f"References: {', '.join(REFERENCES)}.")


def check_rule_words(words: Sequence[str]) -> None:
    """Raise :class:`UsageError` for the first word that is not the code, family or name of a rule."""
    from padfix.config import suggestion
    from padfix.rules.registry import RULES

    for word in words:
        if not word or not any(rule.code.startswith(word) or rule.name == word for rule in RULES):
            known = [name for rule in RULES for name in (rule.code, rule.name)]
            raise UsageError(
                f"No rule is called {word!r}.", f"{suggestion(word, known)} A family is a prefix such as PF1."
            )


def _rule_filter(select: Sequence[str] | None, ignore: Sequence[str] | None) -> Callable[[Finding], bool]:
    from padfix.config import names_rule

    check_rule_words((*(select or ()), *(ignore or ())))

    def wanted(finding: Finding) -> bool:
        return (select is None or names_rule(finding, select)) and not names_rule(finding, ignore or ())

    return wanted


def _witness_name(reference: str, opened: Source) -> str:
    if reference == "auto":
        return "onnxruntime" if opened.executor is None else "tensorflow"
    if reference == "tensorflow" and opened.executor is None:
        raise UsageError(
            "TensorFlow can only be the reference of a TensorFlow or Keras source.",
            "Use --reference onnxruntime or --reference spec for an ONNX file.",
        )
    return reference


def _report(
    source: PathArgument, output: PathArgument, opened: Source, rewriting: Rewriting, target: str
) -> ConvertReport:
    from padfix.graph.scopes import normal_domain

    disagreements = [*rewriting.contradictions, *rewriting.untouched_contradictions]
    versions = [entry.version for entry in opened.model.proto.opset_import if not normal_domain(entry.domain)]
    return ConvertReport(
        source=str(source),
        output=str(output),
        source_kind=opened.kind,
        opset=versions[0] if versions else 1,
        target=target,
        rewrites=rewriting.rewrites,
        refusals=rewriting.refusals,
        notes=[*opened.notes, *rewriting.notes, *(each.sentence for each in disagreements)],
        disagreements=disagreements,
    )


def _with_verdict(report: ConvertReport, verdict: Verdict) -> ConvertReport:
    return dataclasses.replace(report, verdict=verdict)


def _files_of(model: Model, path: Path, opened: Source) -> list[Path]:
    """Return the files that a model comes from, the one that the user named first."""
    from padfix.files.sink import source_files

    if opened.kind != "onnx":
        return [path]
    files = source_files(model, None)
    return [path, *(file for file in files if not file.samefile(path))]


def _certificate(
    source: Sequence[Path],
    output: Sequence[Path],
    probes: Sequence[PathArgument] | None,
    *,
    seed: int,
    rtol: float | None,
    atol: float | None,
) -> Certificate:
    from padfix.checking.certificate import certify

    given = [Path(probe) for probe in probes or ()]
    return certify(source, output, seed=seed, probes=given, rtol=rtol, atol=atol)


def _refuse_contradictions(rewriting: Rewriting, witness: str, report: ConvertReport) -> None:
    """ONNX Runtime can't judge a model that it runs against the specification."""
    if witness != "onnxruntime" or not rewriting.contradictions:
        return
    listed = " ".join(each.sentence for each in rewriting.contradictions)
    raise ProofUnavailableError(
        f"ONNX Runtime can't be the judge of this model. {listed}",
        "Use --reference spec to hold the result against the ONNX specification instead. Nothing was written.",
        report,
    )


def _prove_whole(
    original: Model,
    opened: Source,
    candidate: Path,
    witness: str,
    probes: Sequence[PathArgument] | None,
    shapes: dict[str, tuple[int, ...]],
    *,
    contradicted: bool,
    rtol: float | None,
    atol: float | None,
    seed: int,
    layers: bool,
    progress: Progress,
) -> Verdict:
    from padfix.proof.probes import KINDS
    from padfix.proof.whole import verify as prove_whole
    from padfix.proof.work import FEW_KINDS, HEAVY, multiplications, result_bytes

    work = multiplications(original)
    watch.allow_work(work, result_bytes(original))
    candidates, notes = _candidates_of_result(candidate, witness, contradicted=contradicted)
    kinds: Sequence[str] = KINDS
    if work > HEAVY:
        kinds = FEW_KINDS
        few = f"A run takes {work:.1e} multiplications, so the whole was run on {len(kinds)} kinds of data"
        notes = (*notes, f"{few}; each rewrite was proven on {len(KINDS)} on its own.")
    judge = _executor_of(opened, original, original.path, witness)
    verdict = prove_whole(
        judge,
        candidates,
        probes=_load_probes(probes, judge),
        shapes=shapes or None,
        rtol=rtol,
        atol=atol,
        seed=seed,
        locate=True,
        layers=layers,
        rewritten=True,
        kinds=kinds,
        stand_in=lambda: _executor_of(opened, original, original.path, "onnxruntime"),
        progress=progress,
    )
    return dataclasses.replace(verdict, notes=(*notes, *verdict.notes))


def _candidates_of_result(path: Path, witness: str, *, contradicted: bool) -> tuple[list[Executor], tuple[str, ...]]:
    """Return who runs the result: ONNX Runtime, or the specification where ONNX Runtime has no kernel for it.

    The second only when the user asked for the specification as the reference; then also for a result with nodes that
    no rewrite touched and that ONNX Runtime runs against the specification (``contradicted``).
    """
    from padfix.proof.executors import ExecutionFailed, OnnxRuntimeExecutor, SpecExecutor

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
            if failure.unsupported:
                note = f"ONNX Runtime can't run the result ({failure}); the specification ran both models."
                try:
                    return [SpecExecutor(path)], (note,)
                except ExecutionFailed as refusal:
                    raise ProofUnavailableError(
                        f"Neither ONNX Runtime nor the specification can run the result: {failure}; {refusal}",
                        "Nothing was written. --no-verify writes it unproven.",
                    ) from refusal
    return _runtime_pair(path), ()


def _runtime_pair(path: Path) -> list[Executor]:
    from padfix.proof.executors import ExecutionFailed, OnnxRuntimeExecutor

    try:
        return [OnnxRuntimeExecutor(path, optimised=False), OnnxRuntimeExecutor(path, optimised=True)]
    except ExecutionFailed as failure:
        raise ProofUnavailableError(
            f"ONNX Runtime can't load the result: {failure}",
            "Nothing was written. If the model needs custom operators, --no-verify writes it unproven.",
        ) from failure


def _candidates_of(opened: Source, path: Path) -> list[Executor]:
    if opened.executor is not None:
        return [opened.executor()]
    return _runtime_pair(path)


def _executor_of(opened: Source, original: Model, path: Path | None, witness: str) -> Executor:
    from padfix.proof.executors import ExecutionFailed, OnnxRuntimeExecutor, SpecExecutor

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
            f"Use --reference {other}, or --no-verify to write without proof.",
        ) from failure


def _load_probes(
    paths: Sequence[PathArgument] | None, executor: Executor
) -> Callable[[Sequence[InputMatch]], Iterator[Probe]] | None:
    """Return a function that reads the user's data, file by file, under the names of ``executor``, the reference."""
    if not paths:
        return None
    from padfix.proof.executors import ExecutionFailed
    from padfix.proof.user_probes import given_probes

    try:
        inputs = executor.inputs
    except ExecutionFailed as failure:
        raise ProofUnavailableError(f"The model's inputs can't be fed: {failure}") from failure
    return lambda matches: given_probes([Path(path) for path in paths], inputs, matches)


def _not_equivalent(verdict: Verdict, faults: Sequence[str], report: ConvertReport) -> NotEquivalent:
    """Return the error for a failed proof; ``faults`` are sentences on where the reference contradicts itself."""
    difference = _difference_sentence(verdict)
    if not faults:
        return NotEquivalent(difference, "Nothing was written.", report)
    report.notes.extend(faults)
    return NotEquivalent(
        f"{' '.join(faults)} {difference}",
        "Nothing was written. The result follows the documentation: --reference spec proves it against that.",
        report,
    )


def _difference_sentence(verdict: Verdict) -> str:
    for run in verdict.runs:
        bad = [output for output in run.outputs if not output.equivalent]
        if bad:
            parts = ", ".join(f"{output.name} ({_how_far(output)})" for output in bad)
            return f"The result is not equal to the original on probe {run.probe!r} in {run.candidate}: {parts}."
    return "The result could not be shown to be equal to the original."


def _how_far(output: OutputDifference) -> str:
    return output.detail or f"differs by {output.max_abs_diff:.3g}, {output.tolerance:.3g} allowed"


__all__ = ["PadfixError", "check", "convert", "inspect", "verify"]
