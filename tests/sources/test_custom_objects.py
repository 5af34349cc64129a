"""Custom layers of Keras files: refused by name, and converted where their code is given."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import padfix
from padfix.errors import UnsupportedError, UsageError
from tests.support.warm_commands import WarmCommands

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("tf")]

CODE = """
import keras

class Doubled(keras.layers.Layer):
    def call(self, x):
        return x * 2.0
"""
SAVE = "import doubled, keras; x = keras.Input((3,)); keras.Model(x, doubled.Doubled(name='mine')(x)).save('m.keras')"


@pytest.fixture
def folder(tmp_path: Path, warm: WarmCommands) -> Path:
    (tmp_path / "doubled.py").write_text(CODE)
    warm.run(["-c", SAVE], tmp_path).check_returncode()
    return tmp_path


def test_a_class_given_in_python(folder: Path) -> None:
    with pytest.raises(UnsupportedError, match="'Doubled' of the module 'doubled'") as caught:
        padfix.convert(folder / "m.keras", folder / "m.onnx")
    for way in ("model.export(folder)", "custom_objects={'Doubled': ...}", "--custom doubled:Doubled --trust"):
        assert way in caught.value.hint
    with pytest.raises(UsageError, match="run its code"):
        padfix.convert(folder / "m.keras", folder / "m.onnx", custom_objects={"Doubled": "doubled:Doubled"})
    space: dict[str, Any] = {"__name__": "doubled"}
    exec(CODE, space)
    report = padfix.convert(folder / "m.keras", folder / "m.onnx", custom_objects={"Doubled": space["Doubled"]})
    assert report.verdict is not None
    assert report.verdict.equivalent


def test_a_class_named_on_the_command_line(folder: Path, warm: WarmCommands) -> None:
    command = ["-m", "padfix", "convert", "m.keras", "-o", "m.onnx", "--custom"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return warm.run([*command, *arguments], folder)

    refused = run("doubled:Doubled")
    assert refused.returncode == 2
    assert "--trust" in refused.stderr
    assert run("nonsense", "--trust").returncode == 2
    missing = run("doubled:Other", "--trust")
    assert missing.returncode == 2
    assert "doubled:Other can't be imported" in missing.stderr
    done = run("doubled:Doubled", "--trust")
    assert done.returncode == 0, done.stderr
    assert (folder / "m.onnx").exists()


def test_a_lambda_whose_function_does_not_come_back_is_named(folder: Path) -> None:
    keras = pytest.importorskip("keras")
    factor = keras.ops.ones([3])
    model = keras.Sequential([keras.layers.Lambda(lambda x: x * factor, name="scaled")])
    model(keras.ops.ones([1, 3]))
    model.save(folder / "closure.keras")
    with pytest.raises(UnsupportedError, match=r"Lambda layer with stored Python code \('scaled'\)") as caught:
        padfix.convert(folder / "closure.keras", folder / "m.onnx")
    assert "--trust" in caught.value.hint
    assert "model.export" in caught.value.hint
    with pytest.raises(UnsupportedError, match="'scaled'"):
        padfix.convert(folder / "closure.keras", folder / "m.onnx", trust=True)
