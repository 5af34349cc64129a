"""What a folder or a pattern of a store brings in."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from padfix.errors import PadfixError
from padfix.files import detection
from padfix.files.backups import is_backup
from padfix.files.stores import failures
from padfix.files.stores.access import in_time, reached
from padfix.files.urls import Url

_LISTING_BYTES = 600 * failures.SLOWEST
"""What a listing counts as: a store may have a million names, and says nothing of how far it is."""

_LOOKS_AT_ONCE = 8


class Listed(NamedTuple):
    """A file of a store, and its name from the folder that was listed."""

    url: Url
    name: str


def files_below(url: Url) -> list[Listed] | None:
    """Return the files of a folder at any depth, in the order of their names; None where the URL is no folder's.

    Raises:
        SourceError: The store can't be reached.
    """
    if url.is_web:
        return None
    with reached(url) as (filesystem, path), failures.told(url):
        try:
            info = in_time(filesystem.info, path)
        except FileNotFoundError:
            return None
        if info["type"] != "directory":
            return None
        return list(_below(url, filesystem, path, url.part[1]))


def is_folder(url: Url) -> bool:
    """Whether a URL is a folder's; one that ends in ``.onnx`` is a file, unasked.

    Raises:
        SourceError: The store can't be reached.
    """
    return not url.is_web and url.suffix.lower() != ".onnx" and files_below(url) is not None


def models(url: Url) -> list[Url]:
    """Return the ONNX files that a folder or a pattern brings in, told by content.

    A file that is called ``*.onnx`` is taken at its word, so that it is fetched once; what it really is, is said when
    its turn comes.

    Raises:
        SourceError: The store can't be reached.
    """
    listed = _matches(url) if url.is_pattern else files_below(url) or []
    with ThreadPoolExecutor(_LOOKS_AT_ONCE) as pool:
        return [each.url for each, taken in zip(listed, pool.map(_is_onnx, listed), strict=True) if taken]


def _matches(url: Url) -> list[Listed]:
    pattern = url.part[1]
    with reached(url) as (filesystem, path), failures.told(url):
        found = in_time(filesystem.glob, path, size=_LISTING_BYTES, detail=True)
        start = pattern.rfind("/", 0, min(pattern.find(each) for each in "*?[" if each in pattern)) + 1
        root = path[: len(path) - (len(pattern) - start)]
        listed: list[Listed] = []
        for name, info in sorted(found.items()):
            relative = name.removeprefix(root)
            if _is_hidden(relative) and "/." not in pattern:
                continue
            if info["type"] != "directory":
                listed.append(Listed(url.at(pattern[:start] + relative), relative))
            elif "**" not in pattern:  # which has already gone through the folders
                listed.extend(_below(url, filesystem, name, pattern[:start] + relative))
        return listed


def _below(url: Url, filesystem: Any, path: str, text: str) -> Iterator[Listed]:
    """Yield the files below a folder, which the store calls ``path`` and the URL ``text``; hidden folders left out."""
    root, text = path.rstrip("/"), text.rstrip("/")
    for name in sorted(in_time(filesystem.find, path, size=_LISTING_BYTES)):
        relative = name.removeprefix(root).lstrip("/")
        if not _is_hidden(relative):
            yield Listed(url.at(f"{text}/{relative}" if text else relative), relative)


def _is_hidden(name: str) -> bool:
    """Whether a file lies in a hidden folder."""
    return any(part.startswith(".") for part in name.split("/")[:-1])


def _is_onnx(listed: Listed) -> bool:
    if is_backup(listed.url.name):
        return False
    if listed.url.suffix.lower() == ".onnx":
        return True
    try:
        return detection.detect(listed.url) == "onnx"
    except PadfixError:
        return False
