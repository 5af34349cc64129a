"""Equal forms of recurrent layers: turned round, with the sequence alone, with zeros written, and step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, helper

from padfix.graph import attributes
from padfix.graph.names import without_blanks
from padfix.operators.axis_order import alike_axes
from padfix.operators.constant_chains import holds_zeros, is_constant
from padfix.operators.other_traits import OTHERS
from padfix.operators.recurrent_layers import leaves_inputs_out
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import multiplied, multiplying
from padfix.rules.build.equal_sequences import without_lengths
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import as_node
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.recurrent_steps import forms_in_steps
from padfix.rules.build.transposed import TO_THE_END
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_WEIGHTS, _RECURRENCE, _BIAS = 1, 2, 3
"""Which inputs are the weights of the data and of the state, and the biases of both."""

_RESULTS = {"GRU": 1, "LSTM": 3, "RNN": 1}
"""How many of the results of a layer are named, whatever is read of them."""

_SEQUENCE_LENGTHS = 4
"""Which input tells how long each sequence of the batch is."""

_STATE, _CELL = 5, 2
"""Which input is the state that it starts from, and which result that of the cell at the end."""

_LINES = 3
"""Axes of a sequence with its batch."""

_STEPS_AS_INPUT_SINCE = 10

_FURTHEST = -(1 << 31)  # a Slice to here ends behind the first element


def recurrent_forms(site: Site) -> Iterator[Form]:
    """Yield a layer that runs backwards as one that runs forwards over what is turned round, and one in its steps."""
    node = copied(site.node, without=("direction",))

    def write() -> Rewrite | Refusal:
        builder = site.builder()
        _turned_round(site, builder, node, [builder.input(name) for name in site.node.input], on_three=False)
        return Rewrite(builder.build(), trials_of(site))

    traits = {**OTHERS[site.node.op_type](site.scope, site.node), "direction": "forward"}
    why_not = _why_not_turned(site) if _runs_backwards(site) else Refusal("it does not run backwards")
    operators: Operators = ((site.node.op_type, traits), ("Slice", {"backwards": True, "rank": _LINES}))
    if site.node.output[0]:
        operators = (*operators, ("Slice", {"backwards": True, "rank": _LINES + 1}))
    yield Form("a Slice that turns it round", operators, write, why_not)
    yield from without_lengths(site)
    yield _beside_computed_bias(site)
    yield _from_nothing(site)
    yield _usually_activated(site)
    yield _in_full(site)
    yield _of_few(site)
    yield _squeezed(site)
    yield _filled(site, behind_reshape=False)
    yield _filled(site, behind_reshape=True)
    yield from forms_in_steps(site)


def _runs_backwards(site: Site) -> bool:
    return site.text("direction", "forward") == "reverse"


def _why_not_turned(site: Site) -> Refusal | None:
    """Return why no Slice turns round what a layer reads."""
    if site.input_name(_SEQUENCE_LENGTHS):
        return Refusal("each sequence has a length of its own")
    if attributes.integer(site.node, "layout", 0):
        return Refusal("its batch comes first")
    return Refusal("no Slice of its opset runs backwards") if site.opset < _STEPS_AS_INPUT_SINCE else None


def _turned_round(
    site: Site, builder: FragmentBuilder, node: NodeProto, given: Sequence[Any], *, on_three: bool
) -> None:
    """Append the layer that ``node`` is over its sequence turned round, and bind what it gives.

    What it gives is turned round without its axis of directions, ``on_three``, or as it is.
    """
    bounds = [
        builder.constant(np.array([each], np.int64), name)
        for each, name in ((-1, "first"), (_FURTHEST, "last"), (0, "axis"), (-1, "step"))
    ]
    sequence, *states = builder.originals(node, [builder.op("Slice", [given[0], *bounds]), *given[1:]])
    if site.node.output[0]:
        sequence = builder.unsqueezed(sequence, 1, back=True) if on_three else sequence
        sequence = builder.op("Slice", [sequence, *bounds])
        sequence = builder.unsqueezed(sequence, 1) if on_three else sequence
    _bind(site, builder, [sequence, *states])


def _bind(site: Site, builder: FragmentBuilder, results: Sequence[Any]) -> None:
    for name, value in zip(site.node.output, results, strict=False):
        if name:
            builder.output(name, value)


def _in_full(site: Site) -> Form:
    """Return the layer with a bias and a name for all that it gives, and forwards over what a Slice turned round.

    What it reads of an input of the model whose batch is open goes through an Identity.
    """
    turns, weights, data = _runs_backwards(site), site.input_type(_WEIGHTS), site.input_type(0)
    reads_input = (
        data is not None and data.shape is not None and not any(isinstance(each, int) for each in data.shape[:2])
    )
    reads_input = reads_input and site.scope.own_producer(site.input_name(0)) is None
    lengths = None if weights is None else weights.lengths
    names = _without_zeros(site)
    names = [*names, *[""] * (_BIAS + 1 - len(names))]
    node = copied(site.node, without=("direction",) if turns else ())
    count = max(len(node.output), _RESULTS[site.node.op_type])
    node.output[:] = [name or f"result_{place}" for place, name in enumerate([*node.output, *[""] * count][:count])]

    def write() -> Rewrite:
        assert lengths is not None
        builder = site.builder()
        given = [builder.input(name) for name in names]
        if reads_input and not turns:
            given[0] = builder.op("Identity", given[:1])
        if not names[_BIAS]:
            given[_BIAS] = _no_bias(site, builder, lengths)
        if turns:
            _turned_round(site, builder, node, given, on_three=True)
        else:
            _bind(site, builder, builder.originals(node, given))
        return Rewrite(builder.build(), trials_of(site))

    traits = dict(OTHERS[site.node.op_type](site.scope, site.node))
    if turns:
        traits["direction"] = "forward"
    if not any(names[_STATE:]):
        traits |= {"initial-state": "none", "numbers-images": False}
    traits |= dict.fromkeys(("cell-unnamed", "sequence-unnamed", "ends-unnamed"), False)
    written = [name or ("zeros" if place == _BIAS else "") for place, name in enumerate(names)]
    traits["leaves-inputs-out"] = leaves_inputs_out(site.node.op_type, written)
    traits["biased"] = True
    if reads_input:
        traits["steps-open-alone"] = False
    why_not = _why_not_turned(site) if turns else None
    if lengths is None:
        why_not = Refusal("the lengths of its weights are not known")
    return Form("its bias and all that it gives written", ((site.node.op_type, traits),), write, why_not)


def _no_bias(site: Site, builder: FragmentBuilder, weights: Sequence[int]) -> Any:
    """Return the zeros that a layer without a bias has for one, of weights of these lengths."""
    return builder.constant(np.zeros((weights[0], 2 * weights[1]), _dtype(site)), "zeros")


def _dtype(site: Site) -> Any:
    return helper.tensor_dtype_to_np_dtype(site.elem_type(0))


def _beside_computed_bias(site: Site) -> Form:
    """Return the layer with a bias that is computed: nothing times the longest of its sequences is added to it."""
    node, weights = site.node, site.input_type(_WEIGHTS)
    shape = None if weights is None else weights.lengths

    def write() -> Rewrite:
        assert shape is not None
        builder = site.builder()
        given = [builder.input(name) for name in node.input]
        bias = given[_BIAS] if site.input_name(_BIAS) else _no_bias(site, builder, shape)
        counts = builder.op("Cast", [given[_SEQUENCE_LENGTHS]], {"to": site.elem_type(0)})
        longest = builder.op("ReduceMax", [counts], {"keepdims": 0})
        nothing = builder.op("Mul", [longest, builder.constant(np.zeros((), _dtype(site)), "nothing")])
        given[_BIAS] = builder.op("Add", [bias, nothing])
        _bind(site, builder, builder.originals(copied(node), given))
        return Rewrite(builder.build(), trials_of(site))

    own = OTHERS[node.op_type](site.scope, node)
    why_not = None
    if not own["lengths-beside-constants"]:
        why_not = Refusal("no lengths are told beside constant weights")
    elif shape is None:
        why_not = Refusal("the lengths of its weights are not known")
    plain: Operators = (("Cast", {}), ("ReduceMax", {}), ("Mul", {}), ("Add", {}))
    layer = (node.op_type, {**own, "lengths-beside-constants": False, "biased": True, "leaves-inputs-out": False})
    return Form("a bias that is computed", (*plain, layer), write, why_not)


def _without_zeros(site: Site) -> list[str]:
    """Return the inputs, but for states that are zeros, where both are, and for empty names at their end."""
    states = [place for place in (_STATE, _STATE + 1) if site.input_name(place)]
    is_zero = all(holds_zeros(site.scope, site.input_name(place)) for place in states)
    return without_blanks(["" if is_zero and place in states else name for place, name in enumerate(site.node.input)])


def _from_nothing(site: Site) -> Form:
    """Return the layer without states of zeros to start from, where it starts anyway, and without empty names."""
    states = [place for place in (_STATE, _STATE + 1) if site.input_name(place)]
    is_zero = bool(states) and all(holds_zeros(site.scope, site.input_name(place)) for place in states)
    names = _without_zeros(site)

    def write() -> Rewrite:
        builder, node = site.builder(), copied(site.node)
        del node.output[len(without_blanks(node.output)) :]
        given = [builder.input(name) for name in names]
        return Rewrite(builder.ending_in(node, given), trials_of(site))

    traits = dict(OTHERS[site.node.op_type](site.scope, site.node))
    traits["leaves-inputs-out"] = leaves_inputs_out(site.node.op_type, names)
    traits["ends-unnamed"] = False
    if is_zero:
        traits |= {"initial-state": "none", "numbers-images": False}
    is_less = len(names) < len(site.node.input) or not site.node.output[-1]
    why_not = None if is_less else Refusal("it starts from other states than zeros, or from none")
    return Form("zeros that it starts from left out", ((site.node.op_type, traits),), write, why_not)


def _usually_activated(site: Site) -> Form:
    """Return the layer without a word of its activations, which are those that it has anyway."""
    node = copied(site.node, without=("activations", "activation_alpha", "activation_beta"))
    traits = OTHERS[node.op_type](site.scope, site.node)
    is_usual = traits["activations"] == "usual" and traits["activations-written"]
    why_not = None if is_usual else Refusal("its activations are others than the usual ones, or not written")
    left = {**traits, "activations-written": False}
    return Form(
        "its usual activations left out", ((node.op_type, left),), lambda: as_node(site, node, exact=False), why_not
    )


def _filled(site: Site, *, behind_reshape: bool) -> Form:
    """Return the layer with zeros for the bias and states that it leaves out, of what a Reshape to its shape gives."""
    node, known, count = site.node, site.input_type(0), 1 + (site.text("direction", "forward") == "bidirectional")
    recurrence = site.input_type(_RECURRENCE)
    lengths = None if known is None else known.lengths
    weights = None if recurrence is None else recurrence.lengths
    is_first = attributes.integer(node, "layout", 0) != 0
    given_names = without_blanks(node.input)
    names = [*given_names, *[""] * (_STATE + 1 + (node.op_type == "LSTM") - len(given_names))]
    names = [name if place < _STATE or not holds_zeros(site.scope, name) else "" for place, name in enumerate(names)]

    def write() -> Rewrite:
        assert lengths is not None and weights is not None
        builder, batch = site.builder(), lengths[0 if is_first else 1]
        state = (batch, count, weights[-1]) if is_first else (count, batch, weights[-1])
        shapes = {_BIAS: (count, 2 * weights[1]), _STATE: state}
        if node.op_type == "LSTM":
            shapes[_STATE + 1] = state
        given = [builder.input(name) for name in names]
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        for place, shape in shapes.items():
            if not names[place]:
                given[place] = builder.constant(np.zeros(shape, dtype), "zeros")
        if behind_reshape:
            given[0] = builder.reshaped(given[0], lengths)
        return Rewrite(builder.ending_in(copied(node), given), trials_of(site))

    why_not = None
    if lengths is None or weights is None or 0 in lengths:
        why_not = Refusal("it needs the lengths of its data and state (--shape)")
    is_computed = any(name and not is_constant(site.scope, name) for name in names[_STATE:][:2])
    told: Traits = {
        "biased": True,
        "initial-state": "all",
        "state-computed": is_computed,
        "leaves-inputs-out": False,
    }
    traits: Traits = {**OTHERS[node.op_type](site.scope, node), **told}
    operators: Operators = ((node.op_type, traits),)
    if behind_reshape:
        reshape: Traits = {"rank": _LINES, "alike": alike_axes([lengths or ()])}
        operators = (("Reshape", reshape), (node.op_type, {**traits, "channels-last": False}))
    where = ", behind a Reshape" if behind_reshape else ""
    return Form(f"zeros for the bias and states that it leaves out{where}", operators, write, why_not)


def _of_few(site: Site) -> Form:
    """Return the layer behind a Reshape that tells how many sequences the states that it starts from are for."""
    node, is_first = site.node, attributes.integer(site.node, "layout", 0) != 0
    data, axis = site.input_type(0), 0 if is_first else 1
    states = [each for place in (_STATE, _STATE + 1) if (each := site.input_type(place)) is not None]
    told = [each.shape[axis] for each in states if each.shape is not None and len(each.shape) == _LINES]
    counts = sorted({each for each in told if isinstance(each, int)})
    lengths = (
        [0, 0, 0] if data is None or data.shape is None else [it if isinstance(it, int) else 0 for it in data.shape]
    )

    def write() -> Rewrite:
        builder = site.builder()
        given = [builder.input(name) for name in node.input]
        given[0] = builder.reshaped(given[0], [*lengths[:axis], counts[0], *lengths[axis + 1 :]])
        return Rewrite(builder.ending_in(copied(node), given), trials_of(site))

    why_not = None if len(counts) == 1 else Refusal("no state tells how many sequences there are")
    traits: Traits = {**OTHERS[node.op_type](site.scope, node), "state-of-few": False, "open-batch": False}
    operators: Operators = (("Reshape", {"rank": _LINES, "alike": alike_axes([lengths])}), (node.op_type, traits))
    return Form("a Reshape before it that tells how many sequences there are", operators, write, why_not)


def _squeezed(site: Site) -> Form:
    """Return the layer of which the sequence alone is read, without directions, and states are what that ends with.

    What runs backwards runs forwards over what a product turns round.
    """
    known, direction = site.input_type(0), site.text("direction", "forward")
    lengths = () if known is None or known.shape is None else known.shape
    steps = lengths[0] if lengths else None
    traits = dict(OTHERS[site.node.op_type](site.scope, site.node))
    is_zero = all(
        holds_zeros(site.scope, site.input_name(place)) for place in (_STATE, _STATE + 1) if site.input_name(place)
    )
    turns = direction == "reverse"
    traits |= {"direction": "forward" if turns else direction, "squeezed": True, "gives-state": False}
    if is_zero:
        traits |= {"initial-state": "none", "numbers-images": False}
    read = [site.scope.is_used(name) for name in (*site.node.output, "", "")]
    why_not = None
    if read[_CELL] or (read[1] and direction == "bidirectional"):
        why_not = Refusal("the state of its cell, or of both directions, is read")
    elif site.input_name(_SEQUENCE_LENGTHS) or attributes.integer(site.node, "layout", 0):
        why_not = Refusal("each sequence has a length of its own, or its batch comes first")
    elif turns and not isinstance(steps, int):
        why_not = Refusal("it needs the length of its sequence (--shape)")
    units = attributes.integer(site.node, "hidden_size", 0) or 0

    def turned(builder: FragmentBuilder, value: Any, length: int) -> Any:
        assert isinstance(steps, int)
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        return multiplied(builder, value, {0: np.eye(steps, dtype=dtype)[::-1]}, (*lengths[:2], length))

    def write() -> Rewrite:
        builder = site.builder()
        node = copied(site.node, without=("direction",) if turns else ())
        del node.output[1:]
        data, *others = (builder.input(name) for name in site.node.input)
        features = lengths[2] if len(lengths) == _LINES else 0
        data = turned(builder, data, features if isinstance(features, int) else 0) if turns else data
        sequence = builder.original(node, [data, *(others[: _STATE - 1] if is_zero else others)])
        if direction == "bidirectional":
            sequence = builder.reshaped(builder.op("Transpose", [sequence], {"perm": [0, 2, 1, 3]}), [0, 0, -1])
        else:
            sequence = builder.unsqueezed(sequence, 1, back=True)
        if read[1]:
            builder.output(site.node.output[1], sliced(builder, sequence, [-1], [TO_THE_END], [0]))
        sequence = turned(builder, sequence, units) if turns else sequence
        if direction == "bidirectional":
            apart = builder.reshaped(sequence, [0, 0, 2, units])
            result = builder.op("Transpose", [apart], {"perm": [0, 2, 1, 3]})
        else:
            result = builder.unsqueezed(sequence, 1)
        if read[0]:
            builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), trials_of(site))

    operators: Operators = ((site.node.op_type, traits),)
    if turns and lengths:
        operators = (*operators, *multiplying([0], lengths))
    return Form("its sequence alone", operators, write, why_not)
