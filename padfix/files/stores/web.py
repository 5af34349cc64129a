"""Files of the web in parts, through fsspec's session: its settings and credentials hold, the answers are looked at.

fsspec's own reader asks for the size first and does not look whether a file was changed, or whether a server that is
asked for a part sends all of it. Here the first part tells the size: RFC 9110, section 14.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import tempfile
import time
from typing import IO, Any

from padfix.errors import SourceError
from padfix.files.stores import failures
from padfix.files.stores.parts import FIRST_BYTES
from padfix.files.stores.traffic import Traffic
from padfix.files.urls import Url

_TRIES = 3
_WAIT = 0.25
_CHUNK = 1 << 16

_LEFT_FREE = 256 << 20
"""Bytes of a disk that are left to others, whatever a server sends."""


class WebFile:
    """A file behind ``https://``.

    Attributes:
        size: Number of bytes; None until it is known.
        first: The bytes that came with the first answer.
        whole: The file as a whole, where the server sends no parts.
    """

    def __init__(self, url: Url, filesystem: Any, path: str, traffic: Traffic) -> None:
        """Ask for the first part.

        Raises:
            SourceError: The server does not give it.
        """
        self._url = url
        self._filesystem = filesystem
        self._path = path
        self._traffic = traffic
        self._version: str | None = None
        self.size: int | None = None
        self.whole: IO[bytes] | None = None
        self.first = self.fetch(0, FIRST_BYTES)

    def fetch(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` to ``end``, fewer at the end of the file.

        Raises:
            SourceError: The server does not give them, or the file was changed since the first part.
        """
        from fsspec.asyn import sync

        with failures.told(self._url):
            for left in reversed(range(_TRIES)):
                try:
                    found: bytes = sync(self._filesystem.loop, self._ask, start, end)
                    return found
                except Exception as error:
                    if not left or not failures.is_passing(error):
                        raise
                    time.sleep(_WAIT)
        raise AssertionError("unreachable")

    async def _ask(self, start: int, end: int) -> bytes:
        import aiohttp

        session = await self._filesystem.set_session()
        options = dict(self._filesystem.kwargs)
        headers = {**options.pop("headers", {}), "Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "identity"}
        options["timeout"] = aiohttp.ClientTimeout(
            total=None, connect=failures.SILENCE, sock_connect=failures.SILENCE, sock_read=failures.SILENCE
        )
        self._traffic.note(1)
        async with session.get(self._filesystem.encode_url(self._path), headers=headers, **options) as response:
            self._traffic.note(len(response.history))
            _acknowledge(response)
            if response.status == 416:  # there is no such byte; where that is the first, the file is empty
                if self.size is not None:
                    raise self._changed()
                self.size = 0
                return b""
            response.raise_for_status()
            if response.status == 206:
                return await self._part(response, start, end)
            if start == 0 and self.size is None:
                await self._keep_whole(response)
                return b""
            raise self._changed()

    async def _part(self, response: Any, start: int, end: int) -> bytes:
        told = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", response.headers.get("Content-Range", "").strip())
        version = response.headers.get("ETag") or response.headers.get("Last-Modified")
        is_other = bool(version and self._version and version != self._version)
        if told is not None and self.size is not None and (is_other or self.size != int(told[3])):
            raise self._changed()
        if told is None or int(told[1]) != start or not start <= int(told[2]) < min(end, int(told[3])):
            raise SourceError(
                f"{self._url} can't be read: its server was asked for a part and answers with another.",
                "Download the file first.",
            )
        self.size, self._version = int(told[3]), version
        wanted = int(told[2]) + 1 - start
        pieces = bytearray()
        async for piece in self._received(response):
            pieces += piece
            if len(pieces) > wanted:
                break
        return bytes(pieces[:wanted])

    async def _keep_whole(self, response: Any) -> None:
        """Keep what comes in a file without a name; the server sends the whole, whatever it is asked."""
        file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this
        async for piece in self._received(response):
            if shutil.disk_usage(tempfile.gettempdir()).free < _LEFT_FREE:
                raise SourceError(
                    f"{self._url} can't be read in parts, and the disk for temporary files has no room for all of it.",
                    "Make room there, or set TMPDIR to a folder on another disk.",
                )
            file.write(piece)
        file.flush()
        self.whole, self.size = file, file.tell()

    async def _received(self, response: Any) -> Any:
        begin, received = time.monotonic(), 0
        async for piece in response.content.iter_chunked(_CHUNK):
            received += len(piece)
            self._traffic.note(0, len(piece))
            yield piece
            if time.monotonic() - begin > failures.SILENCE + received / failures.SLOWEST:
                raise TimeoutError

    def _changed(self) -> SourceError:
        return SourceError(f"{self._url} was changed while padfix read it.", "Run again when nothing writes to it.")


def _acknowledge(response: Any) -> None:
    """Let the system acknowledge what has come: many servers hold a body back until their headers are (Nagle)."""
    quick = getattr(socket, "TCP_QUICKACK", None)
    transport = response.connection.transport if response.connection is not None else None
    link = transport.get_extra_info("socket") if transport is not None else None
    if quick is not None and link is not None:
        with contextlib.suppress(OSError):
            link.setsockopt(socket.IPPROTO_TCP, quick, 1)
