"""The windowed and resampling operators of an ONNX model, as ``padfix inspect`` lists them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from onnx import NodeProto

from padfix.files.model import Model
from padfix.geometry.padding import in_onnx_order, known_same_pads
from padfix.graph import attributes
from padfix.graph.scopes import Scope, label
from padfix.operators.constant_pad import MOST_PADS, local_producer, read_constant_pad
from padfix.operators.inference import infer
from padfix.operators.reading import Reading, operator_of, read, read_attributes_of
from padfix.operators.resample import Resample
from padfix.operators.table import Family
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Window
from padfix.operators.written import SAME, Written
from padfix.results import ExplicitWindows, OpRecord

CHANNELS_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
EXPLICIT = "explicit"
CHANNELS_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


def inspect_model(model: Model) -> list[OpRecord]:
    """Return a record of every windowed or resampling operator of an ONNX model, bodies and functions included."""
    return [
        _record(scope, index, node, reading)
        for scope in infer(model)
        for index, node in enumerate(scope.nodes)
        if (reading := read(scope, node)) is not None
    ]


def explicit_windows(model: Model) -> ExplicitWindows:
    """Return how many windows of an ONNX model have their pads written out."""
    windows = [each for each in inspect_model(model) if each.kernel and each.padding.startswith(EXPLICIT)]
    halves = [(each.pads[: len(each.pads) // 2], each.pads[len(each.pads) // 2 :]) for each in windows if each.pads]
    return ExplicitWindows(len(windows), sum(begins != ends for begins, ends in halves))


def explicit(pads: Sequence[int]) -> str:
    """Return how explicit pads are written in a record, in ONNX order."""
    return f"{EXPLICIT} {','.join(map(str, pads))}"


def _record(scope: Scope, index: int, node: NodeProto, reading: Reading) -> OpRecord:
    name = label(node, index)
    operator = operator_of(node)
    if operator is not None and operator.family is Family.RESAMPLE:
        nothing = OpRecord(name, node.op_type, scope.path, None, None, None, "", None, "")
        return _resample(nothing, reading) if isinstance(reading, Resample) else nothing
    written = read_attributes_of(scope, node)
    if not isinstance(reading, Window | TransposedWindow):
        kernel = written.kernel_shape
        pads: tuple[int | None, ...] | None = None if written.references else written.pads
        if kernel and written.references & {"auto_pad", "pads"}:
            pads = (None,) * 2 * len(kernel)
        said = _said(written, len(kernel or ()))
        return OpRecord(name, node.op_type, scope.path, kernel, written.strides, written.dilations, said, pads, "")
    layouts = CHANNELS_LAST if isinstance(reading, Window) and reading.channels_last else CHANNELS_FIRST
    before = _pads_before(scope, node, reading) if isinstance(reading, Window) else None
    own = resolved_pads(reading)
    return OpRecord(
        name,
        node.op_type,
        scope.path,
        reading.kernel,
        reading.strides,
        reading.dilations,
        _said(written, reading.rank),
        own if before is None else tuple(_sum(*each) for each in zip(own, before, strict=True)),
        layouts.get(reading.rank, ""),
        before,
    )


def _resample(record: OpRecord, resize: Resample) -> OpRecord:
    """Return the record with what a resize says; what is only known at run time is None axis by axis."""
    shape = resize.shape
    by_sizes = resize.scales is None and not resize.scales_name
    count = len(resize.axes) if resize.axes is not None else len(shape) if shape is not None else 0
    unknown = (None,) * count
    return dataclasses.replace(
        record,
        layout=CHANNELS_FIRST.get(len(shape) - 2, "") if shape is not None else "",
        mode=resize.mode,
        coordinates=resize.coordinates,
        rounding=resize.nearest_mode if resize.mode == "nearest" else "",
        sizes=(resize.sizes or unknown) if by_sizes else None,
        scales=None if by_sizes else (resize.scales or unknown),
    )


def _pads_before(scope: Scope, node: NodeProto, window: Window) -> tuple[int | None, ...] | None:
    """Return what Pads add to the spatial axes before a window reads them; None where there is no Pad."""
    rank = window.rank + 2
    spatial = slice(window.leading, window.leading + window.rank)
    total: tuple[int | None, ...] | None = None
    name = node.input[0]
    for _ in range(MOST_PADS):
        pad = local_producer(scope, name)
        if pad is None or pad.op_type != "Pad" or attributes.text(pad, "mode", "constant") not in ("constant", ""):
            break
        known = read_constant_pad(scope, pad, rank)
        added = (None,) * 2 * window.rank if known is None else in_onnx_order(known.pairs[spatial])
        total = added if total is None else tuple(_sum(*each) for each in zip(total, added, strict=True))
        name = pad.input[0]
    return total


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


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
