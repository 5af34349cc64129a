"""The map of a graph: every node is on it once, what reads what stays true, and it fits a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import NodeProto, TensorProto, helper

import padfix
from padfix.graph import overview
from padfix.graph.scopes import iterate_scopes
from padfix.results import Finding, FirstDifference, OutputDifference, Severity
from padfix.results.graph_map import GraphMap, MapLine


def model_of(operators: Sequence[str], reads: Sequence[int] = ()) -> onnx.ModelProto:
    """Return a model of nodes ``n0``, ``n1``, ...; each reads the one before, or that at a distance of ``reads``."""
    nodes = []
    for place, operator in enumerate(operators):
        back = reads[place] if place < len(reads) else 1
        source = f"t{place - back}" if place - back >= 0 else "x"
        nodes.append(helper.make_node(operator, [source], [f"t{place}"], name=f"n{place}"))
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    last = helper.make_tensor_value_info(f"t{len(nodes) - 1}", TensorProto.FLOAT, None)
    return helper.make_model(helper.make_graph(nodes, "g", [value], [last]))


def finding(node: str, graph: str = "main", rule: str = "PF101") -> Finding:
    return Finding(rule, "name", Severity.WARNING, graph, node, "Relu", "message")


def main_map(model: onnx.ModelProto, findings: Sequence[Finding], place: FirstDifference | None = None) -> GraphMap:
    (found,) = overview.maps_of(iterate_scopes(model), findings, place)
    return found


def covered(graph: GraphMap) -> list[tuple[int, MapLine]]:
    """Return each line of nodes with the place of its first node, once they are seen to be all, in their order."""
    start, found = 0, []
    for line in graph.lines:
        if line.operators:
            assert line.first == f"n{start}"
            assert line.nodes == line.times * sum(count for _, count in line.operators)
            found.append((start, line))
            start += line.nodes
            assert line.last == f"n{start - 1}"
    assert start == graph.nodes
    return found


names = st.sampled_from(["Relu", "Neg", "Abs", "Conv"])


@given(st.lists(names, min_size=1, max_size=300), st.data())
def test_each_node_is_on_it_once_and_wires_stay_true(operators: list[str], data: st.DataObject) -> None:
    reads = data.draw(st.lists(st.integers(1, 20), max_size=len(operators)))
    marked = data.draw(st.sets(st.integers(0, len(operators) - 1)))
    graph = main_map(model_of(operators, reads), [finding(f"n{place}") for place in marked])
    lines = covered(graph)
    assert len(graph.lines) <= overview.MOST_LINES + 2
    line_of = {start + offset: line for start, line in lines for offset in range(line.nodes)}
    place_of = {id(line): place for place, line in enumerate(graph.lines)}
    for place, operator in enumerate(operators):
        assert operator in [name for name, _ in line_of[place].operators]
        source = place - (reads[place] if place < len(reads) else 1)
        read = place_of[id(line_of[source])] if source >= 0 else 0
        own = place_of[id(line_of[place])]
        assert read in (*graph.lines[own].reads, own)
    for line in graph.lines:
        assert all(source < place_of[id(line)] for source in line.reads)
    assert sorted(name for line in graph.lines for name in line.marked) == sorted(f"n{place}" for place in marked)


def test_a_small_graph_is_not_folded() -> None:
    graph = main_map(model_of(["Relu"] * 10), [finding("n4")])
    assert [line.nodes for line in graph.lines] == [0, *[1] * 10, 0]
    assert (graph.lines[0].first, graph.lines[-1].first) == ("x", "t9")
    assert [line.reads for line in graph.lines] == [(), *((place,) for place in range(11))]


def test_long_stretches_without_a_mark_are_one_line() -> None:
    graph = main_map(model_of(["Relu", "Neg"] * 1500), [finding("n40"), finding("n2995")])
    assert [line.nodes for _, line in covered(graph)] == [40, 1, 2954, 1, 4]


def test_what_repeats_is_one_line() -> None:
    operators = ["Abs", *["Conv", "Relu", "Conv", "Neg"] * 200, "Abs"]
    marked = [finding(f"n{place}") for place, operator in enumerate(operators) if operator == "Conv"]
    graph = main_map(model_of(operators), marked)
    (line,) = [line for _, line in covered(graph) if line.times > 1]
    assert (line.times, line.operators) == (199, (("Conv", 2), ("Relu", 1), ("Neg", 1))), "Abs goes with the last Neg"
    assert len(line.marked) == 398


def test_where_two_models_part_has_a_line_of_its_own() -> None:
    operators = ["Conv", "Relu"] * 100
    place = FirstDifference("t80", "t80", "n80", "Conv", "n80", "Conv", (), (), OutputDifference("t80", 1, 1, 0, False))
    graph = main_map(model_of(operators), [finding(f"n{number}") for number in range(0, 200, 2)], place)
    (line,) = [line for line in graph.lines if "n80" in line.marked]
    assert line.nodes == 1


def test_bodies_with_a_mark_have_a_map_of_their_own(tmp_path: Path) -> None:
    pool = helper.make_node(
        "MaxPool", ["x"], ["y"], name="pool", auto_pad="SAME_UPPER", kernel_shape=[3, 3], strides=[2, 2]
    )
    body = helper.make_graph([pool], "b", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    other = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["z"], name="relu")],
        "o",
        [],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
    )
    constant = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True]))
    choice: NodeProto = helper.make_node("If", ["c"], ["r"], name="if", then_branch=body, else_branch=other)
    model = helper.make_model(
        helper.make_graph(
            [constant, choice],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 8, 8])],
            [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.save(model, tmp_path / "m.onnx")
    maps = padfix.check(tmp_path / "m.onnx").maps
    assert [(each.graph, each.nodes, each.constants) for each in maps] == [
        ("main", 1, 1),
        ("main/if.then_branch", 1, 0),
    ]
    assert [line.marked for line in maps[1].lines if line.operators] == [("pool",)]
    assert maps[0].lines[1].reads == (0,), "the bodies read the input"


@pytest.mark.parametrize("trouble", [ValueError, KeyError, RecursionError])
def test_trouble_costs_the_map_and_nothing_else(trouble: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object) -> None:
        raise trouble

    monkeypatch.setattr(overview, "_map", fails)
    report = padfix.check(Path(__file__).parents[2] / "fixtures" / "onnx" / "same_cnn.onnx")
    assert report.maps == () and report.findings
