"""Nodes that leave out what MNN needs to be told: the axes of a Slice with steps, the condition of a Loop."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.support.outcomes import operators_written


@pytest.mark.parametrize(
    ("steps", "starts", "ends"), [("1, 2", "0, 1", "2, 4"), ("-1, 1", "1, 0", "-9, 3"), ("1, 1", "0, 1", "2, 4")]
)
def test_a_slice_with_steps_is_told_its_axes(steps: str, starts: str, ends: str, tmp_path: Path) -> None:
    constants = f"<int64[2] s = {{{starts}}}, int64[2] e = {{{ends}}}, int64[2] t = {{{steps}}}>"
    text = f'(float[2,4] X) => (float[A,B] Y) {constants} {{ Y = Slice (X, s, e, "", t) }}'
    assert operators_written(text, "mnn", tmp_path, 17, -3) == ["Slice"]

    (node,) = onnx.load(tmp_path / "result.onnx").graph.node
    assert bool(node.input[3]) == (steps != "1, 1")


@pytest.mark.parametrize("condition", ['""', "on"])
def test_a_loop_that_counts_alone_is_its_turns(condition: str, tmp_path: Path) -> None:
    text = f"""(float[2,3] X) => (float[2,2,3] Y) {{
      n = Constant <value_int = 2> ()
      on = Constant <value = bool {{1}}> ()
      Y = Loop (n, {condition}) <body = turn (int64 i, bool c) => (bool d, float[2,3] p) {{
        d = Identity (c)
        f = Cast <to = 1> (i)
        p = Add (X, f)
      }}>
    }}"""
    assert ("Loop" in operators_written(text, "mnn", tmp_path, 17, -3)) == (condition == "on")
