"""The windowed and resampling operators of a model, as ``padfix inspect`` lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx import NodeProto

from padfix.files.model import Model
from padfix.geometry import padding, transposed
from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope, label, normal_domain
from padfix.graph.shapes import infer
from padfix.results import OpRecord

CHANNELS_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
CHANNELS_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


@dataclass(frozen=True)
class _Kind:
    """What one operator type is.

    Attributes:
        family: ``"window"``, ``"transposed"`` or ``"resample"``.
        weights: Position of the kernel among the inputs; None for pools.
        channels_last: Whether the layout is always channels last.
    """

    family: str
    weights: int | None = None
    channels_last: bool = False


KINDS: dict[tuple[str, str], _Kind] = {
    ("", "Conv"): _Kind("window", 1),
    ("", "ConvInteger"): _Kind("window", 1),
    ("", "QLinearConv"): _Kind("window", 3),
    ("", "DeformConv"): _Kind("window", 1),
    ("", "ConvTranspose"): _Kind("transposed", 1),
    ("", "MaxPool"): _Kind("window"),
    ("", "AveragePool"): _Kind("window"),
    ("", "LpPool"): _Kind("window"),
    ("", "MaxUnpool"): _Kind("window"),
    ("", "Resize"): _Kind("resample"),
    ("", "Upsample"): _Kind("resample"),
    ("com.microsoft", "FusedConv"): _Kind("window", 1),
    ("com.microsoft", "QLinearConv"): _Kind("window", 3),
    ("com.microsoft", "QLinearAveragePool"): _Kind("window"),
    ("com.microsoft", "NhwcConv"): _Kind("window", 1, channels_last=True),
    ("com.microsoft", "NhwcFusedConv"): _Kind("window", 1, channels_last=True),
    ("com.microsoft", "NhwcMaxPool"): _Kind("window", channels_last=True),
}


def inspect_path(path: Path, *, trust: bool = False) -> list[OpRecord]:
    """Return a record of every windowed or resampling operator of a TensorFlow, Keras or ONNX file.

    A TensorFlow source is listed with its own operators and names, before any conversion.

    ``trust``: whether code that the source itself holds may run.

    Raises:
        PadfixError: The file can't be read.
    """
    from padfix.files.detection import detect
    from padfix.sources import SourceOptions

    if detect(path) == "onnx":
        from padfix.sources.onnx_file import open_onnx

        return inspect_model(open_onnx(path))
    from padfix.sources.tf_inspect import inspect_tensorflow

    return inspect_tensorflow(path, SourceOptions(trust=trust))


def inspect_model(model: Model) -> list[OpRecord]:
    """Return a record of every windowed or resampling operator of an ONNX model, bodies and functions included."""
    records = []
    for scope in infer(model):
        for index, node in enumerate(scope.nodes):
            kind = KINDS.get((normal_domain(node.domain), node.op_type))
            if kind is not None:
                records.append(_record(scope, index, node, kind))
    return records


def record_of(scope: Scope, index: int, node: NodeProto) -> tuple[OpRecord, tuple[int | None, ...]] | None:
    """Return the record of a windowed node and the lengths of its input's spatial axes; None for any other node."""
    kind = KINDS.get((normal_domain(node.domain), node.op_type))
    if kind is None or kind.family == "resample":
        return None
    record = _record(scope, index, node, kind)
    data = scope.type_of(node.input[0]) if node.input else None
    count = len(record.kernel or ())
    last = record.layout in CHANNELS_LAST.values()
    return record, _sizes(data.shape if data is not None else None, count, channels_last=last)


def same_pads(
    sizes: Sequence[int | None],
    kernel: Sequence[int | None],
    strides: Sequence[int],
    dilations: Sequence[int],
    *,
    upper: bool,
) -> tuple[int | None, ...]:
    """Return SAME pads in ONNX order (begins, then ends); None on an axis whose pads can't be known.

    An axis of unknown size is known all the same when its pads are the same for every size.
    """
    pairs: list[tuple[int, int] | None] = []
    for size, length, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        if length is None or stride < 1:
            pairs.append(None)
        elif size is None:
            pairs.append(padding.residue_independent_padding(length, stride, dilation, upper=upper))
        else:
            pairs.append(padding.same_padding(size, length, stride, dilation, upper=upper))
    return flat(pairs)


def flat(pairs: Sequence[tuple[int, int] | None]) -> tuple[int | None, ...]:
    """Return (begin, end) pairs in ONNX order."""
    return tuple(pair and pair[0] for pair in pairs) + tuple(pair and pair[1] for pair in pairs)


def explicit(pads: Sequence[int]) -> str:
    """Return how explicit pads are written in a record, in ONNX order."""
    return "explicit " + ",".join(map(str, pads))


