"""What a stream can show, and the line at the bottom of a terminal that says what is being done."""

from __future__ import annotations

import os
import shutil
import threading
import time
from typing import Self, TextIO

from padfix.reports.text_style import Style

_FRAMES, _PLAIN_FRAMES = "\u280b\u2819\u2839\u2838\u283c\u2834\u2826\u2827\u2807\u280f", "-\\|/"
_PERIOD = 0.1
_PATIENCE = 0.3
"""Seconds before the line appears: what is done sooner is not worth a flicker."""


def is_terminal(stream: TextIO) -> bool:
    """Whether a person looks at ``stream``, and it can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def wants_colour(stream: TextIO) -> bool:
    """Whether to write colours to ``stream``: to a terminal, unless NO_COLOR says no or FORCE_COLOR says yes."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream)


def style_of(stream: TextIO) -> Style:
    """Return how to show text on ``stream``; a log gets whole lines without marks."""
    is_seen = stream.isatty()
    return Style(
        colour=wants_colour(stream),
        width=columns(stream) if is_seen else None,
        marks=is_seen and can_write(stream, "\u2713\u2717"),
    )


def columns(stream: TextIO) -> int:
    """Return the width of a terminal, what COLUMNS says before what it says itself."""
    said = os.environ.get("COLUMNS", "")
    if said.isdigit() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


def can_write(stream: TextIO, characters: str) -> bool:
    """Whether the encoding of ``stream`` has all of ``characters``."""
    try:
        characters.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class LiveLine:
    """The last line of a terminal: what is being done, and for how long; gone without a trace afterwards."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._frames = _FRAMES if can_write(stream, _FRAMES) else _PLAIN_FRAMES
        self._text = "Starting"
        self._ended = threading.Event()
        self._since = time.monotonic()
        self._thread = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def show(self, text: str) -> None:
        """Say what is being done from now on."""
        self._text = text

    def _draw(self) -> None:
        if self._ended.wait(_PATIENCE):
            return
        number = 0
        while not self._ended.wait(_PERIOD):
            self._write(self._frames[number % len(self._frames)])
            number += 1
        if number:
            self._put("\r\x1b[K")

    def _write(self, frame: str) -> None:
        seconds = f"  {time.monotonic() - self._since:.0f} s"
        room = columns(self._stream) - len(frame) - len(seconds) - 2
        self._put(f"\r\x1b[K{frame} {_shortened(self._text, room)}{seconds}" if room > 0 else "\r\x1b[K")

    def _put(self, text: str) -> None:
        try:  # past the stream's own lock, which a process that is forked in the meantime would find taken
            os.write(self._stream.fileno(), text.encode(self._stream.encoding or "ascii", "backslashreplace"))
        except (OSError, ValueError):  # the terminal is gone; the work goes on
            self._ended.set()


def _shortened(text: str, room: int) -> str:
    """Return ``text`` in so many columns; how much is left, in brackets at its end, is kept where there is room."""
    if len(text) <= room:
        return text
    words, bracket, count = text.rpartition(" (")
    end = f"... ({count}" if bracket and words and len(count) + 8 <= room else "..."
    return f"{text[: max(room - len(end), 0)]}{end}"[:room]
