"""LSTM, GRU and RNN of every version, step by step as the specification has them.

onnx.reference runs one direction forwards, with the usual activations, whatever else the node says. Each step is
rounded to the element type, as runtimes do it: of a gate that is nearly closed, rounding is most of what comes through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from padfix.kernels.windows import Array

_Function = Callable[[Array], Array]

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_USUAL = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


_PLAIN: dict[str, _Function] = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": _sigmoid,
    "softplus": lambda x: np.logaddexp(0, x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "tanh": np.tanh,
}
_WITH_ALPHA: dict[str, tuple[Callable[[Array, float], Array], float]] = {
    "elu": (_elu, 1.0),
    "leakyrelu": (lambda x, alpha: np.where(x < 0, alpha * x, x), 0.01),
    "thresholdedrelu": (lambda x, alpha: np.where(x > alpha, x, 0), 1.0),
}
_WITH_BOTH: dict[str, tuple[Callable[[Array, float, float], Array], float | None, float | None]] = {
    "affine": (lambda x, alpha, beta: alpha * x + beta, None, None),
    "hardsigmoid": (lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), 0.2, 0.5),
    "scaledtanh": (lambda x, alpha, beta: alpha * np.tanh(beta * x), None, None),
}
"""Two of them are no operators any more, and have no defaults."""


def _activations(names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]) -> Iterator[_Function]:
    """Yield the functions; those that take a number get the next one of its list, or the default of the operator."""
    left, more = iter(alphas), iter(betas)
    for name in (each.lower() for each in names):
        if name in _PLAIN:
            yield _PLAIN[name]
        elif name in _WITH_ALPHA:
            function, alpha = _WITH_ALPHA[name]
            yield partial(_called, function, next(left, alpha))
        elif name in _WITH_BOTH:
            of_two, *defaults = _WITH_BOTH[name]
            numbers = [next(given, default) for given, default in zip((left, more), defaults, strict=True)]
            if None in numbers:
                raise NotImplementedError(f"{name} without its two numbers has no default for them.")
            yield partial(_called, of_two, *numbers)
        else:
            raise ValueError(f"{name!r} is no activation of a recurrent layer.")


def _called(function: Callable[..., Array], *numbers_and_data: Any) -> Array:
    *numbers, data = numbers_and_data
    return np.asarray(function(data, *numbers))


@dataclass(frozen=True)
class _Direction:
    """One direction: weights of shape [gates, units, ...], biases [gates, units], and what the node says."""

    op_type: str
    weights: Array
    recurrence: Array
    bias: Array
    state_bias: Array
    peepholes: Array  # of the gates that read, give and forget
    functions: Sequence[_Function]
    clip: float
    couples: bool
    resets_after: bool

    def run(self, data: Array, state: Array, cell: Array) -> tuple[Array, Array, Array]:
        """Return the states of all steps, of shape [steps, batch, units], and the last one and its cell's."""
        states = np.zeros((len(data), *state.shape), state.dtype)
        step = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self.op_type]
        for number, each in enumerate(data):
            state, cell = step(each, state, cell)
            states[number] = state
        return states, state, cell

    def _active(self, number: int, value: Array) -> Array:
        return self.functions[number](np.clip(value, -self.clip, self.clip))

    def _gate(self, gate: int, data: Array, state: Array) -> Array:
        return np.asarray(
            data @ self.weights[gate].T + self.bias[gate] + state @ self.recurrence[gate].T + self.state_bias[gate]
        )

    def _lstm(self, data: Array, state: Array, cell: Array) -> tuple[Array, Array]:
        reads, gives, forgets, makes = (self._gate(gate, data, state) for gate in range(4))
        looks = self.peepholes
        share = self._active(0, reads + looks[0] * cell)
        kept = 1 - share if self.couples else self._active(0, forgets + looks[2] * cell)
        cell = kept * cell + share * self._active(1, makes)
        return self._active(0, gives + looks[1] * cell) * self._active(2, cell), cell

    def _gru(self, data: Array, state: Array, cell: Array) -> tuple[Array, Array]:
        update, reset = (self._active(0, self._gate(gate, data, state)) for gate in range(2))
        read = data @ self.weights[2].T + self.bias[2]
        if self.resets_after:
            before = reset * (state @ self.recurrence[2].T + self.state_bias[2])
        else:
            before = (reset * state) @ self.recurrence[2].T + self.state_bias[2]
        return (1 - update) * self._active(1, read + before) + update * state, cell

    def _rnn(self, data: Array, state: Array, cell: Array) -> tuple[Array, Array]:
        return self._active(0, self._gate(0, data, state)), cell


