"""What OpenVINO makes of products with constants: the weights of a convolution behind them, or a PRelu's slopes."""

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

WINDOW = "Y = Conv <pads = [1, 1, 1, 1]> (%s, w)"
SPELLED = {
    "difference": "n = Neg (X) q = Relu (n) m = Mul (q, c) r = Relu (X) Y = Sub (r, m)",
    "sum": "n = Neg (X) q = Relu (n) v = Neg (q) m = Mul (v, c) r = Relu (X) Y = Add (r, m)",
    "size": "n = Abs (X) q = Sub (X, n) m = Mul (q, c) v = Mul (m, half) r = Relu (X) Y = Add (r, v)",
}
PRODUCTS = {
    "window": f"m = Mul (X, c) {WINDOW % 'm'}",
    "quotient": f"m = Div (c, X) {WINDOW % 'm'}",
    "number": f"v = Mul (X, c) i = Identity (v) m = Mul (i, half) {WINDOW % 'm'}",
    "result": f"Z = Mul (X, c) {WINDOW % 'Z'}",
    "sine": f"v = Mul (X, c) m = Sin (v) {WINDOW % 'm'}",
}


def judged(shape: str, constant: tuple[int, ...], body: str, folder: Path) -> tuple[bool, bool, bool]:
    """Return whether OpenVINO is right with a model as written and converted, and whether its operators changed."""
    random = np.random.default_rng(0)
    source, result = folder / "model.onnx", folder / "result.onnx"
    results = "float Y, float Z" if "Z = " in body else "float Y"
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[{shape}] X) => ({results}) <float half = {{0.5}}> {{ {body} }}""")
    values = {"w": random.standard_normal((4, 3, 3, 3)), "c": random.uniform(0.5, 2, constant)}
    arrays = [onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in values.items()]
    model.graph.initializer.extend(arrays)
    onnx.save(model, source)
    feeds = {"X": random.standard_normal((2, 3, 3, 3)).astype(np.float32)}
    expected = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    padfix.convert(source, result, target="openvino")
    types = [[node.op_type for node in onnx.load(file).graph.node] for file in (source, result)]
    agrees = []
    for file in (source, result):
        found = open_runtime("openvino").run(file.read_bytes(), feeds, [each.shape for each in expected])
        agrees.append(
            not isinstance(found, str)
            and all(np.allclose(one, other, rtol=1e-4, atol=1e-5) for one, other in zip(found, expected, strict=True))
        )
    return agrees[0], agrees[1], types[0] != types[1]


@pytest.mark.parametrize(
    ("shape", "constant", "body", "is_right"),
    [
        ("2,3,3,3", (3, 3), "window", False),
        ("N,C,3,W", (3, 1), "window", False),
        ("N,3,H,W", (3, 3, 3), "window", False),
        ("2,3,3,3", (1, 1, 1, 3), "quotient", False),
        ("2,3,3,3", (3,), "number", False),
        ("2,3,3,3", (1, 3, 3, 3), "window", False),
        ("2,3,3,3", (2, 3, 3, 3), "window", True),
        ("2,3,3,3", (3, 1, 1), "window", True),
        ("2,3,3,3", (3, 3), "result", True),
        ("2,3,3,3", (3, 3), "sine", True),
    ],
)
def test_images_as_large_as_the_window_behind_them_are_scaled(
    shape: str, constant: tuple[int, ...], body: str, is_right: bool, tmp_path: Path
) -> None:
    assert judged(shape, constant, PRODUCTS[body], tmp_path) == (is_right, True, not is_right)


@pytest.mark.parametrize("body", SPELLED)
@pytest.mark.parametrize(("shape", "is_right"), [("2,3,3,3", False), ("N,H,W,3", False), ("2,3,M,3", False)])
def test_the_slopes_of_a_spelled_prelu_are_for_the_last_axis(
    shape: str, is_right: bool, body: str, tmp_path: Path
) -> None:
    before, after, _ = judged(shape, (3,), SPELLED[body], tmp_path)
    assert (before, after) == (is_right, True)


def test_slopes_of_as_many_axes_as_the_data_stay(tmp_path: Path) -> None:
    assert judged("2,3,3,3", (1, 1, 1, 3), SPELLED["sum"], tmp_path) == (True, True, False)
