"""The windowed and resampling operators of a TensorFlow Lite file, with its own names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from padfix.geometry.padding import known_same_pads
from padfix.results import OpRecord
from padfix.sources import tflite_graph
from padfix.sources.resize_words import coordinates

Shape = tuple[int | None, ...]

_WEIGHTS = {"CONV_2D": 1, "DEPTHWISE_CONV_2D": 1, "TRANSPOSE_CONV": 1, "CONV_3D": 1, "CONV_3D_TRANSPOSE": 1}
_POOLS = frozenset({"AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"})
_RESIZES = {"RESIZE_BILINEAR": "bilinear", "RESIZE_NEAREST_NEIGHBOR": "nearest"}
_DATA_IS_THIRD = frozenset({"TRANSPOSE_CONV", "CONV_3D_TRANSPOSE"})
_SAME = 0


def inspect_tflite(path: Path) -> list[OpRecord]:
    """Return a record of every windowed or resampling operator, in every subgraph.

    Raises:
        SourceError: The file is damaged.
    """
    model = tflite_graph.read(path)
    records = []
    for number, graph in enumerate(model.subgraphs):
        scope = "main" if number == 0 else f"subgraph::{(graph.name or b'').decode('utf-8', 'replace') or number}"
        names = tflite_graph.operators(model, graph)
        for operator, kind in zip(graph.operators or (), names, strict=True):
            if kind in _RESIZES:
                records.append(_resize(graph, operator, kind, scope))
            elif kind in _POOLS or kind in _WEIGHTS:
                records.append(_window(graph, operator, kind, scope))
    return records


def _resize(graph: Any, operator: Any, kind: str, scope: str) -> OpRecord:
    options = operator.builtinOptions
    return OpRecord(
        *(_name(graph, operator), kind, scope, None, None, None, "", None, "NHWC"),
        mode=_RESIZES[kind],
        coordinates=coordinates(
            align_corners=bool(options.alignCorners), half_pixel_centers=bool(options.halfPixelCenters)
        ),
        sizes=_spatial(_lengths(graph.tensors[operator.outputs[0]]), "HW", 1),
    )


def _name(graph: Any, operator: Any) -> str:
    return (graph.tensors[operator.outputs[0]].name or b"").decode("utf-8", "replace")


def _lengths(tensor: Any) -> Shape | None:
    shape = tensor.shapeSignature if tensor.shapeSignature is not None else tensor.shape
    return None if shape is None else tuple(int(length) if length >= 0 else None for length in shape)


def _window(graph: Any, operator: Any, kind: str, scope: str) -> OpRecord:
    options = operator.builtinOptions
    letters = "DHW" if kind.startswith("CONV_3D") else "HW"

    def each(name: str) -> tuple[int, ...]:
        return tuple(int(getattr(options, name.replace("?", letter), 1)) for letter in letters)

    kernel: Shape
    if kind in _POOLS:
        kernel = (int(options.filterHeight), int(options.filterWidth))
    else:
        shape = _lengths(graph.tensors[operator.inputs[_WEIGHTS[kind]]])
        kernel = _spatial(shape, letters, 0 if letters == "DHW" else 1)
    strides, dilations = each("stride?"), each("dilation?Factor")
    # SAME of a transposed convolution is SAME of the convolution whose data it computes: its result has that size.
    sized = operator.outputs[0] if kind in _DATA_IS_THIRD else operator.inputs[0]
    sizes = _spatial(_lengths(graph.tensors[sized]), letters, 1)
    written = "SAME" if options.padding == _SAME else "VALID"
    pads: Shape = (0,) * 2 * len(letters)
    if written == "SAME":
        pads = known_same_pads(sizes, kernel, strides, dilations, upper=True)
    return OpRecord(_name(graph, operator), kind, scope, kernel, strides, dilations, written, pads, f"N{letters}C")


def _spatial(shape: Sequence[int | None] | None, letters: str, start: int) -> Shape:
    if shape is None or len(shape) != len(letters) + 2:
        return (None,) * len(letters)
    return tuple(shape[start : start + len(letters)])
