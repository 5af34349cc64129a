"""Which files a report is about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from padfix.results.record import Record


@dataclass(frozen=True)
class FileDigest(Record):
    """A file or folder by its own name, or its path from the model's folder, and its SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True)
class ProofCheck(Record):
    """What a required proof says of a model.

    Attributes:
        report: The file that was required.
        reason: Why it does not prove the model; empty where it does.
        source: What the model was compared with, its own file or folder first.
        date: When the proof was made.
        signer: SHA-256 of the public key whose signature was found good; empty where none was asked for.
        ranges: What the generated data of an input lay within, where that was told.
    """

    report: str
    reason: str = ""
    source: tuple[FileDigest, ...] = ()
    date: str = ""
    signer: str = ""
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def proven(self) -> bool:
        """Whether the proof is one of this very model."""
        return not self.reason

    def to_dict(self) -> dict[str, Any]:
        """Return the check as JSON-ready values."""
        return {"proven": self.proven, **super().to_dict()}


@dataclass(frozen=True)
class Certificate(Record):
    """Which files a report is about, and what it was made with.

    Attributes:
        versions: padfix, Python and the packages that took part.
        source: The original: its file or folder, and data files beside it.
        output: The result likewise, the model first; of a conversion that failed the one that was not kept.
        seed: Of the generated data.
        probes: The user's data files.
        rtol: The user's tolerance; None for the documented defaults.
        atol: Likewise.
        probes_only: Whether the whole was judged by the user's data alone.
        date: When it was made, in UTC (ISO 8601).
    """

    versions: dict[str, str]
    source: tuple[FileDigest, ...]
    output: tuple[FileDigest, ...]
    seed: int
    probes: tuple[FileDigest, ...] = ()
    rtol: float | None = None
    atol: float | None = None
    probes_only: bool = False
    date: str = ""

    @property
    def digest(self) -> str:
        """The SHA-256 of what decides the output, which bears it in its metadata: neither the output nor the date."""
        return digest_of(super().to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON-ready values."""
        return {"digest": self.digest, **super().to_dict()}


def digest_of(certificate: Mapping[str, Any]) -> str:
    """Return the digest that a certificate as JSON-ready values should bear."""
    content = {key: value for key, value in certificate.items() if key not in ("digest", "output", "date")}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def checksum(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document's content, ``checksum`` left out; the order and the spacing don't matter."""
    rest = {key: value for key, value in content.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
