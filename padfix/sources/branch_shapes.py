"""The shapes that the branches of a condition are called with.

tf2onnx hands a branch the shapes of all that the If reads, the condition first, so that each input has the shape of the
one before it; and TensorFlow prefers what the branch declares by itself, which is often nothing. A convolution by
weights from outside then fails, and lengths are taken for known that are others'. What the body of a
loop reads may grow, so it has the shapes that the loop declares, and those only where it declares nothing by itself.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from padfix.sources.list_flows import CONDITIONS, LOOPS

_PARTS = ("cond", "body")
_BRANCHES = ("then_branch", "else_branch")


def declared_in_branches() -> AbstractContextManager[Any]:
    """Let tf2onnx read branches with the shapes that they are called with, and loops with those that they declare."""
    from tf2onnx import tf_loader

    read, import_function = tf_loader.tflist_to_onnx, tf_loader.function_def_to_graph
    called_with: dict[str, list[Any]] = {}
    carried: dict[str, Any] = {}

    def noting_branches(graph: Any, *arguments: Any) -> Any:
        for node in graph.get_operations():
            if node.type in CONDITIONS:
                shapes = [each.shape for each in node.inputs[1:]]
                called_with.update((node.get_attr(branch).name, shapes) for branch in _BRANCHES)
            elif node.type in LOOPS:
                carried.update((node.get_attr(part).name, node.get_attr("output_shapes")) for part in _PARTS)
        return read(graph, *arguments)

    def with_shapes(function: Any, input_shapes: Any = None) -> Any:
        shapes = called_with.get(function.signature.name)
        for index, shape in enumerate(carried.get(function.signature.name, ())):
            declared = function.arg_attr[index].attr["_output_shapes"].list.shape if index in function.arg_attr else []
            for each in declared:
                if each.unknown_rank:
                    each.CopyFrom(shape)
        for index, shape in enumerate(shapes or ()):
            if shape.rank is not None and index in function.arg_attr:
                function.arg_attr[index].attr.pop("_output_shapes", None)
        return import_function(function, input_shapes=input_shapes if shapes is None else shapes)

    return mock.patch.multiple(tf_loader, tflist_to_onnx=noting_branches, function_def_to_graph=with_shapes)
