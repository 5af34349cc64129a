"""A recurrent layer with each of its steps written out, in products, sums and activations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, helper

from padfix.graph import attributes
from padfix.operators.constant_chains import holds_zeros
from padfix.operators.recurrent_layers import activations_of, recurrent_traits
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.elementary_forms import clipped
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

MOST_STEPS = 128
"""Of all directions together: each is a dozen nodes."""

_STEPS = 1
"""The axis of the steps, within a cell."""

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_INPUTS = ("data", "weights", "recurrence", "bias", "lengths", "state", "cell", "peepholes")
_LENGTHS = _INPUTS.index("lengths")
_OPERATORS_OF: Mapping[str, str] = {
    each.lower(): each
    for each in (
        *("Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh", "Sigmoid", "Softplus", "Softsign"),
        *("Tanh", "ThresholdedRelu"),
    )
}
"""The operators that activations are, by their names in a layer; Affine and ScaledTanh are so no more."""

_NUMBERS: Mapping[str, Mapping[str, float | None]] = {
    "Affine": {"alpha": None, "beta": None},
    "Elu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.01},
    "ScaledTanh": {"alpha": None, "beta": None},
    "ThresholdedRelu": {"alpha": 1.0},
}
"""What numbers activations have, and which ones where nothing else is said; None where something must be."""

_TURNING = {"turned-back": False, "turned-back-alike": False}

_OPERATORS: Operators = (
    ("MatMul", {"rank": 3, "list-first": False, "list-second": False}),
    ("Transpose", {**_TURNING, "rank": 2}),
    ("Split", {"axis-written": True, "split-evenly": True, "pieces-told": True}),
    ("Squeeze", {"rank": 3}),
    ("Unsqueeze", {"rank": 3}),
    ("Concat", {}),
    ("Add", {}),
    ("Sub", {"from-constant": False}),
    ("Mul", {"gate-second": False}),
)


_WITH_FORMS = ("Softplus", "Softsign", "ThresholdedRelu")
"""Activations that are written in products, sums and exponentials where they stand."""


@dataclass(frozen=True)
class _Activation:
    """What is done to a sum.

    Attributes:
        op_type: An operator, Affine or ScaledTanh.
        numbers: Its attributes.
    """

    op_type: str
    numbers: Mapping[str, float]

    @property
    def operators(self) -> tuple[str, ...]:
        """What is written for it, beside products and sums."""
        return {"Affine": (), "ScaledTanh": ("Tanh",)}.get(self.op_type, (self.op_type,))

    def of(self, builder: FragmentBuilder, value: Any, dtype: np.dtype[Any]) -> Any:
        """Return it of a value."""

        def times(value: Any, name: str) -> Any:
            return builder.op("Mul", [value, builder.constant(np.array(self.numbers[name], dtype), name)])

        if self.op_type == "Affine":
            return builder.op(
                "Add", [times(value, "alpha"), builder.constant(np.array(self.numbers["beta"], dtype), "beta")]
            )
        if self.op_type == "ScaledTanh":
            return times(builder.op("Tanh", [times(value, "beta")]), "alpha")
        return builder.op(self.op_type, [value], dict(self.numbers))


@dataclass(frozen=True)
class _Layer:
    """What the node says of all of its steps."""

    op_type: str
    steps: int
    hidden: int
    reverses: tuple[bool, ...]  # of each direction, whether it begins at the end
    batch_first: bool
    activations: tuple[_Activation, ...]  # of one direction after the other
    clip: np.ndarray | None
    couples: bool
    resets_after: bool
    lengths: np.ndarray | None  # of each sequence, where they are constants, and not all as long as there are steps
    whole: np.ndarray  # 1 in the element type


def _activations(node: NodeProto, directions: int) -> tuple[_Activation, ...] | None:
    """Return the activations of a layer; None where one is no such, or has no numbers that it needs.

    Those that have any take them one after the other from what is listed.
    """
    lists = {each: attributes.find(node, f"activation_{each}") for each in ("alpha", "beta")}
    told = {name: iter([] if found is None else found.floats) for name, found in lists.items()}
    found = []
    for name in activations_of(node, directions):
        op_type = _OPERATORS_OF.get(name, "")
        usual = _NUMBERS.get(op_type, {})
        numbers = {each: next(told[each], usual[each]) for each in usual}
        known = {each: number for each, number in numbers.items() if number is not None}
        if not op_type or len(known) < len(numbers):
            return None
        found.append(_Activation(op_type, known))
    return tuple(found)


def forms_in_steps(site: Site) -> Iterator[Form]:
    """Yield a layer as its steps, and then whatever the target has against activations that have forms of their own."""
    layer = _layer(site)
    used = [] if isinstance(layer, Refusal) else [one for each in layer.activations for one in each.operators]
    # What a target has against large numbers in a Tanh is mended where the Tanh stands.
    told = {"Tanh": {"gates-other-data": False, "bounded": True}, "HardSigmoid": {"gates-other-data": False}}
    activations = tuple((each, told.get(each, {})) for each in sorted(set(used)))
    operators = _OPERATORS
    if isinstance(layer, _Layer) and layer.clip is not None:
        operators = (*operators, ("Clip", {}))
    if site.input_name(_LENGTHS) and site.constant(_LENGTHS) is None:
        cast: Traits = {"numbers": "integer", "elements": "integer", "unsigned": False, "gives": "single"}
        casts = (("Cast", cast), ("Cast", {**cast, "numbers": "boolean", "elements": "float"}))
        operators = (*operators, *casts, ("Reshape", {"rank": 1}), ("Greater", {"broadcasts": True}))
    if not attributes.integer(site.node, "layout", 0):
        turns = recurrent_traits(site.scope, site.node)["over-batch"]
        operators = (*operators, ("Transpose", {**_TURNING, "rank": 3, "over-batch": turns}))
    why_not = layer if isinstance(layer, Refusal) else None
    write = partial(_written, site, layer)
    yield Form("its steps written out", (*operators, *activations), write, why_not)
    others = tuple(each for each in activations if each[0] not in _WITH_FORMS)
    yield Form("its steps written out, with activations in other forms", (*operators, *others), write, why_not)


def _layer(site: Site) -> _Layer | Refusal:
    """Return what there is to write, or why it can't be."""
    node, known = site.node, site.input_type(0)
    batch_first = attributes.integer(node, "layout", 0) != 0
    direction = site.text("direction", "forward")
    reverses = {"reverse": (True,), "bidirectional": (False, True)}.get(direction, (False,))
    shape = () if known is None or known.shape is None else known.shape
    steps = shape[batch_first] if len(shape) == 3 else None
    activations = _activations(node, len(reverses))
    lengths, recurrence = site.constant(_LENGTHS), site.input_type(_INPUTS.index("recurrence"))
    hidden = None if recurrence is None or not recurrence.shape else recurrence.shape[-1]
    if not isinstance(hidden, int):
        return Refusal("the size of its state is not known")
    if not isinstance(steps, int) or not steps:
        return Refusal("it needs their number (--shape)")
    if steps * len(reverses) > MOST_STEPS:
        return Refusal(f"it has more than {MOST_STEPS} steps, more than are written out")
    if activations is None:
        return Refusal("its activations are others than are written out")
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    clip = attributes.find(node, "clip")
    if clip is not None and node.op_type == "LSTM":
        # ONNX Runtime lets the cell through to its activation as it is, the text of the specification does not.
        return Refusal("its clip is read in two ways")
    return _Layer(
        node.op_type,
        steps,
        hidden,
        reverses,
        batch_first,
        activations,
        None if clip is None else np.array(clip.f, dtype),
        attributes.integer(node, "input_forget", 0) != 0,
        attributes.integer(node, "linear_before_reset", 0) != 0,
        None if lengths is None or (lengths == steps).all() else lengths,
        np.array(1, dtype),
    )


