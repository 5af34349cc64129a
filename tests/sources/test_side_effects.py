"""TensorFlow models that do more than compute are refused before TensorFlow loads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import padfix
from padfix.errors import SourceError, UnsupportedError

pytestmark = pytest.mark.tensorflow

SHAPE = (1, 8, 8, 1)


def pooled(tf: Any, x: Any) -> Any:
    return tf.nn.max_pool2d(x, 3, 2, "SAME")


def save(tf: Any, folder: Path, function: Any, **attributes: Any) -> Path:
    module = tf.Module()
    for name, value in attributes.items():
        setattr(module, name, value)
    module.call = tf.function(function, input_signature=[tf.TensorSpec(SHAPE, tf.float32, "x")])
    tf.saved_model.save(module, str(folder), signatures=module.call.get_concrete_function())
    return folder


def refuse(path: Path, says: str, kind: type[Exception] = UnsupportedError) -> None:
    output = path.parent / "out.onnx"
    for call in (padfix.inspect, lambda source: padfix.convert(source, output, verify=False)):
        with pytest.raises(kind, match=says):
            call(path)
    assert not output.exists()


@pytest.mark.parametrize("operator", ["WriteFile", "ReadFile", "EagerPyFunc", "PrintV2", "MatchingFiles"])
def test_a_signature_that_does_more_than_compute(operator: str, tf: Any, tmp_path: Path) -> None:
    canary = tmp_path / "canary"

    def function(x: Any) -> Any:
        if operator == "WriteFile":
            with tf.control_dependencies([tf.io.write_file(str(canary), "x")]):
                return pooled(tf, x)
        if operator == "PrintV2":
            with tf.control_dependencies([tf.print("x", output_stream=f"file://{canary}")]):
                return pooled(tf, x)
        if operator == "ReadFile":
            return pooled(tf, x) + tf.cast(tf.strings.length(tf.io.read_file("/etc/hostname")), tf.float32)
        if operator == "MatchingFiles":
            return pooled(tf, x) + tf.cast(tf.size(tf.io.matching_files("/etc/*")), tf.float32)
        return tf.reshape(tf.py_function(lambda y: y, [pooled(tf, x)], tf.float32), (1, 4, 4, 1))

    refuse(save(tf, tmp_path / "saved", function), operator)
    assert not canary.exists()


def test_an_initialiser_that_does_more_than_compute(tf: Any, tmp_path: Path) -> None:
    from tensorflow.python.trackable.resource import CapturableResource

    canary = tmp_path / "canary"

    class Evil(CapturableResource):
        def _create_resource(self) -> Any:
            return tf.raw_ops.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64)

        def _initialize(self) -> None:
            tf.io.write_file(str(canary), "x")

    evil = Evil()
    _ = evil.resource_handle
    path = save(tf, tmp_path / "saved", lambda x: pooled(tf, x), evil=evil)
    canary.unlink(missing_ok=True)
    refuse(path, "WriteFile")
    assert not canary.exists()


def test_a_signature_that_restores_a_checkpoint(tf: Any, tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return (
            pooled(tf, x)
            + tf.raw_ops.RestoreV2(prefix="/tmp/x", tensor_names=["a"], shape_and_slices=[""], dtypes=[tf.float32])[0]
        )

    refuse(save(tf, tmp_path / "saved", function), "RestoreV2")


def test_what_stands_in_every_saved_model_is_no_trouble(tf: Any, tmp_path: Path) -> None:
    weights = tf.Variable(tf.ones((3, 3, 1, 2)))
    path = save(tf, tmp_path / "saved", lambda x: tf.nn.conv2d(x, weights, 2, "SAME"), weights=weights)
    report = padfix.convert(path, tmp_path / "out.onnx")
    assert report.verdict is not None and report.verdict.equivalent


def vocabulary(tf: Any, tmp_path: Path, file: Path) -> Path:
    file.write_text("a\nb\n")
    index = tf.lookup.TextFileIndex
    initializer = tf.lookup.TextFileInitializer(str(file), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER)
    table = tf.lookup.StaticHashTable(initializer, -1)

    def function(x: Any) -> Any:
        return pooled(tf, x) + tf.cast(table.lookup(tf.constant("b")), tf.float32)

    return save(tf, tmp_path / "saved", function, table=table)


def test_an_asset_is_read_and_one_elsewhere_is_not(tf: Any, tmp_path: Path) -> None:
    path = vocabulary(tf, tmp_path, tmp_path / "words.txt")
    (tmp_path / "words.txt").unlink()
    assert (path / "assets" / "words.txt").is_file()
    assert padfix.inspect(path)

    (tmp_path / "secret.txt").write_text("a\nb\n")
    (path / "assets" / "words.txt").unlink()
    (path / "assets" / "words.txt").symlink_to(tmp_path / "secret.txt")
    refuse(path, "a link out of the model's folder", SourceError)
    (path / "assets" / "words.txt").unlink()
    os.mkfifo(path / "assets" / "words.txt")
    refuse(path, "not a regular file", SourceError)


def test_an_asset_that_climbs_out_is_refused(tf: Any, tmp_path: Path) -> None:
    from tensorflow.core.protobuf import saved_model_pb2

    path = vocabulary(tf, tmp_path, tmp_path / "words.txt")
    saved = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    saved.meta_graphs[0].asset_file_def[0].filename = "../../words.txt"
    (path / "saved_model.pb").write_bytes(saved.SerializeToString())
    refuse(path, "not inside the model's folder", SourceError)


def test_a_frozen_graph_that_reads_a_file(tf: Any, tmp_path: Path) -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, SHAPE, "x")
        size = tf.cast(tf.strings.length(tf.io.read_file("/etc/hostname")), tf.float32)
        tf.add(pooled(tf, x), size, "y")
    path = tmp_path / "m.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    output = tmp_path / "out.onnx"
    with pytest.raises(UnsupportedError, match=r"reads or writes files: .* ReadFile"):
        padfix.convert(path, output, verify=False)
    report = padfix.convert(path, output, verify=False, outputs=["MaxPool2d"])
    assert report.source_kind == "frozen_graph"


def test_a_lite_model_that_borrows_an_operator(tf: Any, tmp_path: Path) -> None:
    function = tf.function(
        lambda x: pooled(tf, x) + tf.cast(tf.strings.length(tf.io.read_file("/etc/hostname")), tf.float32),
        input_signature=[tf.TensorSpec(SHAPE, tf.float32, "x")],
    )
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    path = tmp_path / "m.tflite"
    path.write_bytes(converter.convert())
    output = tmp_path / "out.onnx"
    with pytest.raises(UnsupportedError, match="reads or writes files: it holds a ReadFile"):
        padfix.convert(path, output, verify=False)
    assert not output.exists()
