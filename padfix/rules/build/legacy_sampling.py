"""What PF201 and PF202 share: the same operator under two names, read and rewritten alike."""

from __future__ import annotations

from abc import abstractmethod

from padfix.operators.refusal import Refusal
from padfix.operators.resample import MODERN_OPSET
from padfix.results import Finding
from padfix.rules.base import Rewrite, Rule, Site
from padfix.rules.build.modern_resize import described, read_legacy, rewrite


class LegacySamplingRule(Rule):
    """A rule about an operator that resizes and does not name its coordinates."""

    @abstractmethod
    def problem(self, site: Site) -> str | None:
        """Return what is wrong with the node, as the start of a sentence; None when nothing is."""

    def match(self, site: Site) -> Finding | None:
        """Return a finding for a node with a problem, fixable when it can be understood."""
        problem = self.problem(site)
        if problem is None:
            return None
        legacy = read_legacy(site)
        message = f"{problem}{described(legacy)}."
        if isinstance(legacy, Refusal):
            return self.finding(site, message, legacy.reason, fixable=False)
        return self.finding(site, message, "padfix convert writes a Resize that names its coordinates.")

    def before_upgrade(self, site: Site, opset: int) -> Finding | None:
        """Return the finding: the official converter turns the operator into a Resize with other coordinates."""
        return self.match(site)

    def minimum_opset(self, site: Site) -> int:
        """Return 11, where Resize names its coordinates."""
        return MODERN_OPSET

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the Resize, the two, or the Gather that gives the same numbers."""
        legacy = read_legacy(site)
        return legacy if isinstance(legacy, Refusal) else rewrite(site, legacy)
