"""The cache of reports: what is kept, what makes it useless, and that damage is no error."""

from __future__ import annotations

import dataclasses
import os
import pickle
import sqlite3
import zlib
from pathlib import Path

import pytest

import padfix
from padfix.checking import cache
from padfix.checking.cache import NAME, Cache, row_of, state_of
from padfix.files.urls import Url
from padfix.results import Identity

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "fixtures/onnx/same_cnn.onnx"


def kept(folder: Path, settings: str = "s", *, draws: bool = True) -> padfix.CheckReport:
    report = padfix.check(MODEL)
    there = Cache(folder, settings)
    there.keep(row_of([report], draws=draws))
    there.close()
    return report


def test_a_report_comes_back_with_its_pictures(tmp_path: Path) -> None:
    report = kept(tmp_path)
    found = read(Cache(tmp_path, "s"), report) or []
    for field in dataclasses.fields(report):
        assert getattr(found[0], field.name) == getattr(report, field.name), field.name
    assert found[0].findings[0].illustration == report.findings[0].illustration is not None
    assert read(Cache(tmp_path, "other"), report) is None


def test_a_report_without_pictures_is_one_for_those_who_want_none(tmp_path: Path) -> None:
    report = kept(tmp_path, draws=False)
    digest = digest_of(report)
    plain, drawn = Cache(tmp_path, "s", draws=False), Cache(tmp_path, "s")
    assert read(plain, report) == [report]
    assert plain.kept("unknown") is None
    assert plain.digests() == {digest}
    assert read(drawn, report) is None
    assert drawn.digests() == Cache(tmp_path, "other", draws=False).digests() == set()


def digest_of(report: padfix.CheckReport) -> str:
    assert report.identity is not None
    return report.identity.digest


def read(there: Cache, report: padfix.CheckReport) -> list[padfix.CheckReport] | None:
    row = there.kept(digest_of(report))
    return None if row is None else row.reports(report.source)


@pytest.mark.parametrize("damage", [b"", b"no database at all", None])
def test_a_damaged_file_is_made_anew(damage: bytes | None, tmp_path: Path) -> None:
    report = kept(tmp_path)
    data = bytearray((tmp_path / NAME).read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    (tmp_path / NAME).write_bytes(data if damage is None else damage)
    first = Cache(tmp_path, "s")
    assert read(first, report) is None
    first.close()
    kept(tmp_path)
    assert read(Cache(tmp_path, "s"), report) == [report]


def test_models_of_which_the_same_is_said_are_told_apart(tmp_path: Path) -> None:
    report = kept(tmp_path)
    row = Cache(tmp_path, "s").kept(digest_of(report))
    assert row is not None
    first, second = (row._replace(identity=Identity(size, str(size))).reports(f"{size}.onnx")[0] for size in (1, 2))
    assert (first.source, first.identity) == ("1.onnx", Identity(1, "1"))
    assert (second.source, second.identity) == ("2.onnx", Identity(2, "2"))
    assert first.findings is second.findings


class Harm:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("harm",)


def test_nothing_in_a_row_can_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = kept(tmp_path)
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect(tmp_path / NAME) as database:
        database.execute("UPDATE reports SET drawn = ?", (zlib.compress(pickle.dumps([Harm()])),))
    with pytest.raises(pickle.UnpicklingError):
        read(Cache(tmp_path, "s"), report)
    assert not Path("harm").exists()


def test_a_folder_that_can_not_be_used_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    report = kept(tmp_path / "file" / "inner")
    assert read(Cache(tmp_path / "file", "s"), report) is None


def test_a_file_is_known_until_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_text("a")
    assert state_of(file) is None, "its times may be coarse, and it may change again"
    there = Cache(tmp_path, "s")
    there.keep_state(file, "another", "digest")
    assert there.known(file) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "SETTLED", -1.0)
        state = state_of(file)
        assert state is not None
        there.keep_state(file, state, "digest")
        there.close()
        assert Cache(tmp_path, "s").known(file) == Identity(0, "digest")
        os.utime(file, (0, 0))
        assert Cache(tmp_path, "s").known(file) is None
        assert Cache(tmp_path, "s").known(tmp_path / "missing") is None


def test_a_file_of_a_store_is_known_by_what_its_listing_says(tmp_path: Path) -> None:
    address = "s3://user:hunter2@zoo/m.onnx"
    there = Cache(tmp_path, "s")
    there.keep_state(Url(address, "4 etag a"), "4 etag a", "digest")
    there.close()
    assert Cache(tmp_path, "s").known(Url(address, "4 etag a")) == Identity(0, "digest")
    assert Cache(tmp_path, "s").known(Url(address, "4 etag b")) is None
    assert Cache(tmp_path, "s").known(Url(address)) is None
    assert b"hunter" not in (tmp_path / NAME).read_bytes()


def test_what_nobody_asks_for_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = kept(tmp_path)
    later = Cache(tmp_path, "s")
    monkeypatch.setattr(later, "_day", later._day + cache.KEPT_DAYS + 1)
    later.keep_state(tmp_path, "state", "of another file")
    later.close()
    assert read(Cache(tmp_path, "s"), report) is None
