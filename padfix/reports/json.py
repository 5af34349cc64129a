"""Reports as JSON. ``schema`` comes first; numbers that JSON can't say (infinity, not-a-number) become null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from padfix.errors import PadfixError
from padfix.reports import sentences
from padfix.results import SCHEMA, CheckReport, ConvertReport, Fetched, OpRecord, RuntimesReport, Verdict
from padfix.results.certificate import checksum


def document(content: Mapping[str, Any]) -> str:
    """Return one JSON document that starts with ``"schema"``."""
    content = {"schema": SCHEMA, **{key: value for key, value in content.items() if key != "schema"}}
    return json.dumps(finite(content), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def sealed(content: Mapping[str, Any]) -> str:
    """Return a document that ends with its checksum, by which ``check --require-proof`` sees damage and mistakes.

    Whoever edits a document can compute it anew; a signature (``--sign``) is what they can't make.
    """
    content = {"schema": SCHEMA, **content}
    return document({**content, "checksum": checksum(finite(content))})


def report(result: ConvertReport | Verdict | RuntimesReport) -> str:
    """Return what ``convert`` or ``verify`` found."""
    return sealed(result.to_dict())


def conversions(reports: Sequence[ConvertReport], failures: Sequence[tuple[str, PadfixError]]) -> str:
    """Return what ``convert`` found in several sources, and the sources that ended in an error."""
    return sealed({"conversions": [each.to_dict() for each in reports], "errors": _errors(failures)})


def findings(reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]] = ()) -> str:
    """Return what ``check`` found: all findings in one list, each with its ``source``, and models that can't be read.

    With a single model its path is also the document's ``source``.
    """
    content: dict[str, Any] = {}
    if len({each.source for each in reports}) == 1 and not failures:
        content["source"] = reports[0].source
    content["target"] = reports[0].target if reports else None
    content["targets"] = list(dict.fromkeys(each.target for each in reports))
    content["sources"] = list(dict.fromkeys(each.source for each in reports))
    content["rules_asked"] = list(dict.fromkeys(code for each in reports for code in each.rules))
    content["findings"] = [
        {"source": each.source, "target": each.target, **finding.to_dict()}
        for each in reports
        for finding in each.findings
    ]
    content["baselined"] = sum(each.baselined for each in reports)
    content["proof"] = next((each.proof.to_dict() for each in reports if each.proof is not None), None)
    content["fetched"] = [{"source": source, **each.to_dict()} for source, each in sentences.fetched_by(reports)]
    content["errors"] = _errors(failures)
    return document(content)


def _errors(failures: Sequence[tuple[str, PadfixError]]) -> list[dict[str, str]]:
    return [{"source": name, "message": error.message, "hint": error.hint} for name, error in failures]


def operators(source: str, records: Sequence[OpRecord], fetched: Fetched | None = None) -> str:
    """Return what ``inspect`` found, and what it fetched for it."""
    told = fetched and fetched.to_dict()
    return document({"source": source, "operators": [record.to_dict() for record in records], "fetched": told})


def finite(value: Any) -> Any:
    """Return a value with None in the place of numbers that JSON can't say."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value
