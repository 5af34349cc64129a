"""Opening what an argument means: a file of this machine, or one of a store through fsspec."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import IO, Any

from padfix.errors import MissingDependencyError, SourceError
from padfix.files.byte_file import ByteFile
from padfix.files.payloads import open_file
from padfix.files.stores import failures
from padfix.files.stores.parts import StoreBytes
from padfix.files.stores.traffic import current
from padfix.files.urls import Place, Url
from padfix.files.wire_format import ByteSource, FileBytes

_KEPT_OF_ARCHIVE = 16 << 20
"""Bytes of an archive that are kept at once: a packed member has to be read through, whatever its size."""


@contextlib.contextmanager
def opened(place: Place) -> Iterator[ByteSource]:
    """Yield the bytes of a file; of one in a store only what is read is fetched, where the store sends parts.

    Raises:
        MissingDependencyError: A package is not installed.
        SourceError: The file can't be opened, or, of a store, read later on.
    """
    if isinstance(place, Url):
        with _opened_url(place, None) as source:
            yield source
        return
    with open_file(place) as descriptor:
        yield FileBytes(descriptor)


@contextlib.contextmanager
def _opened_url(url: Url, kept: int | None) -> Iterator[ByteSource]:
    traffic = current()
    with reached(url) as (filesystem, path):
        if not url.is_web:
            with _opened_file(url, filesystem, path, kept) as source:
                yield source
            return
        from padfix.files.stores.web import WebFile

        web = WebFile(url, filesystem, path, traffic)
        traffic.opened(web.size, whole=web.whole is not None)
        if web.whole is None:
            yield StoreBytes(web.fetch, web.size or 0, web.first, kept=kept)
            return
        with web.whole:
            yield FileBytes(web.whole.fileno())


@contextlib.contextmanager
def _opened_file(url: Url, filesystem: Any, path: str, kept: int | None) -> Iterator[ByteSource]:
    """Yield the bytes of a file that fsspec opens."""
    traffic = current()
    with contextlib.ExitStack() as stack:
        with failures.told(url):
            file = in_time(filesystem.open, path, "rb")
            stack.callback(file.close)
            size = _size_of(filesystem, path, file)
        fetcher = getattr(getattr(file, "cache", None), "fetcher", None)
        if fetcher is not None:  # what is asked for is fetched, not a large block around it
            from fsspec.caching import BaseCache

            stack.callback(setattr, file, "cache", file.cache)  # which the file closes, with what may work behind it
            file.cache = BaseCache(0, fetcher, size)
        is_inner = url.around is not None
        if not is_inner:  # what is read of an archive is counted there
            traffic.note(1)
            traffic.opened(size)
        if size is None or not file.seekable():
            yield FileBytes(stack.enter_context(_copied(url, file)).fileno())
            return

        def fetch(start: int, end: int) -> bytes:
            def part() -> bytes:
                file.seek(start)
                return bytes(file.read(end - start))

            with failures.told(url):
                found: bytes = in_time(part, size=end - start)
            if not is_inner:
                traffic.note(1, len(found))
            return found

        yield StoreBytes(_stored(filesystem, path) or fetch, size, kept=kept)


def _size_of(filesystem: Any, path: str, file: Any) -> int | None:
    size = getattr(file, "size", None)
    if not isinstance(size, int):
        info = in_time(filesystem.info, path)
        if info.get("type") == "directory":
            raise IsADirectoryError
        size = info.get("size")
    return size


def _stored(filesystem: Any, path: str) -> Callable[[int, int], bytes] | None:
    """Return what reads a member of a zip archive that lies in it as it is; None for any other file.

    Before Python 3.12 ``zipfile`` reads through all that is jumped over. The member begins behind its own header, of 30
    bytes and a name and a field of lengths that stand there: the ZIP file format specification, 4.3.7.
    """
    archive = getattr(filesystem, "zip", None)
    around = getattr(filesystem, "fo", None)
    if archive is None or not isinstance(around, ByteFile):
        return None
    member = archive.getinfo(path)
    if member.compress_type or member.flag_bits & 1:
        return None
    header = around.source.read(member.header_offset, member.header_offset + 30)
    lengths = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
    begin = member.header_offset + 30 + sum(lengths)
    return lambda start, end: around.source.read(begin + start, begin + end)


@contextlib.contextmanager
def _copied(url: Url, file: Any) -> Iterator[IO[bytes]]:
    """Yield a copy without a name of a file that can only be read from its beginning to its end."""
    with tempfile.TemporaryFile() as copy:
        with failures.told(url):
            shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        yield copy


@contextlib.contextmanager
def reached(url: Url) -> Iterator[tuple[Any, str]]:
    """Yield fsspec's file system for a URL, and the path there; an archive is opened as a file of its own store.

    Raises:
        MissingDependencyError: A package is not installed.
        SourceError: No such protocol is known, or the store can't be reached.
    """
    inner = url.around
    if inner is None or not _is_archive(protocol := _class_of(url)):
        filesystem, path = _filesystem_of(url)
        filesystem.invalidate_cache()  # of listings: what is there now counts
        yield filesystem, path
        return
    with _opened_url(inner, _KEPT_OF_ARCHIVE) if isinstance(inner, Url) else opened(inner) as source:
        with failures.told(url):
            filesystem = protocol(fo=ByteFile(source), skip_instance_cache=True)
        yield filesystem, url.part[1].lstrip("/")


def _is_archive(protocol: Any) -> bool:
    from fsspec.archive import AbstractArchiveFileSystem

    return issubclass(protocol, AbstractArchiveFileSystem)


def _class_of(url: Url) -> Any:
    """Return fsspec's class for the protocol of a URL.

    Raises:
        MissingDependencyError: fsspec, or the package that it needs for the protocol, is not installed.
        SourceError: No such protocol is known.
    """
    try:
        from fsspec.registry import get_filesystem_class
    except ImportError:
        raise MissingDependencyError(f"{url} is a URL, which padfix reads through fsspec.", failures.INSTALL) from None
    try:
        return get_filesystem_class(url.protocol)
    except ImportError as error:
        raise failures.missing_package(url, error) from None
    except ValueError:
        raise SourceError(
            f"{url} can't be opened: no protocol {url.protocol}:// is known.",
            "https, s3, gs, az, hf, memory and zip are, and what else fsspec lists.",
        ) from None


def _filesystem_of(url: Url) -> tuple[Any, str]:
    protocol = _class_of(url)
    from fsspec.asyn import AsyncFileSystem
    from fsspec.core import url_to_fs

    with failures.told(url):
        if url.is_web:  # what looks like a chain is a part of the query
            return protocol(), url.address
        if issubclass(protocol, AsyncFileSystem):  # connects later on, and is kept for the thread that asked for it
            known: tuple[Any, str] = url_to_fs(url.address)
            return known
        found: tuple[Any, str] = in_time(url_to_fs, url.address)
        return found


def in_time(work: Callable[..., Any], *arguments: Any, size: int = 0, **options: Any) -> Any:
    """Return what ``work`` returns, which may take no longer than a store may be silent and ``size`` bytes take.

    Raises:
        TimeoutError: It took longer; it goes on in a thread that nobody waits for.
    """
    outcome: list[Any] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work(*arguments, **options))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(failures.SILENCE + size / failures.SLOWEST)
    if failure:
        raise failure[0]
    if not outcome:
        raise TimeoutError
    return outcome[0]
