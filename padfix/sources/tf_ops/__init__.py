"""tf2onnx handlers for what tf2onnx gets wrong or lacks.

They are handed to tf2onnx for one conversion, so nothing is registered for the rest of the process.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from unittest import mock

from padfix.errors import UnsupportedError
from padfix.sources.tf_ops import (
    arithmetic,
    batch_norm,
    bits,
    colours,
    combined_suppression,
    complex_pairs,
    conv_transpose,
    counts,
    crop_and_resize,
    ctc,
    diagonals,
    dilation,
    einsum,
    element_types,
    erfc,
    fake_quant,
    fused_windows,
    gathered_windows,
    gradients,
    linear_algebra,
    local_response,
    long_sums,
    normal_quantile,
    one_hot,
    ordering,
    patches,
    plain_text,
    projective,
    quantization,
    ragged_range,
    ragged_rows,
    ranges,
    recurrent_loops,
    reductions,
    repeats,
    resize_bilinear,
    resize_matrices,
    resize_nearest,
    roll,
    scatter,
    segments,
    select,
    sets,
    shapes,
    slice_update,
    slices,
    soft_suppression,
    sparse,
    split,
    stitch,
    strided_slices,
    strings,
    tables,
    unique,
    volumes,
)
from padfix.sources.tf_ops.tensor import Builder, Tensor

Handlers = dict[str, tuple[Any, list[Any]]]

_OLDEST_OPSET = {
    arithmetic: 10,
    bits: 9,
    colours: 10,
    combined_suppression: 13,
    conv_transpose: 1,
    counts: 16,
    crop_and_resize: 11,
    ctc: 13,
    diagonals: 14,
    dilation: 11,
    einsum: 12,
    erfc: 9,
    fake_quant: 8,
    gathered_windows: 11,
    gradients: 9,
    linear_algebra: 1,
    local_response: 7,
    normal_quantile: 9,
    one_hot: 11,
    ordering: 13,
    patches: 11,
    plain_text: 1,
    projective: 11,
    quantization: 11,
    ragged_range: 16,
    ranges: 11,
    reductions: 13,
    resize_bilinear: 11,
    resize_matrices: 11,
    resize_nearest: 11,
    roll: 10,
    scatter: 16,
    segments: 16,
    select: 9,
    sets: 13,
    shapes: 1,
    slice_update: 11,
    slices: 1,
    soft_suppression: 1,
    sparse: 16,
    split: 2,
    stitch: 14,
    strided_slices: 1,
    strings: 11,
    unique: 11,
    volumes: 1,
}
"""Each module, whose ``convert`` returns what takes the place of a node of its ``OPERATORS``, and what it asks for."""


def handlers(contents: tables.Contents) -> Handlers:
    """Return a handler by TensorFlow operator, as tf2onnx's ``custom_op_handlers`` takes them.

    Args:
        contents: What hash tables hold, by shared name.
    """
    found: Handlers = {}
    for module, oldest in _OLDEST_OPSET.items():
        found |= handlers_of(module.OPERATORS, module.convert, oldest)
    return found | handlers_of(tables.OPERATORS, functools.partial(tables.convert, contents=contents), 8)


def handlers_of(
    operators: Iterable[str], convert: Callable[[Builder, Any], Tensor | Sequence[Tensor] | None], oldest_opset: int
) -> Handlers:
    """Return a handler for each of ``operators`` that puts what ``convert`` returns in the place of a node.

    That is None where it left the node to tf2onnx.
    """

    def handle(ctx: Any, node: Any, name: str, args: Any) -> None:
        if ctx.opset < oldest_opset:
            raise ValueError(f"{node.name} needs opset {oldest_opset} or newer")
        builder = Builder(ctx, node.name)
        results = convert(builder, node)
        if results is not None:
            builder.finish(results, node)

    return {operator: (handle, []) for operator in operators}


def rewriters() -> list[Any]:
    """Return what prepares the graph for the handlers, as tf2onnx's ``custom_rewriter`` takes it."""
    return [gathered_windows.rename, complex_pairs.separate]


@contextlib.contextmanager
def prepared_graphs() -> Iterator[None]:
    """Prepare every graph that tf2onnx converts, bodies of loops and functions included, before it rewrites any.

    That takes the place of tf2onnx's rewriter of QuantizeAndDequantize, the second that it runs, for which there is a
    handler here.

    Raises:
        UnsupportedError: One of them holds what has no ONNX form; tf2onnx goes on when a rewriter raises.
    """
    from tf2onnx import tfonnx

    refusals: list[UnsupportedError] = []
    layers: dict[str, recurrent_loops.Layer] = {}

    def prepare(ctx: Any, nodes: Any) -> list[Any]:
        fused_windows.take_apart(ctx)
        long_sums.take_apart(ctx)
        repeats.join(ctx)
        gathered_windows.declare_ranks(ctx)
        try:
            element_types.widen(ctx)
            batch_norm.refuse_statistics(ctx)
        except UnsupportedError as error:
            refusals.append(error)
        element_types.transpose_integers(ctx)
        gathered_windows.rename(ctx, ctx.get_nodes())
        fused_windows.keep_pads_apart(ctx)
        recurrent_loops.add_rows(ctx)
        recurrent_loops.write(ctx, layers)
        recurrent_loops.remember(ctx, layers)
        return list(ctx.get_nodes())

    try:
        with mock.patch.object(tfonnx, "rewrite_quantize_and_dequantize", prepare), ragged_rows.counted():
            yield
    finally:
        if refusals:
            raise refusals[0]
