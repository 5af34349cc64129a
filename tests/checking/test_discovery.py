"""Files, folders and patterns become the ONNX files that they mean."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from padfix.checking.discovery import onnx_files
from padfix.errors import SourceError

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "fixtures" / "onnx" / "explicit_cnn.onnx"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("b.onnx", "a/model.bin", "a/deep/no_suffix", ".hidden/x.onnx"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(MODEL, tmp_path / name)
    (tmp_path / "notes.txt").write_text("words")
    (tmp_path / "weights.npy").write_bytes(b"\x93NUMPY\x01\x00")
    (tmp_path / "broken.onnx").write_bytes(b"")
    shutil.copy(ROOT / "fixtures" / "quickstart" / "small_cnn.pb", tmp_path / "frozen.pb")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(paths: list[Path]) -> list[str]:
    return [path.as_posix() for path in paths]


def test_a_folder_brings_in_models_by_content_and_damaged_ones_by_name(tree: Path) -> None:
    assert names(onnx_files([Path(".")])) == ["b.onnx", "broken.onnx", "a/model.bin", "a/deep/no_suffix"]


def test_what_is_called_onnx_is_brought_in_unseen(tree: Path) -> None:
    shutil.copy("frozen.pb", "a/another_kind.ONNX")
    assert names(onnx_files([Path("a")])) == ["a/another_kind.ONNX", "a/model.bin", "a/deep/no_suffix"]


def test_a_file_stands_for_itself_whatever_it_is_and_once(tree: Path) -> None:
    given = [Path("notes.txt"), Path("missing"), Path("b.onnx"), Path("b.onnx")]
    assert names(onnx_files(given)) == ["notes.txt", "missing", "b.onnx"]


def test_backups_are_brought_in_by_nothing_but_their_name(tree: Path) -> None:
    for name in ("b.onnx.bak", "b.onnx.bak.12", "a/model.bak.onnx"):
        shutil.copy(MODEL, name)
    assert names(onnx_files([Path("b*"), Path("a")])) == [
        "b.onnx",
        "broken.onnx",
        "a/model.bak.onnx",
        "a/model.bin",
        "a/deep/no_suffix",
    ]
    assert names(onnx_files([Path("b.onnx.bak")])) == ["b.onnx.bak"]


def test_patterns(tree: Path) -> None:
    assert names(onnx_files([Path("*.onnx")])) == ["b.onnx", "broken.onnx"]
    assert names(onnx_files([Path("a/**")])) == ["a/deep/no_suffix", "a/model.bin"]
    assert names(onnx_files([Path("[a]")])) == ["a/model.bin", "a/deep/no_suffix"]
    shutil.copy(MODEL, "odd[1].onnx")
    assert names(onnx_files([Path("odd[1].onnx")])) == ["odd[1].onnx"], "a file may have a pattern's characters"


def test_exclusion_spares_what_was_named_itself(tree: Path) -> None:
    found = onnx_files([Path("b.onnx"), Path("a")], excluded=lambda path: path.suffix != ".bin")
    assert names(found) == ["b.onnx", "a/model.bin"]


@pytest.mark.parametrize("argument", ["empty", "*.nothing"])
def test_nothing_found_is_an_error(tree: Path, argument: str) -> None:
    (tree / "empty").mkdir()
    with pytest.raises(SourceError, match=r"No (ONNX file is below|file matches)"):
        onnx_files([Path(argument)])


def test_a_saved_model_is_not_searched(tree: Path) -> None:
    folder = tree / "saved"
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(b"x")
    assert onnx_files([folder]) == [folder]
