"""Real models from installed packages: convert passes its proof, and check is clean afterwards."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import onnx
import pytest

import padfix
from padfix.proof.probes import KINDS
from padfix.proof.work import FEW_KINDS

LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))
APPLICATIONS = (
    "MobileNetV2",
    "EfficientNetB0",
    "ResNet50V2",
    "InceptionV3",
    "DenseNet121",
    "NASNetMobile",
    "ConvNeXtTiny",
)


def basic_pitch() -> Path:
    found = importlib.util.find_spec("basic_pitch")
    if found is None or found.origin is None:
        pytest.skip("basic-pitch is not installed")
    return Path(found.origin).parent / "saved_models" / "icassp_2022"


def proven(source: Path, output: Path) -> padfix.ConvertReport:
    report = padfix.convert(source, output)
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert report.refusals == []
    assert padfix.check(output).findings == []
    return report


@pytest.mark.parametrize("source", LIGHT, ids=lambda path: path.stem)
def test_light_models_of_onnx(source: Path, tmp_path: Path) -> None:
    proven(source, tmp_path / "out.onnx")


def test_the_onnx_file_of_basic_pitch(tmp_path: Path) -> None:
    proven(basic_pitch() / "nmp.onnx", tmp_path / "out.onnx")


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("name", APPLICATIONS)
def test_keras_applications_without_weights(name: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(0)
    source = tmp_path / "model.keras"
    getattr(keras.applications, name)(weights=None).save(source)
    report = proven(source, tmp_path / "out.onnx")
    assert report.verdict is not None
    assert len(report.verdict.runs) in (2 * len(FEW_KINDS), 2 * len(KINDS))  # as the work of a run allows
