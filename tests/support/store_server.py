"""A web server on loopback that behaves, or misbehaves, as the first part of a path says, and counts what it sends."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

DEFECTS = {"missing": 404, "forbidden": 403, "unauthorised": 401, "broken": 500, "gone": 410}
"""First parts of paths that are answered with a status."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, *arguments: Any) -> None:
        """Say nothing of those who hang up."""


class StoreServer:
    """What it serves, and what it was asked.

    Paths are ``/BEHAVIOUR/NAME``; a file is served from ``files``. Behaviours beside those of :data:`DEFECTS`:
    ``parts`` sends ranges, ``whole`` none, ``cut`` ends in the middle of what it promised, ``redirect`` leads to
    ``parts`` with a signature in the address, ``circle`` to itself, ``changing`` has another version for each request,
    ``shrinking`` another size, ``short`` sends less than it was asked for, ``dripping`` a byte now and then, ``wrong``
    another range, ``silent`` nothing, ``page`` a page in HTML.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes | Path] = {}
        self.requests: list[str] = []
        self.sent = 0
        self.over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def url(self, behaviour: str, name: str, *, user: str = "", query: str = "") -> str:
        """Return the address of a file, with credentials if they are given."""
        return f"http://{user}{'@' if user else ''}127.0.0.1:{self._server.server_port}/{behaviour}/{name}{query}"

    def reset(self) -> None:
        """Count from 0 again."""
        self.requests.clear()
        self.sent = 0

    def close(self) -> None:
        """Serve nothing any more."""
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving() -> Iterator[StoreServer]:
    """Yield a server that is closed at the end."""
    server = StoreServer()
    try:
        yield server
    finally:
        server.close()


def _handler(server: StoreServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            """Answer as the path asks."""
            server.requests.append(self.path)
            _, behaviour, name = self.path.partition("?")[0].split("/", 2)
            if behaviour in DEFECTS:
                self._answer(DEFECTS[behaviour], b"no: secret-of-the-store")
            elif behaviour in ("redirect", "circle"):
                where = f"/parts/{name}?X-Signature=of-the-redirect" if behaviour == "redirect" else self.path
                self._answer(302, b"", ("Location", where))
            elif behaviour == "silent":
                server.over.wait(30)
            elif behaviour == "page":
                self._answer(200, b"<!doctype html><html>Log in</html>")
            elif name not in server.files:
                self._answer(404, b"")
            else:
                self._file(behaviour, server.files[name])

        do_HEAD = do_GET  # noqa: N815 - for the defects, which need no body

        def _answer(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
            self.send_response(status)
            for header in (*headers, ("Content-Length", str(len(body)))):
                self.send_header(*header)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def _file(self, behaviour: str, content: bytes | Path) -> None:
            size = len(content) if isinstance(content, bytes) else content.stat().st_size
            start, end = 0, size
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if behaviour in ("whole", "cut") or asked is None:
                self.send_response(200)
            else:
                start, end = int(asked[1]), min(int(asked[2]) + 1, size)
                if behaviour == "wrong":
                    start += 1
                if behaviour == "short":
                    end = min(end, start + 1500)
                if behaviour == "shrinking":
                    size -= len(server.requests) - 1
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
            number = len(server.requests) if behaviour == "changing" else 0
            self.send_header("ETag", f'"version {number}"')
            self.send_header("Content-Length", str(end - start))
            self.end_headers()
            if behaviour == "cut":
                end = start + (end - start) // 2
                self.close_connection = True
            self._send(content, start, end)

        def _send(self, content: bytes | Path, start: int, end: int) -> None:
            server.sent += end - start
            while self.path.startswith("/dripping/") and not server.over.wait(0.1):
                self.wfile.write(b"0")
            if isinstance(content, bytes):
                self.wfile.write(content[start:end])
                return
            with content.open("rb") as file:
                file.seek(start)
                self.wfile.write(file.read(end - start))

    return Handler
