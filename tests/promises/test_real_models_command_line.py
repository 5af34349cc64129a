"""Honest models go through the command line with its default options, in a process, in every form that Keras saves.

A SavedModel that others trained, and all of ``keras.applications`` up to 100 MB without trained weights, of which the
first example of the guide is one that is run without ``--slow`` too.
"""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from tests.promises.test_real_models import basic_pitch
from tests.support.warm_commands import WarmCommands

pytestmark = [pytest.mark.tensorflow, pytest.mark.long]

APPLICATIONS = (
    "MobileNetV3Small",
    "MobileNet",
    "MobileNetV2",
    "MobileNetV3Large",
    "NASNetMobile",
    "EfficientNetB0",
    "EfficientNetB1",
    "EfficientNetB2",
    "EfficientNetB3",
    "EfficientNetB4",
    "EfficientNetV2B0",
    "EfficientNetV2B1",
    "EfficientNetV2B2",
    "EfficientNetV2B3",
    "EfficientNetV2S",
    "DenseNet121",
    "DenseNet169",
    "DenseNet201",
    "InceptionV3",
    "Xception",
    "ResNet50",
    "ResNet50V2",
)
FORMS = ("keras", "h5", "saved_model")

SAVE = """
import sys
import keras
name, form, path = sys.argv[1:]
keras.utils.set_random_seed(7)
model = getattr(keras.applications, name)(weights=None)
if form == "saved_model":
    model.export(path, verbose=False)
else:
    model.save(path)
    try:
        keras.models.load_model(path)
    except ValueError as error:
        print("Keras can't read it:", error)
"""


def holds(source: Path, folder: Path, warm: WarmCommands) -> None:
    """Convert and check a model with the default options."""
    done = warm.run(
        ["-m", "padfix", "convert", str(source), "-o", "out.onnx", "--report", "report.html", "--format", "json"],
        folder,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["verdict"]["equivalent"] and not report["refusals"]
    assert report["verdict"]["reference"] == "tensorflow"
    assert (folder / "report.html").stat().st_size > 1000
    checked = warm.run(["-m", "padfix", "check", "out.onnx"], folder)
    assert checked.returncode == 0, checked.stdout


def test_the_saved_model_of_basic_pitch_whose_optimizer_keras_refuses(warm: WarmCommands, tmp_path: Path) -> None:
    holds(basic_pitch() / "nmp", tmp_path, warm)
    outputs = {value.name for value in onnx.load(tmp_path / "out.onnx").graph.output}
    assert outputs == {"note", "onset", "contour"}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_an_application_of_keras(name: str, form: str, warm: WarmCommands, tmp_path: Path) -> None:
    source = tmp_path / ("model" if form == "saved_model" else f"model.{form}")
    saved = warm.run(["-c", SAVE, name, form, str(source)], tmp_path)
    assert saved.returncode == 0, saved.stderr
    _, unreadable, reason = saved.stdout.rpartition("Keras can't read it: ")
    if not unreadable:
        holds(source, tmp_path, warm)
        return
    # Keras 3.15 writes the operator of `x + 3.0` to .h5 like the layer Add, which takes no number.
    refused = warm.run(["-m", "padfix", "convert", source.name, "-o", "out.onnx"], tmp_path)
    assert (refused.returncode, form) == (2, "h5")
    assert f"Keras can't read {source.name}: {reason.strip().splitlines()[0]}" in refused.stderr
    assert "model.export(folder)" in refused.stderr
    assert not (tmp_path / "out.onnx").exists()
