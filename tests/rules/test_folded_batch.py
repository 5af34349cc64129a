"""What works on images of a batch that is made inside, as one image: for runtimes that know no batch."""

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
from padfix.runtimes import open_runtime

MADE = "b = Reshape (X, s) "
FOLDED = {
    "a convolution": ("Y = Conv (b, W, a)", "Conv"),
    "groups": ("Y = Conv <group = 2, strides = [2, 2], pads = [1, 0, 0, 1]> (b, G)", "Conv"),
    "a transposed convolution": ("Y = ConvTranspose <strides = [2, 2]> (b, T)", "ConvTranspose"),
    "a maximum": ("Y = MaxPool <kernel_shape = [2, 2]> (b)", "MaxPool"),
    "an average": ('Y = AveragePool <kernel_shape = [3, 3], auto_pad = "SAME_UPPER"> (b)', "AveragePool"),
    "all of a plane": ("Y = GlobalAveragePool (b)", "GlobalAveragePool"),
    "normalised": ("Y = BatchNormalization (b, c, c, c, v)", "BatchNormalization"),
    "normalised by itself": ("Y = InstanceNormalization (b, c, c)", "InstanceNormalization"),
    "a list normalised": ("Y = LayerNormalization (b, l)", "LayerNormalization"),
    "an image normalised": ("Y = LayerNormalization <axis = 2> (b, p)", "LayerNormalization"),
    "slopes of channels": ("Y = PRelu (b, q)", "PRelu"),
    "one slope": ("Y = PRelu (b, o)", "PRelu"),
    "scaled": (
        'Y = Resize <nearest_mode = "floor", coordinate_transformation_mode = "asymmetric"> (b, , f)',
        "Resize",
    ),
    "sized": ('Y = Resize <mode = "linear"> (b, , , z)', "Resize"),
}
WEIGHTS = (
    "int64[4] s = {3, 2, 4, 5}, int64[4] z = {3, 2, 8, 10}, float[4] f = {1, 1, 2, 2}, float[2] c = {1, -2}, "
    "float[2] v = {0.5, 2}, float[1] o = {0.3}, float[2,1,1] q = {0.1, 0.4}, float[5] l = {1, 2, 3, 4, 5}, "
    f"float[4,5] p = {{{', '.join(str(each % 5) for each in range(20))}}}, float[3] a = {{1, 2, 3}}, "
    f"float[3,2,2,2] W = {{{', '.join(str(each % 9 - 4) for each in range(24))}}}, "
    f"float[2,3,2,2] T = {{{', '.join(str(each % 8 - 4) for each in range(24))}}}, "
    f"float[4,1,2,2] G = {{{', '.join(str(each % 7 - 3) for each in range(16))}}}"
)


def text(nodes: str, data: str = "float[1,6,4,5] X") -> str:
    return f'<ir_version: 8, opset_import: ["" : 18]>\ng ({data}) => (float Y) <{WEIGHTS}> {{ {nodes} }}'


def saved(tmp_path: Path, nodes: str, data: str = "float[1,6,4,5] X") -> Path:
    path = tmp_path / "model.onnx"
    model = onnx.parser.parse_model(text(nodes, data))
    used = {name for node in model.graph.node for name in node.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    onnx.save(model, path)
    return path


@pytest.mark.sweep(8)
@pytest.mark.parametrize("case", FOLDED)
def test_images_become_the_channels_of_one(case: str, tmp_path: Path) -> None:
    nodes, op_type = FOLDED[case]
    source, once, twice = saved(tmp_path, MADE + nodes), tmp_path / "once.onnx", tmp_path / "twice.onnx"
    report = padfix.convert(source, once, target="ncnn")
    assert report.verdict is not None
    assert report.verdict.equivalent
    written = onnx.load(once)
    (folded,) = (node for node in onnx.shape_inference.infer_shapes(written).graph.node if node.op_type == op_type)
    before = next(node for node in written.graph.node if folded.input[0] in node.output)
    assert before.op_type == "Reshape"
    shape = next(onnx.numpy_helper.to_array(each) for each in written.graph.initializer if each.name == before.input[1])
    assert shape.tolist() == [1, 6, 4, 5]
    assert not padfix.check(once, target="ncnn").findings
    padfix.convert(once, twice, target="ncnn")
    assert once.read_bytes() == twice.read_bytes()
    if importlib.util.find_spec("ncnn") is None or importlib.util.find_spec("pnnx") is None:
        pytest.skip("ncnn and pnnx are not installed")
    data = np.random.default_rng(5).standard_normal((1, 6, 4, 5)).astype(np.float32)
    (wanted,) = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"]).run(None, {"X": data})
    with contextlib.closing(open_runtime("ncnn")) as runtime:
        (found,) = runtime.run(once.read_bytes(), {"X": data}, [wanted.shape])
    np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.parametrize(
    ("nodes", "data", "found"),
    [
        (MADE + "Y = MaxPool <kernel_shape = [2, 2]> (b)", "float[1,6,4,5] X", True),
        (MADE + "Y = MaxPool <kernel_shape = [2, 2]> (b)", "float[3,2,20] X", False),
        ("Y = MaxPool <kernel_shape = [2, 2]> (X)", "float[3,2,4,5] X", False),
        ("Y = MaxPool <kernel_shape = [2, 2]> (X)", "float[N,2,4,5] X", False),
        ("b = Relu (X) Y = MaxPool <kernel_shape = [2, 2]> (b)", "float[N,2,4,5] X", False),
        ("b = Transpose <perm = [1, 0, 2, 3]> (X) Y = MaxPool <kernel_shape = [2, 2]> (b)", "float[N,2,4,5] X", True),
        (MADE + "Y = Relu (b)", "float[1,6,4,5] X", False),
        ("b = Identity (X) Y = MaxPool <kernel_shape = [2, 2]> (b)", "float[?,2,4,5] X", False),
    ],
)
def test_the_model_s_own_batch_is_left(nodes: str, data: str, found: bool, tmp_path: Path) -> None:
    findings = padfix.check(saved(tmp_path, nodes, data), target="ncnn").findings
    assert any("a batch that is made inside" in each.message for each in findings) is found


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("Y = LRN <size = 1> (b)", "not that of every channel"),
        ('Y = Resize <mode = "nearest"> (b, , g)', "resizes the batch or the channels"),
    ],
)
def test_what_images_share_is_refused(nodes: str, reason: str, tmp_path: Path) -> None:
    scales = "g = Constant <value = float[4] {1, 2, 2, 2}> () "
    source = saved(tmp_path, scales + MADE + nodes)
    with pytest.raises(padfix.PadfixError, match=reason):
        padfix.convert(source, tmp_path / "out.onnx", target="ncnn")
    assert not (tmp_path / "out.onnx").exists()
