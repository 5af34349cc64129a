"""Constants that a model computes: which of them are written out, and what stays."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.graph.scopes import iterate_scopes
from padfix.operators.constant_chains import worked_out

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\nmain '


def converted(tmp_path: Path, text: str, **options: object) -> tuple[list[str], list[str]]:
    """Return the codes of what was rewritten for OpenCV, and the types of the nodes in the result."""
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "model.onnx")
    report = padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv", **options)
    result = onnx.load(tmp_path / "out.onnx")
    return [each.finding.rule for each in report.rewrites], [node.op_type for node in result.graph.node]


GRID = """(float[N,3,H,4] X) => (float[M,3,K,L] Y)
{
    shape = Shape <start = 2, end = 4> (X)
    ones = ConstantOfShape <value = float[1] {1}> (shape)
    row = Shape (ones)
    grid = Expand (ones, row)
    once = Add (X, grid)
    Y = Mul (once, ones)
}
"""


def test_what_is_misread_is_worked_out_and_what_nothing_else_reads_goes(tmp_path: Path) -> None:
    codes, nodes = converted(tmp_path, GRID, shapes={"X": (1, 3, 5, 4)})
    assert codes == ["PF306", "PF305"]  # OpenCV 4.14 gives all lengths, whatever a Shape picks
    assert sorted(nodes) == ["Add", "Constant", "Constant", "ConstantOfShape", "Mul"]


OPEN_BATCH = GRID.replace("3,H,4", "3,5,4").replace("<start = 2, end = 4>", "")


def test_what_depends_on_an_open_length_is_declined(tmp_path: Path) -> None:
    with pytest.raises(padfix.PadfixError, match="--shape"):
        converted(tmp_path, GRID)


def test_what_is_laid_out_for_images_keeps_their_number_where_it_is_copied_to_it(tmp_path: Path) -> None:
    joined = OPEN_BATCH.replace("Add (X, grid)", "Concat <axis = 1> (X, grid)")
    _, nodes = converted(tmp_path, joined.replace("Mul (once, ones)", "Relu (once)"))
    assert not {"ConstantOfShape", "Expand", "Shape"} & set(nodes)


@pytest.mark.parametrize(
    ("computed", "left"),
    [
        (
            "wide = Cast <to = 1> (last) root = Sqrt (wide) k = Div (one, root)",
            ["Cast", "Constant", "Div", "Mul", "Sqrt"],
        ),
        ("places = Range (none, last, step) k = Cast <to = 1> (places)", ["Cast", "Constant", "Mul", "Range"]),
        ("k = Cast <to = 1> (last)", ["Cast", "Gather", "Mul", "Shape"]),
    ],
)
def test_lengths_that_are_computed_with_as_tensors_are_constants(
    computed: str, left: list[str], tmp_path: Path
) -> None:
    text = f"""(float[N,3,4,5] X) => (float[A,B,C,D] Y)
    <int64 none = {{0}}, int64 three = {{3}}, int64 step = {{1}}, float one = {{1}}>
    {{ shape = Shape (X) last = Gather (shape, three) {computed} Y = Mul (X, k) }}"""
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="tvm")
    assert sorted(node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node) == left


@pytest.mark.parametrize(
    "computed",
    [
        "wanted = Mul (shape, ones)",
        "turned = Neg (shape) wanted = Neg (turned)",
        "places = Range (none, four, one) wanted = Gather (shape, places)",
        "wanted = Max (shape, ones)",
        "wanted = Pow (shape, one)",
    ],
)
def test_a_list_of_lengths_that_is_computed_with_is_worked_out(computed: str, tmp_path: Path) -> None:
    text = f"""(float[2,3,4,5] X) => (float[A,B,C,D] Y)
    <int64[4] ones = {{1, 1, 1, 1}}, int64 none = {{0}}, int64 one = {{1}}, int64 four = {{4}}>
    {{
        shape = Shape (X)
        {computed}
        Y = Reshape (X, wanted)
    }}
    """
    codes, nodes = converted(tmp_path, text)
    assert set(codes) == ({"PF305", "PF306"} if "Gather" in computed else {"PF305"})
    assert nodes[-2:] == ["Constant", "Reshape"]


HALVES = """(float[N,4,8] X) => (float[N,2,8] Y)
<int64 one = {1}, int64[1] first = {1}, int64[1] second = {2}, int64[1] none = {0}, int64[1] two = {2}>
{
    shape = Shape (X)
    channels = %s
    half = Div (channels, two)
    Y = Slice (X, none, half, first)
}
"""


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        ("Gather (shape, first)", ["Constant", "Slice"]),
        ("Slice (shape, first, second, none, first)", ["Shape", "Slice", "Div", "Slice"]),
    ],
)
def test_a_length_beside_open_ones_is_a_constant(taken: str, left: list[str], tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(HEAD + HALVES % taken), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="tvm")
    assert [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node] == left


LISTED = """(float[N,3,4] X) => (float Y) <int64[1] none = {0}, int64[1] one = {1}, int64[1] all = {3}, int64 two = {2}>
{ shape = Shape (X) %s }
"""


@pytest.mark.parametrize(
    ("computed", "left"),
    [
        ("unread = Size (shape) Y = Relu (X)", ["Constant", "Relu"]),
        ("rank = Size (shape) number = Cast <to = 1> (rank) Y = Add (X, number)", ["Constant", "Cast", "Add"]),
        (
            "i = Slice (shape, one, all) c = Concat <axis = 0> (i, one) p = ReduceProd (c) Y = Reshape (X, p)",
            ["Constant", "Reshape"],
        ),
        (
            "inner = Slice (shape, one, all) k = Mul (inner, one) w = Concat <axis = 0> (none, k) Y = Reshape (X, w)",
            None,
        ),
    ],
)
def test_lengths_that_are_listed_are_worked_out(computed: str, left: list[str] | None, tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(HEAD + LISTED % computed), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="tvm")
    before, after = (
        [node.op_type for node in onnx.load(tmp_path / name).graph.node] for name in ("model.onnx", "out.onnx")
    )
    assert after == (before if left is None else left)


def test_a_number_of_elements_that_torch_measures_is_a_constant(tmp_path: Path) -> None:
    """As torch.onnx.export sorts."""
    text = """(float[1,4,7] X) => (float[1,4,7] Y) <int64[1] axis = {1}>
    { shape = Shape (X) all = Gather (shape, axis) Y, places = TopK <axis = 1, largest = 0> (X, all) }
    """
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="tvm")
    assert [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node] == ["Constant", "TopK"]


def test_a_length_is_taken_through_a_cast(tmp_path: Path) -> None:
    """As TensorFlow's shapes are written, which are of 32 bits."""
    text = """(float[N,4,8] X) => (float[N,4,8] Y) <int64[1] first = {1}, int64[1] last = {3}, int64[1] none = {0}>
    {
        shape = Shape (X)
        narrow = Cast <to = 6> (shape)
        inner = Slice (narrow, first, last, none)
        elements = ReduceProd <keepdims = 0> (inner)
        number = Cast <to = 1> (elements)
        root = Sqrt (number)
        Y = Div (X, root)
    }
    """
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv@4.14")
    graph = onnx.load(tmp_path / "out.onnx").graph
    assert [node.op_type for node in graph.node if node.op_type != "Constant"] == ["Div"]
    assert not padfix.check(tmp_path / "out.onnx", target="opencv@4.14").findings


