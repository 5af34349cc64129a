"""Two conversions of one TensorFlow file are the same bytes, in one process and in another."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import padfix
from padfix.sources.settled_names import settle

TEXT = """<ir_version: 8, opset_import: ["": 18]>
m (float[unk__77, 2] x) => (float[unk__77, 2] y) <float[2] late__9 = {1, 2}, float[2] early__8 = {3, 4}> {
    dead__5 = Neg (x)
    own__3 = Relu (x)
    right__31 = Add (own__3, late__9)
    left__30 = Add (own__3, early__8)
    y = Mul (left__30, right__31)
}"""
EXPECTED = """<ir_version: 8, opset_import: ["": 18]>
m (float[unk__4, 2] x) => (float[unk__4, 2] y) <float[2] early__5 = {3, 4}, float[2] late__7 = {1, 2}> {
    own__3 = Relu (x)
    left__6 = Add (own__3, early__5)
    right__8 = Add (own__3, late__7)
    y = Mul (left__6, right__8)
    dead__9 = Neg (x)
}"""


def spelled(model: onnx.ModelProto) -> str:
    return onnx.printer.to_text(model).replace('[""] ', "")


def test_nodes_stand_and_names_are_numbered_as_the_outputs_need_them() -> None:
    model = onnx.parser.parse_model(TEXT)
    settle(model, ["own__3"])
    assert spelled(model) == spelled(onnx.parser.parse_model(EXPECTED))


def test_what_was_settled_stays() -> None:
    model = onnx.parser.parse_model(EXPECTED)
    settle(model, ["own__3"])
    assert spelled(model) == spelled(onnx.parser.parse_model(EXPECTED))


CONVERT = """
import sys, pathlib, padfix
for source in sys.argv[2:]:
    padfix.convert(source, pathlib.Path(sys.argv[1]) / f"{pathlib.Path(source).name}.onnx", verify=False)
"""


@pytest.mark.slow
@pytest.mark.tensorflow
def test_two_conversions_are_the_same_bytes(tf: Any, tmp_path: Path) -> None:
    def network(x: Any) -> Any:
        both = tf.concat([tf.nn.conv2d(x, np.ones([3, 3, 3, 2], np.float32), stride, "SAME") for stride in (1, 1)], -1)
        looped = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, tf.nn.max_pool2d(v, 3, 1, "SAME")), [0, both])[
            1
        ]
        return {"y": tf.image.resize(looped, [4, 6], "gaussian", antialias=True), "z": tf.image.resize(x, [7, 5])}

    module = tf.Module()
    module.call = tf.function(network, input_signature=[tf.TensorSpec([None, None, None, 3], name="x")])
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=module.call.get_concrete_function())

    def small(x: Any) -> Any:
        return {"y": tf.nn.relu(tf.nn.conv2d(x, np.ones([3, 3, 3, 2], np.float32), 2, "SAME")) + tf.reduce_mean(x)}

    function = tf.function(small, input_signature=[tf.TensorSpec([1, 8, 8, 3], name="x")])
    lite = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    (tmp_path / "lite.tflite").write_bytes(lite.convert())
    sources = [str(tmp_path / "saved"), str(tmp_path / "lite.tflite")]
    digests: dict[str, set[str]] = {name: set() for name in ("saved", "lite.tflite")}
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here, elsewhere):
        folder.mkdir()
    for source in sources:
        padfix.convert(source, here / f"{Path(source).name}.onnx", verify=False)
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    subprocess.run([sys.executable, "-c", CONVERT, str(elsewhere), *sources], check=True, env=environment)
    for file in (*here.iterdir(), *elsewhere.iterdir()):
        digests[file.stem].add(hashlib.sha256(file.read_bytes()).hexdigest())
    assert [len(found) for found in digests.values()] == [1, 1]


@pytest.mark.tensorflow
def test_two_conversions_in_one_process_are_the_same_bytes(tf: Any, tmp_path: Path) -> None:
    """TensorFlow's own counter goes on from one conversion to the next, and names the bodies of loops and branches."""

    def network(x: Any) -> Any:
        for size in (3, 2):
            _, x = tf.while_loop(
                lambda i, _: i < 3, lambda i, v, k=size: (i + 1, tf.nn.max_pool2d(v, k, 1, "SAME")), [0, x]
            )
        return {"y": tf.cond(tf.reduce_sum(x) > 0, lambda: 2 * x, lambda: x)}

    module = tf.Module()
    module.call = tf.function(network, input_signature=[tf.TensorSpec([None, 9, 9, 3], name="x")])
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=module.call.get_concrete_function())
    for name in ("first.onnx", "second.onnx"):
        padfix.convert(tmp_path / "saved", tmp_path / name, verify=False)
    assert (tmp_path / "first.onnx").read_bytes() == (tmp_path / "second.onnx").read_bytes()
