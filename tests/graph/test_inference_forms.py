"""Types of operators as older opsets write them."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from padfix.files.model import Model
from padfix.operators.inference import infer

LENGTHS = """
  lengths = Shape (X)
  first = Gather <axis = 0> (lengths, zero)
  {unsqueezed}
  shape = Concat <axis = 0> (batch, rest)
  Y = Reshape (X, shape)
"""
OLD = "batch = Unsqueeze <axes = [0]> (first)"
NEW = "batch = Unsqueeze (first, place)"
CONSTANTS = "<int64 zero = {0}, int64[2] rest = {3, -1}, int64[1] place = {0}>"


def infer_text(text: str, opset: int) -> dict[str, tuple[object, ...] | None]:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')
    return {name: known.shape for name, known in infer(Model(model))[0].types.items()}


@pytest.mark.parametrize("opset", range(7, 20))
@pytest.mark.parametrize("batch", ["2", "N"])
def test_a_computed_shape_is_followed_at_every_opset(opset: int, batch: str) -> None:
    body = LENGTHS.format(unsqueezed=OLD if opset < 13 else NEW)
    found = infer_text(f"main (float[{batch},3,4,6] X) => (float[a,b,c] Y) {CONSTANTS} {{ {body} }}", opset)
    assert found["Y"] == ((2, 3, 24) if batch == "2" else ("N", 3, 24))


RESHAPED = {
    "what is left": ("N,4,6,6", "4, -1", ("N", 4, 36)),
    "what is copied": ("N,L,8", "0, 2, -1", ("N", "L", 2, 4)),
    "an axis more to find": ("N,L,8", "2, -1", ("N", 2, "4*L")),
    "two axes more to find": ("N,L,M", "-1, 1", ("N", None, 1)),
    "what does not go into it": ("N,5,3", "2, -1", ("N", 2, None)),
}


@pytest.mark.parametrize("name", RESHAPED)
def test_a_reshape_finds_what_open_lengths_leave(name: str) -> None:
    data, rest, expected = RESHAPED[name]
    count = rest.count(",") + 1
    found = infer_text(
        f"""main (float[{data}] X) => (float[{",".join("abcd"[: count + 1])}] Y)
        <int64[1] nought = {{0}}, int64[1] one = {{1}}, int64[{count}] rest = {{{rest}}}> {{
            lengths = Shape (X) batch = Slice (lengths, nought, one)
            shape = Concat <axis = 0> (batch, rest) Y = Reshape (X, shape) }}""",
        13,
    )
    shape = found["Y"]
    assert shape is not None
    assert tuple(None if str(each).startswith("unk__") else each for each in shape) == expected


@pytest.mark.parametrize(
    ("data", "told", "expected"),
    [
        ("N,4,4", "-1, 16", ("N", 16)),
        ("5,N,12", "5, -1, 4", (5, "3*N", 4)),
        ("N,6,L", "0, -1", ("N", "6*L")),
        ("N,6,L", "0, 0, 1, -1", ("N", 6, 1, "L")),
        ("N,6,L", "-1, 12", (None, 12)),
    ],
)
def test_a_constant_shape_finds_what_open_lengths_leave(
    data: str, told: str, expected: tuple[int | str | None, ...]
) -> None:
    count = told.count(",") + 1
    found = infer_text(
        f"""main (float[{data}] X) => (float[{",".join("abcd"[:count])}] Y) <int64[{count}] told = {{{told}}}> {{
            Y = Reshape (X, told) }}""",
        13,
    )
    assert tuple(None if str(each).startswith("unk__") else each for each in found["Y"] or ()) == expected


def test_lengths_times_heads_as_pytorch_writes_attention() -> None:
    found = infer_text(
        """main (float[5,N,12] X) => (float[a,b,c] Y, float[d,e] Z, float[f] counted)
        <int64 nought = {0}, int64 one = {1}, int64 three = {3}, int64[1] four = {4}, int64[1] place = {0},
         int64[1] five = {5}, int64[1] two = {2}, int64[1] twelve = {12},
         int64[1] three_listed = {3}> {
            lengths = Shape (X) batch = Gather (lengths, one) heads = Mul (batch, three)
            listed = Unsqueeze (heads, place) told = Concat <axis = 0> (five, listed, four) Y = Reshape (X, told)
            end = Mod (two, four) first = Slice (lengths, place, end) long = Gather (lengths, nought)
            rows = Mul (batch, long) all = Unsqueeze (rows, place) flat = Concat <axis = 0> (all, twelve)
            Z = Reshape (X, flat) numbers = Range (nought, batch, one) counted = Cast <to = 1> (numbers)
            parts = Concat <axis = 0> (first, four, three_listed) again = Reshape (X, parts) }""",
        13,
    )
    assert found["Y"] == (5, "3*N", 4)
    assert found["Z"] == ("5*N", 12)
    assert found["numbers"] == ("N",)
    assert found["again"] == (5, "N", 4, 3)


def test_what_a_reshape_finds_of_an_open_length_by_lengths_that_are_measured() -> None:
    found = infer_text(
        """main (float[N,2,8,5] X) => (float[a,b,c] Y, float[d,e,f] Z)
        <int64[1] rest = {-1}, int64[1] two = {2}, int64[1] four = {4}, int64[1] zero = {0}, int64[2] told = {2, -1}> {
            lengths = Shape (X) inner = Slice (lengths, two, four, zero) flat = Concat <axis = 0> (rest, inner)
            Y = Reshape (X, flat) batch = Slice (lengths, zero, told_one, zero)
            again = Concat <axis = 0> (batch, told) Z = Reshape (Y, again) }""".replace(
            "told = {2, -1}", "told = {2, -1}, int64[1] told_one = {1}"
        ),
        13,
    )
    assert found["Y"] == ("2*N", 8, 5)
    assert found["Z"] == ("N", 2, 40)


def test_an_expand_that_keeps_axes_as_pytorch_writes_it() -> None:
    found = infer_text(
        """main (float[N,3] X) => (float[a,b,c] Y)
        <float[1,1,5] token = {1, 2, 3, 4, 5}, int64[1] nought = {0}, int64[1] one = {1}, int64[2] minus = {-1, -1},
         int64[1] three = {3}, int64 less = {-1}> {
            lengths = Shape (X) batch = Slice (lengths, nought, one) told = Concat <axis = 0> (batch, minus)
            ones = ConstantOfShape <value = int64[1] {1}> (three) asked = Mul (ones, less)
            is_kept = Equal (told, asked) shape = Where (is_kept, ones, told) Y = Expand (token, shape) }""",
        13,
    )
    assert found["Y"] == ("N", 1, 5)


def attribute(op_type: str, **attributes: object) -> onnx.NodeProto:
    outputs = {"TopK": ["Y", "Z"], "Split": ["Y", "Z"], "Dropout": ["Y", "Z"]}.get(op_type, ["Y"])
    return helper.make_node(op_type, ["X"], outputs, **attributes)


OLDER = [
    (attribute("Squeeze", axes=[0]), 11),
    (attribute("Squeeze"), 11),
    (attribute("Unsqueeze", axes=[0, 3]), 9),
    (attribute("ReduceSum", axes=[1], keepdims=0), 11),
    (attribute("ReduceSum"), 12),
    (attribute("ReduceMean", axes=[-1]), 11),
    (attribute("Split", axis=2, split=[1, 3]), 11),
    (attribute("Split", axis=3), 7),
    (attribute("Slice", starts=[0, 1], ends=[2, 2147483647], axes=[1, 3]), 9),
    (attribute("Slice", starts=[0, 1], ends=[1, -1]), 7),
    (attribute("Pad", pads=[0, 0, 1, 2, 0, 0, 3, 4]), 7),
    (attribute("TopK", k=2, axis=1), 9),
    (attribute("Dropout"), 7),
    (attribute("MeanVarianceNormalization"), 9),
    (attribute("Upsample", scales=[1.0, 1.0, 2.0, 2.0]), 7),
]


@pytest.mark.parametrize("ir_version", [3, 8])
@pytest.mark.parametrize(("node", "opset"), OLDER, ids=[f"{node.op_type}-{opset}" for node, opset in OLDER])
def test_types_are_those_of_a_run(node: onnx.NodeProto, opset: int, ir_version: int) -> None:
    data = np.ones((1, 3, 4, 6), np.float32)
    relu = helper.make_node("Relu", ["Y"], ["W"])
    values = [helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, data.shape)]
    outputs = [onnx.ValueInfoProto(name="W")]
    graph = helper.make_graph([node, relu], "main", values, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(["W"], {"X": data})[0].shape
    types = infer(Model(model))[0].types
    assert types["Y"].shape == types["W"].shape == wanted


def test_the_mask_of_an_old_dropout_is_not_taken_for_a_mask_of_today() -> None:
    found = infer_text("main (float[2,3] X) => (float[a,b] Y) { Y, mask = Dropout (X) }", 9)
    assert found["Y"] == (2, 3)
    assert "mask" not in found


def test_axes_that_an_old_file_tells_are_taken_away_alone() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 3, opset_import: ["" : 7]> main (float[1,1] X) => (float[a] Y) { Y = Squeeze <axes = [0]> (X) }'
    )
    assert infer(Model(model))[0].types["Y"].shape == (1,)


def test_what_is_taken_of_a_list_has_the_axes_that_its_readers_tell() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        main (float[2,N,5] X, seq(float) L, int64 i) => (float Y, float Z) {
        a = SequenceAt (L, i) Y = Concat <axis = 1> (a, X) Z = Transpose <perm = [0, 2, 1, 3]> (a) }""")
    model.graph.input[1].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    found = {name: known.shape for name, known in infer(Model(model))[0].types.items()}
    assert found["Y"] == (2, None, 5)
    assert found["Z"] == (None,) * 4
