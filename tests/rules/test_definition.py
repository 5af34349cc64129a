"""Operators as what ONNX defines them by, and what few nodes ask for: masks, statistics, numbers in lists of one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError
from tests.support.proven import operators_for


def converted(text: str, target: str, folder: Path, opset: int = 23) -> Counter[str]:
    """Return how many operators of each type a model becomes; it is proven on the way."""
    return operators_for(text, target, folder, opset, ir_version=10)


PAST = """(float[2,2,3,8] Q, float[2,2,5,8] K, float[2,2,5,8] V, float[2,2,4,8] pk, float[2,2,4,8] pv)
  => (float[2,2,3,8] Y, float[2,2,9,8] k, float[2,2,9,8] v) {
    Y, k, v = Attention <is_causal = 1> (Q, K, V, , pk, pv)
  }"""


@pytest.mark.parametrize("target", ["opencv@5.0.0.93", "openvino", "tract"])
def test_an_attention_over_keys_from_before_is_its_products(target: str, tmp_path: Path) -> None:
    found = converted(PAST, target, tmp_path)
    assert found["Attention"] == 0
    assert found["MatMul"] == 2
    assert found["Softmax"] == 1
    assert found["Identity"] == 0


@pytest.mark.parametrize(
    ("mask", "attributes", "output", "target"),
    [
        (", bool[3,5] m", "<>", "Y", "opencv@5.0.0.93"),
        (", float[2,1,3,5] m", "<softcap = 2.0>", "Y", "opencv@5.0.0.93"),
        (", float[3,5] m", "<qk_matmul_output_mode = 1>", "Y, , , products", "opencv@5.0.0.93"),
        (", bool[2,2,3,5] m", "<>", "Y", "tract"),
        ("", "<softcap = 2.0>", "Y", "tract"),
    ],
)
def test_masks_and_bounds_of_an_attention_are_written_out(
    mask: str, attributes: str, output: str, target: str, tmp_path: Path
) -> None:
    products = ", float[2,2,3,5] products" if "products" in output else ""
    given = ", m" if mask else ""
    text = f"""(float[2,2,3,8] Q, float[2,2,5,8] K, float[2,2,5,6] V{mask}) => (float[2,2,3,6] Y{products}) {{
      {output} = Attention {attributes if attributes != "<>" else ""} (Q, K, V{given})
    }}"""
    assert converted(text, target, tmp_path)["Attention"] == 0


@pytest.mark.parametrize("target", ["openvino", "qnn", "tract"])
@pytest.mark.parametrize("window", ["left_window_size = 1", "left_window_size = 0, right_window_size = 1"])
def test_a_window_of_keys_is_a_mask(window: str, target: str, tmp_path: Path) -> None:
    text = f"""(float[2,2,3,8] Q, float[2,2,4,8] K, float[2,2,4,8] V) => (float[2,2,3,8] Y) {{
      Y = Attention <{window}> (Q, K, V)
    }}"""
    assert converted(text, target, tmp_path, 25)["Attention"] == 0


COUNTED = """(float[2,2,3,8] Q, float[2,2,4,8] K, float[2,2,4,8] V, int64[2] n) => (float[2,2,3,8] Y) {
  Y = Attention (Q, K, V, , , , n)
}"""


def test_keys_that_are_counted_are_masked_behind_these(tmp_path: Path) -> None:
    assert converted(COUNTED, "tract", tmp_path, 24)["Attention"] == 0


def test_whether_no_key_is_counted_is_not_asked_of_half_precision(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="beyond half precision"):
        converted(COUNTED, "qnn", tmp_path, 24)


def test_an_attention_that_a_runtime_has_stays(tmp_path: Path) -> None:
    text = "(float[2,2,3,8] Q, float[2,2,3,8] K, float[2,2,3,8] V) => (float[2,2,3,8] Y) { Y = Attention (Q, K, V) }"
    for target in ("opencv@5.0.0.93", "openvino", "tract"):
        assert converted(text, target, tmp_path) == {"Attention": 1}


def test_a_loss_gives_its_logarithms_as_well(tmp_path: Path) -> None:
    text = """(float[3,5,2] X, int64[3,2] t) => (float loss, float[3,5,2] log) {
      loss, log = SoftmaxCrossEntropyLoss <reduction = "mean"> (X, t)
    }"""
    assert converted(text, "tract", tmp_path, 13)["SoftmaxCrossEntropyLoss"] == 0


def test_a_rotation_of_all_elements_splits_nothing_off(tmp_path: Path) -> None:
    text = """(float[2,3,4,8] X, float[2,4,4] c, float[2,4,4] s) => (float[2,3,4,8] Y) {
      Y = RotaryEmbedding <interleaved = 1> (X, c, s)
    }"""
    found = converted(text, "opencv@5.0.0.93", tmp_path)
    assert found["RotaryEmbedding"] == found["Split"] == 0


@pytest.mark.parametrize(
    "text",
    [
        "(float[2,3] X) => (float[2,3] Y) <int64[1] axis = {1}> { Y = CumSum (X, axis) }",
        "(float[3,3] X) => (float[3,3] Y) <int64[1] k = {-1}> { Y = Trilu (X, k) }",
        "(float[3,3] X) => (float[4,3] Y) <int64[4] p = {1, 0, 0, 0}, float[1] v = {2}> { Y = Pad (X, p, v) }",
    ],
)
def test_lists_of_one_become_numbers(text: str, tmp_path: Path) -> None:
    converted(text, "tract", tmp_path, 15)
    after = onnx.load(tmp_path / "after.onnx")
    assert [] in [list(each.dims) for each in after.graph.initializer]


@pytest.mark.parametrize("target", ["opencv@5.0.0.93", "openvino", "tract"])
def test_an_extreme_that_is_compared_with_infinity_may_be_infinite(target: str, tmp_path: Path) -> None:
    text = """(float[2,3] X) => (bool[2,1] Y) <float low = {-inf}> {
      most = ReduceMax <axes = [1]> (X)
      Y = Equal (most, low)
    }"""
    assert converted(text, target, tmp_path, 13)["Where"] == 1
    other = "(float[2,3] X) => (float[2,1] Y) { Y = ReduceMax <axes = [1]> (X) }"
    assert converted(other, target, tmp_path, 13) == {"ReduceMax": 1}


@pytest.mark.parametrize("batch", ["2", "N"])
def test_all_of_a_mask_is_kept_where_nothing_is_dropped(batch: str, tmp_path: Path) -> None:
    text = f"""(float[{batch},3] X) => (float[{batch},3] Y, bool[{batch},3] m) {{
      a = Relu (X)
      Y, m = Dropout (a)
    }}"""
    assert converted(text, "opencv@5.0.0.93", tmp_path, 13)["Dropout"] == 0


def test_a_norm_that_trains_is_that_of_its_batch(tmp_path: Path) -> None:
    text = """(float[2,3,4] X, float[3] s, float[3] b, float[3] m, float[3] v)
      => (float[2,3,4] Y, float[3] rm, float[3] rv) {
      Y, rm, rv = BatchNormalization <training_mode = 1, momentum = 0.75> (X, s, b, m, v)
    }"""
    found = converted(text, "tract", tmp_path, 15)
    assert found["BatchNormalization"] == 0
    assert found["ReduceMean"] == 2


@pytest.mark.parametrize("target", ["opencv@4.14", "opencv@5.0.0.93", "mnn", "tvm"])
@pytest.mark.parametrize("opset", [9, 13])
def test_a_norm_that_lists_more_outputs_trains_before_opset_14(opset: int, target: str, tmp_path: Path) -> None:
    """As PyTorch exports a norm of a convolution's weights; nothing reads the other outputs."""
    text = """(float[2,3,4] X, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3,4] Y) {
      Y, rm, rv, sm, sv = BatchNormalization <momentum = 1.0> (X, s, b, m, v)
    }"""
    found = converted(text, target, tmp_path, opset)
    assert found["BatchNormalization"] == 0
    assert found["ReduceMean"] == 2


