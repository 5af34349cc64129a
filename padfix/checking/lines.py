"""A file of JSON lines that a run of ``check`` writes while it goes on, and that a later run goes on with."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from padfix.errors import UsageError
from padfix.files import atomic_text
from padfix.results import SCHEMA, CheckReport, Finding, Identity, Severity

_Kept = dict[str, dict[str | None, str]]
"""Lines by model and target; that of an error has none."""

_TOLD = tuple(field.name for field in fields(Finding) if field.compare)


class Lines:
    """The file: a line is in it as a whole or not at all, and as soon as its model is done.

    Args:
        file: Where it is.
        settings: Stands for all but the model that a line depends on; lines for other settings are of no use.
        resumed: Whether to go on with what is there.

    Raises:
        OutputError: The file can't be written.
        UsageError: What is there is something else.
    """

    def __init__(self, file: Path, settings: str, *, resumed: bool) -> None:
        self.file = file
        self._settings = settings
        self._kept: _Kept = {}
        self._is_doubled = False
        self._last = (0, 0)  # models begun, and how long the file is with the last of them
        self._size = 0
        if resumed and file.exists():
            if not file.is_file():
                raise UsageError(f"{file} is no file, and can't be gone on with.", "Name one with --resume.")
            self._kept, is_as_kept = _read(file)
            if not is_as_kept:
                _write(file, self._kept)
        try:
            self._stream = open(file, "ab" if resumed else "wb", buffering=0)  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise atomic_text.unwritten(file, error) from error

    def reports(self, source: str, targets: Sequence[str]) -> list[CheckReport] | None:
        """Return what the file says of a model for these targets and settings; None where it does not say all."""
        lines = self._kept.get(source, {})
        found = [json.loads(lines[target]) for target in targets if target in lines]
        if len(found) < len(targets) or any(content["settings"] != self._settings for content in found):
            return None
        return [_report(content) for content in found]

    def add(self, source: str, lines: Sequence[str]) -> None:
        """Append the lines of a model, in the place of those that are there."""
        data = "".join(lines).encode()
        start = os.fstat(self._stream.fileno()).st_size
        self._last = (self._last[0] + 1, start + len(data))
        try:
            written = 0
            while written < len(data):
                written += self._stream.write(data[written:])
        except OSError as error:
            with contextlib.suppress(OSError):
                self._stream.truncate(start)
            raise atomic_text.unwritten(self.file, error) from error
        self._is_doubled = self._is_doubled or source in self._kept

    @property
    def number(self) -> int:
        """How many models have their lines from this run, in a file that was closed: who is stopped may be writing."""
        begun, end = self._last
        return begun - (self._size < end)

    def close(self) -> None:
        """Close the file, and take out what was replaced."""
        if not self._stream.closed:
            self._size = os.fstat(self._stream.fileno()).st_size
        self._stream.close()
        if self._is_doubled:
            _write(self.file, _read(self.file)[0])


def _read(file: Path) -> tuple[_Kept, bool]:
    """Return the lines by model and target, the last of each, and whether that is all there is.

    A line for other settings replaces all of its model's, as an error does, which has no target; half a line at the end
    is left by a run that was cut off.
    """
    try:
        whole, _, half = file.read_bytes().rpartition(b"\n")
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror or error}.") from error
    kept: _Kept = {}
    settings: dict[str, str] = {}
    number = 0
    for number, line in enumerate(whole.split(b"\n") if whole else (), 1):
        try:
            content = json.loads(line)
            if content["schema"] != SCHEMA:
                raise ValueError(content["schema"])
            if not content["error"]:
                _report(content)
            source, target = str(content["source"]), content["target"]
            its_settings = str(content["settings"])
        except (ValueError, LookupError, TypeError) as error:
            raise UsageError(
                f"Line {number} of {file} is none that padfix wrote.", "Name the file of an earlier run, or a new one."
            ) from error
        before = kept.setdefault(source, {})
        if target is None or None in before or settings.get(source) != its_settings:
            before.clear()
        settings[source] = its_settings
        before[target] = line.decode() + "\n"
    return kept, not half and number == sum(map(len, kept.values()))


def _write(file: Path, kept: _Kept) -> None:
    try:
        atomic_text.write_text(file, "".join(line for lines in kept.values() for line in lines.values()))
    except OSError as error:
        raise atomic_text.unwritten(file, error) from error


def _report(content: dict[str, Any]) -> CheckReport:
    return CheckReport(
        content["source"],
        content["target"],
        list(_findings(content["findings"])),
        baselined=content["baselined"],
        fix_options=None if content["fix_options"] is None else tuple(content["fix_options"]),
        rules=tuple(content["rules"]),
        identity=Identity(content["size"], content["digest"]),
    )


def _findings(listed: list[dict[str, Any]]) -> Iterator[Finding]:
    for each in listed:
        told = {name: each[name] for name in _TOLD}
        yield Finding(**{**told, "severity": Severity(each["severity"])})
