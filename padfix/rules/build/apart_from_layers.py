"""What works element by element, apart from what a runtime makes it part of: Identities before its inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from padfix.operators.fused_layers import is_of_convolution, narrowest
from padfix.operators.refusal import Refusal
from padfix.operators.spelled_norms import BY_INVERSE, BY_NORM
from padfix.operators.traits import traits_of
from padfix.rules.base import Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


def apart_forms(site: Site) -> Iterator[Form]:
    """Yield the node with an Identity before the input of one channel, or before all where that is not known.

    And before the norm that a Div divides by, or both factors where a Mul has the inverse of one.
    """
    own = traits_of(site.scope, site.node) or {}
    if own.get(BY_INVERSE):
        yield _apart(site, "an Identity before it", range(len(site.node.input)), (BY_INVERSE, "spreads-channels"))
    is_by_norm = any(own.get(each) for each in BY_NORM)
    is_known = not is_by_norm and own.get("spreads-channels") is not None
    is_none = is_known and narrowest(site.scope, site.node) is None
    why_not = Refusal("no input has one channel alone") if is_none else None
    places = {1} if is_by_norm else _narrow_places(site)
    yield _apart(site, "an Identity before it", places, BY_NORM if is_by_norm else ("spreads-channels",), why_not)


def apart_from_convolution(site: Site) -> Form:
    """Return a sum with an Identity before each term that a convolution gives, and before that of one channel."""
    own = traits_of(site.scope, site.node) or {}
    places = {place for place, name in enumerate(site.node.input) if is_of_convolution(site.scope, name)}
    if own.get("spreads-channels") is not False:
        places |= _narrow_places(site)
    return _apart(site, "an Identity behind the convolution", places, ("adds-to-convolution", "spreads-channels"))


def _narrow_places(site: Site) -> set[int]:
    """Return which input has one channel where others have several; all where that is not known."""
    narrow = narrowest(site.scope, site.node)
    return set(range(len(site.node.input))) if narrow is None else {narrow}


def _apart(
    site: Site, name: str, places: Collection[int], marks: Collection[str], why_not: Refusal | None = None
) -> Form:
    """Return the node with an Identity before some of its inputs, and without what these marks say of it."""

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        terms = [builder.op("Identity", [each]) if place in places else each for place, each in enumerate(values)]
        return builder.original(copied(site.node), terms)

    traits = {**(traits_of(site.scope, site.node) or {}), **dict.fromkeys(marks, False)}
    return Form(name, ((site.node.op_type, traits),), lambda: of_inputs(site, write, exact=True), why_not)
