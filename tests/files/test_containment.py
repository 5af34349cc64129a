"""Nothing outside the model's own folder is read, whatever the model names and however it is linked."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import padfix
from padfix.errors import SourceError
from padfix.files.containment import is_inner, require_plain, require_plain_tree

DATA = np.arange(1000, dtype=np.float32).tobytes()


def model(location: str = "data.bin", **entries: object) -> ModelProto:
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1000], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        weights.external_data.add(key=key, value=str(value))
    graph = helper.make_graph(
        [
            helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[3], auto_pad="SAME_UPPER"),
            helper.make_node("Add", ["p", "w"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 1000])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 1000])],
        [weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder; beside it lies a secret."""
    (tmp_path / "secret.bin").write_bytes(DATA)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "m.onnx").write_bytes(model().SerializeToString())
    return tmp_path / "model"


def refuse(folder: Path, says: str) -> None:
    """Every command that reads the weights refuses, at once, and leaves nothing."""
    before = sorted(folder.rglob("*"))
    source = folder / "m.onnx"
    signal.alarm(20)
    try:
        with pytest.raises(SourceError, match=says) as caught:
            padfix.convert(source, folder / "out.onnx")
        assert caught.value.hint
        with pytest.raises(SourceError, match=says):
            padfix.convert(source, folder / "out.onnx", verify=False)
        with pytest.raises(SourceError, match=says):
            padfix.verify(source, source)
    finally:
        signal.alarm(0)
    assert sorted(folder.rglob("*")) == before


def test_data_in_the_folder_is_read(folder: Path) -> None:
    (folder / "data.bin").write_bytes(DATA)
    assert padfix.convert(folder / "m.onnx", folder / "out.onnx").verdict.equivalent


@pytest.mark.parametrize(
    "location",
    ["../secret.bin", "/etc/passwd", "sub/../../secret.bin", "C:\\secret.bin", "..\\secret.bin", "\\\\host\\share", ""],
)
def test_a_location_that_leads_out_is_refused(location: str, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "m.onnx").write_bytes(model(location).SerializeToString())
    refuse(folder, "not inside the model's folder")
    with pytest.raises(SourceError, match="not inside the model's folder"):
        padfix.check(folder / "m.onnx")


def test_a_link_out_of_the_folder_is_refused(folder: Path) -> None:
    (folder / "data.bin").symlink_to("../secret.bin")
    refuse(folder, "a link out of the model's folder")


def test_a_linked_folder_out_of_the_folder_is_refused(folder: Path) -> None:
    (folder / "sub").symlink_to("..")
    (folder / "m.onnx").write_bytes(model("sub/secret.bin").SerializeToString())
    refuse(folder, "a link out of the model's folder")


def test_a_hard_link_to_a_file_outside_is_refused(folder: Path) -> None:
    os.link(folder.parent / "secret.bin", folder / "data.bin")
    refuse(folder, "a hard link to a file that has another name outside")


def test_a_hard_link_within_the_folder_is_read(folder: Path) -> None:
    (folder / "data.bin").write_bytes(DATA)
    os.link(folder / "data.bin", folder / "again.bin")
    assert padfix.convert(folder / "m.onnx", folder / "out.onnx").verdict.equivalent


def test_a_pipe_does_not_hang(folder: Path) -> None:
    os.mkfifo(folder / "data.bin")
    refuse(folder, "not a regular file")


def test_a_pipe_as_the_model_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.onnx")
    refuse(tmp_path, "neither a file nor a folder")
    with pytest.raises(SourceError, match="not a regular file"):
        padfix.check(tmp_path / "m.onnx")


def test_a_device_is_refused(folder: Path) -> None:
    (folder / "data.bin").symlink_to("/dev/zero")
    refuse(folder, "a link out of the model's folder")
    with pytest.raises(SourceError, match="not a regular file"):
        padfix.check("/dev/zero")


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"offset": 4}, "lies outside"),
        ({"offset": 2**63}, "lies outside"),
        ({"offset": -1}, "not a number"),
        ({"length": 4001}, "lies outside"),
        ({"length": 8}, "need 4000"),
        ({"length": "1e3"}, "not a number"),
    ],
)
def test_a_span_outside_the_file_is_refused(entries: dict[str, object], says: str, folder: Path) -> None:
    (folder / "data.bin").write_bytes(DATA)
    (folder / "m.onnx").write_bytes(model(**entries).SerializeToString())
    refuse(folder, says)


def test_a_cache_that_links_model_and_data_to_one_folder_is_read(folder: Path) -> None:
    """Caches that keep contents apart from names hold links; what the user's own link leads to counts as the folder."""
    contents, names = folder.parent / "blobs", folder.parent / "snapshot"
    contents.mkdir()
    names.mkdir()
    (contents / "aaa").write_bytes(model().SerializeToString())
    (contents / "bbb").write_bytes(DATA)
    (names / "m.onnx").symlink_to("../blobs/aaa")
    (names / "data.bin").symlink_to("../blobs/bbb")
    for reference in ("onnxruntime", "spec"):
        assert padfix.convert(names / "m.onnx", folder / "out.onnx", reference=reference).verdict.equivalent
    (names / "data.bin").unlink()
    (names / "data.bin").symlink_to("../secret.bin")
    refuse(names, "a link out of the model's folder")


def test_a_tree_is_plain_or_refused(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"x")
    (folder / "variables" / "variables.index").write_bytes(b"x")
    names = ("saved_model.pb", "variables", "assets")
    require_plain_tree(folder, names, folder / "saved_model.pb")

    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "words").write_bytes(b"x")
    (folder / "assets").symlink_to("../secret")
    with pytest.raises(SourceError, match="assets is a link out"):
        require_plain_tree(folder, names, folder / "saved_model.pb")
    (folder / "assets").unlink()

    (folder / "assets").mkdir()
    (folder / "assets" / "words").symlink_to("../../secret/words")
    with pytest.raises(SourceError, match="words is a link out"):
        require_plain_tree(folder, names, folder / "saved_model.pb")
    (folder / "assets" / "words").unlink()

    os.mkfifo(folder / "assets" / "words")
    with pytest.raises(SourceError, match="not a regular file"):
        require_plain_tree(folder, names, folder / "saved_model.pb")
    (folder / "assets" / "words").unlink()

    (folder / "assets" / "inner").symlink_to("../variables")
    with pytest.raises(SourceError, match="a link to a folder"):
        require_plain_tree(folder, names, folder / "saved_model.pb")


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"The words can't be opened: No such file") as caught:
        require_plain(tmp_path / "words", [tmp_path], "The words")
    assert "Put the file" in caught.value.hint


@pytest.mark.parametrize("location", ["a", "a/b", "./a", "a..b", "..a/b"])
def test_inner_locations(location: str) -> None:
    assert is_inner(location)
