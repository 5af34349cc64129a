"""Between which numbers what is worked out from lengths lies, where every batch has an element or more."""

from __future__ import annotations

import math

import onnx.parser
import pytest

from padfix.files.model import Model
from padfix.operators.inference import infer
from padfix.operators.length_bounds import bounds_of

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g (float[N,L,3] X, int64[1] K) => (int64 R) '
CONSTANTS = (
    "<int64[1] none = {0}, int64[1] one = {1}, int64[1] end = {-1}, int64[2] row = {-1, 3}, int64[1] zero = {0}, "
    "int64[1] two = {2}, int64[2] parts = {1, 2}, int64[2] table = {2, 2}>"
)

ANY = (0, math.inf)
SOME = (1, math.inf)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("R = Shape (X)", [SOME, ANY, (3, 3)]),
        ("R = Shape <start = 1> (X)", [ANY, (3, 3)]),
        ("s = Shape (X) n = Gather (s, none) d = Sub (one, n) R = Max (d, none)", [(0, 0)]),
        ("s = Shape (X) n = Gather (s, one) d = Sub (one, n) R = Max (d, none)", [(0, 1)]),
        ("s = Shape (X) n = Slice (s, none, one, none) R = Min (n, one)", [(1, 1)]),
        ("s = Shape (X) n = Slice (s, none, one, none) c = Cast <to = 1> (n) R = Cast <to = 7> (c)", None),
        ("s = Shape (X) n = Gather (s, none) u = Cast <to = 6> (n) R = Add (u, u)", [(2, math.inf)]),
        ("s = Shape (X) n = Gather (s, none) R = Concat <axis = 0> (none, n, one)", [(0, 0), SOME, (1, 1)]),
        ("s = Shape (X) n = Gather (s, none) R = Concat <axis = 0> (n, K)", [SOME, (-math.inf, math.inf)]),
        ("s = Shape (X) R = Add (s, s)", [(2, math.inf), ANY, (6, 6)]),
        ("s = Shape (X) R = Mul (s, s)", [SOME, ANY, (9, 9)]),
        ("s = Shape (X) R = Mul (s, row)", None),
        ("s = Shape (X) n = Mul (s, end) R = Mul (n, none)", [(0, 0)] * 3),
        ("s = Shape (X) R = Div (s, two)", [ANY, ANY, (1, 1)]),
        ("s = Shape (X) n = Mul (s, end) R = Div (n, two)", [(-math.inf, 0), (-math.inf, 0), (-1, -1)]),
        ("s = Shape (X) R = Div (two, s)", [(0, 2), (-math.inf, math.inf), (0, 0)]),
        ("s = Shape (X) m = Mod (s, two) R = Sub (two, m)", [(1, 2), (1, 2), (1, 2)]),
        ("s = Shape (X) n = Mul (s, end) R = Mod (n, two)", [(-math.inf, math.inf)] * 3),
        ("s = Shape (X) h = Div (s, two) R = Sub (s, h)", [ANY, ANY, (0, 3)]),
        ("s = Shape (X) n = Sub (s, two) h = Div (n, two) R = Sub (n, h)", [(-math.inf, math.inf)] * 2 + [(1, 1)]),
        ("s = Shape (X) n = Gather (s, none) R = Max (n, K)", [SOME]),
        ("R = Gather (row, K)", [(-1, 3)]),
        ("s = Shape (X) R = Gather (s, K)", [ANY]),
        ("s = Shape (X) n = Gather (s, none) R = Min (n, K)", [(-math.inf, math.inf)]),
        ("r = Reshape (X, row) s = Shape (r) R = Gather (s, none)", [ANY]),
        ("c = Slice (X, none, one, one) r = Reshape (c, row) s = Shape (r) R = Gather (s, none)", [ANY]),
        ("m = ReduceMax <axes = [1]> (X) r = Reshape (m, row) s = Shape (r) R = Gather (s, none)", [SOME]),
        ("b = Shape (X) n = Gather (b, none) c = Slice (X, none, n, none) s = Shape (c) R = Gather (s, none)", [SOME]),
        ("b = Shape (X) n = Gather (b, one) c = Slice (X, none, n, none) s = Shape (c) R = Gather (s, none)", [ANY]),
        ("c = Slice (X, none, K, none) s = Shape (c) R = Gather (s, none)", [ANY]),
        ("c = Slice (X, none, end, none) s = Shape (c) R = Gather (s, none)", [ANY]),
        ("R = Identity (K)", None),
        ("s = Shape (X) q = Div (s, two) p = Mul (q, two) R = Sub (s, p)", [(0, 1), (0, 1), (0, 1)]),
        ("s = Shape (X) q = Div (s, two) p = Mul (two, q) R = Sub (s, p)", [(0, 1), (0, 1), (0, 1)]),
        (
            "s = Shape (X) q = Div (s, two) p = Mul (q, s) R = Sub (s, p)",
            [(-math.inf, math.inf), (-math.inf, math.inf), (0, 0)],
        ),
        ("s = Shape (X) n = Neg (s) R = Neg (n)", [SOME, ANY, (3, 3)]),
        ("s = Shape (X) R = Neg (s)", [(-math.inf, -1), (-math.inf, 0), (-3, -3)]),
        ("s = Shape (X) d = Sub (two, s) R = Relu (d)", [(0, 1), (0, 2), (0, 0)]),
        (
            "s = Shape (X) d = Sub (two, s) f = Cast <to = 1> (d) c = Relu (f) R = Cast <to = 7> (c)",
            [(0, 1), (0, 2), (0, 0)],
        ),
        ("R = Relu (K)", [ANY]),
        ("s = Shape (X) a, R = Split (s, parts)", [ANY, (3, 3)]),
        ("s = Shape (X) R, b = Split (s, parts)", [SOME]),
        (
            "s = Shape (X) c = Concat <axis = 0> (s, one) t = Reshape (c, table) R = Transpose (t)",
            [SOME, (3, 3), ANY, (1, 1)],
        ),
    ],
)
def test_bounds(nodes: str, expected: list[tuple[float, float]] | None) -> None:
    scope = infer(Model(onnx.parser.parse_model(f"{HEAD}{CONSTANTS} {{ {nodes} }}")))[0]
    assert bounds_of(scope, "R") == expected
