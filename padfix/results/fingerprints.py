"""What tells one finding from another over the life of a model."""

from __future__ import annotations

import hashlib
import re


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
