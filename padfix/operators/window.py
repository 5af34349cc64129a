"""The windows of a convolution or a pool: the one reading of such a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from padfix.geometry.padding import (
    effective_kernel,
    end_without_ceil_mode,
    same_output_size,
    same_padding,
    size_independent_padding,
    window_output_size,
)
from padfix.graph.lengths import known_residue, length_of, named
from padfix.graph.scopes import Dimension, ValueType, normal_domain
from padfix.operators.refusal import Meaningless, Refusal, TooLong, UnknownRank
from padfix.operators.table import OPERATORS, Family, Operator
from padfix.operators.written import (
    LONGEST,
    SAME,
    Integers,
    Place,
    Written,
    refused_attributes,
    refused_lists,
    refused_versions,
)

Pair = tuple[int, int]
"""The pads of one axis: elements before the first one, and behind the last one."""

Shape = tuple[Dimension, ...]


@dataclass(frozen=True)
class Windowed:
    """What all windowed operators say, every list one entry a spatial axis.

    Attributes:
        domain: Normalised.
        op_type: The operator.
        written: The attributes.
        kernel: Taps; None where the kernel's shape is not known.
        strides: From one window to the next; of a transposed convolution between the outputs of two elements.
        dilations: From one tap to the next.
        sizes: Lengths of the input.
        elem_type: Of the data (``TensorProto.DataType``); None where it is not known.
    """

    domain: str
    op_type: str
    written: Written
    kernel: tuple[int | None, ...]
    strides: Integers
    dilations: Integers
    sizes: Shape
    elem_type: int | None

    @property
    def operator(self) -> Operator:
        """What kind of operator it is."""
        return OPERATORS[self.domain, self.op_type]

    @property
    def auto_pad(self) -> str:
        """The attribute's text; ``""`` where it says nothing."""
        return self.written.mode

    @property
    def spans(self) -> tuple[int | None, ...]:
        """How far the taps reach along each axis, dilations counted; None where the kernel is not known."""
        return tuple(
            None if taps is None else effective_kernel(taps, dilation)
            for taps, dilation in zip(self.kernel, self.dilations, strict=True)
        )

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.kernel)

    @property
    def axes(self) -> Iterator[tuple[Dimension, int | None, int, int]]:
        """The (length, taps, stride, dilation) of each spatial axis."""
        return zip(self.sizes, self.kernel, self.strides, self.dilations, strict=True)


