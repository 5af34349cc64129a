"""TensorFlow Lite operators that tf2onnx 1.17 has no handler for, or another meaning; and 16-bit steps."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

from padfix.sources.tf_ops import (
    Handlers,
    fake_quant,
    handlers_of,
    ordering,
    ranges,
    shapes,
    slice_update,
    soft_suppression,
)
from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, count_up
from padfix.sources.tf_ops.windows import reduce

_STEPPED: dict[str, Callable[[Any], str]] = {
    "TFL_QUANTIZE": lambda node: str(node.output[0]),
    "TFL_DEQUANTIZE": lambda node: str(node.input[0]),
}
"""The tensor of steps of the operators between steps and floats."""

_WIDE: dict[int, np.iinfo[Any]] = {5: np.iinfo(np.int16), 7: np.iinfo(np.int64)}
"""Limits of data, and of biases, of models that are quantised to 16 bits, by ``TensorProto.DataType``."""

_LIMITS = {"TFL_RELU_N1_TO_1": (-1.0, 1.0), "TFL_RELU_0_TO_1": (0.0, 1.0)}


def handlers() -> Handlers:
    """Return a handler by operator, as tf2onnx's ``custom_op_handlers`` takes them."""
    found = handlers_of(_LIMITS, _clip, 8)
    for name, (convert, oldest) in _CONVERTED.items():
        found |= handlers_of([f"TFL_{name}"], convert, oldest)
    return found


@contextlib.contextmanager
def loops_as_written() -> Iterator[None]:
    """Let tf2onnx convert loops as the file has them: their lists whole, and sizes that grow left open.

    It makes a stack of what each turn writes to a list, whatever the index: a loop that ends before its list does would
    give a list that is too short. And it declares that in every turn the loop reads what has the shape of the first, so
    that a size is computed once and for all, and a loop that waits for it to grow has no end.
    """
    from tf2onnx import tfonnx
    from tf2onnx.tflite_handlers import tfl_controlflow

    wired = tfl_controlflow.wire_tfl_while_body

    def wire(body: Any, *told: Any) -> Any:
        declared = {name: body.get_shape(name) for name in body.input_names}
        made = wired(body, *told)
        for name, shape in declared.items():
            made.set_shape(name, _in_common(shape, made.get_shape(name)))
        return made

    with (
        mock.patch.object(tfonnx, "rewrite_tfl_scan_outputs", lambda graph, nodes: nodes),
        mock.patch.object(tfl_controlflow, "wire_tfl_while_body", wire),
    ):
        yield


def _in_common(one: list[int] | None, other: list[int] | None) -> list[int] | None:
    """Return the lengths of which two shapes say the same, the others open."""
    if one is None or other is None or len(one) != len(other):
        return None
    return [length if length == beside else -1 for length, beside in zip(one, other, strict=True)]


def rewriters(*, is_wide: bool) -> list[Any]:
    """Return what prepares a graph for the handlers, as tf2onnx's ``custom_rewriter`` takes it."""
    return [_fill_up_choices, *([_write_out_wide_steps] if is_wide else [])]


def _write_out_wide_steps(graph: Any, nodes: Sequence[Any]) -> Any:
    """Write the quantisation of a model of 16 bits, which ONNX has from opset 21 on, as arithmetic."""
    for node in list(nodes):
        stepped = _STEPPED.get(node.type, lambda node: None)(node)
        if stepped is None or "scale" not in node.attr:
            continue
        # Weights of 8 bits as well: ONNX Runtime's optimiser makes a product of them that quantises its data.
        limits = _WIDE.get(graph.get_dtype(stepped))
        if limits is None and not graph.get_node_by_output(stepped).is_const():
            continue
        builder = Builder(graph, node.name)
        data = builder.read(node.input[0])
        scale, zero = (np.asarray(node.get_attr_value(name), np.float32) for name in ("scale", "zero_point"))
        if scale.size > 1:
            along = [1] * graph.get_rank(stepped)
            along[node.get_attr_value("quantized_dimension", 0)] = -1
            scale, zero = scale.reshape(along), zero.reshape(along)
        if node.type == "TFL_DEQUANTIZE" or limits is None:
            result = (data.cast(np.float32) - zero) * scale
        else:
            steps = (data / scale).round_even() + zero
            result = steps.maximum(float(limits.min)).minimum(float(limits.max)).cast(limits.dtype)
        builder.finish(result, node)
    return graph.get_nodes()


