"""Reading a rendered report back, from HTML and from Markdown, to what it says: the same shape from both."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Said:
    """What a page says.

    Attributes:
        titles: Headings and titles of what is folded, in their order.
        words: Paragraphs.
        facts: Names with their values, in their order.
        tables: Title of the nearest heading above, head and rows of each table.
        bullets: Items of lists.
        pictures: Captions, and the words in the place of each picture.
        commands: What is to be pasted.
    """

    titles: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    tables: list[tuple[str, list[str], list[list[str]]]] = field(default_factory=list)
    bullets: list[str] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    def table(self, title: str) -> list[dict[str, str]]:
        """Return the rows of the only table under a title, by the names in its head (a repeated one is primed)."""
        ((_, head, rows),) = [each for each in self.tables if each[0] == title]
        names: list[str] = []
        for name in head:
            names.append(name if name not in names else f"{name}'")
        return [dict(zip(names, row, strict=True)) for row in rows]


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said = Said()
        self._text: list[str] = []
        self._name = ""
        self._rows: list[list[str]] = []
        self._drawing = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "svg":
            label = dict(attrs)["aria-label"] or ""
            self.said.pictures.append((self._name, label))
            self._drawing += 1
        elif tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])
        if tag in ("p", "li", "dt", "dd", "th", "td", "h1", "h2", "h3", "h4", "summary", "figcaption", "code", "style"):
            self._text = []

    def handle_data(self, data: str) -> None:
        if not self._drawing:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        text, said = "".join(self._text), self.said
        if tag == "svg":
            self._drawing -= 1
        elif tag in ("h1", "h2", "h3", "h4", "summary"):
            said.titles.append(text)
        elif tag == "p" and text:
            said.words.append(text)
        elif tag in ("dt", "figcaption"):
            self._name = text
        elif tag == "dd":
            said.facts.append((self._name, text))
        elif tag == "li":
            said.bullets.append(text)
        elif tag == "code":
            said.commands.append(text)
            self._text = []
        elif tag in ("th", "td"):
            self._rows[-1].append(text)
        elif tag == "table":
            said.tables.append((said.titles[-1], self._rows[0], self._rows[1:]))


def of_html(page: str) -> Said:
    """Return what an HTML page says."""
    reader = _Html()
    reader.feed(page)
    return reader.said


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text.removeprefix("**").removesuffix("**"))


def of_markdown(page: str) -> Said:
    """Return what a Markdown page says, as far as padfix writes Markdown."""
    said = Said()
    for block in re.split(r"\n\n+", page.strip()):
        lines = block.splitlines()
        first = lines[0]
        if first.startswith("#"):
            said.titles.append(_plain(first.lstrip("#").strip()))
        elif first.startswith("<details>"):
            found = re.search(r"<summary>(.*)</summary>", first)
            assert found
            said.titles.append(_plain(found.group(1)))
        elif first == "</details>":
            continue
        elif first.startswith("|"):
            rows = [[_plain(cell) for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]
            trimmed = [[cell.strip() for cell in row] for row in rows]
            said.tables.append((said.titles[-1], trimmed[0], trimmed[2:]))
        elif first.startswith("- ") and _is_fact(first) and not said.tables:
            pairs = (re.fullmatch(r"- ([^:]*): (.*)", line) for line in lines)
            said.facts += [(_plain(pair.group(1)), _plain(pair.group(2))) for pair in pairs if pair]
        elif first.startswith("- "):
            said.bullets += [_plain(line.removeprefix("- ")) for line in lines]
        elif first.startswith("<img"):
            found = re.search(r'alt="([^"]*)"', first)
            assert found
            said.pictures.append((said.words.pop().removesuffix(":"), html.unescape(found.group(1))))
        elif first.startswith("    "):
            said.words.pop()
            said.commands.append(first.strip())
        else:
            said.words.append(_plain(block))
    return said


def _is_fact(line: str) -> bool:
    return re.match(r"- (padfix|Source|Result|Target|Date|Versions|Seed|Probe|rtol|atol)[^:]*: ", line) is not None
