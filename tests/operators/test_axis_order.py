"""Which axes of data are alike, in which order a runtime holds them, and how constants take the shape of a result."""

from __future__ import annotations

from collections.abc import Sequence

import onnx.parser
import pytest

from padfix.files.model import Model
from padfix.operators.axis_order import alike_axes, order_traits, spread_of_constants
from padfix.operators.inference import infer
from padfix.targets.traits import Trait

HEAD = '<ir_version: 8, opset_import: ["" : 13]> g (float[1,4,4,5] X, float[2,3,3] Q) => (float Y) '


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((4, 4), "none"),
        ((1, 3, 4, 5), "none"),
        ((1, 1, 1), "none"),
        ((4, 4, 5), "others"),
        ((1, 3, 5, 5), "others"),
        ((1, 4, 4, 5), "channels"),
        ((1, 4, 4), "all"),
        ((2, "n", "n"), {"none", "others", "all"}),
        (("n", 3, 4), {"none", "others"}),
        (("n", 4, 4), "all"),
        (("n", 3, "h", "w"), {"none", "others"}),
        (("n", 8, "h", "w"), {"none", "others", "channels", "all"}),
        ((0, 6, 5, 5), "others"),
        (("n", "n"), "none"),
    ],
)
def test_axes_are_alike_by_their_lengths_or_may_be_where_these_are_open(
    shape: Sequence[int | str], expected: str | set[str]
) -> None:
    assert alike_axes([shape]) == expected


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("Y = Relu (P)", "others"),
        ("Y = Slice (P, one, two, one)", "others"),
        ("Z = Mul (P, P) V = Relu (Z) Y = Softmax (V)", "others"),
        ("Z = Relu (P) Y = Slice (Z, one, two, one)", "all"),
        ("Y = LogSoftmax (P)", "others"),
        ("Z = Add (P, P) Y = LogSoftmax (Z)", "all"),
        ("Z = Relu (R) Y = Add (P, Z)", "all"),
        ("Y = Transpose <perm = [0, 2, 1]> (P)", "all"),
    ],
)
def test_the_order_of_products_is_known_and_of_what_is_computed_of_them_element_by_element(
    nodes: str, expected: str
) -> None:
    head = '<ir_version: 8, opset_import: ["" : 13]> g (float[1,64] X) => (float[A,B,C] Y)'
    constants = "<int64[3] r = {1, 8, 8}, int64[1] one = {1}, int64[1] two = {2}>"
    text = f"{head} {constants} {{ R = Reshape (X, r) P = MatMul (R, R) {nodes} }}"
    (scope,) = infer(Model(onnx.parser.parse_model(text)))
    assert order_traits(scope, scope.nodes[-1])["alike"] == expected


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("Y = LRN <size = 3> (X)", True),
        ("Z = Reshape (X, r) Y = LRN <size = 3> (Z)", False),
        ("Z = Reshape (X, r) V = Relu (Z) Y = LRN <size = 3> (V)", False),
        ("Z = Reshape (X, r) V = Conv (Z, w) Y = LRN <size = 3> (V)", True),
        ("Y = Concat <axis = 1> (Q, Q)", False),
        ("Y = GlobalMaxPool (Q)", True),
        ("Z = Reshape (X, r) Y = MatMul (Z, Z)", False),
        ("Z = Reshape (X, r) Y = MatMul (Z, X)", True),
        ('Z = Reshape (X, r) Y = Einsum <equation = "abcd,abcd->" > (Z, X)', True),
    ],
)
def test_data_comes_as_images_unless_something_orders_the_axes(nodes: str, expected: bool) -> None:
    constants = "<int64[4] r = {1, 4, 5, 4}, float[1,4,1,1] w = {1, 2, 3, 4}>"
    (scope,) = infer(Model(onnx.parser.parse_model(f"{HEAD}{constants} {{ {nodes} }}")))
    assert order_traits(scope, scope.nodes[-1])["channels-last"] is expected


