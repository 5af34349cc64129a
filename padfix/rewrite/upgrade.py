"""Moving every scope of a model to a newer opset of the default domain, one node at a time.

The official converter works on whole models: it loses functions and turns Upsample and Resize-10 into other numbers.
Run on a model of one node it is right for nearly all operators; :mod:`padfix.rewrite.upgrade_adapters` has
the others. Every
step is a :class:`~padfix.rules.base.Rewrite` with trials, so each is proven on its own before it is applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, defs, helper, numpy_helper

from padfix.files.model import Model
from padfix.graph import attributes
from padfix.graph.fragment import Fragment
from padfix.graph.scopes import DEFAULT_DOMAIN, Scope, ValueType, bodies_of, normal_domain
from padfix.rewrite.upgrade_adapters import ADAPTERS
from padfix.rules.base import Refusal, Rewrite, Site, Trial, TrialInput

_LARGEST_CONSTANT = 64
"""Elements; larger constants never decide how a node is upgraded."""

_LARGEST_TRIAL = 1 << 20
"""Elements of a trial's input above which axes that don't matter to the operator are shortened."""

_UNKNOWN_SIZE = 6
"""Length of an axis that is only known at run time, in a trial: divisible by 2 and 3."""

_ANY_SHAPE = frozenset({"Clip", "Dropout", "Softmax", "LogSoftmax", "Hardmax", "Cast"})


@dataclass(frozen=True)
class UpgradeStep:
    """One node that needs an edit, and the edit."""

    site: Site
    rewrite: Rewrite


def upgrade(
    model: Model, scopes: Sequence[Scope], target: int, handled: frozenset[tuple[int, int]]
) -> list[UpgradeStep] | Refusal:
    """Plan the move of every scope to ``target``; nothing is edited.

    Args:
        model: The model; only its functions' imports are read.
        scopes: All scopes, with types.
        target: Version of the default domain.
        handled: Nodes that rules rewrite themselves: the identity of the scope, and the index in it.

    Returns:
        The edits, one a node, in order of scopes and nodes; or why the model can't be moved, naming the node.
    """
    if target > defs.onnx_opset_version():
        return Refusal(f"Opset {target} is newer than the installed onnx knows ({defs.onnx_opset_version()}).")
    steps: list[UpgradeStep] = []
    for scope in scopes:
        if scope.opset > target:
            return Refusal(f"{scope.path} is written for opset {scope.opset}, which is newer than {target}.")
        if scope.opset == target:
            continue
        for index, node in enumerate(scope.nodes):
            if normal_domain(node.domain) != DEFAULT_DOMAIN or (id(scope), index) in handled:
                continue
            site = Site(scope, index, node)
            fragment = _upgraded(site, target)
            if isinstance(fragment, Refusal):
                return Refusal(
                    f"{node.op_type} {site.label!r} in {scope.path} can't be moved from opset {scope.opset} to "
                    f"{target}: {fragment.reason.rstrip('.')}."
                )
            if fragment is not None:
                steps.append(UpgradeStep(site, Rewrite(fragment, _trials(site))))
    return steps


def _upgraded(site: Site, target: int) -> Fragment | Refusal | None:
    """Return what takes the node's place, None when it is right as it is, or why it can't be moved."""
    node = site.node
    old, new = _schema(node.op_type, site.opset), _schema(node.op_type, target)
    if old is None or new is None:
        return Refusal(f"opset {site.opset if old is None else target} has no operator {node.op_type}")
    if old.since_version == new.since_version:
        return None
    if node.op_type == "Scan" and site.opset < 9:
        return Refusal("Scan-8 iterates over a batch axis, which newer versions don't have")
    if node.op_type == "Constant" or any(True for _ in bodies_of(node)):
        return None  # bodies are scopes of their own; the operators around them only gained types
    same = not new.deprecated and _only_types_differ(node.op_type, site.opset, target)
    referenced = [attribute.name for attribute in node.attribute if attribute.ref_attr_name]
    if referenced and not same:
        return Refusal(f"the caller of the function gives {', '.join(referenced)}; inline the function first")
    adapter = ADAPTERS.get(node.op_type)
    adapted = None if adapter is None else adapter(site, target)
    if adapted is None:
        if same:
            return None
        adapted = _converted(site, target)
    if isinstance(adapted, Fragment) and _is_unchanged(node, adapted, new):
        return None
    return adapted


@cache
def _schema(op_type: str, opset: int) -> Any:
    try:
        return defs.get_schema(op_type, opset, DEFAULT_DOMAIN)
    except defs.SchemaError:
        return None


@cache
def _only_types_differ(op_type: str, opset: int, target: int) -> bool:
    """Whether two versions have the same inputs, outputs and attributes; broadcasting is the same since opset 7."""
    old, new = _schema(op_type, opset), _schema(op_type, target)
    return opset >= 7 and _signature(old) == _signature(new)


def _signature(schema: Any) -> tuple[Any, ...]:
    return (
        schema.min_input,
        schema.max_input,
        schema.min_output,
        schema.max_output,
        tuple((parameter.name, parameter.option) for parameter in (*schema.inputs, *schema.outputs)),
        tuple(
            sorted(
                (name, str(attribute.type), attribute.required, attribute.default_value.SerializeToString())
                for name, attribute in schema.attributes.items()
            )
        ),
    )


def _converted(site: Site, target: int) -> Fragment | Refusal:
    """Run the official converter on a model of this one node."""
    from onnx import version_converter

    single = _one_node_model(site)
    try:
        result: ModelProto = version_converter.convert_version(single, target)
    except Exception as error:
        said = str(error).strip().splitlines()
        return Refusal(f"the official version converter says: {said[-1] if said else type(error).__name__}")
    given = {tensor.name: tensor for tensor in single.graph.initializer}
    initializers = []
    for tensor in result.graph.initializer:
        if tensor.name not in given:
            initializers.append(tensor)
        elif not np.array_equal(numpy_helper.to_array(tensor), numpy_helper.to_array(given[tensor.name])):
            return Refusal("the official version converter changes a tensor that others may read")
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in result.graph.node]
    if not nodes:
        return Refusal("the official version converter removes it")
    main = nodes[-1]
    main.name, main.doc_string = site.node.name, site.node.doc_string
    if not main.metadata_props:
        main.metadata_props.extend(site.node.metadata_props)
    produced = {name for node in nodes for name in node.output}
    if not {name for name in site.node.output if name} <= produced:
        return Refusal("the official version converter loses an output")
    return Fragment(tuple(nodes), tuple(initializers), target)


def _one_node_model(site: Site) -> ModelProto:
    node = site.node
    inputs, initializers = [], []
    for position, name in enumerate(dict.fromkeys(node.input)):
        if not name:
            continue
        constant = site.scope.constant(name)
        if constant is not None and constant.size <= _LARGEST_CONSTANT:
            initializers.append(numpy_helper.from_array(constant, name))
            continue
        known = site.scope.type_of(name)
        elem_type = known.elem_type if known is not None and known.elem_type else _guessed_type(site, position)
        inputs.append(helper.make_tensor_value_info(name, elem_type, None if known is None else known.shape))
    outputs = []
    for name in node.output:
        if name:
            known = site.scope.type_of(name)
            if known is not None and known.elem_type:
                outputs.append(helper.make_tensor_value_info(name, known.elem_type, known.shape))
            else:
                outputs.append(helper.make_empty_tensor_value_info(name))
    graph = helper.make_graph([node], "node", inputs, outputs, initializers)
    imports = [helper.make_opsetid(DEFAULT_DOMAIN, site.opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def _guessed_type(site: Site, position: int) -> int:
    """Return a type that the operator allows for an input whose own is not known."""
    schema = _schema(site.node.op_type, site.opset)
    allowed = schema.inputs[min(position, len(schema.inputs) - 1)].types if schema.inputs else ["tensor(float)"]
    return int(TensorProto.FLOAT if "tensor(float)" in allowed or "tensor(int64)" not in allowed else TensorProto.INT64)


def _is_unchanged(node: NodeProto, fragment: Fragment, schema: Any) -> bool:
    if len(fragment.nodes) != 1 or fragment.nodes[0].op_type != node.op_type:
        return False
    other = fragment.nodes[0]
    return (
        list(node.input) == list(other.input)
        and list(node.output) == list(other.output)
        and _meaningful(node, schema) == _meaningful(other, schema)
    )


def _meaningful(node: NodeProto, schema: Any) -> dict[str, bytes]:
    """Return the attributes that aren't just the default of the newer version."""
    found = {}
    for attribute in node.attribute:
        plain = AttributeProto()
        plain.CopyFrom(attribute)
        plain.ClearField("doc_string")
        default = schema.attributes[attribute.name].default_value if attribute.name in schema.attributes else None
        if default is not None and _value(default) == _value(plain) and default.type == plain.type:
            continue
        found[attribute.name] = plain.SerializeToString(deterministic=True)
    return found


