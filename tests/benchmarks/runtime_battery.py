"""One-operator models that runtimes are measured with: what exporters write, by families."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PAIRS = (
    *(("asymmetric", mode) for mode in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")),
    *(("half_pixel", mode) for mode in ("floor", "round_prefer_floor", "round_prefer_ceil")),
    *(("align_corners", mode) for mode in ("floor", "round_prefer_floor", "round_prefer_ceil")),
    ("tf_half_pixel_for_nn", "floor"),
    ("pytorch_half_pixel", "round_prefer_floor"),
)


@dataclass(frozen=True)
class Case:
    """A model and the family whose row it counts in."""

    family: str
    name: str
    model: onnx.ModelProto


def cases() -> list[Case]:
    """Return all models; their names differ."""
    found = [Case(family, f"{family}: {name}", model) for family, name, model in _all()]
    assert len({case.name for case in found}) == len(found)
    return found


def feeds(case: Case) -> dict[str, np.ndarray]:
    """Return data for a model: mostly negative, so that a border of zeros shows behind a MaxPool."""
    (data,) = case.model.graph.input
    lengths = [each.dim_value or 9 for each in data.type.tensor_type.shape.dim]
    random = np.random.default_rng(len(case.name))
    return {data.name: (random.standard_normal(lengths) - 1).astype(np.float32)}


def _all() -> Iterator[tuple[str, str, onnx.ModelProto]]:
    yield from _convolutions()
    yield from _transposed()
    yield from _pools()
    yield from _pads()
    yield from _nearest()
    yield from _resizes()


def _model(
    op_type: str,
    shape: Sequence[int | str],
    tensors: Sequence[np.ndarray | None] = (),
    opset: int = 17,
    **attributes: Any,
) -> onnx.ModelProto:
    names = ["" if tensor is None else f"T{place}" for place, tensor in enumerate(tensors)]
    held = [numpy_helper.from_array(tensor, name) for tensor, name in zip(tensors, names, strict=True) if name]
    graph = helper.make_graph(
        [helper.make_node(op_type, ["X", *names], ["Y"], name=op_type.lower(), **attributes)],
        "one",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)],
        held,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    inferred = onnx.shape_inference.infer_shapes(model).graph.output[0]
    if inferred.type.tensor_type.HasField("shape"):
        model.graph.output[0].CopyFrom(inferred)
    return model


def _filters(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def _convolutions() -> Iterator[tuple[str, str, onnx.ModelProto]]:
    for mode in ("SAME_UPPER", "SAME_LOWER"):
        for size, kernel, stride in ((11, 3, 1), (12, 3, 2), (11, 4, 1)):
            filters = _filters(4, 3, kernel, kernel)
            model = _model("Conv", [1, 3, size, size], [filters], auto_pad=mode, strides=[stride, stride])
            yield f"Conv auto_pad {mode}", f"kernel {kernel} stride {stride} size {size}", model
        filters = _filters(4, 3, 3, 3)
        model = _model("Conv", [1, 3, "H", "W"], [filters], auto_pad=mode, strides=[2, 2])
        yield "Conv auto_pad, open sizes", mode, model
        model = _model("Conv", [1, 3, 11, 11], [filters], auto_pad=mode, dilations=[2, 2])
        yield "Conv auto_pad with dilations", mode, model
    for pads in ([0, 1, 1, 0], [2, 2, 1, 1]):
        model = _model("Conv", [1, 3, 11, 12], [_filters(4, 3, 3, 3)], pads=pads)
        yield "Conv with uneven pads", str(pads), model
    yield "Conv, 1-D, uneven pads", "[0, 2]", _model("Conv", [1, 3, 12], [_filters(4, 3, 3)], pads=[0, 2])
    model = _model("Conv", [1, 3, 6, 7, 8], [_filters(4, 3, 2, 2, 2)], auto_pad="SAME_UPPER")
    yield "Conv, 3-D, auto_pad", "kernel 2", model


def _transposed() -> Iterator[tuple[str, str, onnx.ModelProto]]:
    filters = _filters(3, 4, 3, 3)
    for mode in ("SAME_UPPER", "SAME_LOWER"):
        model = _model("ConvTranspose", [1, 3, 7, 7], [filters], auto_pad=mode, strides=[2, 2])
        yield "ConvTranspose auto_pad", mode, model
    model = _model(
        "ConvTranspose", [1, 3, 7, 7], [filters], output_shape=[14, 14], strides=[2, 2], auto_pad="SAME_UPPER"
    )
    yield "ConvTranspose output_shape", "[14, 14]", model
    for pads in ([0, 0, 1, 1], [1, 0, 0, 1]):
        model = _model("ConvTranspose", [1, 3, 7, 7], [filters], pads=pads, strides=[2, 2])
        yield "ConvTranspose with uneven pads", str(pads), model


def _pools() -> Iterator[tuple[str, str, onnx.ModelProto]]:
    for op_type in ("MaxPool", "AveragePool"):
        for mode in ("SAME_UPPER", "SAME_LOWER"):
            for size, kernel, stride in ((12, 3, 2), (11, 2, 1)):
                told = {"auto_pad": mode, "kernel_shape": [kernel] * 2, "strides": [stride] * 2}
                model = _model(op_type, [1, 3, size, size], **told)
                yield f"{op_type} auto_pad {mode}", f"kernel {kernel} stride {stride} size {size}", model
        for pads in ([0, 0, 1, 1], [1, 1, 0, 0]):
            model = _model(op_type, [1, 3, 12, 12], kernel_shape=[3, 3], strides=[2, 2], pads=pads)
            yield f"{op_type} with uneven pads", str(pads), model
        model = _model(op_type, [1, 3, 11, 11], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, pads=[1, 1, 0, 0])
        yield "Pools, ceil_mode", f"{op_type} pads", model
        yield (
            "Pools, ceil_mode",
            op_type,
            _model(op_type, [1, 3, 8, 8], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        )
    for pads in ([1, 1, 1, 1], [0, 0, 1, 1]):
        told = {"kernel_shape": [3, 3], "strides": [2, 2], "count_include_pad": 1}
        yield "AveragePool count_include_pad", str(pads), _model("AveragePool", [1, 3, 12, 12], pads=pads, **told)
    model = _model("MaxPool", [1, 3, 11, 11], auto_pad="SAME_UPPER", kernel_shape=[3, 3], dilations=[2, 2])
    yield "MaxPool auto_pad with dilations", "SAME_UPPER", model


def _pads() -> Iterator[tuple[str, str, onnx.ModelProto]]:
    for mode in ("constant", "reflect", "edge"):
        amounts = np.array([0, 0, 1, 2, 0, 0, 2, 1], np.int64)
        yield f"Pad {mode}", "H and W", _model("Pad", [1, 3, 7, 8], [amounts], mode=mode)
    yield "Pad without mode", "H and W", _model("Pad", [1, 3, 7, 8], [np.array([0, 0, 1, 2, 0, 0, 2, 1], np.int64)])
    yield (
        "Pad wrap",
        "H and W",
        _model("Pad", [1, 3, 7, 8], [np.array([0, 0, 1, 2, 0, 0, 2, 1], np.int64)], 19, mode="wrap"),
    )
    yield "Pad negative", "H and W", _model("Pad", [1, 3, 7, 8], [np.array([0, 0, -1, 2, 0, 0, 2, -1], np.int64)])
    axes = [np.array([1, 2, 2, 1], np.int64), None, np.array([2, 3], np.int64)]
    yield "Pad, input axes", "H and W", _model("Pad", [1, 3, 7, 8], axes, 18)
    yield "Pad of channels", "C", _model("Pad", [1, 3, 7, 8], [np.array([0, 1, 0, 0, 0, 2, 0, 0], np.int64)])


def _nearest() -> Iterator[tuple[str, str, onnx.ModelProto]]:
    for coordinates, rounding in PAIRS:
        for shape, sizes in (([1, 2, 6, 5], [1, 2, 12, 10]), ([1, 2, 6, 5], [1, 2, 9, 8])):
            model = _model(
                "Resize",
                shape,
                [None, None, np.array(sizes, np.int64)],
                mode="nearest",
                coordinate_transformation_mode=coordinates,
                nearest_mode=rounding,
            )
            whole = "doubled" if sizes[2] == 12 else "other factor"
            yield f"Resize nearest, {coordinates}/{rounding}", whole, model


def _resizes() -> Iterator[tuple[str, str, onnx.ModelProto]]:
    def sized(sizes: Sequence[int], opset: int = 18, **attributes: Any) -> onnx.ModelProto:
        return _model("Resize", [1, 2, 6, 5], [None, None, np.array(sizes, np.int64)], opset, **attributes)

    for coordinates in ("half_pixel", "asymmetric", "align_corners"):
        for what, sizes in (("doubled", [1, 2, 12, 10]), ("smaller", [1, 2, 4, 3])):
            told = {"mode": "linear", "coordinate_transformation_mode": coordinates}
            yield f"Resize linear, {coordinates}", what, sized(sizes, **told)
    for coefficient in (-0.75, -0.5):
        yield (
            f"Resize cubic, {coefficient}",
            "other factor",
            sized([1, 2, 9, 8], mode="cubic", cubic_coeff_a=coefficient),
        )
    yield (
        "Resize cubic of TensorFlow",
        "exclude_outside",
        sized([1, 2, 9, 8], mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1),
    )
    for mode in ("linear", "cubic"):
        yield "Resize, antialias", mode, sized([1, 2, 3, 3], mode=mode, antialias=1)
    for mode in ("nearest", "linear"):
        scales = np.array([1, 1, 1.6, 2.3], np.float32)
        told = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        yield "Resize by inexact scales", mode, _model("Resize", [1, 2, 6, 5], [None, scales], 18, **told)
        empty = [np.empty(0, np.float32), np.empty(0, np.float32), np.array([1, 2, 12, 10], np.int64)]
        yield "Resize, empty scales beside sizes", mode, _model("Resize", [1, 2, 6, 5], empty, 13, **told)
        yield (
            "Resize of opset 10",
            mode,
            _model("Resize", [1, 2, 6, 5], [np.array([1, 1, 2, 2], np.float32)], 10, mode=mode),
        )
        yield "Upsample", mode, _model("Upsample", [1, 2, 6, 5], [np.array([1, 1, 2, 2], np.float32)], 9, mode=mode)
        yield "Resize of channels last", mode, sized([1, 4, 12, 5], **told)
    corners = np.array([0, 0, 0.1, 0.2, 1, 1, 0.8, 0.9], np.float32)
    crop = [corners, None, np.array([1, 2, 8, 7], np.int64)]
    told = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
    yield "Resize of a region", "linear", _model("Resize", [1, 2, 6, 5], crop, 18, **told)
    yield (
        "Resize, keep_aspect_ratio",
        "linear",
        sized([1, 2, 12, 12], mode="linear", keep_aspect_ratio_policy="not_larger"),
    )
    axes = [None, None, np.array([12, 10], np.int64)]
    yield "Resize, attribute axes", "linear", _model("Resize", [1, 2, 6, 5], axes, 18, mode="linear", axes=[2, 3])
    volume = [None, None, np.array([1, 2, 6, 8, 10], np.int64)]
    yield "Resize, 3-D", "linear", _model("Resize", [1, 2, 3, 4, 5], volume, 18, mode="linear")