def test_products_of_an_open_number_of_rows_are_laid_out_as_measured(tmp_path: Path) -> None:
    """As Keras writes a layer Dense over time."""
    text = """(float[N,6,4] X) => (float[N,6,2] Y)
    <float[4,2] W = {1, 2, 3, 4, 5, 6, 7, 8}, int64[2] rows = {-1, 4}, int64[2] free = {0, 1}, int32[1] units = {2},
     int64[1] none = {0}>
    {
        flat = Reshape (X, rows)
        product = MatMul (flat, W)
        shape = Shape (X)
        narrow = Cast <to = 6> (shape)
        kept = Gather <axis = 0> (narrow, free)
        whole = Concat <axis = 0> (kept, units)
        wanted = Cast <to = 7> (whole)
        t = Reshape (product, wanted)
        Y = Softmax (t)
    }
    """
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv@4.14")
    assert "Shape" not in {node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node}


def test_shapes_and_indices_stay(tmp_path: Path) -> None:
    text = """(float[2,3,4] X) => (float[2,12] Y) <int64 zero = {0}, int64[1] first = {0}, int64[1] rest = {-1}>
    {
        shape = Shape (X)
        batch = Gather (shape, zero)
        listed = Unsqueeze (batch, first)
        wanted = Concat <axis = 0> (listed, rest)
        Y = Reshape (X, wanted)
    }
    """
    codes, nodes = converted(tmp_path, text)
    assert (codes, len(nodes)) == ([], 5)


