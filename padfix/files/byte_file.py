"""A source of bytes by position as a file that libraries read."""

from __future__ import annotations

import errno
import io
import os
from typing import Any

from padfix.files.wire_format import ByteSource


class ByteFile(io.RawIOBase):
    """A binary file, open for reading, over ``source``."""

    def __init__(self, source: ByteSource) -> None:
        super().__init__()
        self.source = source
        self._position = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move the position."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.source.size}[whence]
        if base + offset < 0:
            raise OSError(errno.EINVAL, "a position before the beginning")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer`` as far as there are bytes."""
        data = self.source.read(self._position, min(self._position + len(buffer), self.source.size))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
