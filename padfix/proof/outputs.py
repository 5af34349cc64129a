"""The outputs of two models: which is which, in which order of axes, and whether they are the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from padfix.proof.compare import compare, loosens
from padfix.proof.executors import Array, Executor, graph_of, numpy_type
from padfix.proof.facts import cast_types
from padfix.proof.matching import Order, match_outputs, order_between
from padfix.proof.probes import Probe
from padfix.proof.settings import Settings
from padfix.results import OutputDifference


class Outputs:
    """The outputs of the original, and what a candidate gives for them.

    Attributes:
        partners: What a candidate calls each output, once one has given any.
        loosened: Whether a tolerance of the user's allows more than the defaults do.
        notes: What there is to say of outputs whose axes stand in another order; a list to add to.
    """

    def __init__(self, reference: Executor, settings: Settings, notes: list[str]) -> None:
        self.partners: dict[str, str] = {}
        self.loosened = False
        self.notes = notes
        self._reference, self._settings = reference, settings
        self._orders: dict[str, Order] = {}

    def types(self, probe: Probe) -> list[np.dtype[Any]]:
        """Return the types that the original computes in: those of its inputs, and what it casts to."""
        return [*(array.dtype for array in probe.arrays.values()), *self._cast]

    @cached_property
    def _cast(self) -> list[np.dtype[Any]]:
        graph = graph_of(self._reference)
        return [numpy_type(each) for each in sorted(cast_types(graph))] if graph is not None else []

    def match(self, results: Mapping[str, Array], found: Mapping[str, object]) -> dict[str, str]:
        """Return what each output is called in ``found``, of arrays, or of None where a name is all there is."""
        partners = match_outputs(results, found, self._settings.output_names)
        self.partners = self.partners or partners
        return partners

    def compare(
        self,
        results: Mapping[str, Array],
        found: Mapping[str, Array],
        types: Sequence[np.dtype[Any]],
        partners: Mapping[str, str],
    ) -> tuple[OutputDifference, ...]:
        """Compare all outputs; ``partners`` says what each is called in ``found``."""
        told = {"rtol": self._settings.rtol, "atol": self._settings.atol}
        self.loosened |= any(loosens(array.dtype, types, **told) for array in results.values())
        return tuple(
            compare(name, array, self._in_layout(name, array, found.get(partners[name])), **told, input_types=types)
            for name, array in results.items()
        )

    def _in_layout(self, name: str, array: Array, found: Array | None) -> Array | None:
        """Return the candidate's output in the reference's layout, where its shape tells that it has another."""
        if found is None or self._settings.rewritten:
            return found
        order = order_between(array.shape, found.shape) if array.shape != found.shape else None
        if order is not None and name not in self._orders:
            self._orders[name] = order
            self.notes.append(f"Output {name!r} has its axes in the order {list(order)} in the result.")
        order = self._orders.get(name)
        if order is None or len(order) != found.ndim or [array.shape[axis] for axis in order] != list(found.shape):
            return found
        return found.transpose(np.argsort(order))