def _fill_up_choices(graph: Any, nodes: Sequence[Any]) -> Any:
    """Let NON_MAX_SUPPRESSION_V5 give as many boxes as it may, which it always does here, and drop what it drops."""
    for node in nodes:
        if node.type == "NonMaxSuppressionV5":
            node.set_attr("pad_to_max_output_size", 1)
            node.set_attr(soft_suppression.DROPS, 1)
    return graph.get_nodes()


def _clip(builder: Builder, node: Any) -> Tensor:
    low, high = _LIMITS[node.type]
    return builder.read(node.input[0]).maximum(low).minimum(high)


def _gelu(builder: Builder, node: Any) -> Tensor:
    """``x/2 (1 + erf(x / sqrt 2))``, or with tanh in place of the error function where the model says so."""
    x = builder.read(node.input[0])
    if node.get_attr_value("approximate", 0):
        bent = builder.node("Tanh", [(x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)], x.dtype)
    else:
        bent = builder.node("Erf", [x * math.sqrt(0.5)], x.dtype)
    return x * 0.5 * (bent + 1.0)


def _as_tensorflow(kind: str, convert: Callable[[Builder, Any], Any]) -> Callable[[Builder, Any], Any]:
    """Return what converts an operator that is TensorFlow's ``kind`` in all but its name."""

    def converted(builder: Builder, node: Any) -> Any:
        node.type = kind
        return convert(builder, node)

    return converted


def _range(builder: Builder, node: Any) -> Tensor:
    """The numbers from the start on; TensorFlow Lite adds the step to each float for the next one."""
    start, limit, step = (builder.read(name).reshape([1]) for name in node.input)
    if start.dtype.kind != "f":
        return ranges.convert(builder, node)
    place = count_up(builder, ((limit - start) / step).absolute().ceil().cast(INTEGER).reshape([]), INTEGER)
    steps = builder.choose(place.equal(0), start, step)
    return builder.node("CumSum", [steps, builder.integers(0)], start.dtype)


def _embedding(builder: Builder, node: Any) -> Tensor:
    places, table = (builder.read(name) for name in node.input)
    return table.take(places)


def _looked_up(builder: Builder, node: Any) -> list[Tensor]:
    """The rows of a table whose keys are asked for, zeros where there is no such key, and which were found."""
    asked, keys, table = (builder.read(name) for name in node.input)
    rank = builder.rank_of(table.name, f"the table of {node.name}")
    hits = asked.reshape([-1, 1]).equal(keys.reshape([1, -1])).cast(np.int32)
    place = builder.node("ArgMax", [hits], INTEGER, {"axis": 1, "keepdims": 0})
    is_found = reduce("ReduceMax", hits, [1])
    beside = is_found.reshape([-1, *[1] * (rank - 1)]).equal(1)
    return [builder.choose(beside, table.take(place), 0), is_found.cast(np.uint8)]


def _dilated(builder: Builder, node: Any) -> Tensor:
    """A tensor with a value between the elements of each axis."""
    data, factors, value = (builder.read(name) for name in node.input)
    rank = builder.rank_of(data.name, f"what {node.name} widens")
    masks, laid = [], data
    for axis, size in enumerate(data.lengths(range(rank))):
        factor = factors.cast(INTEGER).take(axis)
        place = count_up(builder, ((size - 1) * factor + 1).maximum(0), INTEGER)
        masks.append((place / factor * factor).equal(place).reshape([-1, *[1] * (rank - 1 - axis)]))
        laid = laid.take(place / factor, axis)
    return builder.choose(functools.reduce(Tensor.__and__, masks), laid, value) if masks else data


_CONVERTED: dict[str, tuple[Callable[[Builder, Any], Any], int]] = {
    "GELU": (_gelu, 9),
    "COUNT": (_range, 11),
    "FAKE_QUANT": (_as_tensorflow("FakeQuantWithMinMaxArgs", fake_quant.convert), 8),
    "BUCKETIZE": (_as_tensorflow("Bucketize", ordering.convert), 13),
    "EMBEDDING_LOOKUP": (_embedding, 1),
    "HASHTABLE_LOOKUP": (_looked_up, 13),
    "BROADCAST_ARGS": (shapes.common_shape, 9),
    "DYNAMIC_UPDATE_SLICE": (slice_update.convert, 11),
    "DILATE": (_dilated, 11),
}
"""What converts an operator, by its name for tf2onnx, and the oldest opset for that."""
