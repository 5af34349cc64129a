"""Pools with ceil_mode, and the positions of maxima: what OpenVINO and OpenCV get wrong, and what is left as it is."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import padfix

VINO, CV = "openvino", "opencv@5.0.0.93"
CEIL = "ceil_mode = 1, kernel_shape = [%d, %d], strides = [%d, %d], pads = [%d, %d, %d, %d]"


def model(graph: str, folder: Path, opset: int = 17) -> Path:
    source = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {graph}'), source)
    return source


def pool(
    op_type: str, lengths: str, kernel: int, stride: int, begin: int, end: int, folder: Path, extra: str = ""
) -> Path:
    told = CEIL % (kernel, kernel, stride, stride, begin, begin, end, end)
    return model(f"(float[1,2,{lengths}] X) => (float[1,2,h,w] Y) {{ Y = {op_type} <{told}{extra}> (X) }}", folder, 19)


@pytest.mark.parametrize(
    ("target", "op_type", "lengths", "numbers", "found"),
    [
        (VINO, "MaxPool", "7,7", (2, 2, 1, 1), True),
        (VINO, "MaxPool", "6,6", (3, 2, 0, 1), False),
        (VINO, "MaxPool", "H,W", (3, 2, 1, 1), False),
        (VINO, "MaxPool", "H,W", (2, 2, 0, 1), True),
        (VINO, "AveragePool", "7,7", (2, 2, 1, 1), False),
        (CV, "MaxPool", "7,7", (2, 2, 1, 1), True),
        (CV, "AveragePool", "7,7", (2, 2, 1, 1), True),
        (CV, "AveragePool", "6,6", (3, 2, 0, 1), False),
        (CV, "AveragePool", "H,W", (3, 2, 1, 1), False),
    ],
)
def test_only_a_window_that_would_begin_behind_the_image_counts(
    target: str, op_type: str, lengths: str, numbers: tuple[int, int, int, int], found: bool, tmp_path: Path
) -> None:
    source = pool(op_type, lengths, *numbers, tmp_path)
    assert ("PF111" in [each.rule for each in padfix.check(source, target=target).findings]) is found


@pytest.mark.parametrize(("target", "pads", "found"), [(VINO, (1, 1), True), (VINO, (0, 0), False), (CV, (0, 0), True)])
def test_pads_that_count_beside_ceil_mode(target: str, pads: tuple[int, int], found: bool, tmp_path: Path) -> None:
    source = pool("AveragePool", "8,8", 3, 2, *pads, tmp_path, ", count_include_pad = 1")
    assert ("PF111" in [each.rule for each in padfix.check(source, target=target).findings]) is found
    padfix.convert(source, tmp_path / "result.onnx", target=target)
    assert not padfix.check(tmp_path / "result.onnx", target=target).findings


@pytest.mark.parametrize("elem_type", ["uint8", "int8"])
def test_positions_of_bytes_are_those_of_floats(elem_type: str, tmp_path: Path) -> None:
    source = model(
        f"({elem_type}[1,2,H,W] X) => ({elem_type}[1,2,h,w] Y, int64[1,2,h,w] P) "
        "{ Y, P = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (X) }",
        tmp_path,
    )
    padfix.convert(source, tmp_path / "result.onnx", target=VINO)
    written = onnx.load(tmp_path / "result.onnx").graph.node
    assert [node.op_type for node in written] == ["Cast", "MaxPool", "Cast"]


@pytest.mark.parametrize(("shape", "kernel", "found"), [("1,2,9", "[2]", False), ("1,2,9,9", "[2, 2]", True)])
def test_positions_on_one_axis_have_one_order(shape: str, kernel: str, found: bool, tmp_path: Path) -> None:
    lengths = ",".join("abcd"[: shape.count(",") + 1])
    graph = f"(float[{shape}] X) => (float[{lengths}] Y, int64[{lengths}] P)"
    source = model(f"{graph} {{ Y, P = MaxPool <storage_order = 1, kernel_shape = {kernel}> (X) }}", tmp_path)
    assert bool(padfix.check(source, target=VINO).findings) is found


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_a_scale_that_keeps_a_length_is_no_copy(mode: str, tmp_path: Path) -> None:
    source = model(
        "(float[2,3,7,6] X) => (float[2,3,3,6] Y) <float[0] r = {}, float[4] s = {1, 1, 0.5, 1.1}> { Y = Resize "
        f'<coordinate_transformation_mode = "tf_half_pixel_for_nn", mode = "{mode}"> (X, r, s) }}',
        tmp_path,
        11,
    )
    assert padfix.check(source, target=VINO).findings
    padfix.convert(source, tmp_path / "result.onnx", target=VINO)
    assert not padfix.check(tmp_path / "result.onnx", target=VINO).findings
