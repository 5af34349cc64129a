"""PF206: what is said of ONNX Runtime's Resize is what the installed version does, no more and no less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

import padfix
from padfix.files.model import Model
from padfix.operators.inference import infer
from padfix.proof.executors import ExecutionFailed, OnnxRuntimeExecutor
from padfix.proof.spec_executor import SpecExecutor
from padfix.rewrite.engine import rewrite_model
from padfix.rewrite.matches import findings

ROI = [0.0, 0.0, 0.2, 0.0, 1.0, 1.0, 0.8, 1.0]


def resize(
    shape: tuple[int | str, ...],
    scales: list[float] | None = None,
    sizes: list[int] | None = None,
    roi: list[float] | None = None,
    opset: int = 19,
    **fields: Any,
) -> ModelProto:
    given = {"R": (roi, np.float32), "S": (scales, np.float32), "L": (sizes, np.int64)}
    constants = [numpy_helper.from_array(np.array(each, dtype), name) for name, (each, dtype) in given.items() if each]
    names = [name if each else "" for name, (each, _) in given.items()]
    node = helper.make_node("Resize", ["X", *names], ["Y"], name="resize", **fields)
    value = helper.make_tensor_value_info("X", TensorProto.FLOAT, shape)
    graph = helper.make_graph([node], "g", [value], [ValueInfoProto(name="Y")], constants)
    graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def said(proto: ModelProto) -> str:
    return " ".join(each.message for each in findings(infer(Model(proto))) if each.rule == "PF206")


def runs_as_specified(proto: ModelProto, shape: tuple[int, ...]) -> bool:
    # Every element has a value of its own, and a step to any neighbour shows.
    X = np.random.default_rng(1).permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)
    serialized = proto.SerializeToString()
    meant = SpecExecutor(serialized).run({"X": X})["Y"]
    try:
        found = OnnxRuntimeExecutor(serialized, optimised=False, threads=1).run({"X": X})["Y"]
    except ExecutionFailed:
        return False
    return meant.shape == found.shape and bool(np.allclose(meant, found, rtol=1e-4, atol=1e-3))


@pytest.mark.sweep(3)
@pytest.mark.parametrize("coordinates", ["asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners"])
@pytest.mark.parametrize("nearest_mode", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_nearest_is_reported_exactly_where_an_index_slips(coordinates: str, nearest_mode: str, slow: bool) -> None:
    lengths = range(1, 36)
    pairs = [(size, output) for size in lengths for output in lengths]
    if not slow:
        random = np.random.default_rng(len(coordinates) + len(nearest_mode))
        pairs = [(14, 2), (20, 6), (7, 2), *(pairs[each] for each in random.choice(len(pairs), 25, replace=False))]
    for size, output in pairs:
        proto = resize(
            (1, 1, size, 1),
            sizes=[1, 1, output, 1],
            coordinate_transformation_mode=coordinates,
            nearest_mode=nearest_mode,
        )
        assert (said(proto) == "") == runs_as_specified(proto, (1, 1, size, 1)), (size, output)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["asymmetric", "half_pixel", "align_corners", "half_pixel_symmetric"])
@pytest.mark.parametrize("scales", [[1, 1, 1.1, 1.1], [1, 1, 1.1, 1.5], [1, 1, 1.15, 1], [1, 1, 1, 1], [1, 1, 1.05, 2]])
def test_a_copy_is_reported_where_the_specification_samples(mode: str, coordinates: str, scales: list[float]) -> None:
    proto = resize((1, 1, 6, 7), scales, mode=mode, coordinate_transformation_mode=coordinates)
    assert (said(proto) == "") == runs_as_specified(proto, (1, 1, 6, 7))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("roi", [ROI, [0.0] * 4 + [1.0] * 4])
@pytest.mark.parametrize("sizes", [[1, 1, 9, 7], [1, 1, 9, 8], [1, 1, 6, 7], [1, 1, 12, 7]])
def test_a_region_of_interest_is_reported_where_it_is_ignored(mode: str, roi: list[float], sizes: list[int]) -> None:
    proto = resize((1, 1, 9, 7), None, sizes, roi, mode=mode, coordinate_transformation_mode="tf_crop_and_resize")
    assert (said(proto) == "") == runs_as_specified(proto, (1, 1, 9, 7))


@pytest.mark.parametrize(("mode", "antialias"), [("linear", 0), ("linear", 1), ("cubic", 0), ("cubic", 1)])
def test_exclude_outside(mode: str, antialias: int) -> None:
    proto = resize((1, 1, 9, 7), None, [1, 1, 5, 5], mode=mode, exclude_outside=1, antialias=antialias)
    assert (said(proto) == "") == runs_as_specified(proto, (1, 1, 9, 7))


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("axes", [[2, 3], [-2, -1], [2, -1], [-1, -2]])
def test_negative_axes_with_a_policy_are_reported(policy: str, axes: list[int]) -> None:
    proto = resize((1, 2, 5, 7), sizes=[9, 8], axes=axes, keep_aspect_ratio_policy=policy, mode="linear")
    assert ("axes are negative" in said(proto)) == (min(axes) < 0)
    assert runs_as_specified(proto, (1, 2, 5, 7)) == (min(axes) >= 0)


@pytest.mark.parametrize("axes", [[-2, -1], [-1, -2], [2, -1]])
def test_negative_axes_alone_are_not_accused(axes: list[int]) -> None:
    for given in ({"sizes": [9, 8]}, {"scales": [2.0, 3.0]}):
        proto = resize((1, 2, 5, 7), axes=axes, mode="linear", **given)
        assert not said(proto)
        assert runs_as_specified(proto, (1, 2, 5, 7))


def test_what_is_not_known_is_not_accused() -> None:
    floor = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    assert said(resize((1, 1, 14, 1), sizes=[1, 1, 2, 1], **floor))
    assert not said(resize((1, 1, "h", 1), sizes=[1, 1, 2, 1], **floor))
    assert not said(resize(("n", 1, "h", 7), [1, 1, 1.1, 1.1], mode="linear"))
    assert said(resize(("n", "c", 5, 7), [1, 1, 1.1, 1.1], mode="linear"))
    assert said(resize(("n", "c", 7, 5), [1.1, 1.1], mode="linear", axes=[-1, 2]))


def test_it_is_reported_with_numbers_and_left_alone() -> None:
    proto = resize((1, 1, 14, 1), sizes=[1, 1, 2, 1], coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    before = proto.SerializeToString()
    result = rewrite_model(Model(proto))
    assert not result.contradictions
    (disagreement,) = result.untouched_contradictions
    assert disagreement.version == onnxruntime.__version__
    assert disagreement.specified is not None and disagreement.found is not None
    assert disagreement.specified.shape == disagreement.found.shape == (1, 1, 2, 1)
    assert disagreement.specified.position == (0, 0, 1, 0)
    assert disagreement.specified.values != disagreement.found.values
    (refusal,) = result.refusals
    assert refusal.finding.rule == "PF206"
    assert "element 1 of the output is 6 of the input, not 7" in refusal.finding.message
    assert proto.SerializeToString() == before


def test_beside_a_rewrite_every_reference_can_judge(tmp_path: Path) -> None:
    proto = resize((1, 1, 14, 7), [1, 1, 1, 1.1], mode="linear")
    pool = helper.make_node("MaxPool", ["Y"], ["Z"], kernel_shape=[2, 2], auto_pad="SAME_UPPER")
    proto.graph.node.append(pool)
    proto.graph.output[0].name = "Z"
    onnx.save(proto, tmp_path / "in.onnx")
    for reference in ("onnxruntime", "spec"):
        report = padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx", reference=reference)
        assert report.verdict is not None and report.verdict.equivalent
        assert [each.finding.rule for each in report.rewrites] == ["PF101"]
        assert [each.op_type for each in report.disagreements] == ["Resize"]
        assert report.to_dict()["disagreements"][0]["found"]["shape"] == [1, 1, 14, 7]
