"""What ``check`` said of models, kept for the next time, as linters do.

A report depends on what padfix reads of the model (:class:`padfix.results.Identity`), on padfix's own code, on the
version of onnx, and on the targets and rules that are asked for: all of them are in its key. What a configuration file
leaves out, and a baseline, come after. To tell that a file is the one of last time without reading it, its path is kept
with its size, its number in the file system, and the times of its last changes; where one differs the file is read, and
its digest asked. Of a file in a store, what its listing says is kept, beside a digest of its address, which may hold
credentials.

One SQLite file, which several processes may use at once. Nothing here is ever an error: a cache that can't be used is
none, and one that is damaged is made anew.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import itertools
import os
import pickle
import sqlite3
import time
import zlib
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from padfix.files.urls import Place, Url
from padfix.results import CheckReport, Identity

NAME = "checks-2.sqlite"
"""The file in the cache's folder; its number is that of its tables."""

KEPT_DAYS = 60
"""Days for which a report is kept that nobody asks for."""

SETTLED = 2.0
"""Seconds since the last change of a file before its times are trusted: they may be coarse, and it may change again."""

_PERIOD = 1.0  # seconds between writes to the disk
_HELD = 32 * 1024  # KiB of the file that are held in memory
_PATIENCE = 5.0  # seconds that another process may take to write
_DAY = 86400
_TABLES = """
CREATE TABLE IF NOT EXISTS reports (key TEXT PRIMARY KEY, size INTEGER, plain BLOB, drawn BLOB, day INTEGER);
CREATE TABLE IF NOT EXISTS files (path BLOB PRIMARY KEY, state TEXT NOT NULL, digest TEXT NOT NULL, day INTEGER);
"""

_KNOWN = """
SELECT path, state, digest, size, {column}, reports.day
FROM files LEFT JOIN reports ON key = digest || ' ' || ? WHERE path IN ({places})
"""
_AT_ONCE = 500  # places that one question is about; SQLite takes 999 parameters
_ALIKE = 4096  # reports that are held to be shared: models of one exporter have much the same to be said of them


class Row(NamedTuple):
    """What is kept of the reports of a model, which is also how they travel.

    Attributes:
        identity: The model's.
        plain: The reports without what pictures are made of; neither these nor those say of which file they are.
        drawn: With it; None where nobody wants any, as it is the larger part.
    """

    identity: Identity
    plain: bytes | None
    drawn: bytes | None

    def reports(self, source: str) -> list[CheckReport]:
        """Return the reports as those of a file.

        Raises:
            pickle.UnpicklingError: There is something else in it.
        """
        return [report.of(source, self.identity) for report in _loaded(self.plain, self.drawn)]


def row_of(reports: Sequence[CheckReport], *, draws: bool) -> Row:
    """Return what to keep of the reports of a model, one for each target."""
    unnamed = [report.of("", None) for report in reports]
    plain = pickle.dumps([_undrawn(report) for report in unnamed], protocol=5)
    drawn = zlib.compress(pickle.dumps(unnamed, protocol=5), 1) if draws else None
    return Row(reports[0].identity or Identity(0, ""), plain, drawn)


@lru_cache(_ALIKE)
def _loaded(plain: bytes | None, drawn: bytes | None) -> tuple[CheckReport, ...]:
    data = (plain or b"") if drawn is None else zlib.decompress(drawn)
    found = tuple(_Results(io.BytesIO(data)).load())
    if not all(isinstance(report, CheckReport) for report in found):
        raise pickle.UnpicklingError("These are no reports.")
    return found


def default_folder() -> Path | None:
    """Return padfix's folder among the user's caches; None where the user has none."""
    place = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(place):
        return Path(place, "padfix")
    try:
        return Path.home() / ".cache" / "padfix"
    except RuntimeError:
        return None


