"""From what stands on the command line (files, patterns, folders) to the ONNX files that it means."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from padfix.errors import SourceError
from padfix.files.backups import is_backup
from padfix.files.urls import Place, Url

_SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")


def onnx_files(
    arguments: Sequence[Place],
    *,
    excluded: Callable[[Place], bool] = lambda path: False,
    is_known: Callable[[Place], bool] = lambda place: False,
) -> list[Place]:
    """Return the models that ``arguments`` mean, each once, in the order of the arguments and then of the names.

    A file stands for itself. A folder brings in every file below it that is called ``*.onnx``, which is not looked at
    before it is read, so that damage is reported, and every other file that is ONNX by its content. Hidden folders and
    links to folders are not entered. A pattern (``*``, ``?``, ``[``, with ``**`` for folders) brings in what it
    matches. The backups that a conversion in place keeps (``NAME.bak``) are brought in by neither. All this holds for
    folders and patterns of stores.

    Args:
        arguments: Paths, URLs and patterns.
        excluded: Says which of the files that a folder or a pattern brings in are left out.
        is_known: Says which files are known to be ONNX files; they are not looked into.

    Raises:
        SourceError: A folder or a pattern brings in nothing, or a store can't be reached.
    """
    found: dict[Place, None] = {}
    for argument in arguments:
        expanded = _expand_url(argument, is_known) if isinstance(argument, Url) else _expand(argument, is_known)
        if expanded is None:
            found[argument] = None
            continue
        brought = [place for place in expanded if not excluded(place)]
        if not brought:
            is_pattern = argument.is_pattern if isinstance(argument, Url) else not argument.is_dir()
            what = "No file matches" if is_pattern else "No ONNX file is below"
            raise SourceError(f"{what} {argument}.", "padfix check reads ONNX files; their names do not matter.")
        found.update(dict.fromkeys(brought))
    return list(found)


def _is_plain(argument: Path) -> bool:
    """Whether the argument stands for itself: a file, a SavedModel's folder, or something that is not there."""
    if argument.is_dir():
        return any((argument / name).is_file() for name in _SAVED_MODEL)
    return argument.exists() or not glob.has_magic(str(argument))


def _expand(argument: Path, is_known: Callable[[Place], bool]) -> Iterator[Path] | None:
    """Return what an argument brings in; None where it stands for itself."""
    return None if _is_plain(argument) else _brought(argument, is_known)


def _expand_url(argument: Url, is_known: Callable[[Place], bool]) -> list[Url] | None:
    """Return what a URL brings in; None where it stands for itself, which one that ends in ``.onnx`` does unasked."""
    if not argument.is_pattern and (argument.is_web or argument.suffix.lower() == ".onnx"):
        return None
    from padfix.files.stores import listing

    if argument.is_pattern:
        return listing.models(listing.files_that_match(argument), is_known)
    inner = listing.files_below(argument)
    if inner is None or any(each.name in _SAVED_MODEL for each in inner):
        return None
    return listing.models(inner, is_known)


def _brought(argument: Path, is_known: Callable[[Place], bool]) -> Iterator[Path]:
    if argument.is_dir():
        yield from _below(argument, is_known)
        return
    for name in sorted(glob.glob(str(argument), recursive=True)):
        path = Path(name)
        if path.is_dir():
            if "**" not in argument.parts:  # "**" has already gone through the folders
                yield from _below(path, is_known)
        elif _is_meant(path, is_known):
            yield path


def _below(folder: Path, is_known: Callable[[Place], bool]) -> Iterator[Path]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        here = Path(where)
        for name in sorted(names):
            path = here / name
            if _is_meant(path, is_known):
                yield path


def _is_meant(path: Path, is_known: Callable[[Place], bool]) -> bool:
    name = path.name
    if is_backup(name):
        return False
    if os.path.splitext(name)[1].lower() == ".onnx" or is_known(path):
        return True
    from padfix.files.detection import is_onnx  # onnx is loaded only where there is a file that is not known

    return is_onnx(path)
