"""Data that the original takes: of every kind, at a size and with values that it runs on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice

from onnx import TensorProto

from padfix.files.model import Model
from padfix.process import deadline
from padfix.proof.alone import Alone
from padfix.proof.empty_tensors import leaves_a_window_empty
from padfix.proof.executors import Array, ExecutionFailed, Executor, OnnxRuntimeExecutor, TensorSpec, graph_of
from padfix.proof.facts import Control, named_lengths, named_texts
from padfix.proof.feeding import Feeding
from padfix.proof.probes import KINDS, Probe, dynamic_sizes, every_small_size, is_dynamic, make_probe
from padfix.proof.roles import Roles
from padfix.proof.settings import Settings
from padfix.proof.ties import Ties

LEAST_PATIENCE = 15.0
"""Seconds that a run may take at least, however quick the others were (sizes differ)."""

BEHIND_ENDLESS = 2.0
"""Seconds that a run may take behind one without an end."""

OTHER_NUMBERS = 3
"""Probes of other numbers that are tried where a loop did not end on the first."""

PATIENCE = 50.0
"""How many times as long as the longest run so far another one may take."""

Run = Callable[[Probe], dict[str, Array]]


class Generated:
    """Makes data for the inputs of the original.

    Args:
        reference: Runs the original.
        candidates: Run the result.
        feeding: What both are fed.
        inputs: The inputs to make data for.
        controls: Those that steer a resampling.
        settings: How the proof is to go.
        run: Runs the original on a probe.
        windows: Gives the first candidate (the original, where there is none) as ONNX, to leave out sizes at which one
            of its windows is longer than what it reads. Without it those are left out where another runtime than ONNX
            Runtime, which refuses most of them, runs the original.

    Attributes:
        failures: Why inputs that were tried were left out.
        made: The first probe that the original ran on.
    """

    def __init__(
        self,
        reference: Executor,
        candidates: Sequence[Executor],
        feeding: Feeding,
        inputs: Sequence[TensorSpec],
        controls: Mapping[str, Control],
        settings: Settings,
        run: Run,
        windows: Callable[[], Model] | None = None,
    ) -> None:
        self.failures: list[str] = []
        self.made: Probe | None = None
        self._reference, self._candidates = reference, candidates
        self._feeding, self._inputs, self._controls = feeding, inputs, controls
        self._settings, self._run = settings, run
        first = candidates[0] if candidates else None
        if (
            windows is None
            and isinstance(first, OnnxRuntimeExecutor)
            and not isinstance(reference, OnnxRuntimeExecutor)
        ):
            self._windows: Callable[[], Model] | None = lambda: first.skeleton
        else:
            self._windows = windows
        self._is_dynamic = is_dynamic(inputs)
        self._ties = Ties(reference, inputs)
        self._is_declared_empty = not inputs or any(0 in (spec.shape or ()) for spec in inputs)
        self._accepted: dict[str, tuple[int, ...]] | None = None
        self._roles: Roles | None = None
        self._patience = settings.patience
        self._longest = 0.0
        self._is_endless = False
        self._alone: Alone | None = None
        self._roomless: dict[tuple[tuple[str, tuple[int, ...]], ...], bool] = {}

    @property
    def is_hopeless(self) -> bool:
        """Whether other kinds would only fail as this one did, at the same sizes."""
        return self._accepted is None and self._is_dynamic and not self._is_endless

    def first_that_runs(self, kind: str) -> tuple[Probe, dict[str, Array]] | None:
        """Return the first probe of a kind that the original runs on, and its results; None where there is none."""
        for shapes in map(self._ties.fitted, self._sizes(kind)):
            try:
                first = self._feeding.common(self._made(shapes, kind))
            except ExecutionFailed as failure:
                self.failures.append(sentence(failure.message))
                continue
            if self._is_dynamic and self._finds_no_room(first):
                self.failures.append(f"At {shapes_text(first.shapes)} a window is longer than what it reads.")
                continue
            suited = map(self._feeding.common, self._suited(first, kind))
            for probe in chain(suited, (first,), self._of_other_numbers(shapes, kind)):
                try:
                    results = self._timed_run(probe)
                except ExecutionFailed as failure:
                    where = f"On {kind} data at {shapes_text(probe.shapes)}: " if failure.overdue else ""
                    self.failures.append(where + sentence(failure.message))
                    if self._alone is None and isinstance(self._reference, OnnxRuntimeExecutor):
                        self._alone = Alone(self._reference)
                    if failure.overdue:
                        self._is_endless, self._patience = True, min(BEHIND_ENDLESS, self._patience)
                    continue
                if results and not self._is_declared_empty and not any(array.size for array in results.values()):
                    self.failures.append(f"All outputs are empty at {shapes_text(probe.shapes)}.")
                    continue
                self._accepted, self.made = probe.shapes, self.made or probe
                return probe, results
            if self._is_endless:
                return None
        return None

    def _made(self, shapes: Mapping[str, tuple[int, ...]], kind: str, turn: int = 0) -> Probe:
        settings = self._settings
        seed = settings.seed + turn
        return make_probe(
            self._inputs,
            shapes,
            kind,
            seed=seed,
            controls=self._controls,
            ranges=settings.ranges,
            texts=self._texts,
        )

    @cached_property
    def _texts(self) -> list[str]:
        """The texts that the models name."""
        if not any(spec.elem_type == TensorProto.STRING for spec in self._inputs):
            return []
        graphs = [graph for graph in map(graph_of, (self._reference, *self._candidates)) if graph is not None]
        return [*dict.fromkeys(text for each in graphs for text in named_texts(each.node, each.initializer))]

    def _of_other_numbers(self, shapes: Mapping[str, tuple[int, ...]], kind: str) -> Iterator[Probe]:
        """Yield probes of a kind with other numbers, where a loop has no end on some."""
        for turn in range(1, OTHER_NUMBERS + 1):
            if not self._is_endless:
                return
            yield self._feeding.common(self._made(shapes, kind, turn))

    def _suited(self, probe: Probe, kind: str) -> Iterator[Probe]:
        """Yield the probe with values that suit its readers, where the user said nothing of them."""
        return self._known_roles().suited(probe, self._settings.seed + KINDS.index(kind))

    def _known_roles(self) -> Roles:
        if self._roles is None:
            free = [spec for spec in self._inputs if spec.name not in self._settings.ranges]
            self._roles = Roles([self._reference, *self._candidates], free)
        return self._roles

    def steered(self, probe: Probe) -> Probe:
        """Return a probe of other lengths with the sizes and indices in it as their readers take them.

        Nothing is run for that, because runtimes crash where there are no rows.
        """
        return next(self._known_roles().suited(probe, self._settings.seed, runs=False), probe)

    def _timed_run(self, probe: Probe) -> dict[str, Array]:
        """Run the original, for as long as its other runs let expect.

        One that does not take all sizes is given others than it took in a process of its own first, because
        ONNX Runtime crashes on some that it should refuse.
        """
        begun = time.monotonic()
        with deadline.each_run(self._patience):
            if self._alone is not None and probe.shapes != self._accepted:
                self._alone.run(probe.arrays)
            results = self._run(probe)
        self._longest = max(self._longest, time.monotonic() - begun)
        self._patience = max(BEHIND_ENDLESS if self._is_endless else LEAST_PATIENCE, PATIENCE * self._longest)
        return results

    def _finds_no_room(self, probe: Probe) -> bool:
        """Whether a window is longer than what it reads, of a model where that is looked at."""
        if self._windows is None:
            return False
        fed = self._feeding.of_candidate(0, probe.arrays) if self._candidates else probe.arrays
        shapes = tuple((name, array.shape) for name, array in fed.items())
        if shapes not in self._roomless:
            self._roomless[shapes] = leaves_a_window_empty(self._windows(), fed)
        return self._roomless[shapes]

    def _sizes(self, kind: str) -> Iterator[dict[str, tuple[int, ...]]]:
        """Yield sizes to try: the kind's own, the one the model took before, others, at last every small one."""
        sizes = dynamic_sizes(self._inputs, kind, self._settings.rows)
        # A few others first, so that a model that wants multiples of 32 is still seen at more than one size.
        yield from islice(sizes, 5)
        if self._accepted is not None:
            yield self._accepted
        yield from sizes
        if self._accepted is None and self._is_dynamic:
            until = time.monotonic() + self._settings.search
            graph = graph_of(self._reference)
            for shapes in every_small_size(self._inputs, named_lengths(graph) if graph is not None else ()):
                if time.monotonic() > until:
                    return
                yield shapes


def sentence(text: str) -> str:
    """Return a text with a full stop at its end."""
    return text if text.endswith((".", "...")) else f"{text}."


def shapes_text(shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Return shapes for a sentence."""
    return ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items()) or "no inputs"
