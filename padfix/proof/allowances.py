"""All that is ever allowed beyond rounding, in order; each is measured on the original alone.

A stretch that differs by more than its rounding is asked of each allowance in turn. None of them looks at the candidate
but to see whether it stays within what the original itself leaves open, and each has a cap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from onnx import numpy_helper

from padfix.operators.table import OPERATORS
from padfix.proof.case import Case
from padfix.proof.compare import coarsest, distance, is_real
from padfix.proof.constants import constant_tensors
from padfix.proof.cut import output_name, part_of
from padfix.proof.executors import Array, ExecutionFailed, Executor, OnnxRuntimeExecutor
from padfix.proof.graph_view import NodeView
from padfix.proof.probes import Probe
from padfix.proof.rounding import spread, tolerance
from padfix.proof.sides import OnnxSide
from padfix.proof.sums import cancellation, long_sum
from padfix.results import OutputDifference

OUTPUT_SCALE = {
    **{op_type: each.output_scale for (_, op_type), each in OPERATORS.items() if each.output_scale is not None},
    "QuantizeLinear": 1,
    "QLinearMatMul": 6,
    "QLinearAdd": 6,
    "QLinearMul": 6,
    "QLinearGlobalAveragePool": 3,
    "QLinearLeakyRelu": 3,
    "QLinearSigmoid": 3,
    "QLinearSoftmax": 3,
    "QLinearConcat": 0,
    "QGemm": 7,
}
"""Position of the scale that an operator rounds to."""

FIXED_POINT = frozenset({"QLinearSoftmax"})
"""Operators whose kernel in ONNX Runtime sums in fixed point, from tables: seen one step off where no tie is."""

TIE = 2.0**-14
"""How far scales are moved to find ties: under a hundredth of a step at 128 steps.

Half a step has to move visibly when a zero point of up to 255 was added to it in float32, as ONNX Runtime does.
"""

ANY_WAY = 32
"""Moves of several scales, each in a direction of its own: values of one operator on a tie stand behind another's."""


@dataclass(frozen=True)
class Allowance:
    """Something that the original itself leaves open.

    Attributes:
        name: One word or two.
        reason: Why it is no difference between the models, as a sentence for the report.
        allows: Whether the difference of a case is within it; returns the absolute difference allowed, or None.
    """

    name: str
    reason: str
    allows: Callable[[Case], float | None]


CONDITIONING_FACTOR = 16.0
"""Moves of the result that are allowed: every operator of the stretch rounds, the samples move its inputs alone."""

CONDITIONING_CAP = {"float64": 1e-9, "float32": 1e-2, "float16": 2.0**-5, "bfloat16": 2.0**-4}
"""Share of the magnitude beyond which nothing is allowed, however much the original moves."""


def conditioning(case: Case) -> float | None:
    """Return a multiple of what the original's stretch moves when its inputs move in their last bits, up to the cap."""
    cap = CONDITIONING_CAP.get(coarsest(case.types), 0.25) * case.magnitude
    difference = _largest(case)
    if difference is None or difference > cap or not case.reference.can_be_fed:
        return None
    allowed = min(CONDITIONING_FACTOR * own_move(case), cap)
    return allowed if difference <= allowed else None


def own_move(case: Case) -> float:
    """Return how far the original's stretch moves when everything that it reads moves in its last bit."""
    return float(own_moves(case).max(initial=0.0))


def own_moves(case: Case) -> Array:
    """Return how far each number of the original's stretch moves when everything that it reads moves in its last bit.

    Zeros where that can't be told.
    """

    def run(arrays: Mapping[str, Array]) -> Mapping[str, Array]:
        feeds = {name: array for name, array in arrays.items() if name in case.feeds and name not in case.inner}
        inner = {name: arrays[name] for name in case.inner}
        return case.reference.fed(feeds, inner, [case.name])

    none = np.zeros(())
    return spread(run, {**case.feeds, **case.inner}, {case.name: case.expected}).get(case.name, none)


