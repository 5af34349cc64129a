"""Every raise of the opset of onnx's own node tests, and of operators as they were before those, keeps the numbers.

The result of a raise is held against the data that comes with the test (for older forms: against the specification's
run of the original). A raise may be declined, with a reason; it may not be wrong.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import ModelProto, defs, helper, numpy_helper

import padfix
from padfix.errors import ProofUnavailableError, UsageError
from padfix.files.model import Model
from padfix.graph.scopes import all_nodes
from padfix.proof.executors import ExecutionFailed, OnnxRuntimeExecutor
from padfix.proof.spec_executor import SpecExecutor
from padfix.rewrite.engine import rewrite_model

NEWEST = defs.onnx_opset_version()
NUMBERS = np.random.default_rng(11)
ONE_OF = 100
"""Of the node tests, how many are run each time; all of them in the slow test."""


def f(*shape: int) -> np.ndarray:
    return NUMBERS.standard_normal(shape).astype(np.float32)


def i(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@cache
def newest_of_runtime() -> int:
    """Return the newest opset that the installed ONNX Runtime loads."""
    for opset in range(NEWEST, 0, -1):
        try:
            OnnxRuntimeExecutor(single("Relu", opset, [f(1)]).SerializeToString(), optimised=False)
        except ExecutionFailed:
            continue
        return opset
    raise AssertionError


def single(
    op_type: str,
    opset: int,
    arrays: Sequence[np.ndarray],
    constants: Sequence[int] = (),
    outputs: int = 1,
    **given: Any,
) -> ModelProto:
    """Return a model of one node; the inputs at the positions ``constants`` are initializers."""
    names = [f"X{position}" for position in range(len(arrays))]
    results = [f"Y{position}" for position in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, **given)],
        "graph",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for position, (name, array) in enumerate(zip(names, arrays, strict=True))
            if position not in constants
        ],
        [helper.make_empty_tensor_value_info(name) for name in results],
        [numpy_helper.from_array(arrays[position], names[position]) for position in constants],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def versions(model: ModelProto, opset: int) -> list[int]:
    """Return the version of every operator of the default domain at an opset."""
    found = []
    for container in (model.graph, *model.functions):
        for node in all_nodes(container.node):
            if node.domain in ("", "ai.onnx"):
                try:
                    found.append(int(defs.get_schema(node.op_type, opset, "").since_version))
                except defs.SchemaError:
                    found.append(0)
    return found


def targets(model: ModelProto) -> list[int]:
    """Return the opsets above a model's at which one of its operators changes, and the newest ones."""
    own = {each.domain: each.version for each in model.opset_import}.get("", 0)
    changing = [n for n in range(own + 1, NEWEST + 1) if versions(model, n) != versions(model, n - 1)]
    ends = [n for n in (newest_of_runtime(), NEWEST) if n > own]
    return sorted({*changing, *ends}) if own else []


def alike(expected: Any, found: Any, rtol: float, atol: float) -> bool:
    if isinstance(expected, (list, tuple)) or expected is None:
        return True  # sequences and optionals come out flattened
    first, second = np.asarray(expected), np.asarray(found)
    if first.shape != second.shape:
        return False
    if first.dtype.kind in "OSU":
        return bool(first.astype(str).tolist() == second.astype(str).tolist())
    if first.dtype != second.dtype:
        return False
    if first.dtype.kind in "iub":
        return bool(np.array_equal(first, second))
    wide, other = first.astype(np.complex128), second.astype(np.complex128)
    if first.dtype.kind != "c":  # a sum of rounded numbers is known to two of its last places at best
        rtol = max(rtol, 2 * float(ml_dtypes.finfo(first.dtype).eps))
    return bool(np.allclose(wide, other, rtol=rtol, atol=atol, equal_nan=True))


Case = tuple[dict[str, Any], list[Any]]


