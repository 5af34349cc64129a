"""The one way to an output file: staged complete beside it, and renamed into place only with a passing verdict."""

from __future__ import annotations

import contextlib
import errno
import filecmp
import itertools
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from padfix.errors import NotEquivalent, OutputError
from padfix.files import atomic_placing, writer
from padfix.files.backups import backup_name
from padfix.files.external_data import location_of
from padfix.files.model import Model
from padfix.files.payloads import is_outside
from padfix.files.tensors import iterate_tensors
from padfix.process import watch
from padfix.results import Verdict

DATA_SUFFIX = ".data"
"""What is added to the output's name for its data file."""

_INTERIM = "interim.padfix"


@dataclass(frozen=True)
class Staged:
    """A complete model in a hidden folder beside the output.

    Attributes:
        path: The model's file there, under its final name; ONNX Runtime can load it, data file included.
        output: Where it goes.
        names: Of everything that is staged, the model last.
        token: What makes names in the output's folder unique.
        replaces_source: Whether the output may be the source.
    """

    path: Path
    output: Path
    names: tuple[str, ...]
    token: str
    replaces_source: bool

    def differs_from(self, source: Path) -> bool:
        """Whether what is staged is anything else than ``source``, byte for byte."""
        return len(self.names) > 1 or not filecmp.cmp(self.path, source, shallow=False)

    @property
    def files(self) -> tuple[Path, ...]:
        """Everything that is staged: the model first, then its data."""
        return tuple(self.path.parent / name for name in reversed(self.names))

    def commit(self, verdict: Verdict | None, *, verified: bool, backup: bool = False) -> Path | None:
        """Put the staged files in place, each whole.

        Args:
            verdict: The whole proof's verdict; None only without proof.
            verified: False when the user asked to write without proof.
            backup: Keep the source that is replaced, as ``<output>.bak``, or ``.bak.1`` and so on where that is taken.

        Returns:
            The backup, if one was made.

        Raises:
            NotEquivalent: The verdict does not say that the models agree, or there is none where one is needed.
            OutputError: The files can't be put in place.
        """
        if verdict is not None and not verdict.equivalent:
            raise NotEquivalent("The result does not agree with the source.", "Nothing was written.")
        if verified and verdict is None:
            raise NotEquivalent("There is no proof that the result agrees with the source.", "Nothing was written.")
        folder = self.output.parent
        kept = None
        try:
            if self.replaces_source:
                shutil.copymode(self.output, self.path)
                kept = _keep(self.output) if backup else None
            with atomic_placing.undisturbed(folder):
                self._put()
                _sync_folder(folder)
        except OSError as error:
            if kept is not None and kept.exists() and self.output.exists() and kept.samefile(self.output):
                kept.unlink()  # nothing was replaced, so there is nothing to keep
            raise _output_error(self.output, error) from error
        return kept

    def _put(self) -> None:
        if len(self.names) == 1:
            atomic_placing.put(self.path, self.output)
            return
        data = self.path.parent / self.names[0]
        interim = self.path.parent / _INTERIM
        atomic_placing.put_with_data(self.path, data, interim, _interim_data(self.output.name, self.token), self.output)