@cache
def code_digest() -> str:
    """Return what stands for padfix's own code and the version of onnx: any change may change a report."""
    from importlib.util import find_spec

    package = os.path.dirname(os.path.dirname(__file__))
    digest = hashlib.sha256()
    for folder, folders, names in os.walk(package):
        folders.sort()
        for name in sorted(name for name in names if name.endswith((".py", ".toml"))):
            path = os.path.join(folder, name)
            with open(path, "rb", buffering=0) as file:
                content = file.read()
            digest.update(f"{path[len(package) :]} {len(content)} ".encode() + content)
    onnx = find_spec("onnx")  # which is not loaded for it
    if onnx is not None and onnx.origin is not None:
        with contextlib.suppress(OSError):
            digest.update(Path(onnx.origin).with_name("version.py").read_bytes())
    return digest.hexdigest()


def settings_digest(*parts: Any) -> str:
    """Return what stands for padfix's code and for settings, whose ``repr`` says all about them."""
    return hashlib.sha256(repr((code_digest(), *parts)).encode("utf-8", "surrogatepass")).hexdigest()


def state_of(place: Place) -> str | None:
    """Return what changes when a file does; None where it changed a moment ago, or can't be looked at."""
    if isinstance(place, Url):
        return place.state
    try:
        status = os.stat(place)
    except (OSError, ValueError):
        return None
    changed = max(status.st_mtime_ns, status.st_ctime_ns)
    if time.time_ns() - changed < SETTLED * 1e9:
        return None
    return f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


