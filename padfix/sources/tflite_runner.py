"""TensorFlow's interpreter as the witness of a TensorFlow Lite file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from padfix.errors import SourceError, UnsupportedError
from padfix.process.apart import Apart, CrashedError, RemoteError
from padfix.process.deadline import Overdue
from padfix.proof.compare import scale_of
from padfix.proof.executors import Array, TensorSpec
from padfix.sources import tensorflow_runtime
from padfix.sources.conversion import Port
from padfix.sources.executor import TensorFlowExecutor
from padfix.sources.tensorflow_runtime import first_line, silent_stderr
from padfix.sources.tflite_fitting import Fitting, fittings, require_fitting
from padfix.sources.tflite_inner import LiteInner
from padfix.sources.tflite_schema import LiteFile

Signature = tuple[str, dict[str, str], dict[str, str]]
"""Key of a signature, and its own names by public name of inputs and of outputs."""

Ports = tuple[Sequence[Port], Sequence[Port]]

STEPS = 2.0
"""Steps of quantisation that a quantised output may be away."""

SHARE = 0.1
"""Of an output's range: what is allowed at most, however far the interpreter's own kernels are apart."""


WIDE_SHARE = 0.002
"""The same for 16 bits."""

_NO_KERNEL = ("unresolved", "custom op", "delegate", "not supported", "does not have", "prepare", "find op")
"""Words of the interpreter about operators that it has no kernel for."""

SAMPLES = 5
"""Runs with moved inputs."""

_LONGER = 64


class LiteExecutor(TensorFlowExecutor):
    """Runs the file as :class:`TensorFlowExecutor` runs a graph.

    A quantised model's numbers are not fixed to the last step: the interpreter holds three sets of kernels, which round
    differently. :meth:`leeway` says how much that is.
    """

    counts_rows = False
    """Without rows its kernels compute sizes from memory that nobody wrote."""

    def __init__(
        self,
        file: LiteFile,
        specifications: Sequence[TensorSpec],
        signature: Signature | None,
        ports: Ports,
        steps: Mapping[str, float],
        inner: LiteInner | None,
        beside: Beside | None = None,
        is_wide: bool = False,
    ) -> None:
        """Name the file, which is loaded in a process of its own: numbers outside its range end that.

        Args:
            file: The file.
            specifications: Name, type and shape of the inputs.
            signature: For a signature that is not of the first subgraph; else None.
            ports: Inputs and outputs of the first subgraph; a port's ``tensor`` is its index.
            steps: One step of quantisation by public name of output; 0 where it is not quantised. Empty for a model
                that is not quantised at all.
            inner: Runs pieces of the file; None where that says nothing of the whole.
            beside: The file as it stands, where ``file`` has its weights written out as floats.
            is_wide: Whether data are quantised to 16 bits.
        """
        self._steps = steps
        self._beside, self._is_wide = beside, is_wide
        self._apart: dict[str, float] = {}
        self._torn: dict[str, float] = {}
        self._process = Apart(partial(_runner, file, signature, ports))
        self._process_beside = Apart(partial(_runner, beside.file, signature, ports)) if beside is not None else None
        super().__init__(specifications, [port.name for port in ports[1]], self._run_default, inner)

    def _run_default(self, feeds: Mapping[str, Array]) -> dict[str, Any]:
        results = self._run(feeds)
        if self._beside is not None:
            self._look_beside(self._beside, feeds, results)
        return results

    def _look_beside(self, beside: Beside, feeds: Mapping[str, Array], results: Mapping[str, Any]) -> None:
        """Hold the file as it stands against these results: its operators one by one, and its outputs.

        Raises:
            RuntimeError: An operator of the file computes something else than its weights say.
        """
        wrong = [] if self._apart else beside.contradicted(feeds)
        if wrong:
            raise RuntimeError(f"its kernels compute something else than its weights say: {', '.join(wrong)}")
        assert self._process_beside is not None
        for name, other in self._process_beside((None, dict(feeds))).items():
            ours, theirs = (np.asarray(each, np.float64) for each in (results[name], other))
            apart = float(np.abs(ours - theirs).max(initial=0.0)) / (scale_of(ours) or 1.0)
            self._apart[name] = max(self._apart.get(name, 0.0), apart)

    def remarks(self) -> list[str]:
        """Return what is to be known of the runs so far, in sentences."""
        torn = [
            f"TensorFlow Lite's own kernels contradict each other: with those that it takes by default, {name!r} is up "
            f"to {share:.2g} of its range away from what its others give."
            for name, share in self._torn.items()
        ]
        if not self._apart:
            return torn
        name = max(self._apart, key=lambda each: self._apart[each])
        words = f"{self._apart[name]:.2g} of the range of {name!r}"
        plain = "Converted and proven are floats with the file's quantised weights."
        return [
            *torn,
            f"{plain} TensorFlow Lite's kernels quantise the data as well, in every run, and are up to {words} away.",
        ]

    def _run(self, feeds: Mapping[str, Array], kernels: str | None = None) -> dict[str, Any]:
        found: dict[str, Any] = self._process((kernels, dict(feeds)))
        return found

    def leeway(self, feeds: Mapping[str, Array], results: Mapping[str, Array]) -> dict[str, float]:
        """Return what rounding leaves open, as an absolute difference by output; nothing unless it is quantised.

        It is :data:`STEPS` steps, or what the interpreter's other kernels differ by on these feeds, which is more in a
        deep network, but never more than :data:`SHARE` of the output's range. There are no other kernels for 16 bits:
        there it is what the outputs move by when the inputs move by a step, up to :data:`WIDE_SHARE`.
        """
        if not self._steps:
            return {}
        apart = dict.fromkeys(self._steps, 0.0)
        for kernels in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
            try:
                others = self._run(feeds, kernels)
            except (RemoteError, CrashedError, Overdue):  # not every operator has every kernel
                continue
            _widen(apart, others, results)
        for name, most in apart.items():
            if most > SHARE * (scale := scale_of(np.asarray(results[name]))) > 0:
                self._torn[name] = max(self._torn.get(name, 0.0), most / scale)
        for seed in range(SAMPLES if self._is_wide else 0):
            moved = {name: _moved_by_a_step(array, seed) for name, array in feeds.items()}
            _widen(apart, self._run(moved), results)
        share, factor = (WIDE_SHARE, STEPS) if self._is_wide else (SHARE, 1.0)
        return {
            name: max(STEPS * step, min(factor * apart[name], share * scale_of(np.asarray(results[name]))))
            for name, step in self._steps.items()
        }


def _widen(apart: dict[str, float], others: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    """Note how far two sets of results are apart at most, by name."""
    for name, result in results.items():
        difference = np.abs(np.asarray(others[name], np.float64) - np.asarray(result, np.float64))
        apart[name] = max(apart[name], float(difference.max(initial=0.0)))


def _moved_by_a_step(array: Array, seed: int) -> Array:
    """Return numbers each one of 2**15 steps of the largest of them higher or lower; all alike for the first seeds."""
    up = np.random.default_rng(seed).integers(0, 2, array.shape) * 2 - 1 if seed > 1 else np.asarray(2 * seed - 1)
    if array.dtype.kind == "f":
        moved: Array = (array + up * np.abs(array).max(initial=0) / 2**15).astype(array.dtype)
        return moved
    if array.dtype.kind != "i":
        return array
    whole: Array = np.clip(array.astype(np.int64) + up, np.iinfo(array.dtype).min, np.iinfo(array.dtype).max)
    return whole.astype(array.dtype)


@dataclass(frozen=True)
class Beside:
    """A file as it stands, beside one whose weights are written out as floats.

    Attributes:
        file: The file.
        contradicted: Returns the results, by name, of its operators that compute something else on given inputs.
    """

    file: LiteFile
    contradicted: Callable[[Mapping[str, Array]], list[str]]


def _runner(file: LiteFile, signature: Signature | None, ports: Ports) -> Callable[[Any], dict[str, Any]]:
    """Return what runs the file: it takes the kernels to use and the inputs by name."""
    tensorflow = tensorflow_runtime.load("a TensorFlow Lite file")
    loaded: dict[str | None, Any] = {}
    looked_at: list[Fitting] = []

    def run(asked: tuple[str | None, Mapping[str, Array]]) -> dict[str, Any]:
        kernels, feeds = asked
        if kernels not in loaded:
            loaded[kernels] = interpreter(tensorflow, file, kernels)
            looked_at[:] = fittings(file.model()) if signature is None else ()
        with silent_stderr():
            results = _run(loaded[kernels], feeds, signature, ports)
        require_fitting(loaded[kernels], looked_at)
        return results

    return run


def _run(loaded: Any, feeds: Mapping[str, Array], signature: Signature | None, ports: Ports) -> dict[str, Any]:
    if signature is not None:
        key, arguments, results = signature
        found = loaded.get_signature_runner(key)(**{arguments[name]: feeds[name] for name in arguments})
        return {name: found[result] for name, result in results.items()}
    shapes = {item["index"]: list(item["shape"]) for item in loaded.get_input_details()}
    resized = False
    for port in ports[0]:
        wanted = list(np.shape(feeds[port.name]))
        if shapes[int(port.tensor)] != wanted:
            loaded.resize_tensor_input(int(port.tensor), wanted)
            resized = True
    if resized:
        loaded.allocate_tensors()
    for port in ports[0]:
        loaded.set_tensor(int(port.tensor), np.asarray(feeds[port.name]))
    loaded.invoke()
    return {port.name: loaded.get_tensor(int(port.tensor)) for port in ports[1]}


def interpreter(tensorflow: Any, file: LiteFile, kernels: str | None = None) -> Any:
    """Return TensorFlow's interpreter with the file in it, by a set of kernels other than the file's.

    Raises:
        SourceError: Damaged.
        UnsupportedError: Operators that this interpreter has no kernel for.
    """
    try:
        with silent_stderr():
            loaded = file.interpreter(tensorflow, kernels=kernels)
            _allocate(loaded)
    except Exception as error:
        reason = first_line(error)
        if reason.startswith("Select TensorFlow op"):
            reason = "it calls operators of TensorFlow, which this interpreter does not have."
        if any(words in reason.lower() for words in _NO_KERNEL):
            raise UnsupportedError(
                f"TensorFlow's interpreter can't run {file.path}: {reason}",
                "Give padfix the SavedModel or Keras file that it was made from.",
            ) from error
        raise SourceError(
            f"TensorFlow's interpreter can't read {file.path}: {reason}", "Fetch or export it again."
        ) from error
    return loaded


def _allocate(loaded: Any) -> None:
    """Make room for the tensors, longer ones where a window does not fit into open lengths, which are 1 at first."""
    try:
        loaded.allocate_tensors()
    except Exception:
        longer = {
            item["index"]: [length if length >= 0 else _LONGER if axis else 1 for axis, length in enumerate(signature)]
            for item in loaded.get_input_details()
            if -1 in (signature := list(item["shape_signature"]))
        }
        if not longer:
            raise
        for index, lengths in longer.items():
            loaded.resize_tensor_input(index, lengths)
        loaded.allocate_tensors()
