"""ConvTransposeWithDynamicPads of ONNX Runtime, whose pads are an input, not an attribute."""

from __future__ import annotations

import numpy as np

from padfix.operators.refusal import Refusal
from padfix.operators.transposed import TransposedWindow
from padfix.operators.written import SAME
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.transposed_trials import transposed_trials


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
