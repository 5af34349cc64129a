"""What OpenCV, OpenVINO and tract get wrong of what exporters write, and padfix's forms of it."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

GELU = """<float root = {1.4142135}, float one = {1.0}, float half = {0.5}> {
    scaled = Div (X, root) e = Erf (scaled) sum = Add (e, one) %s }"""
CONSTANT = "{ k = Constant <%s> () Y = Add (X, k) }"
ARG_MAX = "{ rows = Flatten (X) place = ArgMax <axis = 1, keepdims = %d> (rows) Y = Cast <to = 1> (place) }"
SPLIT = """<float[1,6] weights = {1, 2, 3, 4, 5, 6}, int64[2] sizes = {3, 3}> {
    first, second = Split <axis = 1> (%s, sizes) Y = Add (X, second) }"""


def found_and_written(body: str, folder: Path, target: str = "opencv@4.14") -> tuple[list[str], list[str]]:
    """Return the operators with findings, and those of what is written."""
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[2,3] X) => (float[A,B] Y) {body}'
    )
    if "ArgMax" in body:
        del model.graph.output[0].type.tensor_type.shape.dim[:]
        model.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 2
    onnx.save(model, folder / "before.onnx")
    found = padfix.check(folder / "before.onnx", target=target).findings
    padfix.convert(folder / "before.onnx", folder / "after.onnx", target=target)
    assert not padfix.check(folder / "after.onnx", target=target).findings
    after = onnx.load(folder / "after.onnx").graph.node
    return [each.op_type for each in found], [each.op_type for each in after]


@pytest.mark.parametrize("target", ["opencv@4.14", "opencv@5.0"])
@pytest.mark.parametrize(
    ("gate", "is_wrong"),
    [
        ("h = Mul (half, sum) Y = Mul (X, h)", True),
        ("h = Mul (sum, half) Y = Mul (h, X)", True),
        ("h = Mul (X, sum) Y = Mul (h, half)", False),
        ("Y = Mul (sum, half)", False),
    ],
)
def test_a_gelu_whose_gate_is_halved(gate: str, is_wrong: bool, target: str, tmp_path: Path) -> None:
    found, after = found_and_written(GELU % gate, tmp_path, target)
    assert found == ["Erf"] * is_wrong
    assert after[1] == ("Identity" if is_wrong else "Erf")


@pytest.mark.parametrize("value", ["value_float = 2.0", "value_floats = [1.0, 2.0, 3.0]", "value: tensor = float {2}"])
def test_a_constant_that_is_no_tensor(value: str, tmp_path: Path) -> None:
    found, _ = found_and_written(CONSTANT % value, tmp_path)
    assert found == ["Constant"] * ("tensor" not in value)


@pytest.mark.parametrize("kept", [0, 1])
def test_places_of_maxima_as_a_list(kept: int, tmp_path: Path) -> None:
    found, after = found_and_written(ARG_MAX % 0, tmp_path) if not kept else ([], ["Squeeze"])
    assert found == ["ArgMax"] * (not kept)
    assert "Squeeze" in after


@pytest.mark.parametrize("data", ["weights", "X"])
def test_weights_are_sliced_and_not_split(data: str, tmp_path: Path) -> None:
    body = SPLIT % data if data == "weights" else "{ a, b = Split <axis = 0> (X) Y = Add (a, b) }"
    found, after = found_and_written(body, tmp_path)
    assert found == ["Split"] * (data == "weights")
    assert ("Split" in after) is (data == "X")


@pytest.mark.parametrize("producer", ["pytorch", "tf2onnx"])
@pytest.mark.parametrize("pads", [[1, 1, 1, 1], [0, 0, 0, 0]])
def test_average_pools_of_pytorchs(producer: str, pads: list[int], tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17], producer_name: "{producer}">
        g (float[1,2,6,6] X) => (float[A,B,C,D] Y) {{ Y = AveragePool <kernel_shape = [3, 3], pads = {pads}> (X) }}""")
    onnx.save(model, tmp_path / "before.onnx")
    is_wrong = producer == "pytorch" and any(pads)
    found = padfix.check(tmp_path / "before.onnx", target="opencv").findings
    assert [(each.rule, each.severity) for each in found] == [("PF310", "silent")] * is_wrong
    assert not padfix.check(tmp_path / "before.onnx", target="openvino").findings
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="opencv")
    after = onnx.load(tmp_path / "after.onnx")
    assert after.producer_name == ("pytorch, padfix" if is_wrong else producer)
    assert [each.SerializeToString() for each in after.graph.node] == [
        each.SerializeToString() for each in model.graph.node
    ]
    assert not padfix.check(tmp_path / "after.onnx", target="opencv").findings


