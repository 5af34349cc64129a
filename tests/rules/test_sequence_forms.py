"""Lists of tensors, in the place of which the tensors stand that are known to be in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix
from padfix.errors import RefusedError

GRAPH = """(float[2,4,3] X, int64 D) => (float[%s] Y)
<int64 one = {1}, int64 last = {-1}, int64[2] lengths = {1, 3}, int64 three = {3}> {
  a = Relu (X) b = Neg (X) %s }"""
BUILT = "e = SequenceEmpty () f = SequenceInsert (e, a) g = SequenceInsert (f, b, last) s = SequenceErase (g, one) "


def saved(folder: Path, nodes: str, axes: int = 3) -> Path:
    text = GRAPH % (",".join("ABCD"[:axes]), nodes)
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> g {text}'), path)
    return path


@pytest.mark.parametrize(
    ("nodes", "axes", "written"),
    [
        ("s = SequenceConstruct (X, a, b) Y = ConcatFromSequence <axis = -1> (s)", 3, ["Concat"]),
        ("s = SequenceConstruct (a, b) Y = ConcatFromSequence <axis = 3, new_axis = 1> (s)", 4, ["Concat"]),
        ("s = SequenceConstruct (a, b) Y = SequenceAt (s, last)", 3, ["Identity"]),
        (BUILT + "Y = ConcatFromSequence <axis = 0> (s)", 3, ["Concat"]),
        ("s = SplitToSequence <axis = 1> (a, lengths) Y = SequenceAt (s, one)", 3, ["Slice"]),
        ("s = SplitToSequence <axis = 1> (a, three) Y = SequenceAt (s, last)", 3, ["Slice"]),
        ("s = SplitToSequence <axis = 1> (a) Y = SequenceAt (s, three)", 3, ["Slice"]),
        ("s = SplitToSequence <axis = -1, keepdims = 0> (a) Y = SequenceAt (s, one)", 2, ["Slice", "Squeeze"]),
        (
            "s = SplitToSequence <axis = 2> (a) p = SequenceAt (s, one) q = SequenceAt (s, last) Y = Add (p, q)",
            3,
            ["Add", "Slice"],
        ),
    ],
)
@pytest.mark.parametrize("target", ["qnn", "tract", "onnx2tf"])
def test_the_tensors_stand_there(nodes: str, axes: int, written: list[str], target: str, tmp_path: Path) -> None:
    source, result = saved(tmp_path, nodes, axes), tmp_path / "result.onnx"
    found = [each for each in padfix.check(source, target=target).findings if "Sequence" in each.op_type]
    assert found
    assert all(each.fixable for each in found)
    padfix.convert(source, result, target=target)
    types = {node.op_type for node in onnx.load(result).graph.node}
    assert set(written) <= types or target == "onnx2tf"
    assert not [each for each in types if "Sequence" in each]
    X = np.random.default_rng(0).standard_normal((2, 4, 3)).astype(np.float32)
    results = []
    for path in (source, result):
        session = onnxruntime.InferenceSession(path)
        feeds = {"X": X, "D": np.array(1)}
        results.append(session.run(None, {each.name: feeds[each.name] for each in session.get_inputs()})[0])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("s = SequenceConstruct (a, b) Y = SequenceAt (s, D)", "only known at run time"),
        ("e = SequenceConstruct (a) s = SequenceInsert (e, b, D) Y = ConcatFromSequence <axis = 0> (s)", "at run time"),
        ("t = SplitToSequence (a, D) Y = ConcatFromSequence <axis = 0> (t)", "at run time"),
    ],
)
def test_lists_that_data_make_are_declined(nodes: str, reason: str, tmp_path: Path) -> None:
    source = saved(tmp_path, nodes)
    hints = [each.hint for each in padfix.check(source, target="qnn").findings if "Sequence" in each.op_type]
    assert any(reason in each for each in hints)
    with pytest.raises(RefusedError):
        padfix.convert(source, tmp_path / "result.onnx", target="qnn")
