"""The gate of ``check --require-proof``: whether a report proves this very file, and what it has to be for that.

A report of convert or verify is judged by its certificate: the result is this file, the source is another one or the
one that was pinned, and nothing was held against looser tolerances than the documented ones. Its digest is a checksum
against mistakes; a signature is what keeps a report from being made up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from padfix.checking import attestation
from padfix.checking.certificate import METADATA, digest
from padfix.errors import SourceError, UsageError
from padfix.files.containment import is_inner
from padfix.files.sink import source_files
from padfix.files.skeleton import read_model
from padfix.results import SCHEMA, FileDigest, ProofCheck
from padfix.results.certificate import checksum, digest_of

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")

_NOT_A_REPORT = "Write one with: padfix convert SOURCE -o OUT --report FILE.json"


@dataclass(frozen=True)
class Requirement:
    """What is required of a proof.

    Attributes:
        report: The JSON report, or the attestation made of it.
        source: File, folder or SHA-256 of what the model has to be proven against; None for anything but itself.
        allow_loose: Whether looser tolerances than the defaults will do, and the user's probes alone.
        key: The public key that has to have signed; None where no signature is asked for.
    """

    report: Path
    source: str | None = None
    allow_loose: bool = False
    key: Path | None = None

    def __post_init__(self) -> None:
        """Raise :class:`UsageError` for a source that is named by nothing, such as a variable that is not set."""
        if self.source is not None and not self.source.strip():
            raise UsageError("--proof-source is empty.", "Name a file, a folder or a SHA-256.")


@dataclass(frozen=True)
class _Proof:
    """What one report says, its parts told from each other.

    Attributes:
        verdict: Of the whole proof.
        certificate: Which files it is about.
        source: Those of the original.
        output: Those of the result.
        rewrote: Whether it is a conversion that rewrote something.
        kept: Whether it is a conversion that found nothing to rewrite.
    """

    verdict: Mapping[str, Any]
    certificate: Mapping[str, Any]
    source: tuple[FileDigest, ...]
    output: tuple[FileDigest, ...]
    rewrote: bool
    kept: bool

    @property
    def is_of_itself(self) -> bool:
        """Whether source and result are the same bytes."""
        return [each.sha256 for each in self.source] == [each.sha256 for each in self.output]


def check_proof(wanted: Requirement, model: Path) -> ProofCheck:
    """Return whether a report proves the file at ``model``; data files are looked for beside it.

    Raises:
        SourceError: The report, the model, the source or the key can't be read or is none.
        MissingDependencyError: A signature is to be checked, and the package for that is not installed.
    """
    signer = ""
    content = _read(wanted.report)
    if "payload" in content:
        if wanted.key is not None:
            signer, wrong = attestation.signer(content, wanted.key)
            if wrong:
                return ProofCheck(str(wanted.report), wrong)
        content = attestation.predicate(content, str(wanted.report))
    elif wanted.key is not None:
        return ProofCheck(str(wanted.report), "the report is not signed (an attestation is a file *.intoto.jsonl)")
    _require_schema(content, wanted.report)
    several = content.get("conversions")
    parts = [each for each in several if isinstance(each, dict)] if isinstance(several, list) else [content]
    found = [_judged(wanted, part, model) for part in parts]
    proof = next((each for each in found if isinstance(each, _Proof)), None)
    if proof is None:
        reason = "the report is about no model" if not found else "none of the conversions in the report proves it"
        return ProofCheck(str(wanted.report), str(found[0]) if len(found) == 1 else reason)
    if content.get("checksum") != checksum(content):
        return ProofCheck(str(wanted.report), "the report was changed after it was written (another checksum)")
    if (contradiction := _contradicts_itself(proof, model)) is not None:
        return ProofCheck(str(wanted.report), contradiction)
    date, ranges = str(proof.certificate.get("date", "")), _ranges(proof.verdict)
    return ProofCheck(str(wanted.report), "", proof.source, date, signer, ranges)


def _judged(wanted: Requirement, part: Mapping[str, Any], model: Path) -> _Proof | str:
    """Return one report where it proves the model, else why it doesn't, in words without a full stop."""
    proof = _parts(wanted, part)
    if isinstance(proof, str):
        return proof
    tests: tuple[Callable[[], str | None], ...] = (
        lambda: _another(proof.output, model, "it is not the file that was proven (another SHA-256)", "its"),
        lambda: _with_unknown_data(proof, model),
        lambda: _of_another_source(wanted, proof.source),
        lambda: _of_itself(wanted, proof),
        lambda: _too_loose(wanted, proof),
    )
    return next((reason for test in tests if (reason := test()) is not None), proof)


def _parts(wanted: Requirement, part: Mapping[str, Any]) -> _Proof | str:
    """Return what a report says, or why that is no proof of anything."""
    is_conversion = "rewrites" in part
    verdict = part.get("verdict") if is_conversion else part
    if part.get("error"):
        return "the report is of a run that failed"
    if not isinstance(verdict, dict) or "equivalent" not in verdict:
        return "the report says that it was written without proof"
    if verdict.get("equivalent") is not True:
        return "the report says that the proof failed"
    certificate = part.get("certificate")
    if not isinstance(certificate, dict):
        return "the report holds no certificate"
    source, output = (_files(certificate.get(key), wanted.report) for key in ("source", "output"))
    if not source or not output:
        return "the report holds no certificate"
    rewrote = is_conversion and bool(part["rewrites"])
    return _Proof(verdict, certificate, tuple(source), tuple(output), rewrote, is_conversion and not rewrote)


