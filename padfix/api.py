"""The public functions: check, convert, verify and inspect. The command line is a thin layer over them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from padfix.config.options import ConvertOptions, PathArgument, VerifyOptions
from padfix.errors import (
    NotEquivalent,
    PadfixError,
    ProofUnavailableError,
    UnusableResultError,
    UsageError,
)
from padfix.results import CheckReport, ConvertReport, Failure, OpRecord, Verdict

if TYPE_CHECKING:
    from padfix.files.sink import Staged
    from padfix.files.urls import Url
    from padfix.proof.executors import Executor
    from padfix.rewrite.engine import Rewriting
    from padfix.sources import Source

Progress = Callable[[str], None]


def check(
    source: PathArgument | Url,
    *,
    target: str = "onnx",
    select: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    progress: Progress = lambda stage: None,
) -> CheckReport:
    """Say what is implicit, legacy or unsafe in an ONNX file; needs neither TensorFlow nor the weights.

    Args:
        source: An ONNX file, or its URL: any that fsspec knows; only the graph is fetched.
        target: What the model has to suit, by name.
        select: Rule codes, families (``"PF1"``) or names to keep; None keeps all. A rule that only some targets ask
            for (asymmetric pads, an old opset) is asked whatever the target when its code or name is here.
        ignore: Rule codes, families or names to leave out.
        progress: Called with a few words now and then.

    Raises:
        SourceError: The file can't be read as ONNX.
        UsageError: ``select``, ``ignore`` or ``target`` names something that does not exist.
    """
    (report,) = check_for(source, [target], select=select, ignore=ignore, progress=progress)
    return report


def check_for(
    source: PathArgument | Url,
    targets: Sequence[str],
    *,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    maps: bool = True,
    progress: Progress = lambda stage: None,
) -> list[CheckReport]:
    """Return what :func:`check` says for each of several targets, with maps or without; the file is read once."""
    from padfix.rewrite.examination import examine_file
    from padfix.rules.registry import require_known
    from padfix.targets import named

    wanted = [named(target) for target in targets]
    require_known((*(select or ()), *(ignore or ())))
    return examine_file(source, wanted, select=select, ignore=ignore, maps=maps, progress=progress)


def convert(
    source: PathArgument | Url, output: PathArgument | Url, *, progress: Progress | None = None, **options: Any
) -> ConvertReport:
    """Make every pad and resize of a model explicit, prove that nothing changed, and only then write it.

    Args:
        source: SavedModel folder, frozen graph, Keras file, TensorFlow Lite file or ONNX file; or its URL.
        output: The ONNX file to write, or its URL; appears whole or not at all.
        progress: Called with a short sentence at each stage.
        options: The fields of :class:`ConvertOptions`, by name.

    Raises:
        RefusedError: Something could not be rewritten; nothing was written (see ``partial``).
        NotEquivalent: The proof failed; nothing was written.
        ProofUnavailableError: The proof could not run.
        PadfixError: Any other trouble; see :mod:`padfix.errors`.
    """
    from padfix.files.stores.copies import local_copy, local_result, refuse_in_place
    from padfix.files.urls import placed

    tell = progress or (lambda stage: None)
    wanted, origin, place = ConvertOptions(**options), placed(source), placed(output)
    if wanted.in_place:
        refuse_in_place(origin, place)
    with local_result(place, [origin], tell) as (written, send), local_copy(origin, tell) as read:
        report = ConvertReport(str(origin), str(place), target=wanted.target)
        return _Conversion(read, written, wanted, tell, report, send).run()


def verify(a: PathArgument, b: PathArgument, *, progress: Progress | None = None, **options: Any) -> Verdict:
    """Prove that two models agree: ``a`` is the reference, ``b`` the candidate; any two supported kinds.

    The verdict says no with ``equivalent`` False; it does not raise.

    Args:
        a: The original.
        b: What should be equal to it.
        progress: Called with a short sentence at each stage.
        options: The fields of :class:`VerifyOptions`, by name.

    Raises:
        ProofUnavailableError: A model could not be run.
        PadfixError: A file could not be read.
    """
    from padfix.checking.certificate import certify
    from padfix.diagnose.place import describe
    from padfix.graph.overview import verdict_with_maps
    from padfix.proof.result import verify_result
    from padfix.proof.whole import verify as prove_whole
    from padfix.proof.witnesses import executor_of, how_to_prove, witness_name
    from padfix.proof.work import allow_work
    from padfix.sources import SourceOptions, detect, open_source

    wanted = VerifyOptions(**options)
    tell = progress or (lambda stage: None)
    tell("Reading the models")
    told, plain = SourceOptions.told(wanted), SourceOptions(shapes=wanted.pinned, trust=wanted.trust)
    kinds = [detect(Path(a)), detect(Path(b))]
    is_about_both = kinds[0] == kinds[1]
    first = open_source(Path(a), told if is_about_both or kinds[0] != "onnx" else plain)
    second = open_source(Path(b), told if is_about_both or kinds[0] == "onnx" else plain)
    work = max(allow_work(opened.model) for opened in (first, second))
    judge = executor_of(first, first.model, Path(a), witness_name(wanted.reference, first))
    how = {
        **how_to_prove(wanted, judge, work),
        "describe": describe if wanted.locate else None,
        "stand_in": lambda: executor_of(first, first.model, first.model.path, "onnxruntime"),
        "progress": tell,
    }
    other = second.executor
    verdict = verify_result(judge, Path(b), **how) if other is None else prove_whole(judge, [other()], **how)
    verdict = verdict_with_maps(verdict, first.model)
    if not wanted.certificate:
        return verdict
    tell("Computing digests")
    made = certify(first.files(Path(a)), second.files(Path(b)), wanted)
    return dataclasses.replace(verdict, certificate=made)


def inspect(
    source: PathArgument | Url,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    signature: str | None = None,
    tag: str | Sequence[str] | None = None,
    trust: bool = False,
    custom_objects: Mapping[str, object] | None = None,
) -> list[OpRecord]:
    """List every windowed and resampling operator of a TensorFlow or ONNX file.

    Args:
        source: The file, the folder of a SavedModel, or the URL of one.
        shapes: As in :func:`convert`, like the others.
        signature: Likewise; of a TensorFlow Lite file all subgraphs are listed.
        tag: Likewise.
        trust: Likewise.
        custom_objects: Likewise.

    Raises:
        PadfixError: The file could not be read.
    """
    from padfix.files.urls import placed
    from padfix.sources import SourceOptions
    from padfix.sources.inspection import inspect_source

    told = VerifyOptions(shapes=shapes, signature=signature, tag=tag, trust=trust, custom_objects=custom_objects)
    return inspect_source(placed(source), SourceOptions.told(told))


class _Conversion:
    """One conversion: the source is opened, its model rewritten, the result proven and put in place."""

    def __init__(
        self,
        source: Path,
        output: Path,
        options: ConvertOptions,
        tell: Progress,
        report: ConvertReport,
        send: Callable[[], None],
    ) -> None:
        self.source = source
        self.output = output
        self.options = options
        self.tell = tell
        self.report = report
        self.send = send  # what was put in place, to where it belongs

    def run(self) -> ConvertReport:
        """Return the report of a model that was written, or was what it should be already.

        An error bears the report as far as it got.
        """
        from padfix.graph.overview import conversion_with_maps

        try:
            self._run()
        except PadfixError as error:
            failure = Failure(error.message, error.hint, error.exit_code)
            self.report = dataclasses.replace(self.report, error=failure)
            error.report = conversion_with_maps(self.report, getattr(self, "original", None))
            raise
        return conversion_with_maps(self.report, self.original)

    def _run(self) -> None:
        from padfix.files.sink import place_of
        from padfix.proof.witnesses import witness_name

        place_of(self.output)  # before any work is done for a file that could not be written
        if self.options.prove_on:
            from padfix.runtimes import open_runtime

            for name in self.options.prove_on:
                open_runtime(name)  # or for a runtime that is not there
        self.opened = self._open()
        self.witness = witness_name(self.options.reference, self.opened)
        self._certify()
        try:
            self._convert()
        except (NotEquivalent, UnusableResultError) as failure:
            self._convert_otherwise(failure)

    def _convert_otherwise(self, failure: PadfixError) -> None:
        """Convert without the optimiser passes of the importer that break the model, or raise ``failure``.

        All are left out first, to see whether it is they; then each alone, so that no more is left out than has to be.
        """
        report, opened = self.report, self.opened
        if opened.without is None or opened.faults():
            raise failure
        for trial, left_out in enumerate((opened.passes, *zip(opened.passes), opened.passes)):
            self.tell("Converting with fewer optimiser passes")
            try:
                self.opened = opened.without(left_out)
                self._convert(place=trial > 0)
            except PadfixError:
                if trial == 0:
                    break
            else:
                if trial > 0:
                    return
        self.report = report
        raise failure

    def _convert(self, *, place: bool = True) -> None:
        """Rewrite what was opened, prove it, and put it in place unless it is only a trial."""
        from padfix.files.sink import stage
        from padfix.rewrite.remedy import require_all_rewritten

        self.original = self.opened.suited(self.options.wanted()).copy()
        self.rewriting = self._rewrite()
        self.report = self._report()
        if self.options.verify and self.opened.kind == "onnx":
            from padfix.rewrite.declared_outputs import restore_contradicted

            self.report.notes.extend(restore_contradicted(self.original, self.opened.model, self.options.pinned))
        if not self.options.partial:
            require_all_rewritten(self.report)
        self._mark()
        with stage(
            self.opened.model,
            self.output,
            external_data=self.options.external_data,
            source=self.source,
            replace_source=self.options.in_place,
        ) as staged:
            self._prove_and_place(staged, place=place)

    def _open(self) -> Source:
        from padfix.sources import SourceOptions, open_source

        options = self.options
        self.tell("Reading the model")
        opset = options.opset or options.wanted().maximum_opset
        opened = open_source(self.source, dataclasses.replace(SourceOptions.told(options), opset=opset))
        if options.in_place and opened.kind != "onnx":
            raise UsageError(f"{self.source} is not ONNX, so it can't be replaced by the result.", "Name an output.")
        if options.in_place and self.source.resolve() != self.output.resolve():
            raise UsageError("In place means that the output is the source.", "Leave one of the two out.")
        return opened

    def _rewrite(self) -> Rewriting:
        from padfix.rewrite.engine import rewrite_model

        return rewrite_model(
            self.opened.model,
            opset=self.options.opset,
            shapes=self.options.pinned if self.opened.kind == "onnx" else None,
            prove=self.options.verify,
            target=self.options.wanted(),
            progress=self.tell,
        )

    def _report(self) -> ConvertReport:
        from padfix.graph.scopes import normal_domain
        from padfix.operators.inspection import explicit_windows

        opened, rewriting = self.opened, self.rewriting
        disagreements = [*rewriting.contradictions, *rewriting.untouched_contradictions]
        versions = [entry.version for entry in opened.model.proto.opset_import if not normal_domain(entry.domain)]
        return dataclasses.replace(
            self.report,
            opset=versions[0] if versions else 1,
            rewrites=rewriting.rewrites,
            refusals=rewriting.refusals,
            notes=[*opened.notes, *rewriting.notes, *(each.sentence for each in disagreements)],
            disagreements=disagreements,
            windows=None if opened.kind == "onnx" else explicit_windows(opened.model),
        )

    def _certify(self) -> None:
        """Name the source in the report, where that is asked for."""
        from padfix.checking.certificate import certify

        self.report = dataclasses.replace(self.report, source_kind=self.opened.kind)
        if self.options.certificate:
            self.tell("Computing digests")
            made = certify(self.opened.files(self.source), (), self.options)
            self.report = dataclasses.replace(self.report, certificate=made)

    def _mark(self) -> None:
        """Let a result that is to be proven, and differs from its source, bear the certificate's digest."""
        from padfix.checking.certificate import mark

        made = self.report.certificate
        if made is not None and self.options.verify and (self.opened.kind != "onnx" or self.rewriting.changed):
            mark(self.opened.model.proto, made)

    def _prove_and_place(self, staged: Staged, *, place: bool) -> None:
        """Prove what is staged, unless it is the source byte for byte, and put it in place where that is asked for."""
        from padfix.checking.certificate import with_output

        options = self.options
        if self.report.certificate is not None:
            self.tell("Computing digests")
            named = with_output(self.report.certificate, staged.files)
            self.report = dataclasses.replace(self.report, certificate=named)
        verdict = None
        same = self.opened.kind == "onnx" and not self.rewriting.changed and not staged.differs_from(self.source)
        if same and (options.verify or options.in_place):
            verdict = Verdict(True, self.witness, (), ("Nothing was rewritten; the result is the source's own bytes.",))
        elif options.verify:
            verdict = self._prove(staged.path)
        else:
            self.report.notes.append("Written without proof (--no-verify).")
        if options.prove_on:
            self._prove_on_runtimes(staged.path, options.prove_on)
        unchanged = same and options.in_place
        self.report = dataclasses.replace(self.report, verdict=verdict, unchanged=unchanged)
        if unchanged or not place:
            return
        self.tell("Writing")
        kept = staged.commit(verdict, verified=options.verify, backup=options.in_place and options.backup)
        self.send()
        self.report = dataclasses.replace(self.report, written=True)
        if kept is not None:
            self.report.notes.append(f"The original is kept as {kept.name}.")

    def _prove(self, candidate: Path) -> Verdict:
        """Return the verdict that the staged model is equal to the original.

        Raises:
            NotEquivalent: It is not.
            ProofUnavailableError: It could not be told.
        """
        from padfix.rewrite.remedy import by_the_specification, no_judge, not_equivalent

        contradictions = self.rewriting.contradictions if self.witness == "onnxruntime" else []
        # Where it gives no number at all, as for what it divides by zero, it may yet judge the whole by all others.
        wrong = [each for each in contradictions if not each.refuses and not each.gives_none]
        if wrong:
            raise no_judge(wrong)
        self.tell("Proving the whole model")
        try:
            verdict = self._run_whole(candidate)
        except ProofUnavailableError as error:
            # A node that the runtime refuses on its own says nothing about a whole that it runs; this it does not run.
            if contradictions:
                raise no_judge(contradictions) from error
            error.hint = f"{error.hint} Nothing was written; --no-verify writes without proof.".strip()
            raise
        if not verdict.equivalent:
            self.report = dataclasses.replace(self.report, verdict=verdict)
            if any(each.gives_none for each in contradictions):
                self.witness = "spec"
                return by_the_specification(lambda: self._run_whole(candidate), contradictions, self.options.reference)
            faults = self.opened.faults() if self.witness == "tensorflow" else []
            self.report.notes.extend(faults)
            raise not_equivalent(verdict, self.witness, faults)
        return verdict

    def _prove_on_runtimes(self, candidate: Path, names: Sequence[str]) -> None:
        """Run the staged model on the runtimes that were asked for; raise where one does not compute what it should."""
        from padfix.proof.witnesses import candidates_of
        from padfix.runtimes.verify_on import require_agreement, run_on

        judge = self._executor(self.witness)
        candidates, _ = candidates_of(candidate, judge.name, **self._in_runtime())
        for name in names:
            verdict = run_on(name, judge, candidates[0], candidate, self.options, rewritten=True, progress=self.tell)
            self.report = dataclasses.replace(self.report, runtimes=(*self.report.runtimes, verdict))
            require_agreement(verdict)

    def _in_runtime(self) -> dict[str, Any]:
        """Return what is known of how ONNX Runtime runs the original."""
        contradicted = bool(self.rewriting.untouched_contradictions)
        return {"stand_in": partial(self._executor, "onnxruntime"), "contradicted": contradicted}

    def _executor(self, witness: str) -> Executor:
        from padfix.proof.witnesses import executor_of

        return executor_of(self.opened, self.original, self.original.path, witness)

    def _run_whole(self, candidate: Path) -> Verdict:
        from padfix.diagnose.place import describe
        from padfix.proof.probes import KINDS
        from padfix.proof.result import verify_result
        from padfix.proof.witnesses import how_to_prove
        from padfix.proof.work import FEW_KINDS, HEAVY, allow_work

        work = allow_work(self.original)
        judge = self._executor(self.witness)
        kinds: Sequence[str] = KINDS
        notes = []
        if work > HEAVY:
            kinds = FEW_KINDS
            few = f"A run takes {work:.1e} multiplications, so the whole was run on {len(kinds)} kinds of data"
            notes.append(f"{few}, not on all {len(KINDS)}.")
        told = {**how_to_prove(self.options, judge, work), **self._in_runtime(), "progress": self.tell}
        verdict = verify_result(judge, candidate, describe=describe, kinds=kinds, rewritten=True, **told)
        return dataclasses.replace(verdict, notes=(*notes, *verdict.notes))


__all__ = ["ConvertOptions", "PadfixError", "VerifyOptions", "check", "convert", "inspect", "verify"]
