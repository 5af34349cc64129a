"""The kernels as operators of onnx.reference, and an evaluator that uses them everywhere in a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from padfix.kernels.conv import conv
from padfix.kernels.pool import average_pool, lp_pool, max_pool, max_pool_with_indices
from padfix.kernels.resample import legacy_resize, resize
from padfix.kernels.transpose import conv_transpose
from padfix.kernels.windows import Array


def _chosen(attributes: dict[str, Any], *names: str) -> dict[str, Any]:
    """Keep the attributes of these names that have a value; onnx.reference passes None for absent ones."""
    return {name: attributes[name] for name in names if attributes.get(name) is not None}


_WINDOW = ("kernel_shape", "strides", "dilations", "pads", "auto_pad")


class Conv(OpRun):  # type: ignore[misc]
    """Conv of every version."""

    op_domain = ""

    def _run(self, X: Array, W: Array, B: Array | None = None, **attributes: Any) -> tuple[Array]:
        return (conv(X, W, B, **_chosen(attributes, *_WINDOW, "group")),)


class ConvTranspose(OpRun):  # type: ignore[misc]
    """ConvTranspose of every version, with the split of version 11."""

    op_domain = ""

    def _run(self, X: Array, W: Array, B: Array | None = None, **attributes: Any) -> tuple[Array]:
        names = (*_WINDOW, "group", "output_padding", "output_shape")
        return (conv_transpose(X, W, B, **_chosen(attributes, *names)),)


class MaxPool(OpRun):  # type: ignore[misc]
    """MaxPool of every version, with the optional output Indices."""

    op_domain = ""

    def _run(self, X: Array, **attributes: Any) -> tuple[Array, ...]:
        names = (*_WINDOW, "ceil_mode")
        if len(self.onnx_node.output) > 1 and self.onnx_node.output[1]:
            return max_pool_with_indices(X, **_chosen(attributes, *names, "storage_order"))
        return (max_pool(X, **_chosen(attributes, *names)),)


class AveragePool(OpRun):  # type: ignore[misc]
    """AveragePool of every version."""

    op_domain = ""

    def _run(self, X: Array, **attributes: Any) -> tuple[Array]:
        return (average_pool(X, **_chosen(attributes, *_WINDOW, "ceil_mode", "count_include_pad")),)


class LpPool(OpRun):  # type: ignore[misc]
    """LpPool of every version."""

    op_domain = ""

    def _run(self, X: Array, **attributes: Any) -> tuple[Array]:
        return (lp_pool(X, **_chosen(attributes, *_WINDOW, "ceil_mode", "p")),)


class Upsample(OpRun):  # type: ignore[misc]
    """Upsample-1 (height_scale, width_scale), -7 (attribute scales) and -9 (input scales)."""

    op_domain = ""

    def _run(self, X: Array, scales: Array | None = None, **attributes: Any) -> tuple[Array]:
        factors = [] if scales is None else [float(each) for each in np.asarray(scales).ravel()]
        if attributes.get("height_scale") is not None and attributes.get("width_scale") is not None:
            factors = [1.0, 1.0, float(attributes["height_scale"]), float(attributes["width_scale"])]
        if any(factor < 1 for factor in factors):
            raise ValueError(f"Upsample has scales below 1, which the operator does not allow: {factors}.")
        return (legacy_resize(X, factors, attributes.get("mode") or "nearest"),)


class Resize(OpRun):  # type: ignore[misc]
    """Resize-10 (inputs X and scales, nothing else) and Resize-11 and later (roi is the second input)."""

    op_domain = ""

    def _run(self, X: Array, *inputs: Array | None, **attributes: Any) -> tuple[Array]:
        if len(inputs) == 1:
            if inputs[0] is None:
                raise ValueError("Resize has neither scales nor sizes.")
            factors = [float(each) for each in np.asarray(inputs[0]).ravel()]
            return (legacy_resize(X, factors, attributes.get("mode") or "nearest"),)
        names = (
            "mode",
            "coordinate_transformation_mode",
            "nearest_mode",
            "cubic_coeff_a",
            "exclude_outside",
            "extrapolation_value",
            "antialias",
            "axes",
            "keep_aspect_ratio_policy",
        )
        return (resize(X, *inputs, **_chosen(attributes, *names)),)


SPEC_OPS: list[type[OpRun]] = [Conv, ConvTranspose, MaxPool, AveragePool, LpPool, Upsample, Resize]
"""For ``ReferenceEvaluator(model, new_ops=SPEC_OPS)``; :class:`SpecEvaluator` also reaches model-local functions."""


class SpecEvaluator(ReferenceEvaluator):  # type: ignore[misc]
    """A reference evaluator with padfix's kernels in the main graph, in bodies and in model-local functions.

    onnx.reference hands ``new_ops`` to bodies but not to functions; it builds both with its own class, so a class that
    brings the operators along reaches every node.

    Beyond that it runs models that onnx.reference can't: the default domain spelled ``ai.onnx``, sparse initializers,
    and functions listed before those they call. The model that is given is not modified.
    """

    def __init__(
        self,
        proto: Any,
        opsets: dict[str, int] | None = None,
        functions: list[Any] | None = None,
        verbose: int = 0,
        new_ops: list[type[OpRun]] | None = None,
        **options: Any,
    ) -> None:
        if isinstance(proto, ModelProto):
            proto = runnable(proto)
        super().__init__(proto, opsets, functions, verbose, [*(new_ops or []), *SPEC_OPS], **options)


def runnable(model: ModelProto) -> ModelProto:
    """Return ``model``, or a changed copy of it where onnx.reference could not run it as it stands."""
    spelled = any(entry.domain == "ai.onnx" for entry in model.opset_import) or any(
        node.domain == "ai.onnx" for node in _nodes(model)
    )
    sparse = any(graph.sparse_initializer for graph in _graphs(model))
    ordered = _in_call_order(model.functions)
    moved = [id(each) for each in ordered] != [id(each) for each in model.functions]
    if not (spelled or sparse or moved):
        return model
    copy = ModelProto()
    copy.CopyFrom(model)
    if moved:
        ordered = [FunctionProto.FromString(each.SerializeToString()) for each in ordered]
        del copy.functions[:]
        copy.functions.extend(ordered)
    if spelled:
        _spell_default_domain(copy)
    for graph in _graphs(copy):
        for entry in graph.sparse_initializer:
            graph.initializer.append(numpy_helper.from_array(_dense(entry), entry.values.name))
        del graph.sparse_initializer[:]
    return copy


def _nodes(model: ModelProto) -> Iterator[NodeProto]:
    for container in (model.graph, *model.functions):
        yield from _nested(container.node)


def _nested(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for body in _bodies(node):
            yield from _nested(body.node)


def _bodies(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def _graphs(model: ModelProto) -> Iterator[GraphProto]:
    yield model.graph
    for node in _nodes(model):
        yield from _bodies(node)


def _spell_default_domain(model: ModelProto) -> None:
    """Write ``ai.onnx`` as the empty string, the only spelling that onnx.reference knows; in place."""
    for node in _nodes(model):
        if node.domain == "ai.onnx":
            node.domain = ""
    for container in (model, *model.functions):
        present = {entry.domain for entry in container.opset_import}
        for index in reversed(range(len(container.opset_import))):
            if container.opset_import[index].domain == "ai.onnx":
                if "" in present:
                    del container.opset_import[index]
                else:
                    container.opset_import[index].domain = ""


def _in_call_order(functions: Iterable[FunctionProto]) -> list[FunctionProto]:
    """Sort so that every function stands after those that it calls."""
    functions = list(functions)
    by_key = {(each.domain, each.name): each for each in functions}
    done: dict[tuple[str, str], FunctionProto] = {}

    def visit(function: FunctionProto, open_calls: frozenset[tuple[str, str]]) -> None:
        key = (function.domain, function.name)
        if key in done or key in open_calls:
            return
        for node in _nested(function.node):
            called = by_key.get((node.domain, node.op_type))
            if called is not None:
                visit(called, open_calls | {key})
        done[key] = function

    for function in functions:
        visit(function, frozenset())
    return list(done.values())


def _dense(sparse: SparseTensorProto) -> Array:
    values, indices = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    dense = np.zeros(tuple(sparse.dims), dtype=values.dtype)
    if indices.ndim == 1:
        dense.reshape(-1)[indices] = values
    else:
        dense[tuple(indices.T)] = values
    return dense
