"""Arithmetic with a constant without elements, which a runtime can't hold, as with a part of one that has some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from padfix.operators.numbers import elements_of
from padfix.operators.passing import reads_nothing
from padfix.operators.traits import traits_of
from padfix.rules.base import Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


def with_parts(site: Site) -> Iterator[Form]:
    """Yield the node with a Slice of a longer constant in place of each without elements, if it has one."""
    if not reads_nothing(site.scope, site.node):
        return
    told = {place: value for place in range(len(site.node.input)) if (value := site.constant(place)) is not None}
    empty = {place: value for place, value in told.items() if not value.size}

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        given = list(values)
        for place, value in empty.items():
            longer = np.zeros([length or 1 for length in value.shape], value.dtype)
            axes = [axis for axis, length in enumerate(value.shape) if length == 0]
            none = [0] * len(axes)
            given[place] = sliced(builder, builder.constant(longer, "longer"), none, none, axes)
        return builder.original(copied(site.node), given)

    parts: Operators = tuple(
        ("Slice", {"of-constants": True, "rank": value.ndim, "elements": elements_of(site.elem_type(place))})
        for place, value in empty.items()
    )
    own = {**(traits_of(site.scope, site.node) or {}), "reads-nothing": False}
    operators: Operators = (*parts, (site.node.op_type, own))
    yield Form("a part of a longer constant", operators, lambda: of_inputs(site, write, exact=True))
