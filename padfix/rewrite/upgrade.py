"""Moving every scope of a model to another opset of the default domain, one node at a time.

The official converter works on whole models: it loses functions and turns Upsample and Resize-10 into other numbers.
Run on a model of one node it is right upwards for nearly all operators; :mod:`padfix.rewrite.upgrade_adapters` has
the others, and :mod:`padfix.rewrite.lowering` the way down. Every step is a :class:`~padfix.rules.base.Rewrite` with
trials, so each is proven on its own before it is applied.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, defs, numpy_helper

from padfix.files.model import Model
from padfix.graph.fragment import Fragment
from padfix.graph.scopes import DEFAULT_DOMAIN, Scope, bodies_of, normal_domain
from padfix.graph.splice import apply_splices, plan_splice
from padfix.operators.inference import infer
from padfix.operators.refusal import Refusal
from padfix.operators.schemas import schema
from padfix.rewrite.lowering import lowered
from padfix.rewrite.single_node import (
    fragment_model,
    is_unchanged,
    problem_of,
    takes,
    with_old_defaults,
)
from padfix.rewrite.upgrade_adapters import adapted
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.definition import one_node_model
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.node_trials import is_known, trials_of


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
        if scope.opset == target:
            continue
        for index, node in enumerate(scope.nodes):
            if normal_domain(node.domain) != DEFAULT_DOMAIN or (id(scope), index) in handled:
                continue
            site = Site(scope, index, node)
            fragment = _moved(site, target)
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
    old, new = schema(site.node.op_type, site.opset), schema(site.node.op_type, target)
    defined_by_others = new.has_function or new.has_context_dependent_function
    if old.since_version == new.since_version and not defined_by_others:
        return []
    if site.node.op_type == "Constant" or any(True for _ in bodies_of(site.node)):
        return []  # bodies are scopes of their own; the operators around them only gained types
    must_run = not takes(new, old, site.node)
    if not must_run and (any(each.ref_attr_name for each in site.node.attribute) or not is_known(site)):
        return []
    rewrite = Rewrite(Fragment((copied(site.node),), (), target), trials_of(site))
    return [UpgradeStep(site, rewrite, edits=False, must_run=must_run)]


def _moved(site: Site, target: int) -> Fragment | Refusal | None:
    """Return what takes the node's place, None when it is right as it is, or why it can't be moved."""
    node, lowers = site.node, target < site.opset
    old, new = schema(node.op_type, site.opset), schema(node.op_type, target)
    if old is None or (new is None and not lowers):
        return Refusal(f"opset {site.opset if old is None else target} has no operator {node.op_type}")
    if new is not None and old.since_version == new.since_version:
        return None
    if node.op_type == "Scan" and min(site.opset, target) < 9:
        return Refusal("Scan-8 iterates over a batch axis, which newer versions don't have")
    if node.op_type == "Constant" or any(True for _ in bodies_of(node)):
        return None  # bodies are scopes of their own; the operators around them only gained types
    explicit = site if new is None else dataclasses.replace(site, node=with_old_defaults(node, old, new))
    same = new is not None and not new.deprecated and takes(new, old, explicit.node)
    replacement = lowered(explicit, target) if lowers else adapted(explicit, target)
    referenced = [attribute.name for attribute in node.attribute if attribute.ref_attr_name]
    if referenced and not (same and replacement is None):
        return Refusal(f"the caller of the function gives {', '.join(referenced)}; inline the function first")
    if replacement is None:
        replacement = Fragment((explicit.node,), (), target) if same else _converted(explicit, target)
    elif isinstance(replacement, Fragment) and replacement.opset != target:
        replacement = _moved_on(site, replacement, target)
    if isinstance(replacement, Refusal):
        return replacement
    unchanged = is_unchanged(node, replacement)
    problem = None if unchanged and not lowers else problem_of(site, replacement)  # newer versions take more types
    if problem is not None:
        return Refusal(problem)
    return None if unchanged else replacement


def _moved_on(site: Site, fragment: Fragment, target: int) -> Fragment | Refusal:
    """Return a fragment that is written for the node's own opset as it is at another."""
    model = Model(fragment_model(site, fragment))
    (scope,) = infer(model)
    steps = upgrade(model, [scope], target, frozenset())
    if isinstance(steps, Refusal):
        return steps
    for step in reversed(steps):
        if step.edits:
            plan_splice(scope, step.site.index, step.rewrite.after)
    apply_splices(scope)
    given = {tensor.name for tensor in one_node_model(site).graph.initializer}
    constants = tuple(tensor for tensor in model.proto.graph.initializer if tensor.name not in given)
    return Fragment(tuple(model.proto.graph.node), constants, target)


@functools.lru_cache(maxsize=256)
def _officially_converted(single: bytes, target: int) -> bytes | Refusal:
    from onnx import version_converter

    try:
        return bytes(version_converter.convert_version(ModelProto.FromString(single), target).SerializeToString())
    except Exception as error:
        said = str(error).strip().splitlines()
        return Refusal(f"the official version converter says: {said[-1] if said else type(error).__name__}")


def _renamed(model: ModelProto, names: Mapping[str, str]) -> ModelProto:
    """Return a model of nodes without bodies with other names of its tensors, and none of its nodes."""
    renamed = ModelProto()
    renamed.CopyFrom(model)
    for each in (*renamed.graph.input, *renamed.graph.output, *renamed.graph.initializer):
        each.name = names.get(each.name, each.name)
    for node in renamed.graph.node:
        node.ClearField("name")
        node.ClearField("doc_string")
        node.ClearField("metadata_props")
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    return renamed


def _converted(site: Site, target: int) -> Fragment | Refusal:
    """Run the official converter on a model of this one node; once for all that differ in names alone."""
    single = one_node_model(site)
    names = [name for name in dict.fromkeys((*site.node.input, *site.node.output)) if name]
    plain = {name: f"v{number}" for number, name in enumerate(names)}
    found = _officially_converted(_renamed(single, plain).SerializeToString(deterministic=True), target)
    if isinstance(found, Refusal):
        return found
    result = _renamed(ModelProto.FromString(found), {other: name for name, other in plain.items()})
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
