"""A picture under construction: SVG elements as text, with one style for light and dark."""

from __future__ import annotations

import base64
from html import escape

from padfix.reports.characters import printable

# Every difference that a colour makes is also made by a shape or a word, for people who see no colours.
STYLE = (
    ".pf text{font:11px system-ui,-apple-system,sans-serif;fill:#1f2328}.pf .faint{fill:#59636e}"
    ".pf .strong{font-weight:600}.pf .in{fill:#cfe4fb;stroke:#6e8fb3}.pf .un{fill:#f3f4f6;stroke:#b4bac2}"
    ".pf .pr{fill:#ffe3bf;stroke:#c47a16}.pf .pu{fill:#fff;stroke:#c47a16;stroke-dasharray:2 2}"
    ".pf .hatch{stroke:#c47a16;stroke-width:1.2;fill:none}.pf .first{fill:none;stroke:#0b3d91;stroke-width:2.5}"
    ".pf .last{fill:none;stroke:#a0186e;stroke-width:2.5;stroke-dasharray:5 3}.pf .tap{fill:#0b3d91}"
    ".pf .start{fill:#59636e}.pf .line{stroke:#59636e;stroke-width:1;fill:none}.pf .thin{stroke:#b4bac2;fill:none}"
    ".pf .dot{fill:#a0186e}.pf .good{fill:#2f7d4f}.pf .bad{fill:#b3261e}"
    ".pf .limit{stroke:#b3261e;stroke-width:1.5;stroke-dasharray:4 3}"
    "@media(prefers-color-scheme:dark){.pf text{fill:#e6e8eb}.pf .faint{fill:#9aa4af}"
    ".pf .in{fill:#1d3f63;stroke:#5b8cc0}.pf .un{fill:#22262c;stroke:#4a525c}.pf .pr{fill:#5a3a0c;stroke:#e39a3b}"
    ".pf .pu{fill:#16181c;stroke:#e39a3b}.pf .hatch{stroke:#e39a3b}"
    ".pf .first{stroke:#8ab4ff}.pf .last{stroke:#ff8ad0}.pf .tap{fill:#8ab4ff}"
    ".pf .start{fill:#9aa4af}.pf .line{stroke:#9aa4af}.pf .thin{stroke:#4a525c}.pf .dot{fill:#ff8ad0}"
    ".pf .good{fill:#63c189}.pf .bad{fill:#ff8a80}.pf .limit{stroke:#ff8a80}}"
)


class Picture:
    """An SVG image that says in words what it shows.

    Attributes:
        words: The same as the picture, in a sentence or two, for people who can't see it.
    """

    def __init__(self, words: str) -> None:
        self.words = printable(words)
        self._parts: list[str] = []
        self._width = 0.0
        self._height = 0.0

    def rectangle(self, x: float, y: float, width: float, height: float, name: str) -> None:
        """Add a rectangle in the style called ``name``."""
        self._reach(x + width, y + height)
        self._parts.append(f'<rect class="{name}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, name: str) -> None:
        """Add a line."""
        self._reach(max(x1, x2), max(y1, y2))
        self._parts.append(f'<line class="{name}" x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"/>')

    def dot(self, x: float, y: float, name: str) -> None:
        """Add a small filled circle."""
        self._reach(x + 3, y + 3)
        self._parts.append(f'<circle class="{name}" cx="{_n(x)}" cy="{_n(y)}" r="3"/>')

    def triangle(self, x: float, y: float, *, to_the_right: bool = False) -> None:
        """Add a small triangle whose tip is at ``(x, y)``."""
        corners = ((x - 6, y - 4), (x - 6, y + 4)) if to_the_right else ((x - 4, y - 6), (x + 4, y - 6))
        points = " ".join(f"{_n(px)},{_n(py)}" for px, py in ((x, y), *corners))
        self._parts.append(f'<polygon class="start" points="{points}"/>')

    def text(self, x: float, y: float, words: str, name: str = "", anchor: str = "start") -> None:
        """Add a line of text whose baseline begins (or has its middle or end) at ``(x, y)``."""
        width = (7.6 if "strong" in name else 7.0) * len(words)
        self._reach(x + (width if anchor == "start" else width / 2 if anchor == "middle" else 0), y + 4)
        classes = f' class="{name}"' if name else ""
        self._parts.append(
            f'<text{classes} x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}">{escape(printable(words))}</text>'
        )

    def inline(self) -> str:
        """Return the image as an element of a page that has :data:`STYLE`."""
        return self._element("")

    def file(self) -> str:
        """Return the image as a document of its own."""
        return self._element(f"<style>{STYLE}</style>")

    def image(self) -> str:
        """Return an HTML image that holds all of itself, and shows its words where images are not allowed."""
        data = base64.b64encode(self.file().encode()).decode()
        return f'<img alt="{escape(self.words)}" src="data:image/svg+xml;base64,{data}">'

    def _element(self, style: str) -> str:
        width, height = _n(self._width + 8), _n(self._height + 8)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="pf" role="img" aria-label="{escape(self.words)}" '
            f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" style="max-width:100%;height:auto">'
            f"{style}{''.join(self._parts)}</svg>"
        )

    def _reach(self, x: float, y: float) -> None:
        self._width, self._height = max(self._width, x), max(self._height, y)


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
