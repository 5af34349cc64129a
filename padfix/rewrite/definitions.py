"""An operator as ONNX defines it by others, worked out as far as constants and known shapes allow."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, helper, numpy_helper

from padfix.files.model import Model
from padfix.graph import attributes
from padfix.graph.fragment import Fragment
from padfix.graph.scopes import DEFAULT_DOMAIN, Scope, bodies_of
from padfix.operators.constant_chains import lengths_given
from padfix.operators.inference import infer
from padfix.operators.refusal import Refusal
from padfix.operators.schemas import has_definition, schema
from padfix.rewrite.single_node import one_node_model
from padfix.rules.base import Site

_LARGEST_FOLDED = 1 << 16
"""Elements of a constant that is worked out while the definition is written."""


def defined_by_others(site: Site, target: int) -> Fragment | Refusal:
    """Return what defines the node's operator, written for its own opset; ``target`` is the one that lacks it."""
    from onnx import inliner

    op_type = site.node.op_type
    own = schema(op_type, site.opset)
    if not has_definition(own):
        return Refusal(f"opset {target} has no such {op_type}, and no other operators define it")
    single = one_node_model(site)
    _tell_inliner(single, own)
    try:
        inlined = inliner.inline_selected_functions(
            single, [(DEFAULT_DOMAIN, op_type)], exclude=False, inline_schema_functions=True
        )
    except Exception as error:
        return Refusal(f"opset {target} has no such {op_type}, and its definition can't be written out: {error}")
    nodes, constants = _worked_out(inlined, set(site.node.output))
    if any(True for node in nodes for _ in bodies_of(node)) or any(node.op_type == op_type for node in nodes):
        return Refusal(f"opset {target} has no such {op_type}, and its definition depends on values at run time")
    given = set(site.node.input)
    nodes = _needed(nodes, set(site.node.output))
    read = {name for node in nodes for name in node.input} - given
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items() if name in read]
    return Fragment(tuple(nodes), tuple(tensors), site.opset)


def _tell_inliner(single: ModelProto, own: Any) -> None:
    """Write out what the inliner does not look up by itself: defaults of attributes, and types of constants."""
    (node,) = single.graph.node
    given = {attribute.name for attribute in node.attribute}
    defaults = {name: each.default_value for name, each in own.attributes.items() if name not in given}
    node.attribute.extend(default for default in defaults.values() if default.type != AttributeProto.UNDEFINED)
    for tensor in single.graph.initializer:
        single.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))


def _worked_out(model: ModelProto, outputs: set[str]) -> tuple[list[NodeProto], dict[str, np.ndarray]]:
    """Return the nodes that depend on data, and the values of all names that do not; ``outputs`` are never folded."""
    scope = infer(Model(model))[0]
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kept: list[NodeProto] = []
    waiting = deque(model.graph.node)
    while waiting:
        node = waiting.popleft()
        branch = _branch(node, constants)
        if branch is not None:
            waiting.extendleft(reversed(branch))
            continue
        values = None if outputs & set(node.output) else _values(node, scope, constants)
        if values is None:
            kept.append(node)
        else:
            constants.update(values)
    return kept, constants


def _branch(node: NodeProto, constants: Mapping[str, np.ndarray]) -> list[NodeProto] | None:
    """Return the nodes of the branch that an If always takes; None where that is not known."""
    condition = constants.get(node.input[0]) if node.op_type == "If" else None
    if condition is None:
        return None
    attribute = attributes.find(node, "then_branch" if condition.reshape(-1)[0] else "else_branch")
    assert attribute is not None
    graph: GraphProto = attribute.g
    constant_nodes = [helper.make_node("Constant", [], [each.name], value=each) for each in graph.initializer]
    renamed = [
        helper.make_node("Identity", [inner.name], [outer])
        for inner, outer in zip(graph.output, node.output, strict=True)
    ]
    return [*constant_nodes, *graph.node, *renamed]


def _values(node: NodeProto, scope: Scope, constants: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    """Return what the node gives whatever the data, or None where that depends on it."""
    if node.op_type in ("Shape", "Size"):
        value = lengths_given(scope, node)
        return None if value is None else {node.output[0]: value}
    if node.op_type == "CastLike" and node.input[0] in constants:
        like = scope.type_of(node.input[1])
        if like is None or not like.elem_type:
            return None
        node = helper.make_node("Cast", [node.input[0]], list(node.output), to=like.elem_type)
    read = {name for name in node.input if name}
    if not read <= constants.keys() or any(True for _ in bodies_of(node)) or node.op_type.startswith("Random"):
        return None
    return _run(node, {name: constants[name] for name in read}, scope.opset)


def _run(node: NodeProto, given: Mapping[str, np.ndarray], opset: int) -> dict[str, np.ndarray] | None:
    from padfix.proof.executors import ExecutionFailed
    from padfix.proof.spec_executor import SpecExecutor

    graph = helper.make_graph(
        [node],
        "constant",
        [],
        [helper.make_empty_tensor_value_info(name) for name in node.output if name],
        [numpy_helper.from_array(value, name) for name, value in given.items()],
    )
    imports = [helper.make_opsetid(DEFAULT_DOMAIN, opset)]
    try:
        found = SpecExecutor.of(helper.make_model(graph, opset_imports=imports)).run({})
    except ExecutionFailed:
        return None
    small = all(value.size <= _LARGEST_FOLDED for value in found.values())
    return {name: np.asarray(value) for name, value in found.items()} if small else None


def _needed(nodes: Sequence[NodeProto], wanted: set[str]) -> list[NodeProto]:
    """Return the nodes that ``wanted`` depends on."""
    wanted, kept = wanted - {""}, []
    for node in reversed(nodes):
        if wanted & set(node.output):
            kept.append(node)
            wanted.update(name for name in node.input if name)
    return kept[::-1]