def _written(site: Site, layer: _Layer | Refusal) -> Rewrite | Refusal:
    if isinstance(layer, Refusal):
        return layer
    # Both directions wait for the same lengths, and what is written twice of that is more than some importers take.
    builder, count = site.builder(shares=True), len(layer.reverses)
    each = len(layer.activations) // count
    found = []
    turned = partial(_turned, builder, batch_first=layer.batch_first)
    data = turned(builder.input(site.input_name(0)))
    for number, is_reverse in enumerate(layer.reverses):
        given = {}
        for place, name in enumerate(_INPUTS):
            if (
                place
                and name != "lengths"
                and site.input_name(place)
                and not holds_zeros(site.scope, site.input_name(place))
            ):
                is_state = name in ("state", "cell")
                value = builder.input(site.input_name(place))
                piece = builder.split(value, 1 if is_state and layer.batch_first else 0, [1] * count)[number]
                given[name] = turned(piece) if is_state else piece
        if site.input_name(_LENGTHS) and site.constant(_LENGTHS) is None:
            lengths = builder.op("Cast", [builder.input(site.input_name(_LENGTHS))], {"to": site.elem_type(0)})
            given["lengths"] = builder.reshaped(lengths, [-1, 1, 1])
        activations = layer.activations[number * each : (number + 1) * each]
        found.append(_Cell(builder, layer, activations, given).run(data, is_reverse=is_reverse))
    for place, (name, values) in enumerate(zip(site.node.output, zip(*found, strict=True), strict=False)):
        if site.scope.is_used(name):
            # Of the whole sequence, directions are an axis more: behind the steps, and the batch where it is first.
            axis = int(layer.batch_first) + (place == 0)
            parts = [turned(value) for value in values]
            parts = [builder.unsqueezed(value, axis) for value in parts] if place == 0 else parts
            builder.output(name, _joined(builder, parts, axis))
    return Rewrite(builder.build(), trials_of(site))


