"""What ``check`` says of a model, for each target."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence

from padfix.config.settings import is_chosen
from padfix.files.stores.traffic import counted
from padfix.files.urls import Url, placed
from padfix.graph.overview import maps_of
from padfix.graph.scopes import Scope
from padfix.operators.inference import infer
from padfix.results import CheckReport
from padfix.rewrite.matches import findings
from padfix.rewrite.remedy import options_of_convert
from padfix.rules.registry import RULES
from padfix.sources.onnx_file import open_onnx
from padfix.targets import Target


def examine_file(
    source: str | os.PathLike[str] | Url,
    targets: Sequence[Target],
    *,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    maps: bool = True,
    progress: Callable[[str], object] = lambda stage: None,
) -> list[CheckReport]:
    """Return the reports of a file, read once, with maps or without; the rest is as in :func:`padfix.check`."""
    place = placed(source)
    progress("reading")
    with counted() as traffic:
        model = open_onnx(place)
    progress(f"types of {len(model.proto.graph.node):,} nodes")
    scopes, name = infer(model), str(place if isinstance(place, Url) else source)
    reports = (examine(scopes, name, target, select=select, ignore=ignore, progress=progress) for target in targets)
    return [
        dataclasses.replace(
            report,
            fetched=traffic.fetched(),
            identity=model.identity,
            maps=maps_of(scopes, report.findings) if maps else (),
        )
        for report in reports
    ]


def examine(
    scopes: Sequence[Scope],
    source: str,
    target: Target,
    *,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    progress: Callable[[str], object] = lambda stage: None,
) -> CheckReport:
    """Return the report of a model with these scopes; the rest is as in :func:`padfix.check`."""
    found = list(findings(scopes, RULES, target, progress))
    opted = []
    for rule in RULES:
        if rule.opt_in and any(word.lower() in (rule.code.lower(), rule.name) for word in select or ()):
            asked = findings(scopes, [rule], dataclasses.replace(target, **rule.opt_in))
            found += [finding for finding in asked if finding not in found]
            opted.append(rule)
    kept = [finding for finding in found if is_chosen(finding.rule, finding.name, select, ignore)]
    about = [rule for rule in RULES if rule in opted or rule.has_a_say(target)]
    codes = tuple(rule.code for rule in about if is_chosen(rule.code, rule.name, select, ignore))
    told = options_of_convert(found, target, opted)
    return CheckReport(source, target.name, kept, fix_options=told, rules=codes)
