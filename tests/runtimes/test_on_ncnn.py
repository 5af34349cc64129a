"""ncnn's adapter: its converter, which takes longer than the network, runs no more often than it has to."""

from __future__ import annotations

import importlib.util
import subprocess
from typing import Any

import numpy as np
import onnx.parser
import pytest

from padfix.runtimes.adapter import Request
from tests.support.padding_models import session

pytest.importorskip("ncnn")
if importlib.util.find_spec("pnnx") is None:  # importing it would load PyTorch
    pytest.skip("pnnx is not installed", allow_module_level=True)


def test_a_model_is_converted_once_for_all_data_and_images(monkeypatch: pytest.MonkeyPatch) -> None:
    from padfix.runtimes import on_ncnn

    calls = []
    honest = subprocess.run

    def counted(*words: Any, **options: Any) -> Any:
        calls.append(words)
        return honest(*words, **options)

    monkeypatch.setattr(on_ncnn.subprocess, "run", counted)
    run = on_ncnn.load()
    for lengths, times in (((3, 2, 4, 5), 1), ((3, 2, 6, 5), 2)):
        shape = ",".join(map(str, lengths))
        model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
            main (float[{shape}] X) => (float[{shape}] Y) {{ kept = Relu (X) Y = Sin (kept) }}""")
        for seed in range(2):
            data = np.random.default_rng(seed).standard_normal(lengths).astype(np.float32)
            (found,) = run(Request(model.SerializeToString(), {"X": data}, [lengths]))
            np.testing.assert_allclose(found, np.sin(np.maximum(data, 0)), atol=1e-5)
        assert len(calls) == times


def test_half_precision_is_told_to_the_converter() -> None:
    from padfix.runtimes import on_ncnn

    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        main (float16[1,4,8,8] X) => (float16[1,4,8,8] Y) { Y = Relu (X) }""")
    data = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype(np.float16)
    (found,) = on_ncnn.load()(Request(model.SerializeToString(), {"X": data}, [(1, 4, 8, 8)]))
    np.testing.assert_array_equal(found, np.maximum(data, 0))


def test_steps_of_a_recurrent_layer_stay_together() -> None:
    from padfix.runtimes import on_ncnn

    random = np.random.default_rng(0)
    weights = {name: random.normal(size=(1, 12, size)).astype(np.float32) for name, size in (("W", 2), ("R", 3))}
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[4,1,2] X) => (float[4,1,3] Y) <int64[1] one = {1}> '
        "{ A = Relu (X) B = LSTM <hidden_size = 3> (A, W, R) Y = Squeeze (B, one) }"
    )
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    data = random.normal(size=(4, 1, 2)).astype(np.float32)
    (found,) = on_ncnn.load()(Request(model.SerializeToString(), {"X": data}, [(4, 1, 3)]))
    (expected,) = session(model, optimised=False).run(None, {"X": data})
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_first_axis_of_no_images_is_taken_as_a_whole() -> None:
    from padfix.runtimes import on_ncnn

    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        main (float[4,6,4] X) => (float[2,6,4] Y) <int64[1] a = {1}, int64[1] b = {3}, int64[1] c = {0}> {
            Y = Slice (X, a, b, c) }""")
    data = np.random.default_rng(0).standard_normal((4, 6, 4)).astype(np.float32)
    (found,) = on_ncnn.load()(Request(model.SerializeToString(), {"X": data}, [(2, 6, 4)]))
    np.testing.assert_array_equal(found, data[1:3])


def test_images_lie_along_another_axis_of_a_state() -> None:
    from padfix.runtimes import on_ncnn

    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        main (float[2,3,4] X) => (float[2,2,4] Y) <int64[1] a = {0}, int64[1] b = {2}, int64[1] c = {1}> {
            t = Transpose <perm = [1, 0, 2]> (X) s = Sin (t) Y = Slice (s, a, b, a) }""")
    data = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    (found,) = on_ncnn.load()(Request(model.SerializeToString(), {"X": data}, [(2, 2, 4)]))
    np.testing.assert_allclose(found, np.sin(data.transpose(1, 0, 2)[:2]), atol=1e-5)


def test_elements_of_all_images_that_are_as_many_are_no_images() -> None:
    from padfix.runtimes import on_ncnn

    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 11]>
        main (float[3,3] X) => (float[3] Y) { Y = ReduceMin <axes = [0], keepdims = 0> (X) }""")
    data = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)
    (found,) = on_ncnn.load()(Request(model.SerializeToString(), {"X": data}, [(3,)]))
    np.testing.assert_array_equal(found, data.min(0))


@pytest.mark.parametrize(
    ("lengths", "node"), [("4", "Mul (C, S)"), ("1,2,3,4", "Add (C, S)"), ("2,2,1,1", "Conv (C, S)")]
)
def test_what_is_for_all_images_stays_whole(lengths: str, node: str) -> None:
    from padfix.runtimes import on_ncnn

    random = np.random.default_rng(0)
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        main (float[N,2,3,4] X, float[{lengths}] S) => (float[N,2,3,4] Y) {{
            C = MaxPool <kernel_shape = [1, 1]> (X) Y = {node} }}""")
    feeds = {
        "X": random.standard_normal((3, 2, 3, 4)).astype(np.float32),
        "S": random.standard_normal([int(each) for each in lengths.split(",")]).astype(np.float32),
    }
    (found,) = on_ncnn.load()(Request(model.SerializeToString(), feeds, [(3, 2, 3, 4)]))
    (expected,) = session(model, optimised=False).run(None, feeds)
    np.testing.assert_allclose(found, expected, atol=1e-5)