def _turned(builder: FragmentBuilder, value: Any, *, batch_first: bool) -> Any:
    """Return data or a state with the batch first, as runtimes of images take the first axis for it; or turned back."""
    return value if batch_first else builder.op("Transpose", [value], {"perm": [1, 0, 2]})


def _joined(builder: FragmentBuilder, values: Sequence[Any], axis: int) -> Any:
    return builder.op("Concat", list(values), {"axis": axis}) if len(values) > 1 else values[0]


class _Cell:
    """One direction: what a step reads, and what it makes of it.

    Data and states have the batch first, and the steps behind it; weights, bias and peepholes have an axis of one
    element before their own.

    Args:
        given: The node's inputs beside the data, as much of each as is this direction's.
    """

    def __init__(
        self, builder: FragmentBuilder, layer: _Layer, activations: Sequence[_Activation], given: Mapping[str, Any]
    ) -> None:
        self._builder = builder
        self._layer = layer
        self._activations = activations
        self._given = given
        self._step = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[layer.op_type]
        self._peepholes = self._pieces("peepholes", 3) or [None] * 3
        gates = _GATES[layer.op_type]
        bias = self._pieces("bias", 2 * gates) or [None] * 2 * gates
        self._own_bias, self._state_bias = bias[:gates], bias[gates:]

    @cached_property
    def _recurrence(self) -> list[Any]:
        """What the states before are multiplied by; a single step from zeros reads none of it."""
        return self._matrices("recurrence")

    def run(self, data: Any, *, is_reverse: bool) -> tuple[Any, ...]:
        """Return the states of all steps, and the last one of the layer and of its cell."""
        layer, gates = self._layer, []
        for matrix, bias in zip(self._matrices("weights"), self._own_bias, strict=True):
            read = self._sum(self._builder.op("MatMul", [data, matrix]), bias)
            gates.append(self._builder.split(read, _STEPS, [1] * layer.steps))
        state, cell = self._given.get("state"), self._given.get("cell")
        states = []
        for step in range(layer.steps)[:: -1 if is_reverse else 1]:
            made = self._step([each[step] for each in gates], state, cell)
            lasts = self._lasts(step)
            state, cell = (self._kept(*each, lasts) for each in zip((state, cell), made, strict=True))
            states.append(state if lasts is None else self._op("Mul", lasts, made[0]))
        return _joined(self._builder, states[:: -1 if is_reverse else 1], _STEPS), state, cell

    def _lasts(self, step: int) -> Any:
        """Return 1 for each sequence that lasts longer than so many steps, and 0 for the others; None where all do."""
        told, dtype = self._layer.lengths, self._layer.whole.dtype
        if told is not None:
            lasts = (told > step).astype(dtype).reshape(-1, 1, 1)
            return None if lasts.all() else self._builder.constant(lasts, "lasts")
        if (lengths := self._given.get("lengths")) is None:
            return None
        longer = self._op("Greater", lengths, self._builder.constant(np.array(step, dtype), "step"))
        return self._builder.op("Cast", [longer], {"to": int(helper.np_dtype_to_tensor_dtype(dtype))})

    def _kept(self, before: Any, made: Any, lasts: Any) -> Any:
        """Return a state that is made anew in the sequences that last, and stays as it is in the others."""
        if lasts is None or made is None:
            return made
        return self._op("Mul", lasts, made) if before is None else self._mixed(before, made, lasts)

    def _pieces(self, name: str, count: int) -> list[Any]:
        """Return an input in pieces of a gate each; none where it is left out."""
        given = self._given.get(name)
        return [] if given is None else self._builder.split(given, 1, [self._layer.hidden] * count)

    def _matrices(self, name: str) -> list[Any]:
        """Return the weights of each gate as what data is multiplied by."""
        pieces = self._pieces(name, _GATES[self._layer.op_type])
        plain = [self._builder.unsqueezed(each, 0, back=True) for each in pieces]
        return [self._builder.op("Transpose", [each], {"perm": [1, 0]}) for each in plain]

    def _op(self, op_type: str, *values: Any) -> Any:
        return self._builder.op(op_type, list(values))

    def _sum(self, *terms: Any) -> Any:
        """Return the sum of the terms that there are."""
        first, *others = (term for term in terms if term is not None)
        for term in others:
            first = self._op("Add", first, term)
        return first

    def _product(self, first: Any, second: Any) -> Any:
        """Return a product; none where a factor is left out, as zeros are."""
        return None if first is None or second is None else self._op("Mul", first, second)

    def _recurrent(self, gate: int, state: Any) -> Any:
        """Return what the state before gives a gate."""
        bias = self._state_bias[gate]
        return bias if state is None else self._sum(self._op("MatMul", state, self._recurrence[gate]), bias)

    def _active(self, number: int, *terms: Any) -> Any:
        """Return an activation of the direction of a sum."""
        layer, value = self._layer, self._sum(*terms)
        if layer.clip is not None:
            value = clipped(self._builder, value, -layer.clip, layer.clip)
        return self._activations[number].of(self._builder, value, layer.whole.dtype)

    def _mixed(self, one: Any, other: Any, share: Any) -> Any:
        """Return ``share`` of the other, and the rest of the one; the other is zeros where it is left out."""
        rest = self._op("Sub", self._builder.constant(self._layer.whole, "whole"), share)
        return self._sum(self._op("Mul", rest, one), self._product(share, other))

    def _lstm(self, gates: Sequence[Any], state: Any, cell: Any) -> tuple[Any, Any]:
        read, output, forget, made = (self._sum(each, self._recurrent(gate, state)) for gate, each in enumerate(gates))
        looks = self._peepholes
        share = self._active(0, read, self._product(looks[0], cell))
        candidate = self._active(1, made)
        if self._layer.couples:
            kept = self._op("Mul", share, candidate) if cell is None else self._mixed(cell, candidate, share)
        else:
            remembered = None if cell is None else self._active(0, forget, self._product(looks[2], cell))
            kept = self._sum(self._op("Mul", share, candidate), self._product(remembered, cell))
        shown = self._active(0, output, self._product(looks[1], kept))
        return self._op("Mul", shown, self._active(2, kept)), kept

    def _gru(self, gates: Sequence[Any], state: Any, cell: Any) -> tuple[Any, Any]:
        update, reset, made = gates
        share = self._active(0, update, self._recurrent(0, state))
        if self._layer.resets_after:
            before = self._recurrent(2, state)
            if before is not None:
                before = self._op("Mul", self._active(0, reset, self._recurrent(1, state)), before)
        else:
            let_in = None if state is None else self._active(0, reset, self._recurrent(1, state))
            before = self._recurrent(2, self._product(let_in, state))
        return self._mixed(self._active(1, made, before), state, share), None

    def _rnn(self, gates: Sequence[Any], state: Any, cell: Any) -> tuple[Any, Any]:
        return self._active(0, gates[0], self._recurrent(0, state)), None