def judged(model: ModelProto, cases: Sequence[Case], rtol: float, atol: float) -> dict[str, bool | None]:
    """Return whether each witness gives the expected outputs; None when it can't run the model."""
    names = [output.name for output in model.graph.output]
    serialized, verdicts = model.SerializeToString(), {}
    for name in ("onnxruntime", "optimised", "spec"):
        try:
            executor = (
                SpecExecutor(serialized)
                if name == "spec"
                else OnnxRuntimeExecutor(serialized, optimised=name == "optimised", threads=1)
            )
            verdicts[name] = all(
                alike(expected, executor.run(feeds).get(output), rtol, atol)
                for feeds, outputs in cases
                for output, expected in zip(names, outputs, strict=False)
            )
        except ExecutionFailed:
            verdicts[name] = None
    return verdicts


def wrong_raises(name: str, model: ModelProto, cases: Sequence[Case], rtol: float, atol: float) -> list[str]:
    """Raise ``model`` to every opset that changes it, and return a line for each result that is not right."""
    wrong = []
    for target in targets(model):
        raised = Model(ModelProto.FromString(model.SerializeToString()))
        try:
            rewrite_model(raised, opset=target)
        except UsageError as refusal:
            assert "opset" in str(refusal)
            assert {each.version for each in raised.proto.opset_import} == {each.version for each in model.opset_import}
            continue
        lost = what_is_wrong(f"{name} to {target}", model, raised.proto, cases, rtol, atol)
        wrong += [] if lost and has_no_judge(model, target) else lost
    return wrong


