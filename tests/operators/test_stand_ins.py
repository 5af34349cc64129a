"""Lengths survive operators of ONNX Runtime that ONNX has no schema of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import padfix
from padfix.files.model import Model
from padfix.operators.inference import infer
from tests.operators.test_reading import model_of

CONTRIB = "com.microsoft"


def shape_of(model: onnx.ModelProto, name: str) -> Any:
    known = infer(Model(model))[0].type_of(name)
    return None if known is None else (known.elem_type, known.shape)


@pytest.mark.parametrize(
    "op_type", ["Gelu", "FastGelu", "BiasGelu", "QuickGelu", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax"]
)
def test_elementwise_operators_pass_the_shape_through(op_type: str) -> None:
    node = helper.make_node(op_type, ["X", "W"], ["Y"], domain=CONTRIB)
    assert shape_of(model_of([node], {"X": ["n", 3, 5, 7]}, {"W": (7,)}), "Y") == (1, ("n", 3, 5, 7))


def test_a_long_chain_is_known_to_its_end() -> None:
    nodes = []
    for index in range(100):
        before = f"v{index - 1}" if index else "X"
        op_type, domain = ("Gelu", CONTRIB) if index % 2 else ("NhwcMaxPool", CONTRIB)
        window = {} if index % 2 else {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"}
        nodes.append(helper.make_node(op_type, [before], [f"v{index}"], domain=domain, **window))
    assert shape_of(model_of(nodes, {"X": [1, 8, 8, 3]}), "v99") == (1, (1, 8, 8, 3))


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "expected"),
    [
        ("QLinearAdd", ["X", "s", "z", "B", "s", "z", "s", "z"], {}, (1, (1, 6, 4, 4))),
        ("QLinearConcat", ["s", "z", "X", "s", "z", "X", "s", "z"], {"axis": 1}, (1, (1, 12, 4, 4))),
        ("QLinearGlobalAveragePool", ["X", "s", "z", "s", "z"], {}, (1, (1, 6, 1, 1))),
        ("QLinearReduceMean", ["X", "s", "z", "s", "z"], {"axes": [-1, 2], "keepdims": 0}, (1, (1, 6))),
        ("FusedMatMul", ["X", "X"], {"transB": 1}, (1, (1, 6, 4, 4))),
        ("MatMulIntegerToFloat", ["X", "X", "s", "s"], {}, (1, (1, 6, 4, 4))),
        ("SkipLayerNormalization", ["X", "X", "s"], {}, (1, (1, 6, 4, 4))),
    ],
)
def test_others_have_the_shape_of_what_stands_in(
    op_type: str, inputs: list[str], attributes: dict[str, Any], expected: Any
) -> None:
    node = helper.make_node(op_type, inputs, ["Y"], domain=CONTRIB, **attributes)
    model = model_of([node], {"X": [1, 6, 4, 4]}, {"s": (), "z": (), "B": (6, 1, 1)})
    before = model.SerializeToString()
    assert shape_of(model, "Y") == expected
    assert model.SerializeToString() == before


def test_a_quantized_model_of_fixed_size_stays_fixed(tmp_path: Path) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    random = np.random.default_rng(1)
    nodes = [
        helper.make_node("Conv", ["X", "W0"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("LeakyRelu", ["a"], ["b"]),
        helper.make_node("Sigmoid", ["b"], ["c"]),
        helper.make_node("Concat", ["b", "c"], ["d"], axis=1),
        helper.make_node("Conv", ["d", "W1"], ["e"], kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2]),
        helper.make_node("Add", ["e", "e"], ["f"]),
        helper.make_node("Conv", ["f", "W2"], ["g"], kernel_shape=[3, 3], auto_pad="SAME_LOWER", strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["g"], ["Y"]),
    ]
    model = model_of(nodes, {"X": [1, 3, 18, 14]}, {"W0": (4, 3, 3, 3), "W1": (4, 8, 3, 3), "W2": (4, 4, 3, 3)})
    onnx.save(model, tmp_path / "float.onnx")

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.data = iter([{"X": random.standard_normal((1, 3, 18, 14)).astype(np.float32)} for _ in range(4)])

        def get_next(self) -> Any:
            return next(self.data, None)

    path = tmp_path / "quantized.onnx"
    quantization.quantize_static(
        tmp_path / "float.onnx", path, Reader(), quant_format=quantization.QuantFormat.QOperator
    )
    quantized = onnx.load(path)
    assert {node.op_type for node in quantized.graph.node if node.domain == CONTRIB} >= {"QLinearSigmoid", "QLinearAdd"}
    found = padfix.check(path).findings
    assert [finding.rule for finding in found if finding.rule.startswith("PF10")] == ["PF101", "PF101"]
    report = padfix.convert(path, tmp_path / "after.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    after = onnx.load(tmp_path / "after.onnx")
    pads = [list(each.ints) for node in after.graph.node for each in node.attribute if each.name == "pads"]
    assert pads == [[1, 1, 1, 1], [0, 0, 1, 1], [1, 1, 1, 1]]
    assert not any(node.op_type == "Pad" for node in after.graph.node)


def test_a_value_info_of_an_unknown_operator_is_still_believed() -> None:
    node = helper.make_node("Mystery", ["X"], ["Y"], domain=CONTRIB)
    model = model_of([node, helper.make_node("Relu", ["Y"], ["Z"])], {"X": [1, 2]})
    model.graph.value_info.append(helper.make_tensor_value_info("Y", TensorProto.FLOAT, [3, 4]))
    assert shape_of(model, "Z") == (1, (3, 4))


def test_numpy_constants_reach_quantized_products() -> None:
    node = helper.make_node("QGemm", ["X", "s", "z", "B", "s", "z"], ["Y"], domain=CONTRIB, transB=1)
    model = model_of([node], {"X": [2, 6]}, {"s": (), "z": ()})
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((5, 6), np.float32), "B"))
    assert shape_of(model, "Y") == (1, (2, 5))