def test_what_is_computed_rightly_stays(tmp_path: Path) -> None:
    text = """(float[1,4] X) => (float[1,2] Y) <float[8] W = {1, 2, 3, 4, 5, 6, 7, 8}, int64[2] shape = {4, 2}>
    {
        weights = Reshape (W, shape)
        Y = MatMul (X, weights)
    }
    """
    codes, nodes = converted(tmp_path, text)
    assert (codes, len(nodes)) == ([], 2)


def test_only_targets_that_mind_are_asked(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(HEAD + GRID.replace("N,3,H,4", "1,3,5,4")), tmp_path / "model.onnx")
    found = {
        target: [each.rule for each in padfix.check(tmp_path / "model.onnx", target=target).findings]
        for target in ("onnx", "openvino", "opencv@4.14", "opencv@5.0")
    }
    assert found == {"onnx": [], "openvino": [], "opencv@4.14": ["PF306", "PF305"], "opencv@5.0": []}


PADS = """(float[N,3,8,9] X) => (float[N,3,H,W] Y)
<int64[4] given = {0, 1, 0, 1}, int64[1] four = {4}, int64[2] pairs = {-1, 2}, int64[1] last = {-1},
 int64[1] first = {-99999}, int64[1] zero = {0}>
{
    others = ConstantOfShape <value = int64[1] {0}> (four)
    listed = Concat <axis = 0> (given, others)
    grouped = Reshape (listed, pairs)
    turned = Slice (grouped, last, first, zero, last)
    rows = Transpose <perm = [1, 0]> (turned)
    flat = Reshape (rows, last)
    amounts = Cast <to = 7> (flat)
    Y = Pad <mode = "reflect"> (X, amounts)
}
"""


def test_amounts_that_torch_computes_are_written_out(tmp_path: Path) -> None:
    """So torch.nn.functional.pad is exported; what comes behind can then be written in another form."""
    codes, nodes = converted(tmp_path, PADS)
    assert "PF305" in codes
    assert "Concat" not in nodes
    found = padfix.check(tmp_path / "model.onnx", target="opencv").findings
    assert any(each.rule == "PF305" and "Pad" in each.message for each in found)


def test_amounts_that_data_has_a_part_in_stay(tmp_path: Path) -> None:
    text = PADS.replace("int64[4] given = {0, 1, 0, 1}, ", "").replace("X)", "X, int64[4] given)")
    with pytest.raises(padfix.PadfixError, match="run time"):
        converted(tmp_path, text)