def ties(case: Case) -> float | None:
    """Return one step where every value that differs lies between two steps before it is rounded.

    Such a value takes the other step when the scales that the stretch rounds to, or what it reads, move by
    :data:`TIE`, or when the runtime runs the original's own stretch with its optimisations, which round elsewhere.
    Position by position, nothing else may differ.
    """
    if case.requantised or not rounds_to_steps(case.nodes):
        return None
    if case.expected.shape != case.found.shape or not case.reference.can_be_fed:
        return None
    expected, found = case.expected.astype(np.float64), case.found.astype(np.float64)
    reach = np.full(expected.shape, _fixed_point_step(case))
    try:
        optimised = case.reference.fed(case.feeds, case.inner, [case.name], optimised=True).get(case.name)
        for other in chain([optimised], _moved(case)):
            if other is None or other.shape != expected.shape:
                return None
            reach = np.maximum(reach, np.abs(other.astype(np.float64) - expected))
    except ExecutionFailed:
        return None
    difference = np.abs(found - expected)
    if not np.all(difference <= reach):
        return None
    return float(difference.max(initial=0.0))


def rounds_to_steps(nodes: Iterable[NodeView]) -> bool:
    """Whether some operator rounds to the steps of quantised numbers; those that only read such numbers don't."""
    return any(is_quantised(node) for node in nodes if not node.op_type.startswith("Dequantize"))


def is_quantised(node: NodeView) -> bool:
    """Whether an operator reads or gives the steps of quantised numbers."""
    return node.op_type in OUTPUT_SCALE or "Quant" in node.op_type


def _fixed_point_step(case: Case) -> float:
    """Return one step of an operator of the original that the runtime computes in fixed point; 0 without one."""
    steps = [0.0]
    for node in case.nodes:
        if node.op_type not in FIXED_POINT or not isinstance(case.reference, OnnxSide):
            continue
        scale = constant_tensors(case.reference.model.proto.graph).get(node.inputs[OUTPUT_SCALE[node.op_type]])
        whole = case.expected.dtype.kind in "iu"
        steps.append(1.0 if whole else float(numpy_helper.to_array(scale).max()) if scale is not None else 0.0)
    return max(steps)


POSITION_UNITS = 4.0
"""Units in the last place that a sampling position may be off: a division and a sum on either side."""

_HALVES = ("float16", "bfloat16")


def cut(case: Case) -> float | None:
    """Return the difference where the original's own stretch, fed what the candidate's is, gives what that gives.

    ONNX Runtime has few 16-bit kernels, and rounds between two others only where the tensor there is asked for.
    """
    if not case.reference.can_be_fed or coarsest(case.types) not in _HALVES or not is_real(case.expected.dtype):
        return None
    try:
        own = case.reference.fed(case.feeds, case.inner, [case.name]).get(case.name)
    except ExecutionFailed:
        return None
    apart = distance(own, case.found)
    if not apart.is_float or not apart.largest <= tolerance(case.types, apart.magnitude):
        return None
    return _largest(case)


RESAMPLERS = ("Resize", "Upsample", "ScaleAndTranslate")


def positions(case: Case) -> float | None:
    """Return what a resampling changes when its positions move in their last bits.

    Positions are computed in float32 and go up to the length of an axis, so a weight is off by units in the last place
    of that length, times how far neighbours are apart: at most the range of what is resampled.
    """
    if not any(name in node.op_type for node in case.nodes for name in RESAMPLERS):
        return None
    difference = _largest(case)
    allowed = 0.0
    for array in (*case.inner.values(), *case.feeds.values()):
        is_resampled = is_real(array.dtype) and array.ndim > 2
        if is_resampled and (finite := array[np.isfinite(array)]).size:
            longest = max(*array.shape, *case.expected.shape)
            allowed = max(allowed, POSITION_UNITS * 2.0**-24 * longest * float(finite.max() - finite.min()))
    allowed = min(allowed, CONDITIONING_CAP["float32"] * case.magnitude)
    return allowed if difference is not None and difference <= allowed else None


ANGLE = 4 * np.pi * 2.0**-24
"""What four angles in float32 are off by that reach half a turn, for each element of what is transformed."""

MOST_TURNED = 2.0**-10
"""Share of the magnitude beyond which no angle explains anything."""


