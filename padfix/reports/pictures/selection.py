"""Which pictures a report has: one for each kind of operator, with the nodes that it is of."""

from __future__ import annotations

from collections.abc import Sequence

from padfix.reports import sentences
from padfix.reports.pictures import layers, operators
from padfix.reports.pictures.svg import Picture
from padfix.results import Finding, Verdict
from padfix.results.illustration import Illustration

MOST = 24
"""Pictures of operators in one report; a model that needs more has more in its table."""

MOST_NAMES = 6


def of_findings(findings: Sequence[Finding]) -> tuple[list[tuple[str, Picture]], int]:
    """Return (caption, picture) of what can be drawn, and how many pictures were left out."""
    groups: dict[Illustration, list[str]] = {}
    for finding in findings:
        if finding.illustration is not None:
            places = groups.setdefault(finding.illustration, [])
            # A node may be drawn twice: as it is written, and as another rule's finding would have it.
            place = f"{sentences.place(finding)} ({finding.rule})"
            if place not in places:
                places.append(place)
    pictures = []
    for illustration, places in list(groups.items())[:MOST]:
        more = f" and {len(places) - MOST_NAMES} more" if len(places) > MOST_NAMES else ""
        pictures.append((", ".join(places[:MOST_NAMES]) + more, operators.picture(illustration)))
    return pictures, len(groups) - len(pictures)


def of_verdict(verdict: Verdict) -> list[tuple[str, Picture]]:
    """Return the error by layer, where it was looked at."""
    caption = "Error by layer: of each, the difference closest to its limit"
    return [(caption, layers.picture(verdict.layers))] if verdict.layers else []
