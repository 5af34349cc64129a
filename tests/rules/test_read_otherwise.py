"""Operators that a runtime reads otherwise, gives another name or ends over, and what is written for them."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from padfix.errors import RefusedError
from tests.support.proven import operators_for

OPENCV_5, OPENCV_4 = "opencv@5.0.0.93", "opencv@4.14"
GELU = (
    "(float[2,5] X) => (float[2,5] Y) { r = Constant <%s> () o = Constant <%s> () h = Constant <%s> () a = Div (X, r) "
    "b = Erf (a) c = Add (b, o) d = Mul (X, c) Y = Mul (d, h) }"
)
NUMBERS = ("value_float = 1.4142135", "value_float = 1.0", "value_float = 0.5")
SPLIT = "(float[2,6,3] X) => (float[2,%s,3] Y) <int64[3] u = {1, 2, 3}, int64 e = {-1}, int64 two = {2}> { %s }"
MASKS = (
    "(float[3,4] X) => (float[3,4] Y) <float c = {100.0}> { s = ReduceSum <keepdims = 0> (X) g = Greater (s, c) %s }"
)
BRANCHES = (
    "Y = If (g) <then_branch = t () => (float[3,4] a) { a = Neg (X) }, "
    "else_branch = e () => (float[3,4] b) { b = Softplus (X) }>"
)
WINDOWS = (
    "(float[4,16,4] X) => (float[1,8,8,4] Y) <float[4,4] w = {%s}, float[4] b = {1, 2, 3, 4}, "
    "int64[6] s = {1, 2, 2, 4, 4, 4}, int64[4] t = {1, 8, 8, 4}> { m = MatMul (X, w) a = Add (m, b) r = Reshape (a, s) "
    "p = Transpose <perm = [0, 1, 3, 2, 4, 5]> (r) Y = Reshape (p, t) }"
)
POOLED = (
    "(float[1,8,4,16] X) => (float[16,1,8] Y) <int64[1] n = {16}, int64[3] s = {16, 1, 8}> { "
    "p = MaxPool <kernel_shape = [4, 1], strides = [4, 1]> (X) t = Transpose <perm = [0, 2, 3, 1]> (p) "
    "r = Reshape (t, s) "
    "Y = ReverseSequence <time_axis = 0, batch_axis = 1> (r, n) }"
)
MEAN = "(float[2,3] A, float[2,3] B, float[2,3] C, float[2,3] D) => (float[2,3] Y) { Y = Mean (%s) }"
TRIANGLE = "(float[2,%s] X) => (float[2,%s] Y) <int64 k = {1}> { Y = Trilu <upper = 0> (X, k) }"
MIRRORED = (
    '(float[1,1,s] X) => (float[1,1,t] Y) <int64[6] p = {0, 0, 200, 0, 0, 200}> { Y = Pad <mode = "reflect"> (X, p) }'
)
BATCH_TAKEN = (
    "(float[1,8,3,4] X) => (float[8,4,3] Y) <int64[1] a = {0}> "
    "{ s = Squeeze (X, a) Y = Transpose <perm = [0, 2, 1]> (s) }"
)
AVERAGED = "(float[1,4,18,18] X) => (float[1,4,2,2] Y) { Y = AveragePool <kernel_shape = [9, 9], %s> (X) }"
SHIFTED = (
    "(float[1,3,8,12] X) => (float[1,3,8,12] Y) <int64[1] a = {1}, int64[1] b = {12}, int64[1] c = {3}, "
    "int64[8] p = {0, 0, 0, 1, 0, 0, 0, 0}, int64[4] o = {1, 3, 8, 1}> { "
    "m = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (X) s = Slice (m, a, b, c) %s }"
)
LISTED = (
    "(float[2,3] A, float[2,4] B) => (float[2,4] Y) <int64 e = {-1}> { a = Relu (A) b = Relu (B) "
    "s = SequenceConstruct (a, b) y = SequenceAt (s, e) Y = Neg (y) }"
)
COUNTED = (
    "(float[a,b] X) => (int64[c] Y) <int64 z = {0}, int64 o = {1}> { n = Shape <start = 1> (X) m = Squeeze (n) "
    "r = Range (z, m, o) g = Greater (r, z) c = Cast <to = 7> (g) Y = CumSum (c, z) }"
)
CHOSEN = (
    "(float[1,2,2,3] X) => (float[1,2,2,3] Y) <float[2,1,3] c = {1, 2, 3, 4, 5, 6}, int64[4] s = {1, -1, 2, 3}, "
    "int64[4] o = {1, 1, 1, 1}, int64[1] m = {-1}> "
    "{ b = Equal (s, m) l = Where (b, o, s) e = Expand (c, l) Y = Add (X, e) }"
)
POSITIONS = (
    "(float[1,1,1,3] X) => (float[1,1,1,3] Y) <float[3] c = {1, 2, 3}, float[1,1,1,1] w = {2}, int64[3] a = {0, 1, 2}> "
    "{ s = Sin (c) t = Exp (s) u = Sqrt (t) v = Cos (u) x = Abs (v) k = Unsqueeze (x, a) p = Conv (k, w) "
    "Y = Add (X, p) }"
)
TRAINED = (
    "(float[2,3,2,2] X) => (float[2,3,2,2] Y) <float[3] s = {1, 2, 3}> "
    "{ y, a, b, c, d = BatchNormalization (X, s, s, s, s) Y = Neg (y) }"
)
STANDARDIZED = (
    "(float[1,1,4,4] X) => (float[1,2,4,4] Y) <float[1,2,3] c = {1, 2, 3, 4, 6, 9}, float[2] o = {1, 1}, "
    "float[2] m = {2, 6.3333335}, float[2] v = {0.6666667, 4.2222223}, int64[4] s = {2, 1, 1, 3}> "
    "{ w, a, b = BatchNormalization <training_mode = 1, momentum = 1.0> (c, o, o, m, v) r = Reshape (w, s) "
    "Y = Conv <pads = [0, 1, 0, 1]> (X, r) }"
)
HEADS = (
    "(float[1,2,2,3] Q, float[1,2,3,2] K, float[1,2,2,3] V) => (float[1,2,2,3] Y) <float c = {0.5}> "
    "{ q = Mul (Q, c) s = MatMul (q, K) a = Softmax <axis = -1> (s) o = MatMul (a, V) "
    "Y = Transpose <perm = [0, 2, 1, 3]> (o) }"
)
LENGTHS = (
    "(float[%s,2,1] X, int32[2] n) => (float[%s,1,2,1] Y) <float[1,1,1] w = {0.5}, float[1,1,1] r = {0.3}> "
    "{ Y = RNN <hidden_size = 1> (X, w, r, , n) }"
)
PLACES = (
    "(float[1,2,2,3] X) => (float[1,2,2,2] Y) <float[2,2,3] c = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, "
    "int64[2,2,3] i = {0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0}> { g = GatherElements <axis = 0> (c, i) "
    'Y = Einsum <equation = "binh,tnh->bnit"> (X, g) }'
)
JOINED = "v = ConstantOfShape <value = float[1] {0.5}> (o) Y = Concat <axis = 3> (v, s)"
ROWS = "(float[10,4] X, float[2,2,4] U%s) => (float[10,4] Y)%s { Y = ScatterND (X, I, U) }"

PIECES = (
    "(float[2,7] X) => (float[2,3] A, float[2,3] B, float[2,1] C) { A, B, C = Split <axis = -1, num_outputs = 3> (X) }"
)
NO_AXIS = (
    "(float[1,3,4] X) => (float[3,1,4] Y) <int64[0] a = {}> "
    "{ r = Relu (X) u = Unsqueeze (r, a) Y = Transpose <perm = [1, 0, 2]> (u) }"
)
SOFTMIN = (
    "(float[1,4,3,5] X) => (float[1,4,3,5] Y) { n = Neg (X) a = Transpose <perm = [0, 3, 2, 1]> (n) "
    "s = Softmax <axis = 3> (a) Y = Transpose <perm = [0, 3, 2, 1]> (s) }"
)


@pytest.mark.parametrize(
    ("target", "opset", "text", "there", "gone"),
    [
        (OPENCV_5, 17, MEAN % "A, B, C, D", {"Add": 3, "Div": 1}, ["Mean"]),
        (OPENCV_4, 17, MEAN % "A, B, C, D", {"Add": 3, "Div": 1}, ["Mean"]),
        (OPENCV_5, 17, MEAN % "A, B, C", {"Mean": 1}, []),
        (OPENCV_5, 17, TRIANGLE % ("7,3", "7,3"), {"Where": 1}, ["Trilu"]),
        (OPENCV_5, 17, TRIANGLE % ("3,7", "3,7"), {"Trilu": 1}, ["Where"]),
        (
            OPENCV_5,
            17,
            '(float[2,3,4] X) => (float[4,3] Y) { Y = Einsum <equation = "abc->cb"> (X) }',
            {"ReduceSum": 1, "Transpose": 1},
            ["Einsum"],
        ),
        (
            OPENCV_5,
            17,
            '(float[2,3,4] X) => (float[3,2] Y) { Y = Einsum <equation = "abc->ba"> (X) }',
            {"Einsum": 1},
            [],
        ),
        (
            "mnn",
            17,
            '(float[3] X, float[4,5] Z) => (float[5] Y) { Y = Einsum <equation = "a,bc->c"> (X, Z) }',
            {"Mul": 1},
            ["Einsum"],
        ),
        ("mnn", 17, POOLED, {"Gather": 1}, ["ReverseSequence"]),
        ("mnn", 18, ROWS % ("", " <int64[2,2,1] I = {1, 3, 6, 8}>"), {"Reshape": 1, "ScatterND": 1}, []),
        ("mnn", 18, ROWS % (", int64[2,2,1] I", ""), {"Reshape": 2, "ScatterND": 1}, []),
        ("mnn", 17, SPLIT % ("3", "s = SplitToSequence <axis = 1> (X, u) Y = SequenceAt (s, e)"), {"Slice": 1}, []),
        ("tvm", 17, SPLIT % ("2", "s = SplitToSequence <axis = 1> (X, two) Y = SequenceAt (s, e)"), {"Slice": 1}, []),
        (
            "openvino",
            18,
            PIECES,
            {"Split": 1},
            [],
        ),
        (
            "openvino",
            17,
            NO_AXIS,
            {"Identity": 1},
            ["Unsqueeze"],
        ),
        (
            "openvino",
            17,
            "(float[2,3] X) => (float[2,3] Y) { d = Dropout (X) Y = Neg (d) }",
            {"Identity": 1, "Neg": 1},
            ["Dropout"],
        ),
        (
            "openvino",
            17,
            "(float[2,3,4,5] X, int64[4] r) => (float[a,b,c,d] Y) { Y = Tile (X, r) }",
            {"Tile": 2, "Slice": 2},
            [],
        ),
        (
            OPENCV_4,
            17,
            MIRRORED,
            {"Pad": 1},
            ["Slice"],
        ),
        ("mnn", 26, "(float[3,4] X) => (float[3,4] Y) <int64 a = {1}> { Y = CumProd (X, a) }", {"Mul": 3}, ["CumProd"]),
        ("onnx2tf", 17, BATCH_TAKEN, {"Reshape": 1, "Transpose": 1}, ["Squeeze"]),
        ("qnn", 17, AVERAGED % "strides = [9, 9]", {"MatMul": 2}, ["AveragePool"]),
        (
            "mnn",
            18,
            "(float[3,4] X) => (float[1,1] Y) <int64[0] a = {}> { Y = ReduceMax (X, a) }",
            {"ReduceMax": 1},
            [],
        ),
        ("mnn", 17, LISTED, {"Identity": 1}, ["SequenceAt"]),
        (
            "ncnn",
            18,
            "(float[3,4] X) => (float[3,4] Y) { Y = ReduceMean <noop_with_empty_axes = 1> (X) }",
            {"Neg": 2},
            ["ReduceMean"],
        ),
        (
            "ncnn",
            18,
            "(float[3,4] X) => (float[1,1] Y) { Y = ReduceMax (X) }",
            {"Reshape": 2, "ReduceMax": 1},
            [],
        ),
        ("tract", 17, COUNTED, {"CumSum": 1, "CastLike": 1}, ["Cast"]),
        (OPENCV_5, 17, CHOSEN, {"Add": 1}, ["Expand"]),
        (OPENCV_5, 17, POSITIONS, {"Add": 1}, ["Conv", "Sin"]),
        ("mnn", 7, TRAINED, {"ReduceMean": 2}, ["BatchNormalization"]),
        ("ncnn", 15, STANDARDIZED, {"Conv": 1}, ["BatchNormalization"]),
        ("openvino", 17, HEADS, {"Unsqueeze": 1, "Transpose": 1, "Squeeze": 1}, []),
        ("openvino", 17, LENGTHS % ("T", "T"), {"RNN": 1, "ReduceMax": 1, "Mul": 1, "Add": 1}, []),
        ("openvino", 17, LENGTHS % ("3", "3"), {"RNN": 1}, ["Add"]),
        ("openvino", 17, PLACES, {"Einsum": 1}, ["GatherElements"]),
        ("qnn", 17, SHIFTED % "Y = Pad (s, p)", {"Unsqueeze": 1, "Pad": 1, "Squeeze": 1}, []),
        ("qnn", 17, SHIFTED % JOINED, {"Unsqueeze": 2, "Concat": 1, "Squeeze": 1}, []),
        ("qnn", 13, WINDOWS % ",".join(["0.25"] * 16), {"Reshape": 4, "Transpose": 1}, []),
        (
            "qnn",
            17,
            "(float[3,4] X) => (int64[3,4] Y) <int64[1] c = {0}> { Y = CastLike (X, c) }",
            {"Cast": 1},
            ["CastLike"],
        ),
        (
            "ncnn",
            17,
            SOFTMIN,
            {"Mul": 1},
            ["Neg"],
        ),
    ],
)
def test_what_is_written(
    target: str, opset: int, text: str, there: dict[str, int], gone: list[str], tmp_path: Path
) -> None:
    made = operators_for(text, target, tmp_path, opset, 8)
    assert there.items() <= made.items()
    assert not set(gone) & made.keys()


def test_the_numbers_of_a_gelu_are_tensors_to_opencv_5(tmp_path: Path) -> None:
    operators_for(GELU % NUMBERS, OPENCV_5, tmp_path, 17, 8)
    assert all(
        [each.name for each in node.attribute] == ["value"]
        for node in onnx.load(tmp_path / "after.onnx").graph.node
        if node.op_type == "Constant"
    )


def test_a_reshape_to_many_axes_copies_by_zeros_for_qnn(tmp_path: Path) -> None:
    text = (
        "(float[2,8,8,8] X) => (float[4,2,4,32] Y) <int64[6] s = {2, 2, 4, 2, 4, 8}, int64[4] t = {4, 4, 2, 32}> "
        "{ r = Reshape <allowzero = 1> (X, s) q = Reshape <allowzero = 1> (r, t) "
        "Y = Transpose <perm = [0, 2, 1, 3]> (q) }"
    )
    operators_for(text, "qnn", tmp_path, 17, 8)
    nodes = onnx.load(tmp_path / "after.onnx").graph.node
    assert not any(each.name == "allowzero" for node in nodes for each in node.attribute)


def test_how_long_frames_are_is_told_openvino(tmp_path: Path) -> None:
    window = ",".join(["0.5"] * 16)
    text = (
        f"(float[1,64,1] X) => (float[1,7,9,2] Y) <int64 s = {{8}}, float[16] w = {{{window}}}> "
        "{ Y = STFT <onesided = 1> (X, s, w) }"
    )
    assert operators_for(text, "openvino", tmp_path, 17, 8)["STFT"] == 1
    (node,) = (each for each in onnx.load(tmp_path / "after.onnx").graph.node if each.op_type == "STFT")
    assert node.input[3]


def test_how_many_a_list_holds_is_a_constant_where_there_are_no_lists(tmp_path: Path) -> None:
    list_of = "s = SplitToSequence <axis = 1> (X, two) a = SequenceAt (s, e) n = SequenceLength (s)"
    text = SPLIT % ("2", f"{list_of} f = Cast <to = 1> (n) Y = Mul (a, f)")
    assert "SequenceLength" not in operators_for(text, "tract", tmp_path, 17, 8)


def test_a_bound_alone_in_a_branch_gets_the_other_for_mnn(tmp_path: Path) -> None:
    operators_for(MASKS % BRANCHES, "mnn", tmp_path, 17, 8)
    (branching,) = (node for node in onnx.load(tmp_path / "after.onnx").graph.node if node.op_type == "If")
    nodes = [node for branch in branching.attribute for node in branch.g.node]
    bounds = [list(node.input[1:]) for node in nodes if node.op_type == "Clip"]
    assert [len(each) for each in bounds] == [2]
    assert all(bounds[0])


UNNAMED = {
    "Conv": "(float[1,2,5,5] X) => (float[1,1,5,5] Y) <float[1,2,1,1] W = {1, 2}> { %s }",
    "Gemm": "(float[2,3] X) => (float[2,2] Y) <float[3,2] W = {1,2,3,4,5,6}> { %s }",
    "ReduceMax": "(float[2,3,4] X) => (float[1,1,1] Y) { %s }",
    "Split": "(float[4,3] X) => (float[2,3] Y, float[2,3] Z) { %s }",
}


@pytest.mark.parametrize(
    ("target", "op_type", "node"),
    [
        (OPENCV_4, "Conv", 'Y = Conv (X, W, "")'),
        ("openvino", "Gemm", 'Y = Gemm (X, W, "")'),
        ("openvino", "ReduceMax", 'Y = ReduceMax (X, "")'),
        ("tract", "ReduceMax", 'Y = ReduceMax (X, "")'),
        ("tract", "Split", 'Y, Z = Split (X, "")'),
    ],
)
def test_what_is_left_out_at_the_end_is_not_listed(target: str, op_type: str, node: str, tmp_path: Path) -> None:
    opset = 13 if op_type == "Split" else 18
    assert operators_for(UNNAMED[op_type] % node, target, tmp_path, opset, 8)[op_type] == 1
    assert all(all(each.input) for each in onnx.load(tmp_path / "after.onnx").graph.node)


@pytest.mark.parametrize("limit", ["", "Z"])
def test_boxes_that_do_not_overlap_are_kept_by_openvino(limit: str, tmp_path: Path) -> None:
    text = (
        "(float[1,3,4] B, float[1,1,3] S) => (int64[n,3] Y) <int64 m = {5}, float Z = {0}> "
        "{ b = Abs (B) Y = NonMaxSuppression (b, S, m%s) }"
    )
    assert operators_for(text % (f", {limit}" if limit else ""), "openvino", tmp_path, 11, 8)["NonMaxSuppression"] == 1
    (node,) = (each for each in onnx.load(tmp_path / "after.onnx").graph.node if each.op_type == "NonMaxSuppression")
    told = {
        each.name: onnx.numpy_helper.to_array(each) for each in onnx.load(tmp_path / "after.onnx").graph.initializer
    }
    assert 0 < told[node.input[3]].item() < 2e-38


@pytest.mark.parametrize("mode", ["constant", "reflect"])
def test_more_than_five_axes_are_not_padded_by_opencv(mode: str, tmp_path: Path) -> None:
    text = (
        "(float[1,2,4,5,6,2] X) => (float[1,2,5,5,8,2] Y) <int64[12] p = {0,0,1,0,2,0,0,0,0,0,0,0}> "
        f'{{ Y = Pad <mode = "{mode}"> (X, p) }}'
    )
    assert "Pad" not in operators_for(text, OPENCV_5, tmp_path, 13, 8)


@pytest.mark.parametrize(("pads", "stays"), [("0,1,1,0,0, 0,0,1,0,0", True), ("0,1,1,1,0, 0,0,0,0,0", False)])
def test_five_parts_are_padded_with_zeros_for_mnn(pads: str, stays: bool, tmp_path: Path) -> None:
    text = (
        f"(float[2,3,4,5,2] X) => (float[a,b,c,d,e] Y) <int64[10] p = {{{pads}}}, float v = {{0.25}}> "
        "{ Y = Pad (X, p, v) }"
    )
    operators = operators_for(text, "mnn", tmp_path, 13, 8)
    assert (operators["Pad"] == 1 and operators.total() == 1) is stays


@pytest.mark.parametrize(
    ("target", "opset", "text"),
    [
        ("qnn", 20, "(float[6] X) => (bool[6] Y) { Y = IsInf (X) }"),
        ("openvino", 18, "(float[2,3,4] X, int64[2] a) => (float[n] Y) { Y = ReduceMax <keepdims = 0> (X, a) }"),
    ],
)
def test_what_is_declined(target: str, opset: int, text: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        operators_for(text, target, tmp_path, opset, 8)
