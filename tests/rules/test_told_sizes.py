"""Lengths that the graph puts together of numbers and of lengths that stay, as good as constants."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.errors import RefusedError
from padfix.files.model import Model
from padfix.operators.inference import infer
from padfix.operators.told_lengths import told_lengths

SIZES = {
    "of its own": "lengths = Shape (data) kept = Slice (lengths, zero, two) sizes = Concat <axis = 0> (kept, new)",
    "of the input": """batch = Shape <start = 0, end = 1> (X) all = Shape (data) place = Constant <value_int = 1> ()
        one = Gather (all, place) more = Unsqueeze (one, zero) sizes = Concat <axis = 0> (batch, more, new)""",
}


def model(sizes: str, inputs: str = "float[N,3,6,7] X", mode: str = "linear") -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 17]>
        main ({inputs}) => (float[A,B,C,D] Y)
        <int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[2] new = {{12, 10}}> {{
            data = Sin (X)
            {sizes}
            Y = Resize <mode = "{mode}"> (data, , , sizes) }}""")


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("target", "mode"), [("opencv", "linear"), ("tract", "nearest"), ("openvino", "cubic")])
def test_a_batch_that_is_open_hinders_nothing(sizes: str, target: str, mode: str, tmp_path: Path) -> None:
    onnx.save(model(SIZES[sizes], mode=mode), tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target=target)
    assert not padfix.check(tmp_path / "after.onnx", target=target).findings
    left = {each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node}
    assert "Concat" not in left or target != "opencv"  # what only led to the sizes goes with them


def test_lengths_are_told_as_far_as_they_are_known() -> None:
    main, *_ = infer(Model(model(SIZES["of the input"])))
    assert told_lengths(main, "sizes") == ["N", 3, 12, 10]
    assert told_lengths(main, "data") is None


def test_inputs_that_name_a_length_alike_need_not_be_alike(tmp_path: Path) -> None:
    other = SIZES["of the input"].replace("Shape <start = 0, end = 1> (X)", "Shape <start = 0, end = 1> (Z)")
    onnx.save(model(other, "float[N,3,6,7] X, float[N] Z"), tmp_path / "before.onnx")
    with pytest.raises(RefusedError, match="only known at run time"):
        padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="opencv")


@pytest.mark.parametrize(
    ("measured", "left"),
    [
        ("one = Gather (all, none) batch = Reshape (one, single)", (6, 3)),
        ("batch = Gather (all, zero)", 1),
        ("same = Identity (all) batch = Slice (same, zero, single)", 1),
        ("both = Slice (all, zero, two) many = ReduceProd <keepdims = 1> (both) batch = Div (many, four)", 1),
        ("one = Gather (all, none) batch = Unsqueeze (one, zero)", 5),
        ("batch = Slice (all, zero, single)", 4),
    ],
)
@pytest.mark.parametrize("images", ["N", "2"])
def test_tvm_is_told_a_shape_that_is_measured_by_lists(
    measured: str, left: int | tuple[int, int], images: str, tmp_path: Path
) -> None:
    proto = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 17]>
        main (float[{images},4,3,6] X) => (float[A,B,C] Y)
        <int64 none = {{0}}, int64[1] zero = {{0}}, int64[1] single = {{1}}, int64[1] two = {{2}},
         int64[1] four = {{4}}, int64[2] rest = {{4, 18}}> {{
            all = Shape (X)
            {measured}
            shape = Concat <axis = 0> (batch, rest)
            Y = Reshape (X, shape) }}""")
    onnx.save(proto, tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="tvm")
    written = [each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node if each.op_type != "Constant"]
    assert len(written) == (left if isinstance(left, int) else left["N2".index(images)])


@pytest.mark.parametrize("lengths", ["tall = Gather (all, place)", "tall = Constant <value_ints = [6]> ()"])
@pytest.mark.parametrize("target", ["opencv", "tract"])
def test_rows_that_are_turned_round_whole_are_taken_from_behind(lengths: str, target: str, tmp_path: Path) -> None:
    """As tf2onnx writes a reversal, which the backward half of a bidirectional layer begins and ends with."""
    proto = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 13]>
        main (float[6,N,2] X) => (float[6,N,2] Y) <int64[1] place = {{0}}, int64[1] batch = {{1}}> {{
            all = Shape (X)
            {lengths}
            images = Gather (all, batch) spread = Expand (tall, images)
            Y = ReverseSequence <time_axis = 0, batch_axis = 1> (X, spread) }}""")
    onnx.save(proto, tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target=target)
    assert [each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node] == ["Gather"]


