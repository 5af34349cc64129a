"""The version of padfix; on the ground, because a process elsewhere has to have the same."""

from __future__ import annotations

__version__ = "0.1.0"
