"""What tells one finding from another over the life of a model."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import NodeProto


def fingerprint(rule: str, graph: str, node: NodeProto) -> str:
    """Return 32 hexadecimal digits for a finding of ``rule`` at ``node``.

    Made from the rule, the operator, the node's own name and the kinds of the scopes around it. A node without a name
    goes by its first output, because its index moves with every node before it. Names of other nodes play no part, nor
    do numbers in messages: renaming, adding or removing other nodes changes nothing.
    """
    own = node.name or next((f"output {name}" for name in node.output if name), "")
    parts = (rule, _without_names(graph), node.domain, node.op_type, own)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _without_names(graph: str) -> str:
    """Return ``"main/*.then_branch"`` for ``"main/If_3.then_branch"``; a function keeps its name."""
    return graph if graph.startswith("function:") else re.sub(r"/.*?\.(\w+)(?=/|$)", r"/*.\1", graph)
