"""Findings of rules."""

from __future__ import annotations

import enum
import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from padfix.results.record import Record

if TYPE_CHECKING:
    from padfix.results.illustration import Illustration


def fingerprint(rule: str, graph: str, op_type: str, own: str) -> str:
    """Return 32 hexadecimal digits for a finding of ``rule``.

    Made from the rule, the kinds of the scopes around the node, its operator and what is its own: its name, or the
    first output of a node without a name, because a node's index moves with every node before it. Names of other nodes
    play no part, nor do numbers in messages: renaming, adding or removing other nodes changes nothing.
    """
    parts = (rule, _without_names(graph), op_type, own)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _without_names(graph: str) -> str:
    """Return ``"main/*.then_branch"`` for ``"main/If_3.then_branch"``; a function keeps its name."""
    return graph if graph.startswith("function:") else re.sub(r"/.*?\.(\w+)(?=/|$)", r"/*.\1", graph)


class Severity(enum.StrEnum):
    """How bad a finding is: silent runs and gives other numbers, an error breaks, a warning may, info is style."""

    SILENT = "silent"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for info, 1 for warning, 2 for error, 3 for silent."""
        return _RANKS[self]


_RANKS = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2, Severity.SILENT: 3}


@dataclass(frozen=True)
class Finding(Record):
    """One place in a model where one rule has something to say.

    Attributes:
        rule: The rule's code, ``"PF101"``.
        name: The rule's name, ``"implicit-same-padding"``.
        severity: How bad it is.
        graph: Path of scopes, ``"main"``, ``"main/If_3.then_branch"`` or ``"function:domain:name"``.
        node: The node's name; when it has none, ``"#<index>"`` with its index in the scope.
        op_type: The node's operator type.
        message: One sentence: what is implicit, legacy or unsafe here, with the numbers.
        fixable: Whether ``convert`` is expected to rewrite it.
        hint: What the user can do.
        fingerprint: Tells this finding from others of the model, and stays when nodes around it are renamed, added or
            removed. Made from the node's name unless it is given.
        illustration: What a report can draw of the node; not part of what :meth:`to_dict` gives.
        needs_specification: Whether ``convert`` has to be told ``--reference spec``; not part of it either.
    """

    rule: str
    name: str
    severity: Severity
    graph: str
    node: str
    op_type: str
    message: str
    fixable: bool = True
    hint: str = ""
    fingerprint: str = ""
    illustration: Illustration | None = field(default=None, compare=False, repr=False)
    needs_specification: bool = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Fill in the fingerprint."""
        if not self.fingerprint:
            own = fingerprint(self.rule, self.graph, self.op_type, self.node)
            object.__setattr__(self, "fingerprint", own)
