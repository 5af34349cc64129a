"""The gate of ``check --require-proof``: whether a report proves this very file, and what it has to be for that.

A report of convert or verify is judged by its certificate: the result is this file, the source is another one or the
one that was pinned, and nothing was held against looser tolerances than the documented ones. Its digest is a checksum
against mistakes; a signature is what keeps a report from being made up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from padfix.checking import attestation
from padfix.checking.certificate import digest
from padfix.errors import SourceError
from padfix.reports.json import checksum
from padfix.results import SCHEMA, FileDigest, ProofCheck

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
    several = content.get("conversions")
    parts = [each for each in several if isinstance(each, dict)] if isinstance(several, list) else [content]
    reasons = [_why_not(wanted, part, model) for part in parts]
    if None not in reasons:
        reason = "the report is about no model" if not reasons else "none of the conversions in the report proves it"
        return ProofCheck(str(wanted.report), str(reasons[0]) if len(reasons) == 1 else reason)
    if content.get("checksum") != checksum(content):
        return ProofCheck(str(wanted.report), "the report was changed after it was written (another checksum)")
    certificate = parts[reasons.index(None)]["certificate"]
    source = tuple(FileDigest(each["name"], each["sha256"]) for each in certificate["source"])
    return ProofCheck(str(wanted.report), "", source, str(certificate.get("date", "")), signer)


def _why_not(wanted: Requirement, part: Mapping[str, Any], model: Path) -> str | None:
    """Return why one report does not prove the model, in words without a full stop; None where it does."""
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
    return (
        _another(output, model, "it is not the file that was proven (another SHA-256)", "its")
        or _of_another_source(wanted, source)
        or _of_itself(wanted, source, output, nothing_to_rewrite=is_conversion and not part["rewrites"])
        or _too_loose(wanted, verdict, certificate)
    )


def _files(listed: object, report: Path) -> list[FileDigest]:
    files = []
    for each in listed if isinstance(listed, list) else []:
        name, sha256 = (each.get("name"), each.get("sha256")) if isinstance(each, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(sha256, str) or Path(name).name != name:
            raise SourceError(f"{report} is damaged.", "Write it again with padfix convert --report.")
        files.append(FileDigest(name, sha256))
    return files


def _another(files: list[FileDigest], path: Path, words: str, whose: str) -> str | None:
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


def _of_another_source(wanted: Requirement, source: list[FileDigest]) -> str | None:
    if wanted.source is None:
        return None
    words = f"it was proven against another source ({source[0].name}, SHA-256 {source[0].sha256})"
    path = Path(wanted.source)
    if _SHA256.fullmatch(wanted.source) and not path.exists():
        return None if wanted.source.lower() == source[0].sha256 else words
    return _another(source, path, words, "the source's")


def _of_itself(
    wanted: Requirement, source: list[FileDigest], output: list[FileDigest], *, nothing_to_rewrite: bool
) -> str | None:
    if [each.sha256 for each in source] != [each.sha256 for each in output]:
        return None
    if nothing_to_rewrite or wanted.source is not None:
        return None
    return "it was compared with itself, which proves nothing"


def _too_loose(wanted: Requirement, verdict: Mapping[str, Any], certificate: Mapping[str, Any]) -> str | None:
    if wanted.allow_loose:
        return None
    if verdict.get("loosened") is not False:
        told = {name: certificate.get(name) for name in ("rtol", "atol")}
        words = ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)
        return f"the proof allowed more than the default tolerances ({words}); --allow-loose-proof takes it"
    if certificate.get("probes_only") is not False:
        return "the proof went by the given probes alone (--probes-only); --allow-loose-proof takes it"
    return None


def _read(report: Path) -> dict[str, Any]:
    try:
        content = json.loads(report.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"{report} can't be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or (content.get("schema") != SCHEMA and "payload" not in content):
        raise SourceError(f"{report} is not a JSON report of padfix.", _NOT_A_REPORT)
    return content
