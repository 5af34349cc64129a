"""What the command line says of TensorFlow sources that can't be converted: true, and with a way out."""

from __future__ import annotations

import logging
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from padfix.cli.exits import run
from padfix.cli.group import cli
from padfix.sources.tensorflow_runtime import quiet

pytestmark = pytest.mark.tensorflow

VALUES = np.random.default_rng(0).standard_normal([3, 4]).astype(np.float32)


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str, str]:
    """Return the exit code of a conversion, and what it prints: the error, the hint, and all else."""
    code = run(cli, ["convert", *map(str, arguments), "-o", "out.onnx"])
    printed = capsys.readouterr()
    lines = (printed.out + printed.err).splitlines()
    errors = [line for line in lines if line.startswith("padfix: error: ")]
    hints = [line for line in lines if line.startswith("hint: ")]
    return code, "\n".join(errors), "\n".join(hints), "\n".join(line for line in lines if line not in errors + hints)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_graph(tf: Any, build: Callable[[], Any], name: str = "graph.pb") -> str:
    graph = tf.Graph()
    with graph.as_default():
        build()
    Path(name).write_bytes(graph.as_graph_def().SerializeToString())
    return name


def save_function(tf: Any, function: Any, *specs: Any, module: Any = None, name: str = "saved") -> str:
    concrete = tf.function(function).get_concrete_function(*specs)
    tf.saved_model.save(module or tf.Module(), name, signatures=concrete)
    return name


def placeholder(tf: Any, shape: Any, name: str = "x", dtype: Any = None) -> Any:
    return tf.compat.v1.placeholder(dtype or tf.float32, shape, name=name)


