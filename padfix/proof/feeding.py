"""What both models of a proof are fed: inputs matched, and one set of numbers in the terms of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

import numpy as np

from padfix.errors import ProofUnavailableError
from padfix.proof.executors import Array, Executor, TensorSpec, graph_of, label_of, numpy_type
from padfix.proof.facts import Control, control_inputs, refine
from padfix.proof.matching import InputMatch, blank, match_inputs, read_inputs
from padfix.proof.probes import Probe, is_dynamic, require_ranges, with_shapes
from padfix.proof.settings import Settings

Told = TypeVar("Told")


class Feeding:
    """The inputs of the original and of the candidates.

    ``matches`` says for each candidate where each of its inputs comes from. Where the candidate is the original
    ``rewritten``, its inputs are the original's.

    Raises:
        ProofUnavailableError: A candidate wants an input that the original doesn't have.
        ExecutionFailed: An input can't be fed.
    """

    def __init__(self, reference: Executor, candidates: Sequence[Executor], *, rewritten: bool) -> None:
        self._reference = reference
        self._candidates = candidates
        self._rewritten = rewritten
        self.notes: list[str] = []
        self.matches: list[list[InputMatch]] = []
        given = _with_facts(reference.inputs, reference)
        for candidate in candidates:
            found = match_inputs(given, _with_facts(read_inputs(candidate), candidate))
            if found and isinstance(found[0], str):
                raise self._strange(candidate, [str(each) for each in found])
            self.matches.append(cast(list[InputMatch], found))
        self._note_differences()

    @property
    def first(self) -> list[InputMatch]:
        """The matches of the first candidate."""
        return self.matches[0] if self.matches else []

    def of_candidate(self, number: int, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return the original's arrays under a candidate's names, in its layout and types."""
        feeds = {match.candidate.name: match.feed(arrays[match.reference.name]) for match in self.matches[number]}
        unread = (spec for spec in self._candidates[number].inputs if spec.name not in feeds)
        return {**feeds, **{spec.name: blank(spec) for spec in unread}}

    def common(self, probe: Probe) -> Probe:
        """Return the probe in numbers that both sides can hold."""
        arrays = dict(probe.arrays)
        for match in self.first:
            if match.reference.name in arrays:
                arrays[match.reference.name] = match.common(arrays[match.reference.name])
        return Probe(probe.name, arrays)

    def of_reference(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return the user's arrays under the original's names; they may bear the candidate's.

        Raises:
            ProofUnavailableError: There is no array for some input.
        """
        wanted = self._reference.inputs
        if all(spec.name in arrays for spec in wanted):
            return {spec.name: arrays[spec.name] for spec in wanted}
        renamed = {self._reference_name(name): array for name, array in arrays.items()}
        missing = [spec.name for spec in wanted if spec.name not in renamed]
        if missing:
            raise ProofUnavailableError(
                f"The probe has no array for input {missing[0]!r}.",
                f"The inputs are: {', '.join(spec.name for spec in wanted)}.",
            )
        return {spec.name: renamed[spec.name] for spec in wanted}

    def generated(
        self, shapes: Mapping[str, Sequence[int]] | None
    ) -> tuple[list[TensorSpec], dict[str, Control], list[str]]:
        """Return the inputs to make data for, those that steer a resampling, and notes.

        ``shapes`` are those that the user fixed, by input name of the original or of a candidate.

        Raises:
            UsageError: ``shapes`` doesn't fit the inputs.
        """
        inputs, notes = self._narrowed(with_shapes(self._reference.inputs, self.under_reference_names(shapes or {})))
        controls: dict[str, Control] = {}
        if is_dynamic(inputs) or any(len(spec.shape or ()) == 1 for spec in inputs):
            for executor in (self._reference, *self._candidates):
                graph = graph_of(executor)
                if graph is not None:
                    inputs = refine(inputs, graph)
                    controls = {**control_inputs(graph), **controls}
        return inputs, controls, notes

    def under_reference_names(self, told: Mapping[str, Told]) -> dict[str, Told]:
        """Return what the user told of inputs by the original's names; they may be the candidate's."""
        known = {spec.name for spec in self._reference.inputs}
        return {name if name in known else self._reference_name(name): each for name, each in told.items()}

    def with_ranges(self, settings: Settings) -> Settings:
        """Return the settings with the ranges under the original's names, the usual ones of its inputs among them.

        Raises:
            UsageError: A range of no input, or one that an input's type does not hold.
        """
        told, usual = map(self.under_reference_names, (settings.ranges, settings.usual_ranges))
        names = {spec.name for spec in self._reference.inputs}
        ranges = {**{name: each for name, each in usual.items() if name in names}, **told}
        require_ranges(self._reference.inputs, ranges)
        return dataclasses.replace(settings, ranges=ranges)

    def same_inputs(self) -> dict[str, str]:
        """Return the first candidate's name for each input that both are given in the same layout and type."""
        return {
            match.reference.name: match.candidate.name
            for match in self.first
            if match.order is None and match.reference.elem_type == match.candidate.elem_type
        }

    def _narrowed(self, inputs: Sequence[TensorSpec]) -> tuple[list[TensorSpec], list[str]]:
        """Return the inputs with the lengths that only the candidate fixes, and say which those are."""
        if self._rewritten:
            return list(inputs), []
        found: list[TensorSpec] = []
        notes: list[str] = []
        for spec in inputs:
            match = next((each for each in self.first if each.reference.name == spec.name), None)
            theirs = match.candidate.shape if match is not None else None
            if match is None or theirs is None or (spec.shape is not None and len(spec.shape) != len(theirs)):
                found.append(spec)
                continue
            if match.order is not None:
                theirs = tuple(theirs[int(axis)] for axis in np.argsort(match.order))
            mine = spec.shape or (None,) * len(theirs)
            fixed = [
                axis
                for axis, (own, other) in enumerate(zip(mine, theirs, strict=True))
                if not isinstance(own, int) and isinstance(other, int)
            ]
            # A name stands for one length everywhere; where the candidate only has another name, ours stays.
            shape = tuple(theirs[axis] if axis in fixed else own for axis, own in enumerate(mine))
            if fixed:
                lengths = ", ".join("?" if length is None else str(length) for length in shape)
                notes.append(
                    f"The result takes input {spec.name!r} only at [{lengths}], the original at any length of axis "
                    f"{', '.join(map(str, fixed))}; they were compared there."
                )
            found.append(dataclasses.replace(spec, shape=shape))
        return found, notes

    def _reference_name(self, name: str) -> str:
        for matches in self.matches:
            for match in matches:
                if match.candidate.name == name:
                    return match.reference.name
        return name

    def _note_differences(self) -> None:
        for match in self.first:
            name, other = match.reference.name, match.candidate.name
            if match.order is not None:
                self.notes.append(
                    f"Input {name!r} has its axes in the order {list(match.order)} in the result ({other!r})."
                )
            if match.candidate.elem_type != match.reference.elem_type:
                self.notes.append(
                    f"Input {name!r} is of type {numpy_type(match.candidate.elem_type)} in the result, not "
                    f"{numpy_type(match.reference.elem_type)}; both are given numbers that both types hold."
                )

    def _strange(self, candidate: Executor, lost: Sequence[str]) -> ProofUnavailableError:
        listed = ", ".join(map(repr, lost[:4])) + (f" and {len(lost) - 4} others" if len(lost) > 4 else "")
        return ProofUnavailableError(
            f"The two models have different inputs: nothing fits {listed} of {label_of(candidate)}.",
            f"The reference has: {', '.join(spec.name for spec in self._reference.inputs) or 'no inputs'}.",
        )


def _with_facts(inputs: Sequence[TensorSpec], executor: Executor) -> list[TensorSpec]:
    graph = graph_of(executor) if is_dynamic(inputs) else None
    return refine(inputs, graph) if graph is not None else list(inputs)
