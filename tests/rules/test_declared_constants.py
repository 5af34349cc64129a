"""Constants that a target can't hold as they are written: left out, written otherwise, or declined."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.parser import parse_model as parse

import padfix
from padfix.errors import RefusedError

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def _converted(model: onnx.ModelProto, target: str, tmp_path: Path) -> onnx.ModelProto:
    onnx.save(model, tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "after.onnx", target=target)
    assert not padfix.check(tmp_path / "after.onnx", target=target).findings
    return onnx.load(tmp_path / "after.onnx")


@pytest.mark.parametrize(("dtype", "is_kept"), [(np.bool_, False), (np.uint16, False), (np.int32, True)])
def test_a_constant_that_nothing_reads_is_left_out_where_the_target_holds_none_of_its_type(
    dtype: type, is_kept: bool, tmp_path: Path
) -> None:
    model = parse(f"{HEAD} g (float[2,3] X) => (float[2,3] Y) {{ Y = Relu (X) }}")
    model.graph.initializer.append(numpy_helper.from_array(np.ones(1, dtype), "c"))
    after = _converted(model, "opencv@4.14", tmp_path)
    assert [each.name for each in after.graph.initializer] == (["c"] if is_kept else [])


def test_a_default_of_a_type_that_the_target_does_not_hold_is_declined(tmp_path: Path) -> None:
    model = parse(f"{HEAD} g (float[2,3] X, bool[3] c) => (float[2,3] Y) {{ Z = Neg (X) Y = Where (c, X, Z) }}")
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.bool_), "c"))
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(RefusedError, match="default"):
        padfix.convert(tmp_path / "model.onnx", tmp_path / "after.onnx", target="opencv@4.14")


@pytest.mark.parametrize("by_node", [False, True])
@pytest.mark.parametrize(
    ("elem_type", "is_read"),
    [(TensorProto.BOOL, False), (TensorProto.BOOL, True), (TensorProto.UINT64, True), (TensorProto.DOUBLE, True)],
)
def test_elements_that_are_written_one_by_one_become_bytes(
    elem_type: int, by_node: bool, is_read: bool, tmp_path: Path
) -> None:
    nodes = "f = Cast <to = 1> (c) Y = Mul (X, f)" if is_read else "Y = Relu (X)"
    model = parse(f"{HEAD} g (float[2,3] X) => (float[2,3] Y) {{ {nodes} }}")
    told = helper.make_tensor("c", elem_type, [3], [1, 0, 1])
    assert not told.HasField("raw_data")
    if by_node:
        model.graph.node.insert(0, helper.make_node("Constant", [], ["c"], value=told))
    else:
        model.graph.initializer.append(told)
    graph = _converted(model, "opencv@5.0.0.93", tmp_path).graph
    (held,) = [*graph.initializer, *(node.attribute[0].t for node in graph.node if node.op_type == "Constant")]
    assert held.HasField("raw_data")
    assert not held.int32_data
    assert not held.uint64_data
    assert not held.double_data
    assert list(numpy_helper.to_array(held)) == [1, 0, 1]


@pytest.mark.parametrize("by_node", [False, True])
def test_integers_that_the_target_does_not_hold_are_cast_from_those_of_64_bits(by_node: bool, tmp_path: Path) -> None:
    nodes = "a = Abs (X) f = Floor (a) i = Cast <to = 12> (f) s = Mul (i, c) Y = Cast <to = 1> (s)"
    model = parse(f"{HEAD} g (float[2,3] X) => (float[2,3] Y) {{ {nodes} }}")
    told = numpy_helper.from_array(np.array([1, 2, 3], np.uint32), "c")
    if by_node:
        model.graph.node.insert(0, helper.make_node("Constant", [], ["c"], value=told))
    else:
        model.graph.initializer.append(told)
    graph = _converted(model, "opencv@4.14", tmp_path).graph
    held = [*graph.initializer, *(node.attribute[0].t for node in graph.node if node.op_type == "Constant")]
    assert [each.data_type for each in held] == [TensorProto.INT64]
    assert sum(node.op_type == "Cast" for node in graph.node) == 3


@pytest.mark.parametrize(
    ("graph", "targets"),
    [
        ("(float[0,3] X, float[2,3] Z) => (float[2,3] Y) { Y = Concat <axis = 0> (X, Z) }", ["opencv@4.14"]),
        ("(float[0,3] X) => (float[0,3] Y) { Y = Relu (X) }", ["opencv@4.14", "opencv@5.0.0.93"]),
        ("(float[3] X) => (float[3] Y) { Y = Relu (X) }", []),
    ],
)
def test_data_without_elements_are_declined_where_the_target_takes_or_gives_none(
    graph: str, targets: list[str], tmp_path: Path
) -> None:
    onnx.save(parse(f"{HEAD} g {graph}"), tmp_path / "model.onnx")
    for target in ("opencv@4.14", "opencv@5.0.0.93"):
        found = {each.rule for each in padfix.check(tmp_path / "model.onnx", target=target).findings}
        assert ("PF303" in found) == (target in targets)


@pytest.mark.parametrize(("lengths", "names"), [("2,?,6", ["X_length_0"]), ("2,n,6", ["n"]), ("?,3,6", [""])])
def test_open_lengths_are_named_where_a_reshape_copies_them(lengths: str, names: list[str], tmp_path: Path) -> None:
    text = f"(float[{lengths}] X) => (float[a,b,2,3] Y) <int64[4] s = {{0, 0, 2, 3}}> {{ Y = Reshape (X, s) }}"
    after = _converted(parse(f"{HEAD} g {text}"), "opencv@4.14", tmp_path)
    told = after.graph.input[0].type.tensor_type.shape.dim
    assert [each.dim_param for each in told if not each.HasField("dim_value")] == names


@pytest.mark.parametrize(
    ("lengths", "node", "names"),
    [
        ("1,3,?,?", "Y = Reshape (X, S)", ["X_length_0", "X_length_1"]),
        ("?,9", "r = Relu (X) Y = Reshape (r, S)", ["X_length_0"]),
        ("1,3,h,?", "Y = Reshape (X, S)", ["h", ""]),
        ("?,3,?,?", "p = GlobalMaxPool (X) c = Concat <axis = 1> (p, p, p) Y = Reshape (c, S)", ["", "", ""]),
    ],
)
def test_open_lengths_are_named_where_a_reshape_tells_them(
    lengths: str, node: str, names: list[str], tmp_path: Path
) -> None:
    text = f"(float[{lengths}] X) => (float[1,9] Y) <int64[2] S = {{1, 9}}> {{ {node} }}"
    after = _converted(parse(f"{HEAD} g {text}"), "opencv@4.14", tmp_path)
    told = after.graph.input[0].type.tensor_type.shape.dim
    assert [each.dim_param for each in told if not each.HasField("dim_value")] == names


@pytest.mark.parametrize(
    ("node", "names"),
    [
        ("r = Relu (X) Y = MaxPool <kernel_shape = [2, 2], pads = [0, 0, 1, 1]> (r)", ["X_length_0", "X_length_1"]),
        ("Y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (X)", ["X_length_0", "X_length_1"]),
        ("Y = MaxPool <kernel_shape = [2, 2]> (X)", ["", ""]),
    ],
)
def test_lengths_that_a_pool_pads_are_named(node: str, names: list[str], tmp_path: Path) -> None:
    onnx.save(parse(f"{HEAD} g (float[1,2,?,?] X) => (float[1,2,?,?] Y) {{ {node} }}"), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@4.14")
    (given,) = onnx.load(tmp_path / "result.onnx").graph.input
    assert [each.dim_param for each in given.type.tensor_type.shape.dim[2:]] == names


@pytest.mark.parametrize(
    ("target", "elem_type", "is_kept"),
    [
        ("mnn", TensorProto.BOOL, False),
        ("mnn", TensorProto.INT8, False),
        ("mnn", TensorProto.FLOAT16, False),
        ("mnn", TensorProto.UINT32, False),
        ("mnn", TensorProto.UINT8, True),
        ("tract", TensorProto.UINT64, False),
        ("tract", TensorProto.BOOL, True),
    ],
)
def test_only_types_that_are_misread_one_by_one_become_bytes(
    target: str, elem_type: int, is_kept: bool, tmp_path: Path
) -> None:
    model = parse(f"{HEAD} g (float[2,3] X) => (float[2,3] Y) {{ f = Cast <to = 1> (c) Y = Mul (X, f) }}")
    model.graph.initializer.append(helper.make_tensor("c", elem_type, [3], [1, 0, 1]))
    (held,) = _converted(model, target, tmp_path).graph.initializer
    assert numpy_helper.to_array(held).tolist() == [1, 0, 1]
    assert held.HasField("raw_data") is not is_kept
