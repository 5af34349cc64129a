"""Paths as continuous-integration services want them: relative to the checkout, with forward slashes."""

from __future__ import annotations

import os
from pathlib import Path

from padfix.files.urls import is_url


def checkout_path(source: str) -> str:
    """Return ``source`` relative to the current folder where it lies below it, else as it is; always with ``/``."""
    if is_url(source):
        return source
    path = Path(source)
    if path.is_absolute():
        here = Path(os.getcwd())
        path = path.relative_to(here) if path.is_relative_to(here) else path
    return Path(os.path.normpath(path)).as_posix()
