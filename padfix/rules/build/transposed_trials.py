"""The shape cases that a rewrite of a transposed convolution is proven on."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from onnx import TensorProto

from padfix.operators.transposed import TransposedWindow
from padfix.rules.base import Site, Trial, TrialInput


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
