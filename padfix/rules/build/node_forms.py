"""What stands in the place of a node, made of all that it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnx import NodeProto

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


def of_inputs(site: Site, write: Callable[..., Any], *, exact: bool) -> Rewrite:
    """Return what ``write`` makes of a builder and of all the inputs that there are."""
    builder = site.builder()
    inputs = [builder.input(name) for name in site.node.input if name]
    builder.output(site.node.output[0], write(builder, *inputs))
    return Rewrite(builder.build(), trials_of(site), exact=exact)


def as_node(site: Site, node: NodeProto, *, exact: bool) -> Rewrite:
    """Return another node of the same inputs and outputs."""
    builder = site.builder()
    inputs = [builder.input(name) for name in site.node.input]
    return Rewrite(builder.ending_in(node, inputs), trials_of(site), exact=exact)


def negated_behind(site: Site) -> Form:
    """Return the node with the sign of its result changed and changed back behind it, which is not taken away."""

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        result = builder.original(copied(site.node), values)
        return builder.op("Neg", [builder.op("Neg", [result])])

    own = {**(traits_of(site.scope, site.node) or {}), "laid-back": False}
    why_not = None if site.elem_type(0) in FLOATS else Refusal("its data are no floats")
    operators: Operators = ((site.node.op_type, own), ("Neg", {}))
    return Form("the sign changed twice behind it", operators, lambda: of_inputs(site, write, exact=True), why_not)


def axis_from_begin(site: Site) -> Form:
    """Return the node with its ``axis``, which is told from the end, counted from the begin."""
    known, axis = site.input_type(0), attributes.integer(site.node, "axis", 0) or 0
    rank = 0 if known is None or known.rank is None else known.rank
    node = copied(site.node)
    attributes.set_integer(node, "axis", axis % max(rank, 1))
    own = {**(traits_of(site.scope, site.node) or {}), "axis-from-end": False}
    why_not = None if rank and axis < 0 else Refusal("its axis is counted from the begin, or of how many is not known")
    return Form("its axis from the begin", ((node.op_type, own),), lambda: as_node(site, node, exact=True), why_not)
