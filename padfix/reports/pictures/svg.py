"""A picture under construction: SVG elements as text, with one style for light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

from padfix.reports.characters import printable

# Every difference that a colour makes is also made by a shape or a word, for people who see no colours.
STYLE = """
.pf{--ink:#1f2328;--faint:#59636e;--soft:#f3f4f6;--thin:#b4bac2;--in:#cfe4fb;--in-edge:#6e8fb3;--pad:#ffe3bf;
--pad-edge:#b06a0e;--paper:#fff;--first:#0b3d91;--last:#a0186e;--good:#2f7d4f;--bad:#b3261e;
--error:#fdd8dc;--error-edge:#a40e26;--warning:#ffe9ad;--warning-edge:#8a5a00;--info:#dbe9fb;--info-edge:#2b5797;
--done:#d3f0dc;--done-edge:#1a6b36}
@media(prefers-color-scheme:dark){.pf{--ink:#e6e8eb;--faint:#a5afba;--soft:#22262c;--thin:#4a525c;--in:#1d3f63;
--in-edge:#5b8cc0;--pad:#5a3a0c;--pad-edge:#e39a3b;--paper:#16181c;--first:#8ab4ff;--last:#ff8ad0;--good:#63c189;
--bad:#ff8a80;--error:#5c1f26;--error-edge:#ff9a92;--warning:#4d3a0a;--warning-edge:#f0c060;--info:#1d3557;
--info-edge:#8ab4ff;--done:#17452a;--done-edge:#7fd49b}}
.pf text{font:11px system-ui,-apple-system,sans-serif;fill:var(--ink)}.pf .faint{fill:var(--faint)}
.pf .strong{font-weight:600}.pf .value{paint-order:stroke;stroke:var(--paper);stroke-width:4px}
.pf .in{fill:var(--in);stroke:var(--in-edge)}.pf .un{fill:var(--soft);stroke:var(--thin)}
.pf .pr{fill:var(--pad);stroke:var(--pad-edge)}.pf .pu{fill:var(--paper);stroke:var(--pad-edge);stroke-dasharray:2 2}
.pf .hatch{stroke:var(--pad-edge);stroke-width:1.2;fill:none}
.pf .first{fill:none;stroke:var(--first);stroke-width:2.5}
.pf .last{fill:none;stroke:var(--last);stroke-width:2.5;stroke-dasharray:5 3}.pf .tap{fill:var(--first)}
.pf .start{fill:var(--faint)}.pf .line{stroke:var(--faint);stroke-width:1;fill:none}
.pf .thin{stroke:var(--thin);fill:none}.pf .dot{fill:var(--last)}.pf .good{fill:var(--good)}.pf .bad{fill:var(--bad)}
.pf .limit{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:4 3}
.pf .hollow{fill:var(--paper);stroke:var(--faint);stroke-width:1.5}.pf .end{fill:var(--faint)}
.pf .mark{stroke-width:1.5}.pf .silent,.pf .error,.pf .differs,.pf .refused{fill:var(--error);stroke:var(--error-edge)}
.pf .warning{fill:var(--warning);stroke:var(--warning-edge)}.pf .info{fill:var(--info);stroke:var(--info-edge)}
.pf .rewritten,.pf .tried{fill:var(--done);stroke:var(--done-edge)}
.pf a:hover text,.pf a:focus text{text-decoration:underline}
""".replace("\n", "")


NARROWEST = 520.0
"""Wider pictures are not shrunk to less."""


class Picture:
    """An SVG image that says in words what it shows.

    Attributes:
        words: The same as the picture, in a sentence or two, for people who can't see it.
        lines: What each of its groups is, where it is a list of things.
        names: The styles of its rectangles.
    """

    def __init__(self, words: str) -> None:
        self.words = printable(words)
        self.lines: list[str] = []
        self.names: set[str] = set()
        self._parts: list[str] = []
        self._width = 0.0
        self._height = 0.0

    def rectangle(self, x: float, y: float, width: float, height: float, name: str) -> None:
        """Add a rectangle in the style called ``name``."""
        self._reach(x + width, y + height)
        self.names.add(name)
        self._parts.append(f'<rect class="{name}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, name: str) -> None:
        """Add a line."""
        self._reach(max(x1, x2), max(y1, y2))
        self._parts.append(f'<line class="{name}" x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"/>')

    def path(self, description: str, name: str) -> None:
        """Add a curve within what the other elements reach to."""
        self._parts.append(f'<path class="{name}" d="{description}"/>')

    def dot(self, x: float, y: float, name: str, radius: float = 3) -> None:
        """Add a small circle."""
        self._reach(x + radius, y + radius)
        self._parts.append(f'<circle class="{name}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"/>')

    @contextmanager
    def group(self, title: str, anchor: str = "") -> Iterator[None]:
        """Make what is added one thing that says what it is, and leads to a place of the page where there is one."""
        self.lines.append(printable(title))
        opening, closing = (f'<a href="#{escape(anchor)}">', "</a>") if anchor else ("<g>", "</g>")
        self._parts.append(f"{opening}<title>{escape(printable(title))}</title>")
        yield
        self._parts.append(closing)

    def triangle(self, x: float, y: float, *, to_the_right: bool = False) -> None:
        """Add a small triangle whose tip is at ``(x, y)``."""
        corners = ((x - 6, y - 4), (x - 6, y + 4)) if to_the_right else ((x - 4, y - 6), (x + 4, y - 6))
        points = " ".join(f"{_n(px)},{_n(py)}" for px, py in ((x, y), *corners))
        self._parts.append(f'<polygon class="start" points="{points}"/>')

    def text(self, x: float, y: float, words: str, name: str = "", anchor: str = "start") -> None:
        """Add a line of text whose baseline begins (or has its middle or end) at ``(x, y)``."""
        width = (7.8 if "strong" in name else 7.3) * len(words)  # as wide as fonts come, also where they are shrunk
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

    def _element(self, style: str) -> str:
        width, height = _n(self._width + 8), _n(self._height + 8)
        # A wide one is scrolled on a phone, because shrunk it could not be read.
        least = f"min-width:{NARROWEST:g}px;" if self._width > NARROWEST else ""
        size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="pf" role="img" aria-label="{escape(self.words)}" '
            f'{size} style="{least}max-width:100%;height:auto">'
            f"{style}{''.join(self._parts)}</svg>"
        )

    def _reach(self, x: float, y: float) -> None:
        self._width, self._height = max(self._width, x), max(self._height, y)


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
