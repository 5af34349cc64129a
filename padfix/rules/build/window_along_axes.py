"""Pools and transposed convolutions made of what happens on each axis by itself, where no other form is right.

The windows of a maximum are laid side by side, so that a pool without pads, dilations or overlaps finds it; an average
is a product with a matrix an axis; a transposed convolution is a plain one of its data, spread out with zeros.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.geometry.padding import effective_kernel, taps_inside
from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import window_traits
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Pair, Window, is_row_of_nine
from padfix.rules.base import Rewrite, Site, Trial, TrialInput
from padfix.rules.build.along_axes import (
    LONGEST,
    OUTSIDE,
    TAKING,
    Lengths,
    multiplied,
    multiplying,
    selection,
    taken,
    weighed_and_summed,
    why_not_multiplied,
)
from padfix.rules.build.explicit_pads import bare_node, bind
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators
from padfix.rules.build.power_pools import powers_in, raised, rooted
from padfix.rules.build.transposed import transposed_trials
from padfix.rules.build.trials import trials
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_PLAIN_POOLS = ("MaxPool", "AveragePool", "LpPool")
_VOLUME = 3


_MOST_TRIED = 1 << 22
"""Elements of an image of all its channels that a form is tried on."""


@dataclasses.dataclass(frozen=True)
class _Axis:
    """One spatial axis of a window whose pads are written out, with all lengths known."""

    number: int
    size: int
    taps: int
    stride: int
    dilation: int
    begin: int
    end: int
    output: int
    is_picked: bool = False
    """Whether elements are picked where that is all that the windows do."""

    @property
    def is_skipping(self) -> bool:
        """Whether windows are single elements, and not all of them."""
        return self.taps == 1 < self.stride

    @property
    def is_plain(self) -> bool:
        """Whether a pool without pads, dilations and ceil mode has the same windows."""
        if self.is_picked and self.is_skipping:
            return False
        reach = (self.output - 1) * self.stride + self.taps
        return self.dilation == 1 and not self.begin and reach <= self.size < reach + self.stride

    def starts(self) -> list[int]:
        """Return where each window begins, counted from the first element."""
        return [window * self.stride - self.begin for window in range(self.output)]

    def side_by_side(self) -> list[int] | None:
        """Return the elements of each window, one window behind the other; None where one has none.

        A tap outside stands for the first that is inside, which a maximum finds anyway.
        """
        found = []
        for start in self.starts():
            places = [start + tap * self.dilation for tap in range(self.taps)]
            inside = [place for place in places if 0 <= place < self.size]
            if not inside:
                return None
            found += [place if 0 <= place < self.size else inside[0] for place in places]
        return found

    def sums(self) -> np.ndarray:
        """Return the matrix that adds up the elements of each window."""
        matrix = np.zeros((self.output, self.size))
        for window, start in enumerate(self.starts()):
            for place in range(start, start + self.taps * self.dilation, self.dilation):
                if 0 <= place < self.size:
                    matrix[window, place] += 1
        return matrix

    def counted(self, *, pads: bool) -> list[int]:
        """Return how many taps of each window its average is taken over."""
        before, behind = (self.begin, self.end) if pads else (0, 0)
        length = self.size + before + behind
        return taps_inside(length, self.taps, self.stride, self.dilation, self.begin - before, output=self.output)


def lengths_of(site: Site, window: Window | TransposedWindow) -> Lengths:
    """Return the lengths of all axes of the data; the batch and the channels may be unknown."""
    known = site.input_type(0)
    leading: Lengths = known.shape[:2] if known is not None and known.shape else (None, None)
    return (*leading, *window.sizes)


def _tried_lengths(site: Site, window: Window) -> Lengths:
    """Return the lengths of all axes of the data, without the number of channels where very many would be tried."""
    batch, channels, *sizes = lengths_of(site, window)
    lengths = [each for each in (channels, *sizes) if isinstance(each, int)]
    is_tried = len(lengths) > len(sizes) and math.prod(lengths) <= _MOST_TRIED
    return (batch, channels if is_tried else None, *sizes)


def _channels(site: Site, window: Window) -> int | None:
    """Return how many channels what is written says there are; None where that is not known, or very many are tried."""
    channels = _tried_lengths(site, window)[1]
    return channels if isinstance(channels, int) else None


def _axes(window: Window) -> tuple[_Axis, ...] | Refusal:
    if window.domain or window.op_type not in _PLAIN_POOLS or window.has_indices:
        return Refusal("it is more than a pool of numbers")
    found = []
    sizes = zip(window.axes, window.explicit_pads, window.output_sizes(), strict=True)
    for number, ((size, taps, stride, dilation), pair, output) in enumerate(sizes, window.leading):
        if not isinstance(size, int) or not isinstance(output, int) or taps is None:
            return Refusal("it needs the lengths of the input (--shape)")
        if output < 1:
            return Refusal("it has no window")
        if max(size, output * taps) > LONGEST:
            return Refusal(f"an axis is longer than {LONGEST} elements, more than is written out one by one")
        found.append(_Axis(number, size, taps, stride, dilation, *pair, output))
    return tuple(found)


def pools_along_axes(site: Site, window: Window) -> Iterator[Form]:
    """Yield the forms of a pool whose pads are written out."""
    if not window.operator.is_pool:
        return
    axes = _axes(window)
    if window.operator.is_maximum:
        yield from _maxima(site, window, axes)
        if not isinstance(axes, Refusal) and any(axis.is_skipping for axis in axes):
            yield from _maxima(site, window, tuple(dataclasses.replace(axis, is_picked=True) for axis in axes))
    else:
        yield _averages(site, window, axes)


def _maxima(site: Site, window: Window, axes: tuple[_Axis, ...] | Refusal) -> Iterator[Form]:
    known = () if isinstance(axes, Refusal) else axes
    why_not = axes if isinstance(axes, Refusal) else None
    moved = {axis.number: axis.side_by_side() for axis in known if not axis.is_plain}
    indices = {number: each for number, each in moved.items() if each is not None}
    if len(indices) < len(moved):
        why_not = Refusal("some window lies in the pads with all its taps")
    plain = _side_by_side(window, known)
    lengths = [(axis.size, axis.output * axis.taps) for axis in known]
    no_products = why_not or why_not_multiplied(window.elem_type, lengths)
    for apart in (False, True) if window.rank == _VOLUME else (False,):
        pools: Operators = ((window.op_type, window_traits(_in_a_plane(plain) if apart else plain)),)
        how = " in two planes" if apart else ""
        for name, operators, reason in (
            ("a Gather an axis", TAKING if indices else (), why_not),
            (
                "products with matrices",
                multiplying(indices, lengths_of(site, window), site) if indices else (),
                no_products,
            ),
        ):
            if operators or apart:
                yield Form(
                    f"a pool{how} of windows side by side, by {name}",
                    (*operators, *pools),
                    _Maximum(site, window, plain, indices, known, by_products=operators[:1] != TAKING, apart=apart),
                    reason,
                )


def _side_by_side(window: Window, axes: Sequence[_Axis]) -> Window:
    """Return the pool of windows that are laid side by side on the axes that are not plain."""
    strides = tuple(axis.stride if axis.is_plain else axis.taps for axis in axes) or window.strides
    sizes = tuple(axis.size if axis.is_plain else axis.output * axis.taps for axis in axes) or window.sizes
    none = (0,) * (2 * window.rank)
    ones = (1,) * window.rank
    written = dataclasses.replace(
        window.written, auto_pad=None, pads=none, ceil_mode=False, strides=strides, dilations=None
    )
    return dataclasses.replace(window, written=written, strides=strides, dilations=ones, sizes=sizes)


def _in_a_plane(window: Window) -> Window:
    """Return the pool along the last two of three axes."""
    written = dataclasses.replace(window.written, pads=(0,) * 4, strides=window.strides[1:], dilations=None)
    last = {name: getattr(window, name)[1:] for name in ("kernel", "strides", "dilations", "sizes")}
    return dataclasses.replace(window, written=written, **last)


@dataclasses.dataclass(frozen=True)
class _Maximum:
    """Writes a pool of windows that are laid side by side, in one or in two planes."""

    site: Site
    window: Window
    plain: Window
    indices: dict[int, list[int]]
    axes: tuple[_Axis, ...]
    by_products: bool
    apart: bool

    def __call__(self) -> Rewrite | Refusal:
        builder = self.site.builder()
        value = builder.input(self.site.input_name(0))
        if self.by_products and self.indices:
            dtype = helper.tensor_dtype_to_np_dtype(self.window.elem_type or 1)
            sizes = {axis.number: axis.size for axis in self.axes}
            matrices = {axis: selection(each, sizes[axis]).astype(dtype) for axis, each in self.indices.items()}
            value = multiplied(builder, value, matrices, _tried_lengths(self.site, self.window), self.site)
        else:
            value = taken(builder, value, self.indices)
        pooled = self._in_planes(builder, value) if self.apart else self._pooled(builder, value, slice(None))
        bind(builder, self.site.node, pooled)
        cases = trials(self.site, self.window, same=False, as_declared=True, channels=_channels(self.site, self.window))
        return Rewrite(builder.build(), cases, exact=True)

    def _pooled(self, builder: FragmentBuilder, value: Any, spatial: slice, *, more: int = 0) -> Any:
        """Return the maxima along some of the axes, and along ``more`` axes behind them that stay as they are."""
        node = bare_node(self.site)
        attributes.remove(node, "dilations", "storage_order")
        attributes.set_integers(node, "kernel_shape", [each or 1 for each in self.plain.kernel[spatial]] + [1] * more)
        attributes.set_integers(node, "strides", [*self.plain.strides[spatial], *[1] * more])
        return builder.original(node, [value])

    def _in_planes(self, builder: FragmentBuilder, value: Any) -> Any:
        depth, height, width = (axis.output for axis in self.axes)
        deep = self.plain.sizes[0]
        assert isinstance(deep, int)
        rows, columns = self.plain.sizes[1:]
        assert isinstance(rows, int)
        assert isinstance(columns, int)
        channels = _channels(self.site, self.window)  # -1 does not suit an empty batch
        planes = -1 if channels is None else channels * deep
        value = self._pooled(builder, builder.reshaped(value, [0, planes, rows, columns]), slice(1, None))
        value = builder.reshaped(value, [0, channels or -1, deep, height * width])
        value = self._pooled(builder, value, slice(1), more=1)
        return builder.reshaped(value, [0, channels or -1, depth, height, width])


def _averages(site: Site, window: Window, axes: tuple[_Axis, ...] | Refusal) -> Form:
    """Return averages, or roots of sums of powers, by products."""
    known = () if isinstance(axes, Refusal) else axes
    lengths = [(axis.size, axis.output) for axis in known]
    why_not = axes if isinstance(axes, Refusal) else why_not_multiplied(window.elem_type, lengths)
    counts = [axis.counted(pads=window.written.count_include_pad) for axis in known]
    if why_not is None and window.operator.is_average and any(0 in count for count in counts):
        why_not = Refusal("some window lies in the pads with all its taps")
    data = _tried_lengths(site, window)
    power = (attributes.integer(site.node, "p", 2) or 0) if window.op_type == "LpPool" else 1

    def write() -> Rewrite | Refusal:
        dtype: Any = helper.tensor_dtype_to_np_dtype(window.elem_type or 1)
        matrices = {}
        for axis, count in zip(known, counts, strict=True):
            sums = axis.sums() / np.array(count)[:, None] if window.operator.is_average else axis.sums()
            matrices[axis.number] = sums.astype(dtype)
        cases = trials(site, window, same=False, as_declared=True, channels=_channels(site, window))
        if window.operator.is_average:
            return Rewrite(weighed_and_summed(site, matrices, data), cases)
        builder = site.builder()
        value = builder.op("Abs", [builder.input(site.input_name(0))])
        summed = multiplied(builder, raised(builder, value, power, dtype), matrices, data, site)
        builder.output(site.node.output[0], rooted(builder, summed, power, dtype))
        return Rewrite(builder.build(), cases)

    operators = (*multiplying([axis.number for axis in known], data, site), *powers_in(power))
    return Form("products with matrices", operators, write, why_not)


def spread_form(
    site: Site, window: TransposedWindow, pads: tuple[Pair, ...], added: tuple[int, ...], *, keeps_groups: bool = True
) -> Form:
    """Return the transposed convolution as a convolution of its data, spread out with zeros by products."""
    rank, data = window.rank, lengths_of(site, window)
    group = window.written.group if keeps_groups else 1
    indices = _spread(window, pads, added)
    known = {} if isinstance(indices, Refusal) else indices
    weights = site.constant(1)
    why_not: Refusal | None = indices if isinstance(indices, Refusal) else None
    if why_not is None and weights is None:
        why_not = Refusal("it turns the weights over, and these are long, or not constant")
    lengths = [(size, len(known[axis])) for axis, size in enumerate(window.sizes, 2) if isinstance(size, int) and known]
    why_not = why_not or why_not_multiplied(window.elem_type, lengths)
    plain: Traits = {
        "auto-pad": "NOTSET",
        "padding": "none",
        "sizes": "static",
        "spatial-axes": rank,
        "strided": False,
        "kernel-written": True,
        "one-tap": set(window.kernel) == {1},
        "row-of-nine": weights is not None
        and is_row_of_nine(list(map(effective_kernel, weights.shape[2:], window.dilations))),
        "dilated": False,
        "grouped": group > 1,
        "depthwise": weights is not None and weights.shape[:2] == (group, 1) != (1, 1),
        "one-pad-before": False,
        "wide-pads": False,
    }

    def write() -> Rewrite | Refusal:
        assert weights is not None
        dtype = helper.tensor_dtype_to_np_dtype(window.elem_type or 1)
        builder = site.builder()
        sizes = {axis: size for axis, size in enumerate(window.sizes, 2) if isinstance(size, int)}
        matrices = {axis: selection(each, sizes[axis]).astype(dtype) for axis, each in known.items()}
        value = multiplied(builder, builder.input(site.input_name(0)), matrices, data, site)
        turned = grown(_turned(weights, window.written.group), window.dilations)
        if not keeps_groups:
            turned = joined_groups(turned, window.written.group)
        kernel = builder.constant(turned, "weights")
        inputs = [value, kernel, *([builder.input(site.input_name(2))] if site.input_name(2) else [])]
        given = {
            "kernel_shape": list(turned.shape[2:]),
            "strides": [1] * rank,
            "dilations": [1] * rank,
            "pads": [0] * (2 * rank),
            "group": group,
        }
        builder.output(site.node.output[0], builder.op("Conv", inputs, given, name=site.node.name))
        return Rewrite(builder.build(), _spread_trials(site, window, weights))

    name = "a Conv of data that is spread out" if keeps_groups else "a Conv without groups of data that is spread out"
    return Form(name, (*multiplying(known, data, site), ("Conv", plain)), write, why_not)


def _spread_trials(site: Site, window: TransposedWindow, weights: np.ndarray) -> tuple[Trial, ...]:
    """Return the very weights and lengths: nothing stands for what is written out."""
    lengths = [each for each in window.sizes if isinstance(each, int)]
    cases = transposed_trials(site, window, [(1, *lengths)], 1)
    given = TrialInput.of(weights)
    return with_weights(site, cases, given, weights.shape[0], weights.shape[1] * window.written.group)


def with_weights(
    site: Site, cases: Iterable[Trial], weights: TrialInput, channels: int, maps: int
) -> tuple[Trial, ...]:
    """Return the cases with such weights of a convolution, and as many channels and maps as these have."""
    data, kernel, bias = (site.input_name(position) for position in range(3))
    found = []
    for case in cases:
        batch, _, *lengths = case[data].shape
        more = {
            data: dataclasses.replace(case[data], shape=(batch, channels, *lengths)),
            kernel: weights,
        }
        if bias:
            more[bias] = dataclasses.replace(case[bias], shape=(maps,))
        found.append({**case, **more})
    return tuple(found)


def _spread(window: TransposedWindow, pads: tuple[Pair, ...], added: tuple[int, ...]) -> dict[int, list[int]] | Refusal:
    """Return which element stands where on each axis of the spread data, or none."""
    if window.domain or window.has_dynamic_pads:
        return Refusal("it is more than a transposed convolution of numbers")
    found = {}
    for axis, (size, taps) in enumerate(zip(window.sizes, window.kernel, strict=True)):
        if not isinstance(size, int) or taps is None:
            return Refusal("it needs the lengths of the input (--shape)")
        stride, span = window.strides[axis], effective_kernel(taps, window.dilations[axis])
        first = pads[axis][0] - span + 1
        behind = (size - 1) * stride + span - pads[axis][1] + added[axis]
        if behind - first > LONGEST:
            return Refusal(f"an axis is longer than {LONGEST} elements, more than is written out one by one")
        places = range(first, behind)
        found[axis + 2] = [
            place // stride if place % stride == 0 and 0 <= place // stride < size else OUTSIDE for place in places
        ]
    return found


def grown(weights: np.ndarray, dilations: Sequence[int]) -> np.ndarray:
    """Return the weights with zeros between their taps, for a kernel that is not dilated."""
    spans = [effective_kernel(taps, dilation) for taps, dilation in zip(weights.shape[2:], dilations, strict=True)]
    dense = np.zeros((*weights.shape[:2], *spans), weights.dtype)
    taps: Any = (..., *(slice(None, None, dilation) for dilation in dilations))
    dense[taps] = weights
    return dense


def joined_groups(weights: np.ndarray, group: int) -> np.ndarray:
    """Return the weights of all channels, ``[maps, channels, *kernel]``, or transposed; zeros are between groups."""
    rows, columns = weights.shape[0] // group, weights.shape[1]
    joined = np.zeros((weights.shape[0], columns * group, *weights.shape[2:]), weights.dtype)
    for number in range(group):
        own = slice(number * rows, (number + 1) * rows)
        joined[own, number * columns : (number + 1) * columns] = weights[own]
    return joined


def _turned(weights: np.ndarray, group: int) -> np.ndarray:
    """Return the weights of the convolution, ``[maps, channels of a group, *kernel]``."""
    channels, maps = weights.shape[:2]
    parts = weights.reshape(group, channels // group, maps, *weights.shape[2:]).swapaxes(1, 2)
    joined = parts.reshape(group * maps, channels // group, *weights.shape[2:])
    return np.ascontiguousarray(np.flip(joined, axis=tuple(range(2, joined.ndim))))
