"""Splicing: names, constants, and everything that must stay."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, parser

from padfix.files.model import Model
from padfix.graph.fragment import Fragment
from padfix.graph.fragment_builder import FragmentBuilder
from padfix.graph.scopes import Scope
from padfix.graph.splice import apply_splices, plan_splice
from padfix.operators.inference import infer

TEXT = (
    '<ir_version: {ir}, opset_import: ["": 17, "f": 1]> g (float[1,1,8] X, bool c) => (float[a,b,d] Y) {{ '
    "A = Relu(X) B = MaxPool<kernel_shape=[2]>(A) "
    "Y = If<then_branch = t () => (float s) {{ s = MaxPool<kernel_shape=[2]>(B) }}, "
    "else_branch = e () => (float z) {{ z = Relu(B) }}>(c) }} "
    '<domain: "f", opset_import: ["": 17]> F (x, k) => (y) {{ '
    "y = If<then_branch = t () => (float s) {{ s = MaxPool<kernel_shape=[2]>(x) }}, "
    "else_branch = e () => (float z) {{ z = Relu(x) }}>(k) }}"
)


def scopes(proto: ModelProto) -> dict[str, Scope]:
    return {scope.path: scope for scope in infer(Model(proto))}


def splice(scope: Scope, index: int, fragment: Fragment) -> int:
    count = plan_splice(scope, index, fragment)
    apply_splices(scope)
    return count


def shifted_pool(scope: Scope, index: int) -> Fragment:
    node = scope.nodes[index]
    builder = FragmentBuilder(17)
    one = builder.constant(np.array(1, np.float32), "one")
    lifted = builder.op("Add", [builder.input(node.input[0]), one])
    pooled = builder.original(node, [lifted])
    builder.output(node.output[0], builder.op("Sub", [pooled, one]))
    return builder.build()


def test_the_node_keeps_what_is_its_own_and_its_neighbours_keep_everything() -> None:
    proto = parser.parse_model(TEXT.format(ir=8))
    pool = proto.graph.node[1]
    pool.name, pool.doc_string = "pool", "the only pool"
    entry = pool.metadata_props.add()
    entry.key, entry.value = "origin", "here"
    neighbours = [proto.graph.node[0].SerializeToString(), proto.graph.node[2].SerializeToString()]
    scope = scopes(proto)["main"]
    assert splice(scope, 1, shifted_pool(scope, 1)) == 3
    nodes = proto.graph.node
    assert [node.op_type for node in nodes] == ["Relu", "Add", "MaxPool", "Sub", "If"]
    assert (nodes[2].name, nodes[2].doc_string, nodes[2].metadata_props[0].value) == ("pool", "the only pool", "here")
    assert [nodes[0].SerializeToString(), nodes[4].SerializeToString()] == neighbours
    assert [tensor.name for tensor in proto.graph.initializer] == ["pool_one_1"]
    assert nodes[3].output == ["B"]
    assert scope.producer("B") is not None and scope.producer("B").op_type == "Sub"
    onnx.checker.check_model(proto)


def test_names_are_unique_in_the_main_graph_and_its_bodies_together() -> None:
    proto = parser.parse_model(TEXT.format(ir=8))
    taken = proto.graph.node.add(op_type="Relu", name="B_Add")
    taken.input.append("X")
    taken.output.append("B_one_1")
    found = scopes(proto)
    body = found["main/#2.then_branch"]
    body.nodes[0].name = "B"
    splice(body, 0, shifted_pool(body, 0))
    splice(found["main"], 1, shifted_pool(found["main"], 1))
    names: list[str] = []
    graphs = [proto.graph, *(attribute.g for attribute in proto.graph.node[4].attribute)]
    for graph in graphs:
        names += [name for node in graph.node for name in node.output]
        names += [tensor.name for tensor in graph.initializer]
    assert len(names) == len(set(names))
    assert [tensor.name for tensor in graphs[1].initializer] == ["B_one_1_2"]


def test_functions_get_constant_nodes_in_bodies_too() -> None:
    proto = parser.parse_model(TEXT.format(ir=8))
    body = scopes(proto)["function:f:F/#0.then_branch"]
    assert splice(body, 0, shifted_pool(body, 0)) == 4
    assert [node.op_type for node in body.nodes] == ["Constant", "Add", "MaxPool", "Sub"]
    assert not body.container.initializer
    onnx.checker.check_model(proto)


def test_old_files_get_constant_nodes_since_initializers_would_have_to_be_inputs() -> None:
    proto = parser.parse_model(TEXT.format(ir=3))
    scope = scopes(proto)["main"]
    assert splice(scope, 1, shifted_pool(scope, 1)) == 4
    assert not proto.graph.initializer
    onnx.checker.check_model(proto)


def test_only_contradicted_value_info_goes() -> None:
    for length, kept in ((7, True), (5, False)):
        proto = parser.parse_model(TEXT.format(ir=8))
        proto.graph.value_info.append(helper.make_tensor_value_info("B", TensorProto.FLOAT, [1, 1, length]))
        scope = scopes(proto)["main"]
        splice(scope, 1, shifted_pool(scope, 1))
        assert any(value.name == "B" for value in proto.graph.value_info) is kept


def test_names_of_the_host_that_look_like_local_ones() -> None:
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,1,8] one_1) => (float[a,b,d] Y) '
        "{ Y = MaxPool<kernel_shape=[2]>(one_1) }"
    )
    scope = scopes(proto)["main"]
    splice(scope, 0, shifted_pool(scope, 0))
    assert list(proto.graph.node[0].input) == ["one_1", proto.graph.initializer[0].name]
    assert proto.graph.initializer[0].name != "one_1"
