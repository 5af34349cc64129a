"""A ConvTranspose that computes all there is, and a Slice that cuts off what its pads would have cut."""

from __future__ import annotations

import numpy as np

from padfix.geometry.padding import effective_kernel
from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Pair
from padfix.rules.base import Rewrite, Site, Trial
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.transposed_trials import transposed_trials

TO_THE_END = int(np.iinfo(np.int64).max)


def rewrite_transposed(site: Site, window: TransposedWindow) -> Rewrite | Refusal:
    """Return a ConvTranspose without pads and a Slice that cuts off what they would have cut."""
    if window.output_shape is not None:
        return Refusal("pads beside output_shape are ignored: remove one of the two.")
    pads = window.written.pads or ()
    pairs = tuple(zip(pads[: window.rank], pads[window.rank :], strict=True))
    trials = _trials(site, window, pairs)
    if isinstance(trials, Refusal):
        return trials
    node = copied(site.node, without=("auto_pad",))
    attributes.set_integers(node, "pads", [0] * (2 * len(pairs)))
    builder = site.builder()
    result = builder.original(node, [builder.input(name) for name in node.input])
    cut = [axis for axis, pair in enumerate(pairs) if any(pair)]
    starts = [pairs[axis][0] for axis in cut]
    ends = [-pairs[axis][1] or TO_THE_END for axis in cut]
    builder.output(node.output[0], sliced(builder, result, starts, ends, [axis + 2 for axis in cut]))
    return Rewrite(builder.build(), trials)


def _trials(site: Site, window: TransposedWindow, pairs: tuple[Pair, ...]) -> tuple[Trial, ...] | Refusal:
    """Return small sizes, from the least on that gives an output: the rewrite does not depend on the size."""
    kernel = [taps for taps in window.kernel if taps is not None]
    if len(kernel) < window.rank:
        return Refusal("The kernel's shape is not known: give the node kernel_shape.")
    least = []
    for axis, (begin, end) in enumerate(pairs):
        reached = effective_kernel(kernel[axis], window.dilations[axis]) + window.output_padding[axis]
        least.append(1 + max(0, -(-(begin + end + 1 - reached) // window.strides[axis])))
    shapes = [(1, *(length + (more + axis) % 4 for axis, length in enumerate(least))) for more in (0, 1, 3)]
    return transposed_trials(site, window, shapes, 2)
