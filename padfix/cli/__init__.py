"""The command line: a thin layer over :mod:`padfix.api`, one file a command."""

from __future__ import annotations

from padfix.cli.group import main

__all__ = ["main"]