@pytest.mark.parametrize(("length", "expected"), [(4, [0, 0, 0, 0, 0, 0, 1, 1]), (400_000_000_000, None)])
def test_what_would_fill_the_memory_is_not_worked_out(length: int, expected: list[int] | None) -> None:
    (scope,) = iterate_scopes(onnx.parser.parse_model(HEAD + PADS.replace("four = {4}", f"four = {{{length}}}")))
    found = worked_out(scope, "amounts")
    assert (None if found is None else found.tolist()) == expected


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_a_legacy_resize_whose_scales_torch_computes_becomes_one_resize(mode: str, tmp_path: Path) -> None:
    text = f"""(float[1,3,H,W] X) => (float[1,3,K,L] Y) <float[2] a = {{1.0, 1.0}}, float[2] b = {{2.0, 2.0}}>
    {{
        listed = Concat <axis = 0> (a, b)
        scales = Cast <to = 1> (listed)
        Y = Resize <mode = "{mode}"> (X, scales)
    }}
    """
    onnx.save(onnx.parser.parse_model(HEAD.replace("17", "10") + text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx")
    nodes = onnx.load(tmp_path / "out.onnx").graph.node
    assert [node.op_type for node in nodes] == ["Concat", "Cast", "Resize"]


def test_dequantized_numbers_are_written(tmp_path: Path) -> None:
    """And lists, which OpenCV 4.14 takes for columns; the weights of a convolution stay in bytes."""
    text = (
        '<ir_version: 8, opset_import: ["" : 13]> g (float[1,2,4,5] X) => (float[1,3,4,5] Y)'
        "<float s = {0.1}, float[1] t = {0.01}, int8 z = {3}, int32[3] b = {1, 2, 3}, int32 n = {0},"
        " int8[3,2,1,1] w = {1, 2, 3, 4, 5, 6}>"
        "{ k = DequantizeLinear (w, s, z) a = DequantizeLinear (b, t, n) c = Conv <kernel_shape = [1, 1]> (X, k, a)"
        " h = DequantizeLinear (z, s) Y = Mul (c, h) }"
    )
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv@4.14")
    graph = onnx.load(tmp_path / "out.onnx").graph
    assert [node.op_type for node in graph.node if node.op_type != "Constant"] == ["DequantizeLinear", "Conv", "Mul"]


@pytest.mark.parametrize("shapes", [None, {"X": (1, 4, 3, 5)}])
def test_what_an_older_opencv_refuses_of_lengths_is_a_constant(
    shapes: dict[str, tuple[int, ...]] | None, tmp_path: Path
) -> None:
    """As Keras reshapes into the groups of a GroupNormalization: the length that is left over is a quotient, or -1."""
    text = """(float[N,4,H,5] X) => (float[A,B,C] Y)
    <int64[2] known = {2, 5}, int64[1] none = {0}, int64 one = {1}, int64[1] first = {1}>
    {
        lengths = Shape (X)
        all = ReduceProd <keepdims = 1> (lengths)
        there = ReduceProd <keepdims = 1> (known)
        least = ReduceMin <keepdims = 0> (known)
        missing = Equal (least, none)
        kept = Cast <to = 7> (missing)
        each = Max (there, kept, first)
        rest = Div (all, each)
        shape = Concat <axis = 0> (rest, known)
        grouped = Reshape (X, shape)
        Y = Relu (grouped)
    }
    """
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv@4.14", shapes=shapes)
    left = [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node]
    assert not {"ReduceProd", "ReduceMin", "Equal", "Max"} & set(left), left
    assert not padfix.check(tmp_path / "out.onnx", target="opencv@4.14").findings


def test_bounds_that_are_computed_of_known_lengths_are_written_where_a_slice_may_run_backwards(tmp_path: Path) -> None:
    text = """(float[N,3,H,4] X) => (float Y)
    <int64[2] parts = {1, 1}, int64[1] two = {2}, int64[1] axis = {2}>
    {
        lengths = Shape <start = 1, end = 3> (X)
        channels, height = Split (lengths, parts)
        half = Div (height, two)
        rest = Sub (height, half)
        step = Div (rest, rest)
        Y = Slice (X, half, height, axis, step)
    }
    """
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "model.onnx")
    with pytest.raises(padfix.PadfixError, match="only known at run time"):
        padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv@4.14")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="opencv@4.14", shapes={"X": (1, 3, 6, 4)})
    assert not padfix.check(tmp_path / "out.onnx", target="opencv@4.14").findings


@pytest.mark.parametrize(
    ("shape", "nodes"),
    [
        ("6,8", "Y = Reshape (X, lengths)"),
        ("2,3,8", "ones = ConstantOfShape (lengths) mask = Trilu (ones) Y = Mul (X, mask)"),
    ],
)
def test_what_constants_alone_give_is_written_where_the_target_loses_it(shape: str, nodes: str, tmp_path: Path) -> None:
    text = f"""(float[{shape}] X) => (float[2,3,8] Y) <int64[2] a = {{2, 3}}, int64[1] b = {{8}}>
    {{ lengths = Concat <axis = 0> (a, b) {nodes} }}"""
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="onnx2tf")
    types = [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node]
    assert types in (["Constant", "Reshape"], ["Constant", "Mul"])


