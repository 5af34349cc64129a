"""A factor of scores, which a product gives, as one of what it multiplies."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.graph.scopes import normal_domain
from padfix.operators.constant_chains import worked_out
from padfix.operators.lists import depends_on_data
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import like
from padfix.rules.build.objections import Operators


def score_forms(site: Site) -> Iterator[Form]:
    """Yield a product by a number, or a quotient, of what a MatMul gives as one of the first that this multiplies."""
    own = traits_of(site.scope, site.node) or {}
    if not own.get("divides-heads"):
        return
    node, scope = site.node, site.scope
    place = int(not depends_on_data(scope, node.input[0]))
    product = scope.own_producer(node.input[place])
    value = worked_out(scope, node.input[1 - place])
    types = {name: scope.type_of(name) for name in (() if product is None else product.input)}
    why_not = None
    if product is None or product.op_type != "MatMul" or normal_domain(product.domain):
        why_not = Refusal("no product gives its data")
    elif len(scope.consumers(product.output[0])) != 1 or scope.is_output(product.output[0]):
        why_not = Refusal("others read the product that gives its data")
    elif value is None or (place and node.op_type == "Div") or site.elem_type(place) not in FLOATS:
        why_not = Refusal("it is no product by a constant number")
    elif any(each is None or each.shape is None for each in types.values()):
        why_not = Refusal("it needs the number of axes of what is multiplied (--shape)")

    def write() -> Rewrite:
        assert product is not None
        assert value is not None
        builder = site.builder()
        first, second = (builder.input(name) for name in product.input)
        number = builder.constant(value.reshape(()), "number")
        scaled = builder.op(node.op_type, [first, number])
        builder.output(node.output[0], builder.op("MatMul", [scaled, second]))
        trial = {name: like(known) for name, known in types.items() if known is not None}
        constant = scope.constant(node.input[1 - place]) is not None
        trial[node.input[1 - place]] = TrialInput.of(value, constant=constant)
        return Rewrite(builder.build(), (trial,), replaces=(product,))

    operators: Operators = (
        (node.op_type, {**own, "divides-heads": False, "constants": "number"}),
        ("MatMul", {}),
    )
    yield Form("a factor of what its product multiplies", operators, write, why_not)
