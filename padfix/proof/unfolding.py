"""One turn of a body in place of the If, Loop or Scan that holds it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

from padfix.graph import attributes
from padfix.graph.placed_bodies import rename
from padfix.graph.scopes import bodies_of, names_of, normal_domain, weights_of

GOES_ON = "/goes on"
"""What follows the name of a Loop's first output to name what one turn says of a next one."""


def unfolded(model: ModelProto, output: str, attribute: str, prefix: str) -> ModelProto:
    """Return a copy of ``model`` in which a body's nodes stand in place of the node that gives ``output``.

    Args:
        model: The model.
        output: An output of a node with bodies of its main graph.
        attribute: Which of these bodies.
        prefix: What the names of the body get in front of them, which must not be in the model.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    index = next(place for place, node in enumerate(graph.node) if output in node.output)
    node, rest = graph.node[index], list(graph.node[index + 1 :])
    opset = next(each.version for each in model.opset_import if not normal_domain(each.domain))
    body = dict(bodies_of(node))[attribute]
    own = (*names_of(body.input), *names_of(weights_of(body)), *(name for each in body.node for name in each.output))
    rename(body, {name: prefix + name for name in own if name})
    nodes = [*_given(node, body), *body.node, *_results(node, body, opset)]
    graph.initializer.extend(body.initializer)
    graph.sparse_initializer.extend(body.sparse_initializer)
    nodes = [NodeProto.FromString(each.SerializeToString()) for each in (*nodes, *rest)]
    del graph.node[index:]
    graph.node.extend(nodes)
    return copy


def _given(node: NodeProto, body: GraphProto) -> Iterator[NodeProto]:
    """Yield what gives a body's inputs their values of the first turn."""
    inputs = names_of(body.input)
    if node.op_type == "Loop":
        first = [np.array(0, np.int64), np.array(True)]
        for name, value in zip(inputs, first, strict=False):
            yield _constant(name, value)
        yield from _copies(node.input[2:], inputs[2:])
    if node.op_type == "Scan":
        states = len(node.input) - attributes.integer(node, "num_scan_inputs", 0)
        axes = attributes.integers(node, "scan_input_axes") or [0] * len(inputs)
        yield from _copies(node.input[:states], inputs[:states])
        first_of_all = f"{inputs[-1]}/first"
        yield _constant(first_of_all, np.array(0, np.int64))
        for read, name, axis in zip(node.input[states:], inputs[states:], axes, strict=False):
            yield helper.make_node("Gather", [read, first_of_all], [name], axis=axis)


def _results(node: NodeProto, body: GraphProto, opset: int) -> Iterator[NodeProto]:
    """Yield what makes the node's outputs of those of one turn of a body."""
    found, states = names_of(body.output), len(body.output)
    axes = [0] * states
    if node.op_type == "Loop":
        yield helper.make_node("Identity", [found.pop(0)], [node.output[0] + GOES_ON])
        states = len(node.input) - 2
    if node.op_type == "Scan":
        states = len(node.input) - attributes.integer(node, "num_scan_inputs", 0)
        axes = attributes.integers(node, "scan_output_axes") or axes
    yield from _copies(found[:states], node.output[:states])
    for name, output, axis in zip(found[states:], node.output[states:], axes, strict=False):
        if opset < 13:
            yield helper.make_node("Unsqueeze", [name], [output], axes=[axis])
        else:
            yield _constant(f"{output}/axis", np.array([axis], np.int64))
            yield helper.make_node("Unsqueeze", [name, f"{output}/axis"], [output])


def _constant(name: str, value: np.ndarray) -> NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))


def _copies(names: list[str], outputs: list[str]) -> Iterator[NodeProto]:
    for name, output in zip(names, outputs, strict=False):
        if name and output:
            yield helper.make_node("Identity", [name], [output])
