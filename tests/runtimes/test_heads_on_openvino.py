"""An attention of as many heads as rows, whose heads OpenVINO turns otherwise where they are turned on one side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnx.reference
import pytest

import padfix
from padfix.runtimes.adapter import open_runtime

pytest.importorskip("openvino")

TURNED = "Transpose <perm = [0, 2, 1, 3]>"
QUERIES = {"turned": f"r = Reshape (p, heads) t = {TURNED} (r) q = Mul (t, half)", "in place": "q = Mul (H, half)"}
BEHIND = {
    "rows": f"u = {TURNED} (m) Y = Reshape (u, rows)",
    "a sine": f"u = {TURNED} (m) Y = Sin (u)",
    "nothing": "Y = Relu (m)",
}


def attention(queries: str, behind: str, batch: str, rows: int) -> onnx.ModelProto:
    """Return an attention of three heads, with the queries' projection and its result in one of several orders."""
    values = np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32)
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[{batch},{rows},6] X, float[{batch},3,{rows},2] H, float[{batch},3,2,5] K, float[{batch},3,5,2] V)
            => (float Y) <float half = {{0.5}}, int64[4] heads = {{0, -1, 3, 2}}, int64[3] rows = {{0, -1, 6}}> {{
            p = MatMul (X, w) {QUERIES[queries]} s = MatMul (q, K) a = Softmax <axis = -1> (s) m = MatMul (a, V)
            {BEHIND[behind]} }}""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(values, "w"))
    return model


@pytest.mark.parametrize(
    ("queries", "behind", "batch", "rows", "is_rewritten"),
    [
        ("turned", "rows", "2", 3, False),
        ("turned", "a sine", "2", 3, True),
        ("turned", "nothing", "2", 3, True),
        ("in place", "rows", "2", 3, True),
        ("in place", "a sine", "2", 3, False),
        ("in place", "nothing", "2", 3, False),
        ("turned", "nothing", "N", 3, False),
        ("in place", "rows", "2", 4, False),
    ],
)
def test_heads_that_are_turned_once_are_weighed_from_the_other_side(
    queries: str, behind: str, batch: str, rows: int, is_rewritten: bool, tmp_path: Path
) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(attention(queries, behind, batch, rows), source)
    random = np.random.default_rng(1)
    shapes = {"X": (2, rows, 6), "H": (2, 3, rows, 2), "K": (2, 3, 2, 5), "V": (2, 3, 5, 2)}
    feeds = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    (expected,) = onnx.reference.ReferenceEvaluator(onnx.load(source)).run(None, feeds)
    runtime = open_runtime("openvino")
    (as_written,) = runtime.run(source.read_bytes(), feeds, [expected.shape])
    padfix.convert(source, result, target="openvino")
    (found,) = runtime.run(result.read_bytes(), feeds, [expected.shape])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert np.allclose(as_written, expected, rtol=1e-4, atol=1e-5) is not is_rewritten
    turns = [sum(node.op_type == "Transpose" for node in onnx.load(each).graph.node) for each in (source, result)]
    assert (turns[1] == turns[0] + 3) is is_rewritten
