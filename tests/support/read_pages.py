"""Reading a rendered report back, from HTML and from Markdown, to what it says: the same shape from both."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class SaidItem:
    """What a page says of one finding, or of several that are alike.

    Attributes:
        title: The nearest heading above.
        place: Where it is.
        op_type: The operator.
        severity: In a word.
        text: What was found.
        before: Lines of the one side.
        after: Lines of the other.
        remark: What became of it.
        words: Of its picture, or where the same picture is.
        alike: The other places.
    """

    title: str
    place: str = ""
    op_type: str = ""
    severity: str = ""
    text: str = ""
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    remark: str = ""
    words: str = ""
    alike: list[str] = field(default_factory=list)

    @property
    def places(self) -> list[str]:
        """All places that it is of."""
        return [self.place, *self.alike]


@dataclass
class Said:
    """What a page says.

    Attributes:
        titles: Headings and titles of what is folded, in their order.
        words: Paragraphs.
        counts: How many of what.
        facts: Names with their values, in their order.
        tables: Title of the nearest heading above, head and rows of each table.
        items: Findings.
        bullets: Items of lists.
        pictures: Captions, and the words in the place of each picture that is not of a finding.
        lines: What the lines of these pictures are.
        commands: What is to be pasted.
    """

    titles: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    tables: list[tuple[str, list[str], list[list[str]]]] = field(default_factory=list)
    items: list[SaidItem] = field(default_factory=list)
    bullets: list[str] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    def table(self, title: str) -> list[dict[str, str]]:
        """Return the rows of the only table under a title, by the names in its head (a repeated one is primed)."""
        ((_, head, rows),) = [each for each in self.tables if each[0] == title]
        names: list[str] = []
        for name in head:
            names.append(name if name not in names else f"{name}'")
        return [dict(zip(names, row, strict=True)) for row in rows]


_BLOCKS = frozenset(
    (
        "p",
        "li",
        "dt",
        "dd",
        "th",
        "td",
        "h1",
        "h2",
        "h3",
        "h4",
        "summary",
        "figcaption",
        "code",
        "style",
        "mark",
        "title",
    )
)


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said = Said()
        self._text: list[str] = []
        self._name = ""
        self._rows: list[list[str]] = []
        self._drawing = 0
        self._in_title = False
        self._item: SaidItem | None = None
        self._is_count = False
        self._class = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = dict(attrs).get("class") or ""
        if tag == "svg":
            label = dict(attrs)["aria-label"] or ""
            if self._item is None:
                self.said.pictures.append((self._name, label))
            else:
                self._item.words = label
            self._drawing += 1
        elif tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])
        elif tag == "article":
            self._item = SaidItem(self.said.titles[-1])
        elif tag == "div":
            self._is_count = name == "counts"
        if tag == "p":
            self._class = name
        if tag in _BLOCKS or (tag == "b" and self._item is not None) or (tag == "span" and not name):
            if tag == "b" and self._item is not None:
                self._item.place = "".join(self._text).strip()
            if not (tag == "mark" and self._in_cell()):
                self._text = []
        self._in_title = self._in_title or (tag == "title" and bool(self._drawing))

    def _title(self) -> str:
        return self.said.titles[-1] if len(self.said.titles) > 1 else ""

    def _in_cell(self) -> bool:
        return self._item is None and not self._is_count

    def handle_data(self, data: str) -> None:
        if not self._drawing or self._in_title:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        text, said = "".join(self._text), self.said
        if tag == "svg":
            self._drawing -= 1
        elif tag == "title" and self._drawing:
            said.lines.append(text)
            self._in_title = False
        elif tag == "article" and self._item is not None:
            said.items.append(self._item)
            self._item = None
        elif self._item is not None:
            self._end_in_item(tag, text, self._item)
        elif tag in ("h1", "h2", "h3", "h4", "summary"):
            said.titles.append(text)
        elif tag == "mark" and self._is_count:
            said.counts.append(text)
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
        elif tag in ("th", "td"):
            self._rows[-1].append(text)
        elif tag == "table":
            said.tables.append((self._title(), self._rows[0], self._rows[1:]))

    def _end_in_item(self, tag: str, text: str, item: SaidItem) -> None:
        if tag == "mark":
            item.severity = text
            self._text = []
        elif tag == "b":
            item.op_type = text
        elif tag == "h4" and not item.place:
            item.place = text.strip()
        elif tag == "p" and self._class != "remark":
            item.text = text
        elif tag == "p" and text.startswith("The picture is that of "):
            item.words = text
        elif tag == "p":
            item.remark = text
        elif tag == "span" and text in ("Before", "After"):
            self._name = text
        elif tag == "code":
            (item.before if self._name == "Before" else item.after).append(text)
        elif tag == "li":
            item.alike.append(text)


def of_html(page: str) -> Said:
    """Return what an HTML page says."""
    reader = _Html()
    reader.feed(page)
    return reader.said


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text.strip().removeprefix("**").removesuffix("**"))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))]


def _items(title: str, head: list[str], rows: list[list[str]]) -> list[SaidItem]:
    found = []
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        place, _, rest = cells["Node"].partition("<details><summary>")
        names = re.fullmatch(r"(\d+) more alike</summary>(.*)</details>", rest)
        alike = [_plain(name) for name in names.group(2).split(", ")] if names else []
        assert not names or int(names.group(1)) == len(alike)
        sides = [[_plain(line) for line in cells.get(name, "").split("<br>") if line] for name in ("Before", "After")]
        rest_of_it = (_plain(cells.get(name, "")) for name in ("Finding", "What became of it", "In words"))
        text, remark, words = rest_of_it
        item = SaidItem(title, _plain(place), _plain(cells.get("Operator", "")), cells["Severity"], text)
        item.before, item.after, item.remark, item.words, item.alike = *sides, remark, words, alike
        found.append(item)
    return found


def of_markdown(page: str) -> Said:
    """Return what a Markdown page says, as far as padfix writes Markdown."""
    said = Said()
    for block in re.split(r"\n\n+", page.strip()):
        lines = block.splitlines()
        first = lines[0]
        if first.startswith("#"):
            said.titles.append(_plain(first.lstrip("#")))
        elif re.match(r"<details><summary>\d+ lines", first) or first == "</details>":
            continue
        elif first.startswith("<details>"):
            found = re.search(r"<summary>(.*)</summary>", first)
            assert found
            said.titles.append(_plain(found.group(1)))
        elif first.startswith("|"):
            rows = [_cells(line) for line in lines]
            if "Finding" in rows[0]:
                said.items += _items(said.titles[-1], rows[0], rows[2:])
            else:
                plain = [[_plain(cell) for cell in row] for row in rows]
                said.tables.append((said.titles[-1] if len(said.titles) > 1 else "", plain[0], plain[2:]))
        elif first.startswith("- ") and _is_fact(first) and not said.tables:
            pairs = (re.fullmatch(r"- ([^:]*): (.*)", line) for line in lines)
            said.facts += [(_plain(pair.group(1)), _plain(pair.group(2))) for pair in pairs if pair]
        elif first.startswith("- "):
            said.bullets += [_plain(line.removeprefix("- ")) for line in lines]
        elif first.startswith("> "):
            said.pictures.append((said.words.pop().removesuffix(":"), html.unescape(_plain(first[2:]))))
        elif re.match(r"\d+\. ", first):
            said.lines += [_plain(line.partition(". ")[2]) for line in lines]
        elif first.startswith("    "):
            said.commands.append(first.strip())
        elif first.startswith("**") and (
            " · " in first or re.fullmatch(r"\*\*(\d+ |equal|NOT|could not|no proof)[^.]*\*\*", first)
        ):
            said.counts += [_plain(part) for part in first.split(" · ")]
        else:
            said.words.append(_plain(block))
    return said


def _is_fact(line: str) -> bool:
    names = "padfix|Source|Result|Target|Rules asked|Date|Versions|Seed|Probe|rtol|atol"
    return re.match(rf"- ({names})[^:]*: ", line) is not None
