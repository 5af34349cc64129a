"""A model run once on a deployment runtime, and how far its outputs are from what they should be."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from onnx import ModelProto, helper

from padfix.proof.allowances import APPROXIMATED, APPROXIMATION, GATED
from padfix.proof.compare import is_float
from padfix.proof.executors import Array, numpy_type
from padfix.proof.facts import cast_types
from padfix.proof.probes import Probe
from padfix.proof.rounding import tolerance
from padfix.results.on_runtime import OnRuntime

WHOLE = 1e-3
"""Share of the largest magnitude that an output may be off: runtimes order their sums differently, layer by layer."""

NODE = 1e-4
"""The same for a single node, where nothing adds up; numbers of 16 bits are rounded by more at every node."""

STEPS = 2.0**-5
"""In place of the former where numbers are rounded to steps of bytes: what lies between two takes the one or the other,
and what is computed of it moves by as much, layer by layer."""

_BEYOND_HALF = 2.0**16

_HALF = 2
"""Bytes."""


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

    def close(self) -> None:
        """End its process; the next run starts another."""
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
    ties: Mapping[str, Array] | None = None,
    inside: Container[str] = (),
) -> Iterator[OnRuntime]:
    """Yield how far each output is from what is right; ``sizes`` tell how large each gets on all data.

    ``ties`` tell of an output by how much each number may be off besides. What is ``inside``, no output of the whole
    model, may have axes of one element more or fewer: MNN gives lines so as a result that it holds as images.

    Behind a wrong one the runtime gets a new process: what writes beyond its memory would spoil what runs next there.
    """
    results = list[OnRuntime]()
    shapes = [tuple(array.shape) for array in expected.values()]
    found = runtime.run(model.SerializeToString(), probe.arrays, shapes)
    # What steps explain does not grow with the rounding of what lies between them.
    share = max(share, min(share, WHOLE) * runtime.rounding * rounding_of(model, probe, expected))
    for place, (name, array) in enumerate(expected.items()):
        node, op_type = places[place]
        if isinstance(found, str):
            results.append(OnRuntime(name, node, op_type, probe.name, refused=found))
            continue
        # What a recurrent layer gives is made of numbers up to 1, however small it is on these data.
        size = max((sizes or {}).get(name, 0.0), 1.0 if op_type in GATED else 0.0)
        formula = APPROXIMATION if op_type in APPROXIMATED else 0.0
        given, may = found[place], (ties or {}).get(name)
        if name in inside and _without_ones(given.shape) == _without_ones(array.shape):
            given = given.reshape(array.shape)
        if may is not None and given.shape == array.shape:
            given = np.where(np.abs(given.astype(np.float64) - array) <= may, array, given)
        difference, allowed = difference_of(given, array, share, more + formula, size)
        results.append(OnRuntime(name, node, op_type, probe.name, "", difference, allowed))
    if any(each.max_abs_diff > each.allowed for each in results):
        runtime.close()
    yield from results


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(each for each in shape if each != 1)


def whole_share(model: ModelProto) -> float:
    """Return what share of its largest magnitude an output of a model may be off."""
    return STEPS if any("QuantizeLinear" in node.op_type for node in model.graph.node) else WHOLE


def rounding_of(model: ModelProto, probe: Probe, expected: Mapping[str, Array]) -> float:
    """Return how many times as far as in single precision numbers may be off, by the types that a model computes in."""
    arrays = (*probe.arrays.values(), *expected.values())
    types = [*(array.dtype for array in arrays), *map(numpy_type, sorted(cast_types(model.graph)))]
    return max(1.0, tolerance(types, 1.0) / NODE)


def size_of(expected: Array) -> float:
    """Return the largest finite magnitude; 0 where there is none."""
    numbers = np.abs(expected.astype(np.float64))
    return float(numbers[np.isfinite(numbers)].max(initial=0.0))


def difference_of(found: Array, expected: Array, share: float, more: float, size: float = 0.0) -> tuple[float, float]:
    """Return the largest difference, and how far numbers may be off that get as large as ``size`` on other data.

    Where the model gives no number there is nothing to differ from: runtimes promise nothing of what is undefined.
    """
    if found.shape != expected.shape:
        return float("inf"), 0.0
    if not expected.size:
        return 0.0, 0.0
    exact = expected.dtype.kind not in "fc" and expected.dtype.name != "bfloat16"
    meant, computed = _wide(expected), _wide(found)
    same = (meant == computed) | np.isnan(meant)
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(meant - computed))
    apart = np.where(np.isnan(apart), np.inf, apart)
    return float(apart.max()), more if exact else more + share * max(size, size_of(expected))


def _wide(array: Array) -> Array:
    """Return numbers in double precision; what float16 does not hold is one step above the largest that it does."""
    wide = array.astype(np.float64)
    return np.clip(wide, -_BEYOND_HALF, _BEYOND_HALF) if array.dtype == np.float16 else wide


def is_undefined(array: Array) -> bool:
    """Whether data tell nothing of who reads them: some are no numbers, or more than their 16 bits hold."""
    if not is_float(array.dtype):
        return False
    return bool(np.isnan(array).any() or (array.dtype.itemsize == _HALF and np.isinf(array).any()))
