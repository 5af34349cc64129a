"""Graphs that mean nothing are refused by name; unusual ones that mean something are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import GraphProto, ModelProto, TensorProto, defs, helper

import padfix
from padfix.errors import SourceError, UnsupportedError
from padfix.graph.validation import require_sound


def value(name: str):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])


def graph(nodes, inputs=("x",), outputs=("y",), initializers=()) -> GraphProto:
    tensors = [helper.make_tensor(name, TensorProto.FLOAT, [1], [1.0]) for name in initializers]
    return helper.make_graph(nodes, "g", [value(name) for name in inputs], [value(name) for name in outputs], tensors)


def model(*nodes, functions=(), opset: int = 17, **parts) -> ModelProto:
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph(nodes, **parts), functions=functions, opset_imports=imports, ir_version=8)


def relu(source: str, result: str, **more):
    return helper.make_node("Relu", [source], [result], **more)


def branch(nodes, outputs=("b",)):
    return graph(nodes, inputs=(), outputs=outputs)


def choice(then: GraphProto, result: str = "y"):
    return helper.make_node("If", ["x"], [result], then_branch=then, else_branch=branch([relu("x", "b")]))


def function(name: str, nodes) -> object:
    return helper.make_function(
        "own", name, ["x"], ["y"], nodes, [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    )


def call(name: str, source: str, result: str):
    return helper.make_node(name, [source], [result], domain="own")


SOUND = {
    "nodes in any order": model(relu("a", "y"), relu("x", "a")),
    "a body reads from around it": model(relu("x", "a"), choice(branch([relu("a", "b")]))),
    "a body's output is a value from around it": model(relu("x", "a"), choice(branch([], outputs=("a",)))),
    "a body shadows a name": model(relu("x", "b"), choice(branch([relu("x", "b")]))),
    "an initializer that is also an input": model(relu("w", "y"), inputs=("x", "w"), initializers=("w",)),
    "an input that nothing reads, given out": model(inputs=("y",)),
    "optional outputs without a name": model(helper.make_node("Dropout", ["x"], ["y", ""])),
    "calls of calls": model(
        call("F", "x", "y"),
        functions=[function("F", [call("G", "x", "y")]), function("G", [relu("x", "y")])],
    ),
}  # fmt: skip

UNSOUND = {
    "reads 'nowhere', which nothing gives": model(relu("nowhere", "y")),
    "nothing gives the output 'z'": model(relu("x", "y"), outputs=("z",)),
    "the value 'y' of the graph 'g' is given twice": model(relu("x", "y"), relu("x", "y")),
    "the value 'x' of the graph 'g' is given twice": model(relu("x", "x"), relu("x", "y")),
    "the input 'x' of the graph 'g' is given twice": model(relu("x", "y"), inputs=("x", "x")),
    "the initializer 'w' of the graph 'g' is given twice": model(relu("w", "y"), initializers=("w", "w")),
    "Relu 'first' depends on its own result": model(relu("b", "a", name="first"), relu("a", "b"), relu("a", "y")),
    "Relu '#0' depends on its own result": model(relu("y", "y")),
    "If '#0' depends on its own result": model(choice(branch([relu("y", "b")]))),
    "reads 'inner', which nothing gives": model(
        choice(branch([relu("x", "inner"), relu("inner", "b")]), "a"), relu("inner", "y")
    ),
    "the function 'F' is defined twice": model(
        call("F", "x", "y"), functions=[function("F", [relu("x", "y")]), function("F", [relu("x", "y")])]
    ),
    "the function 'F' calls itself": model(
        call("F", "x", "y"),
        functions=[function("F", [call("G", "x", "y")]), function("G", [call("F", "x", "y")])],
    ),
    "its calls of functions come to": model(
        call("F0", "x", "y"),
        functions=[
            function(f"F{i}", [call(f"F{i + 1}", "x", "a"), call(f"F{i + 1}", "a", "y")]) for i in range(40)
        ] + [function("F40", [relu("x", "y")])],
    ),
    "it is written for opset 0": model(relu("x", "y"), opset=0),
    "it is written for opset -3": model(relu("x", "y"), opset=-3),
}  # fmt: skip


@pytest.mark.parametrize("what", SOUND)
def test_what_means_something_is_let_through(what: str) -> None:
    require_sound(SOUND[what], "m.onnx")


@pytest.mark.parametrize("what", UNSOUND)
def test_what_means_nothing_is_refused_by_name(what: str) -> None:
    with pytest.raises(SourceError) as caught:
        require_sound(UNSOUND[what], "m.onnx")
    assert caught.value.message.startswith("m.onnx is not a valid ONNX model: ")
    assert what in caught.value.message


def test_an_operator_set_of_the_future_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model(relu("x", "y"), opset=9999).SerializeToString())
    with pytest.raises(UnsupportedError, match=f"opset 9999; .* up to {defs.onnx_opset_version()}"):
        padfix.check(path)
