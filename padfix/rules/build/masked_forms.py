"""A Softmax of masked scores, of which each row is moved by what masks all of it."""

from __future__ import annotations

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.masks import masked_sum
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.elementary_forms import reduced, reduction_traits
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import declared
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

_MOST = 65504.0
"""By how much a row is moved at the most, the largest number of half precision: what is left of a mask of -1e9 and less
is still so large in half precision that nothing is left of scores beside that, as in single precision."""


def from_least_masked(site: Site) -> Form:
    """Return a Softmax of the sum of scores and a mask without the largest that the mask has in each row.

    A Softmax gives the same of a row of which a number is taken off. What masks whole rows becomes 0, beside which
    nothing is lost of scores. What a caller masks by may become an infinity on its way in, and is made a number again.
    """
    known, axis = site.input_type(0), attributes.integer(site.node, "axis", -1 if site.opset >= 13 else 1)
    rank = 0 if known is None or known.rank is None else known.rank
    own: Traits = {**(traits_of(site.scope, site.node) or {}), "masks-by-numbers": False}
    place = axis % rank - rank if rank else -1
    found = masked_sum(site.scope, site.input_name(0), place)
    mask = "" if found is None else found.nodes[0].input[found.place]
    masked = site.scope.type_of(mask) if mask else None
    axes = 0 if masked is None or masked.rank is None else masked.rank
    why_not = None
    if found is None or masked is None or masked.rank is None:
        why_not = Refusal("how many axes its mask has is not known")
    elif own.get("takes-axes-together") is not False:
        why_not = Refusal("it takes axes together, or how many axes it has is not known (--shape)")

    def write() -> Rewrite:
        assert found is not None
        builder = site.builder()
        made = {name for node in found.nodes for name in node.output}
        given = declared(site.scope, (name for node in found.nodes for name in node.input if name not in made))
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        largest = builder.input(mask)
        if axes >= -place:
            largest = reduced(builder, "ReduceMax", largest, [axes + place])
        off = builder.op("Max", [largest, builder.constant(np.array(-_MOST, dtype), "most")])
        result = builder.op("Sub", [builder.input(mask), off])
        if found.of_caller:
            lowest = builder.constant(np.array(np.finfo(dtype).min, dtype), "lowest")
            result = builder.op("Max", [result, lowest])
        last = mask
        for node in found.nodes:
            other = next(each for each in node.input if each != last)
            result, last = builder.op("Add", [builder.input(other), result]), node.output[0]
        builder.output(site.node.output[0], builder.original(copied(site.node), [result]))
        return Rewrite(builder.build(), (given,), replaces=found.nodes)

    rows: Operators = ()
    if axes >= -place:
        rows = (("ReduceMax", reduction_traits("ReduceMax", site.opset, [axes + place])),)
    operators: Operators = (
        *rows,
        ("Max", {"inputs": 2, "broadcasts": True}),
        ("Sub", {"from-constant": False}),
        ("Add", {}),
        ("Softmax", own),
    )
    return Form("its mask without the largest of each row", operators, write, why_not)
