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
    "<int64[1] none = {0}, int64[1] one = {1}, int64[1] end = {-1}, int64[2] row = {-1, 3}, int64[1] zero = {0}>"
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
        ("s = Shape (X) n = Gather (s, none) R = Concat <axis = 0> (n, K)", None),
        ("s = Shape (X) R = Add (s, s)", [(2, math.inf), ANY, (6, 6)]),
        ("r = Reshape (X, row) s = Shape (r) R = Gather (s, none)", [ANY]),
        ("c = Slice (X, none, one, one) r = Reshape (c, row) s = Shape (r) R = Gather (s, none)", [ANY]),
        ("m = ReduceMax <axes = [1]> (X) r = Reshape (m, row) s = Shape (r) R = Gather (s, none)", [SOME]),
        ("b = Shape (X) n = Gather (b, none) c = Slice (X, none, n, none) s = Shape (c) R = Gather (s, none)", [SOME]),
        ("b = Shape (X) n = Gather (b, one) c = Slice (X, none, n, none) s = Shape (c) R = Gather (s, none)", [ANY]),
        ("c = Slice (X, none, K, none) s = Shape (c) R = Gather (s, none)", [ANY]),
        ("c = Slice (X, none, end, none) s = Shape (c) R = Gather (s, none)", [ANY]),
        ("R = Identity (K)", None),
    ],
)
def test_bounds(nodes: str, expected: list[tuple[float, float]] | None) -> None:
    scope = infer(Model(onnx.parser.parse_model(f"{HEAD}{CONSTANTS} {{ {nodes} }}")))[0]
    assert bounds_of(scope, "R") == expected
