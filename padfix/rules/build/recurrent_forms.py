"""Equal forms of recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from padfix.graph import attributes
from padfix.operators.other_traits import OTHERS
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.recurrent_steps import forms_in_steps

_SEQUENCE_LENGTHS = 4
"""Which input tells how long each sequence of the batch is."""

_STEPS_AS_INPUT_SINCE = 10

_FURTHEST = -(1 << 31)  # a Slice to here ends behind the first element


def recurrent_forms(site: Site) -> Iterator[Form]:
    """Yield a layer that runs backwards as one that runs forwards over what is turned round, and one in its steps."""
    node = copied(site.node, without=("direction",))
    why_not = None
    if site.text("direction", "forward") != "reverse":
        why_not = Refusal("it does not run backwards")
    elif site.input_name(_SEQUENCE_LENGTHS):
        why_not = Refusal("each sequence has a length of its own")
    elif attributes.integer(site.node, "layout", 0):
        why_not = Refusal("its batch comes first")
    elif site.opset < _STEPS_AS_INPUT_SINCE:
        why_not = Refusal("no Slice of its opset runs backwards")

    def write() -> Rewrite | Refusal:
        builder = site.builder()
        bounds = [
            builder.constant(np.array([each], np.int64), name)
            for each, name in ((-1, "first"), (_FURTHEST, "last"), (0, "axis"), (-1, "step"))
        ]
        data, *others = (builder.input(name) for name in site.node.input)
        results = builder.original(node, [builder.op("Slice", [data, *bounds]), *others])
        given = [results] if len(site.node.output) == 1 else results
        for place, (name, value) in enumerate(zip(site.node.output, given, strict=True)):
            if name:
                builder.output(name, builder.op("Slice", [value, *bounds]) if place == 0 else value)
        return Rewrite(builder.build(), trials_of(site))

    traits = {**OTHERS[site.node.op_type](site.scope, site.node), "direction": "forward"}
    yield Form("a Slice that turns it round", ((site.node.op_type, traits),), write, why_not)
    yield from forms_in_steps(site)
