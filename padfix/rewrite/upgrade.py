"""Moving every scope of a model to a newer opset of the default domain, one node at a time.

The official converter works on whole models: it loses functions and turns Upsample and Resize-10 into other numbers.
Run on a model of one node it is right for nearly all operators; :mod:`padfix.rewrite.upgrade_adapters` has
the others. Every
step is a :class:`~padfix.rules.base.Rewrite` with trials, so each is proven on its own before it is applied.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, defs, helper, numpy_helper

from padfix.files.model import Model
from padfix.graph import attributes
from padfix.graph.fragment import Fragment
from padfix.graph.scopes import DEFAULT_DOMAIN, Scope, bodies_of, normal_domain
from padfix.operators.refusal import Refusal
from padfix.proof.likeness import Meanings
from padfix.rewrite.upgrade_adapters import adapted
from padfix.rewrite.upgrade_trials import guessed_type, is_known, trials_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied

_LARGEST_CONSTANT = 64
"""Elements; larger constants never decide how a node is upgraded."""


@dataclass(frozen=True)
class UpgradeStep:
    """One node whose operator has another version at the new opset.

    Attributes:
        site: Where the node stands.
        rewrite: What takes its place, or the node itself when it stays as it is: that is to be proven too.
        edits: Whether the node changes.
        must_run: Whether the step is right only if running it says so; else the operator's schema says that all it
            could do before it does now, and a trial that no runtime can run leaves the judgement to the whole model.
    """

    site: Site
    rewrite: Rewrite
    edits: bool = True
    must_run: bool = True


def upgrade(
    model: Model, scopes: Sequence[Scope], target: int, handled: frozenset[tuple[int, int]]
) -> list[UpgradeStep] | Refusal:
    """Plan the move of every scope to ``target``, a version of the default domain; nothing is edited.

    ``handled`` are nodes that rules rewrite themselves: the identity of the scope, and the index in it.

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
                steps.append(UpgradeStep(site, Rewrite(fragment, trials_of(site))))
            else:
                steps.extend(_unchanged(site, target))
    return steps


def _unchanged(site: Site, target: int) -> list[UpgradeStep]:
    """Return the step of a node that stays as it is, to be proven; nothing where there is no way to try it.

    That its version stays the same is no proof either where a runtime computes by the operator's definition in others:
    those may have newer versions that it has not.
    """
    old, new = _schema(site.node.op_type, site.opset), _schema(site.node.op_type, target)
    defined_by_others = new.has_function or new.has_context_dependent_function
    if old.since_version == new.since_version and not defined_by_others:
        return []
    if site.node.op_type == "Constant" or any(True for _ in bodies_of(site.node)):
        return []  # bodies are scopes of their own; the operators around them only gained types
    must_run = not _takes(new, old, site.node)
    if not must_run and (any(each.ref_attr_name for each in site.node.attribute) or not is_known(site)):
        return []
    rewrite = Rewrite(Fragment((copied(site.node),), (), target), trials_of(site))
    return [UpgradeStep(site, rewrite, edits=False, must_run=must_run)]


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
    explicit = dataclasses.replace(site, node=_with_old_defaults(node, old, new))
    same = not new.deprecated and _takes(new, old, explicit.node)
    replacement = adapted(explicit, target)
    referenced = [attribute.name for attribute in node.attribute if attribute.ref_attr_name]
    if referenced and not (same and replacement is None):
        return Refusal(f"the caller of the function gives {', '.join(referenced)}; inline the function first")
    if replacement is None:
        replacement = Fragment((explicit.node,), (), target) if same else _converted(explicit, target)
    if isinstance(replacement, Refusal):
        return replacement
    if _is_unchanged(node, replacement):
        return None
    problem = _problem(site, replacement)
    return replacement if problem is None else Refusal(problem)


def _with_old_defaults(node: NodeProto, old: Any, new: Any) -> NodeProto:
    """Return the node with every default written out that is another in the newer version, or is none there.

    The hint of opset 1 that an operator may overwrite its input goes: it never changed a result.
    """
    explicit = copied(node, without=("consumed_inputs",))
    for name, attribute in old.attributes.items():
        default, later = attribute.default_value, new.attributes.get(name)
        if default.type == AttributeProto.UNDEFINED or attributes.find(node, name) is not None or later is None:
            continue
        if str(attribute.type) == str(later.type) and default != later.default_value:
            explicit.attribute.append(default)
    return explicit


def _problem(site: Site, fragment: Fragment) -> str | None:
    """Return what the checker says against the node's replacement, where it has nothing against the node."""
    from onnx import checker, shape_inference

    def said(model: ModelProto) -> str | None:
        try:
            checker.check_model(model)
            shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return lines[0] if lines else type(error).__name__
        return None

    before = _one_node_model(site)
    after = ModelProto()
    after.CopyFrom(before)
    del after.graph.node[:]
    after.graph.node.extend(fragment.nodes)
    after.graph.initializer.extend(fragment.initializers)
    after.opset_import[0].version = fragment.opset
    problem = said(after)
    return None if problem is None or said(before) is not None else f"the result is not a valid model: {problem}"


@cache
def _schema(op_type: str, opset: int) -> Any:
    try:
        return defs.get_schema(op_type, opset, DEFAULT_DOMAIN)
    except defs.SchemaError:
        return None


def _takes(new: Any, old: Any, node: NodeProto) -> bool:
    """Whether the newer version takes the node as it stands, and only adds what may be left out.

    That an addition, left out, means what the older version meant, and that names stand for the same, is not in the
    schemas: where it is not so, there is an adapter.
    """
    if not new.min_input <= len(node.input) or len(node.output) < new.min_output:
        return False
    for count, before, after in (
        (len(node.input), old.inputs, new.inputs),
        (len(node.output), old.outputs, new.outputs),
    ):
        if [each.name for each in before][:count] != [each.name for each in after][: min(count, len(before))]:
            return False
    given = {each.name: each for each in node.attribute}
    return all(
        name in new.attributes and str(new.attributes[name].type) == str(old.attributes[name].type)
        for name in given
        if name in old.attributes
    ) and not any(each.required and name not in given for name, each in new.attributes.items())


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


def _is_unchanged(node: NodeProto, fragment: Fragment) -> bool:
    if len(fragment.nodes) != 1 or fragment.nodes[0].op_type != node.op_type:
        return False
    other = fragment.nodes[0]
    meanings = Meanings(ModelProto(opset_import=[helper.make_opsetid(DEFAULT_DOMAIN, fragment.opset)]))
    return (
        list(node.input) == list(other.input)
        and list(node.output) == list(other.output)
        and meanings.attributes(node) == meanings.attributes(other)
    )