MULTIPLES = {
    "both at once": "new = Slice (lengths, two, end) longer = Mul (new, times)",
    "in floats": "some = Gather (lengths, last) more = Cast <to = 1> (some) m = Mul (ratio, more) f = Floor (m) "
    "longer = Cast <to = 7> (f)",
    "one by one": "h = Gather (lengths, tall) hh = Mul (h, doubled) h1 = Unsqueeze (hh, zero) "
    "w = Gather (lengths, wide) ww = Mul (threefold, w) w1 = Unsqueeze (ww, zero) longer = Concat <axis = 0> (h1, w1)",
    "no multiple": "new = Slice (lengths, two, end) longer = Add (new, times)",
    "no whole one": "some = Gather (lengths, last) more = Cast <to = 1> (some) m = Mul (half, more) "
    "longer = Cast <to = 7> (m)",
}


@pytest.mark.parametrize("target", ["opencv@4.14", "onnx2tf"])
@pytest.mark.parametrize("by", MULTIPLES)
@pytest.mark.parametrize("opset", [11, 17])
def test_sizes_that_are_multiples_of_open_lengths_are_scales(by: str, opset: int, target: str, tmp_path: Path) -> None:
    computed = (
        MULTIPLES[by] if opset > 11 else MULTIPLES[by].replace("(hh, zero)", "(hh)").replace("(ww, zero)", "(ww)")
    )
    computed = computed if opset > 11 else computed.replace("= Unsqueeze", "= Unsqueeze <axes = [0]>")
    proto = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
        main (float[1,3,h,w] X) => (float[1,3,C,D] Y)
        <int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[1] end = {{4}}, int64[2] times = {{2, 3}},
         int64 tall = {{2}}, int64 wide = {{3}}, int64[2] last = {{2, 3}}, float ratio = {{3}}, float half = {{1.5}},
         int64 doubled = {{2}}, int64 threefold = {{3}}, float[0] none = {{}}> {{
            data = Sin (X) lengths = Shape (data) kept = Slice (lengths, zero, two)
            {computed}
            sizes = Concat <axis = 0> (kept, longer)
            Y = Resize <mode = "linear"> (data, none, none, sizes) }}""")
    onnx.save(proto, tmp_path / "before.onnx")
    if by.startswith("no"):
        with pytest.raises(RefusedError):
            padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target=target)
        return
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target=target)
    assert [each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node][-2:] == ["Sin", "Resize"]


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("n = ReduceL2 <axes = [1]> (X) s = Shape (X) c = Expand (n, s) Y = Div (X, c)", ["ReduceL2", "Div"]),
        ("n = ReduceMax <axes = [1]> (X) s = Shape (X) c = Expand (n, s) Y = Max (c, X)", ["ReduceMax", "Max"]),
        ("s = Shape (X) c = ConstantOfShape <value: tensor = float[1] {2}> (s) Y = Sub (c, X)", ["Sub"]),
        ("s = Shape (X) c = ConstantOfShape (s) g = Less (X, c) Y = Where (g, c, X)", ["Less", "Where"]),
        (
            "s = Shape (X) b = Slice (s, zero, one) l = Concat <axis = 0> (b, rest) c = Expand (n1, l) Y = Mul (X, c)",
            ["Mul"],
        ),
        ("n = ReduceL2 <axes = [1]> (X) s = Shape (Z) c = Expand (n, s) Y = Div (X, c)", []),
        (
            "s = Shape (X) c = Expand (one_number, s) Y = Sqrt (c)",
            ["Reshape", "ReduceMax", "Equal", "Cast", "Mul", "Reshape", "Add", "Sqrt", "Identity"],
        ),
    ],
)
def test_copies_to_open_lengths_are_left_out_where_they_are_spread_anyway(
    nodes: str, left: list[str], tmp_path: Path
) -> None:
    proto = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        main (float[N,4] X, float[M,4] Z) => (float[A,B] Y)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] rest = {{4}}, float one_number = {{3}},
         float[1,1] n1 = {{3}}> {{
            {nodes} unread = Identity (Z) }}""")
    onnx.save(proto, tmp_path / "before.onnx")
    if not left:
        with pytest.raises(RefusedError):
            padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="opencv@4.14")
        return
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="opencv@4.14")
    assert [each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node] == [*left, "Identity"]
