"""Operators with an attribute written that they leave out, which some runtimes read otherwise; or without blanks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import AttributeProto

from padfix.graph.names import without_blanks
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.targets.traits import Traits

EPSILON = float(np.float32(1e-5))
"""What every norm of ONNX's adds to a variance where it does not say."""


def epsilon_forms(site: Site) -> Iterator[Form]:
    """Yield a norm that says what it adds to a variance."""
    own = {**(traits_of(site.scope, site.node) or {}), "epsilon-written": True}
    yield _form(site, "its epsilon written", own, AttributeProto(name="epsilon", type=AttributeProto.FLOAT, f=EPSILON))


def axis_forms(site: Site, axis: int = -1) -> Iterator[Form]:
    """Yield what works along an axis that it does not name, saying so."""
    own = {**(traits_of(site.scope, site.node) or {}), "axis-written": True}
    yield _form(site, "its axis written", own, AttributeProto(name="axis", type=AttributeProto.INT, i=axis))


def _form(site: Site, name: str, traits: Traits, attribute: AttributeProto) -> Form:
    def write() -> Rewrite:
        node = copied(site.node)
        node.attribute.append(attribute)
        return Rewrite(site.only(node), trials_of(site))

    is_there = any(each.name == attribute.name for each in site.node.attribute)
    return Form(name, ((site.node.op_type, traits),), write, Refusal("it is written") if is_there else None)


def without_unnamed_ends(site: Site) -> Form:
    """Return the node without the omitted inputs and outputs that it lists behind all others."""
    node, own = copied(site.node), traits_of(site.scope, site.node) or {}
    for names in (node.input, node.output):
        names[:] = without_blanks(names)
    is_listed = (len(node.input), len(node.output)) != (len(site.node.input), len(site.node.output))
    why_not = None if is_listed else Refusal("it lists no omitted input or output at its end")
    operators = ((node.op_type, {**own, "ends-unnamed": False}),)
    return Form("no omitted ones listed", operators, lambda: Rewrite(site.only(node), trials_of(site)), why_not)
