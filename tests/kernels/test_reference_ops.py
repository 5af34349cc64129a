"""The kernels inside onnx.reference: every version, bodies, functions; and where others leave the specification."""

from __future__ import annotations

import itertools

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, parser
from onnx.reference import ReferenceEvaluator

from padfix.kernels.pool import max_pool_with_indices
from padfix.kernels.reference_ops import SPEC_OPS, SpecEvaluator
from tests.support import oracle
from tests.support.one_node_models import in_onnx_runtime, one_node, values

MODEL = """
<ir_version: 8, opset_import: ["" : 17, "f" : 1]>
main (float[1,1,7] x, bool c) => (called, branch, repeated) {
  called = f.outer<mode="SAME_LOWER">(x)
  branch = If(c) <then_branch = yes () => (a) {
                    a = MaxPool<kernel_shape=[2], dilations=[3], auto_pad="SAME_LOWER">(x) },
                  else_branch = no () => (b) { b = f.inner<mode="SAME_UPPER">(x) }>
  times = Constant<value_int=2>()
  repeated = Loop(times, c, x) <body = step (int64 i, bool go, float[1,1,7] v) => (bool go_out, float[1,1,7] w) {
                    go_out = Identity(go)
                    w = MaxPool<kernel_shape=[2], dilations=[3], auto_pad="SAME_LOWER">(v) }>
}
<domain: "f", opset_import: ["" : 17]>
inner <mode> (x) => (y) { y = MaxPool<kernel_shape=[2], dilations=[3], auto_pad: string = @mode>(x) }
<domain: "f", opset_import: ["" : 17, "f" : 1]>
outer <mode> (x) => (y) { y = f.inner<mode: string = @mode>(x) }
"""


def test_bodies_and_functions_are_reached():
    X = values(1, 1, 7)
    lower = oracle.pool(X, "max", [2], dilations=[3], auto_pad="SAME_LOWER")
    upper = oracle.pool(X, "max", [2], dilations=[3], auto_pad="SAME_UPPER")
    twice = oracle.pool(lower, "max", [2], dilations=[3], auto_pad="SAME_LOWER")
    evaluator = SpecEvaluator(parser.parse_model(MODEL))
    called, branch, repeated = evaluator.run(None, {"x": X, "c": np.array(True)})
    np.testing.assert_array_equal(called, lower)
    np.testing.assert_array_equal(branch, lower)
    np.testing.assert_array_equal(repeated, twice)
    np.testing.assert_array_equal(evaluator.run(["branch"], {"x": X, "c": np.array(False)})[0], upper)


def test_the_list_alone_works_without_functions():
    X = values(1, 1, 7)
    model = one_node("MaxPool", 12, [1, 1, 7], kernel_shape=[3], dilations=[2], auto_pad="SAME_UPPER")
    got = ReferenceEvaluator(model, new_ops=SPEC_OPS).run(None, {"X": X})[0]
    np.testing.assert_array_equal(got, oracle.pool(X, "max", [3], dilations=[2], auto_pad="SAME_UPPER"))


@pytest.mark.parametrize("opset", [7, 8, 9, 10, 11, 13, 18, 22])
def test_windows_of_every_version(opset):
    X, W, B = values(1, 2, 5, 6), values(2, 2, 3, 2, seed=1), values(2, seed=2)
    common = {"strides": [2, 1], "auto_pad": "SAME_LOWER"}
    cases = [
        ("Conv", (W, B), oracle.conv(X, W, B, **common)),
        ("ConvTranspose", (W, B), oracle.conv_transpose(X, W, B, **common)),
        ("MaxPool", (), oracle.pool(X, "max", [3, 2], **common)),
        ("AveragePool", (), oracle.pool(X, "average", [3, 2], **common)),
        ("LpPool", (), oracle.pool(X, "lp", [3, 2], **common)),
    ]
    for op, tensors, want in cases:
        model = one_node(op, opset, X.shape, tensors, kernel_shape=[3, 2], **common)
        got = SpecEvaluator(model).run(None, {"X": X})[0]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=op)
        # ONNX Runtime keeps the specification where nothing is dilated and no kernel is shorter than its stride.
        np.testing.assert_allclose(in_onnx_runtime(model, X)[0], want, rtol=1e-4, atol=1e-5, err_msg=op)


