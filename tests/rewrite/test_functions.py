"""Functions whose bodies have to differ from call to call, in ONNX Runtime with and without its optimiser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import padfix
from padfix.files.model import Model
from padfix.operators.inference import infer
from padfix.proof.spec_executor import SpecExecutor
from padfix.rewrite.engine import rewrite_model
from padfix.rewrite.matches import findings
from tests.support.padding_models import session


def with_reference(node: NodeProto, name: str, caller: str, kind: int = AttributeProto.STRING) -> NodeProto:
    node.attribute.append(AttributeProto(name=name, ref_attr_name=caller, type=kind))
    return node


def pool(outputs: Sequence[str] = ("B",), **fields: object) -> NodeProto:
    return helper.make_node("MaxPool", ["A"], list(outputs), name="pool", kernel_shape=[3, 3], strides=[2, 2], **fields)


def function(
    name: str,
    nodes: Sequence[NodeProto],
    attributes: Sequence[str] = (),
    *,
    opset: int = 17,
    inputs: Sequence[str] = ("A",),
    outputs: Sequence[str] = ("B",),
    defaults: Sequence[AttributeProto] = (),
    overload: str = "",
) -> FunctionProto:
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    made = helper.make_function(
        "local", name, list(inputs), list(outputs), list(nodes), imports, list(attributes), list(defaults)
    )
    made.overload = overload
    return made


def call(name: str, source: str, *results: str, extra: Sequence[str] = (), **fields: object) -> NodeProto:
    return helper.make_node(name, [source, *extra], list(results), domain="local", **fields)


def model(
    nodes: Sequence[NodeProto],
    functions: Sequence[FunctionProto],
    shape: Sequence[int | str] = (1, 2, 20, 19),
    outputs: Sequence[str] = ("Y",),
    *,
    opset: int = 17,
) -> ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, 7 if name.startswith("I") else 1, [None] * 4) for name in outputs],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    ir_version = 10 if any(each.overload for each in functions) else 8
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=ir_version)


def rewritten(proto: ModelProto, *sizes: tuple[int, int], exact: bool = True) -> tuple[ModelProto, list[str]]:
    """Rewrite a copy and compare it with the specification, then rewrite again; return it and the notes."""
    changed = ModelProto.FromString(proto.SerializeToString())
    result = rewrite_model(Model(changed))
    assert not result.refusals, result.refusals
    onnx.checker.check_model(changed, full_check=True)
    specification = SpecExecutor(proto.SerializeToString())
    for size in sizes or ((20, 19),):
        X = np.random.default_rng(size).normal(size=(1, 2, *size)).astype(np.float32) - 4
        wanted = specification.run({"X": X})
        for optimised in (False, True):
            given = session(changed, optimised=optimised).run(list(wanted), {"X": X})
            for expected, actual in zip(wanted.values(), given, strict=True):
                assert actual.shape == expected.shape
                np.testing.assert_allclose(actual, expected, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-4)
    assert list(findings(infer(Model(changed)))) == []
    settled = changed.SerializeToString()
    assert not rewrite_model(Model(changed)).changed
    assert changed.SerializeToString() == settled
    return changed, result.notes


def names(proto: ModelProto) -> list[str]:
    return [each.name for each in proto.functions]


MODE = with_reference(pool(), "auto_pad", "mode")


def test_calls_that_agree_give_the_body_their_value_and_the_attribute_goes() -> None:
    calls = [call("F", "X", "M", mode="SAME_UPPER"), call("F", "M", "Y", mode="SAME_UPPER")]
    changed, notes = rewritten(model(calls, [function("F", [MODE], ["mode"])], (1, 2, "h", "w")), (20, 19), (9, 4))
    assert names(changed) == ["F"]
    assert not changed.functions[0].attribute
    assert not any(node.attribute for node in changed.graph.node)
    assert notes == ["Function local:F has what its calls give written out: F (mode SAME_UPPER)."]


def test_calls_that_differ_get_a_body_each_and_those_that_agree_share_it() -> None:
    modes = ["SAME_UPPER", "VALID", "SAME_LOWER", "VALID"]
    values = ["X", "M1", "M2", "M3", "Y"]
    calls = [
        call("F", source, result, mode=mode) for mode, source, result in zip(modes, values, values[1:], strict=False)
    ]
    changed, (note,) = rewritten(model(calls, [function("F", [MODE], ["mode"])], (1, 2, 60, 61)), (60, 61))
    assert [node.op_type for node in changed.graph.node] == ["F", "F_2", "F_3", "F_2"]
    assert names(changed) == ["F", "F_2", "F_3"]
    assert note.endswith("F (mode SAME_UPPER); F_2 (mode VALID); F_3 (mode SAME_LOWER).")


def test_a_default_and_an_attribute_left_out_count_as_what_they_mean() -> None:
    default = helper.make_attribute("mode", "SAME_LOWER")
    calls = [call("F", "X", "M"), call("F", "M", "Y", mode="SAME_LOWER")]
    changed, _ = rewritten(model(calls, [function("F", [MODE], defaults=[default])]))
    assert names(changed) == ["F"]
    assert not changed.functions[0].attribute_proto
    calls = [call("F", "X", "M"), call("F", "M", "Y", mode="SAME_LOWER")]
    changed, _ = rewritten(model(calls, [function("F", [MODE], ["mode"])]))
    assert names(changed) == ["F", "F_2"]


def test_attributes_that_do_not_matter_here_stay_the_callers() -> None:
    leaky = with_reference(helper.make_node("LeakyRelu", ["C"], ["B"]), "alpha", "slope", AttributeProto.FLOAT)
    first = with_reference(pool(["C"]), "auto_pad", "mode")
    calls = [call("F", "X", "M", mode="SAME_UPPER", slope=0.5), call("F", "M", "Y", mode="SAME_UPPER", slope=0.25)]
    changed, _ = rewritten(model(calls, [function("F", [first, leaky], ["mode", "slope"])]))
    assert names(changed) == ["F"]
    assert list(changed.functions[0].attribute) == ["slope"]
    assert [[each.name for each in node.attribute] for node in changed.graph.node] == [["slope"], ["slope"]]


def test_kernel_and_strides_from_the_calls() -> None:
    node = helper.make_node("MaxPool", ["A"], ["B"], auto_pad="SAME_UPPER")
    for name in ("kernel_shape", "strides"):
        with_reference(node, name, name, AttributeProto.INTS)
    calls = [
        call("F", "X", "M", kernel_shape=[3, 2], strides=[2, 1]),
        call("F", "M", "Y", kernel_shape=[2, 5], strides=[1, 3]),
    ]
    changed, _ = rewritten(model(calls, [function("F", [node], ["kernel_shape", "strides"])]))
    assert names(changed) == ["F", "F_2"]


def test_functions_that_hand_the_attribute_on_are_copied_with_it() -> None:
    inner = function("Inner", [MODE], ["mode"])
    handing = with_reference(call("Inner", "A", "B"), "mode", "padding")
    outer = function("Outer", [handing], ["padding"])
    calls = [
        call("Outer", "X", "M", padding="SAME_UPPER"),
        call("Outer", "M", "N", padding="SAME_LOWER"),
        call("Inner", "N", "Y", mode="SAME_LOWER"),
    ]
    for functions in ([inner, outer], [outer, inner]):
        changed, notes = rewritten(model(calls, functions))
        assert sorted(names(changed)) == ["Inner", "Inner_2", "Outer", "Outer_2"]
        assert not any(each.attribute for each in changed.functions)
        assert len(notes) == 2


def test_calls_inside_bodies_are_found() -> None:
    branches = {
        key: helper.make_graph([call("F", "X", key, mode=mode)], key, [], [helper.make_tensor_value_info(key, 1, None)])
        for key, mode in (("then_branch", "SAME_LOWER"), ("else_branch", "SAME_UPPER"))
    }
    total = helper.make_node("ReduceSum", ["X"], ["S"], keepdims=0)
    zero = helper.make_node("Constant", [], ["Z"], value_float=0.0)
    test = helper.make_node("Less", ["S", "Z"], ["C"])
    proto = model(
        [total, zero, test, helper.make_node("If", ["C"], ["Y"], **branches)], [function("F", [MODE], ["mode"])]
    )
    changed, _ = rewritten(proto)
    assert names(changed) == ["F", "F_2"]


def test_overloads_are_functions_of_their_own() -> None:
    functions = [
        function("F", [MODE], ["mode"], overload="referring"),
        function("F", [pool(auto_pad="SAME_LOWER")], overload="fixed"),
    ]
    calls = [
        call("F", "X", "M", mode="SAME_UPPER", overload="referring"),
        call("F", "M", "N", overload="fixed"),
        call("F", "N", "Y", mode="SAME_LOWER", overload="referring"),
    ]
    changed, _ = rewritten(model(calls, functions, (1, 2, 40, 39)), (40, 39))
    assert [(each.name, each.overload) for each in changed.functions] == [
        ("F", "referring"),
        ("F", "fixed"),
        ("F_2", "referring"),
    ]


def test_sizes_that_differ_share_one_body_with_a_run_time_pad() -> None:
    calls = [call("F", "X", "M"), call("F", "M", "Y")]
    changed, notes = rewritten(model(calls, [function("F", [pool(auto_pad="SAME_UPPER")])]))
    assert names(changed) == ["F"]
    assert "Pad" in {node.op_type for node in changed.functions[0].node}
    assert not notes


CONVOLVE = helper.make_node("Conv", ["A", "W"], ["B"], name="conv", auto_pad="SAME_UPPER", strides=[2, 2])


def weights(name: str, *shape: int) -> NodeProto:
    """Return a Constant of small integers, different at neighbouring taps."""
    values = (np.arange(np.prod(shape)) % 5 - 2).reshape(shape).astype(np.float32)
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(values))


def test_kernels_that_differ_get_a_body_each() -> None:
    inner = function("F", [CONVOLVE], inputs=["A", "W"])
    outer = function("G", [call("F", "A", "B", extra=["W"])], inputs=["A", "W"])
    constants = [weights("W3", 2, 2, 3, 3), weights("W5", 2, 2, 5, 4)]
    calls = [call("F", "X", "M", extra=["W3"]), call("F", "X", "N", extra=["W5"]), call("F", "X", "Z", extra=["W3"])]
    join = helper.make_node("Sum", ["M", "N", "Z"], ["Y"])
    changed, (note,) = rewritten(model([*constants, *calls, join], [inner]), exact=False)
    assert names(changed) == ["F", "F_2"]
    assert [node.op_type for node in changed.graph.node if node.domain] == ["F", "F_2", "F"]
    assert note == "The calls of function local:F pass other shapes, so each has a body: F, F_2."

    calls = [call("G", "X", "M", extra=["W3"]), call("G", "M", "Y", extra=["W5"])]
    changed, notes = rewritten(model([*constants, *calls], [inner, outer]), exact=False)
    assert sorted(names(changed)) == ["F", "F_2", "G", "G_2"]
    assert len(notes) == 2


def test_copies_that_would_help_nothing_are_not_made() -> None:
    calls = [call("F", "X", "M", extra=["W"]), call("F", "M", "Y", extra=["W"])]
    proto = model(calls, [function("F", [CONVOLVE], inputs=["A", "W"])])
    proto.graph.input.append(helper.make_tensor_value_info("W", TensorProto.FLOAT, [2, 2, "kh", "kw"]))
    before = proto.SerializeToString()
    result = rewrite_model(Model(proto))
    assert not result.changed
    assert proto.SerializeToString() == before
    (refusal,) = result.refusals
    assert "kernel_shape" in refusal.reason


def test_a_function_that_nothing_calls_is_refused_and_left_alone() -> None:
    handing = with_reference(call("F", "A", "B"), "mode", "padding")
    functions = [function("F", [MODE], ["mode"]), function("Dead", [handing], ["padding"])]
    proto = model([call("F", "X", "Y", mode="SAME_UPPER")], functions)
    before = proto.functions[0].SerializeToString()
    result = rewrite_model(Model(proto))
    assert names(proto) == ["F", "Dead", "F_2"]
    assert proto.functions[0].SerializeToString() == before
    assert proto.graph.node[0].op_type == "F_2"
    (refusal,) = result.refusals
    assert refusal.finding.graph == "function:local:F"
    assert "delete the function if nothing calls it" in refusal.reason
    settled = proto.SerializeToString()
    assert not rewrite_model(Model(proto)).changed
    assert proto.SerializeToString() == settled


def test_a_function_that_imports_an_older_opset_moves_up_to_the_models() -> None:
    old = function("F", [pool(auto_pad="SAME_UPPER")], opset=10)
    changed, _ = rewritten(model([call("F", "X", "Y")], [old], (1, 2, "h", "w")), (8, 7), (9, 9))
    assert [entry.version for entry in changed.functions[0].opset_import if not entry.domain] == [17]
    assert [entry.version for entry in changed.opset_import if not entry.domain] == [17]


def test_a_function_keeps_its_older_opset_where_a_rewrite_brings_nothing_that_it_reads_otherwise() -> None:
    # Pads as an attribute: the function stays at 13. Shape and Pad differ between 13 and 18: it moves up.
    old = function("F", [pool(auto_pad="SAME_UPPER")], opset=13)
    changed, _ = rewritten(model([call("F", "X", "Y")], [old], opset=18))
    assert [entry.version for entry in changed.functions[0].opset_import if not entry.domain] == [13]
    changed, _ = rewritten(model([call("F", "X", "Y")], [old], (1, 2, "h", "w"), opset=18), (8, 7), (9, 9))
    assert [entry.version for entry in changed.functions[0].opset_import if not entry.domain] == [18]


def test_recursion_is_refused_as_an_invalid_model_without_a_crash(tmp_path: Path) -> None:
    looping = function("F", [pool(["C"], auto_pad="SAME_UPPER"), call("F", "C", "B")])
    onnx.save(model([call("F", "X", "Y")], [looping]), tmp_path / "recursive.onnx")
    with pytest.raises(padfix.PadfixError):
        padfix.convert(tmp_path / "recursive.onnx", tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()


def test_recursion_through_an_attribute_reference_ends() -> None:
    handing = with_reference(call("F", "C", "B"), "mode", "mode")
    looping = function("F", [with_reference(pool(["C"]), "auto_pad", "mode"), handing], ["mode"])
    proto = model([call("F", "X", "Y", mode="SAME_UPPER")], [looping])
    rewrite_model(Model(proto))
    assert names(proto) == ["F"]


def test_check_says_that_convert_deals_with_it(tmp_path: Path) -> None:
    calls = [call("F", "X", "M", mode="SAME_UPPER"), call("F", "M", "Y", mode="VALID")]
    onnx.save(model(calls, [function("F", [MODE], ["mode"])]), tmp_path / "in.onnx")
    (finding,) = padfix.check(tmp_path / "in.onnx").findings
    assert finding.rule == "PF101"
    assert finding.fixable
    report = padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    assert any("F_2 (mode VALID)" in note for note in report.notes)
    assert padfix.check(tmp_path / "out.onnx").findings == []
