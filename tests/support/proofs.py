"""Small models and rewrites for the tests of the proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from padfix.graph.fragment import Fragment
from padfix.proof.local import LocalOutcome, prove
from padfix.rules.base import Rewrite, TrialInput


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, tuple[int, Sequence[int | str | None] | None]],
    outputs: Sequence[str] = ("Y",),
    *,
    opset: int = 13,
    constants: Mapping[str, np.ndarray] | None = None,
    **graph_fields: Any,
) -> ModelProto:
    """Return a model; ``inputs`` maps a name to (element type, shape)."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, elem_type, shape) for name, (elem_type, shape) in inputs.items()],
        [ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
        **graph_fields,
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])


def windowed(op_type: str, shape: Sequence[int | str | None], *, weight: np.ndarray | None = None, **attributes: Any):
    """Return the bytes of a model of one Conv or pool with input X of ``shape``."""
    inputs = ["X"] if weight is None else ["X", "W"]
    node = helper.make_node(op_type, inputs, ["Y"], **attributes)
    constants = {} if weight is None else {"W": weight}
    return model([node], {"X": (TensorProto.FLOAT, shape)}, constants=constants).SerializeToString()


def prove_node(
    op_type: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    inputs: Mapping[str, TrialInput] | None = None,
    sizes: Sequence[int] = (5, 6, 7, 8),
    after_op: str = "",
    opset: int = 13,
    after_opset: int = 0,
    exact: bool = False,
    elem_type: int = TensorProto.FLOAT,
    names: tuple[str, str] = ("X", "Y"),
) -> LocalOutcome:
    """Prove a one-node rewrite on square-ish images; ``inputs`` are the others beside the data."""
    source, result = names
    inputs = inputs or {}
    old = helper.make_node(op_type, [source, *inputs], [result], name="any", **before)
    new = helper.make_node(after_op or op_type, [source, *inputs], [result], **after)
    trials = tuple({source: TrialInput((2, 3, size, size + 1), elem_type), **inputs} for size in sizes)
    rewrite = Rewrite(Fragment((new,), (), after_opset or opset), trials, exact)
    return prove([old], {"": opset}, rewrite, outputs=[result])
