"""Keras files that hold more than a model are refused before Keras sees them."""

from __future__ import annotations

import importlib.util
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import padfix
from padfix.errors import SourceError, UnsupportedError
from padfix.sources import keras_safety

FIXTURES = Path(__file__).parents[2] / "fixtures" / "tf"


def archive(path: Path, **members: bytes | str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def layer(**parts: Any) -> str:
    return json.dumps(
        {"class_name": "Functional", "module": "keras.src.models.functional", "config": {"layers": [parts]}}
    )


@pytest.mark.parametrize("name", ["../evil.py", "/tmp/evil.py", "a/../../evil", "..\\evil"])
def test_a_member_that_climbs_out_is_refused(name: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "m.keras", **{"config.json": "{}", "metadata.json": "{}", name: b"x"})
    with pytest.raises(SourceError, match="outside its folder"):
        keras_safety.require_sound_archive(path)


def test_a_member_that_is_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    with zipfile.ZipFile(path, "w") as file:
        link = zipfile.ZipInfo("config.json")
        link.external_attr = 0o120777 << 16
        file.writestr(link, "/etc/passwd")
    with pytest.raises(SourceError, match="outside its folder"):
        keras_safety.require_sound_archive(path)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "m.keras", **{"config.json": "{}", "model.weights.h5": b"\0" * (70 << 20)})
    assert path.stat().st_size < 100_000
    with pytest.raises(SourceError, match="made to fill a disk"):
        keras_safety.require_sound_archive(path)


def test_members_of_one_name_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "m.keras", **{"config.json": "{}"})
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning):
        file.writestr("config.json", "[]")
    with pytest.raises(SourceError, match="twice"):
        keras_safety.require_sound_archive(path)


@pytest.mark.parametrize("name", ["model.weights.npz", "assets/layer.pkl", "weights.pt"])
def test_what_may_be_pickled_is_refused(name: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "m.keras", **{"config.json": "{}", name: pickle.dumps({})})
    with pytest.raises(UnsupportedError, match="pickled Python"):
        keras_safety.refuse_pickles(path)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"class_name": "Lambda", "module": "keras.layers"}, "Lambda layer with stored Python"),
        ({"class_name": "Lambda", "config": {"function_type": "function"}}, "Lambda layer with stored Python"),
        ({"class_name": "Lambda", "config": {"name": "twice"}}, r"Lambda layer with stored Python code \('twice'\)"),
        ({"config": {"function": {"class_name": "__lambda__", "config": {"value": "4wE="}}}}, "Lambda layer"),
        ({"class_name": "TFSMLayer", "module": "keras.layers", "config": {"filepath": "/x"}}, "layer of another file"),
        ({"class_name": "TorchModuleWrapper", "module": "keras.layers"}, "foreign code"),
        ({"class_name": "run", "module": "subprocess"}, "'run' of the module 'subprocess'"),
        ({"class_name": "function", "config": "system", "module": "os"}, "'system' of the module 'os'"),
        ({"class_name": "function", "config": "eval", "module": "builtins"}, "'eval' of the module 'builtins'"),
        ({"class_name": "function", "config": "get_file", "module": "keras.utils"}, "'get_file' of the module"),
        ({"class_name": "function", "config": "x", "module": "keras.config"}, "'x' of the module 'keras.config'"),
        ({"class_name": "function", "config": "x", "module": "keras"}, "'x' of the module 'keras'"),
        ({"class_name": "function", "config": "x", "module": "keras.src.utils.io"}, "custom code"),
        ({"class_name": "Own", "module": "keras_evil.layers"}, "custom code"),
        ({"class_name": "StringLookup", "config": {"vocabulary": "/etc/passwd"}}, "a file to read, vocabulary"),
    ],
)
def test_code_and_files_are_refused(parts: dict[str, Any], says: str) -> None:
    with pytest.raises(UnsupportedError, match=says) as caught:
        keras_safety.refuse_code(Path("m.keras"), layer(**parts))
    assert "--trust" in caught.value.hint


@pytest.mark.parametrize(
    "parts",
    [
        {"class_name": "Conv2D", "module": "keras.layers", "config": {"kernel_initializer": "glorot_uniform"}},
        {"class_name": "GlorotUniform", "module": "keras.initializers", "registered_name": None},
        {"class_name": "DTypePolicy", "module": "keras", "config": {"name": "float32"}},
        {"class_name": "function", "config": "relu6", "module": "keras.activations"},
        {"class_name": "function", "config": "swish_of_mine", "module": "builtins"},
        {"class_name": "StringLookup", "config": {"vocabulary": ["a", "b"], "filepath": None}},
        {"class_name": "Own", "module": None, "registered_name": "Mine>Own"},
    ],
)
def test_keras_own_parts_pass(parts: dict[str, Any]) -> None:
    keras_safety.refuse_code(Path("m.keras"), layer(**parts))


@pytest.mark.parametrize("text", ["{", "[" * 100_000])
def test_a_configuration_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match="not JSON"):
        keras_safety.refuse_code(Path("m.keras"), text)


@pytest.mark.skipif(importlib.util.find_spec("h5py") is None, reason="needs padfix[tf]")
def test_data_in_another_file_is_refused(tmp_path: Path) -> None:
    import h5py

    def build(make: Any) -> Path:
        path = tmp_path / "m.h5"
        with h5py.File(path, "w") as file:
            make(file.create_group("a/b"))
        return path

    def linked(group: Any) -> None:
        group["c"] = h5py.ExternalLink("other.h5", "/x")

    def outside(group: Any) -> None:
        group.create_dataset("c", (4,), "f4", external=[("/etc/passwd", 0, 16)])

    def virtual(group: Any) -> None:
        layout = h5py.VirtualLayout((4,), "f4")
        layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
        group.create_virtual_dataset("c", layout)

    for make, says in (
        (linked, "a link into another file"),
        (outside, "in another file"),
        (virtual, "in another file"),
    ):
        path = build(make)
        with h5py.File(path) as file, pytest.raises(SourceError, match=says):
            keras_safety.refuse_links(path, file)

    def plain(group: Any) -> None:
        group.create_dataset("c", data=np.zeros(4))
        group["soft"] = h5py.SoftLink("/a")
        group["again"] = group  # a circle

    path = build(plain)
    with h5py.File(path) as file:
        keras_safety.refuse_links(path, file)


@pytest.mark.tensorflow
def test_a_lambda_runs_only_with_trust(tmp_path: Path) -> None:
    import keras

    inputs = keras.Input((8, 8, 1))
    outputs = keras.layers.Lambda(lambda x: x * 2.0)(keras.layers.Conv2D(1, 3, padding="same", strides=2)(inputs))
    path = tmp_path / "m.keras"
    keras.Model(inputs, outputs).save(path)
    with pytest.raises(UnsupportedError, match="Lambda layer with stored Python code"):
        padfix.convert(path, tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()
    with pytest.raises(UnsupportedError, match="Lambda"):
        padfix.inspect(path)
    report = padfix.convert(path, tmp_path / "out.onnx", trust=True)
    assert report.verdict is not None and report.verdict.equivalent