def _keep(file: Path) -> Path:
    """Give ``file`` a second name that survives its replacement, and return it."""
    for number in itertools.count():
        kept = file.with_name(backup_name(file.name, number))
        try:
            os.link(file, kept)
        except FileExistsError:
            continue
        except OSError:  # a file system without hard links
            with open(file, "rb") as source, open(kept, "xb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
                os.fsync(copy.fileno())
            shutil.copystat(file, kept)
        return kept
    raise AssertionError("unreachable")


@contextlib.contextmanager
def stage(
    model: Model,
    output: Path,
    *,
    external_data: bool = False,
    source: Path | None = None,
    replace_source: bool = False,
) -> Iterator[Staged]:
    """Write ``model`` completely to a hidden folder beside ``output``; leaving without a commit removes all of it.

    Args:
        model: The model; its large payloads are streamed from the files they are in.
        output: Where the model is to go. A symbolic link is followed.
        external_data: Write payloads to ``<output>.data`` beside the model; done in any case from 2 GiB.
        source: The file or folder that the user named, if it is not the model's own file.
        replace_source: Whether the output may be the model's own file; its data files may be overwritten in no case.

    Raises:
        OutputError: The output can't be written, or it would overwrite the source.
        SourceError: A payload can't be read.
    """
    target = place_of(Path(output))
    data_name = target.name + DATA_SUFFIX
    sources = source_files(model, source)
    if not replace_source:
        _refuse_overwriting(target, sources)
    atomic_placing.remove_stale(target)
    token = secrets.token_hex(4)
    scratch = target.parent / atomic_placing.scratch_name(target.name, token)
    with watch.scratch(scratch):
        try:
            os.mkdir(scratch, 0o700)
        except OSError as error:
            raise _output_error(target, error) from error
        try:
            try:
                written = _write(model, scratch, target.name, data_name, external_data=external_data)
                if data_name in written:
                    _refuse_overwriting(target.parent / data_name, sources)
                    # The same model, asking for its data under a name of its own (see ``atomic_placing``).
                    other = _interim_data(target.name, token)
                    _write(model, scratch, _INTERIM, other, external_data=external_data, with_data=False)
            except OSError as error:
                raise _output_error(target, error) from error
            yield Staged(scratch / target.name, target, written, token, replace_source)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _write(
    model: Model, folder: Path, name: str, data_name: str, *, external_data: bool, with_data: bool = True
) -> tuple[str, ...]:
    """Write the model as ``name``, and perhaps its data file, into ``folder``; return their names, data first."""
    plan = writer.plan(model, data_name, external_data=external_data)
    names: list[str] = []
    if plan.data and with_data:
        with open(folder / data_name, "xb") as file:
            writer.write_data(file, plan.data)
            os.fsync(file.fileno())
        names.append(data_name)
    with open(folder / name, "xb") as file:
        writer.write_pieces(file, plan.model)
        os.fsync(file.fileno())
    return (*names, name)


def _interim_data(name: str, token: str) -> str:
    return f"{name}.{token}{DATA_SUFFIX}"


def place_of(output: Path) -> Path:
    """Return the output with links followed, after making sure that a file can be there.

    Raises:
        OutputError: It is a folder, no regular file, or its folder does not exist.
    """
    try:
        target = output.absolute().resolve()
        status = target.stat() if target.exists() else None
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise OutputError(f"{output} can't be written: {reason}.", "Choose another output path.") from error
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise OutputError(f"{output} is a folder.", "Name the file to write in it, for example model.onnx.")
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise OutputError(f"{output} is not a regular file.", "padfix writes to a file beside which it can stage.")
    if not target.parent.is_dir():
        raise OutputError(
            f"The folder {target.parent} does not exist.", "Make it first, or choose another output path."
        )
    return target


def source_files(model: Model, source: Path | None) -> list[Path]:
    """Return every file that ``model`` is read from: its own, the one that the user named, and data files."""
    files = [path for path in (model.path, source) if path is not None]
    folder = model.folder or Path()
    for tensor in iterate_tensors(model.proto):
        if is_outside(tensor) and (location := location_of(tensor)) and folder / location not in files:
            files.append(folder / location)
    return files


def _refuse_overwriting(target: Path, sources: list[Path]) -> None:
    for source in sources:
        try:
            same = target.exists() and source.exists() and target.samefile(source)
            inside = source.is_dir() and target.is_relative_to(source.resolve()) and target.exists()
        except OSError:
            continue
        if same or inside:
            raise OutputError(
                f"{target} is part of the source, which padfix never changes.", "Choose another output path."
            )


def _sync_folder(folder: Path) -> None:
    """Make renames in a folder last; not every system can, and the files are whole in any case."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_HINTS = {
    errno.EACCES: "Choose a folder that you may write to.",
    errno.EPERM: "Choose a folder that you may write to.",
    errno.EROFS: "Choose a folder that you may write to.",
    errno.ENOSPC: "Make room on the disk, or choose another one.",
    errno.EDQUOT: "Make room on the disk, or choose another one.",
    errno.EFBIG: "The file system or a limit does not allow a file that large; choose another disk.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
}


def _output_error(output: Path, error: OSError) -> OutputError:
    reason = error.strerror or str(error)
    return OutputError(f"{output} can't be written: {reason}.", _HINTS.get(error.errno or 0, "Nothing was written."))
