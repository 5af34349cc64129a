"""What QNN takes otherwise of pads, axes and coordinates that few models have, and what is written for it."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError
from tests.support.proven import operators_for

CONVOLUTION = (
    "(float[1,2,5,6] X) => (float[1,2,%s] Y) <float[2,1,2,2] w = {1, 2, 3, 4, 5, 6, 7, 8}> "
    "{ Y = Conv <group = 2, pads = [%s], strides = [%s]> (X, w) }"
)
REST = "(int32[%s] A, int32[%s] B) => (int32[4,6] Y) { Y = Mod (A, B) }"
REST_OF = "(int32[2,3] X) => (int32[2,3] Y) <int32 c = {%s}> { x = %s (X) Y = Mod (x, c) }"
SIGNED_REST = "(int32[2,3] X) => (int32[2,3] Y) <int32[3] c = {3, -5, 7}> { Y = Mod <fmod = 1> (X, c) }"
PICKED = "(float[%s] X) => (float[%s] Y) <int64[2,2] i = {0, 1, 1, 2}> { Y = Gather <axis = 1> (X, i) }"
RESIZED = (
    "(float[1,2,4,5] X) => (float[1,2,8,10] Y) <float[0] r = {}, float[0] s = {}, int64[4] n = {1, 2, 8, 10}> "
    '{ Y = Resize <coordinate_transformation_mode = "tf_half_pixel_for_nn", mode = "linear"> (X, r, s, n) }'
)
LIST = (
    "(float[5] X) => (float[5] Y) <float[1] s = {2}, float[1] b = {1}, float[1] m = {3}, float[1] v = {4}> "
    "{ Y = BatchNormalization (X, s, b, m, v) }"
)
LONGS = "(float[4,5,3] X) => (int64[4,2,1] Y) <int64[2] i = {1, 0}> { a = %s Y = Gather <axis = 1> (a, i) }"
SCATTERED = (
    "(bool[2,3] X, bool[2,1] U) => (bool[2,3] Y) <int64[2,1] i = {0, 2}> { Y = ScatterElements <axis = 1> (X, i, U) }"
)
SLOPES = (
    "(float[1,2,3,4,5] X) => (float[1,2,2,3,4] Y) <float[2,1,1,1] s = {0.5, 0.25}> "
    "{ c = AveragePool <kernel_shape = [2, 2, 2]> (X) Y = PRelu (c, s) }"
)
INFINITE = "(float[2,3] X) => (float[2,4] Y) <float v = {%s}, int64[4] p = {0, 0, 0, 1}> { Y = Pad (X, p, v) }"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (REST % ("4,1", "1,6"), {"Equal": 1, "Where": 1, "Div": 2, "Mul": 2, "Sub": 2, "Add": 1}),
        (REST % ("4,6", "1,6"), {"Equal": 1, "Where": 1, "Div": 2, "Mul": 2, "Sub": 2, "Add": 1}),
        (REST_OF % (11, "Neg"), {"Neg": 1, "Div": 2, "Mul": 2, "Sub": 2, "Add": 1}),
        (REST_OF % (16, "Abs"), {"Abs": 1, "Div": 1, "Mul": 1, "Sub": 1}),
        (
            "(uint8[2,3] X) => (int32[2,3] Y) <int32 c = {16}> { x = Cast <to = 6> (X) Y = Mod (x, c) }",
            {"Cast": 1, "Mod": 1},
        ),
        (SIGNED_REST, {"Div": 1, "Mul": 1, "Sub": 1}),
        (
            "(float[2,3] A, float[2,3] B) => (uint8[2,3] Y) { l = Less (A, B) Y = Cast <to = 2> (l) }",
            {"Less": 1, "Cast": 1},
        ),
        (PICKED % ("2,3,4,5", "2,2,2,4,5"), {"Gather": 1, "Reshape": 1}),
        (
            "(int32[2,3] X) => (uint8[2,3] Y) { Y = Cast <to = 2> (X) }",
            {"Div": 2, "Mul": 2, "Sub": 2, "Add": 1, "Cast": 1},
        ),
        (LIST, {"Mul": 1, "Add": 1}),
        (LONGS % "ArgMax <axis = 2> (X)", {"ArgMax": 1, "Gather": 1, "Add": 1}),
        (SCATTERED, {"Cast": 3, "ScatterElements": 1}),
        ("(int32[2,3] X) => (int32[2,3] Y) <int32 c = {1}> { Y = Clip (X, c, c) }", {"Max": 1, "Min": 1}),
        (PICKED % ("2,3,4", "2,2,2,4"), {"Gather": 1}),
        (
            "(int8[2,3] X, float S, int8 Z) => (float[2,3] Y) { Y = DequantizeLinear (X, S, Z) }",
            {"DequantizeLinear": 2, "Sub": 1, "Mul": 1},
        ),
        (
            "(uint8[2,3] X) => (float[2,3] Y) <float[2] s = {0.5, 2}> { Y = DequantizeLinear <axis = 0> (X, s) }",
            {"DequantizeLinear": 1, "Mul": 1},
        ),
        (
            "(float[2,3] X, float S, int8 Z) => (int8[2,3] Y) { Y = QuantizeLinear (X, S, Z) }",
            {"Div": 1, "Round": 1, "DequantizeLinear": 1, "Add": 1, "Clip": 1, "QuantizeLinear": 1},
        ),
        (
            "(float[2,3] X, float S) => (uint8[2,3] Y) { Y = QuantizeLinear (X, S) }",
            {"Div": 1, "Round": 1, "Add": 1, "Clip": 1, "Cast": 1},
        ),
        (
            (
                "(int64[2] X) => (float[2,3] Y) <float s = {2}, uint8 z = {9}, uint8[2,3] w = {1, 2, 3, 4, 5, 6}> "
                "{ g = Gather (w, X) Y = DequantizeLinear (g, s, z) }"
            ),
            {"Gather": 1, "Cast": 3, "Sub": 1, "Mul": 1},
        ),
        (
            (
                "(uint8[2,3] X) => (float[2,3] Y, uint8[3,2] Z) <float s = {2}, uint8 z = {9}, int64[2] n = {3, 2}> "
                "{ a = DequantizeLinear (X, s, z) Y = Relu (a) Z = Reshape (X, n) }"
            ),
            {"Reshape": 1, "Cast": 2, "Sub": 1, "Mul": 1, "Relu": 1},
        ),
        (
            (
                "(int8[2,3] X) => (float[2,3] Y, float[2,3] Z) <float s = {2}, float t = {1}, int8 z = {0}> "
                "{ a = DequantizeLinear (X, s, z) Y = Relu (a) b = DequantizeLinear (X, t, z) Z = Relu (b) }"
            ),
            {"DequantizeLinear": 2, "Mul": 1, "Relu": 2},
        ),
        (
            (
                "(float[1,4,3,2] X) => (uint8[1,1,6,4] Y) <float s = {2}, uint8 z = {9}> "
                "{ d = DepthToSpace <blocksize = 2> (X) c = Abs (d) Y = QuantizeLinear (c, s, z) }"
            ),
            {"ConvTranspose": 1, "Abs": 1, "Clip": 1, "QuantizeLinear": 1},
        ),
        (
            "(float[1,2,3,1,4] X) => (float[1,2,3,1,4] Y) <float s = {2}> { a = Mul (X, s) Y = Add (a, s) }",
            {"Mul": 1, "Add": 1},
        ),
        (
            (
                "(int32[1,2,3,4,5] X) => (int32[3,2,20] Y) <int64[3] n = {3, 2, 20}> "
                "{ t = Transpose <perm = [0, 2, 1, 3, 4]> (X) Y = Reshape (t, n) }"
            ),
            {"Reshape": 2, "Transpose": 1},
        ),
        ("(float16[2,3] X) => (uint8[2,3] Y) { a = Relu (X) Y = Cast <to = 2> (a) }", {"Relu": 1, "Cast": 2}),
    ],
)
def test_qnn_is_given_forms_that_it_gets_right(text: str, made: dict[str, int], tmp_path: Path) -> None:
    assert operators_for(text, "qnn", tmp_path, 17, 8) == made


@pytest.mark.parametrize(
    ("size", "pads", "strides", "kernel"),
    [
        ("10,11", "3,3,3,3", "1,1", [4, 4]),
        ("6,5", "2,0,0,0", "1,1", [3, 2]),
        ("6,3", "2,0,0,0", "1,2", [3, 2]),
        ("6,7", "0,0,2,2", "1,1", [2, 2]),
    ],
)
def test_no_window_of_a_convolution_lies_in_the_pads_before_an_image(
    size: str, pads: str, strides: str, kernel: list[int], tmp_path: Path
) -> None:
    made = operators_for(CONVOLUTION % (size, pads, strides), "qnn", tmp_path, 17, 8)
    assert made == {"Conv": 1}
    model = onnx.load(tmp_path / "after.onnx")
    weights = {each.name: list(each.dims[2:]) for each in model.graph.initializer}
    assert [weights[node.input[1]] for node in model.graph.node if node.op_type == "Conv"] == [kernel]


def test_slopes_behind_windows_of_volumes_are_products(tmp_path: Path) -> None:
    made = operators_for(SLOPES, "qnn", tmp_path, 17, 8)
    assert (made["PRelu"], made["Relu"], made["Mul"]) == (0, 2, 1)


@pytest.mark.parametrize("fed", ["float[2] S, float[2] B", "float[2] B"])
def test_groups_have_the_scale_that_is_fed(fed: str, tmp_path: Path) -> None:
    told = "" if "S" in fed else "<float[2] S = {1, 2}>"
    text = "(float[2,4,5] X, %s) => (float[2,4,5] Y) %s { Y = GroupNormalization <num_groups = 2> (X, S, B) }"
    made = operators_for(text % (fed, told), "qnn", tmp_path, 18, 8)
    assert {each: made[each] for each in ("InstanceNormalization", "Mul", "Add")} == dict.fromkeys(
        ("InstanceNormalization", "Mul", "Add"), 1
    )


@pytest.mark.parametrize("target", ["onnx2tf", "qnn"])
def test_linear_places_of_nearest_ones_are_products(target: str, tmp_path: Path) -> None:
    assert operators_for(RESIZED, target, tmp_path, 11, 7)["MatMul"] == 2


@pytest.mark.parametrize("target", ["onnx2tf", "qnn"])
def test_an_infinity_that_the_model_gives_is_declined(target: str, tmp_path: Path) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g {INFINITE % "inf"}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "before.onnx")
    with pytest.raises(RefusedError, match="holds an infinity"):
        padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target=target)


@pytest.mark.parametrize("shape", ["1,2,3,4,5", "2,2,3,4,5", "2,3,4,5"])
def test_what_has_five_axes_is_normalised_on_three(shape: str, tmp_path: Path) -> None:
    text = (
        f"(float[{shape}] X) => (float[{shape}] Y) <float[5] s = {{1, 2, 3, 4, 5}}, float[5] b = {{5, 4, 3, 2, 1}}> "
        "{ Y = LayerNormalization <axis = -1> (X, s, b) }"
    )
    operators = operators_for(text, "qnn", tmp_path, 17, 8)
    assert operators["Reshape"] == (2 if shape.count(",") > 3 else 0)


@pytest.mark.parametrize("target", ["qnn", "tvm"])
def test_the_root_of_a_sum_of_integers_is_declined(target: str, tmp_path: Path) -> None:
    text = "(int32[2,3] X) => (int32[2,1] Y) { Y = ReduceL2 <axes = [1]> (X) }"
    with pytest.raises(RefusedError, match="integers have no roots"):
        operators_for(text, target, tmp_path, 13, 8)
