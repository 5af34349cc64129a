"""Reports as Markdown, for pull requests and build summaries."""

from __future__ import annotations

from collections.abc import Sequence

from padfix.errors import PadfixError
from padfix.reports import page
from padfix.reports.characters import printable
from padfix.reports.sections import Block, Bullets, Command, Facts, Page, Pictures, Section, Table, Words
from padfix.results import CheckReport, ConvertReport, Verdict


def report(result: ConvertReport | Verdict) -> str:
    """Return what ``convert`` or ``verify`` found."""
    return _page(page.of_result(result), pictures=True)


def findings(
    reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]] = (), *, pictures: bool = True
) -> str:
    """Return what ``check`` found, with pictures where they are wanted."""
    return _page(page.of_findings(reports, failures), pictures=pictures)


def escaped(text: str) -> str:
    """Return ``text`` as it should be read: nothing in it is Markdown or HTML."""
    return "".join(f"\\{each}" if each in "\\`*_{}[]()<>#|!~&" else each for each in printable(text))


def _page(content: Page, *, pictures: bool) -> str:
    lines = [f"## {escaped(content.title)}"]
    for block in content.blocks:
        lines += _block(block, 3, pictures=pictures)
    return "\n".join(lines) + "\n"


def _block(block: Block, level: int, *, pictures: bool) -> list[str]:
    """Return the lines of a block, an empty line first."""
    match block:
        case Words():
            words = escaped(block.text)
            return ["", f"**{words}**" if block.strong else words]
        case Facts():
            return ["", *(f"- {escaped(name)}: {escaped(value)}" for name, value in block.pairs)]
        case Table():
            return ["", *_table(block)]
        case Bullets():
            return ["", *(f"- {escaped(item)}" for item in block.items)]
        case Command():
            return ["", f"{escaped(block.purpose)}:", "", f"    {printable(block.line)}"]
        case Pictures():
            return _pictures(block) if pictures else []
        case Section():
            inner = [line for each in block.blocks for line in _block(each, level + 1, pictures=pictures)]
            if block.folded:
                return ["", f"<details><summary>{escaped(block.title)}</summary>", *inner, "", "</details>"]
            return ["", f"{'#' * level} {escaped(block.title)}", *inner]


def _table(block: Table) -> list[str]:
    lines = [f"| {' | '.join(map(escaped, block.head))} |", f"|{'---|' * len(block.head)}"]
    lines.extend(f"| {' | '.join(escaped(cell) for cell in row)} |" for row in block.rows)
    return lines


def _pictures(block: Pictures) -> list[str]:
    """Return pictures as images that hold all of themselves; where those are not shown, their words are."""
    lines = []
    for caption, picture in block.pictures:
        lines += ["", f"{escaped(caption)}:", "", picture.image()]
    return [*lines, "", f"{block.left_out} more pictures are left out."] if block.left_out else lines
