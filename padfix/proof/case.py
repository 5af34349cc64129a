"""What an allowance is asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from padfix.proof.executors import Array
from padfix.proof.graph_view import NodeView
from padfix.proof.sides import Side


@dataclass(frozen=True)
class Case:
    """A tensor of one stretch on one probe, which differs by more than rounding explains.

    Attributes:
        reference: The original.
        feeds: Its inputs.
        inner: The values that the stretch is fed, by the original's names.
        name: The tensor.
        nodes: The original's nodes of the stretch.
        expected: What the original gives.
        found: What the candidate gives, in the same layout.
        magnitude: The tensor's largest absolute value over all probes.
        types: What the original computes the stretch in.
        requantised: Whether the candidate's same operators hold other bytes, which no tie explains.
    """

    reference: Side
    feeds: Mapping[str, Array]
    inner: Mapping[str, Array]
    name: str
    nodes: tuple[NodeView, ...]
    expected: Array
    found: Array
    magnitude: float
    types: tuple[np.dtype[np.generic], ...]
    requantised: bool = False
