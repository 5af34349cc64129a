"""Case (``tf.switch_case``) as conditions, one in the other, for which tf2onnx and ONNX have If alone.

TensorFlow takes a Case apart into Switch and Merge when it freezes a function, even where it leaves conditions whole.
Any index that no other branch has leads to the last one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

_OPERATORS = {"Case": "If", "StatelessCase": "StatelessIf"}
_INDEX = "padfix_index"
_INT32, _BOOL = 3, 10  # TensorFlow's DataType numbers (types.proto)
_SHAPES = "_input_shapes"


def as_conditions(graph_def: Any) -> None:
    """Write every Case of the graph and its functions as conditions, in place."""
    functions = graph_def.library.function
    _convert(functions, graph_def.node, "")
    position = 0
    while position < len(functions):  # which grow
        _convert(functions, functions[position].node_def, ":z:0")
        position += 1


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Write every Case as conditions before TensorFlow freezes a function, for the time of one conversion."""
    from tensorflow.python.framework import convert_to_constants

    prepare = convert_to_constants.disable_lower_using_switch_merge

    def prepared(graph_def: Any) -> Any:
        as_conditions(graph_def)
        return prepare(graph_def)

    with mock.patch.object(convert_to_constants, "disable_lower_using_switch_merge", prepared):
        yield


def _convert(functions: Any, nodes: Any, port: str) -> None:
    """Write each Case among ``nodes`` as an If; ``port`` is what follows the name of a node with one result."""
    for node in [each for each in nodes if each.op in _OPERATORS]:
        branches = [_with_index(functions, branch.name) for branch in node.attr["branches"].list.func]
        node.op = _OPERATORS[node.op]
        del node.attr["branches"]
        node.attr["Tin"].list.type.append(_INT32)
        node.attr["Tcond"].type = _BOOL
        node.attr["_lower_using_switch_merge"].b = False
        otherwise = branches[-1].signature.name
        for number in range(len(branches) - 2, 0, -1):
            otherwise = _rest(functions, node, branches[number], number, otherwise)
        index, *data = node.input
        del node.input[:]
        node.input.extend([_equal(nodes, node.name, index, 0, port), *data, index])
        _lead(node, branches[0].signature.name, otherwise)


def _with_index(functions: Any, name: str) -> Any:
    """Return a copy of a branch that is given the index after all else, as both branches of an If are."""
    wanted = f"{name}_with_index"
    known = {function.signature.name: function for function in functions}
    if wanted in known:
        return known[wanted]
    copied = functions.add()
    copied.CopyFrom(known[name])
    copied.signature.name = wanted
    copied.signature.input_arg.add(name=_INDEX, type=_INT32)
    if _SHAPES in copied.attr:
        copied.attr[_SHAPES].list.shape.add()
    return copied


def _rest(functions: Any, node: Any, branch: Any, number: int, otherwise: str) -> str:
    """Add the function that takes ``branch`` for the index ``number`` and ``otherwise`` for others; return its name."""
    made = functions.add()
    made.signature.CopyFrom(branch.signature)
    made.signature.name = f"{branch.signature.name}_{number}_or_{otherwise}"
    made.signature.ClearField("control_output")
    if _SHAPES in branch.attr:
        made.attr[_SHAPES].CopyFrom(branch.attr[_SHAPES])
    arguments = [argument.name for argument in made.signature.input_arg]
    condition = _equal(made.node_def, "case", _INDEX, number, ":z:0")
    inner = made.node_def.add(name="case", op=node.op, input=[condition, *arguments])
    for attribute, value in node.attr.items():
        inner.attr[attribute].CopyFrom(value)
    _lead(inner, branch.signature.name, otherwise)
    for position, result in enumerate(made.signature.output_arg):
        made.ret[result.name] = f"case:output:{position}"
    return str(made.signature.name)


def _equal(nodes: Any, stem: str, index: str, number: int, port: str) -> str:
    """Add the comparison of the index with ``number``; return the name of its result."""
    constant = nodes.add(name=f"{stem}/index_{number}", op="Const")
    constant.attr["dtype"].type = constant.attr["value"].tensor.dtype = _INT32
    constant.attr["value"].tensor.tensor_shape.SetInParent()
    constant.attr["value"].tensor.int_val.append(number)
    equal = nodes.add(name=f"{stem}/is_{number}", op="Equal")
    equal.input.extend([index, constant.name + (":output:0" if port else "")])
    equal.attr["T"].type = _INT32
    return f"{equal.name}{port}"


def _lead(node: Any, chosen: str, otherwise: str) -> None:
    node.attr["then_branch"].func.name, node.attr["else_branch"].func.name = chosen, otherwise
