"""Rows of a table that reach every leaf of decision trees which two models don't share.

What a probe brings to an ensemble of trees takes a few paths of each: a threshold or a leaf that is another one
elsewhere would be proven by nothing. Each leaf gets two rows, which lie at the two ends of what leads to it, so that a
threshold that was moved by one unit in the last place, or a "less" that became a "less or equal", decides otherwise.

The attributes are those of TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble in ONNX's operators for
machine learning (ai.onnx.ml).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from padfix.proof.executors import Array
from padfix.proof.graph_view import NodeView

ENSEMBLES = frozenset({"TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble"})

MOST_ROWS = 8192
"""Rows at most: of more, as many evenly."""

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
"""How a node decides, in the order of the numbers that TreeEnsemble has for them."""


LEAF = "LEAF"


@dataclass(frozen=True)
class Node:
    """A node of a tree.

    Attributes:
        mode: How it compares, one of ONNX's words; :data:`LEAF` where the tree ends.
        column: What it looks at.
        threshold: What it compares that with.
        following: The places in the tree where it goes on if that holds, and if it does not.
        rest: All else that is said of it: the weights of a leaf.
    """

    mode: str
    column: int = 0
    threshold: float = 0.0
    following: tuple[int, int] = (0, 0)
    rest: tuple[Any, ...] = ()


Tree = tuple[Node, ...]
"""The nodes of a tree, its root first."""


def rows_for(first: Sequence[NodeView], second: Sequence[NodeView], dtype: np.dtype[Any], width: int) -> Array | None:
    """Return rows that reach each leaf of the trees which are not in both ensembles; of all, where all are.

    Args:
        first: Nodes of the original.
        second: Nodes of the candidate.
        dtype: The table's type, of floats.
        width: Its columns.

    Returns:
        A table of these columns; None where no tree decides anything.
    """
    trees = [list(_trees(nodes)) for nodes in (first, second)]
    shared = set(trees[0]) & set(trees[1])
    chosen = [tree for each in trees for tree in each if tree not in shared] or trees[0]
    rows = [row for tree in chosen for row in _rows(tree, dtype, width)]
    if not rows:
        return None
    evenly = np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).astype(int)
    return np.stack([rows[place] for place in evenly])


def _rows(tree: Tree, dtype: np.dtype[Any], width: int) -> Iterator[Array]:
    """Yield two rows for each leaf: at the highest and at the lowest numbers that lead to it."""
    waiting: list[tuple[int, dict[int, tuple[float, float]]]] = [(0, {})]
    while waiting:
        place, ranges = waiting.pop()
        node = tree[place]
        if node.mode == LEAF:
            yield _row(
                {column: high if np.isfinite(high) else low + 1 for column, (low, high) in ranges.items()}, dtype, width
            )
            yield _row(
                {column: low if np.isfinite(low) else high - 1 for column, (low, high) in ranges.items()}, dtype, width
            )
            continue
        low, high = ranges.get(node.column, (-np.inf, np.inf))
        for following, (least, most) in zip(node.following, _halves(node, dtype), strict=True):
            ends = max(low, least), min(high, most)
            if node.column < width and ends[0] <= ends[1]:
                waiting.append((following, {**ranges, node.column: ends}))


def _row(numbers: Mapping[int, float], dtype: np.dtype[Any], width: int) -> Array:
    row: Array = np.zeros(width, dtype)
    row[list(numbers)] = list(numbers.values())
    return row


def _halves(node: Node, dtype: np.dtype[Any]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return what a threshold holds for and what not, both ends included; of what is not equal the upper part."""
    at = dtype.type(node.threshold)
    below, above = (float(np.nextafter(at, dtype.type(end))) for end in (-np.inf, np.inf))
    up_to, before = (-np.inf, float(at)), (-np.inf, below)
    onwards, beyond = (float(at), np.inf), (above, np.inf)
    equal = float(at), float(at)
    return {
        "BRANCH_LEQ": (up_to, beyond),
        "BRANCH_LT": (before, onwards),
        "BRANCH_GTE": (onwards, before),
        "BRANCH_GT": (beyond, up_to),
        "BRANCH_EQ": (equal, beyond),
        "BRANCH_NEQ": (beyond, equal),
    }.get(node.mode, ((-np.inf, np.inf), (-np.inf, np.inf)))


def _trees(nodes: Iterable[NodeView]) -> Iterator[Tree]:
    """Yield each tree that decides anything."""
    for node in nodes:
        if node.proto is None or node.op_type not in ENSEMBLES:
            continue
        told = {
            attribute.name.removesuffix("_as_tensor"): _listed(helper.get_attribute_value(attribute))
            for attribute in node.proto.attribute
        }
        yield from _by_place(told) if node.op_type == "TreeEnsemble" else _by_number(told)


def _listed(value: Any) -> list[Any]:
    if isinstance(value, TensorProto):
        value = numpy_helper.to_array(value).ravel().tolist()
    listed = value if isinstance(value, list) else [value]
    return [each.decode() if isinstance(each, bytes) else each for each in listed]


def _by_number(told: Mapping[str, list[Any]]) -> Iterator[Tree]:
    """Yield the trees of the older operators, whose nodes and weights stand in lists with the numbers of both."""
    weights: dict[tuple[int, int], list[Any]] = {}
    for kind in ("class", "target"):
        lists = [told.get(f"{kind}_{word}", []) for word in ("treeids", "nodeids", "ids", "weights")]
        for tree, number, index, weight in zip(*lists, strict=False):
            weights.setdefault((tree, number), []).append((index, weight))
    found: dict[int, dict[int, tuple[Any, ...]]] = {}
    words = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
    missing = told.get("nodes_missing_value_tracks_true") or [0] * len(told.get("nodes_treeids", []))
    for tree, *node in zip(*(told.get(f"nodes_{word}", []) for word in words), missing, strict=False):
        found.setdefault(tree, {})[node[0]] = tuple(node)
    for tree, nodes in found.items():
        places = {number: place for place, number in enumerate(nodes)}
        yield tuple(
            Node(LEAF, rest=tuple(weights.get((tree, number), ())))
            if mode == LEAF
            else Node(mode, column, threshold, (places.get(holds, 0), places.get(fails, 0)), (tracks,))
            for number, mode, column, threshold, holds, fails, tracks in nodes.values()
        )


def _by_place(told: Mapping[str, list[Any]]) -> Iterator[Tree]:
    """Yield the trees of TreeEnsemble, which point to places in lists of nodes and of leaves."""
    leaves = list(zip(told["leaf_targetids"], told["leaf_weights"], strict=False))
    for root in told["tree_roots"]:
        nodes: list[Node] = []
        waiting = [(root, False, -1, 0)]
        following: dict[tuple[int, int], int] = {}
        while waiting:
            place, is_leaf, above, side = waiting.pop()
            following[above, side] = len(nodes)
            if is_leaf:
                nodes.append(Node(LEAF, rest=leaves[place]))
                continue
            mode = _MODES[told["nodes_modes"][place]] if told["nodes_modes"][place] < len(_MODES) else "BRANCH_MEMBER"
            waiting.append((told["nodes_falsenodeids"][place], bool(told["nodes_falseleafs"][place]), len(nodes), 1))
            waiting.append((told["nodes_truenodeids"][place], bool(told["nodes_trueleafs"][place]), len(nodes), 0))
            nodes.append(Node(mode, told["nodes_featureids"][place], told["nodes_splits"][place]))
        yield tuple(
            replace(node, following=(following[place, 0], following[place, 1])) if node.mode != LEAF else node
            for place, node in enumerate(nodes)
        )
