"""Whether a trial can be run at all, told from its attributes before anything is allocated.

A file of a hundred bytes can ask for a kernel of a billion taps. Such a node is refused instead of tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from onnx import NodeProto

from padfix.graph.scopes import ValueType, normal_domain
from padfix.operators.cost import needed
from padfix.rules.base import Trial

MOST_ELEMENTS = 1 << 25
"""Elements of the largest array of one trial; arrays are float64 in the specification's kernels (256 MiB)."""

MOST_STEPS = 1 << 33
"""Multiplications of one run."""


def is_too_large(nodes: Iterable[NodeProto], opsets: Mapping[str, int], trial: Trial) -> bool:
    """Whether running ``nodes``, each on inputs of ``trial``, needs more than the limits of this module."""
    if any(math.prod(given.shape) > MOST_ELEMENTS for given in trial.values()):
        return True

    def type_of(name: str) -> ValueType | None:
        given = trial.get(name)
        return None if given is None else ValueType(given.elem_type, given.shape)

    def constant(name: str) -> np.ndarray | None:
        given = trial.get(name)
        return None if given is None else given.value

    for node in nodes:
        elements, steps = needed(node, opsets.get(normal_domain(node.domain)), type_of, constant)
        if elements > MOST_ELEMENTS or steps > MOST_STEPS:
            return True
    return False
