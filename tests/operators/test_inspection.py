"""Inspection of ONNX models: what is written and what it resolves to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from onnx import FunctionProto, ModelProto, TensorProto, helper

import padfix
from padfix.files.model import Model
from padfix.operators.inspection import inspect_model
from padfix.results import OpRecord

FIXTURES = Path(__file__).parents[2] / "fixtures" / "onnx"
FLOAT = TensorProto.FLOAT


def build(nodes: list[Any], shape: list[Any], weights: dict[str, list[int]], *, functions: Any = ()) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("X", FLOAT, shape)],
        [helper.make_tensor_value_info("Y", FLOAT, None)],
        [helper.make_tensor(name, FLOAT, dims, bytes(4 * _product(dims)), raw=True) for name, dims in weights.items()],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, functions=list(functions))


def _product(dims: list[int]) -> int:
    product = 1
    for dim in dims:
        product *= dim
    return product


def only(node: Any, shape: list[Any], weights: dict[str, list[int]] | None = None) -> OpRecord:
    (record,) = inspect_model(Model(build([node], shape, weights or {})))
    return record


def test_a_convolution_takes_its_kernel_from_its_weights() -> None:
    node = helper.make_node(
        "Conv", ["X", "W"], ["Y"], name="c", auto_pad="SAME_LOWER", strides=[2, 3], dilations=[1, 2]
    )
    assert only(node, [1, 2, 8, 9], {"W": [4, 2, 3, 2]}) == OpRecord(
        "c", "Conv", "main", (3, 2), (2, 3), (1, 2), "SAME_LOWER", (1, 0, 0, 0), "NCHW"
    )


def test_each_axis_is_resolved_on_its_own() -> None:
    node = helper.make_node("MaxPool", ["X"], ["Y"], auto_pad="SAME_UPPER", kernel_shape=[3, 3, 3], strides=[2, 1, 2])
    record = only(node, [1, 2, "d", "h", 8])
    assert record.pads == (None, 1, 0, None, 1, 1)
    assert (record.name, record.layout) == ("#0", "NCDHW")


@pytest.mark.parametrize(
    ("attributes", "padding", "pads"),
    [
        ({}, "explicit 0,0", (0, 0)),
        ({"auto_pad": "NOTSET", "pads": [1, 0]}, "explicit 1,0", (1, 0)),
        ({"auto_pad": "VALID"}, "VALID", (0, 0)),
        ({"auto_pad": "SAME_UPPER", "pads": [0, 0]}, "SAME_UPPER", (1, 1)),
    ],
)
def test_padding_as_written(attributes: dict[str, Any], padding: str, pads: tuple[int, int]) -> None:
    record = only(helper.make_node("AveragePool", ["X"], ["Y"], kernel_shape=[3], **attributes), [1, 2, 7])
    assert (record.padding, record.pads, record.layout) == (padding, pads, "NCW")


@pytest.mark.parametrize(
    ("attributes", "padding", "pads"),
    [
        ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, "SAME_UPPER", (0, 0, 1, 1)),
        ({"output_shape": [10, 11], "strides": [2, 2]}, "output_shape 10,11", (1, 1, 0, 1)),
        ({"pads": [1, 1, 0, 0]}, "explicit 1,1,0,0", (1, 1, 0, 0)),
    ],
)
def test_transposed_convolutions(attributes: dict[str, Any], padding: str, pads: tuple[int, ...]) -> None:
    node = helper.make_node("ConvTranspose", ["X", "W"], ["Y"], **attributes)
    record = only(node, [1, 2, 5, 6], {"W": [2, 4, 3, 3]})
    assert (record.padding, record.pads, record.kernel) == (padding, pads, (3, 3))


def test_transposed_convolution_of_unknown_size() -> None:
    same = helper.make_node("ConvTranspose", ["X", "W"], ["Y"], auto_pad="SAME_LOWER", strides=[2, 2])
    assert only(same, [1, 2, "h", "w"], {"W": [2, 4, 3, 3]}).pads == (1, 1, 0, 0)
    sized = helper.make_node("ConvTranspose", ["X", "W"], ["Y"], output_shape=[9, 9], strides=[2, 2])
    assert only(sized, [1, 2, "h", 4], {"W": [2, 4, 3, 3]}).pads == (None, 0, None, 0)


def test_channels_last() -> None:
    node = helper.make_node(
        "NhwcMaxPool", ["X"], ["Y"], domain="com.microsoft", kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2]
    )
    record = only(node, [1, 5, 6, 2])
    assert (record.layout, record.pads) == ("NHWC", (1, 0, 1, 1))


def test_bodies_and_functions_are_listed() -> None:
    branch = [
        helper.make_graph(
            [
                helper.make_node(
                    "MaxPool", ["X"], [f"p{index}"], name="inner", kernel_shape=[2, 2], auto_pad="SAME_UPPER"
                )
            ],
            f"b{index}",
            [],
            [helper.make_tensor_value_info(f"p{index}", FLOAT, None)],
        )
        for index in range(2)
    ]
    function: FunctionProto = helper.make_function(
        "local",
        "Pool",
        ["a"],
        ["b"],
        [helper.make_node("LpPool", ["a"], ["b"], name="lp", kernel_shape=[2, 2], auto_pad="VALID")],
        [helper.make_opsetid("", 17)],
    )
    nodes = [
        helper.make_node("Constant", [], ["flag"], value=helper.make_tensor("", TensorProto.BOOL, [], [True])),
        helper.make_node("If", ["flag"], ["c"], name="if", then_branch=branch[0], else_branch=branch[1]),
        helper.make_node("Pool", ["c"], ["Y"], domain="local"),
    ]
    records = inspect_model(Model(build(nodes, [1, 1, 5, 5], {}, functions=[function])))
    assert [(record.graph, record.name) for record in records] == [
        ("main/if.else_branch", "inner"),
        ("main/if.then_branch", "inner"),
        ("function:local:Pool", "lp"),
    ]
    assert records[0].pads == (0, 0, 1, 1)


def test_padding_that_the_caller_gives() -> None:
    node = helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[2, 2])
    attribute = node.attribute.add(name="auto_pad", ref_attr_name="mode")
    attribute.type = 3
    function = helper.make_function("local", "F", ["a"], ["b"], [node], [helper.make_opsetid("", 17)], ["mode"])
    call = helper.make_node("F", ["X"], ["Y"], domain="local", mode="SAME_UPPER")
    (record,) = inspect_model(Model(build([call], [1, 1, 5, 5], {}, functions=[function])))
    assert (record.padding, record.pads) == ("given by the caller", (None,) * 4)


def test_resampling_has_no_window() -> None:
    records = padfix.inspect(FIXTURES / "legacy_upsample.onnx")
    assert [(record.op, record.kernel, record.layout) for record in records] == [
        ("Conv", (3, 3), "NCHW"),
        ("Upsample", None, "NCHW"),
    ]


def test_the_fixtures_are_what_their_script_makes(tmp_path: Path) -> None:
    import runpy

    runpy.run_path(str(FIXTURES / "make.py"))["main"](tmp_path)
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert made == {file.name: file.read_bytes() for file in FIXTURES.glob("*.onnx")}
