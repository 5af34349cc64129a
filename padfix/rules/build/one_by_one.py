"""Elements taken one by one along each axis, in the place of a node that takes the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from padfix.graph.fragment import Fragment
from padfix.rules.base import Site


def one_by_one(site: Site, taken: Mapping[int, Sequence[int]]) -> Fragment:
    """Return one Gather for each axis in ``taken``, of these elements of the node's data; an Identity for none."""
    builder = site.builder()
    value = builder.input(site.input_name(0))
    for axis, indices in taken.items():
        value = builder.op("Gather", [value, builder.constant(np.array(indices, np.int64), "indices")], {"axis": axis})
    builder.output(site.node.output[0], value if taken else builder.op("Identity", [value]))
    return builder.build()