class Cache:
    """The reports for some settings; of a folder that can't be used it knows nothing and keeps nothing.

    Args:
        folder: Where it is.
        settings: Stands for all but the model that a report depends on.
        draws: Whether reports are wanted with what pictures are made of.
    """

    def __init__(self, folder: Path, settings: str, *, draws: bool = True) -> None:
        self.draws = draws
        self._column = "drawn" if draws else "plain"
        self.folder = folder
        self._file = folder / NAME
        self._settings = settings
        self._here = os.getcwd()
        self._known: dict[Place, Row | Identity | None] = {}
        self._day = int(time.time()) // _DAY
        self._written = time.monotonic()
        self._database: sqlite3.Connection | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._open()
        except (sqlite3.Error, OSError):
            self._give_up()

    def _open(self) -> None:
        try:
            self._connect()
        except sqlite3.OperationalError:
            raise  # no room, no permission, or somebody else is writing: it is not damaged
        except sqlite3.DatabaseError:
            self._remove()
            self._connect()

    def _connect(self) -> None:
        self._database = sqlite3.connect(self._file, timeout=_PATIENCE)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = OFF")  # what a power cut damages is made anew
        self._database.execute(f"PRAGMA cache_size = -{_HELD}")
        self._database.executescript(_TABLES)

    def _remove(self) -> None:
        self._give_up()
        for suffix in ("", "-wal", "-shm"):
            self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)

    def _give_up(self, error: BaseException | None = None) -> None:
        """Do without from now on; what is damaged goes, so that the next run has a new one."""
        database, self._database = self._database, None
        if database is not None:
            with contextlib.suppress(sqlite3.Error):
                database.close()
        is_damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        if is_damaged:
            with contextlib.suppress(OSError):
                self._remove()

    def _rows(self, question: str, *parameters: Any) -> list[Any]:
        """Return the rows of an answer; none where the cache can't be used."""
        if self._database is None:
            return []
        try:
            return self._database.execute(question, parameters).fetchall()
        except sqlite3.Error as error:
            self._give_up(error)
            return []

    def _ask(self, question: str, *parameters: Any) -> Any:
        """Return the first row of an answer, None without one."""
        return next(iter(self._rows(question, *parameters)), None)

    def known(self, place: Place) -> Row | Identity | None:
        """Return what is kept of a file that did not change since it was last read: its reports, or its digest alone.

        None where it is not known whether it changed. It is looked at once.
        """
        if place not in self._known:
            self.look_up([place])
        return self._known[place]

    def look_up(self, places: Iterable[Place]) -> None:
        """Look at many files at once, so that :meth:`known` knows all about them."""
        new = (place for place in places if place not in self._known)
        while some := list(itertools.islice(new, _AT_ONCE)):
            self._known.update(dict.fromkeys(some))
            states = {self._name(place): (place, state_of(place)) for place in some}
            question = _KNOWN.format(column=self._column, places=", ".join("?" * len(states)))
            for name, state, digest, size, data, day in self._rows(question, self._settings, *states):
                place, present = states[name]
                if state == present:
                    self._known[place] = self._row(digest, size, data, day) or Identity(0, str(digest))

    def digests(self) -> frozenset[str]:
        """Return the digests of all models whose reports are there."""
        where = f"substr(key, instr(key, ' ') + 1) = ? AND {self._column} IS NOT NULL"
        rows = self._rows(f"SELECT key FROM reports WHERE {where}", self._settings)
        return frozenset(key.partition(" ")[0] for (key,) in rows)

    def kept(self, digest: str) -> Row | None:
        """Return what was said of the model with this digest, if that is known."""
        question = f"SELECT size, {self._column}, day FROM reports WHERE key = ?"
        found = self._ask(question, self._key(digest))
        return None if found is None else self._row(digest, *found)

    def _row(self, digest: str, size: int | None, data: bytes | None, day: int | None) -> Row | None:
        """Return what is kept of a model, and note that somebody asked for it."""
        if data is None:
            return None
        if day != self._day:
            self._ask("UPDATE reports SET day = ? WHERE key = ?", self._day, self._key(digest))
        plain, drawn = (None, data) if self.draws else (data, None)
        return Row(Identity(size or 0, digest), plain, drawn)

    def keep(self, row: Row) -> None:
        """Keep what was said of a model."""
        if row.identity.digest:
            kept = (self._key(row.identity.digest), row.identity.size, row.plain, row.drawn, self._day)
            self._ask("INSERT OR REPLACE INTO reports VALUES (?, ?, ?, ?, ?)", *kept)
            self._write(_PERIOD)

    def keep_state(self, place: Place, state: str, digest: str) -> None:
        """Keep the digest of a file in a state that was taken before it was read."""
        self._ask("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", self._name(place), state, digest, self._day)
        self._write(_PERIOD)

    def close(self) -> None:
        """Write what is kept, and beside it forget what nobody asked for in a long time."""
        is_changed = self._database is not None and self._database.total_changes > 0
        for table in ("reports", "files") if is_changed else ():
            self._ask(f"DELETE FROM {table} WHERE day < ?", self._day - KEPT_DAYS)
        self._write(0.0)
        self._give_up()

    def _write(self, period: float) -> None:
        if self._database is not None and time.monotonic() - self._written >= period:
            self._written = time.monotonic()
            try:
                self._database.commit()
            except sqlite3.Error as error:
                self._give_up(error)

    def _name(self, place: Place) -> bytes:
        if isinstance(place, Url):
            return b"url " + hashlib.sha256(os.fsencode(place.address)).digest()
        return os.fsencode(place if place.is_absolute() else os.path.join(self._here, place))

    def _key(self, digest: str) -> str:
        return f"{digest} {self._settings}"


def _undrawn(report: CheckReport) -> CheckReport:
    findings = [dataclasses.replace(finding, illustration=None) for finding in report.findings]
    return dataclasses.replace(report, findings=findings, maps=())


_CLASSES: dict[tuple[str, str], type] = {}


class _Results(pickle.Unpickler):
    """Reads reports, and nothing that could run: plain data of padfix's own, and fractions."""

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the classes that reports are made of."""
        known = _CLASSES.get((module, name))
        if known is not None:
            return known
        if module.startswith("padfix.results.") or (module, name) == ("fractions", "Fraction"):
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return _CLASSES.setdefault((module, name), found)
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a report")
