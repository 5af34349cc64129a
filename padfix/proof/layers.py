"""How far the inner tensors of two ONNX models are from each other on one probe, layer by layer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from padfix.graph.scopes import label
from padfix.proof.compare import compare
from padfix.proof.executors import Array, ExecutionFailed
from padfix.proof.inner_tensors import Exposable
from padfix.results import LayerDifference

MOST_LAYERS = 48
"""Tensors compared; of a deeper model as many, taken evenly."""

WIDTH = 8
"""Tensors that are looked at in one run of each model, and that are in memory at a time."""

SECONDS = 60.0
"""After this long no further run is begun."""


def layer_differences(
    reference: Exposable,
    candidate: Exposable,
    feeds: tuple[Mapping[str, Array], Mapping[str, Array]],
    outputs: Mapping[str, str],
    *,
    rtol: float | None = None,
    atol: float | None = None,
    types: Sequence[np.dtype[np.generic]] = (),
) -> tuple[LayerDifference, ...]:
    """Return the differences of tensors of numbers that bear one name in both models, in the order of the nodes.

    Args:
        reference: The original.
        candidate: The result.
        feeds: The inputs of each.
        outputs: The candidate's name for each output of the reference.
        rtol: As for :func:`padfix.proof.compare.compare`, as are ``atol`` and ``types``.
        atol: See ``rtol``.
        types: Types that the models compute in beside the compared tensor's own.

    Raises:
        ExecutionFailed: Not even one of the tensors can be looked at.
    """
    theirs = {name for node in candidate.model.proto.graph.node for name in node.output if name}
    pairs: list[tuple[str, str, str, str]] = []
    for index, node in enumerate(reference.model.proto.graph.node):
        if node.op_type == "Constant":
            continue
        for name in node.output:
            other = outputs.get(name, name)
            if name and other in theirs:
                pairs.append((name, other, label(node, index), node.op_type))
    if len(pairs) > MOST_LAYERS:
        pairs = [pairs[place * (len(pairs) - 1) // (MOST_LAYERS - 1)] for place in range(MOST_LAYERS)]
    found: list[LayerDifference] = []
    failure: ExecutionFailed | None = None
    deadline = time.monotonic() + SECONDS
    for start in range(0, len(pairs), WIDTH):
        if time.monotonic() > deadline:
            break
        some = pairs[start : start + WIDTH]
        try:
            first = reference.run(feeds[0], [pair[0] for pair in some])
            second = candidate.run(feeds[1], [pair[1] for pair in some])
        except ExecutionFailed as trouble:
            failure = failure or trouble
            continue
        for name, other, node_label, op_type in some:
            ours, others = first.get(name), second.get(other)
            if ours is None or others is None or not _is_layer(ours):
                continue
            difference = compare(name, ours, others, rtol=rtol, atol=atol, input_types=tuple(types))
            found.append(LayerDifference(node_label, op_type, difference))
    if not found and failure is not None:
        raise failure
    return tuple(found)


def _is_layer(array: Array) -> bool:
    """Whether an array is data, rather than a shape, a list of indices, a truth value or a text."""
    return array.dtype.kind not in "iubUSO" or (array.dtype.kind in "iu" and array.dtype.itemsize < 4)
