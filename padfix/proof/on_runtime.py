"""One model on a deployment runtime, beside what it means: the outputs, and the nodes that the runtime gets wrong.

Where an output disagrees, every node is run by itself, fed with the right values of what it reads: what the runtime
computes otherwise is then the node's own, however much the nodes behind it amplify it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper

from padfix.errors import ProofUnavailableError, SourceError
from padfix.graph.scopes import label, outer_names_of
from padfix.proof.cut import part_of
from padfix.proof.executors import Array, ExecutionFailed, Executor, OnnxRuntimeExecutor
from padfix.proof.feeding import Feeding
from padfix.proof.generated import Generated
from padfix.proof.probes import Probe, with_shapes
from padfix.proof.settings import Settings
from padfix.proof.sides import OnnxSide
from padfix.proof.spec_executor import SpecExecutor
from padfix.proof.stretches import FIRST_LOOK
from padfix.proof.user_probes import given_probes
from padfix.results.on_runtime import OnRuntime, RuntimeVerdict

KINDS = ("normal", "ramp", "negative")

WHOLE = 1e-3
"""Share of the largest magnitude that an output may be off: runtimes order their sums differently, layer by layer."""

NODE = 1e-4
"""The same for a single node, where nothing adds up."""

Progress = Callable[[str], None]


class DeploymentRuntime(Protocol):
    """Something that runs a serialized model; see :class:`padfix.runtimes.Runtime`."""

    @property
    def label(self) -> str:
        """Its name with its version."""
        ...

    def run(self, model: bytes, feeds: Mapping[str, Array], shapes: Sequence[tuple[int, ...]]) -> list[Array] | str:
        """Return the outputs, or in words why there are none."""
        ...


@dataclass(frozen=True)
class Repro:
    """A node as a tiny model with its data: what shows the runtime's fault without padfix."""

    found: OnRuntime
    model: bytes
    feeds: Mapping[str, Array]
    expected: Array
    place: int


def prove_on(
    runtime: DeploymentRuntime,
    path: Path,
    reference: str,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    probes: Iterable[Path] = (),
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[RuntimeVerdict, list[Repro]]:
    """Return what the runtime makes of the ONNX file at ``path``, and a tiny model of each node that it gets wrong.

    Args:
        runtime: The runtime.
        path: The model.
        reference: Who says what it means: ``"onnxruntime"`` without optimisations, or ``"spec"``.
        shapes: Fixed shapes of inputs.
        probes: The user's own data; else data is made.
        seed: Of made data.
        progress: Called with a short sentence at each stage.

    Raises:
        ProofUnavailableError: The reference can't run the model.
        SourceError: The weights can't be read, or the model is too large to be handed on whole.
        UsageError: ``shapes`` or the data don't fit the inputs.
    """
    try:
        whole = onnx.load(path)
        whole.SerializeToString()
    except (OSError, ValueError) as error:
        raise SourceError(f"{path} can't be handed to a runtime whole: {error}") from error
    try:
        executor = SpecExecutor(path) if reference == "spec" else OnnxRuntimeExecutor(path, optimised=False)
        given = given_probes(probes, with_shapes(executor.inputs, shapes))
        cases = [(probe, executor.run(probe.arrays)) for probe in given] or _made(executor, shapes, seed)
        return _judge(runtime, executor, whole, cases, progress or (lambda stage: None))
    except ExecutionFailed as failure:
        other = "onnxruntime" if reference == "spec" else "spec"
        raise ProofUnavailableError(
            f"The reference ({reference}) can't run the model: {failure}", f"Use --reference {other}."
        ) from failure


Case = tuple[Probe, dict[str, Array]]
"""Data, and what the model makes of it."""


def _made(reference: Executor, shapes: Mapping[str, Sequence[int]] | None, seed: int) -> list[Case]:
    """Return data of each kind that the model runs on."""
    feeding = Feeding(reference, [], rewritten=True)
    inputs, controls, _ = feeding.generated(shapes)
    run = partial(_run, reference)
    data = Generated(reference, [], feeding, inputs, controls, Settings(seed=seed), run)
    found = [data.first_that_runs(kind) for kind in KINDS]
    cases = [case for case in found if case is not None]
    if not cases:
        raise ExecutionFailed(data.failures[-1] if data.failures else "No data could be made.")
    return cases


def _run(reference: Executor, probe: Probe) -> dict[str, Array]:
    return reference.run(probe.arrays)


def _judge(
    runtime: DeploymentRuntime,
    reference: OnnxRuntimeExecutor | SpecExecutor,
    model: ModelProto,
    cases: Sequence[Case],
    tell: Progress,
) -> tuple[RuntimeVerdict, list[Repro]]:
    outputs: list[OnRuntime] = []
    for number, (probe, expected) in enumerate(cases, 1):
        tell(f"Running it on {runtime.label}: data {number} of {len(cases)}")
        fixed = _with_shapes(model, probe.arrays, expected)
        outputs += _judged(runtime, fixed, probe, expected, [("", "")] * len(expected), WHOLE)
    wrong = next((each.probe for each in outputs if not each.agrees), None)
    wrong = wrong or next((each.probe for each in outputs if each.max_abs_diff > each.allowed * NODE / WHOLE), None)
    if wrong is None:
        return RuntimeVerdict(runtime.label, reference.name, tuple(outputs)), []
    probe = next(probe for probe, _ in cases if probe.name == wrong)
    looked_at = list(_nodes(runtime, OnnxSide(reference), model, probe, tell))
    repros = [repro for repro in looked_at if not repro.found.agrees]
    nodes = tuple(repro.found for repro in repros)
    return RuntimeVerdict(runtime.label, reference.name, tuple(outputs), nodes, len(looked_at)), repros


def _with_shapes(model: ModelProto, feeds: Mapping[str, Array], results: Mapping[str, Array]) -> ModelProto:
    """Return the model with the shapes of this run declared: many runtimes take fixed shapes only."""
    fixed = ModelProto()
    fixed.CopyFrom(model)
    for values, arrays in ((fixed.graph.input, feeds), (fixed.graph.output, results)):
        for value in values:
            if value.name in arrays:
                array = arrays[value.name]
                elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
                value.CopyFrom(helper.make_tensor_value_info(value.name, elem_type, array.shape))
    return fixed


def _judged(
    runtime: DeploymentRuntime,
    model: ModelProto,
    probe: Probe,
    expected: Mapping[str, Array],
    places: Sequence[tuple[str, str]],
    share: float,
) -> Iterator[OnRuntime]:
    shapes = [tuple(array.shape) for array in expected.values()]
    found = runtime.run(model.SerializeToString(), probe.arrays, shapes)
    for place, (name, array) in enumerate(expected.items()):
        node, op_type = places[place]
        if isinstance(found, str):
            yield OnRuntime(name, node, op_type, probe.name, refused=found)
            continue
        difference, allowed = _difference(found[place], array, share)
        yield OnRuntime(name, node, op_type, probe.name, "", difference, allowed)


def _difference(found: Array, expected: Array, share: float) -> tuple[float, float]:
    if found.shape != expected.shape:
        return float("inf"), 0.0
    if not expected.size:
        return 0.0, 0.0
    exact = expected.dtype.kind not in "fc" and expected.dtype.name != "bfloat16"
    meant = expected.astype(np.float64)
    computed = found.astype(np.float64)
    same = (meant == computed) | (np.isnan(meant) & np.isnan(computed))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(meant - computed))
    apart = np.where(np.isnan(apart), np.inf, apart)
    finite = np.abs(meant[np.isfinite(meant)])
    return float(apart.max()), 0.0 if exact else share * float(finite.max(initial=0.0))


