"""Reports as one HTML page with pictures, without scripts or outside resources."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from padfix.errors import PadfixError
from padfix.reports import page
from padfix.reports.characters import printable
from padfix.reports.pictures.svg import STYLE
from padfix.reports.sections import Block, Bullets, Command, Facts, Page, Pictures, Section, Table, Tone, Words
from padfix.results import CheckReport, ConvertReport, Verdict

_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1f2328;--faint:#59636e;--line:#d1d9e0;--soft:#f6f8fa;
--good:#1a6b36;--good-soft:#e6f4ea;--bad:#a40e26;--bad-soft:#fdecee;--warn:#7a4d00;--warn-soft:#fff4d6;--link:#0b3d91}
@media(prefers-color-scheme:dark){:root{--paper:#16181c;--ink:#e6e8eb;--faint:#9aa4af;--line:#3a4048;--soft:#1f2329;
--good:#7fd49b;--good-soft:#16301f;--bad:#ff9a92;--bad-soft:#3a1a1c;--warn:#f0c060;--warn-soft:#33280f;--link:#8ab4ff}}
body{font:15px/1.5 system-ui,-apple-system,sans-serif;margin:0 auto;max-width:76rem;padding:1rem;
background:var(--paper);color:var(--ink)}
h1{font-size:1rem;font-weight:600;color:var(--faint);margin:0 0 .25rem}
h2{font-size:1.25rem;margin:2rem 0 .5rem;padding-top:.5rem;border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.5rem 0 .25rem}h4{font-size:1rem;margin:1rem 0 .25rem}
h1,h2,h3,h4,p,li,dd,code,figcaption{overflow-wrap:anywhere}p{margin:.5rem 0}
header{border:1px solid var(--line);border-left:.5rem solid var(--faint);border-radius:.5rem;padding:1rem 1.25rem;
background:var(--soft)}
header.good{border-left-color:var(--good);background:var(--good-soft)}
header.bad{border-left-color:var(--bad);background:var(--bad-soft)}
header strong{font-size:1.35rem;line-height:1.3}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.75rem 0 0;font-size:.9rem}
dt{color:var(--faint)}dd{margin:0}
p.good,ul.good{color:var(--good)}p.bad,ul.bad{color:var(--bad)}
.rows{overflow:auto;max-height:32rem;border:1px solid var(--line);border-radius:.5rem;margin:.75rem 0}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{padding:.35rem .6rem;text-align:left;vertical-align:top;border-top:1px solid var(--line)}
th{position:sticky;top:0;background:var(--soft);white-space:nowrap;border-top:0}
td{overflow-wrap:break-word}td:last-child{min-width:12rem}tbody tr:nth-child(even){background:var(--soft)}
mark{border-radius:1rem;padding:.05rem .5rem;font-weight:600;background:var(--soft);color:var(--ink)}
mark.yes{background:var(--good-soft);color:var(--good)}mark.warning{background:var(--warn-soft);color:var(--warn)}
mark.error,mark.no{background:var(--bad-soft);color:var(--bad)}
figure{display:inline-block;margin:1rem 2rem 1rem 0;vertical-align:top;max-width:100%}
figcaption{font-size:.9rem;color:var(--faint)}
details{margin:1rem 0;border:1px solid var(--line);border-radius:.5rem;padding:.5rem 1rem}
summary{cursor:pointer;font-weight:600}
code{display:block;padding:.5rem .75rem;border-radius:.5rem;background:var(--soft);border:1px solid var(--line)}
@media(max-width:40rem){body{padding:.5rem}dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}
header strong{font-size:1.15rem}td:last-child{min-width:9rem}}
@media print{body{max-width:none;padding:0}.rows{max-height:none;overflow:visible}th{position:static}
section,figure{break-inside:avoid-page}mark{border:1px solid}}
""".replace("\n", "")

_MARKED = {"error": "error", "warning": "warning", "info": "info", "yes": "yes", "NO": "no"}
"""Words of a table that stand out, in a colour as well."""


def report(result: ConvertReport | Verdict) -> str:
    """Return what ``convert`` or ``verify`` found as a complete page."""
    return _page(page.of_result(result))


def findings(reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]] = ()) -> str:
    """Return what ``check`` found as a complete page, a section a model."""
    return _page(page.of_findings(reports, failures))


def _page(content: Page) -> str:
    size = next(
        (place for place, block in enumerate(content.blocks) if not isinstance(block, Words | Facts | Command)),
        len(content.blocks),
    )
    tones = [block.tone.value for block in content.blocks[:size] if isinstance(block, Words)]
    title = _text(content.title)
    card = "\n".join(_block(block, 2) for block in content.blocks[:size])
    body = "\n".join(_block(block, 2) for block in content.blocks[size:])
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{title}</title>'
        f'<style>{_STYLE}{STYLE}</style></head>\n<body>\n<header class="{tones[0] if tones else Tone.PLAIN.value}">\n'
        f"<h1>{title}</h1>\n{card}\n</header>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
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
    rows = "\n".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in block.rows)
    return f'<div class="rows"><table>\n<tr>{top}</tr>\n{rows}\n</table></div>'


def _cell(words: str) -> str:
    return f'<mark class="{_MARKED[words]}">{words}</mark>' if words in _MARKED else _text(words)


def _pictures(block: Pictures) -> str:
    parts = [
        f"<figure><figcaption>{_text(caption)}</figcaption>{picture.inline()}</figure>"
        for caption, picture in block.pictures
    ]
    if block.left_out:
        parts.append(f"<p>{block.left_out} more pictures are left out.</p>")
    return "\n".join(parts)
