"""What the originals are called that a replacement in place keeps."""

from __future__ import annotations

import re

_BACKUP = re.compile(r".+\.bak(\.\d+)?")


def backup_name(name: str, number: int) -> str:
    """Return the name of the backup with ``number``, from 0, of the file ``name``."""
    return f"{name}.bak{f'.{number}' if number else ''}"


def is_backup(name: str) -> bool:
    """Whether a file of this name is the backup of another."""
    return _BACKUP.fullmatch(name) is not None
