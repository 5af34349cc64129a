"""Constants that a model computes: which of them are written out, and what stays."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

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
    assert codes == ["PF305"]
    assert sorted(nodes) == ["Add", "Constant", "ConstantOfShape", "Mul", "Shape"]


@pytest.mark.parametrize("text", [GRID, GRID.replace("3,H,4", "3,5,4").replace("<start = 2, end = 4>", "")])
def test_what_depends_on_an_open_length_is_declined(text: str, tmp_path: Path) -> None:
    with pytest.raises(padfix.PadfixError, match="--shape"):
        converted(tmp_path, text)


@pytest.mark.parametrize(
    "computed",
    [
        "wanted = Mul (shape, ones)",
        "turned = Neg (shape) wanted = Neg (turned)",
        "places = Range (none, four, one) wanted = Gather (shape, places)",
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
    assert set(codes) == {"PF305"}
    assert nodes[-2:] == ["Constant", "Reshape"]


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
    assert found == {"onnx": [], "openvino": [], "opencv@4.14": ["PF305"], "opencv@5.0": []}