def _value(attribute: AttributeProto) -> Any:
    """Return an attribute's value, or None when it has none."""
    return None if attribute.type == AttributeProto.UNDEFINED else helper.get_attribute_value(attribute)


def _trials(site: Site) -> tuple[Trial, ...]:
    """Return shape cases: the declared shape where it is known, else one that the node's attributes allow."""
    node = site.node
    trial: dict[str, TrialInput] = {}
    for position, name in enumerate(node.input):
        if not name or name in trial:
            continue
        constant = site.scope.constant(name)
        known = site.scope.type_of(name)
        if constant is not None:
            elem_type = int(helper.np_dtype_to_tensor_dtype(constant.dtype))
            trial[name] = TrialInput(constant.shape, elem_type, constant, constant=True)
            continue
        elem_type = known.elem_type if known is not None and known.elem_type else _guessed_type(site, position)
        trial[name] = TrialInput(_trial_shape(site, position, known), elem_type)
    return (trial,)


def _trial_shape(site: Site, position: int, known: ValueType | None) -> tuple[int, ...]:
    if known is not None and known.shape is not None:
        shape = [size if isinstance(size, int) else _run_time_size(site, axis) for axis, size in enumerate(known.shape)]
        return _shortened(site.node.op_type, shape, position)
    if site.node.op_type == "BatchNormalization" and position > 0:
        return (3,)
    pads = attributes.integers(site.node, "pads") or attributes.integers(site.node, "paddings") or []
    axes = attributes.integers(site.node, "axes") or []
    axis = attributes.integer(site.node, "axis", 0)
    rank = len(pads) // 2 or max([2, axis, *axes]) + 1
    shape = [2, *[3] * (rank - 1)]
    if site.node.op_type == "Squeeze":
        return tuple(1 if number in axes else size for number, size in enumerate(shape))
    return tuple(_run_time_size(site, number) if number == axis else size for number, size in enumerate(shape))


def _run_time_size(site: Site, axis: int) -> int:
    """Return a length for an axis whose own is not known, one that the node can take."""
    if site.node.op_type == "Split" and axis == attributes.integer(site.node, "axis", 0):
        return sum(attributes.integers(site.node, "split") or [2 * len(site.node.output)])
    if site.node.op_type == "Squeeze" and axis in (attributes.integers(site.node, "axes") or []):
        return 1
    return 3 if site.node.op_type == "BatchNormalization" and axis == 1 else _UNKNOWN_SIZE


def _shortened(op_type: str, shape: list[int], position: int) -> tuple[int, ...]:
    """Shorten the axes of a large input that the operator treats alike."""
    if np.prod(shape, dtype=np.float64) > _LARGEST_TRIAL and position == 0:
        if op_type in _ANY_SHAPE or op_type.startswith("Reduce"):
            return tuple(min(size, 7) for size in shape)
        if op_type == "BatchNormalization":
            return tuple(size if axis == 1 else min(size, 7) for axis, size in enumerate(shape))
    return tuple(shape)
