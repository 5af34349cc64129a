"""A convolution or pool behind a Pad that does what its own pads did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import NodeProto

from padfix.operators.window import Pair, Window
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.dequantized_input import dequantized_input, padded_before, with_quantized_data
from padfix.rules.build.explicit_pads import bind
from padfix.rules.build.indices import indices_in_input
from padfix.rules.build.pad_node import ones_like, padded, padding_value, spatial_shape_of
from padfix.rules.build.trials import trials


def behind_pad(
    site: Site,
    window: Window,
    pairs: tuple[Pair | None, ...],
    node: NodeProto,
    amounts: Callable[[Any, Any], Any],
    *,
    opset: int,
    same: bool,
    factor: np.ndarray | None = None,
) -> Rewrite:
    """Return ``node`` behind a Pad, or behind a Pad of the quantized numbers that its input is dequantized from.

    Args:
        site: Where the operator stands.
        window: The operator as it is.
        pairs: Its pads; None where they depend on a length that is not known.
        node: The operator as it is to be: without the pads that the Pad takes over.
        amounts: Makes what the Pad adds (a list, or a computed vector) with the builder and the computed spatial shape.
        opset: The version to write for.
        same: Whether the operator leaves its pads to SAME.
        factor: What a pool that leaves its pads out of its averages is multiplied with, where that is known; else it is
            divided by the average of ones that are padded the same way, which leaves the sum over the input's own
            elements divided by their number.
    """
    quantized = dequantized_input(site, window, opset)
    builder = site.builder(opset)
    source = builder.input(site.node.input[0] if quantized is None else quantized.node.input[0])
    divided = window.leaves_pads_out and factor is None
    shape = spatial_shape_of(builder, source, window) if divided or None in pairs else None
    pads = amounts(builder, shape)
    value = padding_value(site, builder, window) if quantized is None or divided else None
    rest = [builder.input(name) for name in site.node.input[1:]]
    if quantized is None:
        data = padded(builder, source, pads, value, window)
    else:
        data = padded_before(builder, quantized, source, pads)
    result = builder.original(node, [data, *rest])
    if divided:
        ones = padded(builder, ones_like(builder, shape, window), pads, value, window)
        result = builder.op("Div", [result, builder.original(node, [ones])])
    elif factor is not None:
        result = builder.op("Mul", [result, builder.constant(factor, "taps_by_taps_inside")])
    if window.has_indices:
        result[1] = indices_in_input(builder, window, pairs, result[1], source, data, pads)
    bind(builder, site.node, result)
    cases = trials(site, window, same=same, as_declared=factor is not None)
    if quantized is None:
        return Rewrite(builder.build(), cases, exact=window.is_exact)
    cases = with_quantized_data(quantized, cases, site.node.input[0])
    return Rewrite(builder.build(), cases, exact=window.is_exact, replaces=(quantized.node,))
