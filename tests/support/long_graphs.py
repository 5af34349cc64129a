"""Graphs of very many nodes, written byte by byte, because messages of so many nodes take long to build."""

from __future__ import annotations

from pathlib import Path

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from padfix.files.wire_format import field_number, length_header

_GRAPH = field_number(ModelProto, "graph")
_NODE = field_number(GraphProto, "node")
IMPLICIT_EVERY = 1000
"""Of so many nodes one is a convolution that leaves its pads to ``auto_pad``."""


def write_long_graph(path: Path, nodes: int) -> int:
    """Write a chain of so many nodes, a tenth of them convolutions; return the bytes of the file, 100 or so a node."""
    pads = [AttributeProto(name="pads", type=AttributeProto.INTS, ints=[1, 1, 1, 1])]
    same = [AttributeProto(name="auto_pad", type=AttributeProto.STRING, s=b"SAME_UPPER")]
    forms = {
        kind: NodeProto(op_type=kind, attribute=attributes).SerializeToString()
        for kind, attributes in (("Relu", []), ("Add", []), ("Conv", pads))
    }
    implicit = NodeProto(op_type="Conv", attribute=same).SerializeToString()
    parts = []
    for number in range(nodes):
        kind = "Conv" if number % 10 == 0 else "Add" if number % 3 == 0 else "Relu"
        before, after = (f"network/block_{each // 100}/value_{each}".encode() for each in (number, number + 1))
        second = {"Conv": b"kernel", "Add": before, "Relu": None}[kind]
        form = implicit if number % IMPLICIT_EVERY == 0 else forms[kind]
        node = b"".join(
            length_header(field, len(text)) + text
            for field, text in ((1, before), (1, second), (2, after), (3, b"n_" + after))
            if text is not None
        )
        parts.append(length_header(_NODE, len(node) + len(form)) + node + form)
    last = f"network/block_{nodes // 100}/value_{nodes}"
    graph = helper.make_graph(
        [],
        "long",
        [helper.make_tensor_value_info("network/block_0/value_0", TensorProto.FLOAT, [1, 1, 32, 32])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, 1, 32, 32])],
        [helper.make_tensor("kernel", TensorProto.FLOAT, [1, 1, 3, 3], [0.1] * 9)],
    )
    rest = graph.SerializeToString()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model.ClearField("graph")
    head = model.SerializeToString() + length_header(_GRAPH, len(rest) + sum(map(len, parts)))
    with path.open("wb") as file:
        file.writelines([head, *parts, rest])
    return path.stat().st_size