@dataclass(frozen=True)
class Window(Windowed):
    """A convolution or pool as written.

    Attributes:
        channels_last: Whether the data is ``[N, *size, C]``.
        has_indices: Whether it gives the positions of its maxima as well.
        channels: Channels of the input that the weights are for; None for pools, and where it is not known.
        maps: Channels of the result; as ``channels``.
        data_channels: Channels of the input as its shape tells them, of pools as well; None where it does not.
        batch: Length of the first axis.
    """

    channels_last: bool = False
    has_indices: bool = False
    channels: int | None = None
    maps: int | None = None
    data_channels: int | None = None
    batch: Dimension = None

    @property
    def is_exact(self) -> bool:
        """Whether the bits of its result must not change: a maximum rounds nothing."""
        return self.operator.is_maximum

    @property
    def leaves_pads_out(self) -> bool:
        """Whether it averages over the elements of the input only."""
        return self.operator.is_average and not self.written.count_include_pad

    @property
    def leading(self) -> int:
        """Number of axes before the spatial ones: batch and channels, or the batch alone."""
        return 1 if self.channels_last else 2

    @property
    def explicit_pads(self) -> tuple[Pair, ...]:
        """The attribute ``pads`` by axis; zeros where it is absent, and where ``auto_pad`` decides."""
        pads = (self.written.pads if self.auto_pad == "" else None) or (0,) * (2 * self.rank)
        return tuple(zip(pads[: self.rank], pads[self.rank :], strict=True))

    def same_pads(self) -> tuple[Pair | None, ...]:
        """Return the (begin, end) of SAME for each axis; None where it depends on a length that is not known.

        Where a length is not known but all lengths have the same begin, the end is the longest of all.
        """
        upper = self.auto_pad == "SAME_UPPER"
        pairs: list[Pair | None] = []
        for size, taps, stride, dilation in self.axes:
            if taps is None:
                pairs.append(None)
            elif isinstance(size, int) and size > 0:
                pairs.append(same_padding(size, taps, stride, dilation, upper=upper))
            elif not isinstance(size, int) and (residue := known_residue(size, stride)) is not None:
                pairs.append(same_padding(residue or stride, taps, stride, dilation, upper=upper))
            else:
                pairs.append(size_independent_padding(taps, stride, dilation, upper=upper))
        return tuple(pairs)

    def output_sizes(self) -> Shape:
        """Return the number of windows on each axis; None where it is not known."""
        if self.auto_pad in SAME:
            return tuple(_same_output(size, stride) for size, stride in zip(self.sizes, self.strides, strict=True))
        return tuple(self._explicit_output(axis, *pair) for axis, pair in enumerate(self.explicit_pads))

    def _explicit_output(self, axis: int, begin: int, end: int) -> Dimension:
        size, taps, stride, dilation = self.sizes[axis], self.kernel[axis], self.strides[axis], self.dilations[axis]
        if taps is None:
            return None
        if isinstance(size, int):
            windows = window_output_size(size, taps, stride, dilation, begin, end, ceil_mode=self.written.ceil_mode)
            return windows if windows >= 0 else None
        if self.written.ceil_mode:
            lasting = end_without_ceil_mode(taps, stride, dilation, end)
            if lasting is None:
                return None
            end = lasting
        length = length_of(size).plus(begin + end - effective_kernel(taps, dilation)).divided(stride)
        return None if length is None else named(size, length.plus(1))


def _same_output(size: Dimension, stride: int) -> Dimension:
    if isinstance(size, int):
        return same_output_size(size, stride)
    if stride == 1:
        return size
    rounded_up = length_of(size).plus(stride - 1).divided(stride)
    return None if rounded_up is None else named(size, rounded_up)


def read_window_node(
    node: NodeProto, operator: Operator, written: Written, place: Place, rank: int | None = None
) -> Window | Refusal:
    """Return the window of ``node``, a node of the family ``WINDOW``, or why it can't be read.

    ``rank`` is the number of spatial axes to assume where nothing tells.
    """
    common = read_windowed(node, operator, written, place, rank)
    if isinstance(common, Refusal):
        return common
    maps, per_group = leading_lengths(place.type_at(node, operator.weights))
    data = place.type_at(node, 0)
    return Window(
        **vars(common),
        channels_last=operator.channels_last or written.channels_last,
        has_indices=operator.is_maximum and len(node.output) > 1 and bool(node.output[1]),
        channels=None if per_group is None else per_group * written.group,
        maps=maps,
        data_channels=_data_channels(data, is_last=operator.channels_last or written.channels_last),
        batch=None if data is None or not data.shape else data.shape[0],
    )


def _data_channels(data: ValueType | None, *, is_last: bool) -> int | None:
    shape = () if data is None or data.shape is None else data.shape
    length = shape[-1 if is_last else 1] if len(shape) > 1 else None
    return length if isinstance(length, int) else None