BYTES = {
    "QLinearAdd": "com.microsoft.QLinearAdd (X, s, z, b, s, z, s, z)",
    "QLinearMul": "com.microsoft.QLinearMul (X, s, z, b, s, z, s, z)",
    "QLinearSigmoid": "com.microsoft.QLinearSigmoid (X, s, z, s, z)",
    "QLinearLeakyRelu": "com.microsoft.QLinearLeakyRelu <alpha = 0.1> (X, s, z, s, z)",
    "QLinearSoftmax": "com.microsoft.QLinearSoftmax <axis = 1, opset = 13> (X, s, z, s, z)",
    "QLinearConcat": "com.microsoft.QLinearConcat <axis = 1> (s, z, X, s, z, b, s, z)",
    "QLinearWhere": "com.microsoft.QLinearWhere (w, X, s, z, b, s, z, s, z)",
}


@pytest.mark.parametrize("target", ["openvino", "tract"])
@pytest.mark.parametrize("op_type", BYTES)
def test_operators_of_bytes_are_written_on_numbers(op_type: str, target: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (uint8[2,3] X) => (uint8[A,B] Y)
        <float s = {{0.05}}, uint8 z = {{120}}, uint8[1,3] b = {{7, 140, 250}}, bool[1,3] w = {{1, 0, 1}}> {{
            c = Identity (X) Y = {BYTES[op_type].replace("b, s", "b, s").replace("X", "c")} }}""")
    if op_type == "QLinearConcat":
        model.graph.initializer[2].dims[0], model.graph.initializer[2].raw_data = 2, bytes([7, 140, 250, 9, 8, 7])
        model.graph.initializer[2].ClearField("int32_data")
    onnx.save(model, tmp_path / "before.onnx")
    (found,) = padfix.check(tmp_path / "before.onnx", target=target).findings
    assert (found.rule, found.op_type, found.fixable) == ("PF308", op_type, True)
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target=target)
    after = [each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node]
    assert {"DequantizeLinear", "QuantizeLinear", op_type.removeprefix("QLinear")} <= set(after)
    assert not padfix.check(tmp_path / "after.onnx", target=target).findings


@pytest.mark.parametrize("target", ["openvino", "opencv", "tract"])
def test_a_crop_is_said_to_be_refused(target: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[1,2,8,8] X, float[1,4] R) => (float[1,2,3,4] Y) <int32[1] b = {0}, int32[2] c = {3, 4}> {
            Y = com.microsoft.CropAndResize (X, R, b, c) }""")
    onnx.save(model, tmp_path / "before.onnx")
    (found,) = padfix.check(tmp_path / "before.onnx", target=target).findings
    assert (found.rule, found.op_type, found.fixable) == ("PF308", "CropAndResize", False)


def test_limits_of_a_suppression_are_lists_for_tract(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,6,4] B, float[1,1,6] S) => (int64[N,3] Y) <int64 most = {3}, float share = {0.5}> {
            Y = NonMaxSuppression (B, S, most, share) }""")
    onnx.save(model, tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="tract")
    assert all(list(each.dims) == [1] for each in onnx.load(tmp_path / "after.onnx").graph.initializer)
    (found,) = padfix.check(tmp_path / "before.onnx", target="opencv@4.14").findings
    assert (found.op_type, found.fixable) == ("NonMaxSuppression", False)


def test_a_convolution_of_a_constant_is_worked_out(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,1,1,1] X) => (float[1,1,1,1] Y)
        <float[1,1,2,2] k = {1, 2, 3, 4}, float[1,1,2,2] d = {1, 2, 3, 4}> { c = Conv (d, k) Y = Add (X, c) }""")
    onnx.save(model, tmp_path / "before.onnx")
    (found,) = padfix.check(tmp_path / "before.onnx", target="opencv").findings
    assert (found.rule, found.op_type, found.fixable) == ("PF111", "Conv", True)
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="opencv")
    assert [each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node] == ["Constant", "Add"]


@pytest.mark.parametrize("target", ["tract", "opencv"])
@pytest.mark.parametrize(("power", "shape"), [(1, "1,3,7"), (3, "2,3,4,5"), (3, "1,2,3,4,5")])
def test_a_global_pool_by_any_norm(power: int, shape: str, target: str, tmp_path: Path) -> None:
    given = ",".join([*shape.split(",")[:2], *"1" * (shape.count(",") - 1)])
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[{shape}] X) => (float[{given}] Y) {{ Y = GlobalLpPool <p = {power}> (X) }}""")
    onnx.save(model, tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target=target)
    assert not padfix.check(tmp_path / "after.onnx", target=target).findings


@pytest.mark.parametrize(("shape", "given"), [("4,5,N,6", "2,3,N,6"), ("4,5", "2,3"), ("4,5,2", "2,3,2")])
def test_elements_that_constant_indices_pick_are_rows(shape: str, given: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[{shape}] X) => (float[{given}] Y) <int64[2,3,2] at = {{0, 1, 3, 4, 2, 2, -1, 0, 1, -2, 0, 0}}> {{
            data = Neg (X) Y = GatherND (data, at) }}""")
    onnx.save(model, tmp_path / "before.onnx")
    padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="opencv@4.14")
    after = [each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node]
    assert after == ["Neg", "Reshape", "Gather", "Reshape"]
