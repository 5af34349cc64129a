"""The windowed and resampling operators of a TensorFlow graph, with TensorFlow's own names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from padfix.errors import UsageError
from padfix.files.detection import Kind
from padfix.results import OpRecord
from padfix.sources import load_graph, records, tensorflow_runtime
from padfix.sources.executor import lengths_of
from padfix.sources.records import Shape
from padfix.sources.source import SourceOptions

ShapeOf = Callable[[str], Shape | None]
"""The static shape of a tensor ``node:port``, None when the rank is unknown."""

# Operator -> position of the kernel among the inputs; its first axes are the spatial ones.
_CONVOLUTIONS = {
    "Conv2D": 1,
    "Conv3D": 1,
    "DepthwiseConv2dNative": 1,
    "_FusedConv2D": 1,
    "_FusedDepthwiseConv2dNative": 1,
    "FusedPadConv2D": 2,
    "FusedResizeAndPadConv2D": 3,
    "QuantizedConv2D": 1,
    "QuantizedDepthwiseConv2D": 1,
    "Dilation2D": 1,
}
_TRANSPOSED = {
    "Conv2DBackpropInput": 1,
    "Conv3DBackpropInput": 1,
    "Conv3DBackpropInputV2": 1,
    "DepthwiseConv2dNativeBackpropInput": 1,
}
_POOLS = frozenset(
    {
        "AvgPool",
        "AvgPool3D",
        "ExtractImagePatches",
        "ExtractVolumePatches",
        "MaxPool",
        "MaxPool3D",
        "MaxPoolV2",
        "MaxPoolWithArgmax",
        "QuantizedAvgPool",
        "QuantizedMaxPool",
    }
)
# Operator -> how it interpolates; the other two say so themselves.
_MODES = {
    "QuantizedResizeBilinear": "bilinear",
    "ResizeArea": "area",
    "ResizeBicubic": "bicubic",
    "ResizeBilinear": "bilinear",
    "ResizeNearestNeighbor": "nearest",
}
_RESIZES = frozenset({*_MODES, "CropAndResize", "ScaleAndTranslate"})
# Several operators call the same attribute by other names.
_KERNELS = ("ksize", "ksizes")
_DILATIONS = ("dilations", "rates")


def inspect_tensorflow(path: Path, options: SourceOptions, kind: Kind) -> list[OpRecord]:
    """Return a record of every windowed or resampling operator of a TensorFlow or Keras file.

    Raises:
        SourceError: The file is damaged.
        UsageError: The options name something that the model does not have.
        MissingDependencyError: TensorFlow is not installed.
    """
    tensorflow = tensorflow_runtime.load("a TensorFlow model")
    with tensorflow_runtime.no_surprise(path):
        if kind == "tflite":
            from padfix.sources.tflite_inspect import inspect_tflite

            if options.shapes:
                raise UsageError("--shape is not for the table of a TensorFlow Lite file, which says its own sizes.")
            return inspect_tflite(path)
        graph_def = _graph_def(tensorflow, path, options, kind)
        with tensorflow_runtime.quiet():
            shapes = _static_shapes(tensorflow, graph_def)
        found = _records(graph_def.node, "main", lambda name: shapes.get(_tensor(name)))
        for function in graph_def.library.function:
            scope = f"function::{function.signature.name}"
            found.extend(_records(function.node_def, scope, lambda name: None))
        return found


def _graph_def(tensorflow: Any, path: Path, options: SourceOptions, kind: Kind) -> Any:
    """Return the graph of the file: as it stands when frozen, else the inference graph with its weights frozen in.

    The sizes that the user fixed are in its placeholders.
    """
    from padfix.sources.conversion import FrozenGraph, Port, pin_shapes

    if kind == "frozen_graph":
        graph_def = tensorflow_runtime.read_message(path, tensorflow.compat.v1.GraphDef())
        fed = [node.name for node in graph_def.node if node.op in ("Placeholder", "PlaceholderWithDefault")]
        frozen = FrozenGraph(graph_def, [Port(f"{name}:0", name) for name in fed], [])
    else:
        frozen = load_graph(tensorflow, path, options, kind)[0].frozen
    pin_shapes(tensorflow, frozen, options.shapes)
    return frozen.graph_def


def _static_shapes(tensorflow: Any, graph_def: Any) -> dict[str, Shape]:
    graph = tensorflow.Graph()
    try:
        with graph.as_default():
            tensorflow.import_graph_def(graph_def, name="")
    except Exception:
        # An operator that this TensorFlow does not know: the table is still worth having, only without sizes.
        return {}
    return {
        tensor.name: shape
        for operation in graph.get_operations()
        for tensor in operation.outputs
        if (shape := lengths_of(tensor.shape)) is not None
    }


def _tensor(reference: str) -> str:
    return reference if ":" in reference else f"{reference}:0"


def _records(nodes: Sequence[Any], scope: str, shape_of: ShapeOf) -> list[OpRecord]:
    found = []
    for node in nodes:
        if node.op in _RESIZES:
            found.append(_resize(node, scope, shape_of))
        elif node.op in _CONVOLUTIONS or node.op in _TRANSPOSED or node.op in _POOLS:
            found.append(_window(node, scope, shape_of))
    return found


def _resize(node: Any, scope: str, shape_of: ShapeOf) -> OpRecord:
    has_flags = node.op in _MODES
    align, half = node.attr["align_corners"].b, node.attr["half_pixel_centers"].b
    return records.resize(
        *(node.name, node.op, scope),
        mode=_MODES.get(node.op) or node.attr["method" if node.op == "CropAndResize" else "kernel_type"].s.decode(),
        coordinates=records.coordinates(align_corners=align, half_pixel_centers=half) if has_flags else "",
        sizes=records.spatial(shape_of(f"{node.name}:0"), 1, 2),
    )


def _window(node: Any, scope: str, shape_of: ShapeOf) -> OpRecord:
    inputs = [reference for reference in node.input if not reference.startswith("^")]
    count = 3 if "3D" in node.op or "Volume" in node.op else 2
    written = node.attr["data_format"].s.decode() if "data_format" in node.attr else ""
    layout = written or ("NDHWC" if count == 3 else "NHWC")
    first = layout.index("D" if count == 3 else "H")
    spatial = slice(first, first + count)
    strides = _integers(node, "strides")[spatial] or (1,) * count
    dilations = _integers(node, *_DILATIONS)[spatial] or (1,) * count
    # SAME of a gradient is SAME of the convolution whose input it computes, so the size is that of its output.
    sized = shape_of(f"{node.name}:0") if node.op in _TRANSPOSED else shape_of(inputs[0]) if inputs else None
    pairs = _integers(node, "explicit_paddings")
    return records.window(
        *(node.name, node.op, scope),
        (_kernel(node, inputs, spatial, count, shape_of), strides, dilations),
        node.attr["padding"].s.decode() if "padding" in node.attr else "",
        records.spatial(sized, first, count),
        layout,
        (*pairs[::2][spatial], *pairs[1::2][spatial]),
    )


def _kernel(node: Any, inputs: Sequence[str], spatial: slice, count: int, shape_of: ShapeOf) -> Shape:
    written = _integers(node, *_KERNELS)
    if written:
        return written[spatial]
    position = _CONVOLUTIONS.get(node.op, _TRANSPOSED.get(node.op))
    shape = shape_of(inputs[position]) if position is not None and position < len(inputs) else None
    return shape[:count] if shape is not None else (None,) * count


def _integers(node: Any, *names: str) -> tuple[int, ...]:
    """Return the first of the attributes that is there, one entry for each axis of the data."""
    for name in names:
        if name in node.attr:
            return tuple(node.attr[name].list.i)
    return ()
