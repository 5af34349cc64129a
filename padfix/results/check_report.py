"""What ``check`` has to say of a model.

Of other results it knows no more than their names: a run over thousands of models that did not change loads what it
shows and nothing beside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from padfix.results.findings import Finding
from padfix.results.record import Record

if TYPE_CHECKING:
    from padfix.results.certificate import ProofCheck
    from padfix.results.fetched import Fetched
    from padfix.results.graph_map import GraphMap
    from padfix.results.identity import Identity

SCHEMA = 1


@dataclass(frozen=True)
class CheckReport(Record):
    """What ``padfix check`` says of one model.

    Attributes:
        source: The model.
        target: What it has to suit.
        findings: What was found.
        baselined: How many findings a baseline holds already; they are not among ``findings``.
        fix_options: What ``convert`` has to be told to rewrite what can be rewritten; None where it can't be used.
        rules: Codes of the rules that were asked, the others being left out by the user or without a say about the
            target.
        proof: Whether the required proof is one of this model; None where none was required.
        fetched: What was fetched of the model; None where nothing was.
        maps: The model's graphs as a report draws them; this and the next are not part of what :meth:`to_dict` gives.
        identity: The file that was read.
    """

    source: str
    target: str
    findings: list[Finding] = field(default_factory=list)
    baselined: int = 0
    fix_options: tuple[str, ...] | None = ()
    rules: tuple[str, ...] = ()
    proof: ProofCheck | None = None
    fetched: Fetched | None = None
    maps: tuple[GraphMap, ...] = field(default=(), compare=False, repr=False)
    identity: Identity | None = field(default=None, compare=False, repr=False)

    def of(self, source: str, identity: Identity | None) -> CheckReport:
        """Return what is said of another file in the same words."""
        report = object.__new__(CheckReport)  # dataclasses.replace looks at every field, which thousands of files feel
        report.__dict__.update(self.__dict__, source=source, identity=identity)
        return report

    @property
    def fixable(self) -> int:
        """How many findings ``convert`` is expected to rewrite."""
        return 0 if self.fix_options is None else sum(finding.fixable for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values, ``schema`` first."""
        content = super().to_dict()
        keys = ("source", "target", "rules", "findings", "proof", "fetched")
        return {"schema": SCHEMA, **{key: content[key] for key in keys}}
