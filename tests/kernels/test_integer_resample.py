"""Linear interpolation of integers by the specification's kernels, held against ONNX Runtime to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import padfix
from padfix.kernels.resample import legacy_resize, resize

TYPES = {TensorProto.UINT8: (0, 256), TensorProto.INT8: (-128, 128), TensorProto.INT32: (-(2**31), 2**31)}
FACTORS = (1.0, 1.5, 2.0, 0.5, 0.7, 3.0, 2.3, 1.1)
MODES = ("asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners", "half_pixel_symmetric")
# Axes that keep their length, by rank: batch and channels first, or channels last.
STILL = ((2, ()), (3, ()), (4, (0, 1)), (5, (0, 1)), (4, (0, 3)))


def model_of(op_type: str, opset: int, elem_type: int, shape: tuple[int, ...], scales: list[float], mode: str) -> bytes:
    names = ["X", "scales"] if opset < 11 else ["X", "", "scales"]
    chosen = {} if opset < 11 else {"coordinate_transformation_mode": mode}
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["Y"], mode="linear", **chosen)],
        "resize",
        [helper.make_tensor_value_info("X", elem_type, shape)],
        [helper.make_tensor_value_info("Y", elem_type, None)],
        [numpy_helper.from_array(np.array(scales, np.float32), "scales")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return bytes(model.SerializeToString())


def run(model: bytes, X: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    result: np.ndarray = session.run(None, {"X": X})[0]
    return result


@pytest.mark.sweep(4)
@pytest.mark.parametrize("elem_type", TYPES)
@pytest.mark.parametrize(("rank", "still"), STILL)
@pytest.mark.parametrize("mode", [*MODES, "legacy"])
def test_every_bit_is_the_runtimes(mode: str, rank: int, still: tuple[int, ...], elem_type: int) -> None:
    random = np.random.default_rng([rank, elem_type, len(mode)])
    low, high = TYPES[elem_type]
    for _ in range(12):
        shape = tuple(int(size) for size in random.integers(1, 12, rank))
        scales = [1.0 if axis in still else float(random.choice(FACTORS)) for axis in range(rank)]
        X = random.integers(low, high, shape).astype(helper.tensor_dtype_to_np_dtype(elem_type))
        factors = np.array(scales, np.float32)
        if mode == "legacy":
            expected = run(model_of("Resize", 10, elem_type, shape, scales, ""), X)
            found = legacy_resize(X, [float(factor) for factor in factors], "linear")
        else:
            expected = run(model_of("Resize", 13, elem_type, shape, scales, mode), X)
            found = resize(X, scales=factors, mode="linear", coordinate_transformation_mode=mode)
        np.testing.assert_array_equal(found, expected, err_msg=f"{shape} {scales}")


@pytest.mark.parametrize("scales", [[1, 1, 1.5, 2.5], [1, 1, 2, 2], [1, 2.3, 1.5, 1]])
@pytest.mark.parametrize("elem_type", TYPES)
@pytest.mark.parametrize(("op_type", "opset"), [("Upsample", 9), ("Resize", 10)])
def test_a_legacy_resize_of_integers_is_proven_by_default(
    tmp_path: Path, op_type: str, opset: int, elem_type: int, scales: list[float]
) -> None:
    source = tmp_path / "before.onnx"
    source.write_bytes(model_of(op_type, opset, elem_type, (1, 4, 5, 6), scales, ""))
    report = padfix.convert(source, tmp_path / "after.onnx")
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert report.verdict.reference == "onnxruntime"
    assert {output.max_abs_diff for each in report.verdict.runs for output in each.outputs} == {0.0}
    assert [node.op_type for node in onnx.load(tmp_path / "after.onnx").graph.node] == ["Resize"]