@pytest.mark.parametrize(
    ("target", "nodes"),
    [
        ("opencv@4.14", "c = GlobalAveragePool (k)"),
        ("opencv@4.14", "a = ReduceMax <axes = [2], keepdims = 1> (k) c = PRelu (a, s)"),
        ("opencv@5.0.0.93", "a = Conv (k, w) c = MaxPool <kernel_shape = [2, 2]> (a)"),
        ("opencv@5.0.0.93", "c = ConvTranspose <strides = [2, 2]> (k, w)"),
        ("mnn", "c = AveragePool <kernel_shape = [2, 2]> (k)"),
        ("mnn", "c = GlobalAveragePool (k)"),
        ("openvino", "c = ReduceL1 <axes = [1], keepdims = 1> (k)"),
    ],
)
def test_a_layer_of_constants_is_a_constant(target: str, nodes: str, tmp_path: Path) -> None:
    """As a recurrent network starts from a flow or state of zeros."""
    text = f"""(float[1,1,3,3] X) => (float[A,B,C,D] Y)
    <float[1,1,2,2] k = {{1, -2, 3, 4}}, float[1,1,1,1] w = {{0.5}}, float[1] s = {{0.25}}>
    {{ {nodes} m = GlobalAveragePool (X) Y = Mul (m, c) }}"""
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target=target)
    types = [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node if node.op_type != "Constant"]
    assert types == ["GlobalAveragePool", "Mul"]


@pytest.mark.parametrize("batch", ["N", "2"])
@pytest.mark.parametrize("opset", [11, 13])
def test_a_constant_is_written_although_what_computes_it_is_wrong_on_data_as_well(
    batch: str, opset: int, tmp_path: Path
) -> None:
    """PyTorch's scales of channels: as an Unsqueeze of data they would be a Reshape."""
    given = "c = Unsqueeze <axes = [1, 2]> (k)" if opset < 13 else "c = Unsqueeze (k, axes)"
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]> m (float[{batch},6,5,5] X) => (float[{batch},6,5,5] Y)
    <float[6] k = {{1, -2, 3, 4, -5, 6}}, int64[2] axes = {{1, 2}}> {{ {given} Y = Mul (X, c) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="onnx2tf")
    types = {node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node}
    assert "Mul" in types
    assert "Unsqueeze" not in types


@pytest.mark.parametrize(("kind", "target", "stays"), [("u", "4.14", False), ("", "4.14", True), ("u", "5.0", True)])
def test_bytes_without_a_sign_are_written_as_what_a_cast_makes_of_them(
    kind: str, target: str, stays: bool, tmp_path: Path
) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[2,2] X) => (float[2,2] Y)
        <{kind}int8[2,2] w = {{1, 2, 100, 127}}> {{ v = Identity (w) f = Cast <to = 1> (v) Y = Mul (X, f) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target=f"opencv@{target}")
    assert ("Cast" in {node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node}) == stays


def test_tvm_gets_a_number_in_place_of_what_fills_no_axes(tmp_path: Path) -> None:
    text = "(float[2,3] X) => (float[2,3] Y) <int64[0] e = {}> { c = ConstantOfShape (e) Y = Add (X, c) }"
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="tvm")
    assert "ConstantOfShape" not in {each.op_type for each in onnx.load(tmp_path / "out.onnx").graph.node}


def test_a_range_from_no_number_is_left(tmp_path: Path) -> None:
    nodes = "e = Slice (k, z, z) s = Squeeze (e) r = Range (s, last, step) f = Cast <to = 1> (r)"
    constants = "<int64[1] k = {1}, int64[1] z = {0}, int64 step = {1}, int64 last = {9}>"
    with pytest.raises(padfix.PadfixError, match="one number"):
        converted(tmp_path, f"(float[n] X) => (float[m] Y) {constants} {{ {nodes} Y = Concat <axis = 0> (X, f) }}")
