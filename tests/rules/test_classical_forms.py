"""Operators of classical machine learning in operators of ONNX, for targets that have none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import padfix
from padfix.errors import PadfixError

CLASSES = {
    "coefficients": [1.0, 2, 3, 0.1, 0.2, 0.3, 0.5, -0.6, 0.7],
    "intercepts": [0.5, 0.6, 0.1],
    "classlabels_ints": [4, 5, 6],
}
WRITTEN: list[tuple[str, dict[str, Any], str, list[str]]] = [
    ("Scaler", {"offset": [1.0, 2, 3], "scale": [2.0, 3, 4]}, "float32", ["Sub", "Mul"]),
    ("Scaler", {"offset": [1.0], "scale": [2.0]}, "float32", ["Sub", "Mul"]),
    ("Normalizer", {"norm": "L1"}, "float32", ["ReduceL1", "Equal", "Where", "Div"]),
    ("Normalizer", {"norm": "L2"}, "float32", ["ReduceL2", "Equal", "Where", "Div"]),
    ("Binarizer", {"threshold": 0.5}, "float32", ["Greater", "Cast"]),
    ("Imputer", {"imputed_value_floats": [9.0, 8, 7], "replaced_value_float": 0.0}, "float32", ["Equal", "Where"]),
    ("Imputer", {"imputed_value_floats": [9.0], "replaced_value_float": np.nan}, "float32", ["IsNaN", "Where"]),
    ("Imputer", {"imputed_value_int64s": [9], "replaced_value_int64": 0}, "int64", ["Equal", "Where"]),
    ("LabelEncoder", {"keys_int64s": [1, 2], "values_floats": [0.5, 7]}, "int64", ["Equal", "Equal", "Where", "Where"]),
    ("LabelEncoder", {"keys_floats": [0.0], "values_int64s": [7], "default_int64": 3}, "float32", ["Equal", "Where"]),
    ("OneHotEncoder", {"cats_int64s": [2, 0, 1]}, "int64", ["Unsqueeze", "Equal", "Cast"]),
    ("ArrayFeatureExtractor", {}, "float32", ["Gather"]),
    ("LinearRegressor", {"coefficients": [1.0, 2, 3], "intercepts": [0.5]}, "float32", ["MatMul", "Add"]),
    (
        "LinearRegressor",
        {"coefficients": [1.0, 2, 3, 4, 5, 6], "targets": 2, "post_transform": "LOGISTIC"},
        "float32",
        ["MatMul", "Sigmoid"],
    ),
    ("LinearClassifier", CLASSES, "float32", ["MatMul", "Add", "ArgMax", "Gather", "Cast"]),
    (
        "LinearClassifier",
        {**CLASSES, "post_transform": "SOFTMAX"},
        "int64",
        ["Cast", "MatMul", "Add", "ArgMax", "Softmax", "Gather"],
    ),
]


def saved(folder: Path, op_type: str, settings: dict[str, Any], dtype: str, shape: tuple[Any, ...] = ("N", 3)) -> Path:
    names = ["Y", "Z"] if op_type == "LinearClassifier" else ["Y"]
    is_whole = any(name in settings for name in ("classlabels_ints", "imputed_value_int64s", "values_int64s"))
    types = [TensorProto.INT64 if is_whole else TensorProto.FLOAT, TensorProto.FLOAT]
    given = ["X", "places"] if op_type == "ArrayFeatureExtractor" else ["X"]
    graph = helper.make_graph(
        [helper.make_node(op_type, given, names, domain="ai.onnx.ml", **settings)],
        "classical",
        [helper.make_tensor_value_info("X", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(names, types, strict=False)],
        [numpy_helper.from_array(np.array([2, 0]), "places")] if len(given) > 1 else [],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), folder / "before.onnx")
    return folder / "before.onnx"


@pytest.mark.parametrize(("op_type", "settings", "dtype", "written"), WRITTEN)
def test_it_is_written_in_operators_of_onnx(
    op_type: str, settings: dict[str, Any], dtype: str, written: list[str], tmp_path: Path
) -> None:
    source, result = saved(tmp_path, op_type, settings, dtype), tmp_path / "after.onnx"
    padfix.convert(source, result, target="opencv@5", partial=True)
    nodes = [each.op_type for each in onnx.load(result).graph.node if each.op_type != "Constant"]
    assert op_type not in nodes
    assert set(nodes) >= set(written) - {"Equal", "IsNaN"}
    data = np.random.default_rng(0).integers(-1, 3, (4, 3)).astype(dtype)
    if "replaced_value_float" in settings and np.isnan(settings["replaced_value_float"]):
        data[data == 0] = np.nan
    if op_type == "OneHotEncoder":
        data = np.abs(data)
    ran = (onnxruntime.InferenceSession(path).run(None, {"X": data}) for path in (source, result))
    for wanted, found in zip(*ran, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("op_type", "settings", "shape", "reason"),
    [
        ("Scaler", {"offset": [1.0, 2], "scale": [2.0, 3]}, ("N", 3), "no offset and scale for each column"),
        ("Scaler", {"offset": [1.0], "scale": [2.0]}, ("N", 3, 2), "a list or matrix"),
        ("LinearRegressor", {"coefficients": [1.0, 2, 3]}, ("N", "M"), "no coefficient for each column"),
        ("LinearClassifier", {**CLASSES, "post_transform": "PROBIT"}, ("N", 3), "neither a Softmax nor a Sigmoid"),
        ("LabelEncoder", {"keys_strings": ["a"], "values_floats": [1.0]}, ("N", 3), "no lists of numbers"),
    ],
)
def test_what_has_no_such_form_is_declined(
    op_type: str, settings: dict[str, Any], shape: tuple[Any, ...], reason: str, tmp_path: Path
) -> None:
    source = saved(tmp_path, op_type, settings, "float32", shape)
    hints = [each.hint for each in padfix.check(source, target="mnn").findings]
    assert any(reason in each for each in hints), hints
    with pytest.raises(PadfixError):
        padfix.convert(source, tmp_path / "after.onnx", target="mnn")


@pytest.mark.parametrize("target", ["openvino", "tract"])
def test_the_largest_of_a_row_is_declined_where_runtimes_differ(target: str, tmp_path: Path) -> None:
    (finding,) = padfix.check(saved(tmp_path, "Normalizer", {"norm": "MAX"}, "float32"), target=target).findings
    assert finding.severity == "silent"
    assert "largest size" in finding.message


@pytest.mark.parametrize("shape", ["N", "N,1"])
def test_labels_are_picked_by_computed_places(shape: str, tmp_path: Path) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 1]>
        g (float[N,3] X) => (int64[1,M] Y) <int64[3] labels = {{7, 8, 9}}> {{
            i = ArgMax <axis = 1, keepdims = {int("," in shape)}> (X)
            Y = ai.onnx.ml.ArrayFeatureExtractor (labels, i) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="mnn")
    data = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    paths = (tmp_path / "before.onnx", tmp_path / "after.onnx")
    np.testing.assert_array_equal(*(onnxruntime.InferenceSession(path).run(None, {"X": data})[0] for path in paths))


def test_a_model_that_imports_no_operators_of_onnx_gets_them(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["ai.onnx.ml" : 1]>
        g (float[N,3] X) => (float[N,3] Y) { Y = ai.onnx.ml.Binarizer <threshold = 0.5> (X) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="mnn")
    written = onnx.load(tmp_path / "after.onnx")
    assert ("", 11) in [(each.domain, each.version) for each in written.opset_import]
    assert not padfix.check(tmp_path / "after.onnx", target="mnn").findings