class _Recurrent(OpRun):
    op_domain = ""

    def _run(
        self,
        X: Array,
        W: Array,
        R: Array,
        B: Array | None = None,
        lengths: Array | None = None,
        initial: Array | None = None,
        cell: Array | None = None,
        P: Array | None = None,
        **attributes: Any,
    ) -> tuple[Array, ...]:
        op_type, batch_first = self.onnx_node.op_type, bool(attributes.get("layout"))
        if op_type == "LSTM" and attributes.get("clip") is not None:
            # By the text the cell is clipped before its activation; ONNX Runtime lets it through.
            raise NotImplementedError("What the clip of an LSTM does to its cell is read in two ways.")
        data = X.swapaxes(0, 1) if batch_first else X
        directions, units = R.shape[0], R.shape[2]
        kind = np.result_type(X.dtype, np.float32)
        zeros = np.zeros((directions, data.shape[1], units), kind)
        begins = [
            zeros if each is None else (each.swapaxes(0, 1) if batch_first else each).astype(kind)
            for each in (initial, cell)
        ]
        steps = np.full(data.shape[1], len(data)) if lengths is None else lengths.ravel()
        every, last, kept = np.zeros((len(data), *zeros.shape), kind), zeros.copy(), zeros.copy()
        for number, each in enumerate(_directions(op_type, (W, R, B, P), attributes)):
            turns = attributes.get("direction") == "reverse" or number == 1
            for length in np.unique(steps):
                alike = steps == length
                read = data[:length, alike].astype(kind)
                states, last[number, alike], kept[number, alike] = each.run(
                    read[::-1] if turns else read, begins[0][number, alike], begins[1][number, alike]
                )
                every[:length, number, alike] = states[::-1] if turns else states
        if batch_first:
            every, last, kept = every.transpose(2, 0, 1, 3), last.swapaxes(0, 1), kept.swapaxes(0, 1)
        found = (every, last, kept)[: 3 if op_type == "LSTM" else 2]
        return tuple(each.astype(X.dtype) for each in found[: len(self.onnx_node.output)])


def _directions(
    op_type: str, tensors: tuple[Array, Array, Array | None, Array | None], attributes: dict[str, Any]
) -> Iterator[_Direction]:
    """Yield what each direction computes with."""
    W, R, B, P = tensors
    kind = np.result_type(W.dtype, np.float32)
    gates, units, count = _GATES[op_type], R.shape[2], R.shape[0]
    names = list(attributes.get("activations") or _USUAL[op_type] * count)
    numbers = (attributes.get(f"activation_{each}") or () for each in ("alpha", "beta"))
    functions = list(_activations(names, *numbers))
    size = len(functions) // count
    biases = np.zeros((count, 2, gates, units), kind) if B is None else B.astype(kind).reshape(count, 2, gates, units)
    looks = np.zeros((count, 3, units), kind) if P is None else P.astype(kind).reshape(count, 3, units)
    clip = attributes.get("clip")
    for number in range(count):
        yield _Direction(
            op_type,
            W[number].astype(kind).reshape(gates, units, -1),
            R[number].astype(kind).reshape(gates, units, units),
            biases[number, 0],
            biases[number, 1],
            looks[number],
            functions[number * size : (number + 1) * size],
            np.inf if clip is None else float(clip),
            bool(attributes.get("input_forget")),
            bool(attributes.get("linear_before_reset")),
        )


RECURRENT_OPS: list[type[OpRun]] = [type(name, (_Recurrent,), {}) for name in _GATES]