def _files(listed: object, report: Path) -> list[FileDigest]:
    files = []
    for each in listed if isinstance(listed, list) else []:
        name, sha256 = (each.get("name"), each.get("sha256")) if isinstance(each, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(sha256, str) or not is_inner(name):
            raise SourceError(f"{report} is damaged.", "Write it again with padfix convert --report.")
        files.append(FileDigest(name, sha256))
    return files


def _another(files: Sequence[FileDigest], path: Path, words: str, whose: str) -> str | None:
    """Return that ``path``, or a data file beside it, is not what ``files`` say; None where all are."""
    if digest(path) != files[0].sha256:
        return words
    for file in files[1:]:
        beside = path.parent / file.name
        if not beside.is_file():
            return f"{whose} data file {file.name} is not beside it"
        if digest(beside) != file.sha256:
            return f"{whose} data file {file.name} is not the one of the proof (another SHA-256)"
    return None


def _with_unknown_data(proof: _Proof, path: Path) -> str | None:
    """Return that the model has a data file that the proof is not about."""
    model = read_model(path)
    known = {file.name for file in proof.output[1:]}
    for file in source_files(model, None)[1:]:
        name = file.relative_to(model.folder or Path()).as_posix()
        if name not in known:
            return f"the report does not name its data file {name}"
    return None


def _of_another_source(wanted: Requirement, source: Sequence[FileDigest]) -> str | None:
    if wanted.source is None:
        return None
    words = f"it was proven against another source ({source[0].name}, SHA-256 {source[0].sha256})"
    path = Path(wanted.source)
    if _SHA256.fullmatch(wanted.source) and not path.exists():
        return None if wanted.source.lower() == source[0].sha256 else words
    return _another(source, path, words, "the source's")


def _of_itself(wanted: Requirement, proof: _Proof) -> str | None:
    if not proof.is_of_itself or proof.kept or wanted.source is not None:
        return None
    return "it was compared with itself, which proves nothing"


def _too_loose(wanted: Requirement, proof: _Proof) -> str | None:
    if wanted.allow_loose:
        return None
    if "loosened" not in proof.verdict:
        return "the report does not say whether the default tolerances were held; --allow-loose-proof takes it"
    if proof.verdict["loosened"] is not False:
        told = {name: proof.certificate.get(name) for name in ("rtol", "atol")}
        words = ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)
        return f"the proof allowed more than the default tolerances ({words}); --allow-loose-proof takes it"
    if proof.certificate.get("probes_only") is not False:
        return "the proof went by the given probes alone (--probes-only); --allow-loose-proof takes it"
    for name, (low, high) in _ranges(proof.verdict).items():
        if low == high:
            return f"the proof fed input {name!r} the one value {low:g} (--range); --allow-loose-proof takes it"
    return None


def _ranges(verdict: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    told = verdict.get("ranges")
    pairs = told.items() if isinstance(told, dict) else ()
    return {
        name: (bounds[0], bounds[1])
        for name, bounds in pairs
        if isinstance(bounds, list) and len(bounds) == 2 and all(isinstance(each, int | float) for each in bounds)
    }


def _contradicts_itself(proof: _Proof, path: Path) -> str | None:
    """Return that parts of the report do not fit each other, or the mark that the conversion left in the model.

    Edits that forget a part are found so. Whoever changes all parts alike makes up a report, and only a signature keeps
    them from that.
    """
    if proof.certificate.get("digest") != digest_of(proof.certificate):
        return "its certificate was changed after it was written (another digest)"
    if proof.rewrote:
        marks = [entry.value for entry in read_model(path).proto.metadata_props if entry.key == METADATA]
        if marks != [proof.certificate["digest"]]:
            return f"its metadata {METADATA} is not the digest of the report's certificate"
    runs = proof.verdict.get("runs")
    listed = (
        [run.get("outputs") if isinstance(run, dict) else None for run in runs] if isinstance(runs, list) else [None]
    )
    outputs = [output for each in listed for output in (each if isinstance(each, list) else [None])]
    if not all(isinstance(each, dict) and each.get("equivalent") is True for each in outputs):
        return "the report contradicts itself: it says equal, and not of every output"
    if not outputs and not proof.is_of_itself:
        return "the report contradicts itself: it says equal, and that nothing was run"
    return None


def _read(report: Path) -> dict[str, Any]:
    try:
        content = json.loads(report.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"{report} can't be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not ("schema" in content or "payload" in content):
        raise SourceError(f"{report} is not a JSON report of padfix.", _NOT_A_REPORT)
    return content


def _require_schema(content: Mapping[str, Any], report: Path) -> None:
    """Raise :class:`SourceError` for a report in a form that this version of padfix does not know."""
    if content.get("schema") != SCHEMA:
        said = json.dumps(content.get("schema"))
        raise SourceError(f"{report} is a report of schema {said}; this padfix reads schema {SCHEMA}.", _NOT_A_REPORT)
