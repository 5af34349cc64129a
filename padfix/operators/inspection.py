"""The windowed and resampling operators of an ONNX model, as ``padfix inspect`` lists them."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from padfix.files.model import Model
from padfix.geometry.padding import in_onnx_order, known_same_pads
from padfix.graph.scopes import Scope, label
from padfix.operators.inference import infer
from padfix.operators.reading import Reading, operator_of, read, read_attributes_of
from padfix.operators.resample import Resample
from padfix.operators.table import Family
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Window
from padfix.operators.written import SAME, Written
from padfix.results import OpRecord

CHANNELS_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
CHANNELS_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


def inspect_model(model: Model) -> list[OpRecord]:
    """Return a record of every windowed or resampling operator of an ONNX model, bodies and functions included."""
    return [
        _record(scope, index, node, reading)
        for scope in infer(model)
        for index, node in enumerate(scope.nodes)
        if (reading := read(scope, node)) is not None
    ]


def explicit(pads: Sequence[int]) -> str:
    """Return how explicit pads are written in a record, in ONNX order."""
    return "explicit " + ",".join(map(str, pads))


def _record(scope: Scope, index: int, node: NodeProto, reading: Reading) -> OpRecord:
    name = label(node, index)
    operator = operator_of(node)
    if operator is not None and operator.family is Family.RESAMPLE:
        shape = reading.shape if isinstance(reading, Resample) else None
        layout = CHANNELS_FIRST.get(len(shape) - 2, "") if shape is not None else ""
        return OpRecord(name, node.op_type, scope.path, None, None, None, "", None, layout)
    written = read_attributes_of(scope, node)
    if not isinstance(reading, Window | TransposedWindow):
        kernel = written.kernel_shape
        pads: tuple[int | None, ...] | None = None if written.references else written.pads
        if kernel and written.references & {"auto_pad", "pads"}:
            pads = (None,) * 2 * len(kernel)
        said = _said(written, len(kernel or ()))
        return OpRecord(name, node.op_type, scope.path, kernel, written.strides, written.dilations, said, pads, "")
    layouts = CHANNELS_LAST if isinstance(reading, Window) and reading.channels_last else CHANNELS_FIRST
    return OpRecord(
        name,
        node.op_type,
        scope.path,
        reading.kernel,
        reading.strides,
        reading.dilations,
        _said(written, reading.rank),
        resolved_pads(reading),
        layouts.get(reading.rank, ""),
    )


def resolved_pads(window: Window | TransposedWindow) -> tuple[int | None, ...]:
    """Return what the padding comes to, in ONNX order; None where it differs from length to length."""
    if isinstance(window, TransposedWindow):
        axes = [window.axis(axis) for axis in range(window.rank)]
        return in_onnx_order([None if axis is None else (axis.begin, axis.end) for axis in axes])
    if window.auto_pad in SAME:
        sizes = [size if isinstance(size, int) else None for size in window.sizes]
        upper = window.auto_pad == "SAME_UPPER"
        return known_same_pads(sizes, window.kernel, window.strides, window.dilations, upper=upper)
    return in_onnx_order(window.explicit_pads)


def _said(written: Written, rank: int) -> str:
    """Return the padding as the model says it."""
    if written.references & {"auto_pad", "pads"}:
        return "given by the caller"
    parts = [written.mode]
    if written.output_shape:
        parts.append("output_shape " + ",".join(map(str, written.output_shape)))
    if not any(parts):
        return explicit(written.pads if written.pads is not None else (0,) * 2 * rank)
    return " ".join(part for part in parts if part)
