"""TensorArrays that tf2onnx can't follow, as tensors with an axis more.

tf2onnx stacks what each iteration of a loop writes, one behind the other, whatever the index and the length. Where a
loop begins elsewhere, counts down, skips, or ends early, the list becomes a dense tensor in the GraphDef: what reserves
it fills it with zeros, a write is a scatter, a read a gather. That is TensorFlow's own meaning; an element that nobody
wrote is zero there as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from padfix.sources.list_flows import ListFlow, Scope

_INT32 = 3  # TensorFlow's DataType number (types.proto)
_NEW_NAMES = {"handle": "output", "output_handle": "output", "item": "output", "tensor": "output", "length": "output"}


def make_dense(tensorflow: Any, flow: ListFlow) -> None:
    """Exchange the operators of a list, and the types of what hands it on, in place."""
    for scope, nodes in flow.nodes.items():
        _Rewriter(tensorflow, flow, scope).exchange(nodes)
    for node, attribute, index in flow.typed:
        node.attr[attribute].list.type[index] = flow.element
        shapes = node.attr["output_shapes"].list.shape if "output_shapes" in node.attr else ()
        if attribute != "Tin" and index < len(shapes):
            shapes[index].CopyFrom(tensorflow.TensorShape([None, *flow.lengths]).as_proto())
    for function, arguments, index in flow.arguments:
        arguments[index].type = flow.element
        arguments[index].ClearField("handle_data")
        function.arg_attr.pop(index, None)


class _Rewriter:
    """Exchanges the operators of a list in one graph or function."""

    def __init__(self, tensorflow: Any, flow: ListFlow, scope: Scope) -> None:
        self._tensorflow, self._flow, self._scope = tensorflow, flow, scope
        self._made: list[Any] = []
        self._stem = ""

    def exchange(self, nodes: Sequence[Any]) -> None:
        """Put dense operators in the place of ``nodes``, under their names."""
        old = {node.name for node in nodes}
        for node in nodes:
            self._stem = node.name
            {
                "TensorListReserve": self._reserve,
                "TensorListFromTensor": self._pass_on,
                "TensorListStack": self._pass_on,
                "TensorListGetItem": self._get,
                "TensorListSetItem": self._set,
                "TensorListLength": self._length,
                "Identity": self._retype,
            }[node.op](node)
        self._scope.rename_outputs(old, _NEW_NAMES)
        self._scope.add(self._made)

    def _node(self, operator: str, inputs: Sequence[str], output: str = "output", **attributes: Any) -> str:
        node = self._scope.new_node()
        node.name, node.op = f"{self._stem}/padfix_{len(self._made)}", operator
        self._fill(node, inputs, attributes)
        self._made.append(node)
        return self._scope.reference(node.name, output)

    def _become(self, node: Any, operator: str, inputs: Sequence[str], **attributes: Any) -> None:
        kept = [given for given in node.input if given.startswith("^")]
        node.op = operator
        node.attr.clear()
        del node.input[:]
        self._fill(node, [*inputs, *kept], attributes)

    @staticmethod
    def _fill(node: Any, inputs: Sequence[str], attributes: Mapping[str, Any]) -> None:
        node.input.extend(inputs)
        for name, value in attributes.items():
            if name in ("N", "batch_dims"):
                node.attr[name].i = value
            elif name == "value":
                node.attr[name].tensor.CopyFrom(value)
            else:
                node.attr[name].type = value

    def _constant(self, values: Any, kind: int = _INT32) -> str:
        tensor = self._tensorflow.make_tensor_proto(values, dtype=self._tensorflow.dtypes.as_dtype(kind))
        return self._node("Const", [], dtype=kind, value=tensor)

    def _joined(self, parts: Sequence[str]) -> str:
        inputs = [*parts, self._constant(0)]
        return self._node("ConcatV2", inputs, N=len(parts), T=_INT32, Tidx=_INT32)

    def _vector(self, scalar: str, kind: int = _INT32) -> str:
        return self._node("ExpandDims", [scalar, self._constant(0)], T=kind, Tdim=_INT32)

    def _part(self, vector: str, start: int, count: int) -> str:
        bounds = [self._constant([start]), self._constant([count])]
        return self._node("Slice", [vector, *bounds], T=_INT32, Index=_INT32)

    def _shape(self, tensor: str) -> str:
        return self._node("Shape", [tensor], T=self._flow.element, out_type=_INT32)

    def _zero(self) -> str:
        element = self._tensorflow.dtypes.as_dtype(self._flow.element)
        return self._constant("" if element == self._tensorflow.string else 0, self._flow.element)

    def _reserve(self, node: Any) -> None:
        # An open length is one until something is written, and then that one's.
        lengths = self._constant([1 if length is None else length for length in self._flow.lengths] or [])
        shape = (
            self._joined([self._vector(node.input[1]), lengths]) if self._flow.lengths else self._vector(node.input[1])
        )
        self._become(node, "Fill", [shape, self._zero()], T=self._flow.element, index_type=_INT32)

    def _pass_on(self, node: Any) -> None:
        self._become(node, "Identity", [node.input[0]], T=self._flow.element)

    def _retype(self, node: Any) -> None:
        node.attr["T"].type = self._flow.element

    def _get(self, node: Any) -> None:
        kinds = {"Tparams": self._flow.element, "Tindices": _INT32, "Taxis": _INT32}
        self._become(node, "GatherV2", [*node.input[:2], self._constant(0)], batch_dims=0, **kinds)

    def _length(self, node: Any) -> None:
        inputs = [self._shape(node.input[0]), self._constant(0), self._constant(0)]
        self._become(node, "GatherV2", inputs, batch_dims=0, Tparams=_INT32, Tindices=_INT32, Taxis=_INT32)

    def _set(self, node: Any) -> None:
        whole, index, item = node.input[:3]
        element = self._flow.element
        if None in self._flow.lengths:
            shape = self._joined([self._part(self._shape(whole), 0, 1), self._shape(item)])
            whole = self._node("BroadcastTo", [whole, shape], T=element, Tidx=_INT32)
        if "resize_if_index_out_of_bounds" in node.attr and node.attr["resize_if_index_out_of_bounds"].b:
            whole = self._grown(whole, index)
        place = self._vector(self._vector(index))
        kinds = {"T": element, "Tindices": _INT32}
        self._become(node, "TensorScatterUpdate", [whole, place, self._vector(item, element)], **kinds)

    def _grown(self, whole: str, index: str) -> str:
        """Return the tensor with zeros behind it as far as the index."""
        shape = self._shape(whole)
        wanted = self._node("AddV2", [self._vector(index), self._constant([1])], "z", T=_INT32)
        lacking = self._node("Sub", [wanted, self._part(shape, 0, 1)], "z", T=_INT32)
        more = self._node("Maximum", [lacking, self._constant([0])], "z", T=_INT32)
        lengths = self._joined([more, self._part(shape, 1, -1)])
        zeros = self._node("Fill", [lengths, self._zero()], T=self._flow.element, index_type=_INT32)
        inputs = [whole, zeros, self._constant(0)]
        return self._node("ConcatV2", inputs, N=2, T=self._flow.element, Tidx=_INT32)
