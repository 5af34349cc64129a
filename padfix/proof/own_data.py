"""Stretches judged on data of their own, which no probe brings to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from padfix.process import deadline
from padfix.proof.allowances import allowed_by, own_move, own_moves, rounds_to_steps
from padfix.proof.bounds import ANY, Bounds, bounds_of
from padfix.proof.case import Case
from padfix.proof.cases import Cases
from padfix.proof.compare import Distance, described, distance, is_float, is_number, is_real
from padfix.proof.deciding_data import FAR, SWITCHED, DecidingData
from padfix.proof.exactness import is_exact
from padfix.proof.executors import Array, ExecutionFailed
from padfix.proof.probes import Probe, within
from padfix.proof.rounding import farthest_slice, own_tolerance
from padfix.proof.steps import steps_of
from padfix.proof.stretches import Judged, Stretch
from padfix.proof.tree_data import ENSEMBLES
from padfix.proof.wide_data import is_arithmetic, is_filled, largest_limit, size_read, wide_data
from padfix.results import OutputDifference

SECONDS = 10.0
"""How long a run of a stretch on data of its own may take: a loop may wait for what such data never brings."""


class OwnData:
    """Judges stretches on data that no probe brings."""

    def __init__(self, cases: Cases) -> None:
        self._cases = cases
        self.stretches = cases.stretches
        self._endless: set[str] = set()

    def judge(self, group: Sequence[Stretch], probe: Probe) -> tuple[dict[str, Judged], set[str]]:
        """Judge stretches on data that no probe brings; return those that differ, and those that said something."""
        wrong: dict[str, Judged] = {}
        living: set[str] = set()
        if not group or not self.stretches.sides[0].can_be_fed:
            return wrong, living
        nodes = {node.index: node for each in group for node in each.nodes}.values()
        others = {node.index: node for each in group for node in each.candidate_nodes}.values()
        limit = max(largest_limit(nodes, self._cases.constants[0]), largest_limit(others, self._cases.constants[1]))
        names = {name for each in group for name in each.above}
        values = self.stretches.values(probe, names)
        free = {name for name in names if self._is_free(name, values[name])}
        deciding = DecidingData(group, self._cases.constants, values)
        for kind, changed in chain(wide_data(values, free, limit), deciding.kinds()):
            words, data = f"{kind} data", {**values, **self._in_range(changed, values)}
            shared = self.stretches.feeding.common(Probe(words, {**probe.arrays, **data})).arrays
            feeds = {name: shared[name] for name in probe.arrays}
            inner = {name: array for name, array in data.items() if name not in feeds}
            some = [each for each in group if each.name not in wrong and not changed.keys().isdisjoint(each.above)]
            expected = self._original(some, feeds, inner)
            asked = [each for each in some if each.name in expected]
            self._cases.switched |= expected.keys() if kind == SWITCHED else set()
            found = self.stretches.candidate(asked, feeds, data, optimised=False) if asked else {}
            for each in asked:
                result = found[each.name]
                if isinstance(result, str):
                    continue  # what is no index any more, say: such data never comes
                judged = self._on_own_data(each, feeds, {**data, each.name: expected[each.name]}, result, words)
                living |= {each.name} if _finite(expected[each.name]).any() else set()
                if judged is not None:
                    wrong[each.name] = judged
        return wrong, living

    def on(self, stretch: Stretch, probe: Probe, data: Mapping[str, Array], words: str) -> Judged | None:
        """Judge one stretch on the given data; None where it agrees.

        Raises:
            ExecutionFailed: The original refuses the data.
        """
        data = self._in_range(data, data)
        shared = self.stretches.feeding.common(Probe(words, {**probe.arrays, **data})).arrays
        feeds = {name: shared[name] for name in probe.arrays}
        inner = {name: array for name, array in data.items() if name not in feeds}
        if not self.stretches.sides[0].has_elements({**feeds, **inner}, [stretch.name]):
            return None
        with deadline.each_run(SECONDS):
            expected = self.stretches.sides[0].fed(feeds, inner, [stretch.name])
        if not expected[stretch.name].size:
            return None
        for optimised in self._cases.levels:
            found = self.stretches.candidate([stretch], feeds, data, optimised=optimised)[stretch.name]
            if isinstance(found, str):
                return self._shown(stretch, Distance(float("inf"), 0.0, False, found), 0.0, words)
            judged = self._on_own_data(stretch, feeds, {**data, **expected}, found, words)
            if judged is not None:
                return judged
        return None

    def _is_free(self, name: str, array: Array) -> bool:
        """Whether a tensor holds other floats on other data: one number all over may be an initial state, or a mask.

        Only some matrices have a Cholesky factor.
        """
        view = self.stretches.sides[0].view
        if not is_real(array.dtype) or not array.size:
            return False
        if any(node.op_type == "Cholesky" for node in view.readers.get(name, ())):
            return False
        return not is_filled(array) or (name in view.producers and view.follows_from_numbers(name))

    def _in_range(self, data: Mapping[str, Array], values: Mapping[str, Array]) -> dict[str, Array]:
        """Return the data within what the user said of inputs, and what the operators above can give.

        Where nothing is left of it but one number all over, ``values`` stand for it.
        """
        found = {name: self._reached(name, within(array, self._bounds(name, array))) for name, array in data.items()}
        return {
            name: values[name] if is_filled(array) and not is_filled(data[name]) else array
            for name, array in found.items()
        }

    def _reached(self, name: str, array: Array) -> Array:
        """Return the numbers that come nearest among those that a tensor can hold where bytes stand for them."""
        steps = steps_of(self.stretches.sides[0].view, self._cases.constants[0], name) if is_real(array.dtype) else None
        return array if steps is None or not steps.fits(array) else steps.nearest(array)

    def _bounds(self, name: str, array: Array) -> Bounds | None:
        told = self._cases.ranges.get(name)
        if told is not None or array.dtype.kind == "b" or not is_number(array.dtype):
            return told
        known = bounds_of(self.stretches.sides[0].view, self._cases.constants[0], name)
        return None if known == ANY or (not is_real(array.dtype) and not np.isfinite(known).all()) else known

    def _original(
        self, group: Sequence[Stretch], feeds: Mapping[str, Array], inner: Mapping[str, Array]
    ) -> dict[str, Array]:
        group = [each for each in group if each.name not in self._endless]
        if not group:
            return {}
        try:
            with deadline.each_run(SECONDS):
                return self.stretches.sides[0].fed(feeds, inner, [each.name for each in group])
        except ExecutionFailed as failure:
            if len(group) == 1:
                self._endless |= {group[0].name} if failure.overdue else set()
                return {}
            return {name: array for each in group for name, array in self._original([each], feeds, inner).items()}

    def _on_own_data(
        self,
        stretch: Stretch,
        feeds: Mapping[str, Array],
        values: Mapping[str, Array],
        found: Array,
        words: str,
    ) -> Judged | None:
        """Return the stretch as wrong where data of its own shows more than rounding, and more than its own moves."""
        expected = values[stretch.name]
        apart = distance(expected, found)
        if is_exact(stretch, self._cases.constants, values, expected):
            return self._shown(stretch, apart, 0.0, words) if apart.largest > 0 else None
        if expected.shape != found.shape:
            return self._shown(stretch, apart, 0.0, words)
        if not is_float(expected.dtype):
            # What was compared or sorted may follow from rounding; steps are held against those between which it lies.
            if apart.largest == 0 or not rounds_to_steps(stretch.nodes):
                return None
            case = self._cases.case(stretch, feeds, values, found, apart.magnitude)
            return self._shown(stretch, apart, 0.0, words) if allowed_by(case) is None else None
        if not np.isfinite(apart.largest):
            usual = _finite(expected) & _finite(found)
            known = (values[name] for name in stretch.above if name in values)
            is_strange = any(is_number(each.dtype) and not np.isfinite(each).all() for each in known)
            if is_strange and not np.array_equal(usual, _finite(expected)):
                return self._shown(stretch, apart, 0.0, words)
            if words.startswith(FAR) and not np.array_equal(usual, _finite(expected)):
                return self._shown(stretch, apart, 0.0, words)
            if not usual.any():
                return None
            apart = distance(expected[usual], found[usual])
        magnitude = max(apart.magnitude, self._cases.magnitudes.get(stretch.name, 0.0))
        types, whole = self._cases.types[stretch.name], self._whole(stretch, values, apart.magnitude, magnitude)
        case = self._cases.case(stretch, feeds, values, found, magnitude)
        allowed = own_tolerance(types, apart.magnitude, whole)
        if apart.largest <= allowed:
            return self._of_a_slice(stretch, case, own_tolerance(types, 0.0, whole), words)
        # However much the original itself moves here: ill-conditioned data tells nothing. Trees only compare what they
        # are fed, which is exact at a threshold as well.
        decides = {node.op_type for node in stretch.nodes} <= ENSEMBLES
        if not decides and (apart.largest <= 16 * own_move(case) or allowed_by(case) is not None):
            return self._of_a_slice(stretch, case, own_tolerance(types, 0.0, whole), words)
        return self._shown(stretch, apart, allowed, words)

    def _whole(self, stretch: Stretch, values: Mapping[str, Array], magnitude: float, usual: float) -> float:
        """Return the size of the numbers by whose parts a runtime may be off, however small those that it gives.

        Args:
            stretch: The stretch.
            values: What it is fed.
            magnitude: Largest absolute value of what it gives for that.
            usual: The same over all probes.
        """
        read = [values[name] for name in stretch.above if name in values]
        both = stretch.nodes, stretch.candidate_nodes
        known = self._cases.constants
        size = max(size_read(both[0], known[0], read), size_read(both[1], known[1], ()))
        if all(map(is_arithmetic, both)):
            return max(magnitude, size)
        # A function is approximated to parts of its range, which is 1 or grows with what it reads.
        is_known = all(node.proto is not None for nodes in both for node in nodes)
        return max(magnitude, min(usual, max(1.0, size))) if is_known else usual

    def _of_a_slice(self, stretch: Stretch, case: Case, least: float, words: str) -> Judged | None:
        """Return the stretch as wrong where one slice of what it gives differs by more than the rounding there."""
        nodes = (*stretch.nodes, *stretch.candidate_nodes)
        if not is_arithmetic(nodes) or farthest_slice(case.types, case.expected, case.found, least)[0] == 0:
            return None
        apart, allowed = farthest_slice(case.types, case.expected, case.found, least, own_moves(case))
        if apart <= allowed:
            return None
        return self._shown(stretch, Distance(apart, float(np.abs(case.expected).max()), True), allowed, words)

    def _shown(self, stretch: Stretch, apart: Distance, allowed: float, words: str) -> Judged:
        difference = described(stretch.name, apart, allowed)
        detail = f"on {words}, made for these operators: no probe brought such there"
        difference = OutputDifference(
            stretch.name, difference.max_abs_diff, difference.max_rel_diff, allowed, False, difference.detail or detail
        )
        return Judged(stretch, difference, words, own=True)


def _finite(array: Array) -> Array:
    return np.isfinite(array) if is_float(array.dtype) else np.ones(array.shape, bool)
