"""What is joined with data, without the copies that make it as long as these."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, numpy_helper

from padfix.graph import attributes
from padfix.operators.constant_chains import chain_of
from padfix.operators.measured_copies import measured_copy
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import chain_trial, like


def uncopied_form(site: Site) -> Form:
    """Return a node that reads what an Expand copies, or the number that a ConstantOfShape gives, by itself."""
    found = measured_copy(site.scope, site.node)
    measuring = None if found is None else site.scope.own_producer(found[1].input[-1])
    chain = None if measuring is None else chain_of(site.scope, measuring, open_lengths=True)
    own = traits_of(site.scope, site.node) or {}
    why_not = Refusal("the lengths of its copy are computed of data") if found is None or chain is None else None

    def write() -> Rewrite:
        assert found is not None
        assert chain is not None
        place, spread = found
        return _written(site, place, spread, chain)

    return Form(
        "what is copied to its lengths, by itself",
        ((site.node.op_type, {**own, "joins-a-copy": False}),),
        write,
        why_not,
    )


def _written(site: Site, place: int, spread: NodeProto, chain: list[NodeProto]) -> Rewrite:
    builder, names = site.builder(), list(site.node.input)
    trial = chain_trial(site.scope, chain)
    if spread.op_type == "Expand":
        names[place] = spread.input[0]
    for name in dict.fromkeys(filter(None, names)):
        value, known = site.scope.constant(name), site.scope.type_of(name)
        if value is not None:
            trial[name] = TrialInput.of(value)
        elif name != spread.output[0]:
            assert known is not None
            trial[name] = like(known)
    given = [
        builder.constant(_number(spread), "number") if name == spread.output[0] else builder.input(name)
        for name in names
    ]
    builder.output(site.node.output[0], builder.original(copied(site.node), given))
    return Rewrite(builder.build(), (trial,), exact=True, replaces=(*chain, spread))


def _number(spread: NodeProto) -> np.ndarray:
    """Return what a ConstantOfShape gives, as a list of one."""
    value = attributes.find(spread, "value")
    return np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value.t).reshape(1)
