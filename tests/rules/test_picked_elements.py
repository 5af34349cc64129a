"""What a step over elements is moved before, and the Gather that stays where it is."""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix
from padfix.files.model import Model
from padfix.operators.inference import infer
from padfix.operators.traits import traits_of
from padfix.runtimes import open_runtime
from tests.support.proven import operators_for

STEPS = "int64[1] b = {%d}, int64[1] e = {1000}, int64[1] a = {%d}, int64[1] s = {%d}"
SKIPPED = {
    "nothing": ("Y = Slice (X, b, e, a, s)", (0, 3, 2), "none"),
    "a softmax": ("t = Softmax (X) Y = Slice (t, b, e, a, s)", (0, 3, 2), "softmax"),
    "a softmax of another axis": ("t = Softmax <axis = 1> (X) Y = Slice (t, b, e, a, s)", (0, 3, 2), "none"),
    "a softmax squared": ("t = Softmax (X) u = Mul (t, t) Y = Slice (u, b, e, a, s)", (0, 3, 2), "softmax"),
    "a softmax that is read in vain": (
        "t = Softmax (X) u = Mul (t, t) Y = Slice (t, b, e, a, s)",
        (0, 3, 2),
        "softmax",
    ),
    "a softmax that is a result": ("Z = Softmax (X) Y = Slice (Z, b, e, a, s)", (0, 3, 2), "softmax"),
    "a softmax that is turned": (
        "t = Softmax (X) v = Transpose <perm = [0, 1, 3, 2]> (t) w = Relu (v) Y = Slice (w, b, e, a, s)",
        (0, 2, 2),
        "softmax",
    ),
    "a softmax summed up": (
        "t = Softmax (X) u = ReduceMax <keepdims = 0> (t, k) Y = Slice (u, b, e, a, s)",
        (0, 2, 2),
        "softmax",
    ),
    "a softmax that others read": ("t = Softmax (X) Y = Slice (t, b, e, a, s) Z = Relu (t)", (0, 3, 2), "none"),
    "a softmax joined": (
        "t = Softmax (X) u = Concat <axis = 1> (t, X) Y = Slice (u, b, e, a, s)",
        (0, 3, 3),
        "softmax",
    ),
    "a part of a softmax": (
        "t = Softmax (X) p, u = Split <axis = 1> (t, h) Y = Slice (p, b, e, a, s)",
        (0, 3, 2),
        "softmax",
    ),
    "a softmax of which both parts are read": (
        "t = Softmax (X) p, Z = Split <axis = 1> (t, h) Y = Slice (p, b, e, a, s)",
        (0, 3, 2),
        "none",
    ),
    "windows from their first": ("t = Conv (X, W) Y = Slice (t, b, e, a, s)", (2, 3, 2), "none"),
    "windows from an odd one": ("t = Conv (X, W) Y = Slice (t, b, e, a, s)", (3, 3, 2), "window"),
    "windows cut twice": (
        "t = Conv (X, W) u = Slice (t, o, e, a) v = Sigmoid (u) Y = Slice (v, b, e, a, s)",
        (0, 3, 2),
        "window",
    ),
    "windows, turned round": ("t = Conv (X, W) Y = Slice (t, b, n, a, s)", (-1, 3, -2), "none"),
    "single taps": ("t = Conv (X, V) Y = Slice (t, b, e, a, s)", (1, 3, 2), "none"),
    "a reshape": ("t = Reshape (X, r) Y = Slice (t, b, e, a, s)", (0, 2, 2), "reshape"),
    "an axis that a reshape keeps": ("t = Reshape (X, q) Y = Slice (t, b, e, a, s)", (0, 4, 2), "none"),
    "a pool": ("t = MaxPool <kernel_shape = [2, 2]> (X) Y = Slice (t, b, e, a, s)", (1, 3, 2), "none"),
    "an expand": ("t = Expand (X, x) Y = Slice (t, b, e, a, s)", (1, 3, 2), "expand"),
    "an expand turned round": ("t = Expand (X, x) Y = Slice (t, b, n, a, s)", (-1, 3, -1), "none"),
    "what is repeated": ("t = Tile (X, m) Y = Slice (t, b, e, a, s)", (1, 3, 2), "none"),
    "a softmax, by windows": ("t = Softmax (X) Y = Conv <strides = [1, 2]> (t, V)", (0, 3, 2), "softmax"),
    "a softmax, by dilated windows": (
        "t = Softmax (X) Y = Conv <strides = [1, 2], dilations = [1, 2]> (t, W)",
        (0, 3, 2),
        "softmax",
    ),
    "a softmax, by windows that touch": ("t = Softmax (X) Y = Conv <strides = [1, 2]> (t, W)", (0, 3, 2), "none"),
    "a softmax, by padded windows": (
        "t = Softmax (X) Y = Conv <strides = [1, 2], pads = [0, 1, 0, 1]> (t, V)",
        (0, 3, 2),
        "none",
    ),
}
WEIGHTS = (
    "int64[1] k = {2}, int64[1] o = {1}, int64[1] n = {-1000}, int64[2] h = {2, 2}, int64[4] r = {1, 4, 10, 8}, "
    "int64[5] q = {1, 4, 2, 4, 10}, int64[4] x = {2, 4, 8, 10}, int64[4] m = {1, 1, 1, 2}, "
    f"float[2,4,2,2] W = {{{', '.join(str(each % 7 - 3) for each in range(32))}}}, "
    f"float[2,4,1,1] V = {{{', '.join(str(each % 5 - 2) for each in range(8))}}}"
)


