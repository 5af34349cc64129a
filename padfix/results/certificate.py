"""Which files a proof was about."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from padfix.results.record import Record


@dataclass(frozen=True)
class FileDigest(Record):
    """A file or folder by its own name and its SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Certificate(Record):
    """Which files a proof was about, and what it was made with.

    Attributes:
        versions: padfix, Python and the packages that took part.
        source: The original: its file or folder, and data files beside it.
        output: The result likewise, the model first.
        seed: Of the generated data.
        probes: The user's data files.
        rtol: The user's tolerance; None for the documented defaults.
        atol: Likewise.
    """

    versions: dict[str, str]
    source: tuple[FileDigest, ...]
    output: tuple[FileDigest, ...]
    seed: int
    probes: tuple[FileDigest, ...] = ()
    rtol: float | None = None
    atol: float | None = None

    @property
    def digest(self) -> str:
        """The SHA-256 of everything but the output, which bears it in its metadata and so can't be part of it."""
        content = {key: value for key, value in super().to_dict().items() if key != "output"}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON-ready values."""
        return {"digest": self.digest, **super().to_dict()}
