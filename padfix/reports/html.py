"""Reports as one HTML page with pictures, without scripts or outside resources."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from padfix.errors import PadfixError
from padfix.reports import page
from padfix.reports.characters import printable
from padfix.reports.pictures.svg import STYLE
from padfix.reports.sections import Block, Bullets, Command, Facts, Page, Pictures, Section, Table, Words
from padfix.results import CheckReport, ConvertReport, Verdict

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}"
    "h1,h2,p,li,dd{overflow-wrap:anywhere}div{overflow-x:auto}table{border-collapse:collapse;width:100%}"
    "th,td{border:1px solid #bbb;padding:.25rem .5rem;text-align:left;vertical-align:top;overflow-wrap:break-word}"
    "th,td:first-child{white-space:nowrap}td:last-child{min-width:14rem}th{background:#eee}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1rem}dt{font-weight:600}dd{margin:0}"
    ".good{color:#1a6b36}.bad{color:#b00020}figure{display:inline-block;margin:1rem 2rem 1rem 0;vertical-align:top;"
    "max-width:100%}figcaption{overflow-wrap:anywhere}:root{color-scheme:light dark}"
    "@media(prefers-color-scheme:dark){body{background:#16181c;color:#e4e4e4}th,td{border-color:#555}"
    "th{background:#2a2d33}.good{color:#7fd49b}.bad{color:#ff8a80}}"
)


def report(result: ConvertReport | Verdict) -> str:
    """Return what ``convert`` or ``verify`` found as a complete page."""
    return _page(page.of_result(result))


def findings(reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]] = ()) -> str:
    """Return what ``check`` found as a complete page, a section a model."""
    return _page(page.of_findings(reports, failures))


def _page(content: Page) -> str:
    body = "\n".join(_block(block, 2) for block in content.blocks)
    title = _text(content.title)
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{title}</title>'
        f"<style>{_STYLE}{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n{body}\n</body>\n</html>\n"
    )


def _text(words: str) -> str:
    return escape(printable(words))


def _block(block: Block, level: int) -> str:
    match block:
        case Words():
            words = f"<strong>{_text(block.text)}</strong>" if block.strong else _text(block.text)
            return f'<p class="{block.tone.value}">{words}</p>'
        case Facts():
            pairs = (f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in block.pairs)
            return f"<dl>{''.join(pairs)}</dl>"
        case Table():
            return _table(block)
        case Bullets():
            items = "\n".join(f"<li>{_text(item)}</li>" for item in block.items)
            return f'<ul class="{block.tone.value}">\n{items}\n</ul>'
        case Command():
            return f"<p>{_text(block.purpose)}: <code>{_text(block.line)}</code></p>"
        case Pictures():
            return _pictures(block)
        case Section():
            inner = "\n".join(_block(each, level + 1) for each in block.blocks)
            if block.folded:
                return f"<details><summary>{_text(block.title)}</summary>\n{inner}\n</details>"
            return f"<section>\n<h{level}>{_text(block.title)}</h{level}>\n{inner}\n</section>"


def _table(block: Table) -> str:
    top = "".join(f"<th>{_text(cell)}</th>" for cell in block.head)
    rows = "\n".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in block.rows)
    return f"<div><table>\n<tr>{top}</tr>\n{rows}\n</table></div>"


def _pictures(block: Pictures) -> str:
    parts = [
        f"<figure><figcaption>{_text(caption)}</figcaption>{picture.inline()}</figure>"
        for caption, picture in block.pictures
    ]
    if block.left_out:
        parts.append(f"<p>{block.left_out} more pictures are left out.</p>")
    return "\n".join(parts)
