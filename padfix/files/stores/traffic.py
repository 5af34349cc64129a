"""How much is fetched, counted where somebody asks for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from padfix.process import watch
from padfix.results import Fetched


@dataclass
class Traffic:
    """What was asked of stores so far; the size is that of all files that were opened."""

    bytes: int = 0
    size: int | None = None
    requests: int = 0
    whole: bool = False

    def note(self, requests: int, fetched: int = 0) -> None:
        """Count requests and what came back."""
        self.requests += requests
        self.bytes += fetched
        watch.allow_for(fetched)

    def opened(self, size: int | None, *, whole: bool = False) -> None:
        """Note that a file was opened."""
        self.size = size if self.size is None or size is None else self.size + size
        self.whole = self.whole or whole

    def fetched(self) -> Fetched | None:
        """Return what was counted; None where no store was asked."""
        return Fetched(self.bytes, self.size, self.requests, self.whole) if self.requests else None


_counting: ContextVar[Traffic | None] = ContextVar("what is fetched meanwhile", default=None)


@contextlib.contextmanager
def counted() -> Iterator[Traffic]:
    """Count what is fetched inside."""
    traffic = Traffic()
    token = _counting.set(traffic)
    try:
        yield traffic
    finally:
        _counting.reset(token)


def current() -> Traffic:
    """Return what counts now."""
    return _counting.get() or Traffic()
