"""PF309: bodies that are sure to run, or both branches, in the place of the If, Loop or Scan that holds them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

import padfix
from padfix.errors import RefusedError

IF = """main (float[1,3,%s] X) => (float Y) {
  lengths = Shape (X) place = Constant <value_int = 2> () length = Gather (lengths, place)
  eight = Constant <value_int = 8> () told = Equal (length, eight)
  data = Relu (X) other = Transpose <perm = [0, 2, 1]> (X)
  Y = If (told) <then_branch = then () => (float A) { shifted = Exp (data) B = Neg (data) A = Add (shifted, B) },
                 else_branch = rest () => (float C) { square = MatMul (data, other) C = Det (square) }> }"""
LOOP = """main (float[1,3] X, float[1,3] Z) => (float[1,3] Y, float[1,3] W, float[A,B,C] S) {
  turns = Constant <value_int = 3> () on = Constant <value: tensor = bool {1}> ()
  Y, W, S = Loop (turns, on, X, Z) <body = turn (int64 i, bool c, float[1,3] a, float[1,3] b)
    => (bool d, float[1,3] b, float[1,3] sum, float[1,3] p) {
    d = Identity (c) n = Cast <to = 1> (i) next = Add (a, b) sum = Add (next, n) p = Mul (sum, X) }> }"""
CHOOSING = """main (float[1,3] X) => (float[1,3] Y) {
  turns = Constant <value_int = 3> ()
  Y = Loop (turns, , X) <body = turn (int64 i, bool c, float[1,3] a) => (bool c, float[1,3] y) {
    one = Constant <value_int = 1> () told = Equal (i, one)
    y = If (told) <then_branch = then () => (float[1,3] q) { q = Relu (a) },
                   else_branch = rest () => (float[1,3] r) { r = Neg (a) }> }> }"""
PLACED = """main (float[4,3] X) => (float[A,B] Y) <int64[1] o = {1}> {
  turns = Constant <value_int = 3> () on = Constant <value: tensor = bool {1}> ()
  Y = Loop (turns, on) <body = turn (int64[1] i, bool c) => (bool d, float[3] p) {
    d = Identity (c) e = Add (i, o) s = Slice (X, i, e) z = Constant <value_ints = [0]> () p = Squeeze (s, z) }> }"""
SCAN = """main (float[1,8] H, float[4,8,5] X) => (float[1,8] Y, float[A,B,C] S) {
  Y, S = Scan <num_scan_inputs = 1, scan_input_axes = [2], scan_input_directions = [1], scan_output_axes = [1],
    scan_output_directions = [1], body = turn (float[1,8] a, float[4,8] x) => (float[1,8] b, float[4,8] o) {
      least = ReduceMin <axes = [0], keepdims = 1> (x) b = Add (a, least) o = Neg (x) }> (H, X) }"""


def save(text: str, folder: Path, *, opset: int = 17, ir: int = 8) -> Path:
    text = f'<ir_version: {ir}, opset_import: ["" : {opset}]> {text}'
    onnx.save(onnx.parser.parse_model(text), folder / "before.onnx")
    return folder / "before.onnx"


def written(text: str, folder: Path, target: str, **how: int) -> onnx.ModelProto:
    """Return what convert makes of a model for a target, where check says that it will."""
    source = save(text, folder, **how)
    found = padfix.check(source, target=target).findings
    assert {each.rule for each in found if each.op_type in ("If", "Loop", "Scan")} == {"PF309"}
    assert all(each.fixable for each in found)
    padfix.convert(source, folder / "after.onnx", target=target)
    assert not padfix.check(folder / "after.onnx", target=target).findings
    after = onnx.load(folder / "after.onnx")
    onnx.checker.check_model(after, full_check=True)
    return after


@pytest.mark.parametrize(("opset", "ir"), [(17, 8), (11, 8), (11, 3)])
def test_the_branch_that_lengths_choose_and_nothing_else(opset: int, ir: int, tmp_path: Path) -> None:
    after = written(IF % "8", tmp_path, "tract", opset=opset, ir=ir)
    assert [each.op_type for each in after.graph.node] == ["Relu", "Exp", "Neg", "Add"]


def test_a_branch_that_an_open_length_chooses_is_declined(tmp_path: Path) -> None:
    source = save(IF % "N", tmp_path)
    (found,) = (each for each in padfix.check(source, target="tract").findings if each.op_type == "If")
    assert (found.rule, found.fixable) == ("PF306", False)
    assert "a length decides that is left open (--shape)" in found.hint
    with pytest.raises(RefusedError):
        padfix.convert(source, tmp_path / "after.onnx", target="tract")
    padfix.convert(source, tmp_path / "after.onnx", target="tract", shapes={"X": (1, 3, 8)})


def test_what_is_right_there_stays(tmp_path: Path) -> None:
    source = save(IF % "8", tmp_path)
    assert not [each for each in padfix.check(source).findings if each.rule == "PF309"]
    assert not [each for each in padfix.check(source, target="ncnn").findings if each.rule == "PF309"]


@pytest.mark.parametrize(("opset", "ir"), [(17, 8), (12, 8), (9, 3)])
def test_counted_turns_one_after_the_other(opset: int, ir: int, tmp_path: Path) -> None:
    after = written(LOOP, tmp_path, "tract", opset=opset, ir=ir)
    assert [each.op_type for each in after.graph.node if each.op_type in ("Add", "Mul")] == ["Add", "Add", "Mul"] * 3
    assert {"Loop", "Identity"} & {each.op_type for each in after.graph.node} == {"Identity"}  # the state that is kept
    assert [each.op_type for each in after.graph.node].count("Concat") == 1


def test_turns_that_are_counted_as_a_list(tmp_path: Path) -> None:
    assert "Loop" not in {each.op_type for each in written(PLACED, tmp_path, "tract").graph.node}


def test_turns_that_data_ends_or_that_are_too_many_are_declined(tmp_path: Path) -> None:
    ending = LOOP.replace(
        "d = Identity (c)", "most = ReduceMax <keepdims = 0> (a) z = Sub (most, most) d = Less (z, most)"
    )
    for text in (ending, LOOP.replace("value_int = 3", "value_int = 1000")):
        source = save(text, tmp_path)
        (found,) = (each for each in padfix.check(source, target="tract").findings if each.op_type == "Loop")
        assert (found.rule, found.fixable) == ("PF306", False)
        assert "how often it runs is not known, or it would be too many nodes" in found.hint


@pytest.mark.parametrize(("limit", "start", "turns"), [("", 0, 4), ("most", 0, 4), ("least", 0, 2), ("", 9, 1)])
@pytest.mark.parametrize("target", ["tract", "opencv"])
def test_turns_that_a_condition_of_own_numbers_ends(
    limit: str, start: int, turns: int, target: str, tmp_path: Path
) -> None:
    """As tf2onnx writes TensorFlow's while loops, which layers over time are; 0 is counted up to 8 by twos."""
    text = f"""main (float[5,3] X) => (float[3] Y, float[A,B] S) {{
      most = Constant <value_int = 7> () least = Constant <value_int = 2> ()
      on = Constant <value: tensor = bool {{1}}> () first = Constant <value_int = {start}> ()
      zeros = Constant <value_floats = [0.0, 0.0, 0.0]> ()
      n, Y, S = Loop ({limit}, on, first, zeros) <body = turn (int64 i, bool c, int64 k, float[3] a)
        => (bool goes, int64 next, float[3] sum, float[3] p) {{
        two = Constant <value_int = 2> () eight = Constant <value_int = 8> () thirty = Constant <value_int = 30> ()
        next = Add (k, two) short = Less (next, eight) few = Less (i, thirty) goes = And (short, few)
        x = Gather (X, i) sum = Add (a, x) p = Mul (sum, x) }}> }}"""
    after = written(text, tmp_path, target)
    assert sum(each.op_type == "Mul" for each in after.graph.node) == turns