def read_windowed(
    node: NodeProto, operator: Operator, written: Written, place: Place, rank: int | None = None
) -> Windowed | Refusal:
    """Return what a windowed node of any family says, or why it can't be read; ``rank`` as in the other readers."""
    refusal = refused_attributes(node, operator, written, place)
    if refusal is not None:
        return refusal
    weights, data = place.type_at(node, operator.weights), place.type_at(node, 0)
    kernel = _kernel(node, operator, written, weights, data, rank)
    if isinstance(kernel, Refusal):
        return kernel
    count = len(kernel)
    strides, dilations = (each or (1,) * count for each in (written.strides, written.dilations))
    pads = written.pads if written.mode == "" or operator.family is Family.TRANSPOSED else None
    refusal = (
        refused_lists(
            {
                "strides": (strides, count, 1),
                "dilations": (dilations, count, 1),
                "pads": (pads or None, 2 * count, 0),
            }
        )
        or _refused_spans(kernel, strides, dilations)
        or refused_versions(node, operator, written, place)
    )
    if refusal is not None:
        return refusal
    for value in (data, weights):
        if value is not None and value.rank is not None and value.rank != count + 2:
            return Meaningless(
                f"An input has {value.rank} axes where the kernel asks for {count + 2}: correct the model."
            )
    sizes: Shape = (None,) * count
    if data is not None and data.shape is not None:
        sizes = data.shape[1:-1] if operator.channels_last or written.channels_last else data.shape[2:]
    domain, elem_type = normal_domain(node.domain), _elem_type(node, operator, place)
    return Windowed(domain, node.op_type, written, kernel, strides, dilations, sizes, elem_type)


def _kernel(
    node: NodeProto,
    operator: Operator,
    written: Written,
    weights: ValueType | None,
    data: ValueType | None,
    rank: int | None,
) -> tuple[int | None, ...] | Refusal:
    kernel: tuple[int | None, ...]
    if written.kernel_shape:
        kernel = written.kernel_shape
    elif weights is not None and weights.shape is not None:
        kernel = tuple(each if isinstance(each, int) else None for each in weights.shape[2:])
    elif operator.is_pool:
        return Meaningless(f"{node.op_type} has no kernel_shape, which the specification requires: add the attribute.")
    elif data is not None and data.shape is not None:
        if len(data.shape) < 3:
            return Meaningless(f"The input has {len(data.shape)} axes, none of them spatial: correct the model.")
        kernel = (None,) * (len(data.shape) - 2)
    else:
        count = _written_rank(written) or rank
        if count is None:
            return UnknownRank(
                "Neither kernel_shape nor the shape of the weights or of the input is known: add kernel_shape."
            )
        kernel = (None,) * count
    if not kernel or any(taps is not None and taps < 1 for taps in kernel):
        return Meaningless(f"kernel_shape={list(kernel)} is not a list of positive lengths: correct the model.")
    return kernel


def _written_rank(written: Written) -> int | None:
    """Return the number of spatial axes that the attributes tell."""
    for listed in (written.strides, written.dilations, written.output_padding):
        if listed:
            return len(listed)
    return len(written.pads) // 2 if written.pads else None


def _refused_spans(kernel: tuple[int | None, ...], strides: Integers, dilations: Integers) -> Refusal | None:
    spans = (effective_kernel(taps or 1, dilation) for taps, dilation in zip(kernel, dilations, strict=True))
    if max(*strides, *spans) > LONGEST:
        return TooLong(
            f"kernel_shape={list(kernel)}, strides={list(strides)} and dilations={list(dilations)} "
            f"span more than {LONGEST} elements, which no runtime addresses: correct the model."
        )
    return None


def leading_lengths(weights: ValueType | None) -> tuple[int | None, int | None]:
    """Return the first two lengths of the weights, as far as they are known."""
    if weights is None or weights.shape is None or len(weights.shape) < 3:
        return None, None
    first, second = weights.shape[:2]
    return first if isinstance(first, int) else None, second if isinstance(second, int) else None


def _elem_type(node: NodeProto, operator: Operator, place: Place) -> int | None:
    """Return the element type of the data, which that of its zero point, or of a plain convolution's weights, tells."""
    kin = operator.weights if operator.zero_point is None else operator.zero_point
    for position in (0, kin):
        known = place.type_at(node, position)
        if known is not None and known.elem_type != TensorProto.UNDEFINED:
            return known.elem_type
    return None


_PLANE = 2
"""Spatial axes of a plane."""


def is_row_of_nine(kernel: Sequence[int | None]) -> bool:
    """Whether a line's or a plane's windows have nine taps in a row, which OpenCV 5 takes for three by three."""
    return len(kernel) <= _PLANE and sorted(kernel, key=str) == [1, 9][-len(kernel) :]