def has_no_judge(model: ModelProto, opset: int) -> bool:
    """Whether ``convert`` says that nothing runs what it would write, and writes nothing."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "model.onnx"), Path(folder, "result.onnx")
        onnx.save(model, source)
        try:
            padfix.convert(source, result, opset=opset)
        except ProofUnavailableError:
            return not result.exists()
    return False


def what_is_wrong(
    name: str, model: ModelProto, moved: ModelProto, cases: Sequence[Case], rtol: float, atol: float
) -> list[str]:
    """Return a line where a witness that found ``model`` right finds ``moved``, the same at another opset, wrong."""
    before, after = judged(model, cases, rtol, atol), judged(moved, cases, rtol, atol)
    newest = max(each.version for each in moved.opset_import if not each.domain)
    witnesses = ["spec"] if newest > newest_of_runtime() else list(after)
    lost = [each for each in witnesses if before[each] and not after[each]]
    if lost or (not any(before.values()) and False in after.values() and False not in before.values()):
        return [f"{name}: {before} became {after}"]
    return []


@cache
def node_tests() -> list[tuple[str, bytes, list[Case], float, float]]:
    from onnx.backend.test.case.node import collect_testcases

    found = []
    for case in collect_testcases(None):
        names = [each.name for each in case.model.graph.input]
        data = [(dict(zip(names, inputs, strict=False)), list(outputs)) for inputs, outputs in case.data_sets]
        found.append((case.name, case.model.SerializeToString(), data, max(case.rtol, 1e-3), max(case.atol, 1e-6)))
    return found


def sweep(step: int, moves: Callable[..., list[str]] = wrong_raises) -> list[str]:
    wrong = []
    for name, serialized, data, rtol, atol in node_tests()[::step]:
        wrong += moves(name, ModelProto.FromString(serialized), data, rtol, atol)
    return wrong


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_the_node_tests_stays_right() -> None:
    assert sweep(ONE_OF) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_node_test_stays_right() -> None:
    assert sweep(1) == []


IMAGE = f(2, 3, 4, 4)
GROUPS = f(2, 6, 4, 4)
OLD_FORMS: list[tuple[str, int, list[np.ndarray], dict[str, Any]]] = [
    ("Add", 6, [IMAGE, f(3)], {"broadcast": 1, "axis": 1}),
    ("AveragePool", 1, [IMAGE], {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}),
    ("BatchNormalization", 1, [IMAGE, f(3), f(3), f(3), abs(f(3))], {"is_test": 1, "consumed_inputs": [0, 0, 0, 1, 1]}),
    ("BatchNormalization", 6, [IMAGE, f(3), f(3), f(3), abs(f(3))], {"is_test": 1}),
    ("BatchNormalization", 9, [IMAGE, f(3), f(3), f(3), abs(f(3))], {}),
    ("Cast", 1, [IMAGE], {"to": "INT32"}),
    ("Clip", 1, [IMAGE], {"min": -0.5}),
    ("Concat", 1, [IMAGE, IMAGE], {}),
    ("DFT", 17, [f(2, 5, 6, 1)], {"axis": 2}),
    ("DFT", 17, [f(2, 5, 6, 1)], {}),
    ("Div", 6, [IMAGE, abs(f(4)) + 1], {"broadcast": 1}),
    ("Dropout", 1, [IMAGE], {"is_test": 1}),
    ("Dropout", 6, [IMAGE], {"is_test": 1, "ratio": 0.3}),
    ("Dropout", 7, [IMAGE], {"ratio": 0.3}),
    ("Elu", 1, [IMAGE], {"consumed_inputs": [0]}),
    ("GRU", 1, [f(3, 1, 2), f(1, 12, 2), f(1, 12, 4)], {"hidden_size": 4, "output_sequence": 1}),
    ("Gemm", 6, [f(2, 3), f(3, 4), f(4)], {"broadcast": 1, "alpha": 0.5}),
    ("GlobalLpPool", 1, [IMAGE], {"p": 3.0}),
    ("GridSample", 16, [f(1, 1, 3, 3), f(1, 2, 2, 2)], {"mode": "bicubic"}),
    ("GroupNormalization", 18, [GROUPS, f(2), f(2)], {"num_groups": 2}),
    ("GroupNormalization", 18, [GROUPS, f(6), f(6)], {"num_groups": 6}),
    ("Hardmax", 1, [IMAGE], {"axis": 2}),
    ("InstanceNormalization", 1, [IMAGE, f(3), f(3)], {"consumed_inputs": [0, 0, 0]}),
    ("LSTM", 1, [f(3, 1, 2), f(1, 16, 2), f(1, 16, 4)], {"hidden_size": 4, "output_sequence": 1}),
    ("LpPool", 1, [IMAGE], {"kernel_shape": [2, 2], "p": 1.0}),
    ("MaxPool", 1, [IMAGE], {"kernel_shape": [2, 2]}),
    ("Mean", 1, [IMAGE, IMAGE], {"consumed_inputs": [0, 0]}),
    ("OneHot", 9, [np.array([[0, -1, 2], [5, -7, 1]]), i(3), f(2)], {"axis": 1}),
    ("OneHot", 9, [np.array([[0, -1, 2], [5, -7, 1]], np.float32), i(3), f(2)], {}),
    ("PRelu", 6, [IMAGE, f(3)], {}),
    ("Pad", 1, [IMAGE], {"paddings": [0, 0, 1, 1, 0, 0, 1, 1], "value": 2.0}),
    ("Pow", 1, [abs(IMAGE), f(3)], {"broadcast": 1, "axis": 1}),
    ("RNN", 1, [f(3, 1, 2), f(1, 4, 2), f(1, 4, 4)], {"hidden_size": 4, "output_sequence": 1}),
    ("ReduceMean", 1, [IMAGE], {"axes": [1]}),
    ("Reshape", 1, [IMAGE], {"shape": [0, -1]}),
    ("RoiAlign", 10, [f(1, 2, 6, 6), np.array([[0, 0, 3.3, 4.1]], np.float32), i(0)], {"sampling_ratio": 2}),
    ("Scatter", 9, [f(2, 5), np.array([[4, 0, 2]] * 2), f(2, 3)], {"axis": 1}),
    ("ScatterElements", 11, [f(2, 5), np.array([[4, 0, 2]] * 2), f(2, 3)], {"axis": 1}),
    ("ScatterND", 11, [f(4, 3), i(3, 1).reshape(2, 1), f(2, 3)], {}),
    ("Selu", 1, [IMAGE], {}),
    ("Selu", 1, [IMAGE], {"alpha": 2.0}),
    ("Slice", 1, [IMAGE], {"starts": [1], "ends": [2]}),
    ("Softmax", 1, [IMAGE], {}),
    ("Split", 1, [IMAGE], {"axis": 3, "split": [1, 3]}),
    ("Split", 13, [IMAGE], {"axis": 3}),
    ("Squeeze", 1, [f(1, 2)], {"axes": [0]}),
    ("Sum", 1, [IMAGE, IMAGE], {"consumed_inputs": [0, 0]}),
    ("Swish", 24, [IMAGE], {}),
    ("Tile", 1, [IMAGE, np.full(1, 2, np.float32), np.full(1, 1, np.float32)], {}),
    ("TopK", 1, [IMAGE], {"k": 2}),
    ("TopK", 10, [IMAGE, i(2)], {}),
    ("Unsqueeze", 1, [IMAGE], {"axes": [0]}),
]


@pytest.mark.sweep(5)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("constant", [False, True], ids=["computed", "constant"])
@pytest.mark.parametrize("form", OLD_FORMS, ids=lambda form: f"{form[0]}-{form[1]}-{form[3]}")
def test_an_old_form_stays_right(form: tuple[str, int, list[np.ndarray], dict[str, Any]], constant: bool) -> None:
    op_type, opset, arrays, given = form
    positions = [place for place, array in enumerate(arrays) if place and array.size <= 16] if constant else []
    if constant and not positions:
        pytest.skip("has no small input")
    model = single(op_type, opset, arrays, positions, 2 if op_type in ("Split", "TopK") else 1, **given)
    feeds = {f"X{place}": array for place, array in enumerate(arrays) if place not in positions}
    expected = SpecExecutor(model.SerializeToString()).run(feeds)
    assert wrong_raises(op_type, model, [(feeds, list(expected.values()))], 1e-5, 1e-5) == []


@pytest.mark.parametrize(
    ("op_type", "opset", "arrays", "given", "target"),
    [
        ("GroupNormalization", 18, [GROUPS, f(2), f(2)], {"num_groups": 2}, 21),
        ("GroupNormalization", 18, [GROUPS.astype(np.float16), *[f(2).astype(np.float16)] * 2], {"num_groups": 2}, 22),
        ("Selu", 1, [IMAGE], {}, 11),
        ("Scatter", 9, [f(2, 5), np.array([[4, 0, 2]] * 2), f(2, 3)], {"axis": 1}, 18),
        ("Split", 13, [IMAGE], {"axis": 3}, 18),
        ("RoiAlign", 10, [f(1, 2, 6, 6), np.array([[0, 0, 3.3, 4.1]], np.float32), i(0)], {"sampling_ratio": 2}, 16),
        ("Tile", 1, [IMAGE, np.full(1, 2, np.float32), np.full(1, 1, np.float32)], {}, 13),
    ],
)
def test_what_was_wrong_once_is_raised(
    op_type: str, opset: int, arrays: list[np.ndarray], given: dict[str, Any], target: int, tmp_path: Path
) -> None:
    """None of these may be declined either."""
    positions = [1, 2] if op_type == "Tile" else []
    model = single(op_type, opset, arrays, positions, 2 if op_type == "Split" else 1, **given)
    feeds = {f"X{place}": array for place, array in enumerate(arrays) if place not in positions}
    expected = SpecExecutor(model.SerializeToString()).run(feeds)
    for output in model.graph.output:
        elem_type = helper.np_dtype_to_tensor_dtype(expected[output.name].dtype)
        output.CopyFrom(helper.make_tensor_value_info(output.name, elem_type, expected[output.name].shape))
    onnx.save(model, tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", opset=target, reference="spec")
    after = onnx.load(tmp_path / "after.onnx")
    assert after.opset_import[0].version == target
    onnx.checker.check_model(after, full_check=True)
    tolerance = 2e-2 if arrays[0].dtype == np.float16 else 1e-5
    verdicts = judged(after, [(feeds, list(expected.values()))], tolerance, tolerance)
    assert verdicts["spec"]
    assert verdicts["optimised"] is not False


@pytest.mark.parametrize(
    ("model", "target", "reason"),
    [
        (single("Swish", 24, [IMAGE]), 26, "ONNX Runtime can't load the new form"),
        (single("OneHot", 11, [i(1), i(3), f(2)]), NEWEST, "it knows opsets up to"),
        (single("Dropout", 6, [IMAGE]), 13, "written for training"),
        (single("BatchNormalization", 6, [IMAGE, f(3), f(3), f(3), abs(f(3))]), 13, "written for training"),
        (single("GlobalLpPool", 1, [IMAGE], p=2.5), 13, "whole numbers"),
        (single("RNN", 1, [f(3, 1, 2), f(1, 4, 2), f(1, 4, 4)], hidden_size=4), 13, "output_sequence"),
    ],
)
def test_what_can_not_be_raised_is_declined(tmp_path: Path, model: ModelProto, target: int, reason: str) -> None:
    if reason.startswith("it knows") and newest_of_runtime() == NEWEST:
        pytest.skip("the installed ONNX Runtime knows every opset")
    onnx.save(model, tmp_path / "before.onnx")
    with pytest.raises(UsageError, match=reason):
        padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", opset=target, reference="spec")
    assert not (tmp_path / "after.onnx").exists()


def old_network(opset: int) -> ModelProto:
    """Return a small classifier as it was written for opset 1 to 6, without a type on any inner value."""
    hint = (lambda count: {"consumed_inputs": [0] * count}) if opset < 6 else (lambda count: {})
    statistics = {"consumed_inputs": [0, 0, 0, 1, 1]} if opset < 6 else {}
    weights = {"W": f(4, 3, 3, 3), "g": f(4), "b": f(4), "m": f(4), "v": abs(f(4)), "k": f(4), "G": f(32, 5), "c": f(5)}
    if opset < 5:
        flat = helper.make_node("Reshape", ["kept"], ["flat"], shape=[0, -1], **hint(1))
    else:
        flat, weights["shape"] = helper.make_node("Reshape", ["kept", "shape"], ["flat"]), i(0, -1)
    nodes = [
        helper.make_node("Conv", ["X", "W"], ["conv"], kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2]),
        helper.make_node("BatchNormalization", ["conv", "g", "b", "m", "v"], ["normal"], is_test=1, **statistics),
        helper.make_node("Relu", ["normal"], ["relu"], **hint(1)),
        helper.make_node("Add", ["relu", "k"], ["sum"], broadcast=1, axis=1, **hint(2)),
        helper.make_node("Concat", ["sum", "relu"], ["both"], **({} if opset < 4 else {"axis": 1})),
        helper.make_node("MaxPool", ["both"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Dropout", ["pooled"], ["kept"], is_test=1, ratio=0.5, **hint(1)),
        flat,
        helper.make_node("Gemm", ["flat", "G", "c"], ["scores"], broadcast=1),
        helper.make_node("Softmax", ["scores"], ["Y"]),
    ]
    declared = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in weights.items()
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, [1, 3, 8, 8]), *declared],
        [helper.make_tensor_value_info("Y", onnx.TensorProto.FLOAT, [1, 5])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


@pytest.mark.parametrize("opset", range(1, 7))
def test_an_old_network_is_raised_and_proven_by_the_specification(tmp_path: Path, opset: int) -> None:
    onnx.save(old_network(opset), tmp_path / "before.onnx")
    with pytest.raises(padfix.PadfixError, match="--reference spec"):
        padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", opset=13)
    report = padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", opset=13, reference="spec")
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert onnx.load(tmp_path / "after.onnx").opset_import[0].version == 13
