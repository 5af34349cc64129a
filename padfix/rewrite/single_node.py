"""One node apart from its model: what the versions of its operator say of it, and a model that holds it alone."""

from __future__ import annotations

from typing import Any

from onnx import AttributeProto, ModelProto, NodeProto, helper

from padfix.graph import attributes
from padfix.graph.fragment import Fragment
from padfix.graph.scopes import DEFAULT_DOMAIN
from padfix.proof.likeness import Meanings
from padfix.rules.base import Site
from padfix.rules.build.definition import one_node_model
from padfix.rules.build.explicit_pads import copied


def takes(new: Any, old: Any, node: NodeProto) -> bool:
    """Whether the other version takes the node as it stands: what the node does not name may be left out there.

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


def with_old_defaults(node: NodeProto, old: Any, new: Any) -> NodeProto:
    """Return the node with every default written out that is another in the other version, or is none there.

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


def fragment_model(site: Site, fragment: Fragment) -> ModelProto:
    """Return the model of the node alone with ``fragment`` in its place."""
    model = one_node_model(site)
    del model.graph.node[:]
    model.graph.node.extend(fragment.nodes)
    model.graph.initializer.extend(fragment.initializers)
    model.opset_import[0].version = fragment.opset
    return model


def problem_of(site: Site, fragment: Fragment) -> str | None:
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

    problem = said(fragment_model(site, fragment))
    no_fault = problem is None or said(one_node_model(site)) is not None
    return None if no_fault else f"the result is not a valid model: {problem}"


def is_unchanged(node: NodeProto, fragment: Fragment) -> bool:
    """Whether the fragment is the node itself."""
    if len(fragment.nodes) != 1 or fragment.nodes[0].op_type != node.op_type:
        return False
    other = fragment.nodes[0]
    meanings = Meanings(ModelProto(opset_import=[helper.make_opsetid(DEFAULT_DOMAIN, fragment.opset)]))
    return (
        list(node.input) == list(other.input)
        and list(node.output) == list(other.output)
        and meanings.attributes(node) == meanings.attributes(other)
    )
