"""Reports as one HTML page with pictures, without scripts or outside resources."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from padfix.errors import PadfixError
from padfix.reports import sentences
from padfix.reports.characters import printable
from padfix.reports.pictures import selection
from padfix.reports.pictures.svg import STYLE, Picture
from padfix.reports.text import summary
from padfix.results import CheckReport, ConvertReport, Finding, Verdict

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}"
    "h1,h2,p,li{overflow-wrap:anywhere}div{overflow-x:auto}table{border-collapse:collapse;width:100%}"
    "th,td{border:1px solid #bbb;padding:.25rem .5rem;text-align:left;vertical-align:top;overflow-wrap:break-word}"
    "th,td:first-child{white-space:nowrap}td:last-child{min-width:14rem}th{background:#eee}"
    ".no{color:#b00020;font-weight:bold}figure{display:inline-block;margin:1rem 2rem 1rem 0;vertical-align:top;"
    "max-width:100%}figcaption{overflow-wrap:anywhere}:root{color-scheme:light dark}"
    "@media(prefers-color-scheme:dark){body{background:#16181c;color:#e4e4e4}th,td{border-color:#555}"
    "th{background:#2a2d33}.no{color:#ff8a80}}"
)


def report(result: ConvertReport | Verdict, *, written: bool = False) -> str:
    """Return what ``convert`` or ``verify`` found as a complete page."""
    title = "padfix verify" if isinstance(result, Verdict) else "padfix convert"
    return _page(title, _verdict(result) if isinstance(result, Verdict) else _conversion(result, written))


def findings(reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]] = ()) -> str:
    """Return what ``check`` found as a complete page, a section a model."""
    body = [f"<p><strong>{_text(summary(reports))}</strong></p>"]
    for each in reports:
        if each.findings:
            rows = [
                [
                    finding.severity.value,
                    f"{finding.rule} {finding.name}",
                    f"{finding.graph}/{finding.node}",
                    finding.op_type,
                    f"{finding.message} {finding.hint}".strip(),
                ]
                for finding in each.findings
            ]
            body.append(f"<h2>{_text(each.source)}</h2>")
            body.append(_table(["Severity", "Rule", "Node", "Operator", "Message"], rows))
            body += _pictures(each.findings)
            command = sentences.fix(each)
            if command:
                body.append(f"<p>To {_text(sentences.fix_title(each))}: <code>{_text(command)}</code></p>")
    if failures:
        body += ["<h2>Not read</h2>", "<ul>"]
        body += [f'<li class="no">{_text(name)}: {_text(str(error))}</li>' for name, error in failures]
        body.append("</ul>")
    return _page("padfix check", body)


def _page(title: str, body: Sequence[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{title}</title>'
        f"<style>{_STYLE}{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def _text(words: str) -> str:
    return escape(printable(words))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{_text(cell)}</th>" for cell in head)
    body = "\n".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div><table>\n<tr>{top}</tr>\n{body}\n</table></div>"


def _pictures(findings: Sequence[Finding]) -> list[str]:
    pictures, left_out = selection.of_findings(findings)
    parts = [_figure(caption, picture) for caption, picture in pictures]
    if left_out:
        parts.append(f"<p>{left_out} more pictures are left out.</p>")
    return parts


def _figure(caption: str, picture: Picture) -> str:
    return f"<figure><figcaption>{_text(caption)}</figcaption>{picture.inline()}</figure>"


def _conversion(result: ConvertReport, written: bool) -> list[str]:
    parts = [
        f"<p>{_text(f'{result.source} ({sentences.kind(result)}).')}</p>",
        f"<p><strong>{_text(sentences.outcome(result, written=written))}</strong></p>",
    ]
    if sentences.windows(result):
        parts.append(f"<p>{sentences.windows(result)}.</p>")
    if result.rewrites:
        rows = [
            [
                f"{each.finding.rule} {each.finding.name}",
                f"{each.finding.graph}/{each.finding.node}",
                each.finding.op_type,
                each.finding.message,
                sentences.local_proof(each.proof),
            ]
            for each in result.rewrites
        ]
        parts += ["<h2>Rewritten</h2>", _table(["Rule", "Node", "Operator", "Finding", "Proof"], rows)]
        parts += _pictures([each.finding for each in result.rewrites])
    if result.refusals:
        rows = [
            [
                f"{each.finding.rule} {each.finding.name}",
                f"{each.finding.graph}/{each.finding.node}",
                each.finding.op_type,
                each.reason,
            ]
            for each in result.refusals
        ]
        parts += ["<h2>Refused</h2>", _table(["Rule", "Node", "Operator", "Reason"], rows)]
        parts += _pictures([each.finding for each in result.refusals])
    if result.notes:
        parts += ["<h2>Notes</h2>", "<ul>", *(f"<li>{_text(note)}</li>" for note in result.notes), "</ul>"]
    if result.verdict is not None:
        parts += ["<h2>Proof</h2>", *_verdict(result.verdict)]
    return parts


def _verdict(result: Verdict) -> list[str]:
    marked = "" if result.equivalent else ' class="no"'
    parts = [f"<p{marked}>{_text(sentences.verdict(result))}</p>"]
    rows = [
        [
            run.probe,
            run.candidate,
            ", ".join(f"{name} {list(shape)}" for name, shape in run.shapes.items()),
            output.name,
            "yes" if output.equivalent else "NO",
            f"{output.max_abs_diff:.3g}",
            f"{output.tolerance:.3g}",
            output.detail,
        ]
        for run in result.runs
        for output in run.outputs
    ]
    if rows:
        head = ["Probe", "Run by", "Input shapes", "Output", "Equal", "Largest difference", "Allowed", "Remark"]
        parts.append(_table(head, rows))
    parts += [_figure(caption, picture) for caption, picture in selection.of_verdict(result)]
    if result.first_difference is not None:
        lines = sentences.first_difference(result.first_difference)
        parts += ["<h3>First difference</h3>", "<ul>", *(f"<li>{_text(line)}</li>" for line in lines), "</ul>"]
    if result.notes:
        parts += ["<ul>", *(f"<li>{_text(note)}</li>" for note in result.notes), "</ul>"]
    return parts
