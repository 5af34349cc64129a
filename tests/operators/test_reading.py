"""The one reading of an operator: how often, from what, and when it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import padfix
from padfix.files.model import Model
from padfix.operators import inference, reading
from padfix.operators.inference import infer
from padfix.operators.reading import read, read_resample, read_transposed, read_window
from padfix.operators.refusal import Meaningless, Refusal, UnknownRank
from padfix.operators.window import Window

FLOAT = TensorProto.FLOAT


def model_of(
    nodes: list[NodeProto],
    inputs: dict[str, list[Any] | None],
    weights: dict[str, tuple[int, ...]] | None = None,
    opsets: dict[str, int] | None = None,
    output: list[int] | None = None,
) -> ModelProto:
    random = np.random.default_rng(0)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(nodes[-1].output[0], FLOAT, output)],
        [
            numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)
            for name, shape in (weights or {}).items()
        ],
    )
    imports = {"": 17, "com.microsoft": 1} if opsets is None else opsets
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*each) for each in imports.items()], ir_version=8
    )


def saved(folder: Path, model: ModelProto) -> Path:
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize("shape", [[1, 2, 32, 32], [1, 2, "h", "w"]])
def test_check_reads_each_node_of_a_chain_once(
    shape: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = []
    for index in range(60):
        names = [f"v{index - 1}" if index else "X", "W"]
        op_type = "Conv" if index % 2 else "MaxPool"
        inputs = names if index % 2 else names[:1]
        nodes.append(helper.make_node(op_type, inputs, [f"v{index}"], kernel_shape=[3, 3], auto_pad="SAME_UPPER"))
    read_nodes: list[str] = []
    original = reading.read_at

    def counted(node: NodeProto, *arguments: Any) -> Any:
        read_nodes.append(node.output[0])
        return original(node, *arguments)

    monkeypatch.setattr(reading, "read_at", counted)
    monkeypatch.setattr(inference, "read_at", counted)
    path = saved(tmp_path, model_of(nodes, {"X": shape}, {"W": (2, 2, 3, 3)}))
    assert len(padfix.check(path).findings) == 60
    assert sorted(read_nodes) == sorted(f"v{index}" for index in range(60))


def test_a_reading_is_kept_until_the_types_change_or_the_scope_is_edited() -> None:
    node = helper.make_node("MaxPool", ["X"], ["Y"], kernel_shape=[2, 2])
    scope = infer(Model(model_of([node], {"X": [1, 1, 4, 4]})))[0]
    first = read(scope, scope.nodes[0])
    assert isinstance(first, Window)
    assert read(scope, scope.nodes[0]) is first
    scope.types["X"] = scope.types["X"].__class__(FLOAT, (1, 1, 6, 6))
    second = read_window(scope, scope.nodes[0])
    assert isinstance(second, Window)
    assert second.sizes == (6, 6)
    scope.nodes[0].attribute[0].ints[:] = [3, 3]
    scope.refresh()
    third = read_window(scope, scope.nodes[0])
    assert isinstance(third, Window)
    assert third.kernel == (3, 3)


@pytest.mark.parametrize("output_shape", [[10, 12], [1, 8, 10, 12]])
def test_output_shape_may_list_all_axes(output_shape: list[int], tmp_path: Path) -> None:
    node = helper.make_node("ConvTranspose", ["X", "W"], ["Y"], output_shape=output_shape, strides=[2, 2])
    path = saved(tmp_path, model_of([node], {"X": [1, 4, 5, 6]}, {"W": (4, 8, 3, 3)}, output=[1, 8, 10, 12]))
    assert [finding.rule for finding in padfix.check(path).findings] == ["PF105"]
    report = padfix.convert(path, tmp_path / "after.onnx", reference="spec")
    assert [each.finding.rule for each in report.rewrites] == ["PF105"]
    after = onnx.load(tmp_path / "after.onnx")
    lengths = [dimension.dim_value for dimension in after.graph.output[0].type.tensor_type.shape.dim]
    assert lengths == [1, 8, 10, 12]
    onnx.checker.check_model(after, full_check=True)


@pytest.mark.parametrize(
    ("node", "inputs", "words"),
    [
        (helper.make_node("Conv", ["X"], ["Y"], kernel_shape=[3, 3]), [1, 1, 5, 5], "1 inputs where"),
        (helper.make_node("Conv", ["X", ""], ["Y"], kernel_shape=[3, 3]), [1, 1, 5, 5], "leaves out input 1"),
        (helper.make_node("Relu", ["X", "X"], ["Y"]), [1, 1, 5, 5], "2 inputs where"),
        (helper.make_node("Add", ["X", ""], ["Y"]), [1, 1, 5, 5], "leaves out input 1"),
        (
            helper.make_node("NhwcMaxPool", ["X", "X"], ["Y"], domain="com.microsoft", kernel_shape=[3, 3]),
            [1, 5, 5, 1],
            "2 inputs where",
        ),
        (helper.make_node("Conv", ["X", "W"], ["Y"], strides=[0, 1]), [1, 1, 5, 5], "strides"),
        (helper.make_node("Conv", ["X", "W"], ["Y"]), [1, 1, 5], "3 axes"),
        (helper.make_node("Conv", ["X", "W"], ["Y"], auto_pad="SAME"), [1, 1, 5, 5], "auto_pad='SAME'"),
        (helper.make_node("ConvTranspose", ["X", "W"], ["Y"], auto_pad="SAME"), [1, 1, 5, 5], "auto_pad='SAME'"),
        (helper.make_node("Conv", ["X", "W"], ["Y"], pads=[1, 1]), [1, 1, 5, 5], "pads"),
        (helper.make_node("Conv", ["X", "W"], ["Y"], pads=[-1, 0, 0, 0]), [1, 1, 5, 5], "negative"),
        (helper.make_node("MaxPool", ["X"], ["Y"], kernel_shape=[0, 3]), [1, 1, 5, 5], "kernel_shape"),
    ],
)
def test_what_has_no_meaning_is_an_error_of_check_and_stops_convert(
    node: NodeProto, inputs: list[int], words: str, tmp_path: Path
) -> None:
    path = saved(tmp_path, model_of([node], {"X": inputs}, {"W": (1, 1, 3, 3)}))
    (finding,) = padfix.check(path).findings
    assert finding.severity.value == "error"
    assert words in finding.message
    with pytest.raises(padfix.SourceError) as caught:
        padfix.convert(path, tmp_path / "after.onnx")
    assert words in str(caught.value)
    assert not (tmp_path / "after.onnx").exists()


@pytest.mark.parametrize("mode", ["SAME_UPPER", "VALID"])
def test_pads_that_auto_pad_overrides_may_be_of_any_length(mode: str, tmp_path: Path) -> None:
    node = helper.make_node("MaxPool", ["X"], ["Y"], kernel_shape=[3, 3], auto_pad=mode, pads=[1, 1, 1])
    path = saved(tmp_path, model_of([node], {"X": [1, 1, 5, 5]}))
    assert [finding.rule for finding in padfix.check(path).findings] == ["PF104"]
    assert padfix.inspect(path)[0].pads == ((1, 1, 1, 1) if mode == "SAME_UPPER" else (0, 0, 0, 0))


def test_valid_needs_neither_a_kernel_nor_a_rank(tmp_path: Path) -> None:
    branches = [
        helper.make_graph(
            [helper.make_node(op_type, inputs, [f"b{index}"], name=f"n{index}", **attributes)],
            f"branch{index}",
            [],
            [helper.make_tensor_value_info(f"b{index}", FLOAT, None)],
        )
        for index, (op_type, inputs, attributes) in enumerate(
            [("Conv", ["X", "W"], {"auto_pad": "VALID"}), ("Identity", ["X"], {})]
        )
    ]
    node = helper.make_node("If", ["flag"], ["Y"], name="if", then_branch=branches[0], else_branch=branches[1])
    model = model_of([node], {"X": None, "W": None})
    model.graph.input.append(helper.make_tensor_value_info("flag", TensorProto.BOOL, []))
    path = saved(tmp_path, model)
    body = next(scope for scope in infer(Model(model)) if scope.path.endswith("then_branch"))
    assert isinstance(read_window(body, body.nodes[0]), UnknownRank)
    report = padfix.convert(path, tmp_path / "after.onnx", shapes={"X": (1, 1, 5, 5), "W": (1, 1, 3, 3)})
    assert [each.finding.rule for each in report.rewrites] == ["PF103"] and not report.refusals
    report = padfix.convert(path, tmp_path / "after.onnx", verify=False)
    assert [each.finding.rule for each in report.rewrites] == ["PF103"] and not report.refusals
    (conv,) = onnx.load(tmp_path / "after.onnx").graph.node[0].attribute[1].g.node
    assert conv.op_type == "Conv" and not conv.attribute


def test_a_pool_with_a_mask_gets_its_pads_written_out(tmp_path: Path) -> None:
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}
    node = helper.make_node("MaxpoolWithMask", ["X", "M"], ["Y"], domain="com.microsoft", **window)
    model = model_of([node], {"X": [1, 2, 8, 9]})
    model.graph.input.append(helper.make_tensor_value_info("M", TensorProto.INT32, [1, 2, 8, 9]))
    report = padfix.convert(saved(tmp_path, model), tmp_path / "after.onnx")
    assert [each.finding.rule for each in report.rewrites] == ["PF101"]
    assert report.verdict is not None and report.verdict.equivalent
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[2].dim_param = "h"
    report = padfix.convert(saved(tmp_path, model), tmp_path / "after.onnx", partial=True)
    assert [(each.finding.rule, "mask" in each.reason) for each in report.refusals] == [("PF102", True)]


@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("size", [9, "h"])
def test_without_an_import_the_reason_says_just_that(op_type: str, size: int | str, tmp_path: Path) -> None:
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "dilations": [1, 1], "auto_pad": "SAME_UPPER"}
    model = model_of(
        [helper.make_node(op_type, ["X"], ["Y"], **window)], {"X": [1, 2, size, 9]}, opsets={"com.microsoft": 1}
    )
    (finding,) = padfix.check(saved(tmp_path, model)).findings
    assert not finding.fixable
    assert "imports no version" in finding.hint


def test_a_function_without_an_import_is_read_by_the_models(tmp_path: Path) -> None:
    window = {"kernel_shape": [3, 3], "dilations": [2, 2], "auto_pad": "VALID"}
    body = helper.make_function(
        "local", "Pool", ["a"], ["b"], [helper.make_node("AveragePool", ["a"], ["b"], **window)], []
    )
    model = model_of([helper.make_node("Pool", ["X"], ["Y"], domain="local")], {"X": [1, 1, 9, 9]}, opsets={"": 20})
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.append(body)
    (finding,) = padfix.check(saved(tmp_path, model)).findings
    assert finding.fixable


def test_readers_by_family() -> None:
    nodes = [
        helper.make_node("ConvTranspose", ["X", "W"], ["a"], auto_pad="SAME_LOWER", strides=[2, 3], group=2),
        helper.make_node("Resize", ["a", "", "S"], ["b"], mode="nearest"),
        helper.make_node("Upsample", ["a", "S"], ["c"]),
    ]
    model = model_of(nodes, {"X": [1, 4, "h", 5]}, {"W": (4, 3, 3, 3)})
    model.graph.initializer.append(numpy_helper.from_array(np.array([1, 1, 2, 0.5], np.float32), "S"))
    scope = infer(Model(model))[0]
    transposed = read_transposed(scope, scope.nodes[0])
    assert not isinstance(transposed, Refusal)
    assert (transposed.channels, transposed.maps, transposed.output_sizes()) == (4, 6, ("2*h", 15))
    resize = read_resample(scope, scope.nodes[1])
    assert not isinstance(resize, Refusal)
    assert (resize.is_legacy, resize.coordinates, resize.output_shape()) == (False, "half_pixel", (1, 6, "4*h", 7))
    assert isinstance(read_resample(scope, scope.nodes[2]), Meaningless | Refusal)
