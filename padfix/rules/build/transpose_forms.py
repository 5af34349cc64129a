"""Equal forms of a Transpose: in more axes, or in two steps."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.targets.traits import Traits

_EXCHANGE = [0, 2, 1]


def exchange_forms(site: Site) -> Iterator[Form]:
    """Yield the exchange of the last two axes as one of four axes, of which one has a single element."""

    def write() -> Rewrite:
        builder = site.builder()
        plane = builder.unsqueezed(builder.input(site.input_name(0)), 1)
        turned = builder.op("Transpose", [plane], {"perm": [0, 3, 1, 2]})
        builder.output(site.node.output[0], builder.unsqueezed(turned, 2, back=True))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    traits = traits_of(site.scope, site.node) or {}
    rank = traits.get("rank")
    why_not = (
        None if rank == len(_EXCHANGE) and _perm(site) == _EXCHANGE else Refusal("it exchanges no two axes of three")
    )
    yield Form("a Transpose of four axes", (("Transpose", {"rank": 4, "turned-back": False}),), write, why_not)
    yield _in_two_steps(site, traits)


def _in_two_steps(site: Site, traits: Traits) -> Form:
    """Return the channels put first by reversing the other axes, and then all of them."""
    rank = len(_perm(site))

    def write() -> Rewrite:
        builder = site.builder()
        turned = builder.op(
            "Transpose", [builder.input(site.input_name(0))], {"perm": [0, *range(rank - 2, 0, -1), rank - 1]}
        )
        builder.output(site.node.output[0], builder.op("Transpose", [turned], {"perm": [0, *range(rank - 1, 0, -1)]}))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    is_first = rank > 3 and _perm(site) == [0, rank - 1, *range(1, rank - 1)]
    why_not = None if is_first else Refusal("it does not put channels first")
    step = ("Transpose", {**traits, "turned-back-alike": False})
    return Form("two Transposes", (step, step), write, why_not)


def _perm(site: Site) -> list[int]:
    known = site.input_type(0)
    rank = 0 if known is None else known.rank or 0
    return attributes.integers(site.node, "perm") or list(reversed(range(rank)))


def written_order(site: Site) -> Iterator[Form]:
    """Yield a Transpose that says that it reverses the axes, where it leaves that to the default."""
    node, perm = copied(site.node), _perm(site)
    attributes.set_integers(node, "perm", perm)
    traits = {**(traits_of(site.scope, site.node) or {}), "order-unwritten": False}
    if attributes.find(site.node, "perm") is None:
        why_not = None if perm else Refusal("how many axes it has is not known")

        def write() -> Rewrite:
            return Rewrite(site.only(node), trials_of(site), exact=True)

        yield Form("the order of its axes written", (("Transpose", traits),), write, why_not)
