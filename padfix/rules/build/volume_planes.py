"""A convolution of a volume as the sum of convolutions of planes, for runtimes that want its weights to be constant."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from padfix.geometry.padding import effective_kernel
from padfix.graph import attributes
from padfix.graph.scopes import Dimension
from padfix.operators.picking_traits import computed_weights
from padfix.operators.refusal import Refusal
from padfix.operators.traits import window_traits
from padfix.operators.window import Pair, Window
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied, flat
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import padded, padding_value, sliced
from padfix.rules.build.transposed import TO_THE_END

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

AXES_OF_VOLUME = 3

_MOST_TAPS = 16
"""Along the axis that is taken apart."""

_OPEN_LENGTH = 9
"""In place of a length that is left open, where the form is tried."""

_ALONE = 2
"""Axes before those of a volume: its batch and its channels."""


def in_planes(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Form:
    """Return the sum of a convolution of planes for each tap along one axis, of which the planes are images."""
    axis, why_not = _axis(site, window, pairs)
    strides, dilations = _without(window.strides, axis), _without(window.dilations, axis)
    kernel = _without(window.kernel, axis)
    written = dataclasses.replace(
        window.written,
        auto_pad=None,
        pads=tuple(flat(_without(pairs, axis))),
        strides=strides,
        dilations=dilations,
        kernel_shape=tuple(each or 1 for each in kernel),
    )
    plane = dataclasses.replace(
        window,
        written=written,
        kernel=kernel,
        strides=strides,
        dilations=dilations,
        sizes=_without(window.sizes, axis),
        batch=None,
    )

    def write() -> Rewrite:
        builder = site.builder()
        builder.output(site.node.output[0], _Written(site, builder, window, plane, axis).result(pairs))
        return Rewrite(builder.build(), (as_declared(site, _OPEN_LENGTH),))

    operators: Operators = (
        (
            "Conv",
            {
                **window_traits(plane),
                **computed_weights(site.scope, site.node),
                "biased": False,
                "bias-computed": False,
            },
        ),
        *((each, {}) for each in ("Transpose", "Slice", "Reshape", "Add")),
    )
    return Form("planes, and their sum", operators, write, why_not)


def _without(values: Sequence[Any], axis: int) -> tuple[Any, ...]:
    return (*values[:axis], *values[axis + 1 :])


def _lengths(site: Site, window: Window, axis: int) -> tuple[list[Dimension], list[Dimension]]:
    """Return the images, planes, rows and columns that are convolved, and those of the result."""
    batch = [window.batch]
    given = [window.sizes[axis], *_without(window.sizes, axis)]
    made = window.output_sizes()
    return [*batch, *given], [*batch, made[axis], *_without(made, axis)]


def _axis(site: Site, window: Window, pairs: tuple[Pair, ...]) -> tuple[int, Refusal | None]:
    """Return along which axis a convolution is taken apart, and why it can't be."""
    if window.op_type != "Conv" or window.domain or window.rank != AXES_OF_VOLUME or None in window.kernel:
        return 0, Refusal("it is no convolution of a volume whose kernel is known")
    if window.maps is None or window.channels is None:
        return 0, Refusal("how many channels it has is not known")
    taps = [each or 1 for each in window.kernel]
    for axis in sorted(range(AXES_OF_VOLUME), key=lambda each: (taps[each], each)):
        lengths = _lengths(site, window, axis)
        if taps[axis] <= _MOST_TAPS and all(None not in _told(each) for each in lengths):
            return axis, None
    return 0, Refusal("more than one of its lengths is left open, or it has many taps along each axis (--shape)")


def _told(lengths: Sequence[Dimension]) -> list[int | None]:
    """Return the lengths as a Reshape is told them; None where one more is open than it can find by itself."""
    is_open = [not isinstance(each, int) for each in lengths]
    first = is_open.index(True) if True in is_open else -1
    return [each if isinstance(each, int) else -1 if place == first else None for place, each in enumerate(lengths)]


@dataclasses.dataclass(frozen=True)
class _Written:
    """A convolution of planes that is being written."""

    site: Site
    builder: FragmentBuilder
    window: Window
    plane: Window
    axis: int

    def result(self, pairs: tuple[Pair, ...]) -> Any:
        """Return the sum over the taps along the axis, and the bias."""
        builder, place = self.builder, _ALONE + self.axis
        data = self._padded(pairs[self.axis])
        front = [0, place, *(each for each in range(1, _ALONE + AXES_OF_VOLUME) if each != place)]
        data = builder.op("Transpose", [data], {"perm": front})
        taps = self.window.kernel[self.axis] or 1
        total = None
        for tap in range(taps):
            term = self._term(data, self._weights(tap), tap)
            total = term if total is None else builder.op("Add", [total, term])
        _, made = _lengths(self.site, self.window, self.axis)
        told = [each if each is not None else -1 for each in _told(made)]
        apart = builder.reshaped(total, [*told[:_ALONE], self.window.maps or 1, *told[_ALONE:]])
        result = builder.op(
            "Transpose", [apart], {"perm": [front.index(each) for each in range(_ALONE + AXES_OF_VOLUME)]}
        )
        if not self.site.input_name(2):
            return result
        shape = [1, self.window.maps or 1, *[1] * AXES_OF_VOLUME]
        return builder.op("Add", [result, builder.reshaped(builder.input(self.site.input_name(2)), shape)])

    def _padded(self, pair: Pair) -> Any:
        data = self.builder.input(self.site.input_name(0))
        if not any(pair):
            return data
        amounts = flat([pair if axis == _ALONE + self.axis else (0, 0) for axis in range(_ALONE + AXES_OF_VOLUME)])
        return padded(self.builder, data, amounts, padding_value(self.site, self.builder, self.window), self.window)

    def _term(self, data: Any, weights: Any, tap: int) -> Any:
        """Return what one tap adds to each plane of the result."""
        builder, window = self.builder, self.window
        stride, dilation = window.strides[self.axis], window.dilations[self.axis]
        begin = tap * dilation
        behind = effective_kernel(window.kernel[self.axis] or 1, dilation) - 1 - begin
        steps = [stride] if stride > 1 else []
        planes = sliced(builder, data, [begin], [-behind or TO_THE_END], [1], steps)
        (batch, _, *rest), (_, made, *_) = _lengths(self.site, window, self.axis)
        count = batch * made if isinstance(batch, int) and isinstance(made, int) else None
        channels = window.channels or 1
        told = [-1 if each is None else each for each in _told([count, *rest])]
        images = builder.reshaped(planes, [told[0], channels, *told[1:]])
        node = copied(self.site.node, without=("auto_pad",))
        attributes.set_integers(node, "kernel_shape", [each or 1 for each in self.plane.kernel])
        attributes.set_integers(node, "pads", list(self.plane.written.pads or ()))
        attributes.set_integers(node, "strides", list(self.plane.strides))
        if max(self.plane.dilations) > 1:
            attributes.set_integers(node, "dilations", list(self.plane.dilations))
        else:
            attributes.remove(node, "dilations")
        return builder.original(node, [images, weights])

    def _weights(self, tap: int) -> Any:
        """Return the weights of one tap along the axis."""
        builder, place, told = self.builder, _ALONE + self.axis, self.site.constant(1)
        if told is not None:
            return builder.constant(told.take(tap, place), "weights")
        channels = (self.window.channels or 1) // self.window.written.group
        shape = [self.window.maps or 1, channels, *(each or 1 for each in self.plane.kernel)]
        part = sliced(builder, builder.input(self.site.input_name(1)), [tap], [tap + 1], [place])
        return builder.reshaped(part, shape)
