"""What tells one state of a model file from another."""

from __future__ import annotations

from dataclasses import dataclass

from padfix.results.record import Record


@dataclass(frozen=True)
class Identity(Record):
    """A model file as it was read.

    Attributes:
        size: Its bytes.
        digest: SHA-256, in hexadecimal digits, of all its bytes but the elements of large tensors, of which the lengths
            count: of everything that ``check`` can see. Files of external data play no part.
    """

    size: int
    digest: str