def text(nodes: str, amounts: tuple[int, int, int], outputs: str = "float Y") -> str:
    """Return a model whose last Slice has these (start, axis, step)."""
    outputs += ", float Z" if "Z = " in nodes else ""
    weights = f"{STEPS % amounts}, {WEIGHTS}"
    return f'<ir_version: 8, opset_import: ["" : 18]>\ng (float[1,4,8,10] X) => ({outputs}) <{weights}> {{ {nodes} }}'


@pytest.mark.parametrize("case", SKIPPED)
def test_what_a_step_is_moved_before(case: str) -> None:
    nodes, amounts, expected = SKIPPED[case]
    scope = next(iter(infer(Model(onnx.parser.parse_model(text(nodes, amounts))))))
    traits = traits_of(scope, scope.producer("Y"))
    assert traits is not None
    assert traits["skips-behind"] == expected


@pytest.mark.parametrize("case", SKIPPED)
def test_a_gather_picks_what_a_step_would_be_moved_from(case: str, tmp_path: Path) -> None:
    nodes, amounts, expected = SKIPPED[case]
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(text(nodes, amounts)), source)
    report = padfix.convert(source, result, target="tract")
    assert report.verdict is not None
    assert report.verdict.equivalent
    written = onnx.load(result)
    last = next(node for node in written.graph.node if "Y" in node.output)
    before = [node.op_type for node in written.graph.node if set(node.output) & set(last.input)]
    assert ("Gather" in (last.op_type, *before)) is (expected != "none")
    assert not padfix.check(result, target="tract").findings


@pytest.mark.sweep(5)
@pytest.mark.skipif(importlib.util.find_spec("tract") is None, reason="tract is not installed")
@pytest.mark.parametrize("case", SKIPPED)
def test_the_runtime_agrees(case: str, tmp_path: Path) -> None:
    nodes, amounts, expected = SKIPPED[case]
    model = onnx.parser.parse_model(text(nodes, amounts))
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(model, source)
    padfix.convert(source, result, target="tract")
    data = np.random.default_rng(3).standard_normal((1, 4, 8, 10)).astype(np.float32)
    wanted = run(model, data)
    with contextlib.closing(open_runtime("tract")) as runtime:
        as_written, rewritten = (
            runtime.run(each.SerializeToString(), {"X": data}, [array.shape for array in wanted])
            for each in (model, onnx.load(result))
        )
    assert is_near(as_written, wanted) is (expected == "none")
    assert is_near(rewritten, wanted)


def run(model: onnx.ModelProto, data: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, {"X": data}))


def is_near(found: object, wanted: list[np.ndarray]) -> bool:
    """Whether a runtime gave these numbers, and no reason why it gives none."""
    return isinstance(found, list) and all(
        one.shape == other.shape and np.allclose(one, other, atol=1e-5)
        for one, other in zip(found, wanted, strict=True)
    )


