"""Rows made for decision trees reach every leaf, from both ends of what leads to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

import padfix
from padfix.proof.graph_view import onnx_view
from padfix.proof.tree_data import rows_for

COLUMNS = 3


def grown(seed: int, depth: int = 4) -> dict[str, list[Any]]:
    """Return the nodes of a tree of random thresholds, and a weight for each leaf."""
    random = np.random.default_rng(seed)
    tree: dict[str, list[Any]] = {name: [] for name in ("modes", "featureids", "values", "truenodeids", "falsenodeids")}
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]

    def grow(low: np.ndarray[Any, Any], high: np.ndarray[Any, Any], left: int) -> int:
        number = len(tree["modes"])
        column = int(random.integers(COLUMNS))
        for entry, value in zip(tree.values(), ("LEAF", 0, 0.0, 0, 0), strict=True):
            entry.append(value)
        if left:
            threshold = float(np.float32(random.uniform(low[column], high[column])))
            mode = modes[int(random.integers(4))]
            tree["modes"][number], tree["featureids"][number], tree["values"][number] = mode, column, threshold
            below, above = high.copy(), low.copy()
            below[column] = above[column] = threshold
            parts = [(low, below), (above, high)]
            holds, fails = parts if mode in modes[:2] else parts[::-1]
            tree["truenodeids"][number] = grow(*holds, left - 1)
            tree["falsenodeids"][number] = grow(*fails, left - 1)
        return number

    grow(np.full(COLUMNS, -9.0), np.full(COLUMNS, 9.0), depth)
    return tree


def model(tree: dict[str, list[Any]], weights: list[float] | None = None, *, table: bool = True) -> ModelProto:
    """Return a model of one tree, as the older operator or as TreeEnsemble."""
    leaves = [number for number, mode in enumerate(tree["modes"]) if mode == "LEAF"]
    weights = [float(number) for number in leaves] if weights is None else weights
    attributes: dict[str, Any] = {f"nodes_{name}": values for name, values in tree.items()}
    node = helper.make_node("TreeEnsembleRegressor", ["X"], ["Y"], domain="ai.onnx.ml")
    attributes |= {"nodes_treeids": [0] * len(tree["modes"]), "nodes_nodeids": list(range(len(tree["modes"])))}
    attributes |= {"target_treeids": [0] * len(leaves), "target_nodeids": leaves, "target_ids": [0] * len(leaves)}
    attributes |= {"target_weights": weights, "n_targets": 1}
    if not table:
        node = helper.make_node("TreeEnsemble", ["X"], ["Y"], domain="ai.onnx.ml")
        attributes = by_place(tree, leaves, weights)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["N", COLUMNS])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["N", 1])],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3 if table else 5)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def by_place(tree: dict[str, list[Any]], leaves: list[int], weights: list[float]) -> dict[str, Any]:
    inner = [number for number, mode in enumerate(tree["modes"]) if mode != "LEAF"]
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]

    def places(side: str) -> tuple[list[int], list[int]]:
        following = [tree[side][number] for number in inner]
        is_leaf = [int(each in leaves) for each in following]
        return [(leaves if ends else inner).index(each) for each, ends in zip(following, is_leaf, strict=True)], is_leaf

    (true, true_leafs), (false, false_leafs) = places("truenodeids"), places("falsenodeids")
    numbers = [modes.index(tree["modes"][number]) for number in inner]
    thresholds = [tree["values"][number] for number in inner]
    return {
        "nodes_featureids": [tree["featureids"][number] for number in inner],
        "nodes_splits": helper.make_tensor("splits", TensorProto.FLOAT, [len(inner)], thresholds),
        "nodes_modes": helper.make_tensor("modes", TensorProto.UINT8, [len(inner)], numbers),
        "nodes_truenodeids": true,
        "nodes_trueleafs": true_leafs,
        "nodes_falsenodeids": false,
        "nodes_falseleafs": false_leafs,
        "tree_roots": [0],
        "leaf_targetids": [0] * len(leaves),
        "leaf_weights": helper.make_tensor("weights", TensorProto.FLOAT, [len(leaves)], weights),
        "n_targets": 1,
    }


def results(of: ModelProto, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    session = onnxruntime.InferenceSession(of.SerializeToString(), providers=["CPUExecutionProvider"])
    found: np.ndarray[Any, Any] = session.run(None, {"X": rows})[0]
    return found.ravel()


def rows_of(first: ModelProto, second: ModelProto) -> np.ndarray[Any, Any]:
    views = [onnx_view(each.graph).nodes for each in (first, second)]
    rows = rows_for(views[0], views[1], np.dtype(np.float32), COLUMNS)
    assert rows is not None
    return rows


@pytest.mark.parametrize("table", [True, False], ids=["by number", "by place"])
@pytest.mark.parametrize("seed", range(5))
def test_every_leaf_is_reached(seed: int, table: bool) -> None:
    tree = grown(seed)
    plain = model(tree, table=table)
    reached = set(results(plain, rows_of(plain, plain)))
    assert reached == {float(number) for number, mode in enumerate(tree["modes"]) if mode == "LEAF"}


@pytest.mark.parametrize("seed", range(5))
def test_the_smallest_move_of_a_threshold_decides_otherwise(seed: int) -> None:
    tree = grown(seed)
    for number in [number for number, mode in enumerate(tree["modes"]) if mode != "LEAF"]:
        moved = np.nextafter(np.float32(tree["values"][number]), np.float32(np.inf))
        values = [float(moved) if place == number else value for place, value in enumerate(tree["values"])]
        first, second = model(tree), model({**tree, "values": values})
        rows = rows_of(first, second)
        assert np.any(results(first, rows) != results(second, rows))


def test_trees_that_both_have_get_no_rows() -> None:
    one, other = grown(1), grown(2, depth=2)
    views = [onnx_view(model(tree).graph).nodes[0] for tree in (one, other, grown(3, depth=2))]
    rows = rows_for([views[0], views[1]], [views[0], views[2]], np.dtype(np.float32), COLUMNS)
    assert rows is not None
    assert len(rows) == 2 * (4 + 4)


@pytest.mark.parametrize("change", ["values", "modes", "weights"])
def test_a_change_that_no_probe_reaches_is_a_difference(change: str, tmp_path: Path) -> None:
    tree = grown(7)
    number = next(place for place, mode in enumerate(tree["modes"]) if mode == "BRANCH_LEQ")
    changed: dict[str, list[Any]] = {name: list(values) for name, values in tree.items()}
    leaves = [float(place) for place, mode in enumerate(tree["modes"]) if mode == "LEAF"]
    if change == "weights":
        leaves[-1] += 0.25
    else:
        changed[change][number] = "BRANCH_LT" if change == "modes" else tree["values"][number] + 0.01
    onnx.save(model(tree), tmp_path / "a.onnx")
    onnx.save(model(changed, leaves), tmp_path / "b.onnx")
    assert padfix.verify(tmp_path / "a.onnx", tmp_path / "a.onnx").equivalent
    assert not padfix.verify(tmp_path / "a.onnx", tmp_path / "b.onnx").equivalent
