"""The user's data: arrays by name, single arrays, images, and folders of these."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from padfix.cli.exits import run
from padfix.cli.group import cli
from padfix.errors import SourceError, UsageError
from padfix.proof.executors import TensorSpec
from padfix.proof.matching import InputMatch
from padfix.proof.probes import Probe
from padfix.proof.user_probes import given_probes

ROOT = Path(__file__).parents[2]
IMAGE = TensorSpec("x", TensorProto.FLOAT, ("N", 3, "H", "W"))
FIXED = TensorSpec("x", TensorProto.UINT8, (2, 5, 6, 3))
MASK = TensorSpec("mask", TensorProto.BOOL, (4,))


def only(path: Path, *inputs: TensorSpec, matches: list[InputMatch] | None = None) -> Probe:
    (probe,) = given_probes([path], inputs, matches or ())
    return probe


def test_npz_is_matched_by_name(tmp_path: Path) -> None:
    path = tmp_path / "probe.npz"
    np.savez(path, x=np.ones((1, 3, 4, 4)), unused=np.zeros(1))
    probe = only(path, IMAGE)
    assert probe.name == "probe.npz"
    assert probe.arrays["x"].dtype == np.float32
    assert set(probe.arrays) == {"x"}


def test_bad_data_is_an_error_with_words(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no file"):
        only(tmp_path / "none.npz", IMAGE)
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(SourceError, match=r"can't be read"):
        only(broken, IMAGE)
    pickled = tmp_path / "objects.npy"
    np.save(pickled, np.array([{}], dtype=object))
    with pytest.raises(SourceError, match=r"can't be read"):
        only(pickled, IMAGE)
    path = tmp_path / "probe.npz"
    np.savez(path, y=np.ones(1))
    with pytest.raises(UsageError, match="no array for input 'x'"):
        only(path, IMAGE)
    np.savez(path, x=np.ones((1, 4, 4, 4), np.float32))
    with pytest.raises(UsageError, match="shape"):
        only(path, IMAGE)
    np.savez(path, x=np.ones((1, 3, 4, 4), np.complex64))
    with pytest.raises(UsageError, match="complex64"):
        only(path, IMAGE)


def test_one_array_is_the_only_input(tmp_path: Path) -> None:
    path = tmp_path / "image.npy"
    np.save(path, np.ones((1, 3, 4, 5), np.float32))
    assert only(path, IMAGE).arrays["x"].shape == (1, 3, 4, 5)
    np.savez(tmp_path / "image.npz", np.ones((1, 3, 4, 5), np.float32))
    assert only(tmp_path / "image.npz", IMAGE).arrays["x"].shape == (1, 3, 4, 5)
    with pytest.raises(UsageError, match="2 inputs"):
        only(path, IMAGE, MASK)


def test_data_may_go_by_the_names_and_the_layout_of_the_other_model(tmp_path: Path) -> None:
    theirs = TensorSpec("pixels", TensorProto.FLOAT, ("N", "H", "W", 3))
    match = InputMatch(theirs, IMAGE, (0, 2, 3, 1))
    data = np.arange(1 * 4 * 5 * 3, dtype=np.float32).reshape(1, 4, 5, 3)
    for name in ("pixels", "x"):
        np.savez(tmp_path / "data.npz", **{name: data})
        found = only(tmp_path / "data.npz", IMAGE, matches=[match]).arrays["x"]
        assert np.array_equal(found, data.transpose(0, 3, 1, 2))


def test_a_folder_is_read_file_by_file_in_order(tmp_path: Path) -> None:
    for number in (2, 1):
        np.save(tmp_path / f"{number}.npy", np.full((1, 3, 4, 4), number, np.float32))
    (tmp_path / "notes.txt").write_text("not data")
    names = [probe.name for probe in given_probes([tmp_path], [IMAGE])]
    assert names == ["1.npy", "2.npy"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no data"):
        list(given_probes([tmp_path / "empty"], [IMAGE]))


def gradient(path: Path) -> np.ndarray:
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (4, 7, 3)).astype(np.uint8)
    image.fromarray(pixels).save(path)
    return pixels


def test_images_are_given_in_the_layout_and_range_of_the_input(tmp_path: Path) -> None:
    pixels = gradient(tmp_path / "photo.png")
    found = only(tmp_path / "photo.png", IMAGE).arrays["x"]
    assert np.allclose(found, pixels.transpose(2, 0, 1)[None] / 255)
    fixed = only(tmp_path / "photo.png", FIXED).arrays["x"]
    assert fixed.dtype == np.uint8
    assert fixed.shape == (2, 5, 6, 3)
    gray = TensorSpec("x", TensorProto.FLOAT, (1, "H", "W", 1))
    assert only(tmp_path / "photo.png", gray).arrays["x"].shape == (1, 4, 7, 1)
    with pytest.raises(UsageError, match="only input"):
        only(tmp_path / "photo.png", IMAGE, MASK)
    with pytest.raises(UsageError, match="where an image has its channels"):
        only(tmp_path / "photo.png", TensorSpec("x", TensorProto.FLOAT, (1, None, None, None)))
    (tmp_path / "photo.png").write_bytes(b"no image")
    with pytest.raises(SourceError, match="as an image"):
        only(tmp_path / "photo.png", IMAGE)


def test_without_pillow_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    (tmp_path / "photo.jpg").write_bytes(b"")
    with pytest.raises(SourceError) as caught:
        only(tmp_path / "photo.jpg", IMAGE)
    assert "padfix[images]" in (caught.value.hint or "")


def test_the_command_takes_folders_and_single_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(ROOT / "fixtures" / "onnx" / "same_cnn.onnx")
    folder = tmp_path / "data"
    folder.mkdir()
    assert run(cli, ["verify", source, source, "--probe", str(folder)]) == 2
    assert "holds no data" in capsys.readouterr().err
    np.save(folder / "one.npy", np.ones((1, 3, 32, 32), np.float32))
    assert run(cli, ["verify", source, source, "--probe", str(folder), "--format", "json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [run["probe"] for run in runs[:2]] == ["one.npy", "one.npy"]
