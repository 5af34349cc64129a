"""One model on a deployment runtime, beside what it means: the outputs, and the nodes that the runtime gets wrong.

Where an output disagrees, every node is run by itself, fed with the right values of what it reads: what the runtime
computes otherwise is then the node's own, however much the nodes behind it amplify it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from onnx import ModelProto, NodeProto, helper

from padfix.graph.scopes import label, outer_names_of
from padfix.proof.cut import part_of
from padfix.proof.executors import Array, ExecutionFailed, OnnxRuntimeExecutor, TensorSpec
from padfix.proof.probes import Probe, dynamic_sizes, make_probe
from padfix.proof.sides import OnnxSide
from padfix.proof.spec_executor import SpecExecutor
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


def verify_on(
    runtime: DeploymentRuntime,
    reference: OnnxRuntimeExecutor | SpecExecutor,
    model: ModelProto,
    inputs: Sequence[TensorSpec],
    *,
    given: Sequence[Probe] = (),
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[RuntimeVerdict, list[Repro]]:
    """Return what the runtime makes of ``model``, and a tiny model of each node that it gets wrong.

    Args:
        runtime: The runtime.
        reference: Says what the model means.
        model: The model with its weights.
        inputs: The inputs to feed, with the shapes to feed.
        given: The user's own data; else data is made.
        seed: Of made data.
        progress: Called with a short sentence at each stage.

    Raises:
        ExecutionFailed: The reference can't run the model.
    """
    tell = progress or (lambda stage: None)
    probes = list(given) or [_made(reference, inputs, kind, seed) for kind in KINDS]
    outputs: list[OnRuntime] = []
    for number, probe in enumerate(probes, 1):
        tell(f"Running it on {runtime.label}: data {number} of {len(probes)}")
        expected = reference.run(probe.arrays)
        fixed = _with_shapes(model, probe.arrays, expected)
        outputs += _judged(runtime, fixed, probe, expected, [("", "")] * len(expected), WHOLE)
    wrong = next((each.probe for each in outputs if not each.agrees), None)
    wrong = wrong or next((each.probe for each in outputs if each.max_abs_diff > each.allowed * NODE / WHOLE), None)
    if wrong is None:
        return RuntimeVerdict(runtime.label, reference.name, tuple(outputs)), []
    nodes, repros = [], []
    looked_at = 0
    for found, repro in _nodes(runtime, OnnxSide(reference), model, _named(probes, wrong), tell):
        looked_at += 1
        if not found.agrees:
            nodes.append(found)
            repros.append(repro)
    return RuntimeVerdict(runtime.label, reference.name, tuple(outputs), tuple(nodes), looked_at), repros


def _named(probes: Sequence[Probe], name: str) -> Probe:
    return next(probe for probe in probes if probe.name == name)


def _made(reference: OnnxRuntimeExecutor | SpecExecutor, inputs: Sequence[TensorSpec], kind: str, seed: int) -> Probe:
    """Return the first data of a kind that the model runs on."""
    failure = ExecutionFailed("No data could be made.")
    for shapes in dynamic_sizes(inputs, kind):
        probe = make_probe(inputs, shapes, kind, seed=seed)
        try:
            reference.run(probe.arrays)
        except ExecutionFailed as error:
            failure = error
        else:
            return probe
    raise failure


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
) -> Iterator[tuple[OnRuntime, Repro]]:
    """Yield every node by itself, fed with the reference's values."""
    constants = {tensor.name for tensor in model.graph.initializer}
    nodes = [(index, node) for index, node in enumerate(model.graph.node) if node.op_type != "Constant"]
    constants |= {name for node in model.graph.node if node.op_type == "Constant" for name in node.output}
    for number, (index, node) in enumerate(nodes, 1):
        if number % 10 == 1:
            tell(f"Looking for the node that {runtime.label} computes otherwise: {number} of {len(nodes)}")
        read = [name for name in dict.fromkeys((*node.input, *outer_names_of(node))) if name and name not in constants]
        inner = [name for name in read if name not in probe.arrays]
        outputs = [name for name in node.output if name]
        try:
            values = side.values(probe.arrays, [*inner, *outputs])
        except ExecutionFailed:
            continue
        if any(name not in values for name in (*inner, *outputs)):
            continue  # sequences and the like
        feeds = {name: values[name] if name in values else probe.arrays[name] for name in read}
        expected = {name: values[name] for name in outputs}
        part = _part(model, node, feeds, expected)
        places = [(label(node, index), node.op_type)] * len(outputs)
        own = Probe(probe.name, feeds)
        judged = list(_judged(runtime, part, own, expected, places, NODE))
        worst = next((each for each in judged if not each.agrees), judged[0])
        yield worst, Repro(worst, part.SerializeToString(), feeds, expected[worst.name], outputs.index(worst.name))


def _part(model: ModelProto, node: NodeProto, feeds: Mapping[str, Array], expected: Mapping[str, Array]) -> ModelProto:
    kinds = {
        name: (int(helper.np_dtype_to_tensor_dtype(array.dtype)), tuple(array.shape)) for name, array in feeds.items()
    }
    return _with_shapes(part_of(model, list(expected), kinds), feeds, expected)
