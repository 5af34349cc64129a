"""A few nodes built with onnx-graphsurgeon that take the place of one node; the only place that imports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs
from onnx import NodeProto

from padfix.graph.fragment import LOCAL_PREFIX, Fragment
from padfix.graph.names import without_blanks

_AXES_AS_INPUT_SINCE = 13  # of Squeeze and Unsqueeze, and the lengths of Split

Value = Any
"""A value inside a fragment under construction: opaque to rules."""


class FragmentBuilder:
    """Builds a fragment operator by operator.

    Example:
        >>> builder = FragmentBuilder(opset=17)
        >>> x = builder.input("X")
        >>> doubled = builder.op("Add", [x, x])
        >>> builder.output("Y", builder.op("Relu", [doubled]))
        >>> [node.op_type for node in builder.build().nodes]
        ['Add', 'Relu']
    """

    def __init__(self, opset: int, *, shares: bool = False) -> None:
        """Start an empty fragment.

        Args:
            opset: The default-domain version to write for.
            shares: Whether an operator that reads what an earlier one reads, and is told the same, is that one.
        """
        self._graph = gs.Graph(opset=opset)
        self._inputs: dict[str, gs.Variable] = {}
        self._constants = 0
        self._raw: dict[str, NodeProto] = {}
        self._shared: dict[object, Any] | None = {} if shares else None

    @property
    def opset(self) -> int:
        """The default-domain version that the fragment is written for."""
        return int(self._graph.opset)

    def input(self, name: str) -> Value:
        """Return the host's value ``name`` (the same object for the same name); ``""`` is an omitted input."""
        if name not in self._inputs:
            self._inputs[name] = gs.Variable.empty() if name == "" else gs.Variable(name)
        return self._inputs[name]

    def constant(self, array: np.ndarray, hint: str = "constant") -> Value:
        """Return a constant; dtype and shape are the array's."""
        held = np.asarray(array)
        key = (held.dtype.str, held.shape, held.tobytes())
        if self._shared is not None and key in self._shared:
            return self._shared[key]
        self._constants += 1
        constant = gs.Constant(f"{LOCAL_PREFIX}{hint}_{self._constants}", held)
        if self._shared is not None:
            self._shared[key] = constant
        return constant

    def integers(self, numbers: int | Sequence[int], hint: str = "constant") -> Value:
        """Return a constant of 64-bit integers: a vector, or a scalar where one number is given."""
        return self.constant(np.array(numbers, np.int64), hint)

    def op(
        self,
        op_type: str,
        inputs: Sequence[Value],
        attributes: Mapping[str, Any] | None = None,
        *,
        outputs: int = 1,
        domain: str = "",
        name: str = "",
    ) -> Any:
        """Append an operator; return its output, or a list when ``outputs`` is above 1."""
        key = (op_type, tuple(map(id, inputs)), repr(sorted((attributes or {}).items())), outputs, domain, name)
        if self._shared is not None and key in self._shared:
            return self._shared[key]
        index = len(self._graph.nodes)
        results = [gs.Variable(f"{LOCAL_PREFIX}{op_type}_{index}_{position}") for position in range(outputs)]
        self._graph.nodes.append(gs.Node(op_type, name, dict(attributes or {}), list(inputs), results, domain or None))
        given = results[0] if outputs == 1 else results
        if self._shared is not None:
            self._shared[key] = given
        return given

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """Append a Reshape to a constant shape, where 0 copies a length and -1 is what is left; return its output."""
        return self.op("Reshape", [value, self.integers(shape, "shape")])

    def unsqueezed(self, value: Value, *axes: int, back: bool = False) -> Value:
        """Append axes of one element, or take them away again (``back``); return the output."""
        op_type = "Squeeze" if back else "Unsqueeze"
        if self.opset < _AXES_AS_INPUT_SINCE:
            return self.op(op_type, [value], {"axes": list(axes)})
        return self.op(op_type, [value, self.integers(axes, "axes")])

    def turned(self, value: Value, rank: int) -> Value:
        """Append a Transpose that exchanges the last two of ``rank`` axes; return its output."""
        return self.op("Transpose", [value], {"perm": [*range(rank - 2), rank - 1, rank - 2]})

    def split(self, value: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
        """Append a Split into pieces of these lengths, where there are several; return them."""
        if len(sizes) == 1:
            return [value]
        if self.opset < _AXES_AS_INPUT_SINCE:
            return list(self.op("Split", [value], {"axis": axis, "split": list(sizes)}, outputs=len(sizes)))
        return list(self.op("Split", [value, self.integers(sizes, "split")], {"axis": axis}, outputs=len(sizes)))

    def original(self, node: NodeProto, inputs: Sequence[Value]) -> Any:
        """Append a copy of ``node`` (attributes, name, doc string and metadata kept) that reads ``inputs``.

        Returns its output, or a list when it has several; omitted ones behind all others are none.
        """
        results = self.originals(node, inputs)
        return results if len(results) > 1 else results[0]

    def originals(self, node: NodeProto, inputs: Sequence[Value]) -> list[Value]:
        """Append a copy of ``node`` as :meth:`original` does, and return a list of its outputs, be it of one."""
        marker, count = f"original_{len(self._raw)}", max(1, len(without_blanks(node.output)))
        results = self.op(node.op_type, inputs, outputs=count, domain=node.domain, name=marker)
        self._raw[marker] = node
        return list(results) if count > 1 else [results]

    def ending_in(self, node: NodeProto, inputs: Sequence[Value]) -> Fragment:
        """Return what was built with a copy of ``node`` at its end, which reads ``inputs`` and gives its outputs."""
        for name, value in zip(without_blanks(node.output), self.originals(node, inputs), strict=True):
            self.output(name, value)
        return self.build()

    def output(self, name: str, value: Value) -> None:
        """Bind ``value``, the result of an operator of this fragment, to the host's output ``name``."""
        if self._shared is not None and not value.name.startswith(LOCAL_PREFIX):
            value = self.op("Identity", [value], name=name)
        value.name = name

    def build(self) -> Fragment:
        """Return the fragment in topological order."""
        self._graph.toposort()
        exported = gs.export_onnx(self._graph, do_type_check=False).graph
        nodes = []
        for exported_node in exported.node:
            node = NodeProto()
            raw = self._raw.get(exported_node.name)
            if raw is None:
                node.CopyFrom(exported_node)
            else:
                node.CopyFrom(raw)
                del node.input[:], node.output[:]
                node.input.extend(exported_node.input)
                node.output.extend(exported_node.output)
            nodes.append(node)
        return Fragment(tuple(nodes), tuple(exported.initializer), self.opset)
