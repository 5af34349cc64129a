"""A model run once on a deployment runtime, and how far its outputs are from what they should be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from onnx import ModelProto, helper

from padfix.proof.executors import Array
from padfix.proof.probes import Probe
from padfix.results.on_runtime import OnRuntime

WHOLE = 1e-3
"""Share of the largest magnitude that an output may be off: runtimes order their sums differently, layer by layer."""

NODE = 1e-4
"""The same for a single node, where nothing adds up."""


class DeploymentRuntime(Protocol):
    """Something that runs a serialized model; see :class:`padfix.runtimes.Runtime`."""

    @property
    def label(self) -> str:
        """Its name with its version."""
        ...

    @property
    def rounding(self) -> float:
        """How many times as far as in single precision its numbers may be off."""
        ...

    def run(self, model: bytes, feeds: Mapping[str, Array], shapes: Sequence[tuple[int, ...]]) -> list[Array] | str:
        """Return the outputs, or in words why there are none."""
        ...


def with_shapes(model: ModelProto, feeds: Mapping[str, Array], results: Mapping[str, Array]) -> ModelProto:
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


def judged(
    runtime: DeploymentRuntime,
    model: ModelProto,
    probe: Probe,
    expected: Mapping[str, Array],
    places: Sequence[tuple[str, str]],
    share: float,
    more: float = 0.0,
    sizes: Mapping[str, float] | None = None,
) -> Iterator[OnRuntime]:
    """Yield how far each output is from what is right; ``sizes`` tell how large each gets on all data."""
    shapes = [tuple(array.shape) for array in expected.values()]
    found = runtime.run(model.SerializeToString(), probe.arrays, shapes)
    for place, (name, array) in enumerate(expected.items()):
        node, op_type = places[place]
        if isinstance(found, str):
            yield OnRuntime(name, node, op_type, probe.name, refused=found)
            continue
        size = (sizes or {}).get(name, 0.0)
        difference, allowed = difference_of(found[place], array, share * runtime.rounding, more, size)
        yield OnRuntime(name, node, op_type, probe.name, "", difference, allowed)


def size_of(expected: Array) -> float:
    """Return the largest finite magnitude; 0 where there is none."""
    numbers = np.abs(expected.astype(np.float64))
    return float(numbers[np.isfinite(numbers)].max(initial=0.0))


def difference_of(found: Array, expected: Array, share: float, more: float, size: float = 0.0) -> tuple[float, float]:
    """Return the largest difference, and how far numbers may be off that get as large as ``size`` on other data."""
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
    return float(apart.max()), more if exact else more + share * max(size, size_of(expected))
