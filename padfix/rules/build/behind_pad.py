"""A convolution or pool behind a Pad that does what its own pads did; positions of maxima are counted again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from padfix.operators.window import Pair, Window
from padfix.rules.build.pad_node import entries, spatial_shape_of

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


from collections.abc import Callable

from onnx import NodeProto

from padfix.rules.base import Rewrite, Site
from padfix.rules.build.dequantized_input import dequantized_input, padded_before, with_quantized_data
from padfix.rules.build.explicit_pads import bind
from padfix.rules.build.pad_node import ones_like, padded, padding_value
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


Length = Any
"""A number known before the model runs, or a computed int64 vector of one element."""


def indices_in_input(
    builder: FragmentBuilder,
    window: Window,
    pairs: tuple[Pair | None, ...],
    indices: Any,
    source: Any,
    padded: Any,
    pads: Any,
) -> Any:
    """Return the positions that MaxPool gives for its ``padded`` input as positions in ``source`` itself.

    ``pads`` is the computed vector that holds the pairs that are None.
    """
    shapes: dict[str, Any] = {}

    def length(name: str, value: Any, axis: int) -> Any:
        if name not in shapes:
            shapes[name] = spatial_shape_of(builder, value, window)
        return entries(builder, shapes[name], axis, axis + 1)

    sizes: list[Any] = []
    padded_sizes: list[Any] = []
    begins: list[Any] = []
    for axis, (size, pair) in enumerate(zip(window.sizes, pairs, strict=True)):
        sizes.append(size if isinstance(size, int) else length("source", source, axis))
        if isinstance(size, int) and pair is not None:
            padded_sizes.append(size + sum(pair))
        else:
            padded_sizes.append(length("padded", padded, axis))
        entry = window.leading + axis
        begins.append(entries(builder, pads, entry, entry + 1) if pair is None else pair[0])
    return unpadded_indices(
        builder,
        indices,
        sizes=sizes,
        padded_sizes=padded_sizes,
        begins=begins,
        dilations=window.dilations,
        column_first=window.written.storage_order == 1,
    )


def unpadded_indices(
    builder: FragmentBuilder,
    indices: Any,
    *,
    sizes: Sequence[Length],
    padded_sizes: Sequence[Length],
    begins: Sequence[Length],
    dilations: Sequence[int],
    column_first: bool,
) -> Any:
    """Return ``indices`` of a MaxPool over a padded input as indices into the input before padding.

    An index is a number in mixed radix: one digit an axis, the fastest first, and the number of the image (batch and
    channel) in front. Each digit is taken out with the padded length, moved by the pad, and put back with the length.

    A digit in the begin padding comes from a window whose elements all equal the padding (an integer type's least
    value): its first tap won the tie. The first tap inside stands at ``digit mod dilation``.

    Args:
        builder: The fragment.
        indices: int64, what MaxPool gives.
        sizes: Spatial lengths before padding.
        padded_sizes: Spatial lengths after padding.
        begins: Elements padded before each spatial axis.
        dilations: Of the window.
        column_first: ``storage_order`` 1: the first spatial axis is the fastest.
    """
    emit = _Emitter(builder)
    rank = len(sizes)
    step: Length = 1
    position: Any = None
    for axis in range(rank) if column_first else reversed(range(rank)):
        above = emit("Div", indices, padded_sizes[axis])
        digit = emit("Sub", indices, emit("Mul", above, padded_sizes[axis]))
        digit = emit.moved(digit, begins[axis], dilations[axis])
        term = emit("Mul", digit, step)
        position = term if position is None else emit("Add", position, term)
        step = emit("Mul", step, sizes[axis])
        indices = above
    return emit("Add", position, emit("Mul", indices, step))


class _Emitter:
    """Appends int64 arithmetic; numbers that are known are computed at once and become constants when they are used."""

    def __init__(self, builder: FragmentBuilder) -> None:
        self._builder = builder

    def __call__(self, op_type: str, first: Length, second: Length) -> Any:
        if op_type == "Mul" and isinstance(first, int) and isinstance(second, int):
            return first * second
        if op_type == "Mul" and 1 in (first if isinstance(first, int) else 0, second if isinstance(second, int) else 0):
            return second if isinstance(first, int) else first
        return self._builder.op(op_type, [self._value(first), self._value(second)])

    def moved(self, digit: Any, begin: Length, dilation: int) -> Any:
        """Return the place of ``digit`` in the unpadded axis."""
        if isinstance(begin, int) and begin == 0:
            return digit
        digit = self("Sub", digit, begin)
        inside = self("Mod", digit, dilation) if dilation > 1 else self._value(0)
        return self._builder.op("Where", [self("Less", digit, 0), inside, digit])

    def _value(self, number: Length) -> Any:
        if isinstance(number, int):
            return self._builder.constant(np.array([number], np.int64), "length")
        return number
