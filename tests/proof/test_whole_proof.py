"""The whole proof: mutants are caught, equal models pass, what can't be told is said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, external_data_helper, helper, parser, save_model

from padfix.errors import ProofUnavailableError, UnusableResultError
from padfix.proof.executors import Array, ExecutionFailed, OnnxRuntimeExecutor, TensorSpec
from padfix.proof.probes import KINDS, Probe
from padfix.proof.spec_executor import SpecExecutor
from padfix.proof.whole import verify
from padfix.results import Verdict
from tests.support.proofs import model, windowed

RANDOM = np.random.default_rng(0)
WEIGHT = RANDOM.standard_normal((4, 3, 3, 3)).astype(np.float32)
EVEN_WEIGHT = RANDOM.standard_normal((4, 3, 2, 2)).astype(np.float32)
STATIC = (1, 3, 9, 10)
DYNAMIC = ("N", 3, "H", "W")


def pair(first: bytes, second: bytes, *, spec: bool = False, **options: object) -> Verdict:
    reference = SpecExecutor(first) if spec else OnnxRuntimeExecutor(first, optimised=False)
    candidates = [OnnxRuntimeExecutor(second, optimised=level) for level in (False, True)]
    return verify(reference, candidates, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [STATIC, DYNAMIC])
@pytest.mark.parametrize("spec", [False, True])
def test_equal_models_pass(shape: tuple[int | str, ...], spec: bool) -> None:
    before = windowed("Conv", shape, weight=WEIGHT, auto_pad="SAME_UPPER")
    verdict = pair(before, windowed("Conv", shape, weight=WEIGHT, pads=[1, 1, 1, 1]), spec=spec)
    assert verdict.equivalent
    assert verdict.reference == ("spec" if spec else "onnxruntime")
    assert len(verdict.runs) == 2 * len(KINDS)
    assert {run.candidate for run in verdict.runs} == {
        "onnxruntime (no optimisation)",
        "onnxruntime (all optimisations)",
    }
    sizes = {run.shapes["X"] for run in verdict.runs}
    assert len(sizes) == (1 if shape == STATIC else len(KINDS))
    assert [output.name for output in verdict.outputs] == ["Y"]


MUTANTS = {
    "pad moved to the other side": (
        windowed("Conv", STATIC, weight=EVEN_WEIGHT, auto_pad="SAME_UPPER"),
        windowed("Conv", STATIC, weight=EVEN_WEIGHT, pads=[1, 1, 0, 0]),
    ),
    "transposed kernel": (
        windowed("Conv", STATIC, weight=WEIGHT, auto_pad="SAME_UPPER"),
        windowed("Conv", STATIC, weight=WEIGHT.transpose(0, 1, 3, 2).copy(), pads=[1, 1, 1, 1]),
    ),
    "pads counted": (
        windowed("AveragePool", STATIC, kernel_shape=[3, 3], auto_pad="SAME_UPPER"),
        windowed("AveragePool", STATIC, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    ),
    "row missing": (
        windowed("MaxPool", STATIC, kernel_shape=[3, 3], auto_pad="SAME_UPPER"),
        windowed("MaxPool", STATIC, kernel_shape=[3, 3], pads=[1, 1, 0, 1]),
    ),
    "bias forgotten by a little": (
        windowed("Conv", STATIC, weight=WEIGHT, pads=[1, 1, 1, 1]),
        windowed("Conv", STATIC, weight=WEIGHT + np.float32(0.01), pads=[1, 1, 1, 1]),
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(mutant: str) -> None:
    before, after = MUTANTS[mutant]
    verdict = pair(before, after)
    assert not verdict.equivalent
    wrong = [output for run in verdict.runs for output in run.outputs if not output.equivalent]
    assert all(output.detail for output in wrong)


def nearest(**attributes: str) -> bytes:
    node = helper.make_node("Resize", ["X", "", "scales"], ["Y"], mode="nearest", **attributes)
    scales = np.array([1, 1, 1.5, 2.5], np.float32)
    return model([node], {"X": (TensorProto.FLOAT, (1, 2, 6, 7))}, constants={"scales": scales}).SerializeToString()


def test_nearest_modes_are_told_apart() -> None:
    floor = nearest(nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    assert pair(floor, floor).equivalent
    assert not pair(floor, nearest(nearest_mode="ceil", coordinate_transformation_mode="asymmetric")).equivalent


def test_zero_padded_pool_is_caught_on_negative_data_only() -> None:
    pads = np.array([0, 0, 0, 0, 0, 0, 1, 1], np.int64)
    nodes = [
        helper.make_node("Pad", ["X", "pads"], ["P"]),
        helper.make_node("MaxPool", ["P"], ["Y"], kernel_shape=[2, 2]),
    ]
    padded = model(nodes, {"X": (TensorProto.FLOAT, STATIC)}, constants={"pads": pads}).SerializeToString()
    verdict = pair(windowed("MaxPool", STATIC, kernel_shape=[2, 2], auto_pad="SAME_UPPER"), padded)
    assert not verdict.equivalent
    assert not next(run for run in verdict.runs if run.probe == "negative").equivalent
    assert next(run for run in verdict.runs if run.probe == "ones").equivalent


def test_a_dilated_same_convolution_needs_the_specification() -> None:
    before = windowed("Conv", STATIC, weight=WEIGHT, auto_pad="SAME_UPPER", dilations=[2, 2])
    after = windowed("Conv", STATIC, weight=WEIGHT, pads=[2, 2, 2, 2], dilations=[2, 2])
    with pytest.raises(ProofUnavailableError) as caught:
        pair(before, after)
    assert "Dilation not supported" in caught.value.message
    assert "--reference spec" in caught.value.hint
    assert pair(before, after, spec=True).equivalent


def picky(multiple: int) -> bytes:
    """A model that only takes heights that are multiples: shrunk, enlarged again and put beside the input."""
    nodes = [
        helper.make_node("MaxPool", ["X"], ["A"], kernel_shape=[multiple] * 2, strides=[multiple] * 2),
        helper.make_node("Resize", ["A", "", "scales"], ["B"]),
        helper.make_node("Concat", ["X", "B"], ["Y"], axis=1),
    ]
    scales = np.array([1, 1, multiple, multiple], np.float32)
    return model(nodes, {"X": (TensorProto.FLOAT, DYNAMIC)}, constants={"scales": scales}).SerializeToString()


def test_other_sizes_are_tried_and_noted() -> None:
    verdict = pair(picky(32), picky(32))
    assert verdict.equivalent
    assert {run.probe for run in verdict.runs} == set(KINDS)
    assert all(run.shapes["X"][2] % 32 == 0 for run in verdict.runs)
    assert len({run.shapes["X"] for run in verdict.runs}) >= 3
    assert any("Sizes run" in note for note in verdict.notes)
    assert any("were left out" in note for note in verdict.notes)


def test_a_model_that_takes_no_size_asks_for_one() -> None:
    with pytest.raises(ProofUnavailableError) as caught:
        pair(picky(77), picky(77))
    assert "--shape" in caught.value.hint
    assert pair(picky(77), picky(77), shapes={"X": (1, 3, 77, 154)}).equivalent


def test_fully_dynamic_convolution_is_given_its_channels() -> None:
    shape = (None, None, None, None)
    before = windowed("Conv", shape, weight=WEIGHT, auto_pad="SAME_LOWER")
    verdict = pair(before, windowed("Conv", shape, weight=WEIGHT, pads=[1, 1, 1, 1]))
    assert verdict.equivalent
    assert all(run.shapes["X"][1] == 3 for run in verdict.runs)
    assert len({run.shapes["X"] for run in verdict.runs}) == len(KINDS)


def test_random_models_are_refused() -> None:
    noise = model([helper.make_node("RandomNormalLike", ["X"], ["Y"])], {"X": (TensorProto.FLOAT, STATIC)})
    with pytest.raises(ProofUnavailableError, match="random"):
        pair(noise.SerializeToString(), noise.SerializeToString())


def test_a_candidate_that_can_not_be_loaded_or_run_is_not_equivalent() -> None:
    before = windowed("MaxPool", STATIC, kernel_shape=[2, 2])
    reference = OnnxRuntimeExecutor(before, optimised=False)
    verdict = verify(reference, [lambda: OnnxRuntimeExecutor(b"no model", optimised=False)])
    assert not verdict.equivalent
    assert "can't be loaded" in verdict.runs[0].outputs[0].detail
    other_shape = windowed("MaxPool", (1, 3, 9, 11), kernel_shape=[2, 2])
    verdict = verify(reference, [OnnxRuntimeExecutor(other_shape, optimised=False)])
    assert not verdict.equivalent
    assert "can't be run" in verdict.runs[0].outputs[0].detail


@pytest.mark.parametrize("weight", [WEIGHT, 2 * WEIGHT])
def test_what_differs_without_the_optimiser_is_told_though_that_breaks_the_result(
    weight: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = OnnxRuntimeExecutor.run

    def broken(self: OnnxRuntimeExecutor, arrays: Mapping[str, Array]) -> dict[str, Array]:
        if self.optimised and self is not reference.optimised_twin:
            raise ExecutionFailed("no kernel for a fusion", loading=True)
        return run(self, arrays)

    monkeypatch.setattr(OnnxRuntimeExecutor, "run", broken)
    before = windowed("Conv", STATIC, weight=WEIGHT)
    reference = OnnxRuntimeExecutor(before, optimised=False)
    plain = OnnxRuntimeExecutor(windowed("Conv", STATIC, weight=weight), optimised=False)
    if weight is WEIGHT:
        with pytest.raises(UnusableResultError, match="no kernel for a fusion"):
            verify(reference, [plain, plain.optimised_twin])
        return
    verdict = verify(reference, [plain, plain.optimised_twin])
    assert not verdict.equivalent
    assert any("no kernel for a fusion" in note for note in verdict.notes)


@pytest.mark.parametrize("want", [MemoryError(), ExecutionFailed("std::bad_alloc")])
def test_a_place_that_takes_too_much_memory_is_left_out(want: Exception) -> None:
    def describe(*_: object) -> None:
        raise want

    first, second = (windowed("Conv", STATIC, weight=sign * WEIGHT, pads=[1, 1, 1, 1]) for sign in (1, -1))
    verdict = pair(first, second, describe=describe)
    assert not verdict.equivalent
    assert verdict.first_difference is None
    assert any("it is left out" in note for note in verdict.notes)


def test_no_candidate_proves_nothing() -> None:
    assert not verify(
        OnnxRuntimeExecutor(windowed("MaxPool", STATIC, kernel_shape=[2, 2]), optimised=False), []
    ).equivalent


def subtraction(names: tuple[str, str, str], types: tuple[int, int] = (TensorProto.FLOAT, TensorProto.INT64)) -> bytes:
    first, second, output = names
    nodes = [
        helper.make_node("Cast", [second], ["c"], to=TensorProto.FLOAT),
        helper.make_node("Sub", [first, "c"], [output]),
    ]
    inputs = {first: (types[0], (2, 3)), second: (types[1], (2, 3))}
    return model(nodes, inputs, outputs=[output]).SerializeToString()


def test_names_may_differ_when_positions_and_types_tell() -> None:
    verdict = pair(subtraction(("a", "b", "out")), subtraction(("x", "y", "result")))
    assert verdict.equivalent
    assert verdict.outputs[0].name == "out"


def test_other_inputs_can_not_be_told() -> None:
    one = model([helper.make_node("Relu", ["X"], ["Y"])], {"X": (TensorProto.FLOAT, (2, 3))}).SerializeToString()
    with pytest.raises(ProofUnavailableError, match="different inputs"):
        pair(one, subtraction(("X", "b", "Y")))


def test_a_missing_output_is_not_equivalent() -> None:
    nodes = [helper.make_node("Relu", ["X"], ["Y"]), helper.make_node("Neg", ["X"], ["Z"])]
    both = model(nodes, {"X": (TensorProto.FLOAT, (2, 3))}, outputs=["Y", "Z"]).SerializeToString()
    one = model(nodes[:1], {"X": (TensorProto.FLOAT, (2, 3))}).SerializeToString()
    assert not pair(both, one).equivalent
    assert pair(one, both).equivalent


def test_given_output_names_are_used() -> None:
    nodes = [helper.make_node("Relu", ["X"], ["Y"]), helper.make_node("Neg", ["X"], ["Z"])]
    first = model(nodes, {"X": (TensorProto.FLOAT, (2, 3))}, outputs=["Y", "Z"]).SerializeToString()
    nodes = [helper.make_node("Relu", ["X"], ["Q"]), helper.make_node("Neg", ["X"], ["P"])]
    second = model(nodes, {"X": (TensorProto.FLOAT, (2, 3))}, outputs=["P", "Q"]).SerializeToString()
    assert not pair(first, second).equivalent
    assert pair(first, second, output_names={"Y": "Q", "Z": "P"}).equivalent


def test_probes_of_the_user_run_first_and_must_run() -> None:
    before = windowed("Conv", DYNAMIC, weight=WEIGHT, auto_pad="SAME_UPPER")
    good = Probe("mine.npz", {"X": np.ones((1, 3, 5, 5), np.float32)})
    verdict = pair(before, before, probes=[good])
    assert verdict.runs[0].probe == "mine.npz"
    assert len(verdict.runs) == 2 * (len(KINDS) + 1)
    bad = Probe("bad.npz", {"X": np.ones((1, 4, 5, 5), np.float32)})
    with pytest.raises(ProofUnavailableError):
        pair(before, before, probes=[bad])
    with pytest.raises(ProofUnavailableError, match="no array"):
        pair(before, before, probes=[Probe("other.npz", {"Q": np.ones(1)})])


class _Steady:
    """An executor made of a function."""

    name = "tensorflow"

    def __init__(self, value: float) -> None:
        self.inputs = [TensorSpec("x", TensorProto.FLOAT, (2,))]
        self.outputs = ["y"]
        self.value = value

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        return {"y": np.full((3,), self.value, np.float32)}


def test_an_output_that_never_varies_is_noted() -> None:
    verdict = verify(_Steady(1.0), [_Steady(1.0)])
    assert verdict.equivalent
    assert any("one single value" in note for note in verdict.notes)
    assert not verify(_Steady(1.0), [_Steady(1.001)]).equivalent


def test_words_are_told_before_each_probe() -> None:
    told: list[str] = []
    verify(_Steady(1.0), [_Steady(1.0)], progress=told.append)
    assert told[: len(KINDS)] == [f"Proving on {kind} data ({n} of {len(KINDS)})" for n, kind in enumerate(KINDS, 1)]
    (running,) = told[len(KINDS) :]
    assert running.startswith("Running the result in ")
    assert running.endswith(" (1 of 1)")


def test_overridable_initializers_need_not_be_fed() -> None:
    constants = {"W": WEIGHT}
    node = helper.make_node("Conv", ["X", "W"], ["Y"])
    inputs = {"X": (TensorProto.FLOAT, STATIC), "W": (TensorProto.FLOAT, WEIGHT.shape)}
    data = model([node], inputs, constants=constants).SerializeToString()
    for executor in (SpecExecutor(data), OnnxRuntimeExecutor(data, optimised=False)):
        assert [spec.name for spec in executor.inputs] == ["X"]
    assert pair(data, data, spec=True).equivalent


def test_sequences_are_refused_as_inputs_and_flattened_as_outputs() -> None:
    node = helper.make_node("ConcatFromSequence", ["S"], ["Y"], axis=0)
    proto: ModelProto = model([node], {})
    proto.graph.input.append(
        helper.make_tensor_sequence_value_info("S", TensorProto.FLOAT, None),
    )
    data = proto.SerializeToString()
    for make in (lambda: OnnxRuntimeExecutor(data, optimised=False), lambda: SpecExecutor(data)):
        with pytest.raises(ExecutionFailed, match="not a tensor"):
            _ = make().inputs
    with pytest.raises(ProofUnavailableError, match="not a tensor"):
        pair(data, data)
    split = model([helper.make_node("SplitToSequence", ["X"], ["Y"])], {"X": (TensorProto.FLOAT, (2, 3))})
    result = OnnxRuntimeExecutor(split.SerializeToString(), optimised=False).run({"X": np.ones((2, 3), np.float32)})
    assert list(result) == ["Y[]", "Y[0]", "Y[1]"]
    assert result["Y[]"] == 2
    assert pair(split.SerializeToString(), split.SerializeToString(), spec=True).equivalent


def test_external_data_is_found_beside_the_file_and_in_a_folder(tmp_path: Path) -> None:
    data = windowed("Conv", STATIC, weight=WEIGHT, pads=[1, 1, 1, 1])
    path = tmp_path / "model.onnx"
    save_model(ModelProto.FromString(data), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    skeleton = path.read_bytes()
    assert external_data_helper.uses_external_data(ModelProto.FromString(skeleton).graph.initializer[0])
    feeds = {"X": np.random.default_rng(0).standard_normal(STATIC).astype(np.float32)}
    expected = SpecExecutor(data).run(feeds)["Y"]
    executors = [
        SpecExecutor(path),
        OnnxRuntimeExecutor(path, optimised=True),
        OnnxRuntimeExecutor(skeleton, optimised=True, folder=tmp_path),
    ]
    for executor in executors:
        assert np.allclose(executor.run(feeds)["Y"], expected, atol=1e-4)


def test_bfloat16_passes_through_onnxruntime() -> None:
    data = model([helper.make_node("Identity", ["X"], ["Y"])], {"X": (TensorProto.BFLOAT16, (2, 3))})
    assert pair(data.SerializeToString(), data.SerializeToString(), spec=True).equivalent


def test_scalars_and_unknown_ranks_are_told_apart() -> None:
    nodes = [helper.make_node("Add", ["X", "S"], ["Y"])]
    data = model(nodes, {"X": (TensorProto.FLOAT, None), "S": (TensorProto.FLOAT, ())}).SerializeToString()
    specs = {spec.name: spec.shape for spec in OnnxRuntimeExecutor(data, optimised=False).inputs}
    assert specs == {"X": None, "S": ()}
    with pytest.raises(ProofUnavailableError, match="--shape X="):
        pair(data, data)
    assert pair(data, data, shapes={"X": (2, 3)}).equivalent


def test_messages_are_one_sentence() -> None:
    with pytest.raises(ExecutionFailed) as caught:
        OnnxRuntimeExecutor(b"no model", optimised=False)
    assert "ONNXRuntimeError" not in caught.value.message
    assert "\n" not in caught.value.message
    with pytest.raises(ExecutionFailed):
        SpecExecutor(b"no model")
    with pytest.raises(ExecutionFailed) as missing:
        SpecExecutor(windowed("MaxPool", STATIC, kernel_shape=[2, 2])).run({})
    assert "'X'" in missing.value.message


def quantized(pads: list[int]) -> bytes:
    """Three convolutions between QuantizeLinear and DequantizeLinear, as quantization tools write them."""
    random = np.random.default_rng(0)
    constants: dict[str, np.ndarray] = {
        "zero": np.array(128, np.uint8),
        "weight_scale": np.array(0.01, np.float32),
        "weight_zero": np.array(0, np.int8),
        "scale": np.array(0.1, np.float32),
    }
    nodes, value = [], "X"
    for layer in range(3):
        constants[f"w{layer}"] = random.integers(-127, 127, (8, 8, 3, 3)).astype(np.int8)
        nodes += [
            helper.make_node("QuantizeLinear", [value, "scale", "zero"], [f"q{layer}"]),
            helper.make_node("DequantizeLinear", [f"q{layer}", "scale", "zero"], [f"d{layer}"]),
            helper.make_node("DequantizeLinear", [f"w{layer}", "weight_scale", "weight_zero"], [f"dw{layer}"]),
            helper.make_node("Conv", [f"d{layer}", f"dw{layer}"], [f"c{layer}"], pads=pads),
        ]
        value = f"c{layer}"
    nodes += [
        helper.make_node("QuantizeLinear", [value, "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["Y"]),
    ]
    return model(nodes, {"X": (TensorProto.FLOAT, (1, 8, 12, 13))}, constants=constants).SerializeToString()


def test_a_quantized_model_equals_itself_and_its_mutants_are_caught() -> None:
    original = quantized([1, 1, 1, 1])
    assert pair(original, original).equivalent
    verdict = pair(original, quantized([0, 1, 2, 1]))
    assert not verdict.equivalent
    assert all(not run.equivalent for run in verdict.runs if run.probe == "normal")


CRASHES = """
<ir_version: 8, opset_import: ["" : 13]>
network (float[rows, length] x) => (float[rows, number, columns] y)
<int64[1] zero = {0}, int64[1] first = {33}, int64[1] most = {99999}, int64[1] axis = {1}, int64[3] shape = {0, -1, 8}>
{
    state = Slice (x, zero, first, axis)
    rest = Slice (x, first, most, axis)
    pieces = Reshape (rest, shape)
    last, y = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], body = step
        (float[r, c] before, float[r, d] piece) => (float[r, c] behind, float[r, e] joined) {
            joined = Concat <axis = -1> (before, piece)
            behind = Identity (before)
        }> (state, pieces)
}
"""


def test_a_size_that_the_runtime_crashes_on_is_left_out() -> None:
    """ONNX Runtime ends the process that runs several rows of 33."""
    data = parser.parse_model(CRASHES).SerializeToString()
    verdict = pair(data, data)
    assert verdict.equivalent
    assert {run.shapes["x"] for run in verdict.runs} >= {(1, 41)}
    assert not any(run.shapes["x"] == (2, 33) for run in verdict.runs)
