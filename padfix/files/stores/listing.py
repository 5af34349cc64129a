"""What a folder or a pattern of a store brings in."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from padfix.files import detection
from padfix.files.backups import is_backup
from padfix.files.stores import failures
from padfix.files.stores.access import in_time, reached
from padfix.files.urls import Url

_LISTING_BYTES = 600 * failures.SLOWEST
"""What a listing counts as: a store may have a million names, and says nothing of how far it is."""

_LOOKS_AT_ONCE = 8

_VERSIONS = ("etag", "generation", "blob_id")
"""Names, in small letters, under which stores say which content a file has: S3 and Azure, Google's, Hugging Face's."""

_TIMES = ("lastmodified", "last_modified", "updated")


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


def models(listed: Sequence[Listed], is_known: Callable[[Url], bool]) -> list[Url]:
    """Return those of listed files that are ONNX files, told by content.

    A file that is called ``*.onnx`` is taken at its word, so that it is fetched once; what it really is, is said when
    its turn comes. What ``is_known`` to be an ONNX file is not looked into either.

    Raises:
        SourceError: The store can't be reached.
    """
    urls = [each.url for each in listed if not is_backup(each.url.name)]
    told = {url for url in urls if url.suffix.lower() == ".onnx" or is_known(url)}
    others = [url for url in urls if url not in told]
    with ThreadPoolExecutor(_LOOKS_AT_ONCE) as pool:
        told.update(url for url, taken in zip(others, pool.map(detection.is_onnx, others), strict=True) if taken)
    return [url for url in urls if url in told]


def files_that_match(url: Url) -> list[Listed]:
    """Return the files that a pattern brings in, those below the folders that it matches included.

    Raises:
        SourceError: The store can't be reached.
    """
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
                listed.append(_listed(url, pattern[:start] + relative, relative, info))
            elif "**" not in pattern:  # which has already gone through the folders
                listed.extend(_below(url, filesystem, name, pattern[:start] + relative))
        return listed


def _below(url: Url, filesystem: Any, path: str, text: str) -> Iterator[Listed]:
    """Yield the files below a folder, which the store calls ``path`` and the URL ``text``; hidden folders left out."""
    root, text = path.rstrip("/"), text.rstrip("/")
    for name, info in sorted(in_time(filesystem.find, path, size=_LISTING_BYTES, detail=True).items()):
        relative = name.removeprefix(root).lstrip("/")
        if not _is_hidden(relative):
            yield _listed(url, f"{text}/{relative}" if text else relative, relative, info)


def _listed(url: Url, path: str, name: str, info: Mapping[str, Any]) -> Listed:
    return Listed(dataclasses.replace(url.at(path), state=_state_of(info)), name)


def _state_of(info: Mapping[str, Any]) -> str | None:
    """Return what changes with the content of a file; None where the store says nothing of that kind.

    A time is too coarse to tell by itself, but a file that was written again is read again, even where its entity tag
    is a checksum (MD5 on S3) that somebody could meet on purpose.
    """
    said = {key.lower(): str(value) for key, value in info.items() if value is not None}
    versions = [f"{key} {said[key]}" for key in _VERSIONS if key in said and not said[key].startswith("W/")]
    if not versions:
        return None
    return " ".join([said.get("size", ""), *versions, *(said[key] for key in _TIMES if key in said)])


def _is_hidden(name: str) -> bool:
    """Whether a file lies in a hidden folder."""
    return any(part.startswith(".") for part in name.split("/")[:-1])
