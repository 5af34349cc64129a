"""What ``padfix check`` found as JSON lines: an object for each model and target, or for a model that can't be read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from padfix.errors import PadfixError
from padfix.process.version import __version__
from padfix.reports.json import finite
from padfix.results import SCHEMA, CheckReport


def findings(reports: Sequence[CheckReport], failures: Sequence[tuple[str, PadfixError]] = ()) -> str:
    """Return a line for each report, and behind them one for each model that could not be read."""
    return "".join([*map(line, reports), *(failure(name, error) for name, error in failures)])


def line(report: CheckReport, settings: str = "") -> str:
    """Return a report as a line; ``settings`` stands for all but the model that it depends on."""
    identity = report.identity
    content = report.to_dict()
    return _line(
        report.source,
        settings,
        target=content.pop("target"),
        size=identity and identity.size,
        digest=identity and identity.digest,
        error=None,
        **{key: value for key, value in content.items() if key not in ("schema", "source")},
        baselined=report.baselined,
        fix_options=report.fix_options and list(report.fix_options),
    )


def failure(source: str, error: PadfixError, settings: str = "") -> str:
    """Return the line of a model that could not be read."""
    told = {"message": error.message, "hint": error.hint}
    return _line(source, settings, target=None, size=None, digest=None, error=told, rules=[], findings=[])


def _line(source: str, settings: str, **content: Any) -> str:
    begin = {"schema": SCHEMA, "source": source, "version": __version__, "settings": settings}
    return json.dumps(finite({**begin, **content}), ensure_ascii=True, allow_nan=False) + "\n"
