"""Names of inputs and outputs as nodes list them."""

from __future__ import annotations

from collections.abc import Sequence


def without_blanks(names: Sequence[str]) -> list[str]:
    """Return names without the empty ones, of omitted inputs or outputs, behind all others."""
    count = max((place + 1 for place, name in enumerate(names) if name), default=0)
    return list(names[:count])
