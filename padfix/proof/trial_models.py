"""The tiny models of a local proof, and the data that they are run on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from padfix.graph.scopes import ValueType, bodies_of, normal_domain
from padfix.operators.cost import needed
from padfix.proof.executors import Array
from padfix.proof.probes import fill
from padfix.rules.base import Rewrite, Trial, TrialInput

_IR_VERSION = 8
"""ONNX Runtime reads every IR version up to its own; from 4 on initializers needn't be inputs."""

LOCAL_KINDS = ("normal", "negative", "ramp", "impulses", "ones")


@dataclass(frozen=True)
class Question:
    """One question, in the form it is asked in."""

    before: Sequence[NodeProto]
    opsets: Mapping[str, int]
    rewrite: Rewrite
    outputs: Sequence[str]

    def canonical(self) -> Question:
        """Return the case with values renamed by order of appearance and node names dropped, unless it has bodies."""
        after = self.rewrite.after
        if any(True for node in (*self.before, *after.nodes) for _ in bodies_of(node)):
            return self
        names: dict[str, str] = {"": ""}

        def renamed(given: Iterable[str]) -> list[str]:
            return [names.setdefault(name, f"v{len(names)}") for name in given]

        def rewritten(nodes: Iterable[NodeProto]) -> tuple[NodeProto, ...]:
            copies = []
            for node in nodes:
                copy = NodeProto()
                copy.CopyFrom(node)
                copy.ClearField("name")
                copy.ClearField("doc_string")
                copy.ClearField("metadata_props")
                copy.input[:] = renamed(node.input)
                copy.output[:] = renamed(node.output)
                copies.append(copy)
            return tuple(copies)

        before = rewritten(self.before)
        nodes = rewritten(after.nodes)
        initializers = []
        for tensor in after.initializers:
            copy = TensorProto()
            copy.CopyFrom(tensor)
            copy.name = renamed([tensor.name])[0]
            initializers.append(copy)
        trials = tuple({renamed([name])[0]: given for name, given in trial.items()} for trial in self.rewrite.trials)
        fragment = type(after)(nodes, tuple(initializers), after.opset)
        rewrite = Rewrite(fragment, trials, self.rewrite.exact)
        return Question(before, self.opsets, rewrite, renamed(self.outputs))

    def digest(self) -> bytes:
        """Return a hash of all that the outcome depends on."""
        used = {normal_domain(node.domain) for node in self.before} | {""}
        state = hashlib.sha256()
        head = (
            sorted((domain, self.opsets.get(domain, 1)) for domain in used),
            self.rewrite.after.opset,
            self.rewrite.exact,
            list(self.outputs),
        )
        state.update(repr(head).encode())
        after = self.rewrite.after
        messages: list[NodeProto | TensorProto] = [*self.before, *after.nodes, *after.initializers]
        for message in messages:
            state.update(message.SerializeToString(deterministic=True) + b"\0")
        for trial in self.rewrite.trials:
            for name, given in trial.items():
                state.update(repr((name, given.shape, given.elem_type, given.constant)).encode())
                if given.value is not None:
                    state.update(repr((given.value.dtype.str, given.value.shape)).encode() + given.value.tobytes())
        return state.digest()


def groups(trials: Sequence[Trial]) -> Iterator[list[Trial]]:
    """Yield trials that the same pair of models can run: equal ranks, types and constants."""
    groups: dict[object, list[Trial]] = {}
    for trial in trials:
        key = tuple(
            (name, given.elem_type, given.constant)
            + ((None if given.value is None else given.value.tobytes(),) if given.constant else ())
            + ((given.shape,) if given.constant or given.value is not None else (len(given.shape),))
            for name, given in trial.items()
        )
        groups.setdefault(key, []).append(trial)
    yield from groups.values()


def model_of(
    nodes: Sequence[NodeProto],
    initializers: Sequence[TensorProto],
    opsets: Mapping[str, int],
    trial: Trial,
    question: Question,
) -> ModelProto:
    """Return a model of ``nodes`` whose inputs have the ranks of ``trial`` and, those of data, symbolic lengths."""
    graph = GraphProto(name="trial", node=nodes, initializer=initializers)
    for name, given in trial.items():
        if given.constant:
            value = _weights(given, np.random.default_rng(0))
            graph.initializer.append(numpy_helper.from_array(value if given.value is None else given.value, name))
        else:
            # The inputs that aren't data (sizes, scales) have the length that the rank of the data gives them.
            fixed = given.value is not None
            lengths = [size if fixed else f"{name}_{axis}" for axis, size in enumerate(given.shape)]
            graph.input.append(helper.make_tensor_value_info(name, given.elem_type, lengths))
    graph.output.extend(ValueInfoProto(name=name) for name in question.outputs)
    domains = {normal_domain(node.domain) for node in nodes} | {""}
    imports = [helper.make_opsetid(domain, opsets.get(domain, 1)) for domain in sorted(domains)]
    model = ModelProto(ir_version=_IR_VERSION, producer_name="padfix", opset_import=imports)
    model.graph.CopyFrom(graph)
    return model


def feeds_of(trial: Trial, number: int) -> Iterator[dict[str, Array]]:
    """Yield the data of one trial, one dictionary a kind."""
    inputs = {name: given for name, given in trial.items() if not given.constant}
    kinds = LOCAL_KINDS if any(given.value is None for given in inputs.values()) else LOCAL_KINDS[:1]
    for turn, kind in enumerate(kinds):
        random = np.random.default_rng([turn, number])
        yield {
            name: _data(kind, given, random, first=position == 0)
            for position, (name, given) in enumerate(inputs.items())
        }


def _weights(given: TrialInput, random: np.random.Generator) -> Array:
    """Return numbers by chance; signed bytes of half the range, since on some processors more of them overflow.

    Where a processor has no instructions for it, ONNX Runtime sums products of bytes in pairs, in 16 bits:
    https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html (reduce_range).
    """
    values = fill("normal", given.shape, given.elem_type, random)
    return values >> 1 if values.dtype == np.int8 else values


def _data(kind: str, given: TrialInput, random: np.random.Generator, *, first: bool) -> Array:
    """Return data for one input; beside a ramp, weights are small integers, so sums have no rounding to hide in."""
    if given.value is not None:
        return given.value
    if first or kind == "ones":
        return fill(kind, given.shape, given.elem_type, random)
    values = _weights(given, random)
    if kind == "ramp" and values.dtype.kind not in "iubOSU":
        small: Array = (np.arange(values.size) % 5 - 2).reshape(values.shape).astype(values.dtype)
        return small
    return values


MOST_ELEMENTS = 1 << 25
"""Elements of the largest array of one trial; arrays are float64 in the specification's kernels (256 MiB)."""

MOST_STEPS = 1 << 33
"""Multiplications of one run."""


def is_too_large(nodes: Iterable[NodeProto], opsets: Mapping[str, int], trial: Trial) -> bool:
    """Whether running ``nodes``, each on inputs of ``trial``, needs more than the limits of this module.

    Told before anything is allocated: a file of a hundred bytes can ask for a kernel of a billion taps.
    """
    if any(math.prod(given.shape) > MOST_ELEMENTS for given in trial.values()):
        return True

    def type_of(name: str) -> ValueType | None:
        given = trial.get(name)
        return None if given is None else ValueType(given.elem_type, given.shape)

    def constant(name: str) -> np.ndarray | None:
        given = trial.get(name)
        return None if given is None else given.value

    for node in nodes:
        elements, steps = needed(node, opsets.get(normal_domain(node.domain)), type_of, constant)
        if elements > MOST_ELEMENTS or steps > MOST_STEPS:
            return True
    return False
