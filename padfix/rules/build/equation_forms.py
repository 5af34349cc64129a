"""An Einsum with small letters, a written result, and an axis more where something is a list or a number."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterator

from padfix.graph import attributes
from padfix.operators.equations import parts_of, result_of, spelled_out, sums_alone
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators

_MARKS = ("capital-letters", "gives-a-number", "implicit-result", "of-lists")


def equation_forms(site: Site) -> Iterator[Form]:
    """Yield an Einsum as every importer reads it."""
    own = traits_of(site.scope, site.node) or {}
    text = site.text("equation")
    terms, result = parts_of(text)[0], result_of(text)
    shapes = [None if (known := site.input_type(place)) is None else known.lengths for place in range(len(terms))]
    used = Counter("".join([*terms, result]))
    spare = [each for each in string.ascii_lowercase if each not in used]
    small = {ord(each): spare.pop() for each in sorted(used) if each.isupper() and len(spare) > 1}
    more = spare[-1] if spare else ""
    terms, result = [each.translate(small) for each in terms], result.translate(small)
    lists = [place for place, each in enumerate(terms) if len(each) == 1]
    widened = lists or ([] if result else [0])
    why_not = None if more else Refusal("it has no letter left")
    if any(shapes[place] is None for place in widened):
        why_not = Refusal("it needs the lengths of its inputs (--shape)")

    factors = [f"{more}{each}" if place in widened else each for place, each in enumerate(terms)]
    right = result or more

    def write() -> Rewrite:
        builder = site.builder()
        given = [builder.input(name) for name in site.node.input]
        for place in widened:
            given[place] = builder.reshaped(given[place], [1, *(shapes[place] or ())])
        value = builder.op("Einsum", given, {"equation": f"{','.join(factors)}->{right}"})
        builder.output(site.node.output[0], value if result else builder.op("ReduceMax", [value], {"keepdims": 0}))
        return Rewrite(builder.build(), trials_of(site))

    reshapes: Operators = tuple(("Reshape", {"rank": len(shapes[place] or ()) + 1}) for place in widened)
    told = {**own, **dict.fromkeys(_MARKS, False), "sums-alone": sums_alone(factors, right)}
    operators: Operators = (*reshapes, ("Einsum", told))
    yield Form("small letters, and axes for what has none", operators, write, why_not)
    yield _spelled(site)


def _spelled(site: Site) -> Form:
    """Return an Einsum with a letter for every axis, and what it gives."""
    equation = spelled_out(site.scope, site.node)

    def write() -> Rewrite:
        assert equation is not None
        node = copied(site.node)
        attributes.set_text(node, "equation", equation)
        return Rewrite(site.only(node), trials_of(site))

    own = {**(traits_of(site.scope, site.node) or {}), "plain": True, "implicit-result": False}
    why_not = None if equation else Refusal("a term has an axis twice, or how many axes there are is not known")
    return Form("its equation spelled out", (("Einsum", own),), write, why_not)