def angles(case: Case) -> float | None:
    """Return what a Fourier transform is off by that turns its numbers by angles which float32 holds.

    ONNX Runtime transforms what is no power of two long by chirps, whose angles reach half a turn for each element, and
    multiplies three of them: of a single 1 it is off by 2e-6 for 10 elements, and by 1.7e-4 for 400.
    """
    node, difference = case.nodes[-1], _largest(case)
    is_transform = node.op_type in ("DFT", "STFT") and node.proto is not None and case.expected.ndim > 2
    if not is_transform or difference is None or coarsest(case.types) != "float32":
        return None
    told = {each.name: each.i for each in node.proto.attribute} if node.proto is not None else {}
    is_framed = node.op_type == "STFT"
    kept = case.expected.shape[-2] if is_framed else max(case.expected.shape[:-1])
    length = 2 * (kept - 1) if told.get("onesided", int(is_framed)) else kept
    is_exact = length & (length - 1) == 0
    allowed = 0.0 if is_exact else min(ANGLE * (length + 1), MOST_TURNED) * case.magnitude
    return allowed if difference <= allowed else None


APPROXIMATED = frozenset({"Sigmoid", "LOGISTIC", "Tanh", "TANH"})
"""Functions with results up to 1 that runtimes compute by one formula for all arguments; also as TensorFlow Lite's."""

GATED = frozenset({"GRU", "LSTM", "RNN"})
"""Operators whose results are products of such functions, and at most 1."""

_GATING = frozenset({"FastGelu", "Gelu", "Mish", "QuickGelu", "Swish"})
"""Functions that multiply what they read by one with results up to 1, each number by itself."""

APPROXIMATION = 4.0 * 2.0**-23
"""What they may be off by: four units in the last place of 1.

ONNX Runtime's Sigmoid is off by 1.6e-7 and its Tanh by 2.7e-7, wherever they are.
"""


def approximation(case: Case) -> float | None:
    """Return what a runtime's formula for a bounded function is off by, however small what it gives is."""
    node = case.nodes[-1]
    difference = _largest(case)
    if coarsest(case.types) != "float32" or difference is None:
        return None
    if node.op_type in APPROXIMATED | GATED:
        return APPROXIMATION if difference <= APPROXIMATION else None
    may = gated_by(node.op_type, {**case.feeds, **case.inner}.get(node.inputs[0]))
    if may is None or may.shape != case.expected.shape:
        return None
    apart = np.abs(case.expected.astype(np.float64) - case.found.astype(np.float64))
    return difference if np.all(apart <= may) else None


def gated_by(op_type: str, read: Array | None) -> Array | None:
    """Return what each number may be off by that a function gives which multiplies what it reads by a bounded one."""
    is_gating = op_type in _GATING and read is not None and read.dtype == np.float32
    return APPROXIMATION * np.abs(read.astype(np.float64)) if is_gating and read is not None else None


def _moved(case: Case) -> Iterator[Array | None]:
    """Yield what the original gives when what rounds moves by :data:`TIE`, all one way and each its own.

    Where one tensor is the scale that one operator rounds to and another reads, only the former moves: moved together
    they cancel each other out. Without scales that are known, what the stretch reads moves.
    """
    side = case.reference
    if isinstance(side, OnnxSide):
        kinds = side.kinds(case.inner)
        part = part_of(side.model.proto, [case.name], kinds)
        known = constant_tensors(part.graph)
        rounding = [
            (node, position, numpy_helper.to_array(known[node.input[position]]))
            for node in part.graph.node
            if (position := OUTPUT_SCALE.get(node.op_type, len(node.input))) < len(node.input)
            and node.input[position] in known
        ]
        for ways in _ways(len(rounding)):
            for number, ((node, position, array), way) in enumerate(zip(rounding, ways, strict=True)):
                scale = numpy_helper.from_array((array * (1 + way * TIE)).astype(array.dtype), f"moved scale {number}")
                node.input[position] = scale.name
                part.graph.initializer.append(scale)
            yield side.run_part(part, {**case.feeds, **case.inner}).get(output_name(case.name, kinds))
            del part.graph.initializer[len(part.graph.initializer) - len(rounding) :]
        if rounding:
            return
    for way in (1, -1):
        arrays = {
            name: (array * (1 + way * TIE)).astype(array.dtype) if is_real(array.dtype) else array
            for name, array in {**case.feeds, **case.inner}.items()
        }
        inner = {name: arrays[name] for name in case.inner}
        yield side.fed({name: arrays[name] for name in case.feeds}, inner, [case.name]).get(case.name)