def _record(scope: Scope, index: int, node: NodeProto, kind: _Kind) -> OpRecord:
    name = label(node, index)
    data = scope.type_of(node.input[0]) if node.input else None
    shape = data.shape if data is not None else None
    if kind.family == "resample":
        layout = CHANNELS_FIRST.get(len(shape) - 2, "") if shape is not None else ""
        return OpRecord(name, node.op_type, scope.path, None, None, None, "", None, layout)

    channels_last = kind.channels_last or attributes.integer(node, "channels_last", 0) == 1
    kernel = _kernel(scope, node, kind)
    written = attributes.integers(node, "strides"), attributes.integers(node, "dilations")
    count = _spatial_count(kernel, shape, *written, attributes.integers(node, "pads"))
    if kernel is None and count is not None:
        kernel = (None,) * count
    if kernel is None or count is None:
        return OpRecord(name, node.op_type, scope.path, None, None, None, _written(node, None), None, "")
    strides, dilations = (_filled(values, count) for values in written)
    sizes = _sizes(shape, count, channels_last=channels_last)
    resolve = _transposed_pads if kind.family == "transposed" else _window_pads
    return OpRecord(
        name,
        node.op_type,
        scope.path,
        kernel,
        strides,
        dilations,
        _written(node, count),
        resolve(node, sizes, kernel, strides, dilations),
        (CHANNELS_LAST if channels_last else CHANNELS_FIRST).get(count, ""),
    )


def _spatial_count(
    kernel: Sequence[int | None] | None, shape: Sequence[Dimension] | None, *lists: Sequence[int] | None
) -> int | None:
    if kernel is not None:
        return len(kernel)
    if shape is not None and len(shape) > 2:
        return len(shape) - 2
    strides, dilations, pads = lists
    if strides or dilations:
        return len(strides or dilations or ())
    return len(pads) // 2 if pads else None


def _filled(values: Sequence[int] | None, count: int) -> tuple[int, ...]:
    return tuple(values) if values is not None and len(values) == count else (1,) * count


def _kernel(scope: Scope, node: NodeProto, kind: _Kind) -> tuple[int | None, ...] | None:
    written = attributes.integers(node, "kernel_shape")
    if written:
        return tuple(written)
    if kind.weights is None or kind.weights >= len(node.input):
        return None
    known = scope.type_of(node.input[kind.weights])
    if known is None or known.shape is None or len(known.shape) < 3:
        return None
    return tuple(length if isinstance(length, int) else None for length in known.shape[2:])


def _sizes(shape: Sequence[Dimension] | None, count: int, *, channels_last: bool) -> tuple[int | None, ...]:
    if shape is None or len(shape) != count + 2:
        return (None,) * count
    spatial = shape[1:-1] if channels_last else shape[2:]
    return tuple(length if isinstance(length, int) else None for length in spatial)


def _automatic(node: NodeProto) -> str:
    """Return auto_pad, ``""`` for NOTSET."""
    written = attributes.text(node, "auto_pad")
    return "" if written == "NOTSET" else written


def _written(node: NodeProto, count: int | None) -> str:
    """Return the padding as the model says it."""
    if attributes.is_reference(node, "auto_pad") or attributes.is_reference(node, "pads"):
        return "given by the caller"
    parts = [_automatic(node)]
    if attributes.integers(node, "output_shape"):
        parts.append("output_shape " + ",".join(map(str, attributes.integers(node, "output_shape") or ())))
    if not any(parts):
        pads = attributes.integers(node, "pads")
        return explicit(pads if pads is not None else [0] * 2 * (count or 0))
    return " ".join(part for part in parts if part)


def _window_pads(
    node: NodeProto,
    sizes: Sequence[int | None],
    kernel: Sequence[int | None],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[int | None, ...]:
    unknown: tuple[int | None, ...] = (None,) * 2 * len(kernel)
    if attributes.is_reference(node, "auto_pad") or attributes.is_reference(node, "pads"):
        return unknown
    match _automatic(node):
        case "":
            pads = attributes.integers(node, "pads")
            return tuple(pads) if pads is not None else (0,) * 2 * len(kernel)
        case "VALID":
            return (0,) * 2 * len(kernel)
        case "SAME_UPPER" | "SAME_LOWER" as automatic:
            return same_pads(sizes, kernel, strides, dilations, upper=automatic == "SAME_UPPER")
    return unknown


def _transposed_pads(
    node: NodeProto,
    sizes: Sequence[int | None],
    kernel: Sequence[int | None],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[int | None, ...]:
    automatic = _automatic(node)
    upper = automatic == "SAME_UPPER"
    count = len(kernel)
    output_padding = attributes.integers(node, "output_padding") or [0] * count
    output_shape = (attributes.integers(node, "output_shape") or [])[-count:]
    if len(output_padding) != count or (output_shape and len(output_shape) != count):
        return (None,) * 2 * count
    if not output_shape and not automatic.startswith("SAME"):
        return _window_pads(node, sizes, kernel, strides, dilations)
    if attributes.is_reference(node, "auto_pad"):
        return (None,) * 2 * count
    pairs: list[tuple[int, int] | None] = []
    for axis, (size, length) in enumerate(zip(sizes, kernel, strict=True)):
        if length is None or (output_shape and size is None):
            pairs.append(None)
            continue
        arguments = (length, strides[axis], dilations[axis], output_padding[axis])
        if output_shape:
            assert size is not None
            known = transposed.output_shape_axis(size, output_shape[axis], *arguments, upper=upper)
        else:
            known = transposed.same_axis(*arguments, upper=upper)
        pairs.append((known.begin, known.end))
    return flat(pairs)
