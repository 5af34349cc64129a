"""What the place where text is shown can do: colours, marks, and lines of how many columns."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

_CODES = {
    "silent": "1;35",
    "error": "1;31",
    "warning": "33",
    "info": "36",
    "good": "1;32",
    "bad": "1;31",
    "strong": "1",
    "faint": "2",
}
"""Of a terminal's escape sequences."""

_NARROWEST = 20


@dataclass(frozen=True)
class Style:
    """How text is shown; the defaults are those of a file or a log.

    Attributes:
        colour: Whether escape sequences are understood.
        width: The columns of a terminal; None where lines may be of any length.
        marks: Whether check marks and crosses can be written.
    """

    colour: bool = False
    width: int | None = None
    marks: bool = False

    def paint(self, text: str, name: str) -> str:
        """Return ``text`` in the colour of a severity, or of what is good, bad, strong or faint."""
        return f"\x1b[{_CODES[name]}m{text}\x1b[0m" if self.colour and text else text

    def lines(self, text: str, *, first: str = "", rest: int = 0) -> list[str]:
        """Return ``text`` behind ``first`` as lines that fit; those after the first begin ``rest`` columns in.

        Words are not broken, so that a long path or name can still be copied.
        """
        if self.width is None or len(first) + len(text) <= self.width:
            return [first + text]
        indent = " " * min(rest, max(self.width - _NARROWEST, 0))
        return textwrap.wrap(
            text,
            max(self.width, _NARROWEST),
            initial_indent=first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def verdict(self, text: str, *, good: bool, first: str = "") -> list[str]:
        """Return what ends a report, or begins a proof, as lines that stand out behind ``first``."""
        mark = ("\u2713 " if good else "\u2717 ") if self.marks else ""
        lines = self.lines(text, first=first + mark, rest=len(first + mark))
        starts = [len(first), *(len(line) - len(line.lstrip()) for line in lines[1:])]
        colour = "good" if good else "bad"
        return [line[:start] + self.paint(line[start:], colour) for line, start in zip(lines, starts, strict=True)]


PLAIN = Style()
"""That of files, pipes and logs."""
