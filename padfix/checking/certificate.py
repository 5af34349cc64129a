"""Which files a report is about: their digests, and the versions, data and settings that it was made with.

The certificate is part of the report. A file can't hold its own digest, so the output's metadata bears that of the rest
of the certificate: by it, a model and its report are found to belong together. Only an output that differs from its
source gets it, so that a second conversion changes nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import platform
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from onnx import ModelProto

import padfix
from padfix.config import VerifyOptions
from padfix.errors import SourceError
from padfix.results import Certificate, FileDigest

METADATA = "padfix.certificate"
"""Key of the metadata entry that bears a certificate's digest."""

_PACKAGES = ("numpy", "onnx", "onnxruntime", "onnx-graphsurgeon")
_TENSORFLOW = ("tensorflow", "tf2onnx")


def certify(source: Iterable[Path], output: Iterable[Path], options: VerifyOptions) -> Certificate:
    """Return the certificate of a report about these files, as of now.

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
        seed=options.seed,
        probes=_digests(Path(probe) for probe in options.probes or ()),
        rtol=options.rtol,
        atol=options.atol,
        probes_only=options.probes_only,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
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