@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_indices_are_those_of_onnx_runtime(storage_order, rank):
    shape = [2, 3, 5, 4, 3][: rank + 2]
    X = values(*shape)
    attributes = {"kernel_shape": [3] * rank, "strides": [2] * rank, "auto_pad": "SAME_UPPER"}
    model = one_node("MaxPool", 12, shape, outputs=("Y", "I"), storage_order=storage_order, **attributes)
    for got, want in zip(SpecEvaluator(model).run(None, {"X": X}), in_onnx_runtime(model, X), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_small_integer_max_pool(dtype):
    X = np.random.default_rng(0).integers(0, 100, (1, 1, 4, 5)).astype(dtype)
    X -= np.array(120 if dtype == np.int8 else 0, dtype)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = one_node("MaxPool", 12, X.shape, element=element, kernel_shape=[3, 3], auto_pad="SAME_UPPER")
    got = SpecEvaluator(model).run(None, {"X": X})[0]
    np.testing.assert_array_equal(got, in_onnx_runtime(model, X)[0])


UPSAMPLED = np.array([1, 1, 2, 3], np.float32)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_legacy_resampling_of_every_version(mode):
    X = values(1, 1, 3, 4)
    want = oracle.legacy_resize(X, UPSAMPLED, mode)
    models = [
        one_node("Upsample", 7, X.shape, scales=[1.0, 1.0, 2.0, 3.0], mode=mode),
        one_node("Upsample", 9, X.shape, [UPSAMPLED], mode=mode),
        one_node("Resize", 10, X.shape, [UPSAMPLED], mode=mode),
        one_node("Upsample", 1, X.shape, height_scale=2.0, width_scale=3.0, mode=mode.replace("linear", "bilinear")),
    ]
    for model in models:
        got = SpecEvaluator(model).run(None, {"X": X})[0]
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_resize_10_shrinks_upwards_and_resize_11_is_another_operator():
    X = np.array([1, 2, 3, 4], np.float32)
    old = one_node("Resize", 10, [4], [np.array([0.6], np.float32)])
    np.testing.assert_array_equal(SpecEvaluator(old).run(None, {"X": X})[0], [1, 3])
    new = one_node("Resize", 13, [4], [None, np.array([0.5], np.float32)], mode="linear")
    np.testing.assert_array_equal(SpecEvaluator(new).run(None, {"X": X})[0], [1.5, 3.5])
    eleven = one_node(
        "Resize", 11, [4], [np.zeros(0, np.float32), np.zeros(0, np.float32), np.array([2])], mode="linear"
    )
    np.testing.assert_array_equal(SpecEvaluator(eleven).run(None, {"X": X})[0], [1.5, 3.5])


def test_upsample_below_one_is_refused():
    model = one_node("Upsample", 9, [1, 1, 4, 4], [np.array([1, 1, 0.5, 1], np.float32)])
    with pytest.raises(ValueError, match="below 1"):
        SpecEvaluator(model).run(None, {"X": values(1, 1, 4, 4)})


@pytest.mark.parametrize("opset", [7, 8, 9, 10, 14, 15])
def test_batch_normalization_at_inference(opset):
    """onnx.reference 1.23.2 normalises versions 7 and 9 by the batch's own statistics."""
    X = values(2, 3, 4, 5)
    tensors = [values(3, seed=seed) for seed in (1, 2, 3)] + [np.abs(values(3, seed=4)) + 0.5]
    model = one_node("BatchNormalization", opset, X.shape, tensors, epsilon=1e-3)
    got = SpecEvaluator(model).run(None, {"X": X})[0]
    np.testing.assert_allclose(got, in_onnx_runtime(model, X)[0], rtol=1e-5, atol=1e-5)


def test_batch_normalization_in_training():
    X = values(4, 3, 5)
    tensors = [values(3, seed=seed) for seed in (1, 2, 3)] + [np.abs(values(3, seed=4)) + 0.5]
    model = one_node("BatchNormalization", 15, X.shape, tensors, training_mode=1, outputs=("Y",))
    got = SpecEvaluator(model).run(None, {"X": X})[0]
    centred = (X - X.mean(axis=(0, 2), keepdims=True)) / np.sqrt(X.var(axis=(0, 2), keepdims=True) + 1e-5)
    want = centred * tensors[0].reshape(-1, 1) + tensors[1].reshape(-1, 1)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [8, 9, 13])
