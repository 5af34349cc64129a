"""What was fetched of a model that lies in a store."""

from __future__ import annotations

from dataclasses import dataclass

from padfix.results.record import Record


@dataclass(frozen=True)
class Fetched(Record):
    """How much of a file crossed the network.

    Attributes:
        bytes: That were fetched.
        size: Bytes of the whole file; None where the store does not say.
        requests: That were sent to the store, those for the size of the file included.
        whole: Whether the file was fetched as a whole because the store sends no parts of it.
    """

    bytes: int
    size: int | None
    requests: int
    whole: bool = False
