"""What PF201 and PF202 share: the same operator under two names, read and rewritten alike."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from padfix.results import Finding, Severity
from padfix.rules import resampling
from padfix.rules.base import Refusal, Rewrite, Rule, Site


class LegacySamplingRule(Rule):
    """A rule about an operator that resizes and does not name its coordinates.

    Attributes:
        never_shrinks: Whether the operator promises scales of 1 or more.
    """

    severity: ClassVar[Severity] = Severity.WARNING
    never_shrinks: ClassVar[bool]

    @abstractmethod
    def problem(self, site: Site) -> str | None:
        """Return what is wrong with the node, as the start of a sentence; None when nothing is."""

    def match(self, site: Site) -> Finding | None:
        """Return a finding for a node with a problem, fixable when it can be understood."""
        problem = self.problem(site)
        if problem is None:
            return None
        legacy = resampling.read(site, never_shrinks=self.never_shrinks)
        message = f"{problem}{resampling.described(legacy)}."
        if isinstance(legacy, Refusal):
            return self.finding(site, message, legacy.reason, fixable=False)
        return self.finding(site, message, "padfix convert writes a Resize that names its coordinates.")

    def before_upgrade(self, site: Site, opset: int) -> Finding | None:
        """Return the finding: the official converter turns the operator into a Resize with other coordinates."""
        return self.match(site)

    def minimum_opset(self, site: Site) -> int:
        """Return 11, where Resize names its coordinates."""
        return resampling.MODERN_OPSET

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the Resize, the two, or the Gather that gives the same numbers."""
        legacy = resampling.read(site, never_shrinks=self.never_shrinks)
        return legacy if isinstance(legacy, Refusal) else resampling.rewrite(site, legacy)
