"""Parts of an ONNX model: some of its tensors as outputs, some as inputs, and no more nodes than lie between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper

from padfix.graph.scopes import outer_names_of

_FOUND = "/computed from what is fed"

Kind = tuple[int, tuple[int | None, ...]]
"""Element type (``TensorProto.DataType``) and lengths of a tensor; None for one that may change."""


def part_of(model: ModelProto, names: Sequence[str], fed: Mapping[str, Kind] | None = None) -> ModelProto:
    """Return ``model`` with ``names`` as its outputs, without the nodes, weights and inputs that these don't need.

    Every reader of a name in ``fed`` reads an input of that name and kind. Such a name may be among ``names`` all the
    same: what its own node computes then comes out under the name that :func:`output_name` gives.
    """
    fed = fed or {}
    graph = model.graph
    wanted, kept = set(names), []
    for node in reversed(graph.node):
        if not wanted.isdisjoint(node.output):
            kept.append(_renamed(node, fed))
            wanted.update(name for name in node.input if name not in fed)
            wanted.update(outer_names_of(node) - fed.keys())
    result = ModelProto(ir_version=model.ir_version, producer_name=model.producer_name, domain=model.domain)
    result.opset_import.extend(model.opset_import)
    result.functions.extend(model.functions)
    part = result.graph
    part.name = graph.name or "part"
    part.node.extend(reversed(kept))
    read = {name for node in kept for name in (*node.input, *outer_names_of(node))}
    held = read | set(names)
    part.initializer.extend(tensor for tensor in graph.initializer if tensor.name in held)
    part.sparse_initializer.extend(tensor for tensor in graph.sparse_initializer if tensor.values.name in held)
    part.input.extend(value for value in graph.input if value.name in held and value.name not in fed)
    part.input.extend(
        helper.make_tensor_value_info(name, elem_type, lengths)
        for name, (elem_type, lengths) in fed.items()
        if name in read
    )
    part.quantization_annotation.extend(graph.quantization_annotation)
    declared = _declared(graph)
    part.output.extend(
        ValueInfoProto(name=output_name(name, fed)) if name in fed else declared.get(name, ValueInfoProto(name=name))
        for name in names
    )
    return result


def output_name(name: str, fed: Mapping[str, object]) -> str:
    """Return the output under which a part gives the tensor ``name``."""
    return name + _FOUND if name in fed else name


def _renamed(node: NodeProto, fed: Mapping[str, object]) -> NodeProto:
    if not any(name in fed for name in node.output):
        return node
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.output[:] = [output_name(name, fed) for name in node.output]
    return copy


def _declared(graph: GraphProto) -> dict[str, ValueInfoProto]:
    # The declared types of outputs only: an inner one may be stale, and ONNX Runtime would refuse it.
    return {value.name: value for value in graph.output if value.HasField("type")}
