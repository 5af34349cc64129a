"""A proof takes little more memory than one copy of the weights, and reads them wherever and however they are kept."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import padfix
from padfix.process import deadline
from padfix.process.apart import Apart
from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.sessions import HELD_BYTES, Session

MATRICES, WIDTH = 8, 4096


def sparse_network(folder: Path) -> Path:
    """Write a SAME convolution before large matrices of zeros that take no room on disk, and return the file."""
    data = folder / "large.data"
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], auto_pad="SAME_UPPER", strides=[2, 2], kernel_shape=[3, 3]),
        helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        helper.make_node("Flatten", ["p"], ["m0"]),
    ]
    weights = [numpy_helper.from_array(np.ones((WIDTH, 1, 3, 3), np.float32), "w")]
    size = WIDTH * WIDTH * 4
    for number in range(MATRICES):
        nodes.append(helper.make_node("MatMul", [f"m{number}", f"W{number}"], [f"m{number + 1}"]))
        tensor = TensorProto(name=f"W{number}", dims=[WIDTH, WIDTH], data_type=TensorProto.FLOAT)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", data.name), ("offset", str(number * size)), ("length", str(size))):
            tensor.external_data.add(key=key, value=value)
        weights.append(tensor)
    nodes.append(helper.make_node("Add", [f"m{MATRICES}", "m0"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 9, 9])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, WIDTH])],
        weights,
    )
    with data.open("wb") as file:
        file.truncate(MATRICES * size)
    path = folder / "large.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""Run between the test and the command: Linux counts what a process had when it started another as the other's."""


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="the system does not tell what a process took")
def test_converting_takes_one_copy_of_the_weights(tmp_path: Path) -> None:
    source = sparse_network(tmp_path)
    command = [sys.executable, "-m", "padfix", "convert", str(source), "-o", str(tmp_path / "out.onnx")]
    done = subprocess.run([sys.executable, "-c", MEASURE, *command], capture_output=True, text=True, check=True)
    *told, most = done.stdout.splitlines()
    weights = MATRICES * WIDTH * WIDTH * 4
    assert weights > 2 * HELD_BYTES
    peak = int(most) * (1 if sys.platform == "darwin" else 1024)
    assert peak < 1.6 * weights
    # Of all that reads the weights nothing was rewritten, and that they lie elsewhere now changes nothing.
    assert "1 other judged on the original's own values: equal to the bit" in "\n".join(told)


def constant_node(tensor: TensorProto) -> ModelProto:
    """Return a model that adds a constant of a Constant node and an initializer to its input."""
    initializer = TensorProto.FromString(tensor.SerializeToString())
    initializer.name = "w"
    nodes = [
        helper.make_node("Constant", [], ["c"], value=tensor),
        helper.make_node("Add", ["x", "c"], ["s"]),
        helper.make_node("Add", ["s", "w"], ["y"]),
    ]
    kind, shape = tensor.data_type, list(tensor.dims)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, shape)],
        [initializer],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


TENSORS = {
    "raw": numpy_helper.from_array(np.arange(3000, dtype=np.float32)),
    "float_data": helper.make_tensor("", TensorProto.FLOAT, [3000], list(range(3000))),
    "int64_data": helper.make_tensor("", TensorProto.INT64, [3000], list(range(3000))),
    "int32_data of float16": helper.make_tensor("", TensorProto.FLOAT16, [2000], np.linspace(0, 1, 2000).tolist()),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_weights_are_read_however_the_file_keeps_them(tmp_path: Path, kind: str) -> None:
    model, path = constant_node(TENSORS[kind]), tmp_path / "m.onnx"
    onnx.save(model, path)
    array = numpy_helper.to_array(TENSORS[kind])
    for executor in (plain := OnnxRuntimeExecutor(path, optimised=False), plain.optimised_twin):
        np.testing.assert_array_equal(executor.run({"x": array})["y"], array * 3)


def test_sessions_are_let_go_for_others_and_come_back(tmp_path: Path) -> None:
    source = sparse_network(tmp_path)
    first, second = (OnnxRuntimeExecutor(source, optimised=False) for _ in range(2))
    feeds = {"x": np.ones((1, 1, 9, 9), np.float32)}
    expected = first.run(feeds)["y"]
    assert not second._session.is_loaded
    np.testing.assert_array_equal(second.run(feeds)["y"], expected)
    assert not first._session.is_loaded
    np.testing.assert_array_equal(first.run(feeds)["y"], expected)


def test_weights_beside_a_linked_model_are_found(tmp_path: Path) -> None:
    """Caches keep contents in one folder and names, as links, in another."""
    (tmp_path / "contents").mkdir()
    (tmp_path / "names").mkdir()
    weight = numpy_helper.from_array(np.arange(3000, dtype=np.float32))
    onnx.save(constant_node(weight), tmp_path / "contents" / "m.onnx", save_as_external_data=True, location="w.data")
    for name, content in (("m.onnx", "a1"), ("w.data", "b2")):
        (tmp_path / "contents" / name).rename(tmp_path / "contents" / content)
        (tmp_path / "names" / name).symlink_to(tmp_path / "contents" / content)
    output = tmp_path / "out.onnx"
    report = padfix.convert(tmp_path / "names" / "m.onnx", output, opset=18)
    assert report.verdict is not None and report.verdict.runs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_that_makes_room_leaves_alone_what_it_inherited() -> None:
    """The threads of such a session are not there, and its end would wait for them."""
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
    model = onnx.parser.parse_model(text).SerializeToString()

    def run(x: Any) -> Any:
        session = Session(model, folder=None, optimised=False, weights=HELD_BYTES)
        return session.loaded().run(None, {"x": x})[0].tolist()

    inherited = Session(model, folder=None, optimised=False, weights=HELD_BYTES)
    assert inherited.loaded()
    apart = Apart(lambda: run)
    with deadline.each_run(10.0):
        assert apart(np.ones(2, np.float32)) == [-1.0, -1.0]
    apart.close()
    assert inherited.is_loaded
