"""Inferred types: what is known for certain, in every kind of scope."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from padfix.errors import UsageError
from padfix.files.model import Model
from padfix.graph.input_shapes import fix_input_shapes
from padfix.graph.lengths import known_residue
from padfix.graph.scopes import Scope
from padfix.operators.inference import infer

HEAD = '<ir_version: 8, opset_import: ["": {opset}, "f": 1, "c": 1]> '


def model(text: str, opset: int = 17) -> ModelProto:
    parsed: ModelProto = parser.parse_model(HEAD.format(opset=opset) + text)
    return parsed


def scopes(proto: ModelProto) -> dict[str, Scope]:
    before = proto.SerializeToString()
    found = {scope.path: scope for scope in infer(Model(proto))}
    assert proto.SerializeToString() == before
    return found


def shape(scope: Scope, name: str) -> tuple | None:
    known = scope.type_of(name)
    return None if known is None else known.shape


def test_claims_about_weights_hide_nothing_of_them() -> None:
    """The exporters of PyTorch list the weights among the inner values, too; those of a body lie outside of it."""
    proto = model(
        f"g (bool C, float[1,2,9] X) => (float[A,B,D] Y) <float[3,2,5] W = {{{', '.join('1' * 30)}}}> "
        "{ Y = If (C) <then_branch = t () => (T) { T = Conv (X, W) }, else_branch = e () => (E) { E = Conv (X, W) }> }"
    )
    proto.graph.value_info.append(helper.make_tensor_value_info("W", TensorProto.FLOAT, [3, 2, 5]))
    found = scopes(proto)
    assert [shape(scope, "W") for scope in found.values()] == [(3, 2, 5)] * 3
    assert shape(found["main"], "Y") == (1, 3, 5)


def test_what_a_body_passes_on_keeps_its_shape_inside() -> None:
    """Loops hand weights on that they do not change: what is given is what is taken."""
    body = "b (int64 i, bool c, float[A,B] A, float[C,D] U) => (bool d, float[A,B] B, float[C,D] U)"
    proto = model(
        "g (float[N,4] X, float[4,4] W, int64 M, bool C) => (float[N,4] Y, float[E,F] V) "
        f"{{ Y, V = Loop (M, C, X, W) <body = {body} {{ d = Identity (c) B = MatMul (A, U) }}> }}"
    )
    found = scopes(proto)
    assert [shape(scope, "B") for path, scope in found.items() if path != "main"] == [("N", 4)]
    assert shape(found["main"], "Y") == ("N", 4)


def test_a_slice_to_where_lengths_say_keeps_the_other_axes() -> None:
    text = """g (float[7,N,3] X) => (float[a,b,c] Y) <int64[1] zero = {0}, int64[1] one = {1}>
      { s = Shape (X) n = Gather (s, one) Y = Slice (X, zero, n, one) }"""
    first, _, last = shape(scopes(model(text))["main"], "Y") or (None, None, None)
    assert (first, last) == (7, 3)


def test_claims_about_inner_values_and_outputs_are_not_believed() -> None:
    proto = model("g (float[1,1,9,9] X) => (float[1,1,5,5] Y) { A = Relu(X) Y = Relu(A) }")
    proto.graph.value_info.append(helper.make_tensor_value_info("A", TensorProto.FLOAT, [1, 1, 4, 4]))
    main = scopes(proto)["main"]
    assert shape(main, "A") == shape(main, "Y") == (1, 1, 9, 9)


def test_a_claim_is_believed_where_nothing_else_can_know() -> None:
    proto = model("g (float[1,1,9,9] X) => (float[a,b,c,d] Y) { A = c.Mystery(X) Y = Relu(A) }")
    assert shape(scopes(proto)["main"], "Y") is None
    proto.graph.value_info.append(helper.make_tensor_value_info("A", TensorProto.FLOAT, [1, 1, 4, 4]))
    assert shape(scopes(proto)["main"], "Y") == (1, 1, 4, 4)


def test_symbols_stay_and_residues_are_known_for_numbers_only() -> None:
    main = scopes(model('g (float[N,1,"height",9] X) => (float[a,b,c,d] Y) { Y = Relu(X) }'.replace('"', "")))["main"]
    assert shape(main, "Y") == ("N", 1, "height", 9)
    assert known_residue(9, 2) == 1
    assert known_residue("height", 2) is None
    assert known_residue(None, 2) is None


@pytest.mark.parametrize(("size", "scale", "output"), [(10, 0.7, 7), (100, 0.29, 29), (50, 1.02, 51), (9, 2.0, 18)])
@pytest.mark.parametrize("opset", [10, 13])
def test_resized_lengths_are_those_of_single_precision(size: int, scale: float, output: int, opset: int) -> None:
    inputs = "X, s" if opset == 10 else "X, r, s"
    text = (
        f"g (float[1,1,{size}] X) => (float[a,b,c] Y) <float[3] s = {{1, 1, {scale}}}, float[0] r = {{}}> "
        f"{{ A = Resize({inputs}) B = Relu(A) Y = LpPool<kernel_shape=[1]>(B) }}"
    )
    main = scopes(model(text, opset))["main"]
    assert shape(main, "A") == shape(main, "B") == shape(main, "Y") == (1, 1, output)


def test_transposed_same_is_length_times_stride_and_what_follows_knows() -> None:
    text = (
        "g (float[1,1,3] X, float[1,2,3] W, float[2,2,3] V) => (float[a,b,c] Y) "
        '{ A = ConvTranspose<auto_pad="SAME_UPPER", strides=[2], output_padding=[1]>(X, W) B = Relu(A) '
        'C = ConvTranspose<auto_pad="SAME_LOWER", strides=[5]>(B, V) Y = Relu(C) }'
    )
    main = scopes(model(text))["main"]
    assert shape(main, "B") == (1, 2, 6)
    assert shape(main, "Y") == (1, 2, 30)


def test_auto_pad_of_a_pool_wins_over_its_pads() -> None:
    text = (
        "g (float[1,1,6,7] X) => (float[a,b,c,d] Y) "
        '{ A = MaxPool<auto_pad="SAME_UPPER", kernel_shape=[3,3], pads=[0,0,0,0]>(X) Y = Relu(A) }'
    )
    assert shape(scopes(model(text))["main"], "Y") == (1, 1, 6, 7)


LOOP = (
    "g (float[1,1,{size}] X, int64 n, bool c) => (float[a,b,d] Y) {{ "
    "Y = Loop<body = b (int64 i, bool k, float[1,1,4] v) => (bool k2, float[1,1,4] w) "
    "{{ k2 = Identity(k) u = {node}(v) w = Relu(u) o = Relu(X) }}>(n, c, X) }}"
)


def test_a_carried_value_is_known_where_the_body_gives_back_its_shape() -> None:
    found = scopes(model(LOOP.format(size=9, node='MaxPool<auto_pad="SAME_UPPER", kernel_shape=[3]>')))
    body = found["main/#0.body"]
    assert shape(body, "v") == shape(body, "u") == shape(body, "o") == (1, 1, 9)
    assert shape(found["main"], "Y") == (1, 1, 9)


def test_a_carried_value_that_shrinks_is_unknown_where_it_shrinks() -> None:
    found = scopes(model(LOOP.format(size=9, node='MaxPool<auto_pad="SAME_UPPER", kernel_shape=[3], strides=[2]>')))
    body = found["main/#0.body"]
    carried = shape(body, "v")
    assert carried is not None
    assert carried[:2] == (1, 1)
    assert carried[2] is None
    assert shape(body, "o") == (1, 1, 9)
    final = shape(found["main"], "Y")
    assert final is None or not isinstance(final[2], int)


def test_branches_see_the_values_around_them() -> None:
    text = (
        "g (float[1,1,9] X, bool c) => (float[a,b,d] Y) { A = Relu(X) "
        "Y = If<then_branch = t () => (float s) { r = Relu(A) s = Relu(r) }, "
        "else_branch = e () => (float z) { z = MaxPool<kernel_shape=[2]>(A) }>(c) }"
    )
    found = scopes(model(text))
    assert shape(found["main/#1.then_branch"], "r") == (1, 1, 9)
    assert shape(found["main/#1.else_branch"], "z") == (1, 1, 8)
    final = shape(found["main"], "Y")
    assert final is not None
    assert not isinstance(final[2], int)


def test_a_scan_s_body_sees_slices_and_states() -> None:
    text = (
        "g (float[1,5] S, float[7,1,5] X) => (float[a,b] F, float[c,d,e] Y) { "
        "F, Y = Scan<num_scan_inputs = 1, body = b (float s, float x) => (float t, float y) "
        "{ t = Add(s, x) y = Relu(t) }>(S, X) }"
    )
    found = scopes(model(text))
    body = found["main/#0.body"]
    assert shape(body, "x") == shape(body, "s") == shape(body, "y") == (1, 5)


FUNCTION = (
    '<domain: "f", opset_import: ["": 17]> F <mode> (x) => (y) '
    "{ a = Relu(x) y = MaxPool<kernel_shape=[3], strides=[2], auto_pad: string = @mode>(a) }"
)


def test_a_function_s_body_knows_what_its_calls_agree_on() -> None:
    text = (
        "g (float[1,1,9] X, float[1,1,8] Z) => (float[a,b,c] Y, float[a,b,c] V) "
        '{ Y = f.F<mode="SAME_UPPER">(X) V = f.F<mode="SAME_UPPER">(Z) } '
    )
    found = scopes(model(text + FUNCTION))
    body = found["function:f:F"]
    assert shape(body, "x") == shape(body, "a") == (1, 1, None)
    assert shape(found["main"], "Y") == (1, 1, 5)
    assert shape(found["main"], "V") == (1, 1, 4)


def test_a_function_s_attribute_is_bound_call_by_call() -> None:
    text = (
        "g (float[1,1,9] X) => (float[a,b,c] Y, float[a,b,c] V) "
        '{ Y = f.F<mode="SAME_UPPER">(X) V = f.F<mode="VALID">(X) } '
    )
    found = scopes(model(text + FUNCTION))
    assert shape(found["main"], "Y") == (1, 1, 5)
    assert shape(found["main"], "V") == (1, 1, 4)
    assert shape(found["function:f:F"], "x") == (1, 1, 9)
    assert shape(found["function:f:F"], "y") == (1, 1, None)


def test_functions_that_nobody_calls_or_that_call_each_other() -> None:
    outer = '<domain: "f", opset_import: ["": 17, "f": 1]> O (x) => (y) { y = f.F<mode="VALID">(x) } '
    found = scopes(model("g (float[1,1,9] X) => (float[a,b,c] Y) { Y = f.O(X) } " + outer + FUNCTION))
    assert shape(found["function:f:F"], "y") == (1, 1, 4)
    assert shape(found["main"], "Y") == (1, 1, 4)
    found = scopes(model("g (float[1,1,9] X) => (float[a,b,c] Y) { Y = Relu(X) } " + FUNCTION))
    assert shape(found["function:f:F"], "y") is None


def test_more_calls_than_are_followed_one_by_one() -> None:
    calls = " ".join(f'Y{n} = f.F<mode="SAME_UPPER">(X{n})' for n in range(20))
    inputs = ", ".join(f"float[1,1,{n + 3}] X{n}" for n in range(20))
    outputs = ", ".join(f"float[a,b,c] Y{n}" for n in range(20))
    found = scopes(model(f"g ({inputs}) => ({outputs}) {{ {calls} }} " + FUNCTION))
    known = shape(found["function:f:F"], "x")
    assert known is None or not isinstance(known[2], int)


@pytest.mark.parametrize(("ir_version", "fixed"), [(3, True), (8, False)])
def test_an_initializer_that_is_an_input_is_fixed_only_in_old_files(ir_version: int, fixed: bool) -> None:
    proto = model(
        "g (float[1,1,9] X, float[k,l,m] W) => (float[a,b,c] Y) <float[2,1,3] W = {1,2,3,4,5,6}> { Y = Conv(X, W) }"
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((2, 1, 3), np.float32), "W"))
    if not any(value.name == "W" for value in proto.graph.input):
        proto.graph.input.append(helper.make_tensor_value_info("W", TensorProto.FLOAT, ["k", "l", "m"]))
    del proto.graph.initializer[1:]
    proto.ir_version = ir_version
    known = shape(scopes(proto)["main"], "Y")
    assert (known == (1, 2, 7)) is fixed


def test_odd_models_never_fail() -> None:
    loop = model("g (float[1,1,9] X) => (float[a,b,c] Y) { Y = Relu(Z) Z = Relu(Y) W = Nonsense(X) Q = Conv(X) }")
    assert shape(scopes(loop)["main"], "X") == (1, 1, 9)
    missing = model("g (float[1,1,9] X) => (float[a,b,c] Y) { A = q.Foo(X) Y = Relu(X) }")
    assert shape(scopes(missing)["main"], "X") == (1, 1, 9)
    contradiction = model("g (float[1,1,9] X, int64[2] K) => (float[a,b,c] Y) { A = Add(X, K) Y = Relu(X) }")
    assert shape(scopes(contradiction)["main"], "Y") == (1, 1, 9)
    assert [scope.path for scope in infer(Model(ModelProto()))] == ["main"]
    bare = ModelProto()
    bare.graph.node.add(op_type="MaxPool", input=["X"], output=["Y"])
    assert len(infer(Model(bare))) == 1


def test_shapes_of_inputs_can_be_assumed() -> None:
    proto = model("g (float[N,1,h,9] X) => (float[a,b,c,d] Y) { Y = Relu(X) }")
    (main,) = infer(Model(proto), {"X": [2, 1, 7, 9]})
    assert shape(main, "Y") == (2, 1, 7, 9)
    assert proto.graph.input[0].type.tensor_type.shape.dim[2].dim_param == "h"


def test_fixing_a_symbol_fixes_it_everywhere() -> None:
    proto = model("g (float[N,h] X, float[N,3] Z) => (float[a,b] Y) { Y = Add(X, Z) }")
    fix_input_shapes(proto, {"X": [4, -1]})
    lengths = [[d.dim_value or d.dim_param for d in v.type.tensor_type.shape.dim] for v in proto.graph.input]
    assert lengths == [[4, "h"], [4, 3]]


@pytest.mark.parametrize(
    ("shapes", "word"),
    [({"Q": [1]}, "no input 'Q'"), ({"X": [1]}, "2 axes"), ({"Z": [1, 4]}, "fixed to 3"),
     ({"X": [1, 2], "Z": [2, 3]}, "two lengths")],
)  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(shapes: dict, word: str) -> None:
    proto = model("g (float[N,h] X, float[N,3] Z) => (float[a,b] Y) { Y = Add(X, Z) }")
    with pytest.raises(UsageError, match=word):
        fix_input_shapes(proto, shapes)


def test_lengths_are_followed_through_what_onnx_does_not_follow() -> None:
    """Reshape behind reshape, each to what is computed of the lengths of the one before; a Slice to such an end."""
    text = """g (float[2,N,6] X, int64[1] data) => (float[a,b] Y) <int64[1] first = {0}, int64[1] four = {4}> {
      l = Shape (X)  p = ReduceProd <keepdims = 1> (l)  A = Reshape (X, p)
      m = Shape (A)  r = ReduceMax <keepdims = 1> (m)  q = Div (r, four)  s = Concat <axis = 0> (four, q)
      B = Reshape (A, s)
      C = Slice (A, first, q)
      D = Slice (A, first, data)
      E = Reshape (D, data)
      Y = Relu (B)
    }"""
    proto = model(text)
    fix_input_shapes(proto, {"X": (2, 3, 6)})
    main = scopes(proto)["main"]
    assert [shape(main, name) for name in "ABCY"] == [(36,), (4, 9), (9,), (4, 9)]
    assert not any(isinstance(each, int) for name in "DE" for each in shape(main, name) or ())


def test_the_lengths_of_what_is_computed_of_lengths_are_followed() -> None:
    """As PyTorch writes a grid: the type of what is reshaped is not known yet when its lengths are asked for."""
    text = """g (float[2,N,6] X) => (float[a,b] Y)
    <int64 none = {0}, int64 one = {1}, int64 place = {1}, int64[2] column = {-1, 1}> {
      l = Shape (X)  n = Gather (l, place)  r = Range (none, n, one)  t = Reshape (r, column)  s = Shape (t)
      Y = ConstantOfShape (s)
    }"""
    proto = model(text)
    assert not any(isinstance(each, int) for each in (shape(scopes(proto)["main"], "Y") or ())[:1])
    fix_input_shapes(proto, {"X": (2, 3, 6)})
    assert shape(scopes(proto)["main"], "Y") == (3, 1)


def test_lengths_are_followed_through_any_number_of_such_stages() -> None:
    """As TensorFlow's dilated convolutions, whose batch and length are computed anew for each."""
    stages = "".join(
        f"l{k} = Shape (x{k})  p{k} = ReduceProd <keepdims = 1> (l{k})  q{k} = Div (p{k}, four) "
        f"s{k} = Concat <axis = 0> (one, four, q{k})  r{k} = Reshape (x{k}, s{k})  t{k} = Relu (r{k}) "
        f"c{k} = Conv <pads = [1, 0]> (t{k}, W)  x{k + 1} = Transpose <perm = [0, 2, 1]> (c{k}) "
        for k in range(80)
    )
    held = f"int64[1] one = {{1}}, int64[1] four = {{4}}, float[4,4,2] W = {{{', '.join('1' * 32)}}}"
    proto = model(f"g (float[1,N,4] x0) => (float[a,b,c] x80) <{held}> {{ {stages} }}")
    fix_input_shapes(proto, {"x0": (1, 9, 4)})
    main = scopes(proto)["main"]
    assert {shape(main, f"x{k}") for k in range(81)} == {(1, 9, 4)}


def test_a_long_chain_of_reshapes_with_an_open_batch_is_followed_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gives the batch a name of its own in ONNX's inference; all are known behind a few passes."""
    steps = 100
    lines = [f"v{step + 1} = Reshape (v{step}, {'rows' if step % 2 == 0 else 'planes'})" for step in range(steps)]
    body = "v0 = Relu (X) " + " ".join(lines) + f" Y = Neg (v{steps})"
    text = "(float[batch,4,9] X) => (float Y) <int64[2] rows = {-1, 36}, int64[3] planes = {-1, 4, 9}>"
    passes = []
    infer_shapes = onnx.shape_inference.infer_shapes

    def counted(model: onnx.ModelProto, **told: bool) -> onnx.ModelProto:
        passes.extend([len(model.graph.node)] if len(model.graph.node) > steps else [])
        return infer_shapes(model, **told)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", counted)
    main, *_ = infer(Model(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text} {{ {body} }}')))
    known = main.type_of(f"v{steps - 1}")
    assert known is not None
    assert known.shape == ("batch", 36)
    assert len(passes) < 5
