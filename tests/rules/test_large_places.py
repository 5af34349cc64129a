"""Places of maxima among many elements: half precision counts no further than 2048."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix
from padfix.files.model import Model
from padfix.graph.scopes import Scope
from padfix.operators.inference import infer
from padfix.operators.places import may_count_from_end
from padfix.operators.traits import traits_of

POOL = "(float[1,%d,16,16] X) => (int32 Y) { V, P = MaxPool <kernel_shape = [2, 3], strides = [2, 2]> (X) %s }"
SPREAD = "g (int64[4] x) => (int64[4] i) <int64 n = {%s}> { q = Div (x, n) m = Mul (q, n) r = Sub (x, m) %s }"


def scope_of(text: str) -> Scope:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    (scope,) = infer(Model(model))
    return scope


@pytest.mark.parametrize(("channels", "floor"), [(8, True), (9, False)])
def test_they_are_counted_in_integers_where_there_are_more(channels: int, floor: bool, tmp_path: Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    text = f'<ir_version: 8, opset_import: ["" : 17]> g {POOL % (channels, "Y = Cast <to = 6> (P)")}'
    onnx.save(onnx.parser.parse_model(text), source)
    padfix.convert(source, result, target="qnn")
    assert ("Floor" in [node.op_type for node in onnx.load(result).graph.node]) == floor
    assert not padfix.check(result, target="qnn").findings


@pytest.mark.parametrize(
    ("number", "behind", "counts"),
    [
        ("2049", "c = Add (x, n) i = Cast <to = 7> (c)", True),
        ("2048", "c = Add (x, n) i = Cast <to = 7> (c)", False),
        ("4096.5", "c = Add (x, n) i = Cast <to = 7> (c)", False),
        ("4096", "c = Add (x, n) r = Floor (c) i = Cast <to = 7> (r)", False),
    ],
)
def test_what_counts_in_floats_is_told(number: str, behind: str, counts: bool) -> None:
    scope = scope_of(f"g (float[4] x) => (int64[4] i) <float n = {{{number}}}> {{ {behind} }}")
    assert (traits_of(scope, scope.nodes[0]) or {})["counts-beyond-halves"] == counts


@pytest.mark.parametrize(
    ("number", "behind", "may"),
    [
        ("7", "a = Add (r, n) p = Div (a, n) t = Mul (p, n) i = Sub (a, t)", False),
        ("7", "a = Add (n, r) i = Identity (a)", False),
        ("7", "i = Identity (r)", True),
        ("-7", "a = Add (r, n) i = Identity (a)", True),
    ],
)
def test_a_rest_of_a_rest_counts_from_no_end(number: str, behind: str, may: bool) -> None:
    assert may_count_from_end(scope_of(SPREAD % (number, behind)), "i") == may
