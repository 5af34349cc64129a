"""What gives an empty batch a row, as beside the recurrent layers of Keras, for runtimes that run no such batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix

WEIGHTS = {"w": (1, 8, 3), "r": (1, 8, 2), "w2": (1, 8, 2), "r2": (1, 8, 2)}
GUARDED = """s{0} = Shape ({1}) n{0} = Gather (s{0}, one) d{0} = Sub (one, n{0}) m{0} = Max (d{0}, none)
  a{0} = Concat <axis = 0> (none, none, none, none, m{0}, none) p{0} = Pad ({1}, a{0})
  y{0}, h{0}, c{0} = LSTM <hidden_size = 2> (p{0}, {2}) {3} = Slice (y{0}, none, n{0}, two)"""
ONE = f"X = Transpose <perm = [1, 0, 2]> (D) {GUARDED.format(1, 'X', 'w, r', 'Y')}"
TWO = f"""X = Transpose <perm = [1, 0, 2]> (D) {GUARDED.format(1, "X", "w, r", "q")} z = Squeeze (q, one)
  {GUARDED.format(2, "z", "w2, r2", "Y")}"""
OF_STEPS = GUARDED.format(1, "D", "w, r", "Y")


def saved(nodes: str, data: str, folder: Path) -> Path:
    random = np.random.default_rng(3)
    weights = {name: random.standard_normal(shape).round(2) for name, shape in WEIGHTS.items() if f"{name}" in nodes}
    given = [
        f"float[{','.join(map(str, each.shape))}] {name} = {{{', '.join(map(str, each.reshape(-1)))}}}"
        for name, each in weights.items()
    ]
    constants = ["int64[1] none = {0}", "int64[1] one = {1}", "int64[1] two = {2}", *given]
    graph = f"g ({data}) => (float[T,1,N,2] Y) <{', '.join(constants)}> {{ {nodes} }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}'), folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize("target", ["mnn", "tract"])
@pytest.mark.parametrize("nodes", [ONE, TWO])
def test_the_rows_that_are_added_for_no_batch_are_right(nodes: str, target: str, tmp_path: Path) -> None:
    source, result = saved(nodes, "float[N,5,3] D", tmp_path), tmp_path / "result.onnx"
    padfix.convert(source, result, target=target)
    assert not padfix.check(result, target=target).findings
    for rows in (1, 3):
        data = {"D": np.random.default_rng(rows).standard_normal((rows, 5, 3)).astype(np.float32)}
        before, after = (onnxruntime.InferenceSession(each).run(None, data)[0] for each in (source, result))
        np.testing.assert_allclose(before, after, atol=1e-6)


@pytest.mark.parametrize("target", ["mnn", "tract"])
def test_what_may_be_no_batch_keeps_them(target: str, tmp_path: Path) -> None:
    padfix.convert(saved(OF_STEPS, "float[T,N,3] D", tmp_path), tmp_path / "result.onnx", target=target)
    assert "Pad" in [each.op_type for each in onnx.load(tmp_path / "result.onnx").graph.node]


def test_a_runtime_that_runs_an_empty_batch_keeps_them(tmp_path: Path) -> None:
    source = saved(ONE, "float[N,5,3] D", tmp_path)
    padfix.convert(source, tmp_path / "result.onnx", target="onnxruntime")
    assert [each.op_type for each in onnx.load(tmp_path / "result.onnx").graph.node].count("Pad") == 1
