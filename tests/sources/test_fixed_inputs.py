"""Inputs that become constants, placeholders that keep their default, and the branches that these choose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import padfix
from padfix.errors import ProofUnavailableError, UnsupportedError, UsageError

pytestmark = pytest.mark.tensorflow


def weights(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def frozen(tf: Any, path: Path, build: Callable[[Any], None]) -> Path:
    """Write a graph of TensorFlow 1, with Switch and Merge for conditions."""
    v1 = tf.compat.v1
    was_on = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            build(v1)
    finally:
        if was_on:
            v1.enable_control_flow_v2()
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return path


def switched(tf: Any, make_switch: Callable[[Any], Any]) -> Callable[[Any], None]:
    def build(v1: Any) -> None:
        x = v1.placeholder(tf.float32, [None, 9, 10, 3], name="x")
        switch = make_switch(v1)
        y = tf.nn.conv2d(x, weights(3, 3, 3, 4), 2, "SAME", name="c")
        both = v1.cond(switch, lambda: y * 2.0, lambda: tf.nn.relu(y))
        tf.identity(both, name="out")

    return build


def convert(path: Path, tmp_path: Path, **options: Any) -> tuple[padfix.ConvertReport, list[str]]:
    report = padfix.convert(path, tmp_path / "out.onnx", **options)
    assert report.verdict is not None
    assert report.verdict.equivalent
    return report, [value.name for value in onnx.load(tmp_path / "out.onnx").graph.input]


def run(tmp_path: Path, **feeds: Any) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(tmp_path / "out.onnx").run(None, feeds)[0]


@pytest.mark.parametrize("default", [True, False])
def test_a_default_is_kept_and_said(tf: Any, default: bool, tmp_path: Path) -> None:
    make = switched(tf, lambda v1: v1.placeholder_with_default(default, [], name="is_training"))
    report, inputs = convert(frozen(tf, tmp_path / "m.pb", make), tmp_path)
    assert inputs == ["x"]
    assert f"is_training keeps its default, {default}; --constant is_training=VALUE" in " ".join(report.notes)
    assert (run(tmp_path, x=weights(1, 9, 10, 3)).min() < 0) == default


@pytest.mark.parametrize("spelling", ["is_training", "is_training:0", "^is_training"])
def test_a_default_is_fixed_to_another_value(tf: Any, spelling: str, tmp_path: Path) -> None:
    make = switched(tf, lambda v1: v1.placeholder_with_default(True, [], name="is_training"))
    report, inputs = convert(frozen(tf, tmp_path / "m.pb", make), tmp_path, constants={spelling: "False"})
    assert inputs == ["x"]
    assert report.notes == ["is_training is fixed to False."]
    assert run(tmp_path, x=weights(1, 9, 10, 3)).min() == 0
    assert not [node for node in onnx.load(tmp_path / "out.onnx").graph.node if node.op_type in ("If", "Merge")]


def test_an_input_decides_between_branches_of_one_convolution(tf: Any, tmp_path: Path) -> None:
    path = frozen(tf, tmp_path / "m.pb", switched(tf, lambda v1: v1.placeholder(tf.bool, [], name="flip")))
    _, inputs = convert(path, tmp_path)
    assert sorted(inputs) == ["flip", "x"]
    x = weights(1, 9, 10, 3)
    doubled, rectified = (run(tmp_path, x=x, flip=np.array(flip)) for flip in (True, False))
    np.testing.assert_allclose(np.maximum(doubled, 0), rectified * 2, rtol=1e-4, atol=1e-4)


def test_a_switch_made_of_others(tf: Any, tmp_path: Path) -> None:
    def make_switch(v1: Any) -> Any:
        first = v1.placeholder(tf.bool, [], name="first")
        second = v1.placeholder(tf.bool, [], name="second")
        return tf.logical_and(tf.logical_not(first), second)

    path = frozen(tf, tmp_path / "m.pb", switched(tf, make_switch))
    _, inputs = convert(path, tmp_path, constants={"first": True})
    assert sorted(inputs) == ["second", "x"]
    assert run(tmp_path, x=weights(1, 9, 10, 3), second=np.array(True)).min() == 0
    _, inputs = convert(path, tmp_path, constants={"first": False, "second": "1"})
    assert inputs == ["x"]
    assert run(tmp_path, x=weights(1, 9, 10, 3)).min() < 0


def test_a_transposed_convolution_behind_a_merge(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder(tf.float32, [1, None, None, 3], name="x")
        flip = v1.placeholder_with_default(False, [], name="flip")
        y = v1.cond(flip, lambda: x * 2.0, lambda: tf.identity(x))
        y.set_shape([1, None, None, 3])
        z = tf.nn.conv2d_transpose(y, weights(3, 3, 2, 3), [1, 15, 17, 2], 2, "SAME")
        tf.identity(z, name="out")

    path = frozen(tf, tmp_path / "m.pb", build)
    for constants in ({}, {"flip": True}):
        report, _ = convert(path, tmp_path, constants=constants, shapes={"x": (1, 8, 9, 3)})
        assert not report.refusals
        assert not padfix.check(tmp_path / "out.onnx").findings


def test_two_convolutions_of_one_kernel_keep_their_factors(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder(tf.float32, [1, 9, 10, 3], name="x")
        kernel = tf.constant(weights(3, 3, 3, 4))
        first = tf.nn.conv2d(x, kernel, 2, "SAME") * weights(4)
        second = tf.nn.conv2d(x * 3.0 + 1.0, kernel, 2, "SAME") * (weights(4) + 2)
        tf.identity(tf.nn.relu(first) - second, name="out")

    convert(frozen(tf, tmp_path / "m.pb", build), tmp_path)


def test_what_is_random_on_some_inputs_only(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder(tf.float32, [None, 9, 10, 3], name="x")
        keep = v1.placeholder(tf.float32, [], name="keep_prob")
        y = tf.nn.conv2d(x, weights(3, 3, 3, 4), 2, "SAME")
        tf.identity(v1.nn.dropout(y, keep_prob=keep), name="out")

    path = frozen(tf, tmp_path / "m.pb", build)
    with pytest.raises(ProofUnavailableError, match="--constant"):
        padfix.convert(path, tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()
    _, inputs = convert(path, tmp_path, constants={"keep_prob": 1})
    assert inputs == ["x"]


@pytest.mark.parametrize("in_signature", [True, False])
def test_saved_models_of_tensorflow_1(tf: Any, in_signature: bool, tmp_path: Path) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        v1.disable_resource_variables()
        x = v1.placeholder(tf.float32, [None, 9, 10, 3], name="x")
        switch = v1.placeholder_with_default(True, [], name="is_training")
        kernel = v1.get_variable("kernel", initializer=weights(3, 3, 3, 4))
        y = tf.nn.conv2d(x, kernel, 2, "SAME")
        out = tf.where(switch, y, tf.nn.relu(y))
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(tmp_path / "m"))
        inputs = {"x": x, "training": switch} if in_signature else {"x": x}
        signature = v1.saved_model.predict_signature_def(inputs, {"out": out})
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()
    report, names = convert(tmp_path / "m", tmp_path)
    assert sorted(names) == (["training", "x"] if in_signature else ["x"])
    assert ("is_training keeps its default, True" in " ".join(report.notes)) != in_signature
    _, names = convert(tmp_path / "m", tmp_path, constants={"training" if in_signature else "is_training": False})
    assert names == ["x"]
    assert run(tmp_path, x=weights(1, 9, 10, 3)).min() == 0


@pytest.mark.parametrize(
    ("constants", "words"),
    [
        ({"is_training": "perhaps"}, "not True or False"),
        ({"is_training": 2}, "not True or False"),
        ({"is_training": [True, False]}, "the value's is"),
        ({"learning": True}, "no tensor learning"),
    ],
)
def test_constants_that_do_not_fit(tf: Any, constants: dict[str, object], words: str, tmp_path: Path) -> None:
    make = switched(tf, lambda v1: v1.placeholder(tf.bool, [], name="is_training"))
    path = frozen(tf, tmp_path / "m.pb", make)
    with pytest.raises(UsageError) as caught:
        padfix.convert(path, tmp_path / "out.onnx", constants=constants)
    assert words in str(caught.value)


def test_an_output_that_is_not_computed(tf: Any, tmp_path: Path) -> None:
    make = switched(tf, lambda v1: v1.placeholder(tf.bool, [], name="flip"))
    path = frozen(tf, tmp_path / "m.pb", make)
    with pytest.raises(UnsupportedError, match="not computed"):
        padfix.convert(path, tmp_path / "out.onnx", constants={"flip": True}, outputs=["cond/Relu"])


def test_an_onnx_file_has_no_constants(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "fixtures" / "onnx" / "same_cnn.onnx"
    with pytest.raises(UsageError, match="--constant is not for ONNX files"):
        padfix.convert(source, tmp_path / "out.onnx", constants={"X": 1})


def test_a_graph_frozen_in_training_is_taken_for_inference(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder(tf.float32, [None, 9, 10, 3], name="x")
        training = v1.placeholder_with_default(True, [], name="training")
        y = tf.nn.conv2d(x, weights(3, 3, 3, 4), 2, "SAME", name="c")
        tf.identity(
            v1.cond(training, lambda: y * tf.floor(tf.random.uniform(tf.shape(y)) + 0.5), lambda: y), name="out"
        )

    path = frozen(tf, tmp_path / "m.pb", build)
    report, inputs = convert(path, tmp_path)
    assert inputs == ["x"]
    assert "With its default, training lets the graph draw random numbers" in " ".join(report.notes)
    assert "training is fixed to False." in report.notes
    with pytest.raises(ProofUnavailableError, match="other numbers each time"):
        convert(path, tmp_path, constants={"training": True})
