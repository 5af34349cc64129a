"""Reports as Markdown, for pull requests and build summaries: no images, which the sites that show it drop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from padfix.errors import PadfixError
from padfix.reports import page
from padfix.reports.characters import printable
from padfix.reports.pictures.svg import Picture
from padfix.reports.sections import (
    Block,
    Bullets,
    Command,
    Counts,
    Facts,
    Item,
    Items,
    Page,
    Pictures,
    Section,
    Table,
    Words,
    shortened,
)
from padfix.results import CheckReport, ConvertReport, RuntimesReport, Verdict

LONGEST = 65_536
"""What a comment on GitHub may hold, in characters: no more bytes than that are on the safe side."""

_SHORTER = (200, 50, 20, 8, 3, 1)
"""How many of everything are kept, until the page is short enough."""


def report(result: ConvertReport | Verdict | RuntimesReport) -> str:
    """Return what ``convert`` or ``verify`` found."""
    return _short_enough(page.of_result(result))


def findings(
    reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]] = (), *, longest: int = LONGEST
) -> str:
    """Return what ``check`` found, in at most ``longest`` bytes."""
    return _short_enough(page.of_findings(reports, failures), longest)


def escaped(text: str) -> str:
    """Return ``text`` as it should be read: nothing in it is Markdown or HTML."""
    return "".join(f"\\{each}" if each in "\\`*_{}[]()<>#|!~&" else each for each in printable(text))


def _short_enough(content: Page, longest: int = LONGEST) -> str:
    """Return as much of the page as there is room for."""
    text = _page(content).encode()
    for most in _SHORTER:
        if len(text) > longest:
            shorter = Page(content.title, shortened(content.head, most), shortened(content.blocks, most))
            text = _page(shorter).encode()
    if len(text) > longest:
        cut = b"\n\nCut here, for the length of the page.\n"
        text = text[: text.rindex(b"\n", 0, longest - len(cut))] + cut
    return text.decode(errors="replace")


def _page(content: Page) -> str:
    lines = [f"## {escaped(content.title)}"]
    for block in (*content.head, *content.blocks):
        lines += _block(block, 3)
    return "\n".join(lines) + "\n"


def _block(block: Block, level: int) -> list[str]:
    """Return the lines of a block, an empty line first."""
    match block:
        case Words():
            words = escaped(block.text)
            return ["", f"**{words}**" if block.strong else words]
        case Counts():
            return ["", " · ".join(f"**{escaped(words)}**" for words, _ in block.parts)]
        case Facts():
            return ["", *(f"- {escaped(name)}: {escaped(value)}" for name, value in block.pairs)]
        case Table():
            return ["", *_table(block.head, block.rows)]
        case Bullets():
            return ["", *(f"- {escaped(item)}" for item in block.items)]
        case Command():
            return ["", f"{escaped(block.purpose)}:", "", f"    {printable(block.line)}"]
        case Items():
            return ["", *_items(block.items)]
        case Pictures():
            return [line for caption, picture in block.pictures for line in _in_words(caption, picture)]
        case Section():
            inner = [line for each in block.blocks for line in _block(each, level + 1)]
            if block.folded:
                return ["", f"<details><summary>{escaped(block.title)}</summary>", *inner, "", "</details>"]
            return ["", f"{'#' * min(level, 6)} {escaped(block.title)}", *inner]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(escaped, head))} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(escaped(cell) for cell in row)} |"


_COLUMNS = ("Node", "Operator", "Severity", "Finding", "Before", "After", "What became of it", "In words")


def _items(items: Sequence[Item]) -> Iterator[str]:
    """Yield a table of the columns that say something."""
    rows = [_cells(item) for item in items]
    shown = [place for place in range(len(_COLUMNS)) if any(row[place] for row in rows)]
    yield f"| {' | '.join(_COLUMNS[place] for place in shown)} |"
    yield f"|{'---|' * len(shown)}"
    for row in rows:
        yield f"| {' | '.join(row[place] for place in shown)} |"


def _cells(item: Item) -> tuple[str, ...]:
    node = escaped(item.place)
    if item.alike:
        names = ", ".join(map(escaped, item.alike))
        node += f"<details><summary>{len(item.alike)} more alike</summary>{names}</details>"
    words = escaped(item.picture.words) if item.picture is not None else ""
    if item.as_at:
        words = f"The picture is that of {escaped(item.as_at[0])}."
    sides = ("<br>".join(map(escaped, lines)) for lines in (item.before, item.after))
    return (node, escaped(item.op_type), item.severity.value, escaped(item.text), *sides, escaped(item.remark), words)


def _in_words(caption: str, picture: Picture) -> list[str]:
    """Return what a picture shows in words, with its lines folded."""
    told = ["", f"{escaped(caption)}:", "", f"> {escaped(picture.words)}"]
    if picture.lines:
        told += ["", f"<details><summary>{len(picture.lines)} lines</summary>", ""]
        told += [*(f"{number}. {escaped(line)}" for number, line in enumerate(picture.lines, 1)), "", "</details>"]
    return told
