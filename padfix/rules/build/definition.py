"""An operator as ONNX defines it by others, worked out as far as constants and known shapes allow."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, helper, numpy_helper

from padfix.files.model import Model
from padfix.graph import attributes
from padfix.graph.fragment import Fragment
from padfix.graph.scopes import DEFAULT_DOMAIN, Scope, bodies_of
from padfix.operators.constant_chains import lengths_given
from padfix.operators.evaluation import evaluated
from padfix.operators.inference import infer
from padfix.operators.refusal import Refusal
from padfix.operators.schemas import DRAWS, has_definition, schema
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import guessed_type, trials_of

_LARGEST_FOLDED = 1 << 16
"""Elements of a constant that is worked out while the definition is written."""

_LARGEST_CONSTANT = 64
"""Elements; larger constants never decide what a node becomes."""

_LAYING_OUT = ("Reshape", "Squeeze", "Unsqueeze")
"""What a Reshape behind it makes up for."""


def definition_forms(site: Site) -> Iterator[Form]:
    """Yield what other operators define a node's, which are for the rules about these to judge in their turn."""
    own = None if site.node.domain else schema(site.node.op_type, site.opset)
    if own is None or not has_definition(own) or site.node.op_type in DRAWS:
        return
    found = defined_by_others(site)
    why_not = found if isinstance(found, Refusal) else None

    def write() -> Rewrite | Refusal:
        return found if isinstance(found, Refusal) else Rewrite(found, trials_of(site))

    yield Form("what defines it", (), write, why_not)


def defined_by_others(site: Site) -> Fragment | Refusal:
    """Return what defines the node's operator, written for its own opset."""
    from onnx import inliner

    op_type = site.node.op_type
    own = schema(op_type, site.opset)
    if not has_definition(own):
        return Refusal("no other operators define it")
    single = one_node_model(site)
    _tell_inliner(single, own)
    try:
        inlined = inliner.inline_selected_functions(
            single, [(DEFAULT_DOMAIN, op_type)], exclude=False, inline_schema_functions=True
        )
    except Exception as error:
        return Refusal(f"its definition can't be written out: {error}")
    outputs = {name for name in site.node.output if name}
    nodes: list[NodeProto] = list(inlined.graph.node)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in inlined.graph.initializer}
    scope, before = infer(Model(inlined))[0], 0
    while before != len(nodes):
        before = len(nodes)
        nodes = _worked_out(nodes, constants, scope, outputs)
        scope = _typed(inlined, nodes, constants)
    if any(True for node in nodes for _ in bodies_of(node)) or any(node.op_type == op_type for node in nodes):
        return Refusal("its definition depends on values at run time")
    nodes = _needed(_without_copies(nodes, constants, scope, outputs), outputs)
    read = {name for node in nodes for name in node.input} - set(site.node.input)
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items() if name in read]
    return Fragment(tuple(nodes), tuple(tensors), site.opset)


def _tell_inliner(single: ModelProto, own: Any) -> None:
    """Write out what the inliner does not look up by itself: defaults of attributes, and types of constants.

    It wants a type of what a node leaves out as well.
    """
    (node,) = single.graph.node
    given = {attribute.name for attribute in node.attribute}
    defaults = {name: each.default_value for name, each in own.attributes.items() if name not in given}
    node.attribute.extend(default for default in defaults.values() if default.type != AttributeProto.UNDEFINED)
    for tensor in single.graph.initializer:
        single.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    if "" in node.input:
        single.graph.input.append(helper.make_tensor_value_info("", AttributeProto.FLOAT, None))


def _worked_out(
    nodes: Sequence[NodeProto], constants: dict[str, np.ndarray], scope: Scope, outputs: set[str]
) -> list[NodeProto]:
    """Return the nodes that depend on data; values of all others are put into ``constants``, but for ``outputs``."""
    kept: list[NodeProto] = []
    waiting = deque(nodes)
    while waiting:
        node = waiting.popleft()
        branch = _branch(node, constants)
        if branch is not None:
            waiting.extendleft(reversed(branch))
            continue
        values = None if outputs & set(node.output) else _values(node, scope, constants)
        if values is None:
            kept.append(node)
        else:
            constants.update(values)
    return kept


def _branch(node: NodeProto, constants: Mapping[str, np.ndarray]) -> list[NodeProto] | None:
    """Return the nodes of the branch that an If always takes; None where that is not known."""
    condition = constants.get(node.input[0]) if node.op_type == "If" else None
    if condition is None:
        return None
    attribute = attributes.find(node, "then_branch" if condition.reshape(-1)[0] else "else_branch")
    assert attribute is not None
    graph: GraphProto = attribute.g
    constant_nodes = [helper.make_node("Constant", [], [each.name], value=each) for each in graph.initializer]
    renamed = [
        helper.make_node("Identity", [inner.name], [outer])
        for inner, outer in zip(graph.output, node.output, strict=True)
    ]
    return [*constant_nodes, *graph.node, *renamed]


