"""Reports as one HTML page with pictures, without scripts or outside resources."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

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
    Tone,
    Words,
)
from padfix.reports.style import STYLE
from padfix.results import CheckReport, ConvertReport, RuntimesReport, Verdict

_MARKED = {"yes": "yes", "NO": "no"}
"""Words of a table that stand out, in a colour as well."""

_SETTING = re.compile(r"(\w+=(?:\[[^]]*\]|[^,()]*))([,)]*)")
"""What a node's line says of one attribute, and what follows it at once."""


def report(result: ConvertReport | Verdict | RuntimesReport) -> str:
    """Return what ``convert`` or ``verify`` found as a complete page."""
    return _page(page.of_result(result))


def findings(reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]] = ()) -> str:
    """Return what ``check`` found as a complete page, a section a model."""
    return _page(page.of_findings(reports, failures))


def _page(content: Page) -> str:
    tones = [block.tone.value for block in content.head if isinstance(block, Words)]
    title = _text(content.title)
    card = "\n".join(_block(block, 2) for block in content.head)
    body = "\n".join(_block(block, 2) for block in content.blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{title}</title>'
        f'<style>{STYLE}</style></head>\n<body>\n<header class="{tones[0] if tones else Tone.PLAIN.value}">\n'
        f"<h1>{title}</h1>\n{card}\n</header>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _text(words: str) -> str:
    return escape(printable(words))


def _name(words: str) -> str:
    """Return words with a path or the name of a node, which is best broken behind a slash."""
    return _text(words).replace("/", "/<wbr>")


def _block(block: Block, level: int) -> str:
    match block:
        case Words():
            words = f"<strong>{_text(block.text)}</strong>" if block.strong else _text(block.text)
            return f'<p class="{block.tone.value}">{words}</p>'
        case Counts():
            return f'<div class="counts">{"".join(_mark(words, tone.value) for words, tone in block.parts)}</div>'
        case Facts():
            pairs = (f"<dt>{_text(name)}</dt><dd>{_name(value)}</dd>" for name, value in block.pairs)
            return f"<dl>{''.join(pairs)}</dl>"
        case Table():
            return _table(block)
        case Bullets():
            items = "\n".join(f"<li>{_name(item)}</li>" for item in block.items)
            return f'<ul class="{block.tone.value}">\n{items}\n</ul>'
        case Command():
            return f"<p>{_text(block.purpose)}:</p><code>{_text(block.line)}</code>"
        case Items():
            return "\n".join(_item(each, is_first=place == 0) for place, each in enumerate(block.items))
        case Pictures():
            return "\n".join(_figure(picture, caption) for caption, picture in block.pictures)
        case Section():
            return _section(block, level)


def _section(section: Section, level: int) -> str:
    inner = "\n".join(_block(each, level + 1) for each in section.blocks)
    anchor = f' id="{section.anchor}"' if section.anchor else ""
    if section.folded:
        return f"<details{anchor}><summary>{_name(section.title)}</summary>\n{inner}\n</details>"
    return f"<section{anchor}>\n<h{level}>{_name(section.title)}</h{level}>\n{inner}\n</section>"


def _mark(words: str, name: str) -> str:
    return f'<mark class="{name}">{_text(words)}</mark>'


def _table(block: Table) -> str:
    top = "".join(f"<th>{_text(cell)}</th>" for cell in block.head)
    rows = []
    for place, row in enumerate(block.rows):
        cells = [_mark(cell, _MARKED[cell]) if cell in _MARKED else _name(cell) for cell in row]
        if block.links:
            cells[0] = f'<a href="#{block.links[place]}">{cells[0]}</a>'
        pairs = zip(block.head, cells, strict=True)
        rows.append("".join(f'<td data-head="{_text(name)}">{cell}</td>' for name, cell in pairs))
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="rows"><table>\n<tr>{top}</tr>\n{body}\n</table></div>'


def _item(item: Item, *, is_first: bool) -> str:
    operator = f" <b>{_text(item.op_type)}</b>" if item.op_type else ""
    severity = item.severity.value
    parts = [f"<h4>{_mark(severity, severity)} {_name(item.place)}{operator}</h4>", f"<p>{_text(item.text)}</p>"]
    if item.after:
        sides = (("Before", item.before, item.after, "del"), ("After", item.after, item.before, "ins"))
        parts.append(f'<div class="sides">{"".join(_side(*side) for side in sides)}</div>')
    if item.remark:
        parts.append(f'<p class="remark">{_text(item.remark)}</p>')
    if item.as_at:
        there, anchor = item.as_at
        parts.append(f'<p class="remark">The picture is that of <a href="#{anchor}">{_name(there)}</a>.</p>')
    if item.alike:
        names = "".join(f"<li>{_name(name)}</li>" for name in item.alike)
        parts.append(f"<details><summary>{len(item.alike)} more alike</summary><ul>{names}</ul></details>")
    figure = _figure(item.picture) if item.picture is not None else ""
    if figure and not is_first:
        parts.append(f"<details><summary>Picture</summary>{figure}</details>")
        figure = ""
    return f'<article class="{severity}" id="{item.anchor}"><div>{"".join(parts)}</div>{figure}</article>'


def _side(title: str, lines: Sequence[str], others: Sequence[str], name: str) -> str:
    """Return one side of a rewrite, with what the other side does not say made to stand out."""
    there = {setting for line in others for setting, _ in _SETTING.findall(line)}
    shown = "".join(f"<code>{_marked_settings(line, there, name)}</code>" for line in lines)
    return f"<div><span>{title}</span>{shown}</div>"


def _marked_settings(line: str, there: set[str], name: str) -> str:
    parts, end = [], 0
    for found in _SETTING.finditer(line):
        setting = _text(found.group(1))
        shown = setting if found.group(1) in there else f"<{name}>{setting}</{name}>"
        parts += [_text(line[end : found.start()]), f'<span class="setting">{shown}{found.group(2)}</span>']
        end = found.end()
    return "".join((*parts, _text(line[end:])))


def _figure(picture: Picture, caption: str = "") -> str:
    words = f"<figcaption>{_text(caption)}</figcaption>" if caption else ""
    drawn = f'<div class="list">{picture.inline()}</div>' if picture.lines else picture.inline()
    return f"<figure>{words}{drawn}</figure>"
