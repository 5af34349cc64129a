"""The windows of a transposed convolution: the one reading of such a node."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from padfix.geometry.transposed import (
    TransposedAxis,
    clamped_same_axis,
    natural_output_size,
    output_shape_axis,
    same_axis,
)
from padfix.graph.lengths import length_of, named
from padfix.graph.scopes import Dimension, ValueType, normal_domain
from padfix.operators.refusal import Meaningless, Refusal, UnknownRank
from padfix.operators.table import OPERATORS, Operator
from padfix.operators.window import Shape
from padfix.operators.written import (
    SAME,
    Integers,
    Place,
    Written,
    refused_attributes,
    refused_lists,
)


@dataclass(frozen=True)
class TransposedWindow:
    """A transposed convolution as written, every list one entry a spatial axis.

    Attributes:
        domain: Normalised.
        op_type: The operator.
        written: The attributes.
        kernel: Taps; None where the kernel's shape is not known.
        strides: Between the outputs of two elements.
        dilations: From one tap to the next.
        output_padding: Elements appended to the output.
        output_shape: Lengths that the output is to have (the spatial ones, whatever the attribute lists); or None.
        sizes: Lengths of the input.
        elem_type: Of the data (``TensorProto.DataType``); None where it is not known.
        dynamic_pads: The constant pads of an operator that has them as an input; None where they are computed.
        channels: Channels of the input; None where it is not known.
        maps_per_group: Channels of the output in each group; as ``channels``.
    """

    domain: str
    op_type: str
    written: Written
    kernel: tuple[int | None, ...]
    strides: Integers
    dilations: Integers
    output_padding: Integers
    output_shape: Integers | None
    sizes: Shape
    elem_type: int | None
    dynamic_pads: Integers | None = None
    channels: int | None = None
    maps_per_group: int | None = None

    @property
    def operator(self) -> Operator:
        """What kind of operator it is."""
        return OPERATORS[self.domain, self.op_type]

    @property
    def has_dynamic_pads(self) -> bool:
        """Whether its pads are an input."""
        return self.operator.dynamic_pads is not None

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.kernel)

    @property
    def auto_pad(self) -> str:
        """The attribute's text; ``""`` where it says nothing."""
        return self.written.mode

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
    refusal = refused_attributes(node, operator, written, place)
    if refusal is not None:
        return refusal
    data, weights = place.type_at(node, 0), place.type_at(node, operator.weights)
    kernel = _kernel(written, data, weights)
    if isinstance(kernel, Refusal):
        return kernel
    count = len(kernel)
    if count < 1:
        return Meaningless("The node has no spatial axis.")
    for value in (data, weights):
        if value is not None and value.rank is not None and value.rank != count + 2:
            return Meaningless(
                f"An input has {value.rank} axes where the kernel asks for {count + 2}; correct the node."
            )
    output_shape = None if operator.dynamic_pads is not None else written.output_shape or None
    if output_shape is not None and len(output_shape) == count + 2:
        output_shape = output_shape[2:]  # runtimes take the batch and channel axes along
    pads = _dynamic_pads(node, operator, place, count)
    strides, dilations = (each or (1,) * count for each in (written.strides, written.dilations))
    output_padding = written.output_padding or (0,) * count
    refusal = refused_lists(
        {
            "kernel_shape": (written.kernel_shape or None, count, 1),
            "strides": (strides, count, 1),
            "dilations": (dilations, count, 1),
            "output_padding": (output_padding, count, 0),
            "output_shape": (output_shape, count, 1),
            "pads": (written.pads or None, 2 * count, 0),
            "Pads": (pads, 2 * count, -(2**63)),
        }
    )
    if refusal is not None:
        return refusal
    sizes: Shape = (None,) * count if data is None or data.shape is None else data.shape[2:]
    known = weights.shape[:2] if weights is not None and weights.shape is not None else (None, None)
    channels, maps = (each if isinstance(each, int) else None for each in known)
    types = (each.elem_type for each in (data, weights) if each is not None)
    return TransposedWindow(
        normal_domain(node.domain),
        node.op_type,
        written,
        kernel,
        strides,
        dilations,
        output_padding,
        output_shape,
        sizes,
        next((each for each in types if each != TensorProto.UNDEFINED), None),
        pads,
        channels,
        maps,
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


def _kernel(written: Written, data: ValueType | None, weights: ValueType | None) -> tuple[int | None, ...] | Refusal:
    if written.kernel_shape:
        return written.kernel_shape
    if weights is not None and weights.shape is not None:
        return tuple(each if isinstance(each, int) else None for each in weights.shape[2:])
    if data is not None and data.shape is not None:
        return (None,) * (len(data.shape) - 2)
    for listed in (written.strides, written.dilations, written.output_padding):
        if listed:
            return (None,) * len(listed)
    return UnknownRank(
        "The number of spatial axes is not known: give the node kernel_shape, or the model input shapes."
    )
