"""A file of a store as bytes by position, fetched in parts: ahead while it is read on, and sparingly after a jump."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

from padfix.files.wire_format import HEADER_BYTES, WireError

FIRST_BYTES = 64 * 1024
"""What is fetched of a file to begin with."""

_MOST_AHEAD = 1 << 20
_LARGEST_PART = 8 << 20
"""What one request asks for at the most, so that a deadline can tell a slow store from a silent one."""

_NEAR = 32 * 1024
"""A step that counts as reading on."""

_WANTED = 4 * 1024
"""A step over bytes that will be asked for: the reader copies all but payloads, and small ones too."""

_SHARE = 512
"""After a jump, one byte is fetched for so many that were jumped over: the most that reading ahead may waste."""

_LEAST_AFTER_JUMP = 2 * 1024
_AFTER_JUMP_AT_FIRST = 32 * 1024
_CHEAP = 512 * 1024
"""Bytes that nobody minds: up to here, or to the share of the file, a request is worth more than what it brings."""


class StoreBytes:
    """A :class:`padfix.files.wire_format.ByteSource` over a file of a store.

    What was fetched is kept until the source is dropped, since the reader walks a graph before it copies it; that is
    the graph and what stands around it, never the weights.
    """

    def __init__(
        self, fetch: Callable[[int, int], bytes], size: int, first: bytes = b"", *, kept: int | None = None
    ) -> None:
        """Make a source.

        Args:
            fetch: Returns the bytes from one position to another.
            size: Of the file.
            first: The bytes at the beginning that are there already.
            kept: The most bytes to keep; None for all.
        """
        self.time = 0
        self._fetch = fetch
        self._size = size
        self._starts: list[int] = []
        self._blocks: list[bytes] = []
        self._ahead = FIRST_BYTES
        self._kept = kept
        self._fetched = 0
        if first:
            self._keep(0, first)

    @property
    def size(self) -> int:
        """Number of bytes when the file was opened."""
        return self._size

    def peek(self, position: int) -> tuple[bytes, int]:
        """See :class:`padfix.files.wire_format.ByteSource`."""
        block, index = self._at(position)
        if block and (index + HEADER_BYTES <= len(block) or position - index + len(block) == self._size):
            return block, index
        return self.read(position, min(position + HEADER_BYTES, self._size)), 0

    def read(self, start: int, end: int) -> bytes:
        """See :class:`padfix.files.wire_format.ByteSource`."""
        end = min(end, self._size)
        pieces = []
        while start < end:
            block, index = self._at(start)
            if not block:
                self._fill(start, end)
                continue
            pieces.append(block if index == 0 and len(block) <= end - start else block[index : index + end - start])
            start += len(pieces[-1])
        return b"".join(pieces)

    def chunks(self) -> Iterator[bytes]:
        """See :class:`padfix.files.wire_format.ByteSource`; what is fetched for this is not kept."""
        start = 0
        while start < self._size:
            block, index = self._at(start)
            if index:
                block = block[index:]
            if not block:
                block = self._fetched_part(start, min(start + _LARGEST_PART, self._size))
            yield block
            start += len(block)

    def _at(self, position: int) -> tuple[bytes, int]:
        """Return the block that holds a position, and its index there; no bytes where it was not fetched."""
        number = bisect_right(self._starts, position) - 1
        if number >= 0:
            block, index = self._blocks[number], position - self._starts[number]
            if index < len(block):
                return block, index
        return b"", 0

    def _fill(self, start: int, end: int) -> None:
        """Fetch from ``start``, where nothing is known, at least to ``end`` or to what is known, as far as one goes."""
        number = bisect_right(self._starts, start)
        before = self._starts[number - 1] + len(self._blocks[number - 1]) if number else 0
        distance = start - before
        if distance <= _NEAR:
            self._ahead = min(2 * self._ahead, _MOST_AHEAD)
            if distance <= _WANTED:
                start = before
        else:
            is_cheap = self._fetched < max(_CHEAP, self._size // _SHARE)
            least = _AFTER_JUMP_AT_FIRST if is_cheap else _LEAST_AFTER_JUMP
            self._ahead = max(least, min(distance // _SHARE, FIRST_BYTES))
        stop = min(max(end, start + self._ahead), start + _LARGEST_PART, self._size)
        if number < len(self._starts):
            stop = min(stop, self._starts[number])
        self._keep(start, self._fetched_part(start, stop))

    def _fetched_part(self, start: int, end: int) -> bytes:
        part = self._fetch(start, end)
        while part and len(part) < end - start and (more := self._fetch(start + len(part), end)):
            part += more  # a store may send less than it was asked for
        if len(part) != end - start:
            raise WireError(f"the file ends at byte {start + len(part)}, {end - start - len(part)} bytes early")
        return part

    def _keep(self, start: int, block: bytes) -> None:
        if self._kept is not None and sum(map(len, self._blocks)) > self._kept:
            self._starts.clear()
            self._blocks.clear()
        number = bisect_right(self._starts, start)
        self._starts.insert(number, start)
        self._blocks.insert(number, block)
        self._fetched += len(block)
