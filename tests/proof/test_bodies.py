"""Bodies of If, Loop and Scan: the same under other names, and judged by themselves where no probe ran them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx.inliner
import pytest
from onnx import ModelProto

from padfix.diagnose.place import describe
from padfix.errors import ProofUnavailableError
from padfix.graph.scopes import all_nodes, bodies_of
from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.whole import verify
from padfix.results import Verdict

RARE = "s = ReduceSum <keepdims = 0> (x) big = Constant <value = float {1e6}> () c = Greater (s, big)"
LONG = "l = Shape <start = 0, end = 1> (x) big = Constant <value = int64[1] {100}> () c = Greater (l, big)"
OTHER = "e = Relu (x)"
RESHAPED = "k = Constant <value = int64[2] {{{shape}}}> () r = Reshape (x, k) t = {operator} (r)"
LAST_ROW = """
    i = Constant <value = int64[1] {{100}}> () j = Constant <value = int64[1] {{101}}> ()
    a = Constant <value = int64[1] {{0}}> () p = Slice (x, i, j, a) q = Squeeze (p, a) u = {operator} (q)
    t = Unsqueeze (u, a)
"""
NESTED = """
    most = Constant <value = float {{2e6}}> () d = Greater (s, most)
    t = If (d) <then_branch = tt () => (float[p, q] v) {{ v = {operator} (x) }},
                else_branch = te () => (float[p, q] w) {{ w = Abs (x) }}>
"""
LOOP = """
    m = Cast <to = 7> (c)
    y = Loop (m, , x) <body = b (int64 i, bool g, float[n, 6] v) => (bool h, float[n, 6] w) {{
        h = Identity (g) w = {operator} (v)
    }}>
"""
SCAN = """
    y, z = Scan <num_scan_inputs = 1, body = b (float[6] v, float[6] r) => (float[6] w, float[6] o) {{
        f = ReduceSum <keepdims = 0> (r) d = Greater (f, big)
        o = If (d) <then_branch = t () => (float[6] t) {{ t = {operator} (r) }},
                    else_branch = e () => (float[6] e) {{ e = Abs (r) }}>
        w = Add (v, o)
    }}> (k, x)
