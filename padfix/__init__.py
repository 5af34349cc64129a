"""padfix: explicit pads and resizes, proven equal, then written."""

from __future__ import annotations

__version__ = "0.1.0"
