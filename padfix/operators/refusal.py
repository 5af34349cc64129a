"""Why a node can't be read, or not rewritten: what readers and rules give in the place of a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """Why a node can't be read or rewritten exactly; ``reason`` says what the user can do."""

    reason: str


@dataclass(frozen=True)
class Meaningless(Refusal):
    """The node has no meaning that a runtime could give it: the model itself is wrong."""


@dataclass(frozen=True)
class UnknownRank(Refusal):
    """Nothing tells how many axes the node works on."""


@dataclass(frozen=True)
class TooLong(Refusal):
    """The node spans more elements than any runtime addresses."""
