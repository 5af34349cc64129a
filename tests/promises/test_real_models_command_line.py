"""Honest models go through the command line with its default options, in a process, in every form that Keras saves.

All of ``keras.applications`` up to 100 MB, without trained weights; a small one where no ``--slow`` is given.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.warm_commands import WarmCommands

ROOT = Path(__file__).parents[2]
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
SAMPLE = {("MobileNet", "saved_model")}
"""What runs by default; MobileNetV3Small as a .keras is the first example of the guide, which is run as well."""

SAVE = """
import sys
import keras
name, form, path = sys.argv[1:]
keras.utils.set_random_seed(7)
model = getattr(keras.applications, name)(weights=None)
model.export(path, verbose=False) if form == "saved_model" else model.save(path)
"""


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_an_application_of_keras(name: str, form: str, warm: WarmCommands, tmp_path: Path, slow: bool) -> None:
    if not slow and (name, form) not in SAMPLE:
        pytest.skip("a full sweep; run it with --slow")
    source = "model" if form == "saved_model" else f"model.{form}"
    saved = warm.run(["-c", SAVE, name, form, source], tmp_path)
    assert saved.returncode == 0, saved.stderr
    done = run(
        ["-m", "padfix", "convert", source, "-o", "out.onnx", "--report", "report.html", "--format", "json"], tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["verdict"]["equivalent"] and not report["refusals"]
    assert (tmp_path / "report.html").stat().st_size > 1000
    checked = run(["-m", "padfix", "check", "out.onnx"], tmp_path)
    assert checked.returncode == 0, checked.stdout