def test_the_mean_of_a_layer_is_read(tmp_path: Path) -> None:
    text = """(float[2,3,4] X, float[4] s) => (float[2,3,4] Y) {
      norm, mean = LayerNormalization (X, s)
      Y = Add (norm, mean)
    }"""
    assert converted(text, "opencv@5.0.0.93", tmp_path, 17)["ReduceMean"]


def test_bounds_the_other_way_round_give_the_most(tmp_path: Path) -> None:
    text = "(float[2,3] X) => (float[2,3] Y) <float low = {2}, float high = {-1}> { Y = Clip (X, low, high) }"
    assert converted(text, "opencv@5.0.0.93", tmp_path, 13) == {"Max": 1, "Min": 1}


def declined(text: str, target: str, folder: Path, opset: int = 17) -> str:
    """Return why a model is declined."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> g {text}')
    onnx.save(model, folder / "before.onnx")
    with pytest.raises(RefusedError) as found:
        padfix.convert(folder / "before.onnx", folder / "after.onnx", target=target)
    return str(found.value)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("nodes", "result"),
    [
        ("Y = Cast <to = 7> (X)", "int64[2,3] Y"),
        ("i = Cast <to = 7> (X) Y = Add (i, one)", "int64[2,3] Y"),
        ("i = Cast <to = 7> (X) c = CumSum (i, axis) Y = Cast <to = 1> (c)", "float[2,3] Y"),
        ("Y = Shape (X)", "int64[2] Y"),
        ("s = Size (X) Y = Add (s, one)", "int64[1] Y"),
    ],
)
@pytest.mark.parametrize("batch", ["2", "N"])
def test_integers_that_become_results_are_no_lengths(nodes: str, result: str, batch: str, tmp_path: Path) -> None:
    result = result.replace("[2,3]", f"[{batch},3]")
    text = f"(float[{batch},3] X) => ({result}) <int64[1] one = {{1}}, int64 axis = {{1}}> {{ {nodes} }}"
    found = converted(text, "tract", tmp_path, 15)
    is_constant = batch == "2" and "Cast" not in nodes
    assert found["CastLike"] == (not is_constant)


@pytest.mark.parametrize("nodes", ["Y = CumSum (i, axis)", "c = CumSum (i, axis) Y = Sub (c, one)", "Y = Add (i, one)"])
def test_a_cast_that_changes_no_type_makes_no_lengths(nodes: str, tmp_path: Path) -> None:
    constants = "<int64[1] one = {1}, int64 axis = {1}>"
    text = f"(int64[N,3] X) => (int64[N,3] Y) {constants} {{ i = Cast <to = 7> (X) {nodes} }}"
    assert converted(text, "tract", tmp_path, 17)["Cast"] == 0


def test_lengths_that_are_results_and_shapes_at_once_are_declined(tmp_path: Path) -> None:
    text = "(float[N,3] X, float[K] Z) => (int64[2] s, float[N,3] Y) { s = Shape (X) Y = Reshape (Z, s) }"
    assert "say what others do" in declined(text, "tract", tmp_path)


def test_integers_that_pick_stay_lengths(tmp_path: Path) -> None:
    text = "(float[2,3] X) => (float[2,3] Y) <float[4] t = {1, 2, 3, 4}> { i = Cast <to = 7> (X) Y = Gather (t, i) }"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 17]> g {text}')
    onnx.save(model, tmp_path / "m.onnx")
    assert not padfix.check(tmp_path / "m.onnx", target="tract").findings


@pytest.mark.parametrize("target", ["tract", "opencv@4.14.0"])
def test_what_data_tell_is_declined_where_it_is_to_be_known(target: str, tmp_path: Path) -> None:
    text = "(float[2,3] X, int64[2] s) => (float[A,B] Y) { Y = Reshape (X, s) }"
    assert "Reshape '#0'" in declined(text, target, tmp_path)
    lengths = "n = Shape <start = 0, end = 1> (X) s = Concat <axis = 0> (n, r)"
    text = f"(float[N,3,4] X) => (float[N,B] Y) <int64[1] r = {{-1}}> {{ {lengths} Y = Reshape (X, s) }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 17]> g {text}'), tmp_path / "m.onnx")
    says = [each.message for each in padfix.check(tmp_path / "m.onnx", target=target).findings]
    assert not [each for each in says if "beforehand" in each]


@pytest.mark.parametrize(
    ("lists", "join"),
    [("float[2] A, float[3] B", "<axis = -1> (A, B)"), ("float[2] A", "<axis = 0> (A, k)")],
)
def test_lists_are_joined_as_rows(lists: str, join: str, tmp_path: Path) -> None:
    text = f"({lists}) => (float[5] Y) <float[3] k = {{1, 2, 3}}> {{ Y = Concat {join} }}"
    found = converted(text, "opencv@4.14.0", tmp_path, 15)
    assert found["Reshape"] == join.count("A") + join.count("B") + 1


@pytest.mark.parametrize("indices", ["3", "2,3"])
def test_what_is_picked_of_a_list_has_its_own_axes(indices: str, tmp_path: Path) -> None:
    text = f"""(int64[{indices}] i, float[{indices}] X) => (float[{indices}] Y) <float[4] t = {{1, 2, 3, 4}}> {{
      g = Gather (t, i)
      Y = Mul (g, X)
    }}"""
    assert converted(text, "opencv@4.14.0", tmp_path, 15)["Reshape"]


@pytest.mark.parametrize("axis", [0, 1])
def test_a_norm_by_the_root_takes_any_axes(axis: int, tmp_path: Path) -> None:
    weights = "float[3,4] s" if axis else "float[2,3,4] s"
    text = f"(float[2,3,4] X, {weights}) => (float[2,3,4] Y) {{ Y = RMSNormalization <axis = {axis}> (X, s) }}"
    assert converted(text, "opencv@4.14.0", tmp_path)["RMSNormalization"] == 0


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("(int64[2,3] X, int64[3,2] Z) => (int64[2,2] Y) { Y = MatMul (X, Z) }", "tract"),
        ("(double[2,3] X, double[3,2] Z) => (double[2,2] Y) { Y = Gemm (X, Z) }", "opencv@5.0.0.93"),
        ("(int32[2,3] X) => (int32[2,1] Y) { Y = ReduceMean <axes = [1]> (X) }", "opencv@5.0.0.93"),
    ],
)
def test_numbers_of_which_a_runtime_has_no_such_operator_are_declined(text: str, target: str, tmp_path: Path) -> None:
    assert "No equal form" in declined(text, target, tmp_path)


def test_columns_of_volumes_are_joined_by_a_convolution(tmp_path: Path) -> None:
    text = """(float[1,8,12] X) => (float[1,1,4,3,2] Y) <int64[3] image = {4, 3, 2}, int64[3] block = {2, 2, 2}> {
      Y = Col2Im <strides = [1, 1, 1]> (X, image, block)
    }"""
    assert converted(text.replace("8,12", "8,6"), "openvino", tmp_path, 18)["ConvTranspose"] == 1


def test_a_single_step_from_zeros_reads_no_states(tmp_path: Path) -> None:
    text = """(float[1,3,2] X) => (float[1,3,4] h) <float[1,4,2] W = {1,2,3,4,5,6,7,8}, float[1,4,4] R = {
      1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}> { , h = RNN <hidden_size = 4> (X, W, R) }"""
    assert converted(text, "opencv@4.14.0", tmp_path, 14)["Squeeze"] == 0


@pytest.mark.parametrize("axis", [-1, 1])
def test_indices_in_floats_are_made_integers(axis: int, tmp_path: Path) -> None:
    text = f"""(float[2,3] I) => (float[B,C,D] Y) <float d = {{4}}, float[2] v = {{1, 5}}> {{
      Y = OneHot <axis = {axis}> (I, d, v)
    }}"""
    assert converted(text, "tract", tmp_path, 13)["Cast"] == 1


@pytest.mark.parametrize(
    ("text", "target", "opset"),
    [
        ("(int64[2] s) => (float[A,B] Y) { Y = ConstantOfShape (s) }", "opencv@5.0.0.93", 13),
        ("(int8[2,3] X) => (int8[2,3] Y) { Y = Clip (X) }", "opencv@4.14.0", 13),
    ],
)
def test_what_is_left_out_is_written_or_left_out_as_a_whole(text: str, target: str, opset: int, tmp_path: Path) -> None:
    found = converted(text, target, tmp_path, opset)
    assert set(found) <= {"ConstantOfShape", "Identity"}


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (
            """(int32 n) => (float[A,B] Y) <int32 d = {8}, int32 r = {16}, float l = {0}, float u = {4}> {
              Y = MelWeightMatrix (n, d, r, l, u)
            }""",
            "openvino",
        ),
    ],
)
def test_what_a_runtime_has_not_is_declined(text: str, target: str, tmp_path: Path) -> None:
    assert "No equal form" in declined(text, target, tmp_path, 20)


def test_bytes_that_data_quantize_stay_where_no_one_makes_floats_of_them(tmp_path: Path) -> None:
    text = """(float[2,3] X) => (uint8[2,3] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear (X) }"""
    assert converted(text, "tract", tmp_path, 13) == {"DynamicQuantizeLinear": 1}


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_mean_of_a_layer_of_any_axes_is_a_result(axis: int, tmp_path: Path) -> None:
    lengths = ",".join(["2", "3", "4"][axis:])
    kept = ",".join([*["2", "3", "4"][:axis], *["1"] * (3 - axis)])
    text = f"""(float[2,3,4] X, float[{lengths}] s) => (float[2,3,4] Y, float[{kept}] mean) {{
      Y, mean = LayerNormalization <axis = {axis}> (X, s)
    }}"""
    found = converted(text, "opencv@5.0.0.93", tmp_path, 17)
    assert found["ReduceMean"] == 2


def test_a_single_tap_cuts_nothing_off_itself(tmp_path: Path) -> None:
    text = """(float[1,2,4,4] X) => (float[1,3,2,2] Y) <float[2,3,1,1] W = {1, 2, 3, 4, 5, 6}> {
      Y = ConvTranspose <kernel_shape = [1, 1], pads = [1, 1, 1, 1]> (X, W)
    }"""
    assert converted(text, "opencv@4.14.0", tmp_path, 13)
    assert not converted(text, "opencv@5.0.0.93", tmp_path, 13) - Counter({"ConvTranspose": 1})
