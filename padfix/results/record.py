"""Results as JSON-ready values."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any


class Record:
    """A frozen dataclass that says itself as JSON-ready values; fields that don't count in comparisons are left out."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name: tuples as lists, other records as dictionaries."""
        assert dataclasses.is_dataclass(self)
        return {each.name: _plain(getattr(self, each.name)) for each in dataclasses.fields(self) if each.compare}


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, enum.Enum):
        return value.value
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
