"""The windows of a transposed convolution: the one reading of such a node."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto

from padfix.geometry.transposed import (
    TransposedAxis,
    clamped_same_axis,
    natural_output_size,
    output_shape_axis,
    same_axis,
)
from padfix.graph.lengths import length_of, named
from padfix.graph.scopes import Dimension
from padfix.operators.refusal import Refusal
from padfix.operators.table import Operator
from padfix.operators.window import Shape, Windowed, leading_lengths, read_windowed
from padfix.operators.written import (
    SAME,
    Integers,
    Place,
    Written,
    refused_lists,
)


@dataclass(frozen=True)
class TransposedWindow(Windowed):
    """A transposed convolution as written.

    Attributes:
        output_padding: Elements appended to the output.
        output_shape: Lengths that the output is to have (the spatial ones, whatever the attribute lists); or None.
        dynamic_pads: The constant pads of an operator that has them as an input; None where they are computed.
        channels: Channels of the input; None where it is not known.
        maps_per_group: Channels of the output in each group; as ``channels``.
        has_bias: Whether a number is added to each map.
    """

    output_padding: Integers
    output_shape: Integers | None
    dynamic_pads: Integers | None = None
    channels: int | None = None
    maps_per_group: int | None = None
    has_bias: bool = False

    @property
    def has_dynamic_pads(self) -> bool:
        """Whether its pads are an input."""
        return self.operator.dynamic_pads is not None

    @property
    def upper(self) -> bool:
        """Whether the odd element of what is cut off goes to the end."""
        return self.auto_pad == "SAME_UPPER"

    @property
    def maps(self) -> int | None:
        """Channels of the output; None where it is not known."""
        return None if self.maps_per_group is None else self.maps_per_group * self.written.group

    def axis(self, axis: int) -> TransposedAxis | None:
        """Return what the padding of an axis comes to; None where that depends on a length that is not known."""
        taps, size = self.kernel[axis], self.sizes[axis]
        numbers = self.strides[axis], self.dilations[axis], self.output_padding[axis]
        if self.has_dynamic_pads and self.auto_pad in SAME:
            return None if taps is None else clamped_same_axis(taps, *numbers, upper=self.upper)
        if self.output_shape is not None:
            if taps is None or not isinstance(size, int):
                return None
            return output_shape_axis(size, self.output_shape[axis], taps, *numbers, upper=self.upper)
        if self.auto_pad in SAME:
            return None if taps is None else same_axis(taps, *numbers, upper=self.upper)
        pads: Integers | None = (
            self.dynamic_pads if self.has_dynamic_pads else self.written.pads or (0,) * 2 * self.rank
        )
        if pads is None:
            return None
        return TransposedAxis(pads[axis], pads[self.rank + axis], self.output_padding[axis])

    def output_sizes(self) -> Shape:
        """Return the lengths of the output; None where they are not known."""
        return tuple(map(self._output_size, range(self.rank)))

    def _output_size(self, axis: int) -> Dimension:
        size, taps, stride = self.sizes[axis], self.kernel[axis], self.strides[axis]
        if self.output_shape is not None:
            return self.output_shape[axis]
        if self.auto_pad in SAME and not self.has_dynamic_pads:
            return named(size, length_of(size).times(stride))
        found = self.axis(axis)
        if taps is None or found is None:
            return None
        beyond = natural_output_size(
            0, taps, stride, self.dilations[axis], found.begin, found.end, found.output_padding
        )
        return (
            size * stride + beyond if isinstance(size, int) else named(size, length_of(size).times(stride).plus(beyond))
        )


def read_transposed_node(
    node: NodeProto, operator: Operator, written: Written, place: Place
) -> TransposedWindow | Refusal:
    """Return the transposed window of ``node``, a node of the family ``TRANSPOSED``, or why it can't be read."""
    common = read_windowed(node, operator, written, place)
    if isinstance(common, Refusal):
        return common
    count = common.rank
    output_shape = None if operator.dynamic_pads is not None else written.output_shape or None
    if output_shape is not None and len(output_shape) == count + 2:
        output_shape = output_shape[2:]  # runtimes take the batch and channel axes along
    pads = _dynamic_pads(node, operator, place, count)
    output_padding = written.output_padding or (0,) * count
    refusal = refused_lists(
        {
            "output_padding": (output_padding, count, 0),
            "output_shape": (output_shape, count, 1),
            "Pads": (pads, 2 * count, -(2**63)),
        }
    )
    if refusal is not None:
        return refusal
    channels, maps = leading_lengths(place.type_at(node, operator.weights))
    return TransposedWindow(
        **vars(common),
        output_padding=output_padding,
        output_shape=output_shape,
        dynamic_pads=pads,
        channels=channels,
        maps_per_group=maps,
        has_bias=operator.bias is not None and operator.bias < len(node.input) and bool(node.input[operator.bias]),
    )


def _dynamic_pads(node: NodeProto, operator: Operator, place: Place, count: int) -> Integers | None:
    """Return the constant pads of an operator that has them as an input; None where they are computed."""
    position = operator.dynamic_pads
    if position is None:
        return None
    if position >= len(node.input) or not node.input[position]:
        return (0,) * (2 * count)
    constant = place.constant_at(node, position)
    return None if constant is None else tuple(int(each) for each in constant.reshape(-1))