def _nodes(
    runtime: DeploymentRuntime, side: OnnxSide, model: ModelProto, probe: Probe, tell: Progress
) -> Iterator[Repro]:
    """Yield every node by itself, fed with the reference's values; what holds no tensors is passed by."""
    constants = {tensor.name for tensor in model.graph.initializer}
    constants |= {name for node in model.graph.node if node.op_type == "Constant" for name in node.output}
    nodes = [_Wired.of(index, node, constants) for index, node in enumerate(model.graph.node)]
    nodes = [each for each in nodes if each.node.op_type != "Constant"]
    for start in range(0, len(nodes), FIRST_LOOK):
        group = nodes[start : start + FIRST_LOOK]
        tell(f"Looking for the node that {runtime.label} computes otherwise: {start + 1} of {len(nodes)}")
        values = {**_values(side, probe, group), **probe.arrays}
        for each in group:
            if all(name in values for name in (*each.read, *each.outputs)):
                feeds = {name: values[name] for name in each.read}
                expected = {name: values[name] for name in each.outputs}
                yield _by_itself(runtime, model, each, Probe(probe.name, feeds), expected)


@dataclass(frozen=True)
class _Wired:
    """A node with its index, what it reads that is not constant, and what it computes."""

    index: int
    node: NodeProto
    read: tuple[str, ...]
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, index: int, node: NodeProto, constants: Container[str]) -> _Wired:
        names = dict.fromkeys((*node.input, *outer_names_of(node)))
        read = tuple(name for name in names if name and name not in constants)
        return cls(index, node, read, tuple(name for name in node.output if name))


def _values(side: OnnxSide, probe: Probe, nodes: Sequence[_Wired]) -> dict[str, Array]:
    """Return what some nodes read and compute, in one run; node by node where not all can be asked for."""
    names = dict.fromkeys(name for each in nodes for name in (*each.read, *each.outputs) if name not in probe.arrays)
    try:
        return side.values(probe.arrays, list(names))
    except ExecutionFailed:
        if len(nodes) == 1:
            return {}
        return {name: array for each in nodes for name, array in _values(side, probe, [each]).items()}


def _by_itself(
    runtime: DeploymentRuntime, model: ModelProto, wired: _Wired, probe: Probe, expected: Mapping[str, Array]
) -> Repro:
    part = _part(model, probe.arrays, expected)
    places = [(label(wired.node, wired.index), wired.node.op_type)] * len(expected)
    judged = list(_judged(runtime, part, probe, expected, places, NODE))
    worst = next((each for each in judged if not each.agrees), judged[0])
    place = wired.outputs.index(worst.name)
    return Repro(worst, part.SerializeToString(), probe.arrays, expected[worst.name], place)


def _part(model: ModelProto, feeds: Mapping[str, Array], expected: Mapping[str, Array]) -> ModelProto:
    kinds = {
        name: (int(helper.np_dtype_to_tensor_dtype(array.dtype)), tuple(array.shape)) for name, array in feeds.items()
    }
    return _with_shapes(part_of(model, list(expected), kinds), feeds, expected)