def test_a_branch_that_the_turn_chooses(tmp_path: Path) -> None:
    padfix.convert(save(CHOOSING, tmp_path), tmp_path / "after.onnx", target="opencv@4.14")
    assert [each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node] == ["Neg", "Relu", "Neg"]


def test_the_turns_of_a_scan_in_both_directions(tmp_path: Path) -> None:
    after = written(SCAN, tmp_path, "opencv@5.0")
    assert "Scan" not in {each.op_type for each in after.graph.node}


CHOSEN = """main (float[1,3,4,4] X, int64[2] P, int64 D, bool[1,1] C) => (float[a,b,c,d] Y)
  <float[3,3,1,1] W, int64[1] two = {2}> {
  most = ReduceMax <keepdims = 0> (X) zero = Constant <value_float = 0.0> () told = Greater (most, zero)
  three = Constant <value_int = 3> () beside = Sigmoid (X)
  Y = If (told) <then_branch = then () => (float[p,q,r,s] A) { %s },
                 else_branch = rest () => (float[t,u,v,w] B) { %s }> }"""
WINDOW = "A = Conv (X, W)"
PASSED = "p = Conv (beside, W) B = Relu (p)"


def chosen(folder: Path, first: str = WINDOW, second: str = PASSED, opset: int = 17) -> Path:
    source = save(CHOSEN % (first, second), folder, opset=opset)
    model = onnx.load(source)
    weights = np.random.default_rng(0).standard_normal((3, 3, 1, 1)).astype(np.float32)
    del model.graph.initializer[:]
    given = {"W": weights, "two": np.array([2], np.int64)}
    model.graph.initializer.extend(numpy_helper.from_array(each, name) for name, each in given.items())
    onnx.save(model, source)
    return source


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (WINDOW, PASSED),
        ("A = Softmax <axis = 3> (X)", "q = Mod (two, three) f = Cast <to = 1> (q) B = Mul (X, f)"),
        ("A = Gather <axis = 1> (X, two)", "B = ReduceMax <axes = [1]> (X)"),
        (
            WINDOW,
            """B = If (C) <then_branch = a () => (float[1,3,4,4] D1) { D1 = Relu (X) },
                           else_branch = b () => (float[1,3,4,4] D2) { D2 = Add (X, beside) }>""",
        ),
    ],
)
@pytest.mark.parametrize("target", ["qnn", "opencv@4.14", "tvm"])
def test_both_branches_where_data_decide(first: str, second: str, target: str, tmp_path: Path) -> None:
    source = chosen(tmp_path, first, second)
    found = [
        each for each in padfix.check(source, target=target).findings if each.op_type == "If" and each.rule != "PF303"
    ]
    assert {(each.rule, each.fixable) for each in found} == {("PF309", True)}
    padfix.convert(source, tmp_path / "after.onnx", target=target)
    after = onnx.load(tmp_path / "after.onnx")
    onnx.checker.check_model(after, full_check=True)
    assert "If" not in {each.op_type for each in after.graph.node}
    rng = np.random.default_rng(1)
    sessions = [onnxruntime.InferenceSession(tmp_path / name) for name in ("before.onnx", "after.onnx")]
    for sign, inner in ((1, False), (-1, True), (-1, False)):
        data = sign * np.abs(rng.standard_normal((1, 3, 4, 4))).astype(np.float32)
        feeds = {"X": data, "P": np.array([0, 1]), "D": np.array(1), "C": np.array([[inner]])}
        kept = [{each.name for each in session.get_inputs()} for session in sessions]
        results = [
            session.run(None, {name: feeds[name] for name in names})[0]
            for session, names in zip(sessions, kept, strict=True)
        ]
        np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("A = Gather <axis = 3> (X, P)", "B = Gather <axis = 3> (X, P)"),
        ("A = Gather <axis = 1> (X, P)", "z = Concat <axis = 1> (X, X) B = Gather <axis = 1> (z, P)"),
        (WINDOW, "q = Div (three, D) f = Cast <to = 1> (q) B = Mul (X, f)"),
        (WINDOW, "B = ReduceMax <axes = [2]> (X)"),
        (WINDOW, "r = RandomNormalLike (X) B = Add (X, r)"),
    ],
)
def test_branches_that_data_might_make_fail_are_declined(first: str, second: str, tmp_path: Path) -> None:
    source = chosen(tmp_path, first, second)
    found = [
        each for each in padfix.check(source, target="qnn").findings if each.op_type == "If" and each.rule != "PF303"
    ]
    assert [(each.rule, each.fixable) for each in found] == [("PF306", False)]
    assert "data decides, and not both branches can be run" in found[0].hint


