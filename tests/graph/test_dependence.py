"""What no output depends on, and what depends on no input, is found through the bodies of nodes as well."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import padfix
from padfix.graph.dependence import loose_ends

PLAIN = "m (float[2] x) => (float[2] y) { y = Relu(x) }"
UNUSED = "m (float[2] x, float[2] mask) => (float[2] y) { dead = Relu(mask) y = Relu(x) }"
FIXED = "m (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> { y = Relu(x) z = Neg(w) }"
NONE = "m () => (float[2] z) <float[2] w = {1, 2}> { z = Neg(w) }"
DEFAULT = "m (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Relu(x) }"
THROUGH_A_BODY = """m (bool flag, float[2] x) => (float[2] y) {
    y = If (flag) <
        then_branch = t () => (float[2] a) { a = Relu(x) }, else_branch = e () => (float[2] b) { b = Neg(x) }
    >
}"""


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (PLAIN, []),
        (UNUSED, ["No output depends on the input mask."]),
        (FIXED, ["The output z depends on none of the inputs."]),
        (NONE, []),
        (DEFAULT, []),
        (THROUGH_A_BODY, []),
    ],
)
def test_loose_ends(text: str, sentences: list[str]) -> None:
    assert loose_ends(onnx.parser.parse_graph(text)) == sentences


def test_many_names_are_counted() -> None:
    text = f"m (float[2] x, {', '.join(f'float[2] i{n}' for n in range(7))}) => (float[2] y) {{ y = Relu(x) }}"
    assert loose_ends(onnx.parser.parse_graph(text)) == [
        "No output depends on the inputs i0, i1, i2, i3, i4 and 2 more."
    ]


def test_a_conversion_says_it(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {UNUSED}')
    onnx.save(model, tmp_path / "model.onnx")
    report = padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx")
    assert "No output depends on the input mask." in report.notes
