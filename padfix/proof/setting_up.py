"""From two models to the judge of their stretches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from padfix.process import watch
from padfix.proof.constants import Constants
from padfix.proof.executors import ExecutionFailed, Executor, OnnxRuntimeExecutor
from padfix.proof.feeding import Feeding
from padfix.proof.judging import StretchJudge
from padfix.proof.likeness import Likeness, Meanings
from padfix.proof.pairing import Pairing, pair_by_name, pair_by_wiring
from padfix.proof.probes import Probe
from padfix.proof.settings import Settings
from padfix.proof.sides import Side, side_of
from padfix.proof.stretches import Stretches


def judge_of(
    first: Side,
    second: Side,
    candidates: Sequence[Executor],
    feeding: Feeding,
    outputs: Mapping[str, str],
    settings: Settings,
    progress: Callable[[str], None],
) -> StretchJudge:
    """Pair the tensors of two models, the original and the candidate, and return who judges the stretches between them.

    ``outputs`` has the candidate's name for each output of the original.
    """
    views = first.view, second.view
    inputs = {name: other for name, other in feeding.same_inputs().items() if name in views[0].inputs}
    named = outputs or {name: name for name in views[0].outputs if name in views[1].outputs}
    likeness = unversioned = None
    constants: tuple[Constants | None, Constants | None] = None, None
    pairing: Pairing
    both_onnx = first.model is not None and second.model is not None
    if first.model is not None and second.model is not None:
        known = tuple(Constants(each, trusted=settings.rewritten) for each in (first.model, second.model))
        meanings = Meanings(first.model.proto), Meanings(second.model.proto)
        constants = known[0], known[1]
        if settings.rewritten:
            pairing = pair_by_name(views, inputs, named)
        else:
            pairing = pair_by_wiring(views, meanings, (known[0], known[1]), inputs, named)
        likeness = Likeness(views, meanings, (known[0], known[1]), pairing.partners)
        plain = Meanings(first.model.proto, versioned=False), Meanings(second.model.proto, versioned=False)
        unversioned = Likeness(views, plain, (known[0], known[1]), pairing.partners)
    else:
        pairing = pair_by_name(views, inputs, named)
    levels = [False]
    if any(getattr(each, "optimised", False) for each in candidates):
        levels.append(True)
    return StretchJudge(
        Stretches((first, second), pairing, likeness, feeding, unversioned),
        constants,
        levels=levels,
        rewritten=settings.rewritten and both_onnx,
        rtol=settings.rtol,
        atol=settings.atol,
        probes_only=settings.probes_only,
        ranges=settings.ranges,
        progress=progress,
    )


def optimised_form_agrees(
    stretches: Stretches, candidate: Executor, probe: Probe, outputs: Mapping[str, str], settings: Settings
) -> bool:
    """Whether what the runtime's optimiser makes of the candidate agrees with the original stretch by stretch.

    Fusions happen in the whole graph only, so the optimised graph is taken as a model of its own, on the probe that the
    outputs disagreed on. ``stretches`` are those between the original and the candidate as it is written.
    """
    if not isinstance(candidate, OnnxRuntimeExecutor):
        return False
    with watch.scratch_folder() as folder:
        try:
            optimised = OnnxRuntimeExecutor(candidate.save_optimised(folder), optimised=False)
            second = side_of(optimised)
            if second is None:
                return False
            own = dataclasses.replace(settings, rewritten=False)
            judge = judge_of(
                stretches.sides[0], second, [optimised], stretches.feeding, outputs, own, lambda words: None
            )
            outcome = judge.run([probe])
        except ExecutionFailed:
            return False
    return not outcome.wrong and not outcome.unknown
