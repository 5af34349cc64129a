"""Whole copies between a store and this machine: of a source before it is converted, of a result that was proven."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from padfix.errors import OutputError, PadfixError, SourceError, UsageError
from padfix.files import skeleton
from padfix.files.containment import is_inner
from padfix.files.detection import detect
from padfix.files.external_data import location_of
from padfix.files.payloads import is_outside, reason_of
from padfix.files.sink import DATA_SUFFIX
from padfix.files.stores import failures, listing
from padfix.files.stores.access import in_time, opened, reached
from padfix.files.tensors import iterate_tensors
from padfix.files.urls import Place, Url
from padfix.files.wire_format import WireError
from padfix.process import watch

Progress = Callable[[str], None]

_WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hf"})
"""Protocols of stores in which an object is there when all of it is, and not before."""

_ESCAPES = 5
"""How often a location is unescaped to see whether it leads out, one server behind the other doing so."""


@contextlib.contextmanager
def local_copy(place: Place, tell: Progress = lambda stage: None) -> Iterator[Path]:
    """Yield a path in the place of a URL: of a copy, external data and a SavedModel's other files included.

    Args:
        place: A path, which is itself; or a URL.
        tell: Called with a short sentence while the copy is made.

    Raises:
        SourceError: The store does not give a file, or the model names one that is not beside it.
    """
    if isinstance(place, Path):
        yield place
        return
    with watch.scratch_folder() as folder:
        path = folder / _local_name(place)
        inner = listing.files_below(place)
        if inner is None:
            _fetch(place, path, tell)
            for location in _locations(path):
                if not (folder / location).exists():
                    _fetch(beside(place, location), folder / location, tell)
        for each in inner or ():
            if not is_inner(each.name):
                raise SourceError(f"{place} holds a file that is not inside it.", "Do not trust this store.")
            _fetch(each.url, path / each.name, tell)
        yield path


@contextlib.contextmanager
def local_result(place: Place, sources: Sequence[Place], tell: Progress) -> Iterator[tuple[Path, Callable[[], None]]]:
    """Yield where to write a result first, and what is to be called when it is there: it sends the result to its URL.

    Args:
        place: A path, which is itself, so that nothing is left to do; or a URL.
        sources: What the result is made of, which it must not replace.
        tell: Called with a short sentence while the result is sent.

    Raises:
        OutputError: The store takes no files, or the result would replace its source; before any work is done.
    """
    if isinstance(place, Path):
        yield place, lambda: None
        return
    if place.is_web or place.around is not None or not place.name:
        raise OutputError(f"{place} can't be written: it takes s3://, gs:// and the like.", "Use -o FILE.")
    if place in sources:
        raise OutputError(f"{place} is the source, which padfix never changes.", "Choose another output.")
    with reached(place):
        pass
    with watch.scratch_folder() as folder:
        path = folder / _local_name(place)
        yield path, lambda: _send(path, place, tell)


def refuse_in_place(*places: Place) -> None:
    """Raise :class:`UsageError` where one of the places is a URL."""
    if any(isinstance(place, Url) for place in places):
        raise UsageError(
            "A file of a store is not replaced in place: a store keeps no original, and nobody away from it meanwhile.",
            "Write to another URL with -o or --output-dir.",
        )


def beside(model: Url, location: str) -> Url:
    """Return the URL of a data file that a model names, which has to be beside it or below.

    Raises:
        SourceError: The location leads out, be it in escaped form, or means more than a path.
    """
    plain = location
    for _ in range(_ESCAPES):
        plain = unquote(plain)
    if not (is_inner(location) and is_inner(plain)) or any(each in plain for each in ("://", "::", "?", "#", "\\")):
        raise SourceError(
            f"{model} has external data at {location!r}, which is not beside it.", "Do not trust this model."
        )
    folder = model.part[1].rpartition("/")
    return model.at("".join(folder[:2]) + (quote(location) if model.is_web else location))


def _local_name(url: Url) -> str:
    name = url.name
    return name if is_inner(name) and name.isprintable() and len(name.encode()) < 200 else "model"


def _locations(path: Path) -> list[str]:
    """Return the data files that a model names, each once; none where it is no ONNX file, or none that can be read."""
    try:
        if detect(path) != "onnx":
            return []
        tensors = list(iterate_tensors(skeleton.read_model(path).proto))
    except PadfixError:
        return []  # whoever opens it says what is wrong
    return list(dict.fromkeys(filter(None, (location_of(each) for each in tensors if is_outside(each)))))


def _fetch(url: Url, path: Path, tell: Progress) -> None:
    """Copy a file of a store to ``path``."""
    with opened(url) as source:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(path.parent).free
            if source.size > free:
                raise SourceError(
                    f"{url} takes {source.size / 2**30:.1f} GiB, and the disk for temporary files has "
                    f"{free / 2**30:.1f} GiB left.",
                    "Make room there, or set TMPDIR to a folder on another disk.",
                )
            with path.open("xb") as file:
                for chunk in source.chunks():
                    file.write(chunk)
                    tell(f"Fetching {url.name}: {file.tell() / 2**20:.0f} of {source.size / 2**20:.0f} MiB")
        except WireError as error:
            raise SourceError(f"{url} can't be read: {error}.", "Was it changed meanwhile? Try again.") from error
        except OSError as error:
            raise SourceError(f"{url} can't be copied: {reason_of(error)}.", "Make room on the disk.") from error


def _send(path: Path, url: Url, tell: Progress) -> None:
    """Put a model, and the data file beside it, into a store, the model last; nothing stays there of a failure.

    Raises:
        OutputError: The store does not take them, or the data would replace those of another model.
    """
    data = [each for each in (path.with_name(path.name + DATA_SUFFIX),) if each.exists()]
    with reached(url) as (filesystem, target), failures.told(url, writing=True):
        folder = target.rpartition("/")[0]
        if url.protocol not in _WHOLE:
            in_time(filesystem.makedirs, folder, exist_ok=True)
        names = [(each, f"{folder}/{each.name}") for each in data]
        for _, name in names:
            if in_time(filesystem.exists, name):
                raise OutputError(
                    f"{url} can't be written: the data file of its name is there already, and a model may need it.",
                    "Choose another name, or remove that model first.",
                )
        sent: list[str] = []
        try:
            for file, name in (*names, (path, target)):
                tell(f"Sending {file.name}: {file.stat().st_size / 2**20:.0f} MiB")
                _put(filesystem, url, file, name)
                sent.append(name)
        except BaseException:
            for name in sent:
                with contextlib.suppress(Exception):
                    in_time(filesystem.rm_file, name)
            raise


def _put(filesystem: Any, url: Url, file: Path, name: str) -> None:
    """Put one file into a store, whole or not at all: under another name first, unless the store sees to that."""
    size = file.stat().st_size
    is_whole = url.protocol in _WHOLE
    folder, _, last = name.rpartition("/")
    first = name if is_whole else f"{folder}/.{last[:100]}.{secrets.token_hex(4)}.padfix"
    try:
        in_time(filesystem.put_file, str(file), first, size=size)
        filesystem.invalidate_cache()
        held = size  # who may write may yet not be allowed to look
        with contextlib.suppress(Exception):
            held = in_time(filesystem.info, first).get("size")
        if held != size:
            raise OutputError(f"{url} can't be written: its store does not hold what was sent.", "Try again.")
        if not is_whole:
            in_time(filesystem.mv, first, name, size=size)
    except BaseException:
        if not is_whole:
            with contextlib.suppress(Exception):
                in_time(filesystem.rm_file, first)
        raise
