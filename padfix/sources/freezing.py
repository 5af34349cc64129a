"""Variables of a function made constants."""

from __future__ import annotations

from typing import Any

from padfix.sources import cases, side_effects

PROTOBUF_LIMIT = 2**31 - 1
"""Bytes of the largest GraphDef that TensorFlow can hand over."""


def without_variables(
    tensorflow: Any, owner: Any, function: Any, inputs: list[str], outputs: list[str], *, has_tables: bool
) -> tuple[Any, dict[bytes, Any]]:
    """Return the GraphDef of a concrete function with its variables as constants, and the contents of its tables.

    tf2onnx makes a function of the frozen graph and takes the graph out of that again, which takes as long as all its
    optimisers. For models over 2 GB it has a way without, which leaves TensorFlow's optimiser out; it is taken where
    the function has no tables and writes to no variable.

    Args:
        owner: What owns the variables and tables.
        inputs: Names of the tensors that are fed.
        outputs: Names of the tensors that are wanted.
        has_tables: Whether it has tables; tf2onnx takes them out of the function.
    """
    from tf2onnx import tf_loader

    with cases.kept():
        quick = None if has_tables else _quickly(tensorflow, owner, function, inputs, outputs)
        if quick is not None:
            return quick, {}
        graph_def, tables = tf_loader.from_trackable(owner, function, inputs, outputs, False)
    return graph_def, tables


def _quickly(tensorflow: Any, owner: Any, function: Any, inputs: list[str], outputs: list[str]) -> Any | None:
    """Return the GraphDef made without a function in between; None where it writes to a variable."""
    from tf2onnx import tf_loader

    graph_def, _ = tf_loader.from_trackable(owner, function, inputs, outputs, True)
    if any(node.op.startswith("Assign") for node in side_effects.every_node(graph_def)):
        return None
    graph_def = tf_loader.fix_freezing_errors_part2(graph_def)
    if graph_def.ByteSize() > PROTOBUF_LIMIT:
        return graph_def
    with tensorflow.Graph().as_default():
        return tf_loader.tf_optimize(inputs, outputs, graph_def)
