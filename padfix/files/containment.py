"""Files that a model names must be plain files of the model's own folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from padfix.errors import SourceError

_LARGEST_FOLDER = 10_000


def is_inner(location: str) -> bool:
    """Whether a location, from its text alone, is relative and does not climb out."""
    kinds = (PurePosixPath(location), PureWindowsPath(location))
    return bool(location) and "\0" not in location and not any(kind.anchor or ".." in kind.parts for kind in kinds)


def require_plain(path: Path, roots: Sequence[Path], what: str) -> os.stat_result:
    """Make sure that ``path`` is a regular file inside one of ``roots``, under no name outside; return its status.

    Args:
        path: The file; links are followed.
        roots: Folders, already resolved.
        what: The file for messages, such as ``"The external data model.data of the tensor 'w'"``.

    Raises:
        SourceError: It is missing, leads out, or is not a file.
    """
    try:
        real = path.resolve(strict=True)
        status = real.stat()
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SourceError(
            f"{what} can't be opened: {reason}.", "Put the file where it was when the model was saved."
        ) from error
    if not any(real.is_relative_to(root) for root in roots):
        raise SourceError(
            f"{what} is a link out of the model's folder.", "If you trust it, replace the link by the file itself."
        )
    if not stat.S_ISREG(status.st_mode):
        raise SourceError(f"{what} is not a regular file.", "Do not trust this model.")
    if status.st_nlink > 1 and _names_beside(real, status) < status.st_nlink:
        raise SourceError(
            f"{what} is a hard link to a file that has another name outside the model's folder.",
            "If you trust it, replace the link by a copy: cp FILE COPY && mv COPY FILE.",
        )
    return status


def _names_beside(real: Path, status: os.stat_result) -> int:
    """Return how many names in the file's own folder are this file."""
    count = 0
    with os.scandir(real.parent) as entries:
        for index, entry in enumerate(entries):
            if index > _LARGEST_FOLDER:
                break
            count += entry.inode() == status.st_ino and not entry.is_symlink()
    return count


def require_plain_tree(folder: Path, names: Sequence[str], file: Path) -> None:
    """Make sure that every file under ``names`` of ``folder`` is a plain file inside it.

    Where ``file``, the one that makes the folder a model, is itself a link, as in caches that keep contents apart from
    names, the others may be links into the folder that it leads to.

    Raises:
        SourceError: One is not.
    """
    roots = [folder.resolve()]
    if file.is_symlink():
        roots.append(file.resolve().parent)
    for name in names:
        top = folder / name
        if not os.path.lexists(top):
            continue
        if top.is_dir():
            if not any(top.resolve().is_relative_to(root) for root in roots):
                raise SourceError(
                    f"{top} is a link out of the model's folder.", "If you trust it, replace the link by the folder."
                )
            for parent, folders, files in os.walk(top):
                for each in folders:
                    if (Path(parent) / each).is_symlink():
                        raise SourceError(
                            f"{Path(parent) / each} is a link to a folder.", "Replace the link by the folder itself."
                        )
                for each in files:
                    require_plain(Path(parent) / each, roots, str(Path(parent) / each))
        else:
            require_plain(top, roots, str(top))