BACKWARDS = {
    "ncnn backwards": ("ncnn", "float[1,4,8,10] X", (-1, 3, -1), ["Relu", "MatMul"]),
    "ncnn with steps": ("ncnn", "float[1,4,8,10] X", (0, 2, 2), ["Relu", "MatMul"]),
    "ncnn with channels": ("ncnn", "float[1,4,8,10] X", (1, 1, 2), ["Relu", "Reshape", "MatMul", "Reshape"]),
    "mnn with a volume": ("mnn", "float[1,4,8,10,3] X", (-1, 2, -3), ["Relu", "Gather"]),
    "mnn with a single element": ("mnn", "float[1,4,1,10,3] X", (-1, 2, -1), ["Relu", "Identity"]),
    "opencv with a list": ("opencv@4.14", "float[7] X", (-1, 0, -2), ["Relu", "Gather"]),
    "mnn with a batch": ("mnn", "float[2,4,8,10] X", (-1, 0, -1), ["Relu", "Gather"]),
}


@pytest.mark.parametrize("case", BACKWARDS)
def test_steps_of_a_slice_are_picked(case: str, tmp_path: Path) -> None:
    target, data, (start, axis, step), expected = BACKWARDS[case]
    values = {"b": start, "e": 1000 if step > 0 else -1000, "a": axis, "s": step}
    amounts = ", ".join(f"int64[1] {name} = {{{value}}}" for name, value in values.items())
    graph = f"g ({data}) => (float Y) <{amounts}> {{ r = Relu (X) Y = Slice (r, b, e, a, s) }}"
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {graph}'), source)
    assert {"error", "silent"} & {each.severity for each in padfix.check(source, target=target).findings}
    padfix.convert(source, result, target=target)
    assert [node.op_type for node in onnx.load(result).graph.node] == expected
    assert not padfix.check(result, target=target).findings
    forwards = text("Y = Slice (X, b, e, a, s)", (0, 3, 1))
    assert "PF306" not in {each.rule for each in padfix.check(saved(tmp_path, forwards), target="mnn").findings}


def test_a_window_of_open_size_whose_pads_are_not_known_is_declined(tmp_path: Path) -> None:
    """A line made a plane, as TensorFlow writes its convolutions: one of the axes is skipped, the other is open."""
    weight = ", ".join(["1"] * 9)
    graph = f"""g (float[N,3,W] X) => (float[N,3,1,w] Y) <int64[1] a = {{2}}, float[3,1,1,3] W1 = {{{weight}}}> {{
      t = Unsqueeze (X, a)
      Y = Conv <auto_pad = "SAME_UPPER", group = 3, kernel_shape = [1, 3], strides = [2, 2]> (t, W1)
    }}"""
    model = saved(tmp_path, f'<ir_version: 8, opset_import: ["" : 13]> {graph}')
    assert any(each.op_type == "Conv" for each in padfix.check(model, target="portable").findings)
    with pytest.raises(padfix.PadfixError, match=r"can't be rewritten"):
        padfix.convert(model, tmp_path / "result.onnx", target="portable")


def saved(folder: Path, content: str) -> Path:
    path = folder / "saved.onnx"
    onnx.save(onnx.parser.parse_model(content), path)
    return path


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("Z = ScatterND (X, none, updates)", ["Identity"]),
        ("Z = ScatterElements <axis = 0> (X, rows, updates)", ["Identity"]),
        ("p = Gather (X, list) Z = Concat <axis = 0> (X, p)", ["Identity", "Concat"]),
        ("p = GatherElements (X, rows) Z = Concat <axis = 0> (X, p)", ["Identity", "Concat"]),
    ],
)
def test_nothing_is_picked_or_put(node: str, expected: list[str], tmp_path: Path) -> None:
    constants = "int64[0,1] none = {}, int64[0,3] rows = {}, int64[0] list = {}, float[0,3] updates = {}"
    text = f"(float[2,3] X) => (float[2,3] Y) <{constants}> {{ {node} Y = Relu (Z) }}"
    assert list(operators_for(text, "openvino", tmp_path, 17, ir_version=8)) == [*expected, "Relu"]
