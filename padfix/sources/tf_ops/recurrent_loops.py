"""Recurrent layers of Keras that tf2onnx leaves in a Loop, which few runtimes have: GRU and SimpleRNN of Keras 3.

What the body of a loop gives is compared, as a term, with what such a layer gives for the same inputs. tf2onnx itself
finds LSTMs, and the GRUs of older versions that reset behind the product with the state.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

_SAME = {"AddV2": "Add", "BiasAdd": "Add"}
_COMMUTATIVE = frozenset({"Add", "Mul"})
_ACTIVATIONS = ("Tanh", "Relu", "Sigmoid")
_BEFORE, _AFTER, _PLAIN_LAYER = "GRU that resets before", "GRU that resets after", "RNN"
_GATES = {_BEFORE: 3, _AFTER: 3, _PLAIN_LAYER: 1}
_PLAIN = frozenset({*_COMMUTATIVE, *_ACTIVATIONS, "Sub", "TensorListGetItem"})


@dataclass(frozen=True)
class Layer:
    """Which inputs of a loop a layer reads, by place, and what it makes of them."""

    data: int
    time: int
    state: int
    weights: tuple[int, int, int | None]
    written: int
    each_step: bool
    kind: str
    activation: str


class _Terms:
    """The terms of a graph by number: equal terms have one number."""

    def __init__(self, ctx: Any) -> None:
        self._ctx = ctx
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._known: dict[str, int] = {}

    def make(self, kind: str, *parts: Any) -> int:
        ordered = sorted(parts) if kind in _COMMUTATIVE else parts
        return self._numbers.setdefault((kind, *ordered), len(self._numbers))

    def of(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def _read(self, name: str) -> int:
        node = self._ctx.get_node_by_output(name)
        if name in self._ctx.input_names:
            return self.make("input", self._ctx.input_names.index(name))
        kind = _SAME.get(node.type, node.type)
        if kind == "Identity":
            return self.of(node.input[0])
        if kind == "Const" and node.get_tensor_value(as_list=False).size == 1:
            return self.make("number", float(node.get_tensor_value(as_list=False)))
        if kind in _PLAIN:
            return self.make(kind, *(self.of(each) for each in node.input[:2]))
        if kind == "MatMul" and not any(node.get_attr_value(f"transpose_{each}") for each in "ab"):
            return self.make(kind, *(self.of(each) for each in node.input))
        if kind == "Split" and node.inputs[0].is_const():
            axis = int(node.inputs[0].get_tensor_value())
            return self.make(kind, self.of(node.input[1]), axis % 2, len(node.output), node.output.index(name))
        if kind == "Squeeze" and list(node.get_attr_value("squeeze_dims") or ()) == [0]:
            return self.make(kind, self.of(node.input[0]))
        columns = _columns(node) if kind == "StridedSlice" else None
        return self.make("opaque", name) if columns is None else self.make("columns", self.of(node.input[0]), *columns)

    def layer(self, kind: str, data: int, state: int, weights: Sequence[int | None], activation: str) -> int:
        """Return what a step of a layer gives, of the term of its data and the inputs that it reads."""
        make = self.make
        kernel, recurrent, bias = (None if each is None else make("input", each) for each in weights)
        h, gates = make("input", state), make("MatMul", data, kernel)
        if kind == _PLAIN_LAYER:
            gates = gates if bias is None else make("Add", gates, bias)
            return make(activation, make("Add", gates, make("MatMul", h, recurrent)))
        units = self._ctx.get_shape(self._ctx.input_names[state])[1]
        of_state = make("MatMul", h, recurrent if kind == _AFTER else make("columns", recurrent, 0, 2 * units))
        if bias is not None:
            halves = [make("Squeeze", make("Split", bias, 0, 2, place)) for place in (0, 1)]
            gates = make("Add", gates, halves[0] if kind == _AFTER else bias)
            of_state = make("Add", of_state, halves[1]) if kind == _AFTER else of_state

        def gate(place: int) -> int:
            part = make("columns", of_state, place * units, (place + 1) * units)
            return make("Sigmoid", make("Add", make("Split", gates, 1, 3, place), part))

        update, reset = gate(0), gate(1)
        if kind == _AFTER:
            new = make("Mul", reset, make("columns", of_state, 2 * units, None))
        else:
            new = make("MatMul", make("Mul", reset, h), make("columns", recurrent, 2 * units, None))
        new = make(activation, make("Add", make("Split", gates, 1, 3, 2), new))
        return make("Add", make("Mul", update, h), make("Mul", make("Sub", make("number", 1.0), update), new))


def _columns(node: Any) -> tuple[int, int | None] | None:
    """Return from which column on, and up to which, a StridedSlice takes all rows of a matrix."""
    masks = {each: node.get_attr_value(f"{each}_mask") or 0 for each in ("begin", "end", "ellipsis", "new_axis")}
    if masks["ellipsis"] or masks["new_axis"] or node.get_attr_value("shrink_axis_mask"):
        return None
    if not all(each.is_const() for each in node.inputs[1:4]):
        return None
    begins, ends, steps = (each.get_tensor_value() for each in node.inputs[1:4])
    if list(steps) != [1, 1] or not masks["begin"] & 1 or not masks["end"] & 1:
        return None
    return 0 if masks["begin"] & 2 else begins[1], None if masks["end"] & 2 else ends[1]


def add_rows(ctx: Any) -> None:
    """Add a product of one row as it is: of a batch of one Keras 3 makes a list, and the bias of another product.

    tf2onnx finds an LSTM only where the product with the state is added to the other.
    """
    for node in ctx.get_nodes():
        squeezed = node.inputs[1] if node.type == "BiasAdd" else None
        if squeezed is None or squeezed.type != "Squeeze" or squeezed.inputs[0].type != "MatMul":
            continue
        row = squeezed.input[0]
        if (ctx.get_shape(row) or [])[:-1] == [1] and len(ctx.get_shape(squeezed.output[0]) or []) == 1:
            ctx.replace_input(node, node.input[1], row, 1)
            node.type = "AddV2"


def remember(ctx: Any, layers: MutableMapping[str, Layer]) -> None:
    """Note what layer the body of a loop is, under the graph's name, before tf2onnx rewrites it."""
    kinds = [node.type for node in ctx.get_nodes()]
    if kinds.count("MatMul") in (2, 3) and kinds.count("TensorListGetItem") == kinds.count("TensorListSetItem") == 1:
        for layer in _layers(ctx):
            layers[ctx.graph_name] = layer


