"""Packages that Node runs, in the folder ``node_modules`` that an environment names."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

FOLDER = "PADFIX_NODE_MODULES"
"""The variable that names the folder; without it, that of the working directory is taken."""


def package_folder(name: str) -> Path:
    """Return where the package is, if it is installed."""
    return Path(os.environ.get(FOLDER, "node_modules"), name).absolute()


def version_of(name: str) -> str | None:
    """Return the version of a package; None where it, or Node, is not there."""
    described = package_folder(name) / "package.json"
    if shutil.which("node") is None or not described.is_file():
        return None
    return str(json.loads(described.read_text(encoding="utf-8"))["version"])
