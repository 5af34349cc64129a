"""The explicit, ordered list of rules."""

from __future__ import annotations

from padfix.rules.base import Rule

RULES: tuple[Rule, ...] = ()
