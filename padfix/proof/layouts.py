"""How the axes of paired tensors are ordered: converters from TensorFlow keep a tensor's name and move its channels.

An order is only taken where the lengths allow it, and among several by the numbers, which both models have computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from padfix.proof.executors import Array

Order = tuple[int, ...]
"""A permutation of axes: axis ``order[i]`` of the reference's array is axis ``i`` of the candidate's."""


class Layouts:
    """The orders of paired tensors, by the reference's names; tensors without an entry stand as they are."""

    def __init__(self) -> None:
        self._orders: dict[str, Order] = {}

    def to_candidate(self, name: str, array: Array) -> Array:
        """Return the reference's array as the candidate has it."""
        order = self._orders.get(name)
        return array if order is None or len(order) != array.ndim else np.ascontiguousarray(array.transpose(order))

    def to_reference(self, name: str, array: Array) -> Array:
        """Return the candidate's array as the reference has it."""
        order = self._orders.get(name)
        return array if order is None or len(order) != array.ndim else array.transpose(np.argsort(order))

    def learn(self, name: str, reference: Array, candidate: Array) -> bool:
        """Note how the axes of two arrays of one tensor correspond; False where no order fits their lengths."""
        orders = [
            order
            for order in orders_of(reference.ndim)
            if reference.ndim == candidate.ndim
            and all(reference.shape[axis] == length for axis, length in zip(order, candidate.shape, strict=True))
        ]
        if not orders:
            return False
        straight = tuple(range(reference.ndim))
        best = min(orders, key=lambda order: (_apart(reference.transpose(order), candidate), order != straight))
        if best != straight:
            self._orders[name] = best
        return True


def orders_of(rank: int) -> Sequence[Order]:
    """Return the axes as they stand, channels first and channels last; only the first for fewer than three axes."""
    straight = tuple(range(rank))
    if rank < 3:
        return [straight]
    first, last = (0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1)
    return list(dict.fromkeys([straight, first, last]))


def _apart(first: Array, second: Array) -> float:
    if first.dtype.kind not in "fiub" or second.dtype.kind not in "fiub":
        return 0.0
    usual = np.isfinite(first) & np.isfinite(second)
    difference = np.abs(first[usual].astype(np.float64) - second[usual].astype(np.float64))
    return float(difference.mean()) if difference.size else 0.0
