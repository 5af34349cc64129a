"""Operators of opset 1 to 5 as opset 6 writes them, for shape inference: onnx infers nothing of most older versions.

Types and shapes are the same; what would change numbers is not looked at, because nothing here is ever run.
"""

from __future__ import annotations

from onnx import GraphProto, NodeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.graph.scopes import DEFAULT_DOMAIN, normal_domain

INFERRED_OPSET = 6


def rewrite_for_inference(graph: GraphProto, opset: int) -> int:
    """Rewrite the nodes of ``graph`` in place where ``opset`` is older; return the opset to infer with."""
    if opset >= INFERRED_OPSET:
        return opset
    for node in graph.node:
        if normal_domain(node.domain) == DEFAULT_DOMAIN:
            _rewrite(graph, node, opset)
    return INFERRED_OPSET


def _rewrite(graph: GraphProto, node: NodeProto, opset: int) -> None:
    attributes.remove(node, "consumed_inputs")
    if node.op_type == "Concat" and opset < 4 and attributes.find(node, "axis") is None:
        attributes.set_integer(node, "axis", 1)
    elif node.op_type == "Cast":
        name = attributes.text(node, "to")
        if name in TensorProto.DataType.keys():  # noqa: SIM118 - an enum wrapper, not a dict
            attributes.remove(node, "to")
            attributes.set_integer(node, "to", TensorProto.DataType.Value(name))
    elif node.op_type == "Reshape" and opset < 5:
        shape = attributes.integers(node, "shape")
        if shape is not None and len(node.input) == 1:
            name = f"{node.output[0]}/shape"
            graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, [len(shape)], shape))
            node.input.append(name)
            attributes.remove(node, "shape")
    elif node.op_type == "Pad" and opset < 2:
        pads = attributes.integers(node, "paddings")
        if pads is not None:
            attributes.remove(node, "paddings")
            attributes.set_integers(node, "pads", pads)
    elif node.op_type in ("LpPool", "GlobalLpPool") and opset < 2:
        attributes.remove(node, "p")