def test_batch_normalization_that_lists_more_outputs_trains_before_opset_14(opset):
    X = values(4, 3, 5)
    tensors = [values(3, seed=seed) for seed in (1, 2, 3)] + [np.abs(values(3, seed=4)) + 0.5]
    model = one_node("BatchNormalization", opset, X.shape, tensors, momentum=0.3, outputs=("Y", "rm", "rv", "sm", "sv"))
    for each in model.graph.output:
        each.type.tensor_type.elem_type = TensorProto.FLOAT
    for got, expected in zip(SpecEvaluator(model).run(None, {"X": X}), in_onnx_runtime(model, X), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [3, 5])
def test_local_response_normalization(size):
    """onnx.reference 1.23.2 walks the batch where it should walk the channels."""
    X = values(1, 7, 3, 3) * 9
    model = one_node("LRN", 13, X.shape, size=size, alpha=0.1)
    got = SpecEvaluator(model).run(None, {"X": X})[0]
    np.testing.assert_allclose(got, in_onnx_runtime(model, X)[0], rtol=1e-5, atol=1e-6)


def test_softplus_of_large_numbers_is_these():
    """onnx.reference 1.19.1 and 1.20.0 give infinity."""
    X = np.array([-1000, -20, 0, 20, 89, 1000], np.float32)
    got = SpecEvaluator(one_node("Softplus", 13, X.shape)).run(None, {"X": X})[0]
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, [0, np.exp(-20), np.log(2), 20, 89, 1000], rtol=1e-6)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [7, 11, 13])
@pytest.mark.parametrize("attributes", [{}, {"axis": 2}, {"axis": 0}])
def test_softmax_family_before_and_since_version_13(op, opset, attributes):
    """onnx.reference 1.23.2 knows the meaning of version 13 only."""
    X = values(2, 3, 4)
    model = one_node(op, opset, X.shape, **attributes)
    got = SpecEvaluator(model).run(None, {"X": X})[0]
    np.testing.assert_allclose(got, in_onnx_runtime(model, X)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("opset", [2, 11, 18])
def test_pad_also_crops(mode, opset):
    """onnx.reference 1.23.2 refuses negative amounts."""
    X = values(1, 2, 4, 5)
    for pads in ([0, 0, 1, 2, 0, 0, 0, 1], [0, 0, -1, 2, 0, 0, 2, -1], [0, -1, 0, 0, 0, 0, -2, 0]):
        if mode != "constant" and min(pads) < 0 and opset == 2:
            continue
        if opset == 2:
            model = one_node("Pad", opset, X.shape, pads=pads, mode=mode, value=3.0)
        else:
            model = one_node("Pad", opset, X.shape, [np.array(pads), np.array(3, np.float32)], mode=mode)
        got = SpecEvaluator(model).run(None, {"X": X})[0]
        np.testing.assert_array_equal(got, in_onnx_runtime(model, X)[0], err_msg=str(pads))


def test_pad_on_named_axes():
    X = values(1, 2, 4, 5)
    lowest = np.array(-np.inf, np.float32)
    model = one_node("Pad", 18, X.shape, [np.array([2, 1, 0, 3]), lowest, np.array([-1, 2])])
    np.testing.assert_array_equal(SpecEvaluator(model).run(None, {"X": X})[0], in_onnx_runtime(model, X)[0])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad_of_every_mode_against_onnx_runtime(mode):
    """What ONNX Runtime refuses (to cut an axis away, reflections longer than the axis) is left out."""
    compared = 0
    for length, begin, end in itertools.product((1, 2, 5), range(-3, 8), range(-3, 8)):
        X = values(2, length)
        tensors = [np.array([begin, end]), np.array(9, np.float32), np.array([-1])]
        model = one_node("Pad", 19, X.shape, tensors, mode=mode)
        try:
            want = in_onnx_runtime(model, X)[0]
        except Exception:
            continue
        np.testing.assert_array_equal(SpecEvaluator(model).run(None, {"X": X})[0], want, f"{length} {begin} {end}")
        compared += 1
    assert compared > 50


def test_pad_says_what_it_cannot_do():
    model = one_node("Pad", 18, [3], [np.array([-2, -2])])
    with pytest.raises(ValueError, match="cut more off"):
        SpecEvaluator(model).run(None, {"X": values(3)})


def test_pad_fills_words_with_empty_words():
    model = one_node("Pad", 18, [2], [np.array([1, 0])], element=TensorProto.STRING)
    got = SpecEvaluator(model).run(None, {"X": np.array(["a", "b"], object)})[0]
    assert list(got) == ["", "a", "b"]


SCANNING = """
<ir_version: 8, opset_import: ["" : 13]>
main (float[2,3] x, int64 times) => (v, matrices, numbers) {
  v, matrices, numbers = Loop(times, , x) <body = step (int64 i, bool go, float[2,3] v)
      => (bool go_out, float[2,3] w, float[2,3] matrix, float number) {
    go_out = Identity(go)
    w = Add(v, v)
    matrix = Identity(w)
    number = ReduceSum<keepdims=0>(w) }>
}
"""


@pytest.mark.parametrize("times", [0, 1, 3])
def test_loop_stacks_its_scan_outputs_and_needs_no_condition(times):
    model = parser.parse_model(SCANNING)
    feeds = {"x": values(2, 3), "times": np.array(times)}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for got, want in zip(SpecEvaluator(model).run(None, feeds), session.run(None, feeds), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize(("node", "imported"), [("ai.onnx", "ai.onnx"), ("ai.onnx", ""), ("", "ai.onnx")])
def test_the_other_spelling_of_onnx_s_own_domain(node, imported):
    model = one_node("Resize", 13, [4], [None, np.array([0.5], np.float32)], mode="linear")
    model.graph.node[0].domain, model.opset_import[0].domain = node, imported
    np.testing.assert_array_equal(SpecEvaluator(model).run(None, {"X": np.arange(4, dtype=np.float32)})[0], [0.5, 2.5])
    assert model.graph.node[0].domain == node


def test_a_maximum_of_bfloat16_keeps_what_is_not_a_number():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    X = np.array([[[1, np.nan, 3]]], ml_dtypes.bfloat16)
    maxima, indices = max_pool_with_indices(X, kernel_shape=[2])
    assert np.isnan(maxima.astype(np.float32)).all()
    np.testing.assert_array_equal(indices, [[[1, 1]]])


def test_global_lp_pool():
    X = values(2, 3, 4, 5)
    model = one_node("GlobalLpPool", 2, X.shape, p=3)
    got = SpecEvaluator(model).run(None, {"X": X})[0]
    np.testing.assert_allclose(got, in_onnx_runtime(model, X)[0], rtol=1e-5)


class TestWhereOthersDepart:
    """Why the kernels exist. A failure here means that a newer release was mended: drop the case and the remark."""

    def test_onnx_reference_rounds_the_size_of_a_same_lower_pool_down(self):
        X = values(1, 1, 7)
        model = one_node("MaxPool", 12, X.shape, kernel_shape=[3], strides=[2], auto_pad="SAME_LOWER")
        assert SpecEvaluator(model).run(None, {"X": X})[0].shape == (1, 1, 4)
        assert ReferenceEvaluator(model).run(None, {"X": X})[0].shape == (1, 1, 3), "onnx 1.23.2"

    def test_onnx_runtime_forgets_dilation_in_same_pools(self):
        X = values(1, 1, 7)
        model = one_node("MaxPool", 12, X.shape, kernel_shape=[3], dilations=[2], auto_pad="SAME_UPPER")
        assert in_onnx_runtime(model, X)[0].shape != (1, 1, 7), "onnxruntime 1.31.1"

    def test_onnx_runtime_does_not_clamp_conv_whose_kernel_is_shorter_than_the_stride(self):
        X, W = np.arange(8, dtype=np.float32).reshape(1, 1, 8), np.ones((1, 1, 1), np.float32)
        model = one_node("Conv", 12, X.shape, [W], strides=[4], auto_pad="SAME_UPPER")
        np.testing.assert_array_equal(SpecEvaluator(model).run(None, {"X": X})[0], [[[0, 4]]])
        np.testing.assert_array_equal(in_onnx_runtime(model, X)[0], [[[1, 5]]], "onnxruntime 1.31.1")

    def test_onnx_runtime_cuts_transposed_same_short(self):
        X, W = np.array([[[1, 2, 3]]], np.float32), np.array([[[1, 10]]], np.float32)
        model = one_node("ConvTranspose", 12, X.shape, [W], strides=[3], auto_pad="SAME_UPPER")
        assert SpecEvaluator(model).run(None, {"X": X})[0].shape == (1, 1, 9)
        assert in_onnx_runtime(model, X)[0].shape == (1, 1, 8), "onnxruntime 1.31.1"

    def test_onnx_runtime_slips_an_index_with_sizes(self):
        X = np.arange(14, dtype=np.float32)
        model = one_node(
            "Resize",
            13,
            [14],
            [None, None, np.array([2])],
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
        np.testing.assert_array_equal(SpecEvaluator(model).run(None, {"X": X})[0], [0, 7])
        np.testing.assert_array_equal(in_onnx_runtime(model, X)[0], [0, 6], "onnxruntime 1.31.1")


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_norms_are_of_magnitudes(p, axis):
    X = values(2, 3, 4)
    X[:, 1] = 0
    model = one_node("LpNormalization", 17, [2, 3, 4], p=p, axis=axis)
    np.testing.assert_allclose(SpecEvaluator(model).run(None, {"X": X})[0], in_onnx_runtime(model, X)[0], rtol=1e-6)


def test_a_mean_takes_the_shape_that_all_of_its_inputs_have_together() -> None:
    graph = "g (float[3,1] X, float[2,1,4] Z) => (float Y) { Y = Mean (X, Z, X) }"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> {graph}')
    given = {"X": np.ones((3, 1), np.float32), "Z": np.full((2, 1, 4), 4, np.float32)}
    (found,) = SpecEvaluator(model).run(None, given)
    assert found.shape == (2, 3, 4)
    assert (found == 2).all()


@pytest.mark.parametrize("shape", [(2, 23), (2, 23, 1), (1, 23, 2)])
@pytest.mark.parametrize("is_told", [False, True])
def test_frames_are_transformed_as_onnx_runtime_does(shape: tuple[int, ...], is_told: bool) -> None:
    kind, sides = f"float{list(shape)} X", 0 if shape[-1] == 2 else 1
    read = "X, step, , length" if is_told else "X, step, w"
    weights = "int64 step = {3}, int64 length = {8}, float[8] w = {0, 1, 2, 3, 4, 3, 2, 1}"
    graph = f"g ({kind}) => (float[A,B,C,D] Y) <{weights}> {{ Y = STFT <onesided = {sides}> ({read}) }}"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}')
    given = {"X": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(SpecEvaluator(model).run(None, given)[0], session.run(None, given)[0], atol=1e-5)


@pytest.mark.parametrize("opset", [7, 11])
@pytest.mark.parametrize(
    ("op_type", "axes", "shape"), [("Squeeze", "[3, 0]", "1,5,2,1"), ("Unsqueeze", "[3, 0]", "5,2")]
)
def test_axes_of_one_element_in_any_order(opset: int, op_type: str, axes: str, shape: str) -> None:
    graph = f"g (float[{shape}] X) => (float Y) {{ Y = {op_type} <axes = {axes}> (X) }}"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {graph}')
    data = np.arange(10, dtype=np.float32)
    (found,) = SpecEvaluator(model).run(None, {"X": data.reshape([int(each) for each in shape.split(",")])})
    assert found.shape == ((5, 2) if op_type == "Squeeze" else (1, 5, 2, 1))
    assert (found.reshape(-1) == data).all()


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("sorted = 0", [3, 1, 2]),
        ("sorted = 1", [1, 2, 3]),
        ("sorted = 0, axis = 0", [[3, 3, 1], [2, 2, 1]]),
        ("sorted = 0, axis = 1", [[3, 1], [3, 1], [2, 1]]),
    ],
)
@pytest.mark.parametrize("results", ["Y", "Y, places"])
def test_unique_elements_in_the_order_of_the_data(attributes: str, expected: list, results: str) -> None:
    graph = f"g (int64[3,3] X) => (int64 Y) {{ {results} = Unique <{attributes}> (X) }}"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 11]> {graph}')
    data = np.array([[3, 3, 1], [3, 3, 1], [2, 2, 1]])
    (found,) = SpecEvaluator(model).run(None, {"X": data})
    np.testing.assert_array_equal(found, expected)
