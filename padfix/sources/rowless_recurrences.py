"""Recurrent layers that ONNX Runtime takes on an empty batch as well.

Its LSTM, GRU and RNN end the process on a batch without rows. So an open batch gets a row of zeros where it has none,
and what comes of that row is cut off: a row of a recurrent layer depends on no other row.
"""

from __future__ import annotations

from collections.abc import Collection

from onnx import NodeProto

from padfix.files.model import Model
from padfix.graph import attributes
from padfix.graph.fragment_builder import FragmentBuilder, Value
from padfix.graph.scopes import DEFAULT_DOMAIN, Scope, iterate_scopes, normal_domain
from padfix.graph.splice import apply_splices, plan_splice
from padfix.operators.inference import infer
from padfix.operators.recurrent_layers import RECURRENT

_BATCH = {0: 1, 4: 0, 5: 1, 6: 1}
"""Inputs with a row for each element of the batch, and the axis of the rows: X, lengths, initial states."""

_PAD_TAKES_INTEGERS_SINCE = 13


def give_a_row(model: Model) -> None:
    """Give recurrent layers with an open batch a row where it is empty, in place."""
    shapes = [value.type.tensor_type.shape.dim for value in model.proto.graph.input]
    if all(length.HasField("dim_value") for shape in shapes for length in shape):
        return  # no batch is open, even where the length of one is lost on the way
    if any(_is_recurrent(node) for scope in iterate_scopes(model.proto) for node in scope.nodes):
        for scope in infer(model):
            _settle(scope)


def _settle(scope: Scope) -> None:
    planned = False
    for index, node in enumerate(scope.nodes):
        if not _is_recurrent(node) or scope.opset < _PAD_TAKES_INTEGERS_SINCE or attributes.find(node, "layout"):
            continue
        data = scope.type_of(node.input[0])
        if data is not None and data.shape is not None and isinstance(data.shape[1], int) and data.shape[1] > 0:
            continue
        unread = {name for name in node.output if not scope.consumers(name) and not scope.is_output(name)}
        plan_splice(scope, index, _with_a_row(scope.opset, node, unread).build())
        planned = True
    if planned:
        apply_splices(scope)


def _is_recurrent(node: NodeProto) -> bool:
    return node.op_type in RECURRENT and normal_domain(node.domain) == DEFAULT_DOMAIN


def _with_a_row(opset: int, node: NodeProto, unread: Collection[str]) -> FragmentBuilder:
    builder = FragmentBuilder(opset)

    def numbers(*values: int) -> Value:
        return builder.integers(values)

    rows = builder.op("Gather", [builder.op("Shape", [builder.input(node.input[0])]), numbers(1)])
    missing = builder.op("Max", [builder.op("Sub", [numbers(1), rows]), numbers(0)])
    read = []
    for place, name in enumerate(node.input):
        value = builder.input(name)
        if name and place in _BATCH:
            rank = 1 if place == 4 else 3
            zeros = [numbers(0)] * (2 * rank)
            zeros[rank + _BATCH[place]] = missing
            value = builder.op("Pad", [value, builder.op("Concat", zeros, {"axis": 0})])
        read.append(value)
    results = builder.original(node, read)
    for place, result in enumerate([results] if len(node.output) == 1 else results):
        if node.output[place] not in unread:
            axis = 2 if place == 0 else 1
            builder.output(node.output[place], builder.op("Slice", [result, numbers(0), rows, numbers(axis)]))
    return builder
