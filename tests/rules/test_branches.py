"""What a target has against an If, a Loop, and operators that are no network's."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.files.model import Model
from padfix.operators.branches import branch_traits
from padfix.operators.inference import infer

MEASURED = """
    lengths = Shape (X)
    place = Constant <value_int = 1> ()
    length = Gather (lengths, place)
    three = Constant <value_int = 3> ()
    told = Equal (length, three)
"""
DECIDED = {
    "data": "most = ReduceMax <keepdims = 0> (X) zero = Constant <value_float = 0.0> () told = Greater (most, zero)",
    "lengths": MEASURED,
    "constants": MEASURED.replace("(X)", "(F)"),
}
ELSE = {
    "alike": "(float[1,3,8] B) { B = Neg (F) }",
    "lengths-differ": "(float[1,3,1] B) { B = ReduceMax <axes = [2]> (F) }",
    "ranks-differ": "(float[1,3] B) { B = ReduceMax <axes = [2], keepdims = 0> (F) }",
}


def branching(decided: str, branches: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        main (float[N,M,8] X, float[1,3,8] F) => (float Y) {{
            {DECIDED[decided]}
            Y = If (told) <then_branch = then () => (float[1,3,8] A) {{ A = Relu (F) }},
                           else_branch = other () => {ELSE[branches]}>
        }}""")


@pytest.mark.parametrize("branches", ELSE)
@pytest.mark.parametrize("decided", DECIDED)
def test_what_decides_and_how_branches_differ_are_told(decided: str, branches: str) -> None:
    main, *_ = infer(Model(branching(decided, branches)))
    told = {"decided-by": decided, "branches": branches, "reads-from-outside": False}
    found = branch_traits(main, main.nodes[-1])
    assert {name: found[name] for name in told} == told


@pytest.mark.parametrize(
    ("target", "decided", "branches", "is_found"),
    [
        ("openvino", "data", "ranks-differ", True),
        ("openvino", "lengths", "ranks-differ", True),
        ("openvino", "lengths", "lengths-differ", False),
        ("tract", "constants", "lengths-differ", True),
        ("tract", "data", "alike", False),
        ("ncnn", "data", "alike", True),
        ("ncnn", "constants", "alike", False),
        ("mnn", "data", "ranks-differ", False),
    ],
)
def test_what_runtimes_know_of_branches(
    target: str, decided: str, branches: str, is_found: bool, tmp_path: Path
) -> None:
    onnx.save(branching(decided, branches), tmp_path / "m.onnx")
    found = padfix.check(tmp_path / "m.onnx", target=target).findings
    refused = [each for each in found if each.op_type == "If" and each.rule in ("PF306", "PF309")]
    assert len(refused) == is_found


@pytest.mark.parametrize("target", ["openvino", "opencv", "ncnn", "mnn", "tract"])
def test_what_is_no_networks_operator_is_said_to_be_refused(target: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
        main (float[N,4] X) => (float[N,4] Y) { Y = ai.onnx.ml.Scaler <offset = [1.0], scale = [2.0]> (X) }""")
    onnx.save(model, tmp_path / "m.onnx")
    (found,) = padfix.check(tmp_path / "m.onnx", target=target).findings
    assert (found.rule, found.op_type) == ("PF306", "Scaler")
    assert not padfix.check(tmp_path / "m.onnx").findings


@pytest.mark.parametrize(
    ("shape", "opset", "axes"), [("1,3,1,8", 11, [0, 2]), ("N,3,1,8", 13, None), ("1,3,2,8", 11, [0])]
)
def test_a_squeeze_names_its_axes_for_tract(shape: str, opset: int, axes: list[int] | None, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 11]>
        main (float[{shape}] X) => (float Y) {{ negated = Neg (X) Y = Squeeze (negated) }}""")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "m.onnx")
    padfix.convert(tmp_path / "m.onnx", tmp_path / "out.onnx", target="tract")
    result = onnx.load(tmp_path / "out.onnx")
    (squeeze,) = (node for node in result.graph.node if node.op_type == "Squeeze")
    assert result.opset_import[0].version == opset
    assert [list(each.ints) for each in squeeze.attribute] == ([] if axes is None else [axes])