def test_branches_of_an_opset_without_a_choice_are_declined(tmp_path: Path) -> None:
    source = chosen(tmp_path, second="B = Relu (X)", opset=8)
    found = [
        each for each in padfix.check(source, target="qnn").findings if each.op_type == "If" and each.rule != "PF303"
    ]
    assert [(each.rule, each.fixable) for each in found] == [("PF306", False)]


@pytest.mark.parametrize("target", ["openvino", "tract", "mnn"])
def test_a_body_stands_once_for_each_that_a_list_holds(target: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[2,6] X, float[2,2] B) => (float[2,6] Y) {
          n = Constant <value_int = 2> ()
          parts = SplitToSequence <axis = 1> (X, n)
          sums = SequenceMap (parts, B) <body = f (float[2,2] a, float[2,2] b) => (float[2,2] c) { c = Add (a, b) }>
          Y = ConcatFromSequence <axis = 1> (sums)
        }"""
    )
    onnx.save(model, tmp_path / "model.onnx")
    assert "PF309" in {each.rule for each in padfix.check(tmp_path / "model.onnx", target=target).findings}
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target=target)
    after = onnx.load(tmp_path / "result.onnx")
    assert [node.op_type for node in after.graph.node].count("Add") == 3
    assert "SequenceMap" not in {node.op_type for node in after.graph.node}
