"""What is computed from constants and lengths alone, as the constant that it is."""

from __future__ import annotations

import math
from functools import partial

from onnx import helper, numpy_helper

from padfix.operators.constant_chains import LARGEST, chain_of, leaves_of, values_of
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.forms import Form


def constant_form(site: Site) -> Form:
    """Return a node's value as a Constant."""
    known = site.scope.type_of(site.node.output[0])
    lengths = None if known is None else known.lengths
    why_not = None
    if chain_of(site.scope, site.node) is None:
        why_not = Refusal("it depends on a length that is left open (--shape)")
    elif lengths is not None and math.prod(lengths) > LARGEST:
        why_not = Refusal("it is very large")
    return Form("a constant", (), partial(_worked_out, site), why_not)


def _worked_out(site: Site) -> Rewrite | Refusal:
    """Return what the node gives, each as a Constant."""
    scope = site.scope
    chain = chain_of(scope, site.node)
    if chain is None:
        return Refusal("What it reads is not constant any more.")
    constants, measured = leaves_of(scope, chain)
    try:
        found = values_of(scope, chain)
    except ValueError as error:
        return Refusal(f"What computes it can't be worked out: {error}.")
    trial = {name: TrialInput.of(value) for name in constants if (value := scope.constant(name)) is not None}
    for name in measured:
        known = scope.type_of(name)
        trial[name] = TrialInput(known.lengths or (), known.elem_type) if known is not None else TrialInput(())
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(found[name]))
        for name in filter(None, site.node.output)
    ]
    return Rewrite(site.only(*nodes), (trial,), replaces=tuple(chain[:-1]))
