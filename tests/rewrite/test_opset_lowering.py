"""A target's ceiling lowers the opset where the older one can say the same; else the node is named, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

import padfix
from padfix.errors import UsageError
from padfix.files.model import Model
from padfix.proof.spec_executor import SpecExecutor
from padfix.rewrite.engine import rewrite_model
from padfix.targets import Target
from tests.rewrite.test_opset_raises import Case, f, i, single, sweep, versions, what_is_wrong

IMAGE = f(2, 4, 6, 6)
OLDEST = 17
"""The lowest ceiling of a target."""


def lowered(model: ModelProto, ceiling: int) -> tuple[ModelProto, list[str]]:
    """Return the model under a ceiling, and why it is not, where it is not."""
    copy = Model(ModelProto.FromString(model.SerializeToString()))
    done = rewrite_model(copy, target=Target("older", maximum_opset=ceiling))
    return copy.proto, [each.reason for each in done.refusals if each.finding.rule == "PF302"]


def wrong_lowerings(name: str, model: ModelProto, cases: Sequence[Case], rtol: float, atol: float) -> list[str]:
    """Lower ``model`` to each opset that changes it; return a line for each result that is not right."""
    own = {each.domain: each.version for each in model.opset_import}.get("", 0)
    wrong = []
    for ceiling in range(OLDEST, own):
        if ceiling != OLDEST and versions(model, ceiling) == versions(model, ceiling + 1):
            continue
        after, reasons = lowered(model, ceiling)
        if reasons:
            assert {each.version for each in after.opset_import} == {each.version for each in model.opset_import}
        else:
            assert {each.version for each in after.opset_import if not each.domain} == {ceiling}
            wrong += what_is_wrong(f"{name} down to {ceiling}", model, after, cases, rtol, atol)
    return wrong


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_node_test_stays_right() -> None:
    assert sweep(1, wrong_lowerings) == []


HALF = np.array([1, 1, 2, 0.5], np.float32)
NEWER: list[tuple[str, int, list[np.ndarray], list[int], dict[str, Any]]] = [
    ("AveragePool", 19, [IMAGE], [], {"kernel_shape": [3, 3], "dilations": [1, 1], "pads": [1, 1, 1, 1]}),
    ("BatchNormalization", 22, [IMAGE, f(4), f(4), f(4), abs(f(4))], [1, 2, 3, 4], {}),
    ("CenterCropPad", 18, [IMAGE, i(4, 8)], [1], {"axes": [2, 3]}),
    ("Conv", 22, [IMAGE, f(2, 4, 3, 3)], [1], {}),
    ("DFT", 20, [f(2, 5, 6, 1)], [], {}),
    ("DFT", 20, [f(2, 5, 6, 1), np.array(4), np.array(1)], [1, 2], {}),
    ("Gelu", 20, [IMAGE], [], {}),
    ("Gelu", 20, [IMAGE], [], {"approximate": "tanh"}),
    ("GridSample", 22, [f(1, 1, 4, 4), f(1, 3, 3, 2)], [], {"mode": "cubic"}),
    ("GroupNormalization", 18, [IMAGE, f(2), f(2)], [1, 2], {"num_groups": 2}),
    ("GroupNormalization", 21, [IMAGE, f(4), f(4)], [1, 2], {"num_groups": 2}),
    ("HardSwish", 22, [IMAGE], [], {}),
    ("LayerNormalization", 22, [IMAGE, f(6), f(6)], [1, 2], {}),
    ("Mish", 22, [IMAGE], [], {}),
    ("Pad", 18, [IMAGE, i(1, 2), np.float32(2), i(-1)], [1, 2, 3], {}),
    ("Pad", 21, [IMAGE, i(1, 0, 2, 1), np.float32(2), i(3, 2)], [3], {"mode": "reflect"}),
    ("QuantizeLinear", 21, [IMAGE, np.float32(0.1)], [1], {"output_dtype": TensorProto.INT8}),
    ("RMSNormalization", 23, [IMAGE, f(6)], [1], {}),
    ("ReduceL2", 18, [IMAGE, i(-1)], [1], {"keepdims": 0}),
    ("ReduceMax", 20, [IMAGE], [], {}),
    ("ReduceMean", 18, [IMAGE, i(2, 3)], [1], {"noop_with_empty_axes": 1}),
    ("ReduceSumSquare", 18, [IMAGE, i()], [1], {}),
    ("Resize", 18, [IMAGE, f(0), f(0), i(3, 4)], [1, 2, 3], {"axes": [3, 2], "mode": "linear"}),
    ("Resize", 18, [IMAGE, f(0), HALF[2:]], [1], {"axes": [-2, -1], "mode": "linear"}),
    ("Resize", 19, [IMAGE, f(0), HALF], [1, 2], {"antialias": 0, "keep_aspect_ratio_policy": "stretch"}),
    ("ScatterND", 18, [f(4, 3), i(3, 1).reshape(2, 1), f(2, 3)], [1], {"reduction": "add"}),
    ("Split", 18, [IMAGE], [], {"num_outputs": 2, "axis": -1}),
    ("Split", 18, [f(2, 7)], [], {"num_outputs": 3, "axis": 1}),
    ("TopK", 24, [IMAGE, i(2)], [1], {}),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", NEWER, ids=lambda form: f"{form[0]}-{form[1]}-{form[4]}")
def test_a_newer_form_has_an_older_one(form: tuple[str, int, list[np.ndarray], list[int], dict[str, Any]]) -> None:
    op_type, opset, arrays, constants, given = form
    outputs = given.get("num_outputs", 2 if op_type == "TopK" else 1)
    model = single(op_type, opset, arrays, constants, outputs, **given)
    feeds = {f"X{place}": array for place, array in enumerate(arrays) if place not in constants}
    expected = SpecExecutor(model.SerializeToString()).run(feeds)
    after, reasons = lowered(model, OLDEST)
    assert reasons == []
    onnx.checker.check_model(onnx.shape_inference.infer_shapes(after), full_check=True)
    case = (feeds, list(expected.values()))
    assert what_is_wrong(op_type, model, after, [case], 1e-5, 1e-5) == []


@pytest.mark.filterwarnings("ignore")
def test_pieces_of_an_unknown_length_are_measured() -> None:
    model = single("Split", 18, [f(2, 7)], [], 3, num_outputs=3, axis=-1)
    for axis, name in enumerate(("n", "m")):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    after, reasons = lowered(model, OLDEST)
    assert reasons == []
    for length in (5, 6, 7):
        feeds = {"X0": f(2, length)}
        case = (feeds, list(SpecExecutor(model.SerializeToString()).run(feeds).values()))
        assert what_is_wrong("Split", model, after, [case], 0, 0) == []


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (single("AveragePool", 19, [IMAGE], kernel_shape=[2, 2], dilations=[2, 2]), "no dilations of AveragePool"),
        (single("BitwiseNot", 18, [i(1)]), "BitwiseNot '#0' is in no opset up to 17"),
        (single("Cast", 21, [IMAGE], to=TensorProto.FLOAT8E4M3FN), "unsupported type"),
        (single("GridSample", 20, [f(1, 1, 3, 3, 3), f(1, 2, 2, 2, 3)]), "images of 4 axes only"),
        (single("Pad", 19, [IMAGE, i(*[1] * 8)], [1], mode="wrap"), "no mode=wrap of Pad, which came in 19"),
        (single("ReduceMax", 20, [IMAGE > 0, i(1)], [1]), "unsupported type"),
        (single("ReduceMean", 18, [IMAGE, i(1)]), "axes is computed at run time"),
        (single("ReduceMean", 18, [IMAGE], noop_with_empty_axes=1), "no noop_with_empty_axes"),
        (single("Resize", 18, [IMAGE, f(0), HALF], [1, 2], mode="linear", antialias=1), "no antialias of Resize"),
        (single("ScatterND", 18, [f(4, 3), i(3, 1).reshape(2, 1), f(2, 3)], [1], reduction="max"), "no reduction=max"),
    ],
    ids=lambda each: each if isinstance(each, str) else each.graph.node[0].op_type,
)
def test_what_the_older_opset_can_not_say_is_named(model: ModelProto, reason: str) -> None:
    after, reasons = lowered(model, OLDEST)
    assert len(reasons) == 1
    assert reason in reasons[0]
    assert after == model


NETWORK = """<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
main (float[N,3,9,9] X, bool C) => (float[N,2] Y) {
  conv = Conv <auto_pad = "SAME_UPPER", strides = [2, 2], kernel_shape = [3, 3]> (X, W)
  act = own.Act (conv)
  chosen = If (C) <
    then_branch = then () => (float[N,2,5,5] T) { T = Mish (act) },
    else_branch = other () => (float[N,2,5,5] E) { E = Pad (act, none, , last) }
  >
  Y = ReduceMean <keepdims = 0> (chosen, last_two)
}
<domain: "own", opset_import: ["" : 18]> Act (a) => (b) {
  axes = Constant <value = int64[1] {1}> ()
  total = ReduceMax (a, axes)
  b = Sub (a, total)
}"""


def test_a_network_with_bodies_and_functions_is_lowered_and_proven(tmp_path: Path) -> None:
    model = parser.parse_model(NETWORK)
    constants = {"W": f(2, 3, 3, 3), "none": i(0, 0), "last": i(-1), "last_two": i(2, 3)}
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    onnx.save(model, tmp_path / "before.onnx")
    found = padfix.check(tmp_path / "before.onnx", target="portable", select=["PF302"]).findings
    assert [each.graph for each in found] == ["main", "function:own:Act"]
    assert all(each.fixable for each in found)
    report = padfix.convert(tmp_path / "before.onnx", tmp_path / "after.onnx", target="portable", partial=True)
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert {each.finding.op_type for each in report.refusals} == {"If", "input"}
    moved = [each.finding for each in report.rewrites if each.finding.rule == "PF302"]
    assert {each.op_type for each in moved} == {"", "ReduceMean"}
    assert {each.finding.rule for each in report.rewrites if each.finding.op_type == "Pad"} == {"PF112"}
    assert {each.finding.rule for each in report.rewrites if each.finding.op_type == "Mish"} == {"PF306"}
    after = onnx.load(tmp_path / "after.onnx")
    assert [each.version for each in after.opset_import] == [17]
    assert not after.functions
    assert {each.op_type for each in padfix.check(tmp_path / "after.onnx", target="portable").findings} == {
        "If",
        "input",
    }


def test_functions_are_lowered_with_what_calls_them() -> None:
    model = parser.parse_model(NETWORK)
    constants = {"W": f(2, 3, 3, 3), "none": i(0, 0), "last": i(-1), "last_two": i(2, 3)}
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    after, reasons = lowered(model, OLDEST)
    assert not reasons
    assert {each.version for part in (after, *after.functions) for each in part.opset_import if not each.domain} == {17}


def test_an_opset_above_the_ceiling_can_not_be_asked_for() -> None:
    model = Model(helper.make_model(single("Relu", 13, [IMAGE]).graph, opset_imports=[helper.make_opsetid("", 13)]))
    with pytest.raises(UsageError, match="above 17, the highest that the target older takes"):
        rewrite_model(model, opset=18, target=Target("older", maximum_opset=17))
