"""Moving nodes to a newer opset: what comes out runs in ONNX Runtime and gives the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, version_converter

import padfix
from padfix.files.model import Model
from padfix.graph.scopes import iterate_scopes
from padfix.operators.inference import infer
from padfix.operators.refusal import Refusal
from padfix.rewrite.moving import plan_move
from padfix.rewrite.upgrade import UpgradeStep, upgrade
from padfix.rules.registry import RULES
from padfix.targets import named
from tests.support.one_node import fill_types

NUMBERS = np.random.default_rng(5)


def f(*shape: int) -> np.ndarray:
    return NUMBERS.standard_normal(shape).astype(np.float32)


def i(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def single(
    op_type: str,
    opset: int,
    inputs: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray] | None = None,
    outputs: int = 1,
    typed: bool = True,
    **attributes: Any,
) -> ModelProto:
    constants = constants or {}
    node = helper.make_node(
        op_type,
        [*inputs, *constants],
        [f"Y{n}" for n in range(outputs)],
        name="node",
        doc_string="kept",
        **attributes,
    )
    graph = helper.make_graph(
        [node],
        "graph",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape if typed else None
            )
            for name, value in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(f"Y{n}") for n in range(outputs)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def plan(model: ModelProto, target: int) -> list[UpgradeStep] | Refusal:
    scopes = list(iterate_scopes(model))
    fill_types(scopes[0])
    return upgrade(Model(model), scopes, target, frozenset())


def apply(model: ModelProto, steps: list[UpgradeStep], target: int) -> ModelProto:
    result = ModelProto()
    result.CopyFrom(model)
    result.opset_import[0].version = target
    assert all(step.rewrite.trials for step in steps)
    if any(step.edits for step in steps):
        assert len(steps) == 1
        del result.graph.node[:]
        fragment = steps[0].rewrite.after
        assert fragment.opset == target
        result.graph.node.extend(fragment.nodes)
        result.graph.initializer.extend(fragment.initializers)
    return result


def run(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    model = onnx.shape_inference.infer_shapes(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    result: list[np.ndarray] = session.run(None, dict(feeds))
    return result


X, XY, IMAGE, SERIES = f(2, 3), f(4, 5), f(2, 3, 4), f(1, 1, 5)
STATISTICS = {"scale": f(3), "bias": f(3), "mean": f(3), "variance": abs(f(3))}
CASES: list[tuple[Any, ...]] = [
    *[
        (op_type, old, new, {"X": IMAGE}, {}, 1, {} if axis is None else {"axis": axis})
        for op_type in ("Softmax", "LogSoftmax", "Hardmax")
        for old, new in ((7, 11), (7, 13), (11, 13), (11, 21))
        for axis in (None, 0, 1, 2)
    ],
    ("Softmax", 11, 13, {"X": IMAGE}, {}, 1, {"axis": -1}),
    ("Softmax", 11, 13, {"X": IMAGE}, {}, 1, {"axis": -2}),
    ("Clip", 6, 11, {"X": X}, {}, 1, {"min": -0.5, "max": 0.5}),
    ("Clip", 6, 11, {"X": X}, {}, 1, {"max": 0.5}),
    ("Clip", 6, 13, {"X": X}, {}, 1, {"min": 0.1}),
    ("Clip", 6, 12, {"X": X}, {}, 1, {}),
    ("Pad", 2, 11, {"X": X}, {}, 1, {"pads": [0, 1, 1, 0], "value": 2.0}),
    ("Pad", 2, 11, {"X": X.astype(np.float64)}, {}, 1, {"pads": [0, 1, 1, 0], "value": 2.0}),
    ("Pad", 10, 18, {"X": X}, {}, 1, {"pads": [0, 1, 1, 0], "mode": "reflect"}),
    ("Slice", 1, 11, {"X": XY}, {}, 1, {"starts": [1, 0], "ends": [3, -1], "axes": [0, 1]}),
    ("Slice", 9, 13, {"X": XY}, {}, 1, {"starts": [1], "ends": [1 << 40], "axes": [1]}),
    ("Slice", 1, 11, {"X": XY}, {}, 1, {"starts": [1], "ends": [3]}),
    ("TopK", 1, 11, {"X": XY}, {}, 2, {"k": 2, "axis": 1}),
    ("TopK", 9, 10, {"X": XY}, {}, 2, {"k": 2}),
    ("TopK", 10, 11, {"X": XY}, {"k": i(3)}, 2, {}),
    ("Dropout", 7, 11, {"X": XY}, {}, 1, {"ratio": 0.3}),
    ("Dropout", 7, 13, {"X": XY}, {}, 1, {"ratio": 0.3}),
    ("Dropout", 10, 12, {"X": XY}, {}, 1, {}),
    ("BatchNormalization", 7, 11, {"X": IMAGE}, STATISTICS, 1, {"epsilon": 0.01}),
    ("BatchNormalization", 7, 15, {"X": IMAGE}, STATISTICS, 1, {}),
    ("BatchNormalization", 9, 14, {"X": IMAGE}, STATISTICS, 1, {"momentum": 0.5}),
    ("Squeeze", 1, 13, {"X": f(2, 1, 4)}, {}, 1, {"axes": [1]}),
    ("Squeeze", 11, 13, {"X": f(2, 1, 4)}, {}, 1, {}),
    ("Unsqueeze", 1, 13, {"X": X}, {}, 1, {"axes": [1]}),
    ("ReduceSum", 1, 13, {"X": X}, {}, 1, {"axes": [1]}),
    ("ReduceSum", 11, 13, {"X": X}, {}, 1, {"keepdims": 0}),
    ("ReduceMean", 7, 18, {"X": X}, {}, 1, {"axes": [1]}),
    ("ReduceMax", 11, 18, {"X": X}, {}, 1, {"axes": [-1], "keepdims": 0}),
    ("ReduceL2", 11, 21, {"X": X}, {}, 1, {}),
    ("Split", 2, 13, {"X": f(2, 4)}, {}, 2, {"axis": 1, "split": [1, 3]}),
    ("Split", 2, 11, {"X": f(2, 4)}, {}, 2, {"axis": 1, "split": [1, 3]}),
    ("Split", 2, 18, {"X": f(2, 4)}, {}, 2, {"axis": 1}),
    ("Split", 13, 18, {"X": f(2, 4)}, {"split": i(1, 3)}, 2, {"axis": -1}),
    ("Scatter", 9, 11, {"X": f(2, 4)}, {"indices": i(1, 0).reshape(1, 2), "updates": f(1, 2)}, 1, {"axis": 1}),
    ("Gemm", 7, 11, {"X": X}, {"B": f(3, 4), "C": f(4)}, 1, {"beta": 0.5}),
    ("Add", 7, 14, {"X": X}, {"B": f(3)}, 1, {}),
    ("PRelu", 7, 16, {"X": IMAGE}, {"slope": f(3, 1)}, 1, {}),
    ("Cast", 6, 13, {"X": X}, {}, 1, {"to": 7}),
    ("Reshape", 5, 14, {"X": X}, {"shape": i(3, -1)}, 1, {}),
    ("Flatten", 1, 13, {"X": IMAGE}, {}, 1, {}),
    ("ArgMax", 7, 13, {"X": X}, {}, 1, {"axis": 1}),
    ("MaxPool", 1, 12, {"X": SERIES}, {}, 1, {"kernel_shape": [2]}),
    ("AveragePool", 7, 19, {"X": SERIES}, {}, 1, {"kernel_shape": [2]}),
    ("OneHot", 9, 11, {"X": i(1, 0)}, {"depth": i(3), "values": f(2)}, 1, {}),
    ("RNN", 7, 14, {"X": f(3, 1, 2)}, {"W": f(1, 4, 2), "R": f(1, 4, 4)}, 2, {"hidden_size": 4}),
    ("GridSample", 16, 20, {"X": f(1, 1, 3, 3), "grid": f(1, 2, 2, 2)}, {}, 1, {"mode": "bilinear"}),
]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("typed", [True, False], ids=["typed", "untyped"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}-{case[6]}")
def test_numbers_stay(case: tuple[Any, ...], typed: bool) -> None:
    op_type, old, new, inputs, constants, outputs, attributes = case
    if not typed and inputs["X"].dtype == np.float64:
        pytest.skip("an unknown element type is taken for float")
    model = single(op_type, old, inputs, constants, outputs, typed, **attributes)
    steps = plan(model, new)
    assert not isinstance(steps, Refusal), steps.reason
    before = run(model, inputs)
    after = run(apply(model, steps, new), inputs)
    for expected, got in zip(before, after, strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)
    if any(step.edits for step in steps):
        assert any(node.name == "node" and node.doc_string == "kept" for node in steps[0].rewrite.after.nodes)


OLD: list[tuple[Any, ...]] = [
    ("Add", {"broadcast": 1, "axis": 1}, IMAGE, f(3), lambda x, b: x + b[:, None]),
    ("Add", {"broadcast": 1}, IMAGE, f(4), lambda x, b: x + b),
    ("Mul", {"broadcast": 1, "axis": 0}, IMAGE, f(2, 3), lambda x, b: x * b[:, :, None]),
    ("Sub", {}, IMAGE, f(2, 3, 4), lambda x, b: x - b),
    ("Greater", {"broadcast": 1, "axis": 1}, IMAGE, f(3), lambda x, b: x > b[:, None]),
    ("PRelu", {}, IMAGE, f(3), lambda x, b: np.where(x < 0, x * b[:, None], x)),
    ("PRelu", {}, IMAGE, f(1), lambda x, b: np.where(x < 0, x * b, x)),
]


@pytest.mark.parametrize("case", OLD, ids=lambda case: f"{case[0]}-{case[1]}")
@pytest.mark.parametrize("target", [11, 13])
def test_broadcasting_before_opset_7(case: tuple[Any, ...], target: int) -> None:
    op_type, attributes, x, b, expected = case
    model = single(op_type, 6, {"X": x}, {"B": b}, **attributes)
    steps = plan(model, target)
    assert not isinstance(steps, Refusal), steps.reason
    np.testing.assert_allclose(run(apply(model, steps, target), {"X": x})[0], expected(x, b), rtol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"pads": [1, 0, 0, 1], "value": 3.0}, np.pad(X, ((1, 0), (0, 1)), constant_values=3)),
        ({"pads": [0, 0, 0, 1]}, np.pad(X, ((0, 0), (0, 1)))),
    ],
)
def test_pad_1(attributes: dict[str, Any], expected: np.ndarray) -> None:
    attributes = {"paddings": attributes.pop("pads"), **attributes}
    model = single("Pad", 1, {"X": X}, **attributes)
    steps = plan(model, 11)
    assert not isinstance(steps, Refusal), steps.reason
    np.testing.assert_array_equal(run(apply(model, steps, 11), {"X": X})[0], expected)


def test_cast_1() -> None:
    model = single("Cast", 1, {"X": X}, to="INT32")
    steps = plan(model, 11)
    assert not isinstance(steps, Refusal), steps.reason
    np.testing.assert_array_equal(run(apply(model, steps, 11), {"X": X})[0], X.astype(np.int32))


def test_consumed_inputs_go() -> None:
    model = single("Relu", 1, {"X": X}, consumed_inputs=[0])
    steps = plan(model, 11)
    assert not isinstance(steps, Refusal), steps.reason
    np.testing.assert_array_equal(run(apply(model, steps, 11), {"X": X})[0], np.maximum(X, 0))


@pytest.mark.parametrize(
    ("op_type", "old", "new", "attributes"),
    [("Relu", 7, 14, {}), ("Conv", 1, 11, {}), ("MatMul", 9, 13, {}), ("RNN", 7, 14, {"hidden_size": 4})],
)
def test_nodes_that_stay_right_are_left_alone(op_type: str, old: int, new: int, attributes: dict[str, Any]) -> None:
    constants = {"Conv": {"W": f(1, 1, 3)}, "MatMul": {"B": f(5, 2)}, "RNN": {"W": f(1, 4, 5), "R": f(1, 4, 4)}}
    steps = plan(single(op_type, old, {"X": SERIES}, constants.get(op_type), **attributes), new)
    assert not isinstance(steps, Refusal), steps.reason
    assert not any(step.edits for step in steps)


@pytest.mark.parametrize(
    ("model", "target", "reason"),
    [
        (single("BatchNormalization", 7, {"X": IMAGE}, STATISTICS, spatial=0), 11, "spatial"),
        (single("Dropout", 7, {"X": IMAGE}, None, 2), 11, "mask"),
        (single("NoSuchOperator", 9, {"X": X}), 11, "NoSuchOperator"),
        (single("Relu", 9, {"X": X}), 4000, "newer than"),
    ],
)
def test_what_is_refused_names_the_node(model: ModelProto, target: int, reason: str) -> None:
    result = plan(model, target)
    assert isinstance(result, Refusal)
    assert reason in result.reason


def test_unused_dropout_mask_is_dropped() -> None:
    model = single("Dropout", 7, {"X": X}, None, 2)
    del model.graph.output[1]
    steps = plan(model, 13)
    assert not isinstance(steps, Refusal), steps.reason
    np.testing.assert_array_equal(run(apply(model, steps, 13), {"X": X})[0], X)


def test_legacy_resampling_is_left_to_its_rules() -> None:
    scales = np.array([1, 1, 2, 2], np.float32)
    for op_type, opset, target, code in (("Upsample", 9, 11, "PF201"), ("Resize", 10, 13, "PF202")):
        proto = single(op_type, opset, {"X": f(1, 1, 2, 2)}, {"scales": scales})
        edits = plan_move(Model(proto), infer(Model(proto)), target, RULES, named("onnx"))
        assert not isinstance(edits, Refusal)
        assert [edit.finding.rule for edit in edits] == [code]


def test_bodies_and_functions_are_moved_too() -> None:
    body = [
        helper.make_graph(
            [helper.make_node("Clip", ["X"], [f"{name}_out"], min=0.0)],
            name,
            [],
            [helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, [2, 3])],
        )
        for name in ("then", "else")
    ]
    nodes = [
        helper.make_node("If", ["condition"], ["chosen"], then_branch=body[0], else_branch=body[1]),
        helper.make_node("Mine", ["chosen"], ["Y"], domain="mine"),
    ]
    function = helper.make_function(
        "mine",
        "Mine",
        ["a"],
        ["b"],
        [helper.make_node("Softmax", ["a"], ["b"])],
        [helper.make_opsetid("", 9)],
    )
    graph = helper.make_graph(
        nodes,
        "graph",
        [
            helper.make_tensor_value_info("condition", TensorProto.BOOL, []),
            helper.make_tensor_value_info("X", TensorProto.FLOAT, [2, 3]),
        ],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [2, 3])],
    )
    imports = [helper.make_opsetid("", 9), helper.make_opsetid("mine", 1)]
    model = helper.make_model(graph, functions=[function], opset_imports=imports, ir_version=8)
    steps = plan(model, 13)
    assert not isinstance(steps, Refusal), steps.reason
    assert [(step.site.node.op_type, step.site.scope.path.split("/")[0].split(":")[0]) for step in steps] == [
        ("Clip", "main"),
        ("Clip", "main"),
        ("Softmax", "function"),
    ]


def test_attribute_of_the_functions_caller_is_refused_only_where_it_matters() -> None:
    def function(op_type: str, name: str) -> ModelProto:
        node = helper.make_node(op_type, ["a"], ["b"])
        attribute = node.attribute.add()
        attribute.name, attribute.ref_attr_name = name, "given"
        attribute.type = schema_type(op_type, name)
        made = helper.make_function("mine", "F", ["a"], ["b"], [node], [helper.make_opsetid("", 9)], ["given"])
        graph = helper.make_graph([], "graph", [], [])
        return helper.make_model(graph, functions=[made], opset_imports=[helper.make_opsetid("", 9)])

    def schema_type(op_type: str, name: str) -> int:
        return int(onnx.defs.get_schema(op_type, 9).attributes[name].type.value)

    assert isinstance(plan(function("Softmax", "axis"), 13), Refusal)
    assert plan(function("LeakyRelu", "alpha"), 16) == []


def test_the_official_converter_is_asked_once_for_nodes_that_differ_in_names(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = "a = Unsqueeze<axes = [0]>(X) b = Unsqueeze<axes = [0]>(Z) c = Unsqueeze<axes = [1]>(X) Y = Sum(a, b, c)"
    model = onnx.parser.parse_model(
        '<ir_version: 7, opset_import: ["" : 12]> '
        f"g (float[1, 1, 77] X, float[1, 1, 77] Z) => (float[1, 1, 1, 77] Y) {{ {graph} }}"
    )
    asked = []
    convert = version_converter.convert_version

    def counted(single: ModelProto, target: int) -> ModelProto:
        asked.append(single)
        return convert(single, target)

    monkeypatch.setattr(version_converter, "convert_version", counted)
    steps = plan(model, 13)
    assert not isinstance(steps, Refusal)
    read = [node.input[0] for step in steps for node in step.rewrite.after.nodes if node.op_type == "Unsqueeze"]
    assert read == ["X", "Z", "X"]
    assert len(asked) == 2


def test_a_model_with_an_unused_mask_is_converted(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Dropout", ["X"], ["kept", "mask"]),
        helper.make_node("Upsample", ["kept", "scales"], ["larger"], mode="nearest"),
        helper.make_node("Softmax", ["larger"], ["Y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, 2, 3, 4])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [1, 2, 6, 8])],
        [numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=8)
    onnx.save(model, tmp_path / "before.onnx")
    report = padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", opset=13)
    assert report.verdict is not None
    assert report.verdict.equivalent
    after = onnx.load(tmp_path / "after.onnx")
    assert after.opset_import[0].version == 13
    assert {node.op_type for node in after.graph.node} >= {"Dropout", "Resize", "Softmax"}


def test_a_batch_normalisation_of_an_unknown_rank_is_moved(tmp_path: Path) -> None:
    """Its parameters tell how many channels there are."""
    parameters = [numpy_helper.from_array(np.full(7, 0.5, np.float32), name) for name in ("s", "b", "m", "v")]
    graph = helper.make_graph(
        [
            helper.make_node("Reshape", ["X", "shape"], ["x"]),
            helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["Y"]),
        ],
        "graph",
        [
            helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n"]),
            helper.make_tensor_value_info("shape", TensorProto.INT64, ["rank"]),
        ],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None] * 4)],
        parameters,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)]), tmp_path / "before.onnx")
    np.savez(tmp_path / "probe.npz", X=np.arange(140, dtype=np.float32), shape=np.array([2, 7, 5, 2]))
    probes = [tmp_path / "probe.npz"]
    report = padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", opset=15, probes=probes)
    assert report.written


def test_what_the_runtime_runs_in_neither_form_is_moved_by_the_specification(tmp_path: Path) -> None:
    """ONNX Runtime lacks padding by name for dilations; the Upsample behind needs a newer opset."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], auto_pad="SAME_LOWER", dilations=[2, 2]),
        helper.make_node("Upsample", ["c"], ["y"], scales=[1.0, 1.0, 2.0, 2.0]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 5, 5])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 10, 10])
    weights = helper.make_tensor("w", TensorProto.FLOAT, [2, 2, 3, 3], [0.5] * 36)
    graph = helper.make_graph(nodes, "g", [x], [y], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)], ir_version=8), tmp_path / "a.onnx")
    report = padfix.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", reference="spec")
    assert report.verdict is not None and report.verdict.equivalent
    assert not padfix.check(tmp_path / "b.onnx").findings
