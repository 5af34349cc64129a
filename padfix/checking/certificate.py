"""Which files a proof was about: their digests, and the versions, data and settings that it was made with.

The certificate is part of the report. A file can't hold its own digest, so the output's metadata bears that of the rest
of the certificate: by it, a model and its report are found to belong together. Only an output that differs from its
source gets it, so that a second conversion changes nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from onnx import ModelProto

import padfix
from padfix.errors import SourceError
from padfix.reports.json import seal
from padfix.results import SCHEMA, Certificate, FileDigest

METADATA = "padfix.certificate"
"""Key of the metadata entry that bears a certificate's digest."""

_PACKAGES = ("numpy", "onnx", "onnxruntime", "onnx-graphsurgeon")
_TENSORFLOW = ("tensorflow", "tf2onnx")


def certify(
    source: Iterable[Path],
    output: Iterable[Path],
    *,
    seed: int,
    probes: Iterable[Path] = (),
    rtol: float | None = None,
    atol: float | None = None,
) -> Certificate:
    """Return the certificate of a proof about these files.

    ``source`` is its file, its folder, or its model and data files; of ``output`` the model is the first.

    Raises:
        SourceError: A file can't be read.
    """
    names = _PACKAGES + (_TENSORFLOW if "tensorflow" in sys.modules else ())
    versions = {"padfix": padfix.__version__, "python": platform.python_version()}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return Certificate(
        versions=versions,
        source=_digests(source),
        output=_digests(output),
        seed=seed,
        probes=_digests(probes),
        rtol=rtol,
        atol=atol,
    )


def mark(model: ModelProto, certificate: Certificate) -> None:
    """Write the certificate's digest to the metadata of a model that is to be its output."""
    entry = next((each for each in model.metadata_props if each.key == METADATA), None)
    if entry is None:
        entry = model.metadata_props.add(key=METADATA)
    entry.value = certificate.digest


def with_output(certificate: Certificate, output: Iterable[Path]) -> Certificate:
    """Return the certificate with the digests of the result, its model first.

    Raises:
        SourceError: A file can't be read.
    """
    return dataclasses.replace(certificate, output=_digests(output))


def why_not_proven(report: Path, model: Path) -> str | None:
    """Return why the file at ``model`` is not the one that ``report`` proves, or None when it is.

    ``report`` is a JSON report of ``padfix convert`` or ``padfix verify``; data files are looked for beside the model.

    Raises:
        SourceError: The report can't be read or is none, or the model can't be read.
    """
    content = _read(report)
    several = content.get("conversions")
    parts = [each for each in several if isinstance(each, dict)] if isinstance(several, list) else [content]
    reasons = [_why_not(report, part, model) for part in parts]
    if not reasons:
        return "the report is about no model"
    if None not in reasons:
        return reasons[0] if len(reasons) == 1 else "none of the conversions in the report proves it"
    if content.get("digest") != seal(content):
        return "the report was changed after it was written"
    return None


def _why_not(report: Path, content: dict[str, Any], model: Path) -> str | None:
    verdict = content.get("verdict", content if "equivalent" in content else None)
    if not isinstance(verdict, dict):
        return "the report says that it was written without proof"
    if verdict.get("equivalent") is not True:
        return "the report says that the proof failed"
    certificate = verdict.get("certificate")
    files = certificate.get("output") if isinstance(certificate, dict) else None
    if not isinstance(files, list) or not files:
        return "the report holds no certificate"
    for index, file in enumerate(files):
        name, wanted = (file.get("name"), file.get("sha256")) if isinstance(file, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(wanted, str) or Path(name).name != name:
            raise SourceError(f"{report} is damaged.", "Write it again with padfix convert --report.")
        path = model if index == 0 else model.parent / name
        if index and not path.is_file():
            return f"its data file {name} is not beside it"
        if digest(path) != wanted:
            what = "it is" if index == 0 else f"its data file {name} is"
            return f"{what} not the file that was proven (another SHA-256)"
    return None


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of a folder: that of the names and digests of all files in it.

    Raises:
        SourceError: It can't be read.
    """
    try:
        if path.is_dir():
            whole = hashlib.sha256()
            for file in sorted(each for each in path.rglob("*") if each.is_file()):
                name = file.relative_to(path).as_posix()
                whole.update(f"{name}\0{_file_digest(file)}\n".encode("utf-8", "surrogateescape"))
            return whole.hexdigest()
        return _file_digest(path)
    except OSError as error:
        raise SourceError(
            f"{path} can't be read: {error.strerror or error}.", "Check the path and its rights."
        ) from error


def _file_digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digests(paths: Iterable[Path]) -> tuple[FileDigest, ...]:
    return tuple(FileDigest(path.name, digest(path)) for path in paths)


def _read(report: Path) -> dict[str, Any]:
    try:
        content = json.loads(report.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"{report} can't be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise SourceError(
            f"{report} is not a JSON report of padfix.",
            "Write one with: padfix convert SOURCE -o OUT --report FILE.json",
        )
    return content
