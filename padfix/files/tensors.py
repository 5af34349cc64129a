"""Every tensor of a model, and what its elements take as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from padfix.errors import SourceError


def iterate_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor of the model wherever it stands: initializers, attributes, bodies, functions, training."""
    yield from _graph_tensors(model.graph)
    for function in model.functions:
        yield from _node_tensors(function.node)
        for attribute in function.attribute_proto:
            yield from _attribute_tensors(attribute)
    for training in model.training_info:
        yield from _graph_tensors(training.initialization)
        yield from _graph_tensors(training.algorithm)


def _graph_tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Sequence[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            yield from _attribute_tensors(attribute)


def _attribute_tensors(attribute: AttributeProto) -> Iterator[TensorProto]:
    if attribute.HasField("t"):
        yield attribute.t
    if attribute.HasField("g"):
        yield from _graph_tensors(attribute.g)
    yield from attribute.tensors
    for graph in attribute.graphs:
        yield from _graph_tensors(graph)
    for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
        if sparse.ByteSize():
            yield sparse.values
            yield sparse.indices


_HALF_BYTE_TYPES = frozenset({TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1})

_ELEMENT_BYTES = {
    kind: size
    for size, kinds in {
        1: ("BOOL", "INT8", "UINT8", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"),
        2: ("INT16", "UINT16", "FLOAT16", "BFLOAT16"),
        4: ("FLOAT", "INT32", "UINT32"),
        8: ("DOUBLE", "INT64", "UINT64", "COMPLEX64"),
        16: ("COMPLEX128",),
    }.items()
    for kind in (TensorProto.DataType.Value(name) for name in kinds)
}


def payload_size(tensor: TensorProto) -> int | None:
    """Return the number of bytes that ``raw_data`` of the tensor's shape and type has; None for types not known."""
    count = 1
    for length in tensor.dims:
        count *= length
    if tensor.data_type in _HALF_BYTE_TYPES:
        return (count + 1) // 2
    size = _ELEMENT_BYTES.get(tensor.data_type)
    return None if size is None else count * size


def weight_bytes(model: ModelProto) -> int:
    """Return the bytes that the initializers of the main graph take in memory."""
    return sum(payload_size(tensor) or 0 for tensor in model.graph.initializer)


def inline_payload(tensor: TensorProto) -> bytes:
    """Return the elements of a tensor that holds them itself, as ``raw_data`` would.

    Raises:
        SourceError: What it holds does not fit its shape and type.
    """
    if tensor.HasField("raw_data"):
        return tensor.raw_data
    try:
        return numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data
    except (ValueError, TypeError, RuntimeError, KeyError, OverflowError, MemoryError) as error:
        raise SourceError(f"The tensor {tensor.name!r} does not hold what its shape and type say: {error}.") from error
