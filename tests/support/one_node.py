"""One-node models: build one, let a rule rewrite it, and run what comes out in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from padfix.graph.fragment import Fragment
from padfix.graph.scopes import Scope, ValueType, iterate_scopes
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Rule, Site

Shape = Sequence[int | str | None] | None


def one_node(
    op_type: str,
    inputs: Mapping[str, Shape],
    opset: int,
    constants: Mapping[str, np.ndarray] | None = None,
    elem_type: int = TensorProto.FLOAT,
    elem_types: Mapping[str, int] | None = None,
    ir_version: int = 8,
    **attributes: Any,
) -> ModelProto:
    """Return a model of one node that reads ``inputs`` then ``constants`` and gives ``Y``."""
    constants = constants or {}
    node = helper.make_node(op_type, [*inputs, *constants], ["Y"], name="node", **attributes)
    graph = helper.make_graph(
        [node],
        "graph",
        [
            helper.make_tensor_value_info(name, (elem_types or {}).get(name, elem_type), shape)
            for name, shape in inputs.items()
        ],
        [helper.make_tensor_value_info("Y", elem_type, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def site_of(model: ModelProto, index: int = 0) -> Site:
    """Return the site of a node of the main graph, with the types of the graph's inputs filled in."""
    scope = next(iterate_scopes(model))
    fill_types(scope)
    return Site(scope, index, scope.nodes[index])


def fill_types(scope: Scope) -> None:
    """Take the declared types of a graph's inputs and inner values."""
    graph = scope.container
    for value in [*graph.input, *graph.value_info]:
        tensor = value.type.tensor_type
        shape = None
        if tensor.HasField("shape"):
            shape = tuple(
                each.dim_value if each.HasField("dim_value") else (each.dim_param or None) for each in tensor.shape.dim
            )
        scope.types[value.name] = ValueType(tensor.elem_type, shape)


def rewrite_of(model: ModelProto, rule: Rule) -> Rewrite | Refusal:
    """Return what ``rule`` does with the model's only node, at the lowest opset that the rule asks for."""
    site = site_of(model)
    assert rule.match(site) is not None
    return rule.rewrite(site)


def with_fragment(model: ModelProto, fragment: Fragment) -> ModelProto:
    """Return the model with its only node replaced."""
    result = ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:]
    result.graph.node.extend(fragment.nodes)
    result.graph.initializer.extend(fragment.initializers)
    del result.opset_import[:]
    result.opset_import.extend([helper.make_opsetid("", fragment.opset)])
    return result


def node_types(nodes: Sequence[NodeProto]) -> list[str]:
    """Return the operator types."""
    return [node.op_type for node in nodes]


def run(model: ModelProto, feeds: Mapping[str, np.ndarray], *, optimised: bool = False) -> np.ndarray:
    """Run in ONNX Runtime and return ``Y``."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimised else level.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    result: np.ndarray = session.run(["Y"], dict(feeds))[0]
    return result
