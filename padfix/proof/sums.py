"""What sums may be off by: by the rounding of their terms where these cancel, and of what they add up on the way."""

from __future__ import annotations

import numpy as np

from padfix.operators.elementwise import LAYING_OUT
from padfix.proof.case import Case
from padfix.proof.compare import is_real
from padfix.proof.executors import Array, ExecutionFailed
from padfix.proof.graph_view import NodeView
from padfix.proof.rounding import tolerance

SUMMING = frozenset(
    {
        *("Add", "AddV2", "AveragePool", "AvgPool", "AvgPool3D", "BiasAdd", "GlobalAveragePool", "Mean", "ReduceMean"),
        *("ReduceSum", "Sum"),
    }
)
"""Operators, TensorFlow's as well, that add numbers up, each with a factor that is not negative."""

_PLACING = LAYING_OUT | {"ExpandDims"}


def cancellation(case: Case) -> float | None:
    """Return the difference where terms cancel, and each sum is off by no more than the rounding of its terms.

    What the terms add up to is what the original gives for their absolute values. Sums of what is normalised already
    are nothing but rounding, so that their own magnitude says nothing.
    """
    kinds = {node.op_type for node in case.nodes}
    if not kinds & SUMMING or not kinds <= SUMMING | _PLACING or not case.reference.can_be_fed:
        return None
    if case.expected.shape != case.found.shape or not is_real(case.expected.dtype):
        return None
    feeds, inner = (
        {name: np.abs(array) if is_real(array.dtype) else array for name, array in arrays.items()}
        for arrays in (case.feeds, case.inner)
    )
    try:
        terms = case.reference.fed(feeds, inner, [case.name]).get(case.name)
    except ExecutionFailed:
        return None
    if terms is None or terms.shape != case.expected.shape:
        return None
    difference = np.abs(case.found.astype(np.float64) - case.expected.astype(np.float64))
    allowed = tolerance(case.types, 1.0) * terms.astype(np.float64)
    return float(difference.max(initial=0.0)) if np.all(difference <= allowed) else None


_REDUCING = SUMMING - {"Add", "AddV2", "BiasAdd"}

LONG = 4096
"""Numbers that a tensor has at least of which a sum is looked at: shorter ones round to less than is allowed anyway."""

SHARES = 32
"""Parts that a long sum is added up in: what it rounds on the way is so many times less then."""


def long_sum(case: Case) -> float | None:
    """Return the difference where the original's own sum is as far from the exact one, number by number.

    Adding equal numbers up rounds the same way each time: TensorFlow's mean of 192,000 of them is off by 1e-4. A sum is
    linear, so that the original's sums of parts of the data, with zeros in place of the rest, add up to the exact one.
    """
    node = _reducing(case)
    if node is None or case.expected.shape != case.found.shape or not is_real(case.expected.dtype):
        return None
    try:
        exact = _in_shares(case, node)
    except ExecutionFailed:
        return None
    if exact is None:
        return None
    expected, found = case.expected.astype(np.float64), case.found.astype(np.float64)
    difference = np.abs(found - expected)
    as_near = np.abs(found - exact) <= np.maximum(np.abs(expected - exact), tolerance(case.types, case.magnitude))
    return float(difference.max(initial=0.0)) if np.all(as_near) else None


def _reducing(case: Case) -> NodeView | None:
    """Return the node that adds up what the stretch gives; only its place and shape may change behind it."""
    for node in reversed(case.nodes):
        if node.op_type in _REDUCING:
            return node if case.reference.can_be_fed else None
        if node.op_type not in _PLACING:
            return None
    return None


def _in_shares(case: Case, node: NodeView) -> Array | None:
    """Return the sum of what the original makes of :data:`SHARES` parts of what ``node`` reads; None for short sums."""
    known = {**case.feeds, **case.inner}
    names = [name for name in dict.fromkeys(node.inputs) if name]
    missing = [name for name in names if name not in known]
    known |= case.reference.fed(case.feeds, case.inner, missing) if missing else {}
    read = {name: known[name] for name in names if name in known}
    terms = {name: array for name, array in read.items() if is_real(array.dtype)}
    if not terms or max(array.size for array in terms.values()) < LONG:
        return None
    places = {name: np.arange(array.size).reshape(array.shape) % SHARES for name, array in terms.items()}
    exact = np.zeros(case.expected.shape)
    for share in range(SHARES):
        kept = {name: np.where(places[name] == share, array, array.dtype.type(0)) for name, array in terms.items()}
        part = case.reference.fed(case.feeds, {**case.inner, **read, **kept}, [case.name]).get(case.name)
        if part is None or part.shape != exact.shape:
            return None
        exact += part
    return exact