def _values(node: NodeProto, scope: Scope, constants: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    """Return what the node gives whatever the data, or None where that depends on it."""
    if node.op_type in ("Shape", "Size"):
        value = lengths_given(scope, node)
        return None if value is None else {node.output[0]: value}
    if node.op_type == "CastLike" and node.input[0] in constants:
        like = scope.type_of(node.input[1])
        if like is None or not like.elem_type:
            return None
        node = helper.make_node("Cast", [node.input[0]], list(node.output), to=like.elem_type)
    read = {name for name in node.input if name}
    if not read <= constants.keys() or any(True for _ in bodies_of(node)) or node.op_type in DRAWS:
        return None
    try:
        found = evaluated(node, {name: constants[name] for name in read}, scope.opset)
    except ValueError:
        return None
    return found if all(value.size <= _LARGEST_FOLDED for value in found.values()) else None


def _typed(model: ModelProto, nodes: Sequence[NodeProto], constants: Mapping[str, np.ndarray]) -> Scope:
    """Return the scope of the nodes that are left, in which what was worked out tells further lengths."""
    known = ModelProto()
    known.CopyFrom(model)
    del known.graph.node[:], known.graph.initializer[:]
    known.graph.node.extend(nodes)
    known.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return infer(Model(known))[0]


def _without_copies(
    nodes: Sequence[NodeProto], constants: Mapping[str, np.ndarray], scope: Scope, outputs: set[str]
) -> list[NodeProto]:
    """Return the nodes without those that give what they read, which definitions have for what a node leaves out."""
    made: dict[str, NodeProto] = {}
    instead: dict[str, str] = {}
    kept: list[NodeProto] = []
    for node in nodes:
        names = [_last(instead, name) for name in node.input]
        if node.op_type == "Concat":
            names = [name for name in names if not _is_nothing(scope, name)] or names[:1]
        gives = [name for name in node.output if not _is_nothing(scope, name)]
        given = _given(node, names, constants, scope)
        if (node.op_type == "Split" and len(gives) == 1) or given:
            names = [given or names[0]]
            node, names = helper.make_node("Identity", names[:1], gives), names[:1]
        is_told = node.op_type == "Reshape" and names[1] in constants and constants[names[1]].all()  # and copies none
        if is_told and names[0] in made and made[names[0]].op_type in _LAYING_OUT:
            names[0] = made[names[0]].input[0]
        del node.input[:]
        node.input.extend(names)
        is_copy = _gives_the_same(node, scope)
        if is_copy and node.output[0] not in outputs:
            instead[node.output[0]] = names[0]
        elif is_copy and names[0] in made and names[0] not in outputs:
            _rename(kept, names[0], node.output[0])
            instead[names[0]] = node.output[0]
            made[node.output[0]] = made[names[0]]
        else:
            made.update(dict.fromkeys(node.output, node))
            kept.append(node)
    return kept


def _given(node: NodeProto, names: Sequence[str], constants: Mapping[str, np.ndarray], scope: Scope) -> str | None:
    """Return which input a choice always takes, or a sum or product does nothing to; None where it does something."""
    if node.op_type == "Where" and names[0] in constants and len(set(constants[names[0]].reshape(-1).tolist())) == 1:
        chosen = names[1 if constants[names[0]].all() else 2]
        return chosen if _alike(scope, chosen, node.output[0]) else None
    for place in range(2 if node.op_type in ("Add", "Mul") else 0):
        told, other = constants.get(names[place]), names[1 - place]
        if told is not None and (told == (node.op_type == "Mul")).all() and _alike(scope, other, node.output[0]):
            return other
    return None


def _alike(scope: Scope, name: str, other: str) -> bool:
    """Whether both are known to be of one type, and to have the same lengths."""
    before, behind = scope.type_of(name), scope.type_of(other)
    return before is not None and behind is not None and before.lengths is not None and before == behind


def _last(instead: Mapping[str, str], name: str) -> str:
    while name in instead:
        name = instead[name]
    return name


def _is_nothing(scope: Scope, name: str) -> bool:
    """Whether a value has no elements, as what is left of an axis that is taken as a whole."""
    known = scope.type_of(name) if name else None
    return known is not None and known.shape is not None and 0 in known.shape


def _gives_the_same(node: NodeProto, scope: Scope) -> bool:
    if node.op_type == "Identity" or (node.op_type == "Concat" and len(node.input) == 1):
        return True
    before, behind = scope.type_of(node.input[0]) if node.input else None, scope.type_of(node.output[0])
    if before is None or behind is None or not before.elem_type or before.elem_type != behind.elem_type:
        return False
    is_laid_out_alike = before.lengths is not None and before.lengths == behind.lengths
    return node.op_type == "Cast" or (node.op_type in ("Expand", "Reshape") and is_laid_out_alike)


def _rename(nodes: Sequence[NodeProto], old: str, new: str) -> None:
    for node in nodes:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                if name == old:
                    names[place] = new


def _needed(nodes: Sequence[NodeProto], wanted: set[str]) -> list[NodeProto]:
    """Return the nodes that ``wanted`` depends on."""
    wanted, kept = set(wanted), []
    for node in reversed(nodes):
        if wanted & set(node.output):
            kept.append(node)
            wanted.update(name for name in node.input if name)
    return kept[::-1]


def one_node_model(site: Site) -> ModelProto:
    """Return a model of the node alone; small constants that it reads are initializers by the host's names."""
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
        elem_type = known.elem_type if known is not None and known.elem_type else guessed_type(site, position)
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