def _ways(count: int) -> Iterator[tuple[int, ...]]:
    """Yield in which direction each of so many scales moves: all of them, and where there are several, any."""
    if not count:
        return
    yield (1,) * count
    yield (-1,) * count
    random = np.random.default_rng(count)
    for _ in range(ANY_WAY if count > 1 else 0):
        yield tuple(random.choice((-1, 1), count).tolist())


def _largest(case: Case) -> float | None:
    """Return the largest difference; None where no number can say it."""
    apart = distance(case.expected, case.found)
    return apart.largest if apart.is_float and np.isfinite(apart.largest) else None


ALLOWANCES: tuple[Allowance, ...] = (
    Allowance(
        "conditioning",
        "The original's own operators turn the last bits of what they read into more than rounding.",
        conditioning,
    ),
    Allowance(
        "cancellation",
        "The terms of a sum cancel, and what is left is as far off as they are rounded.",
        cancellation,
    ),
    Allowance(
        "long sum",
        "So many numbers are added up that the original's own sum is further from the exact one than this.",
        long_sum,
    ),
    Allowance(
        "approximation",
        "Runtimes compute this function by one formula for all arguments, to parts of its largest result.",
        approximation,
    ),
    Allowance(
        "positions",
        "A resampling computes its positions in float32, and they reach as far as an axis is long.",
        positions,
    ),
    Allowance(
        "angles",
        "A Fourier transform turns its numbers by angles in float32, which reach as far as there are elements.",
        angles,
    ),
    Allowance(
        "cut",
        "The original's own operators give the same here: what they read is rounded where it is looked at.",
        cut,
    ),
    Allowance(
        "ties",
        "The original rounds to steps, and a value between two steps may take either.",
        ties,
    ),
)


def allowed_by(case: Case) -> tuple[Allowance, float] | None:
    """Return the first allowance that a case is within, and the absolute difference that it allows."""
    for allowance in ALLOWANCES:
        allowed = allowance.allows(case)
        if allowed is not None:
            return allowance, allowed
    return None


def interpreter_rounding(
    allowed: Mapping[str, float], outputs: tuple[OutputDifference, ...], notes: list[str]
) -> tuple[OutputDifference, ...]:
    """Accept differences up to ``allowed`` by output, which an interpreter's own kernels leave open, and note each."""
    judged = []
    for each in outputs:
        bound = allowed.get(each.name, 0.0)
        if each.equivalent or not each.max_abs_diff <= bound:
            judged.append(each)
            continue
        judged.append(replace(each, equivalent=True, tolerance=bound, detail=""))
        note = f"Quantised numbers differ by their rounding: {each.name!r}, where {bound:.3g} is allowed."
        if note not in notes:
            notes.append(note)
    return tuple(judged)


def optimiser_rounding(reference: Executor, probe: Probe, results: Mapping[str, Array]) -> dict[str, float]:
    """Return how far the original's outputs move with all optimisations, or when its inputs' last bits do.

    ``results`` is what ``reference``, which runs the original, gives for the probe.
    """
    try:
        moves = spread(reference.run, probe.arrays, results)
        found = {name: float(each.max(initial=0.0)) for name, each in moves.items()}
        others = reference.optimised_twin.run(probe.arrays) if isinstance(reference, OnnxRuntimeExecutor) else {}
    except ExecutionFailed:
        return {}
    for name, other in others.items():
        apart = distance(results.get(name), other)
        if np.isfinite(apart.largest):
            found[name] = max(found.get(name, 0.0), apart.largest)
    return found


def optimiser_failure(reference: Executor, probe: Probe) -> str:
    """Return in words why the original can't be run with all optimisations either; empty where it can."""
    if not isinstance(reference, OnnxRuntimeExecutor):
        return ""
    try:
        reference.optimised_twin.run(probe.arrays)
    except ExecutionFailed as failure:
        is_its_own = not (failure.is_out_of_memory or failure.overdue)
        return (
            f"{reference.optimised_twin.label} can't run the original either: {failure.message}" if is_its_own else ""
        )
    return ""