@pytest.mark.parametrize(
    ("lengths", "node", "expected"),
    [
        ("2,2,4,2", "Z = Gather <axis = 2> (X, i)", True),
        ("2,2,4,D", "Z = Gather <axis = 2> (X, i)", True),
        ("2,8,D,8", "Z = Slice (X, i, j, i)", frozenset((False, True))),
        ("2,3,4,3", "Z = Gather <axis = 2> (X, n)", True),
        ("2,4,3,3", "Z = Gather <axis = 1> (X, n)", False),
        ("2,3,3,3", "Z = Gather <axis = 2> (X, n)", False),
        ("2,2,4,4", "Z = Tile (X, t)", True),
        ("2,2,4,2", "Z, P = TopK <axis = 2> (X, i)", True),
        ("2,3,1,3,3", "Z = Squeeze (X, i)", True),
        ("2,1,3,3,3", "Z = Squeeze (X, o)", False),
        ("2,3,3,3", "R = Reshape (X, r) Z = Tile (R, t)", False),
        ("2,2,4,2", "Z = Gather <axis = 2> (c, p)", False),
    ],
)
def test_parts_and_copies_of_images_keep_their_order(lengths: str, node: str, expected: Trait) -> None:
    constants = """<int64[1] i = {2}, int64[1] j = {4}, int64[1] o = {1}, int64 n = {1}, int64[4] t = {1, 2, 1, 1},
      int64[4] r = {2, 3, 3, 3}, float[1,2,2,2] c = {1, 2, 3, 4, 5, 6, 7, 8}, int64[2] p = {1, 0}>"""
    graph = f"(float[{lengths}] X) => (float Y) {constants} {{ {node} Y = Relu (Z) }}"
    (scope,) = infer(Model(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> g {graph}')))
    assert order_traits(scope, scope.nodes[-1])["channels-last"] == expected


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("Z = Add (X, X) Y = Max (Z, X)", True),
        ("Z = Add (X, n) Y = Max (Z, X)", True),
        ("V = Relu (X) Z = Add (V, n) Y = Max (Z, X)", False),
        ("Z = Sub (X, X) Y = Max (Z, X)", False),
        ("Z = Add (X, X) V = Abs (Z) Y = Max (V, Z)", True),
        ("Z = Add (X, X) V = Conv (Z, w) Y = Max (V, V)", False),
        ("Z = Add (Q, Q) Y = Max (Z, Z)", False),
    ],
)
def test_a_sum_puts_moved_data_back_unless_a_number_is_added_to_what_a_node_gives(nodes: str, expected: bool) -> None:
    constants = "<float n = {2}, float[1,4,1,1] w = {1, 2, 3, 4}>"
    (scope,) = infer(Model(onnx.parser.parse_model(f"{HEAD}{constants} {{ {nodes} }}")))
    assert order_traits(scope, scope.nodes[-1])["put-back"] is expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("float", "number"), ("float[1]", "one"), ("float[1,4,1,1]", "channels"), ("float[4,1,1]", "others")],
)
def test_constants_take_the_shape_of_the_result(kind: str, expected: str) -> None:
    values = "{1, 2, 3, 4}" if "4" in kind else "{1}"
    (scope,) = infer(Model(onnx.parser.parse_model(f"{HEAD}<{kind} c = {values}> {{ Y = Add (X, c) }}")))
    assert spread_of_constants(scope, scope.nodes[-1]) == expected


@pytest.mark.parametrize(("images", "expected"), [("N", "image"), ("1", "none"), ("2", "others")])
def test_a_constant_for_one_image_is_told_apart_where_their_number_is_open(images: str, expected: str) -> None:
    graph = f"g (float[{images},2,2] X) => (float Y) <float[1,2,2] c = {{1, 2, 3, 4}}> {{ Y = Add (X, c) }}"
    (scope,) = infer(Model(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}')))
    assert spread_of_constants(scope, scope.nodes[-1]) == expected
