"""MNN's adapter: it feeds what MNN makes of the types of inputs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx.parser
import onnx.reference
import pytest

import padfix
from padfix.runtimes.adapter import open_runtime

if importlib.util.find_spec("MNN") is None:  # beside other libraries in one process it has crashed
    pytest.skip("MNN is not installed", allow_module_level=True)


@pytest.mark.parametrize("name", ["float16", "double", "uint8", "int8", "int64", "bool"])
def test_inputs_of_other_types_are_fed(name: str) -> None:
    dtype = np.dtype({"double": "float64"}.get(name, name))
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        main ({name}[2,3] X) => (float[2,3] Y) {{ wide = Cast <to = 1> (X) Y = Abs (wide) }}""")
    data = np.array([[0, 1, 2], [1, 0, 3]]).astype(dtype)
    (found,) = open_runtime("mnn").run(model.SerializeToString(), {"X": data}, [(2, 3)])
    np.testing.assert_array_equal(found, data.astype(np.float32))


@pytest.mark.parametrize(
    ("nodes", "is_result"),
    [
        ("Y = Conv (X, W)", True),
        ("Y = ConvTranspose <strides = [2]> (X, W)", True),
        ("c = Conv (X, W) Y = LeakyRelu (c)", True),
        ("c = Conv <pads = [1, 1]> (X, W) Y = Relu (c)", True),
        ("c = Conv (X, W) Y = Sigmoid (c)", False),
    ],
)
def test_a_line_that_is_a_result_has_no_axis_too_many(nodes: str, is_result: bool, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        main (float[1,2,9] X) => (float[n,c,w] Y)
        <float[2,2,3] W = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6}}> {{ {nodes} }}""")
    onnx.save(model, tmp_path / "line.onnx")
    padfix.convert(tmp_path / "line.onnx", tmp_path / "out.onnx", target="mnn")
    written = onnx.load(tmp_path / "out.onnx")
    assert (len(written.graph.node) > len(model.graph.node)) is is_result
    data = np.linspace(-1, 1, 18, dtype=np.float32).reshape(1, 2, 9)
    (wanted,) = onnx.reference.ReferenceEvaluator(model).run(None, {"X": data})
    for each in (written,) if is_result else (written, model):
        (found,) = open_runtime("mnn").run(each.SerializeToString(), {"X": data}, [wanted.shape])
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_what_mnn_keeps_beside_itself_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its converter puts weights into a file of one name in the working directory: two at once lost theirs."""
    others = tmp_path / ".__convert_external_data.bin"
    others.write_bytes(b"weights")
    monkeypatch.chdir(tmp_path)
    weights = onnx.numpy_helper.from_array(np.full((64, 64, 3, 3), 0.5, np.float32), "W")
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        main (float[1,64,3,3] X, float[64,64,3,3] W) => (float[1,64,1,1] Y) { Y = Conv (X, W) }""")
    del model.graph.input[1]
    model.graph.initializer.append(weights)
    data = np.ones((1, 64, 3, 3), np.float32)
    (found,) = open_runtime("mnn").run(model.SerializeToString(), {"X": data}, [(1, 64, 1, 1)])
    np.testing.assert_array_equal(found, np.full((1, 64, 1, 1), 288, np.float32))
    assert others.read_bytes() == b"weights"
