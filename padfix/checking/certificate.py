"""Which files a report is about: their digests, and the versions, data and settings that it was made with.

The certificate is part of the report. A file can't hold its own digest, so the output's metadata bears that of the rest
of the certificate: by it, a model and its report are found to belong together. Only an output that differs from its
source gets it, so that a second conversion changes nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from onnx import ModelProto

from padfix.config.options import VerifyOptions
from padfix.errors import SourceError
from padfix.process.version import __version__
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
    versions = {"padfix": __version__, "python": platform.python_version()}
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
        probes=tuple(FileDigest(Path(probe).name, digest(Path(probe))) for probe in options.probes or ()),
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
            for file in sorted(_files_below(path)):
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


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield every file that readers find below a folder, in linked folders as well."""
    seen = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:  # a link that leads back up
            folders.clear()
            continue
        seen.add(real)
        yield from (file for name in names if (file := Path(place, name)).is_file())


def _digests(paths: Iterable[Path]) -> tuple[FileDigest, ...]:
    """Return the digests of a model, which is first, and of its data files, named from the model's folder."""
    files = [path.absolute() for path in paths]
    return tuple(FileDigest(_named_from(file, files[0].parent), digest(file)) for file in files)


def _named_from(file: Path, folder: Path) -> str:
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else file.name