"""


def network(body: str, size: str = "n", *, opset: int = 17, output: str = "y") -> ModelProto:
    parsed = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[{size}, 6] x) => (float[1] {output}) {{ {body} }}'
    )
    parsed.graph.output[0].type.tensor_type.ClearField("shape")
    return parsed


def choice(then: str, other: str = OTHER, switch: str = "c") -> str:
    branches = (
        f"{name}_branch = {name} () => (float[p, q] {name[0]}) {{ {body} }}"
        for name, body in (("then", then), ("else", other))
    )
    return f"y = If ({switch}) <{', '.join(branches)}>"


def branching(then: str, condition: str = RARE, size: str = "n") -> ModelProto:
    return network(f"{condition} {choice(then)}", size)


def renamed(model: ModelProto) -> ModelProto:
    """Return the model with all names that are its own spelt otherwise."""
    copy = ModelProto.FromString(model.SerializeToString())
    kept = {value.name for value in (*copy.graph.input, *copy.graph.output)} | {""}

    def spelt(name: str) -> str:
        return name if name in kept else f"{name}_"

    for node in all_nodes(copy.graph.node):
        node.input[:] = map(spelt, node.input)
        node.output[:] = map(spelt, node.output)
        for _, body in bodies_of(node):
            for value in (*body.input, *body.output):
                value.name = spelt(value.name)
    return copy


def judged(first: ModelProto, second: ModelProto, levels: Sequence[bool] = (False, True)) -> Verdict:
    reference = OnnxRuntimeExecutor(first.SerializeToString(), optimised=False)
    candidates = [OnnxRuntimeExecutor(second.SerializeToString(), optimised=level) for level in levels]
    return verify(reference, candidates, describe=describe)


def pair(
    text: str, operators: tuple[str, str], condition: str = RARE, size: str = "n"
) -> tuple[ModelProto, ModelProto]:
    first, second = (branching(text.format(operator=each, shape="-1, 84"), condition, size=size) for each in operators)
    return first, second


@pytest.mark.parametrize(
    ("text", "condition"),
    [(RESHAPED, RARE), (LAST_ROW, LONG), (NESTED, RARE)],
    ids=["rows in blocks", "a longer input", "a branch of a branch"],
)
@pytest.mark.parametrize(("operator", "equal"), [("Sigmoid", True), ("Tanh", False)])
def test_a_branch_is_judged_at_sizes_at_which_the_original_runs_it(
    text: str, condition: str, operator: str, equal: bool
) -> None:
    first, second = pair(text, ("Sigmoid", operator), condition)
    verdict = judged(first, renamed(second))
    assert verdict.equivalent is equal
    if not equal:
        assert verdict.first_difference is not None
        assert verdict.first_difference.op_type == "If"
        assert "the then branch of If" in verdict.first_difference.difference.detail


@pytest.mark.parametrize("text", [LOOP, "k = Constant <value_floats = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]> ()" + SCAN])
def test_what_a_loop_does_counts_where_no_probe_takes_a_turn(text: str) -> None:
    first, second = (network(f"{RARE} {text.format(operator=each)}") for each in ("Sigmoid", "Tanh"))
    assert judged(first, renamed(first)).equivalent
    assert not judged(first, second).equivalent


def test_a_branch_that_the_original_runs_at_no_size_is_no_verdict_and_the_same_one_needs_none() -> None:
    never = "k = Constant <value = int64[2] {{7, 4099}}> () r = Reshape (x, k) t = {operator} (r)"
    first, second = pair(never, ("Sigmoid", "Tanh"))
    with pytest.raises(ProofUnavailableError, match="the then branch of If"):
        judged(first, second)
    assert judged(first, renamed(first)).equivalent


def test_of_fixed_sizes_it_is_said_that_a_branch_was_not_compared() -> None:
    beyond = "k = Constant <value = int64[1] {{9}}> () r = Gather (x, k) t = {operator} (r)"
    verdict = judged(*pair(beyond, ("Sigmoid", "Tanh"), size="5"))
    assert verdict.equivalent
    assert any("the then branch of If '#3'; what is in there was not compared" in note for note in verdict.notes)


def test_a_branch_that_fixed_sizes_never_take_says_nothing() -> None:
    assert judged(*pair("t = {operator} (x)", ("Sigmoid", "Tanh"), LONG, size="5")).notes == ()


def test_a_branch_that_sizes_choose_may_be_left_out() -> None:
    empty = "l = Size (x) none = Constant <value = int64 {0}> () c = Equal (l, none)"
    verdict = judged(branching("t = Sigmoid (x)", empty), network("y = Relu (x)"))
    assert verdict.equivalent
    assert any("the then branch of If '#3'; what is in there was not compared" in note for note in verdict.notes)


def test_of_sizes_that_choose_a_branch_within_another_it_is_said_too() -> None:
    never = "k = Constant <value = int64[2] {{7, 4099}}> () r = Reshape (x, k) v = {operator} (r)"
    condition = LONG.replace("c = ", "d = ").replace("big", "most").replace("{100}", "{{100}}")
    inner = f"{condition} " + NESTED[NESTED.index("t = If") :]
    texts = (inner.replace("v = {operator} (x)", never).format(operator=each) for each in ("Sigmoid", "Tanh"))
    verdict = judged(*map(branching, texts))
    assert verdict.equivalent
    assert any("what is in there was not compared" in note for note in verdict.notes)


def test_branches_may_change_places_with_the_condition() -> None:
    first = branching(RESHAPED.format(operator="Sigmoid", shape="-1, 84"))
    for operator, equal in (("Sigmoid", True), ("Tanh", False)):
        other = RESHAPED.format(operator=operator, shape="-1, 84").replace(" t = ", " e = ")
        turned = network(f"{RARE} f = Not (c) {choice('t = Relu (x)', other, 'f')}")
        assert judged(first, turned).equivalent is equal


def test_what_takes_the_place_of_a_branch_is_held_against_it() -> None:
    assert not judged(branching("t = Sigmoid (x)"), network("y = Relu (x)")).equivalent


def test_names_of_a_body_say_nothing_and_what_it_reads_does() -> None:
    first, second = (
        network(f"h = Neg (x) {LONG} {choice('t = Exp (x)', f'a = Abs ({read}) e = Exp (a)')}") for read in "xh"
    )
    verdict, other = judged(first, renamed(first)), judged(first, second)
    assert verdict.equivalent
    assert other.equivalent
    assert [each.stretches.judged for each in (verdict, other) if each.stretches is not None] == [0, 1]


@pytest.mark.parametrize(("operator", "equal"), [("Sigmoid", True), ("Tanh", False)])
def test_a_function_hides_no_branch(operator: str, equal: bool) -> None:
    def calling(operator: str) -> ModelProto:
        function = f"F (x) => (y) {{ {RARE} {choice(f't = {operator} (x)')} }}"
        graph = "g (float[n, 6] x) => (float[n, 6] z) { y = l.F (x) z = Neg (y) }"
        head = 'ir_version: 8, opset_import: ["" : 17, "l" : 1]'
        return onnx.parser.parse_model(f'<{head}> {graph} <domain: "l", opset_import: ["" : 17]> {function}')

    first, second = calling("Sigmoid"), calling(operator)
    second.functions[0].doc_string = "other"
    assert judged(first, second).equivalent is equal
    assert judged(first, onnx.inliner.inline_local_functions(second)).equivalent is equal
