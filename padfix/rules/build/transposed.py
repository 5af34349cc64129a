"""Other forms of transposed convolutions, and the shape cases to prove them on."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from onnx import TensorProto

from padfix.geometry.padding import effective_kernel
from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Pair
from padfix.operators.written import SAME
from padfix.rules.base import Rewrite, Site, Trial, TrialInput
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.pad_node import sliced

TO_THE_END = int(np.iinfo(np.int64).max)


def rewrite_transposed(site: Site, window: TransposedWindow) -> Rewrite | Refusal:
    """Return a ConvTranspose without pads and a Slice that cuts off what they would have cut."""
    if window.output_shape is not None:
        return Refusal("pads beside output_shape are ignored: remove one of the two.")
    pads = window.written.pads or ()
    pairs = tuple(zip(pads[: window.rank], pads[window.rank :], strict=True))
    trials = transposed_cases(site, window, pairs)
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


def transposed_cases(site: Site, window: TransposedWindow, pairs: tuple[Pair, ...]) -> tuple[Trial, ...] | Refusal:
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


def transposed_trials(
    site: Site, window: TransposedWindow, shapes: Iterable[tuple[int, ...]], channels_per_group: int
) -> tuple[Trial, ...]:
    """Return one case for each of ``shapes`` (batch, then the spatial lengths), with few channels."""
    node, operator = site.node, window.operator
    elem_type = window.elem_type or TensorProto.FLOAT
    kernel = tuple(taps or 3 for taps in window.kernel)
    per_group = 1 if window.maps_per_group == 1 else 2
    channels = channels_per_group * window.written.group
    cases: list[Trial] = []
    for batch, *spatial in shapes:
        case = {
            node.input[0]: TrialInput((batch, channels, *spatial), elem_type),
            node.input[1]: TrialInput((channels, per_group, *kernel), elem_type),
        }
        if operator.dynamic_pads is not None and site.input_name(operator.dynamic_pads):
            pads = np.array(window.dynamic_pads or (0,) * (2 * window.rank), np.int64)
            case[site.input_name(operator.dynamic_pads)] = TrialInput.of(pads, constant=False)
        if operator.bias is not None and site.input_name(operator.bias):
            case[site.input_name(operator.bias)] = TrialInput((per_group * window.written.group,), elem_type)
        cases.append(case)
    return tuple(cases)


def pads_by_mode(window: TransposedWindow) -> list[int] | Refusal | None:
    """Return the pads that SAME puts in the place of the input; None where the input counts and stays.

    As in ConvTranspose, the input's length cancels out of SAME. Unlike there, a kernel shorter than the stride leaves
    the output short, which is how ONNX Runtime 1.31 runs it: the operator has no other definition.
    """
    axes = [window.axis(axis) for axis in range(window.rank)]
    if any(taps is None for taps in window.kernel):
        return Refusal("The kernel's shape is not known: give the node kernel_shape.")
    if window.auto_pad not in SAME:
        return None
    known = [axis for axis in axes if axis is not None]
    return [axis.begin for axis in known] + [axis.end for axis in known]


def rewrite_dynamic_pads(site: Site, window: TransposedWindow) -> Rewrite | Refusal:
    """Return the node without ``auto_pad``, and with its pads as a constant input where SAME decided them."""
    pads = pads_by_mode(window)
    if isinstance(pads, Refusal):
        return pads
    position = window.operator.dynamic_pads
    assert position is not None
    node = copied(site.node, without=("auto_pad",))
    builder = site.builder()
    inputs = [builder.input(name) for name in node.input]
    if pads is not None:
        given = builder.constant(np.array(pads, np.int64), "pads")
        inputs = [*inputs[:position], given, *inputs[position + 1 :]]
        names = [*node.input[:position], "pads", *node.input[position + 1 :]]
        del node.input[:]
        node.input.extend(names)
    builder.output(node.output[0], builder.original(node, inputs))
    shapes = [
        (batch, *(size + axis for axis in range(window.rank))) for batch, size in ((1, 1), (2, 2), (1, 3), (2, 5))
    ]
    return Rewrite(builder.build(), transposed_trials(site, window, shapes, 1))


def pads_of(window: TransposedWindow) -> tuple[tuple[Pair, ...], tuple[int, ...]] | None:
    """Return the pads and the output padding of every axis; None where they depend on a length that is not known."""
    axes = [window.axis(axis) for axis in range(window.rank)]
    known = [axis for axis in axes if axis is not None]
    if len(known) < len(axes):
        return None
    return tuple((axis.begin, axis.end) for axis in known), tuple(axis.output_padding for axis in known)


def cases_as_written(site: Site, window: TransposedWindow) -> tuple[Trial, ...] | Refusal:
    """Return :func:`transposed_cases` of the pads that the node has, of none where they are not known."""
    found = pads_of(window)
    return transposed_cases(site, window, ((0, 0),) * window.rank if found is None else found[0])
