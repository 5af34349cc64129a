"""Operators of older opsets as a newer one writes them, for shape inference.

onnx infers nothing of most versions before opset 6, and follows lengths that a model computes (Shape, Gather, Concat,
Reshape) only through the versions of opset 13 and 14. Types and shapes are the same; what would change numbers is not
looked at, because nothing here is ever run.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto, NodeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.graph.names import without_blanks
from padfix.graph.scopes import DEFAULT_DOMAIN, normal_domain

_WITHOUT_BROADCAST = 7
"""Before it, operators of two inputs are told whether and where to broadcast the second."""

_WITHOUT_BATCHED_SCAN = 9
_AMOUNTS_AS_INPUTS_SINCE = {
    "Slice": 10,
    "TopK": 10,
    "Pad": 11,
    "ReduceSum": 13,
    "Split": 13,
    "Squeeze": 13,
    "Unsqueeze": 13,
}
_AMOUNTS = {"Slice": ("starts", "ends", "axes"), "TopK": ("k",), "Pad": ("pads",), "Split": ("split",)}
_AXES = ("axes",)
_RESIZES = ("Resize", "Upsample")
_NAMES_COORDINATES_SINCE = 11
_FIRST_ALONE = ("BatchNormalization", "Dropout")
"""Operators whose other outputs were of another type, or are no more."""


def rewrite_for_inference(graph: GraphProto, opset: int) -> int:
    """Rewrite the nodes of ``graph`` in place where ``opset`` is older; return the opset to infer with."""
    goal = 6 if opset < _WITHOUT_BROADCAST else 14
    batched = opset < _WITHOUT_BATCHED_SCAN and any(node.op_type == "Scan" for node in graph.node)
    if opset >= goal or batched:
        return opset
    for node in graph.node:
        if normal_domain(node.domain) == DEFAULT_DOMAIN:
            if goal == 6:
                _rewrite(graph, node, opset)
            elif opset < _AMOUNTS_AS_INPUTS_SINCE.get(node.op_type, 0):
                _move_to_inputs(graph, node, _AMOUNTS.get(node.op_type, _AXES))
            elif node.op_type in _FIRST_ALONE:
                del node.output[1:]
            elif node.op_type in _RESIZES and opset < _NAMES_COORDINATES_SINCE:
                _name_no_region(graph, node)
    return goal


def _move_to_inputs(graph: GraphProto, node: NodeProto, names: Sequence[str]) -> None:
    """Make inputs of attributes; one that is left out is an empty name, but for those behind the last."""
    for name in names:
        attribute = attributes.find(node, name)
        if attribute is None:
            node.input.append("")
            continue
        given = list(attribute.ints) or [attribute.i]
        tensor = f"{'/'.join(node.output)}/{name}"
        graph.initializer.append(helper.make_tensor(tensor, TensorProto.INT64, [len(given)], given))
        node.input.append(tensor)
        attributes.remove(node, name)
    node.input[:] = without_blanks(node.input)


def _name_no_region(graph: GraphProto, node: NodeProto) -> None:
    """Write what resizes as Resize does since it has a region of interest as its second input."""
    scales = attributes.find(node, "scales")
    if scales is not None:
        tensor = f"{'/'.join(node.output)}/scales"
        graph.initializer.append(helper.make_tensor(tensor, TensorProto.FLOAT, [len(scales.floats)], scales.floats))
        node.input.append(tensor)
        attributes.remove(node, "scales")
    node.op_type = "Resize"
    node.input.insert(1, "")


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
