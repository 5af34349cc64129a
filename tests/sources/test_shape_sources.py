"""Where kernel lengths and sizes come from when the node itself does not say them, and what may not be believed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto, helper, numpy_helper

import padfix
from padfix.files.model import Model
from padfix.operators.inference import infer
from padfix.proof.spec_executor import SpecExecutor
from padfix.rewrite.engine import Rewriting, rewrite_model
from tests.support.padding_models import session

W = np.random.default_rng(3).normal(size=(2, 1, 3, 2)).astype(np.float32)
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def build(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    constants: dict[str, np.ndarray] | None = None,
    *,
    ir_version: int = 8,
) -> ModelProto:
    tensors = [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "g", list(inputs), [ValueInfoProto(name="Y")], tensors)
    graph.output[0].type.tensor_type.elem_type = FLOAT
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=ir_version)


def value(name: str, shape: Sequence[int | str | None] | None, elem_type: int = FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, elem_type, shape)


def conv(weights: str = "W", source: str = "X", **attributes: object) -> NodeProto:
    return helper.make_node(
        "Conv", [source, weights], ["Y"], name="conv", auto_pad="SAME_UPPER", strides=[2, 2], **attributes
    )


def pads_of(model: ModelProto, op_type: str) -> list[list[int]]:
    return [
        list(each.ints)
        for node in model.graph.node
        if node.op_type == op_type
        for each in node.attribute
        if each.name == "pads"
    ]


def convert_and_compare(proto: ModelProto, *feeds: dict[str, np.ndarray]) -> Rewriting:
    specification = SpecExecutor(proto.SerializeToString())
    wanted = [specification.run(each)["Y"] for each in feeds]
    result = rewrite_model(Model(proto))
    assert not result.refusals
    for optimised in (False, True):
        runner = session(proto, optimised=optimised)
        for each, expected in zip(feeds, wanted, strict=True):
            actual = runner.run(None, each)[0]
            assert actual.shape == expected.shape
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    settled = proto.SerializeToString()
    assert not rewrite_model(Model(proto)).changed
    assert proto.SerializeToString() == settled
    return result


def data(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) - 2


def weights_as(kind: str) -> tuple[list[NodeProto], dict[str, np.ndarray]]:
    if kind == "initializer":
        return [], {"W": W}
    if kind == "Constant":
        return [helper.make_node("Constant", [], ["W"], value=numpy_helper.from_array(W))], {}
    if kind == "DequantizeLinear":
        codes = {"Q": np.round(W * 20).astype(np.int8), "S": np.float32(0.05), "Z": np.int8(0)}
        return [helper.make_node("DequantizeLinear", ["Q", "S", "Z"], ["W"])], {
            k: np.asarray(v) for k, v in codes.items()
        }
    if kind == "Transpose":
        return [helper.make_node("Transpose", ["H"], ["W"], perm=[3, 2, 0, 1])], {"H": W.transpose(2, 3, 1, 0).copy()}
    nodes = [helper.make_node("Reshape", ["F", "D"], ["W"])]
    return nodes, {"F": W.reshape(-1), "D": np.array(W.shape, np.int64)}


@pytest.mark.parametrize("kind", ["initializer", "Constant", "DequantizeLinear", "Transpose", "Reshape"])
def test_the_kernel_is_read_from_the_weights_wherever_they_come_from(kind: str) -> None:
    nodes, constants = weights_as(kind)
    proto = build([*nodes, conv()], [value("X", [1, 1, 8, 7])], constants)
    proto.opset_import[0].version = 19
    convert_and_compare(proto, {"X": data(1, 1, 8, 7)})
    # 3 rows by 2 columns with stride 2: 8 rows want 1 more at the end, 7 columns want 1 more.
    assert pads_of(proto, "Conv") == [[0, 0, 1, 1]]


def test_the_kernel_is_read_from_a_sparse_initializer() -> None:
    proto = build([conv()], [value("X", [1, 1, 8, 7])])
    sparse = SparseTensorProto(dims=W.shape)
    sparse.values.CopyFrom(numpy_helper.from_array(W.reshape(-1)[[0, 5, 7]], "W"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([0, 5, 7], np.int64), ""))
    proto.graph.sparse_initializer.append(sparse)
    result = rewrite_model(Model(proto))
    assert not result.refusals
    assert pads_of(proto, "Conv") == [[0, 0, 1, 1]]
    dense = np.zeros(W.size, np.float32)
    dense[[0, 5, 7]] = W.reshape(-1)[[0, 5, 7]]
    reference = build([conv(kernel_shape=[3, 2])], [value("X", [1, 1, 8, 7])], {"W": dense.reshape(W.shape)})
    wanted = SpecExecutor(reference.SerializeToString()).run({"X": data(1, 1, 8, 7)})["Y"]
    for optimised in (False, True):
        actual = session(proto, optimised=optimised).run(None, {"X": data(1, 1, 8, 7)})[0]
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)


def test_a_body_reads_weights_and_sizes_from_the_scope_around_it() -> None:
    inner = conv()
    inner.output[0] = "T"
    other = helper.make_node("Identity", ["R"], ["E"])
    branch = helper.make_node(
        "If",
        ["C"],
        ["Y"],
        name="choose",
        then_branch=helper.make_graph([inner], "t", [], [value("T", None)]),
        else_branch=helper.make_graph([other], "e", [], [value("E", None)]),
    )
    inputs = [value("X", [1, 1, 8, 7]), value("C", [], TensorProto.BOOL), value("R", [1, 2, 4, 4])]
    proto = build([branch], inputs, {"W": W})
    feeds = {"X": data(1, 1, 8, 7), "R": data(1, 2, 4, 4)}
    convert_and_compare(proto, {**feeds, "C": np.array(True)}, {**feeds, "C": np.array(False)})
    (body,) = (each.g for each in proto.graph.node[0].attribute if each.name == "then_branch")
    assert [list(each.ints) for each in body.node[0].attribute if each.name == "pads"] == [[0, 0, 1, 1]]


def test_an_initializer_that_a_caller_may_replace_decides_nothing() -> None:
    resize = helper.make_node("Resize", ["X", "", "S"], ["R"], mode="nearest", nearest_mode="floor")
    resize.attribute.append(helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
    pool = helper.make_node("MaxPool", ["R"], ["Y"], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    scales = np.array([1, 1, 2, 2], np.float32)
    inputs = [value("X", [1, 1, 5, 5]), value("S", [4])]
    proto = build([resize, pool], inputs, {"S": scales})
    X = data(1, 1, 5, 5)
    result = convert_and_compare(
        proto,
        {"X": X, "S": scales},
        {"X": X, "S": np.array([1, 1, 3, 3], np.float32)},
        {"X": X, "S": scales[[0, 1, 0, 2]]},
    )
    assert [each.finding.rule for each in result.rewrites] == ["PF102"]

    fixed = build([resize, pool], inputs, {"S": scales}, ir_version=3)  # there an initializer has to be an input too
    assert infer(Model(fixed))[0].types["R"].shape == (1, 1, 10, 10)


def test_weights_that_a_caller_may_replace_give_the_kernel_only_by_their_declared_shape() -> None:
    proto = build([conv()], [value("X", [1, 1, 8, 7]), value("W", W.shape)], {"W": W})
    convert_and_compare(proto, {"X": data(1, 1, 8, 7)}, {"X": data(1, 1, 8, 7), "W": data(*W.shape, seed=5)})
    assert pads_of(proto, "Conv") == [[0, 0, 1, 1]]

    open_kernel = build([conv()], [value("X", [1, 1, 8, 7]), value("W", [2, 1, "kh", "kw"])], {"W": W})
    before = open_kernel.SerializeToString()
    (refusal,) = rewrite_model(Model(open_kernel)).refusals
    assert "kernel_shape" in refusal.reason
    assert open_kernel.SerializeToString() == before


def test_a_shared_initializer_keeps_its_bytes_for_its_other_readers() -> None:
    scales = np.array([1, 1, 2, 2], np.float32)
    nodes = [
        helper.make_node("Upsample", ["X", "S"], ["A"], mode="nearest"),
        helper.make_node("Upsample", ["X", "S"], ["B"], mode="linear"),
        helper.make_node("Add", ["A", "B"], ["C"]),
        helper.make_node("Mul", ["C", "S"], ["Y"]),
    ]
    proto = build(nodes, [value("X", [1, 1, 3, 2])], {"S": scales}, ir_version=4)
    proto.opset_import[0].version = 9
    before = proto.graph.initializer[0].SerializeToString()
    X = data(1, 1, 3, 2)
    convert_and_compare(proto, {"X": X})
    assert before in [tensor.SerializeToString() for tensor in proto.graph.initializer]


def test_a_given_shape_reaches_the_axes_behind_it() -> None:
    pool = helper.make_node("MaxPool", ["R"], ["Y"], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    nodes = [helper.make_node("Transpose", ["X"], ["R"], perm=[0, 3, 1, 2]), pool]
    proto = build(nodes, [value("X", [None, "h", "w", 2])])
    rewrite_model(Model(proto), shapes={"X": [0, 8, 7, 2]})
    assert pads_of(proto, "MaxPool") == [[0, 1, 1, 1]]
    assert "Pad" not in {node.op_type for node in proto.graph.node}


def chain(*nodes: tuple[str, dict[str, object]], length: int | str | None = "h", opset: int = 13) -> ModelProto:
    """Return a model of nodes one behind the other on an input of one unknown length."""
    made, name, constants = [], "X", {}
    for number, (op_type, fields) in enumerate(nodes):
        result = "Y" if number == len(nodes) - 1 else f"v{number}"
        inputs = [name]
        if op_type in ("Conv", "ConvTranspose"):
            inputs.append(f"W{number}")
            constants[f"W{number}"] = W[:, :, :, 0].repeat(2, 1).copy()
        if op_type == "Resize":
            inputs += ["", f"S{number}"]
            constants[f"S{number}"] = np.array([1, 1, fields.pop("by")], np.float32)
        made.append(helper.make_node(op_type, inputs, [result], name=f"n{number}", **fields))
        name = result
    proto = build(made, [value("X", [1, 2, length])], constants)
    proto.opset_import[0].version = opset
    return proto


HALVE: dict[str, object] = {"auto_pad": "SAME_UPPER", "strides": [2]}
POOL: dict[str, object] = {**HALVE, "kernel_shape": [3]}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("length", ["32*k", "32 * k + 31", "2*(k+1)", "2*h", "8", "-1", "0", "dim 2"])
def test_a_declared_text_promises_nothing(length: str, tmp_path: Path) -> None:
    """No runtime enforces it, so the result is right for every length, those that break an expression too."""
    proto = chain(("Conv", dict(HALVE)), length=length)
    onnx.save(proto, tmp_path / "in.onnx")
    report = padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    assert [each.finding.rule for each in report.rewrites] == ["PF102"]
    assert len({run.shapes["X"][2] for run in report.verdict.runs}) > 1
    convert_and_compare(proto, *({"X": data(1, 2, each)} for each in (5, 6, 8, 31, 32, 33)))


def test_five_halvings_of_a_computed_multiple_of_32_need_no_pad_at_run_time() -> None:
    grown = ("Resize", {"by": 32, "mode": "nearest"})
    halvings = [("Conv" if each % 2 else "MaxPool", dict(HALVE if each % 2 else POOL)) for each in range(5)]
    proto = chain(grown, *halvings)
    convert_and_compare(proto, {"X": data(1, 2, 1)}, {"X": data(1, 2, 3)})
    assert "Pad" not in {node.op_type for node in proto.graph.node}
    sixth = chain(("Resize", {"by": 32, "mode": "nearest"}), *(("MaxPool", dict(POOL)) for _ in range(6)))
    convert_and_compare(sixth, *({"X": data(1, 2, each)} for each in (1, 2, 3)))
    assert [node.op_type for node in sixth.graph.node].count("Pad") == 1


@pytest.mark.parametrize(
    ("growing", "static"),
    [
        (("Resize", {"by": 2, "mode": "nearest"}), True),
        (("Resize", {"by": 3, "mode": "nearest"}), False),
        (("Resize", {"by": 1.5, "mode": "nearest"}), False),
        (("ConvTranspose", {"auto_pad": "SAME_UPPER", "strides": [2]}), True),
        (("ConvTranspose", {"strides": [2]}), True),  # 2 * n + 1
        (("ConvTranspose", {"strides": [3], "pads": [1, 0]}), False),
        (("MaxPool", {"kernel_shape": [2], "strides": [1]}), False),
    ],
)
@pytest.mark.parametrize("length", ["h", None])
def test_what_grows_an_unknown_length_tells_its_residue(
    growing: tuple[str, dict[str, object]], static: bool, length: str | None
) -> None:
    op_type, fields = growing
    proto = chain((op_type, dict(fields)), ("Relu", {}), ("MaxPool", dict(POOL)), length=length, opset=16)
    convert_and_compare(proto, *({"X": data(1, 2, each)} for each in (4, 5, 6, 7)))
    assert ("Pad" not in {node.op_type for node in proto.graph.node}) is static


def test_a_residue_is_known_inside_bodies_and_functions() -> None:
    inner = helper.make_node("MaxPool", ["A"], ["B"], auto_pad="SAME_LOWER", kernel_shape=[3], strides=[2])
    imports = [helper.make_opsetid("", 13)]
    function = helper.make_function("local", "F", ["A"], ["B"], [inner], imports)
    then = helper.make_graph([helper.make_node("F", ["R"], ["T"], domain="local")], "t", [], [value("T", [1, 2, None])])
    other = helper.make_graph([helper.make_node("Identity", ["R"], ["E"])], "e", [], [value("E", [1, 2, None])])
    nodes = [
        helper.make_node("Resize", ["X", "", "S"], ["R"], mode="nearest"),
        helper.make_node("If", ["C"], ["Y"], then_branch=then, else_branch=other),
    ]
    inputs = [value("X", [1, 2, "h"]), value("C", [], TensorProto.BOOL)]
    proto = build(nodes, inputs, {"S": np.array([1, 1, 2], np.float32)})
    proto.functions.append(function)
    proto.opset_import.add(domain="local", version=1)
    convert_and_compare(proto, *({"X": data(1, 2, each), "C": np.array(True)} for each in (4, 5)))
    assert list(proto.functions[0].node[0].attribute[-1].ints) == [1, 0]


def test_a_proof_runs_lengths_that_the_expressions_can_have(tmp_path: Path) -> None:
    proto = chain(("Conv", dict(HALVE)), length="32*k")
    proto.graph.input.append(value("Z", [1, 2, "16*k"]))
    proto.graph.node[0].output[0] = "half"
    proto.graph.node.append(helper.make_node("Add", ["half", "Z"], ["Y"]))
    onnx.save(proto, tmp_path / "in.onnx")
    report = padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    assert all(run.shapes["X"][2] == 2 * run.shapes["Z"][2] for run in report.verdict.runs)
    assert all(run.shapes["X"][2] % 32 == 0 for run in report.verdict.runs)
