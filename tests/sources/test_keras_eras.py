"""Keras files of both eras, with weights that are not zero, come out with their numbers, names and order."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import padfix
from padfix.errors import UnsupportedError

ERAS = ["keras", "tf_keras"]

pytestmark = [
    pytest.mark.usefixtures("tf"),
    pytest.mark.tensorflow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("tensorflow", *ERAS)), reason="needs padfix[tf]"
    ),
]


@pytest.fixture(params=ERAS)
def keras(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(request.param)


@pytest.fixture(params=[".keras", ".h5"])
def suffix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def save(model: Any, path: Path, *, trained: bool = False) -> Path:
    """Save with weights that an untrained model does not have, and an optimizer where ``trained``."""
    random = np.random.default_rng(0)
    model.set_weights([random.uniform(0.1, 0.5, np.shape(item)).astype(np.float32) for item in model.get_weights()])
    if trained:
        model.compile("adam", "mse")
    model.save(path)
    return path


def convert(path: Path, tmp_path: Path, **options: Any) -> tuple[list[str], list[str]]:
    report = padfix.convert(path, tmp_path / "out.onnx", **options)
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert not padfix.check(tmp_path / "out.onnx").findings
    graph = onnx.load(tmp_path / "out.onnx").graph
    return [value.name for value in graph.input], [value.name for value in graph.output]


TRANSPOSED: dict[str, tuple[dict[str, Any], tuple[int | None, ...]]] = {
    "same": ({"kernel_size": 3, "strides": 2, "padding": "same"}, (9, 8, 3)),
    "short kernel": ({"kernel_size": 2, "strides": 3, "padding": "same"}, (9, 8, 3)),
    "valid": ({"kernel_size": 3, "strides": 2, "padding": "valid", "activation": "relu"}, (9, 8, 3)),
    "output padding": ({"kernel_size": 4, "strides": 3, "padding": "valid", "output_padding": 1}, (5, 4, 3)),
    "free size": ({"kernel_size": 3, "strides": 2, "padding": "same"}, (None, None, 3)),
}


@pytest.mark.sweep(6)
@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_convolutions_keep_their_bias(keras: Any, case: str, tmp_path: Path) -> None:
    settings, shape = TRANSPOSED[case]
    inputs = keras.layers.Input(shape)
    model = keras.Model(inputs, keras.layers.Conv2DTranspose(4, name="up", **settings)(inputs))
    assert convert(save(model, tmp_path / "m.h5", trained=True), tmp_path)[1] == ["up"]


def test_several_inputs_and_outputs_around_a_nested_model(keras: Any, suffix: str, tmp_path: Path) -> None:
    layers = keras.layers
    inner = layers.Input((8, 8, 3))
    convolved = layers.Conv2D(2, 3, strides=2, padding="same")(inner)
    nested = keras.Model(inner, [convolved, layers.MaxPooling2D(3, 2, padding="same")(inner)], name="nested")
    zeta, alpha = layers.Input((8, 8, 3), name="zeta"), layers.Input((8, 8, 3), name="alpha")
    (first, second), (third, fourth) = nested(zeta), nested(alpha)
    outputs = [layers.Add(name="second")([first, third]), layers.Concatenate(name="first")([second, fourth])]
    path = save(keras.Model([zeta, alpha], outputs), tmp_path / f"m{suffix}", trained=True)
    assert convert(path, tmp_path) == (["zeta", "alpha"], ["second", "first"])


def test_captured_statistics_are_no_inputs(keras: Any, suffix: str, tmp_path: Path) -> None:
    layers = keras.layers
    picture = layers.Input((None, None, 3), name="picture")
    normal = layers.Normalization(mean=[0.1, 0.2, 0.3], variance=[1.0, 2.0, 3.0])
    x = layers.Conv2D(4, 3, strides=2, padding="same")(layers.Rescaling(0.5)(normal(picture)))
    path = save(keras.Model(picture, layers.BatchNormalization(name="out")(x)), tmp_path / f"m{suffix}")
    assert convert(path, tmp_path) == (["picture"], ["out"])


def test_layers_over_time(keras: Any, tmp_path: Path) -> None:
    layers = keras.layers
    film = layers.Input((5, 9, 8, 2), name="film")
    x = layers.TimeDistributed(layers.Conv2D(3, 3, strides=2, padding="same"))(film)
    x = layers.TimeDistributed(layers.GlobalAveragePooling2D())(x)
    x = layers.Conv1D(3, 3, padding="causal", dilation_rate=2)(layers.LSTM(4, return_sequences=True)(x))
    path = save(keras.Model(film, layers.Dense(2, name="out")(x)), tmp_path / "m.keras")
    assert convert(path, tmp_path) == (["film"], ["out"])


def test_resizing_and_cropping_layers(keras: Any, tmp_path: Path) -> None:
    layers = keras.layers
    picture = layers.Input((20, 22, 3), name="picture")
    x = layers.CenterCrop(8, 8)(layers.Resizing(13, 9)(picture))
    x = layers.Cropping2D(1)(layers.ZeroPadding2D(2)(x))
    x = layers.UpSampling2D(2, interpolation="bilinear")(layers.AveragePooling2D(3, 2, padding="same")(x))
    path = save(keras.Model(picture, layers.Conv2D(2, 1, name="out")(x)), tmp_path / "m.keras")
    assert convert(path, tmp_path) == (["picture"], ["out"])


def test_slashes_in_the_names_of_keras_2(tmp_path: Path, suffix: str) -> None:
    keras = importlib.import_module("tf_keras")
    picture = keras.layers.Input((9, 8, 3), name="in/put")
    x = keras.layers.Conv2D(3, 3, strides=2, padding="same", name="block/conv/1")(picture)
    model = keras.Model(picture, keras.layers.Conv2DTranspose(2, 3, strides=2, padding="same", name="up/last")(x))
    assert convert(save(model, tmp_path / f"m{suffix}", trained=True), tmp_path) == (["in/put"], ["up/last"])


def upsampled(keras: Any) -> Any:
    layers = keras.layers
    picture = layers.Input((None, None, 3), name="picture")
    x = layers.Conv2DTranspose(4, 3, strides=2, padding="same")(picture)
    return keras.Model(picture, layers.UpSampling2D(2, interpolation="bilinear", name="out")(x))


def test_layers_that_need_known_sizes(tmp_path: Path) -> None:
    keras = importlib.import_module("keras")
    path = save(upsampled(keras), tmp_path / "m.keras")
    try:
        convert(path, tmp_path)
    except UnsupportedError as error:
        assert "--shape" in error.hint
        assert "in user code" not in error.message
    assert convert(path, tmp_path, shapes={"picture": (1, 6, 7, 3)}) == (["picture"], ["out"])


FACTORIES: dict[str, Callable[[Any], Any]] = {
    "MobileNet": lambda keras: keras.applications.MobileNet((32, 32, 3), alpha=0.25, weights=None, classes=4),
    "MobileNetV3Small": lambda keras: keras.applications.MobileNetV3Small(
        (32, 32, 3), alpha=0.25, minimalistic=True, weights=None, include_top=False
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FACTORIES)
def test_architectures(keras: Any, name: str, tmp_path: Path) -> None:
    convert(save(FACTORIES[name](keras), tmp_path / "m.h5"), tmp_path)
