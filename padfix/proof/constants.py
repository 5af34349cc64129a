"""The constants of a main graph: initializers and Constant nodes, loaded and compared when they are asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, numpy_helper

from padfix.errors import PadfixError
from padfix.files.model import Model
from padfix.files.payloads import load_payload
from padfix.files.skeleton import LARGE
from padfix.files.tensors import payload_size
from padfix.files.views import loaded_array
from padfix.proof.executors import Array, numpy_type

LARGEST_SHOWN = 64_000_000
"""Constants of more elements are not loaded to be looked at."""


class Constants:
    """The constants of one model's main graph; large weights may stay in its file.

    Where ``trusted``, large weights of one name, type and shape hold the same numbers in the other model: it was
    written from this one, and the files' own weights were copied.
    """

    def __init__(self, model: Model, *, trusted: bool = False) -> None:
        self._model = model
        self._tensors = constant_tensors(model.proto.graph)
        self._sparse = {tensor.values.name: tensor for tensor in model.proto.graph.sparse_initializer}
        self._trusted = trusted
        self._digests: dict[str, Hashable] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._tensors or name in self._sparse

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a constant."""
        tensor = self._tensors.get(name)
        return tuple(self._sparse[name].dims if tensor is None else tensor.dims)

    def is_whole(self, name: str) -> bool:
        """Whether a constant holds whole numbers."""
        tensor = self._tensors.get(name)
        return tensor is not None and numpy_type(tensor.data_type).kind in "iu"

    def digest(self, name: str) -> Hashable:
        """Return what two constants that are equal to the last bit have in common, and others don't."""
        if name not in self._digests:
            self._digests[name] = self._digest(name)
        return self._digests[name]

    def _digest(self, name: str) -> Hashable:
        tensor = self._tensors.get(name)
        if tensor is None:
            sparse = SparseTensorProto()
            sparse.CopyFrom(self._sparse[name])
            sparse.values.ClearField("name")
            return bytes(sparse.SerializeToString(deterministic=True))
        head = tensor.data_type, tuple(tensor.dims)
        if self._trusted and tensor.data_location == TensorProto.EXTERNAL and (payload_size(tensor) or 0) > LARGE:
            return (*head, name)
        try:
            payload = load_payload(self._model, tensor)
        except PadfixError:  # strings have no raw form
            return (*head, tuple(tensor.string_data), tensor.raw_data)
        return (*head, payload if len(payload) <= 64 else hashlib.blake2b(payload, digest_size=16).digest())

    def find(self, name: str) -> Array | None:
        """Return a constant's numbers; None where there is no such constant, or none that can be shown."""
        tensor = self._tensors.get(name)
        if tensor is None or tensor.data_type == TensorProto.STRING:
            return None
        if int(np.prod(tensor.dims, dtype=np.int64)) > LARGEST_SHOWN:
            return None
        try:
            return loaded_array(self._model, tensor)
        except (PadfixError, ValueError, TypeError, OSError, KeyError):
            return None


def constant_tensors(graph: GraphProto) -> dict[str, TensorProto]:
    """Return the initializers of ``graph`` and the tensors of its Constant nodes by name."""
    found = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute:
            tensor = _tensor_of(node)
            if tensor is not None:
                found[node.output[0]] = tensor
    return found


def _tensor_of(node: NodeProto) -> TensorProto | None:
    attribute = node.attribute[0]
    if attribute.type == AttributeProto.TENSOR:
        tensor: TensorProto = attribute.t
        return tensor
    try:
        value = onnx.helper.get_attribute_value(attribute)
        match attribute.name:
            case "value_float" | "value_floats":
                return numpy_helper.from_array(np.asarray(value, np.float32))
            case "value_int" | "value_ints":
                return numpy_helper.from_array(np.asarray(value, np.int64))
    except (ValueError, TypeError):
        return None
    return None