PASSING = {
    "an input": "(float[1,3] Y) { Y = Dropout (X) }",
    "an input, by two": "(float[1,3] Y) { a = Identity (X) Y = Dropout (a) }",
    "another result": "(float[1,3] Y, float[1,3] Z) { Z = Relu (X) Y = Dropout (Z) }",
    "the same as another": "(float[1,3] Y, float[1,3] Z) { a = Relu (X) Y = Dropout (a) Z = Identity (a) }",
    "what is computed": "(float[1,3] Y) { a = Relu (X) Y = Dropout (a) }",
    "what is read inside": "(float[1,3] Y, float[1,3] Z) { a = Relu (X) Y = Dropout (a) Z = Sin (a) }",
    "no result": "(float[1,3] Y) { a = Dropout (X) Y = Relu (a) }",
}


@pytest.mark.parametrize("gives", PASSING)
def test_results_that_are_the_same_as_others_are_told(gives: str, tmp_path: Path) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 17]> main (float[1,3] X) => {PASSING[gives]}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    found = {
        target: any(each.op_type == "Dropout" for each in padfix.check(tmp_path / "m.onnx", target=target).findings)
        for target in ("ncnn", "mnn", "openvino")
    }
    is_the_same = gives in ("an input", "an input, by two", "another result", "the same as another")
    assert found == {"ncnn": is_the_same, "mnn": is_the_same, "openvino": gives in ("an input", "no result")}
    if found["mnn"] and not found["openvino"]:
        padfix.convert(tmp_path / "m.onnx", tmp_path / "out.onnx", target="mnn")
        result = onnx.load(tmp_path / "out.onnx").graph
        assert not [node for node in result.node if node.op_type == "Dropout"]


@pytest.mark.parametrize(
    ("dropout", "opset", "reason"),
    [
        ("Y = Dropout (X, , told)", 17, "whether it does is not known"),
        ("Y, kept = Dropout (X) Z = Neg (kept)", 7, "its mask is of numbers"),
        ("Y = Dropout (X)", 6, "it drops elements"),
    ],
)
def test_a_dropout_that_is_one_stays(dropout: str, opset: int, reason: str, tmp_path: Path) -> None:
    more = "bool told" if "told" in dropout else "float unused"
    gives = ", float[1,3] Z" if "Z =" in dropout else ""
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]>
        main (float[1,3] X, {more}) => (float[1,3] Y{gives}) {{ {dropout} }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    (found,) = (each for each in padfix.check(tmp_path / "m.onnx", target="openvino").findings if each.rule == "PF306")
    assert reason in found.hint


@pytest.mark.parametrize(
    ("axes", "slices", "expected"),
    [
        ("scan_input_axes = [-2], scan_output_axes = [-1]", ("[]", "[]"), ([1], [2])),
        ("scan_input_axes = [1], scan_output_axes = [-3]", ("[]", "[]"), ([1], [0])),
        ("scan_input_axes = [-2], scan_output_axes = [-1]", ("[3,2]", "[a,b]"), ([-2], [-1])),
    ],
)
def test_axes_of_a_scan_are_counted_from_the_begin_for_tract(
    axes: str, slices: tuple[str, str], expected: tuple[list[int], list[int]], tmp_path: Path
) -> None:
    """Where its body does not tell how many axes a slice has; the body reads a matrix and a number from outside."""
    text = f"""<ir_version: 8, opset_import: ["" : 11]> g (float[3,6,2] X, float[3,2] H, float U) =>
        (float[3,2] Y, float[a,b,c] Z) <float[2,2] w = {{1, 2, 3, 4}}> {{ k = Neg (U)
        Y, Z = Scan <num_scan_inputs = 1, {axes}, body = b (float[3,2] h, float{slices[0]} x) =>
            (float[3,2] a, float{slices[1]} o)
            {{ m = MatMul (x, w) s = Add (h, m) a = Tanh (s) o = Mul (a, k) }}> (H, X)
        }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", target="tract")
    (scan,) = (node for node in onnx.load(tmp_path / "out.onnx").graph.node if node.op_type == "Scan")
    told = {each.name: list(each.ints) for each in scan.attribute}
    assert (told["scan_input_axes"], told["scan_output_axes"]) == expected
    assert not padfix.check(tmp_path / "out.onnx", target="tract").findings
