"""Fourier transforms and complex numbers give TensorFlow's numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import padfix
from padfix.errors import UnsupportedError
from tests.support.lite_files import lite, prove
from tests.support.tf_conversion import assert_same_numbers, noise

pytestmark = [pytest.mark.tensorflow, pytest.mark.sweep(2)]


def both(tf: Any, numbers: Any) -> dict[str, Any]:
    return {"real": tf.math.real(numbers), "imaginary": tf.math.imag(numbers)}


def paired(tf: Any, x: Any) -> Any:
    return tf.complex(x, tf.reverse(x, [-1]) * 0.5)


FORWARD: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "rfft": (lambda tf, x: tf.signal.rfft(x), (3, 2, 16)),
    "rfft of a part": (lambda tf, x: tf.signal.rfft(x, [12]), (3, 16)),
    "rfft with zeros": (lambda tf, x: tf.signal.rfft(x, [20]), (3, 16)),
    "rfft2d": (lambda tf, x: tf.signal.rfft2d(x), (2, 6, 16)),
    "rfft3d": (lambda tf, x: tf.signal.rfft3d(x), (2, 4, 6, 7)),
    "fft": (lambda tf, x: tf.signal.fft(paired(tf, x)), (2, 16)),
    "fft of a prime length": (lambda tf, x: tf.signal.fft(paired(tf, x)), (2, 7)),
    "fft2d": (lambda tf, x: tf.signal.fft2d(paired(tf, x)), (2, 16, 5)),
    "fft3d": (lambda tf, x: tf.signal.fft3d(paired(tf, x)), (4, 16, 5)),
    "ifft": (lambda tf, x: tf.signal.ifft(paired(tf, x)), (2, 16)),
    "ifft2d": (lambda tf, x: tf.signal.ifft2d(paired(tf, x)), (2, 16, 5)),
    "double": (lambda tf, x: tf.signal.fft(tf.cast(x, tf.complex128)), (2, 12)),
}
BACK: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "irfft": (lambda tf, x: tf.signal.irfft(paired(tf, x)), (2, 9)),
    "irfft of an odd length": (lambda tf, x: tf.signal.irfft(paired(tf, x), [9]), (2, 16)),
    "irfft2d": (lambda tf, x: tf.signal.irfft2d(paired(tf, x)), (2, 8, 9)),
    "irfft3d": (lambda tf, x: tf.signal.irfft3d(paired(tf, x)), (2, 4, 8, 5)),
    "inverse stft": (lambda tf, x: tf.signal.inverse_stft(tf.signal.stft(x, 64, 32), 64, 32), (2, 256)),
    "length": (lambda tf, x: tf.abs(paired(tf, x * 1e-30)), (2, 9)),
    "angle": (lambda tf, x: tf.math.angle(tf.signal.stft(x, 30, 15, pad_end=True)), (1, 100)),
    "sums": (lambda tf, x: tf.abs(tf.reduce_sum(paired(tf, x), -1) - tf.reduce_mean(paired(tf, x), -1)), (2, 16)),
    "convolution": (
        lambda tf, x: tf.signal.irfft(tf.signal.rfft(x, [32]) * tf.signal.rfft(tf.range(16.0), [32]), [32]),
        (2, 16),
    ),
}
ARITHMETIC: dict[str, Callable[[Any, Any, Any], Any]] = {
    "quotient": lambda tf, x, y: x / (y + tf.complex(4.0, 2.0)),
    "exponential and conjugate": lambda tf, x, y: tf.math.conj(tf.exp(x) * tf.complex(0.0, 0.1)),
    "square": lambda tf, x, y: tf.square(x) - y,
    "adjoint product": lambda tf, x, y: tf.matmul(x, y, adjoint_b=True) + tf.matmul(x, y, adjoint_a=True),
    "shapes": lambda tf, x, y: tf.transpose(tf.reshape(tf.pad(x, [[0, 0], [1, 1]]), [3, 5])[1:], [1, 0])[..., None],
    "pieces": lambda tf, x, y: tf.concat([*tf.split(x, 3, 1), tf.stack([y, -x])[1]], 1),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("free", [False, True], ids=["fixed", "free"])
@pytest.mark.parametrize("case", FORWARD)
def test_transforms(tf: Any, case: str, free: bool) -> None:
    function, shape = FORWARD[case]
    feeds = [{"x": noise(shape, "float32", seed)} for seed in (0, 1)]
    assert_same_numbers(tf, lambda x: both(tf, function(tf, x)), feeds, free)


@pytest.mark.parametrize("case", BACK)
def test_results_that_are_real(tf: Any, case: str) -> None:
    function, shape = BACK[case]
    feeds = [{"x": noise(shape, "float32", seed)} for seed in (0, 1)]
    assert_same_numbers(tf, lambda x: {"y": function(tf, x)}, feeds, False)


@pytest.mark.parametrize("case", ARITHMETIC)
def test_arithmetic(tf: Any, case: str) -> None:
    def function(x: Any) -> Any:
        return both(tf, ARITHMETIC[case](tf, paired(tf, x), paired(tf, x[::-1])))

    side = 4 if "adjoint" in case else 3
    shape = (side, side) if case != "shapes" else (3, 3)
    assert_same_numbers(tf, function, [{"x": noise(shape, "float32")}], False)


def test_open_lengths_before_there_was_an_operator(tf: Any, tmp_path: Path) -> None:
    module = tf.Module()
    module.call = tf.function(
        lambda x: tf.abs(tf.signal.rfft(x)), input_signature=[tf.TensorSpec([2, None], tf.float32, "x")]
    )
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.call)
    report = padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    with pytest.raises(UnsupportedError, match="RFFT"):
        padfix.convert(tmp_path / "m", tmp_path / "old.onnx", opset=13)


@pytest.mark.parametrize("shape", [[2, 16], [2, 12]])
def test_known_lengths_before_there_was_an_operator(tf: Any, shape: list[int], tmp_path: Path) -> None:
    module = tf.Module()
    module.call = tf.function(
        lambda x: tf.signal.irfft(tf.signal.rfft(x) * tf.complex(0.0, 1.0)),
        input_signature=[tf.TensorSpec(shape, tf.float32, "x")],
    )
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.call)
    report = padfix.convert(tmp_path / "m", tmp_path / "m.onnx", opset=13)
    assert report.verdict is not None and report.verdict.equivalent


@pytest.mark.parametrize("length", [None, 500], ids=["free", "fixed"])
def test_the_front_end_of_an_audio_model(tf: Any, length: int | None, tmp_path: Path) -> None:
    mel = tf.signal.linear_to_mel_weight_matrix(20, 65, 8000, 50.0, 3800.0)

    def function(x: Any) -> Any:
        spectrum = tf.signal.stft(x, 128, 64)
        return {"mel": tf.math.log(tf.matmul(tf.abs(spectrum), mel) + 1e-3), "real": tf.cast(spectrum, tf.float32)}

    path = lite(tf, tmp_path / "m.tflite", function, tf.TensorSpec([length], tf.float32, "x"))
    prove(path, tmp_path)


def test_one_transform_is_an_output(tf: Any, tmp_path: Path) -> None:
    path = lite(
        tf, tmp_path / "m.tflite", lambda x: tf.abs(tf.signal.rfft(x)), tf.TensorSpec([None, 16], tf.float32, "x")
    )
    prove(path, tmp_path)


def test_one_number_for_all_of_the_other_part(tf: Any) -> None:
    def function(x: Any) -> Any:
        turned = tf.signal.fft(tf.complex(0.0, x)) + tf.signal.fft(tf.complex(x, x[:1]))
        return both(tf, turned * tf.exp(tf.complex(0.0, x)))

    assert_same_numbers(tf, function, [{"x": noise((3, 16), "float32")}], False)


def test_parts_of_which_one_has_no_rows(tf: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        return {"z": tf.signal.irfft(tf.complex(x, y))}

    feeds = [{"x": noise((rows, 3, 9), "float32"), "y": noise((1, 3, 9), "float32")} for rows in (1, 2, 0)]
    assert_same_numbers(tf, function, feeds, True)


def test_a_cosine_transform_of_an_open_length(tf: Any) -> None:
    feeds = [{"x": noise((2, length, 16), "float32")} for length in (5, 8)]
    assert_same_numbers(tf, lambda x: {"y": tf.signal.dct(tf.transpose(x, [0, 2, 1]))}, feeds, True)


def test_what_the_original_computes_three_times_and_the_result_once_is_fed_once(tf: Any, tmp_path: Path) -> None:
    """Data of its own for one copy only would let the original contradict itself."""

    mel = tf.signal.linear_to_mel_weight_matrix(20, 65, 8000, 80.0, 3800.0)

    def spectrum(x: Any) -> Any:
        return tf.math.log(tf.tensordot(tf.abs(tf.signal.stft(x, 128, 64)), mel, 1) + 1e-3)

    def function(x: Any) -> Any:
        centred = spectrum(x) - tf.reduce_mean(spectrum(x), 1, keepdims=True)
        return {"y": centred / (tf.math.reduce_std(spectrum(x), 1, keepdims=True) + 1e-3)}

    module = tf.Module()
    module.call = tf.function(function, input_signature=[tf.TensorSpec([None, None], tf.float32, "x")])
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.call)
    report = padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
    assert not [note for note in report.notes if "left out" in note]
