"""Nodes of every operator that ONNX has, as nobody would write them: every target has an answer to each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, defs, helper, numpy_helper

from padfix.api import check_for
from padfix.errors import PadfixError
from padfix.targets import names

KINDS = defs.OpSchema.AttrType
SCHEMAS = [each for each in defs.get_all_schemas_with_history() if each.domain == ""]
TYPES = {
    TensorProto.FLOAT: np.float32,
    TensorProto.FLOAT16: np.float16,
    TensorProto.INT64: np.int64,
    TensorProto.BOOL: np.bool_,
    TensorProto.UINT8: np.uint8,
}
BODY = helper.make_graph(
    [helper.make_node("Identity", ["x0"], ["given"])],
    "body",
    [],
    [helper.make_tensor_value_info("given", TensorProto.FLOAT, None)],
)


def attribute(kind: Any, chance: random.Random) -> Any:
    number = lambda: chance.choice([0, 1, 1, 2, 3, -1])  # noqa: E731
    made = {
        KINDS.INT: lambda: chance.choice([0, 1, 1, 2, 3]),  # onnx itself ends with a fault at -1 batch axes
        KINDS.INTS: lambda: [number() for _ in range(chance.choice([1, 2, 4, 6]))],
        KINDS.FLOAT: lambda: chance.choice([0.0, 1.0, 0.5, -1.0]),
        KINDS.FLOATS: lambda: [float(number()) for _ in range(chance.choice([1, 2, 4]))],
        KINDS.STRING: lambda: chance.choice(["SAME_UPPER", "constant", "linear", "nearest", "half_pixel", ""]),
        KINDS.TENSOR: lambda: numpy_helper.from_array(np.ones([1] * chance.randint(0, 7), np.float32)),
        KINDS.GRAPH: lambda: BODY,
    }
    return made[kind]() if kind in made else None


def a_model(chance: random.Random) -> bytes:
    """Return a model of one operator and what computes its inputs, of any types and ranks, meant or not."""
    schema = chance.choice(SCHEMAS)
    reads, inputs, weights, nodes = [], [], [], []
    for place in range(chance.randint(schema.min_input, min(schema.max_input, schema.min_input + 4))):
        name, elem_type = f"x{place}", chance.choice([TensorProto.FLOAT, *TYPES])
        lengths: Sequence[Any] = [chance.choice([0, 1, 2, 3, "N", None]) for _ in range(chance.randint(0, 7))]
        kind = chance.random()
        if kind < 0.1 and place:
            reads.append("")
            continue
        reads.append(name)
        if kind < 0.4:
            fixed = [each if isinstance(each, int) else 2 for each in lengths]
            numbers = np.random.default_rng(place).integers(-3, 6, fixed).astype(TYPES[elem_type])
            if kind < 0.2:
                weights.append(numpy_helper.from_array(numbers, name))
            else:
                nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(numbers)))
        else:
            inputs.append(helper.make_tensor_value_info(name, elem_type, lengths))
    given = {
        name: attribute(each.type, chance)
        for name, each in schema.attributes.items()
        if each.required or chance.random() < 0.4
    }
    outputs = [f"y{place}" for place in range(max(1, schema.min_output))]
    known = {name: value for name, value in given.items() if value is not None}
    nodes.append(helper.make_node(schema.name, reads, outputs, **known))
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "graph", inputs, results, weights)
    opsets = [helper.make_opsetid("", max(1, schema.since_version))]
    return bytes(helper.make_model(graph, ir_version=10, opset_imports=opsets).SerializeToString())


@pytest.mark.parametrize("seed", range(10))
def test_every_target_has_an_answer(seed: int, tmp_path: Path, slow: bool) -> None:
    chance = random.Random(seed)
    for number in range(600 if slow else 40):
        path = tmp_path / f"{number}.onnx"
        path.write_bytes(a_model(chance))
        try:
            reports = check_for(path, list(names()), maps=False)
        except PadfixError as error:
            assert not str(error).startswith("internal error")
        else:
            assert len(reports) == len(names())


@pytest.mark.parametrize("op_type", ["Constant", "RandomNormal"])
def test_what_reads_nothing_gives_many_axes(op_type: str, tmp_path: Path) -> None:
    """The traits of a Transpose of six axes were once asked of what has no inputs."""
    lengths = [1, 1, 1, 1, 2, 2]
    values = numpy_helper.from_array(np.ones(lengths, np.float32))
    given: dict[str, Any] = {"value": values} if op_type == "Constant" else {"shape": lengths}
    nodes = [helper.make_node(op_type, [], ["c"], **given), helper.make_node("Add", ["x", "c"], ["y"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, lengths) for name in "xy"]
    model = helper.make_model(
        helper.make_graph(nodes, "graph", values[:1], values[1:]), opset_imports=[helper.make_opsetid("", 17)]
    )
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    assert len(check_for(tmp_path / "model.onnx", list(names()), maps=False)) == len(names())


def test_bytes_that_constant_nodes_give(tmp_path: Path) -> None:
    """Weights are quantised beforehand, and nothing makes them: who looks for what did finds a node without inputs."""
    weights = numpy_helper.from_array(np.ones((2, 3, 3, 3), np.int8))
    scale = helper.make_node("Constant", [], ["s"], value_float=0.5)
    nodes = [
        helper.make_node("Constant", [], ["q"], value=weights),
        scale,
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"]),
        helper.make_node("Conv", ["x", "w"], ["c"], auto_pad="SAME_LOWER"),
        helper.make_node("QuantizeLinear", ["c", "s"], ["b"]),
        helper.make_node("DequantizeLinear", ["b", "s"], ["y"]),
    ]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", each, 8, 8])
        for name, each in zip("xy", (3, 2), strict=True)
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "graph", values[:1], values[1:]), opset_imports=[helper.make_opsetid("", 17)]
    )
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    for report in check_for(tmp_path / "model.onnx", list(names()), maps=False):
        assert "PF101" in {each.rule for each in report.findings}
