"""The windowed and resampling operators of a TensorFlow Lite file, with its own names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from padfix.results import OpRecord
from padfix.sources import records
from padfix.sources.records import Shape
from padfix.sources.tflite_schema import declared_shape, operators, read

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
    model = read(path)
    found = []
    for number, graph in enumerate(model.subgraphs):
        scope = "main" if number == 0 else f"subgraph::{(graph.name or b'').decode('utf-8', 'replace') or number}"
        for operator, kind in operators(model, graph):
            if kind in _RESIZES:
                found.append(_resize(graph, operator, kind, scope))
            elif kind in _POOLS or kind in _WEIGHTS:
                found.append(_window(graph, operator, kind, scope))
    return found


def _resize(graph: Any, operator: Any, kind: str, scope: str) -> OpRecord:
    options = operator.builtinOptions
    align, half = bool(options.alignCorners), bool(options.halfPixelCenters)
    return records.resize(
        *(_name(graph, operator), kind, scope),
        mode=_RESIZES[kind],
        coordinates=records.coordinates(align_corners=align, half_pixel_centers=half),
        sizes=records.spatial(declared_shape(graph.tensors[operator.outputs[0]]), 1, 2),
    )


def _name(graph: Any, operator: Any) -> str:
    return (graph.tensors[operator.outputs[0]].name or b"").decode("utf-8", "replace")


def _window(graph: Any, operator: Any, kind: str, scope: str) -> OpRecord:
    options = operator.builtinOptions
    letters = "DHW" if kind.startswith("CONV_3D") else "HW"

    def each(name: str) -> tuple[int, ...]:
        return tuple(int(getattr(options, name.replace("?", letter), 1)) for letter in letters)

    if kind in _POOLS:
        kernel: Shape = (int(options.filterHeight), int(options.filterWidth))
    else:
        weights = declared_shape(graph.tensors[operator.inputs[_WEIGHTS[kind]]])
        kernel = records.spatial(weights, 0 if letters == "DHW" else 1, len(letters))
    # SAME of a transposed convolution is SAME of the convolution whose data it computes: its result has that size.
    sized = declared_shape(graph.tensors[operator.outputs[0] if kind in _DATA_IS_THIRD else operator.inputs[0]])
    return records.window(
        *(_name(graph, operator), kind, scope),
        (kernel, each("stride?"), each("dilation?Factor")),
        "SAME" if options.padding == _SAME else "VALID",
        records.spatial(sized, 1, len(letters)),
        f"N{letters}C",
    )
