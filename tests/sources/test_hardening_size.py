"""Time and memory grow with the graph, not with its square or with the numbers that stand in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import GraphProto, TensorProto, helper

import padfix

SMALL, TIMES = 120, 8
FEWER = {"many_pads_before_pools": 50}
"""What is inferred again and again, since each pool's sizes follow from the one before; a square shows sooner there."""

FACTOR = 30.0
"""Eight times the nodes may take this many times as long: twice eight is linear with noise, 64 would be a square."""


def many_windows(count: int) -> GraphProto:
    nodes = [
        helper.make_node(
            "MaxPool", [f"t{i}"], [f"t{i + 1}"], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"
        )
        for i in range(count)
    ]
    return _graph(nodes, count)


def many_windows_of_one_name(count: int) -> GraphProto:
    graph = many_windows(count)
    for node in graph.node:
        node.name = "window"
    return graph


def many_upsamples(count: int) -> GraphProto:
    nodes = [helper.make_node("Upsample", [f"t{i}", "scales"], [f"t{i + 1}"], mode="nearest") for i in range(count)]
    graph = _graph(nodes, count)
    graph.initializer.append(helper.make_tensor("scales", TensorProto.FLOAT, [4], [1.0] * 4))
    return graph


def many_pads_before_pools(count: int) -> GraphProto:
    nodes = []
    for i in range(count):
        nodes.append(helper.make_node("Pad", [f"t{i}"], [f"p{i}"], pads=[0, 0, 1, 1, 0, 0, 0, 0]))
        nodes.append(helper.make_node("MaxPool", [f"p{i}"], [f"t{i + 1}"], kernel_shape=[2, 2]))
    return _graph(nodes, count)


def one_value_for_all(count: int) -> GraphProto:
    nodes = [
        helper.make_node("MaxPool", ["t0"], [f"t{i + 1}"], kernel_shape=[3, 3], auto_pad="SAME_UPPER")
        for i in range(count)
    ]
    graph = _graph(nodes, count)
    graph.output.extend(helper.make_tensor_value_info(f"t{i + 1}", TensorProto.FLOAT, None) for i in range(count - 1))
    return graph


def _graph(nodes: list, count: int) -> GraphProto:
    declared = [
        helper.make_tensor_value_info(f"t{i + 1}", TensorProto.FLOAT, ["a", "b", "c", "d"]) for i in range(count - 1)
    ]
    return helper.make_graph(
        nodes,
        "many",
        [helper.make_tensor_value_info("t0", TensorProto.FLOAT, ["n", 1, "h", "w"])],
        [helper.make_tensor_value_info(f"t{count}", TensorProto.FLOAT, ["a", "b", "c", "d"])],
        value_info=declared,
    )


def seconds_of(make: Callable[[int], GraphProto], count: int, folder: Path) -> float:
    opset = 17 if "windows" in make.__name__ or "value" in make.__name__ else 9
    model = helper.make_model(make(count), opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path = folder / f"{make.__name__}_{count}.onnx"
    path.write_bytes(model.SerializeToString())
    started = time.process_time()
    report = padfix.convert(path, folder / "out.onnx", verify=False)
    assert len(report.rewrites) == count
    return time.process_time() - started


@pytest.mark.long
@pytest.mark.parametrize(
    "make",
    [
        many_windows,
        pytest.param(many_windows_of_one_name, marks=pytest.mark.slow),
        pytest.param(many_upsamples, marks=pytest.mark.slow),
        pytest.param(many_pads_before_pools, marks=pytest.mark.slow),
        pytest.param(one_value_for_all, marks=pytest.mark.slow),
    ],
    ids=lambda make: make.__name__,
)
def test_eight_times_the_nodes_are_not_sixty_four_times_the_work(make, tmp_path: Path) -> None:
    seconds_of(make, 8, tmp_path)  # whatever is imported on first use
    count = FEWER.get(make.__name__, SMALL)
    small = seconds_of(make, count, tmp_path)
    assert seconds_of(make, TIMES * count, tmp_path) < FACTOR * small