def test_a_graph_without_inputs_is_a_constant_that_is_proven_once(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    frozen = write_graph(tf, lambda: tf.identity(tf.nn.relu(tf.constant(VALUES)), name="y"))
    saved = save_function(tf, lambda: {"y": tf.nn.relu(tf.constant(VALUES))})
    module = tf.Module()
    module.v = tf.Variable(VALUES)
    module.f = tf.function(lambda: {"y": tf.nn.relu(module.v * 1.0)}).get_concrete_function()
    lite = tf.lite.TFLiteConverter.from_concrete_functions([module.f], module).convert()
    Path("lite.tflite").write_bytes(lite)
    for source in (frozen, saved, "lite.tflite"):
        code, error, _, words = said(capsys, source)
        assert (code, error) == (0, ""), source
        assert re.search(r": 1 probe[;\n]", words), source
        assert "--probe" not in words, source
        graph = onnx.load("out.onnx").graph
        assert not graph.input, source
        (result,) = ReferenceEvaluator("out.onnx").run(None, {})
        np.testing.assert_array_equal(result, np.maximum(VALUES, 0))


def test_every_input_may_be_fixed(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_graph(tf, lambda: tf.nn.relu(placeholder(tf, [3]), name="y"))
    code, error, _, words = said(capsys, source, "--constant", "x=1,2,-3")
    assert (code, error) == (0, "")
    assert "x is fixed to [1.0, 2.0, -3.0]" in words
    assert not onnx.load("out.onnx").graph.input


@pytest.mark.parametrize("rank", [None, 0])
def test_a_switch_is_named_with_the_option_that_fixes_it(
    tf: Any, capsys: pytest.CaptureFixture[str], rank: int | None
) -> None:
    def build() -> None:
        x = placeholder(tf, [2, 3])
        switch = placeholder(tf, None if rank is None else [], "training", tf.bool)
        no, yes = tf.raw_ops.Switch(data=x, pred=switch)
        result, taken = tf.raw_ops.Merge(inputs=[tf.sin(no), yes * 2])
        tf.identity(result + tf.cast(taken, tf.float32), name="y")

    source = write_graph(tf, build)
    code, error, hint, _ = said(capsys, source)
    assert code == 2
    assert "Merge" in error
    assert "--constant training=False (or True)" in hint
    assert said(capsys, source, "--constant", "training=False")[0] == 0


def test_dropout_in_training_names_its_switch(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def build() -> None:
        x, training = placeholder(tf, [20, 30]), placeholder(tf, [], "training", tf.bool)
        keep = tf.cast(training, tf.float32)
        tf.identity(x * (1 - keep * tf.round(tf.random.uniform([20, 30]))), name="y")

    code, error, hint, _ = said(capsys, write_graph(tf, build))
    assert code == 2
    assert "TensorFlow gives other numbers each time" in error
    assert "--constant training=False" in hint


def test_numbers_drawn_between_inputs_are_random(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Between 0 and 1 there is but one whole number to draw, and it would be the same each time."""

    def build() -> None:
        low, high = placeholder(tf, [], "low", tf.int32), placeholder(tf, [], "high", tf.int32)
        shape = placeholder(tf, [2], "shape", tf.int64)
        tf.identity(tf.raw_ops.RandomUniformInt(shape=shape, minval=low, maxval=high), name="y")

    source = write_graph(tf, build)
    code, error, _, _ = said(capsys, source)
    assert code == 2
    assert "the model draws random numbers (RandomUniformInt)" in error


def test_an_input_of_unknown_rank_is_named_with_the_option_that_fixes_it(
    tf: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_graph(tf, lambda: tf.raw_ops.Betainc(a=placeholder(tf, None), b=1.0, x=0.5, name="y"))
    code, _, hint, _ = said(capsys, source)
    assert code == 2
    assert "axes of the input x" in hint
    assert "--shape x=" in hint


def test_a_table_that_is_not_in_the_graph(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def build() -> None:
        table = tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="words", name="table")
        keys = placeholder(tf, [None], dtype=tf.string)
        missing = tf.constant(-1, tf.int64)
        tf.raw_ops.LookupTableFindV2(table_handle=table, keys=keys, default_value=missing, name="y")

    code, error, hint, _ = said(capsys, write_graph(tf, build))
    assert code == 2
    assert "does not hold the contents of the table table" in error
    assert "Convert the SavedModel" in hint


def test_operators_without_a_form_are_left_out_in_the_way_of_their_source(
    tf: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    frozen = write_graph(tf, lambda: tf.linalg.svd(placeholder(tf, [3, 3]), compute_uv=False))
    saved = save_function(tf, lambda x: {"y": tf.linalg.svd(x, compute_uv=False)}, tf.TensorSpec([3, 3], name="x"))
    code, error, hint, _ = said(capsys, frozen)
    assert code == 2
    assert "Svd" in error
    assert "--input and --output" in hint
    code, error, hint, _ = said(capsys, saved)
    assert code == 2
    assert "Svd" in error
    assert "--input" not in hint
    assert "export a signature" in hint


def test_inputs_that_are_no_numbers(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def resource() -> None:
        tf.raw_ops.ReadVariableOp(resource=placeholder(tf, [], "handle", tf.resource), dtype=tf.float32, name="y")

    for build, word in (
        (resource, "resource"),
        (lambda: tf.abs(placeholder(tf, [2], dtype=tf.complex64), name="y"), "complex64"),
    ):
        code, error, hint, _ = said(capsys, write_graph(tf, build))
        assert code == 2
        assert f"of TensorFlow's type {word}" in error
        assert hint


def test_an_output_of_complex_numbers(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def build() -> None:
        tf.cos(tf.signal.rfft(placeholder(tf, [2, 8])), name="y")

    code, error, hint, _ = said(capsys, write_graph(tf, build))
    assert code == 2
    assert "The output y is of TensorFlow's type complex64" in error
    assert "the real and the imaginary parts" in hint


def test_random_numbers_that_the_importer_fails_on(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """tf2onnx's own words are about its variables: 'str' object has no attribute 'name'."""

    def build() -> None:
        tf.identity(tf.raw_ops.RandomStandardNormal(shape=[2, 3], dtype=tf.float32), name="y")

    code, error, hint, _ = said(capsys, write_graph(tf, build))
    assert code == 2
    assert "random numbers (RandomStandardNormal)" in error
    assert "random numbers as an input" in hint


def test_random_numbers_by_a_seed_that_is_given(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def build() -> None:
        seed = placeholder(tf, [2], "seed", tf.int32)
        tf.identity(tf.random.stateless_uniform([3], seed), name="y")

    code, error, hint, _ = said(capsys, write_graph(tf, build))
    assert (code, "draws random numbers (StatelessRandom" in error) == (2, True)
    assert "Export it for inference" in hint


def test_numbers_drawn_that_are_seldom_others_are_random(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs mostly agree, and so may the result: what decides are the operators that draw."""

    def build() -> None:
        drawn = tf.random.uniform([]) + tf.random.normal([]) * 0.01
        tf.identity(placeholder(tf, [4]) * tf.cast(drawn < 0.3, tf.float32), name="y")

    source = write_graph(tf, build)
    for _ in range(3):
        code, error, _, _ = said(capsys, source)
        assert code == 2
        assert "draws random numbers (RandomStandardNormal, RandomUniform)" in error


def test_what_draws_is_known_from_tensorflows_registry(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """tf2onnx begins to convert the one, fails, and has no form of the other."""

    def box() -> None:
        size = placeholder(tf, [3], "size", tf.int32)
        boxes = tf.image.sample_distorted_bounding_box(
            size, tf.zeros([1, 0, 4]), min_object_covered=0.1, use_image_if_no_bounding_boxes=True
        )
        tf.identity(boxes[0], name="y")

    def candidates() -> None:
        found = tf.random.uniform_candidate_sampler(
            placeholder(tf, [4, 1], "x", tf.int64), 1, 2, unique=True, range_max=9
        )
        tf.identity(found[0], name="y")

    for build, operator in ((box, "SampleDistortedBoundingBoxV2"), (candidates, "UniformCandidateSampler")):
        code, error, hint, _ = said(capsys, write_graph(tf, build))
        assert code == 2
        assert f"random numbers ({operator})" in error
        assert "random numbers as an input" in hint


def test_a_generator_of_random_numbers_keeps_state(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    module = tf.Module()
    module.generator = tf.random.Generator.from_seed(1)

    def drawn(x: Any) -> dict[str, Any]:
        return {"y": x + module.generator.uniform([2])}

    signature = tf.function(drawn, input_signature=[tf.TensorSpec([2], name="x")])
    tf.saved_model.save(module, "saved", signatures=signature)
    code, error, _, _ = said(capsys, "saved")
    assert code == 2
    assert "keeps state from one run to the next (RngReadAndSkip)" in error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyError("axis"), "KeyError: 'axis'"),
        (ValueError("it has (two) lengths"), "it has (two) lengths"),
        (AssertionError(), "AssertionError at raise error"),
    ],
)
def test_the_reason_of_what_goes_wrong_inside_the_importer(error: Exception, reason: str) -> None:
    with quiet() as complaints:
        try:
            raise error
        except Exception:
            logging.getLogger("tf2onnx.tfonnx").error(
                "Failed to convert node %r (fct=%r)\n%r", "n", print, "OP=X", exc_info=1
            )
    assert complaints == [f"Failed to convert node 'n': {reason}"]


def test_names_that_are_not_in_a_graph(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_graph(tf, lambda: tf.nn.relu(placeholder(tf, [2, 3]), name="scores"))
    for option in ("--input", "--output", "--constant"):
        value = "imaginary=1" if option == "--constant" else "imaginary"
        code, error, hint, _ = said(capsys, source, option, value)
        assert (code, "no tensor imaginary" in error) == (2, True)
        assert "placeholders are: x; its last nodes: scores" in hint
    assert "Close: scores." in said(capsys, source, "--output", "scroes")[2]
    assert "The inputs are: x." in said(capsys, source, "--shape", "y=2,3")[2]


def test_a_signature_without_outputs(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    module = tf.Module()
    module.v = tf.Variable(1.0)

    @tf.function(input_signature=[tf.TensorSpec([2], name="x")])
    def nothing(x: Any) -> dict[str, Any]:
        module.v.assign_add(tf.reduce_sum(x))
        return {}

    tf.saved_model.save(module, "saved", signatures={"serving_default": nothing})
    code, error, hint, _ = said(capsys, "saved")
    assert code == 2
    assert "The signature serving_default has no outputs" in error
    assert "returns what it computes" in hint


def test_a_model_that_keeps_state(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    module = tf.Module()
    module.v = tf.Variable(1.0)

    def counting(x: Any) -> dict[str, Any]:
        module.v.assign_add(tf.reduce_sum(x))
        return {"y": x + module.v}

    code, error, hint, _ = said(capsys, save_function(tf, counting, tf.TensorSpec([2], name="x"), module=module))
    assert code == 2
    assert "keeps state from one run to the next (AssignAddVariableOp)" in error
    assert "inputs and outputs" in hint


def test_the_reason_is_tensorflows_own(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def checked(x: Any) -> dict[str, Any]:
        tf.debugging.assert_greater(x, 100.0, message="too small")
        return {"output": x * 2}

    code, error, hint, words = said(capsys, save_function(tf, checked, tf.TensorSpec([None, 4], name="x")))
    assert code == 2
    assert "TensorFlow can't run the original: assertion failed: [too small]" in error
    assert "--range" in hint
    assert "Node:" not in error + words


def test_an_operator_that_tensorflow_does_not_know(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_graph(tf, lambda: tf.nn.relu(placeholder(tf, [2, 3]), name="y"))
    graph = tf.compat.v1.GraphDef.FromString(Path(source).read_bytes())
    graph.node[1].op = "Invented"
    Path(source).write_bytes(graph.SerializeToString())
    code, error, hint, _ = said(capsys, source)
    assert code == 2
    assert error == f"padfix: error: TensorFlow does not know the operator Invented of {source}."
    assert "another library's" in hint


def test_keras_says_which_class_it_does_not_know(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    import keras

    @keras.saving.register_keras_serializable("mine")
    class Doubled(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * 2

    keras.Sequential([keras.layers.Input((4,)), Doubled()]).save("custom.keras")
    keras.saving.get_custom_objects().clear()
    code, error, hint, _ = said(capsys, "custom.keras")
    assert code == 2
    assert "Doubled" in error
    assert "object config" not in error
    assert "--custom" in hint
    assert "model.export" in hint


def test_a_function_that_keras_can_not_read_again(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    import keras

    layers = [keras.layers.Input((4,)), keras.layers.Dense(3, activation=lambda x: x * 2)]
    keras.Sequential(layers).save("function.keras")
    code, error, hint, _ = said(capsys, "function.keras")
    assert code == 2
    assert "stored Python code" in error
    assert "4wEA" not in error
    assert "model.export" in hint


def zipped_anew(source: str, result: str, change: Callable[[str, bytes], bytes]) -> None:
    """Write an archive whose members are those of another, each changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(result, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))


def test_a_newer_keras_is_named(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    import keras

    keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3)]).save("here.keras")

    def renewed(name: str, content: bytes) -> bytes:
        if name == "config.json":
            content = content.replace(b'"units": 3', b'"units": 3, "sprockets": true')
        return content.replace(keras.__version__.encode(), b"97.1.0")

    zipped_anew("here.keras", "newer.keras", renewed)
    code, error, hint, _ = said(capsys, "newer.keras")
    assert code == 2
    assert "sprockets" in error
    assert "written by Keras 97.1.0" in hint


def test_no_message_names_a_temporary_folder(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    import keras

    keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3)]).save("model.keras")

    def cut(name: str, content: bytes) -> bytes:
        return content[: len(content) // 2] if name.endswith(".h5") else content

    zipped_anew("model.keras", "weightless.bin", cut)
    saved = save_function(tf, lambda x: {"y": x + 1}, tf.TensorSpec([2], name="x"))
    (Path(saved) / "saved_model.pb").write_bytes((Path(saved) / "saved_model.pb").read_bytes()[:-40])
    for source in ("weightless.bin", saved):
        code, error, hint, words = said(capsys, source)
        assert code == 2
        assert source in error
        assert f"padfix-{os.getpid()}" not in error + hint + words
        assert "/tmp" not in (error + hint + words).replace(os.getcwd(), "")


def test_a_binary_file_that_is_cut_is_not_called_bad_text(tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    saved = save_function(tf, lambda x: {"y": x + tf.constant(VALUES)}, tf.TensorSpec([3, 4], name="x"))
    file = Path(saved) / "saved_model.pb"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    code, error, hint, _ = said(capsys, saved)
    assert code == 2
    assert error == f"padfix: error: {file} is truncated or damaged."
    assert "again" in hint
    shutil.rmtree(saved)