def _layers(ctx: Any) -> Iterator[Layer]:
    reading, writing = (
        next(node for node in ctx.get_nodes() if node.type == f"TensorList{each}Item") for each in ("Get", "Set")
    )
    read = [reading.input[0], reading.input[1], writing.input[0]]
    if not all(each in ctx.input_names for each in read):
        return
    data, time, written = map(ctx.input_names.index, read)
    terms = _Terms(ctx)
    gives = [terms.of(each) for each in ctx.outputs]
    step, index = terms.of(writing.input[2]), terms.of(writing.input[1])
    each_step = index == terms.make("input", time)
    if gives[time] != terms.make("Add", terms.make("input", time), terms.make("number", 1.0)):
        return
    if not each_step and index != terms.make("number", 0.0):
        return
    shapes = [ctx.get_shape(each) or [] for each in ctx.input_names]
    matrices = [place for place, each in enumerate(shapes) if len(each) == 2]
    biases = [None, *(place for place, each in enumerate(shapes) if len(each) in (1, 2))]
    states = [place for place in matrices if gives[place] == step]
    for kind, state, recurrent in product(_GATES, states, matrices):
        units = shapes[state][1]
        if units > 0 and shapes[recurrent] == [units, _GATES[kind] * units]:
            for kernel, bias, activation in product(matrices, biases, _ACTIVATIONS):
                weights = (kernel, recurrent, bias)
                if terms.layer(kind, terms.of(reading.output[0]), state, weights, activation) == step:
                    yield Layer(data, time, state, weights, written, each_step, kind, activation)


def write(ctx: Any, layers: MutableMapping[str, Layer]) -> None:
    """Put an operator in the place of every loop whose body is a layer, where its weights are constant."""
    for loop in [node for node in ctx.get_nodes() if node.is_while()]:
        layer = layers.get(loop.get_attr_str("body"))
        if layer is None or loop.inputs[layer.data].type != "TensorListFromTensor":
            continue
        start = loop.inputs[layer.time]
        constant = [loop.inputs[each] for each in layer.weights if each is not None]
        if all(each.is_const() for each in [start, *constant]) and start.get_tensor_value() == 0:
            _replace(ctx, loop, layer, [each.get_tensor_value(as_list=False) for each in constant])


def _replace(ctx: Any, loop: Any, layer: Layer, constants: list[Any]) -> None:
    from tf2onnx import utils
    from tf2onnx.graph_builder import GraphBuilder

    data, builder = loop.inputs[layer.data].input[0], GraphBuilder(ctx)
    kernel, recurrent, *biases = constants
    units = recurrent.shape[0]
    bias = np.zeros(2 * recurrent.shape[1], kernel.dtype)
    for given in biases:
        bias[: given.size] = given.ravel()
    weights = [
        ctx.make_const(utils.make_name(f"{loop.name}_{name}"), each[np.newaxis], skip_conversion=True).output[0]
        for name, each in (("W", kernel.T), ("R", recurrent.T), ("B", bias))
    ]
    state = builder.make_unsqueeze({"data": loop.input[layer.state], "axes": [0]})
    steps, batch = (ctx.get_shape(data) or [-1, -1])[:2]
    dtype = ctx.get_dtype(data)
    operator = layer.kind.split(" ")[0]
    gates = ["Sigmoid"] * (operator == "GRU")
    after = {"linear_before_reset": int(layer.kind == _AFTER)} if operator == "GRU" else {}
    made = ctx.make_node(
        operator,
        [data, *weights, "", state],
        attr={"activations": [*gates, layer.activation], "hidden_size": units, **after},
        output_count=2,
        shapes=[[steps, 1, batch, units], [1, batch, units]],
        dtypes=[dtype, dtype],
        name=utils.make_name(f"{loop.name}_{operator}"),
    )
    for node in ctx.find_output_consumers(loop.output[layer.written]):
        if node.type == "TensorListStack":
            # What is written once is the last step, which is the final state.
            stacked = builder.make_squeeze({"data": made.output[0], "axes": [1]}) if layer.each_step else made.output[1]
            ctx.replace_all_inputs(node.output[0], stacked)
    final = builder.make_squeeze({"data": made.output[1], "axes": [0]})
    ctx.replace_all_inputs(loop.output[layer.state], final)
