"""What depends on no data, or has no elements, as the constant that it is; and constants as initializers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from padfix.graph import attributes
from padfix.operators.constant_chains import (
    chain_of,
    has_chain,
    is_constant_boolean,
    is_given_by_node,
    values_of,
    worked_out,
)
from padfix.operators.evaluation import LARGEST
from padfix.operators.lists import lists_for_numbers
from padfix.operators.passing import passed_on
from padfix.operators.refusal import Refusal
from padfix.operators.shared_constants import TOLD
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared, chain_trial, trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

CONSTANTS_APART = ("constants-again", "constants-turned", "number-again", "weights-both-ways")
"""What is said of a node that wants constants which nothing else reads."""

_ASKING = frozenset(("And", "Not", "Or", "Where", "Xor"))
"""What takes booleans element by element, in the shape of its result."""


def constant_form(site: Site) -> Form:
    """Return a node's value as a Constant."""
    known = site.scope.type_of(site.node.output[0])
    lengths = None if known is None else known.lengths
    why_not = None
    if not has_chain(site.scope, site.node):
        why_not = Refusal("it depends on a length that is left open (--shape)")
    elif lengths is not None and math.prod(lengths) > LARGEST:
        why_not = Refusal("it is very large")
    is_result = site.scope.parent is None and any(site.scope.is_output(name) for name in site.node.output)
    operators: Operators = (
        (("Constant", {"of-tensor": True, "as-result": True, "gives-a-constant": True}),) if is_result else ()
    )
    return Form("a constant", operators, partial(_worked_out, site), why_not)


def of_nothing(site: Site) -> Form:
    """Return what puts no element as the data that it gives as they are, and what takes none as such a constant."""
    name, known = passed_on(site.scope, site.node), site.scope.type_of(site.node.output[0])
    lengths = None if known is None else known.lengths

    def write() -> Rewrite:
        builder = site.builder()
        if name:
            given = builder.input(name)
        else:
            dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
            given = builder.constant(np.zeros(lengths or (), dtype), "nothing")
        builder.output(site.node.output[0], builder.op("Identity", [given]))
        return Rewrite(builder.build(), (as_declared(site),), exact=True)

    why_not = None if name or 0 in (lengths or ()) else Refusal("it has elements, or how many is left open (--shape)")
    return Form("what it takes or puts, which is nothing", (("Identity", {}),), write, why_not)


def initialized_form(site: Site) -> Form:
    """Return the node with constants of its own as initializers: those that nodes give, or that others read as well.

    Functions have no initializers, and files before version 4 of ONNX none but inputs: there, nodes give them.
    """
    scope, own = site.scope, traits_of(site.scope, site.node) or {}
    again = any(own.get(mark) for mark in CONSTANTS_APART)
    inputs = list(site.node.input)

    def copy_of(name: str) -> np.ndarray | None:
        is_weight = bool(own.get("weights-both-ways")) and name == inputs[1]  # which may be a view of the other's
        is_shared = is_weight or (again and (len(scope.consumers(name)) > 1 or inputs.count(name) > 1))
        if is_shared:
            return worked_out(scope, name)
        return scope.constant(name) if name and is_given_by_node(scope, name) else None

    copies = {name: copy_of(name) for name in inputs}

    def write() -> Rewrite:
        builder = site.builder()
        given = [
            builder.input(name) if (value := copies[name]) is None else builder.constant(value, "given")
            for name in inputs
        ]
        computed = {name: value for name, value in copies.items() if value is not None and scope.constant(name) is None}
        held = {name: TrialInput.of(value, constant=False) for name, value in computed.items()}
        trials = ({**as_declared(site), **held},) if held else trials_of(site)
        return Rewrite(builder.ending_in(copied(site.node), given), trials)

    told: Traits = {"constants-by-nodes": not scope.takes_initializers, **dict.fromkeys(CONSTANTS_APART, False)}
    operators = ((site.node.op_type, {**own, **told}),)
    why_not = (
        Refusal("its constants are very large, or may be replaced")
        if all(value is None for value in copies.values())
        else None
    )
    kind = " as initializers" if scope.takes_initializers else ""
    return Form(f"constants of its own{kind}", operators, write, why_not)


def mended_later(site: Site) -> frozenset[str]:
    """Return what is said of constants that are made the node's own initializers once it is found for that alone."""
    if not site.scope.takes_initializers or initialized_form(site).why_not is not None:
        return frozenset()
    return frozenset(
        ("constants-by-nodes", "constants-again") if site.node.op_type in TOLD else ("constants-by-nodes",)
    )


def number_form(site: Site) -> Form:
    """Return the node with numbers in place of lists of one."""
    own, places = traits_of(site.scope, site.node) or {}, lists_for_numbers(site.scope, site.node)

    def write() -> Rewrite:
        builder = site.builder()
        given = []
        for place, name in enumerate(site.node.input):
            value = site.constant(place) if name else None
            if place not in places:
                given.append(builder.input(name))
            elif value is not None:
                given.append(builder.constant(value.reshape(()), "number"))
            else:
                given.append(builder.reshaped(builder.input(name), []))
        return Rewrite(builder.ending_in(copied(site.node), given), trials_of(site), exact=True)

    computed = [place for place in places if site.constant(place) is None]
    reshape: Operators = (("Reshape", {"rank": 0}),) if computed else ()
    return Form("numbers for lists of one", (*reshape, (site.node.op_type, {**own, "lists-for-numbers": False})), write)


def filled_forms(site: Site) -> Iterator[Form]:
    """Yield a ConstantOfShape that says that it is of zeros."""

    def write() -> Rewrite:
        builder = site.builder()
        told = {"value": helper.make_tensor("", TensorProto.FLOAT, [1], [0.0])}
        builder.output(site.node.output[0], builder.op("ConstantOfShape", [builder.input(site.input_name(0))], told))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    own = {**(traits_of(site.scope, site.node) or {}), "value-written": True}
    why_not = Refusal("it is written") if attributes.find(site.node, "value") is not None else None
    yield Form("its value written", (("ConstantOfShape", own),), write, why_not)


def asked_form(site: Site) -> Form:
    """Return the node with its constants of booleans as what is greater than a half, of numbers 0 and 1."""
    gives, own = site.scope.type_of(site.node.output[0]), traits_of(site.scope, site.node) or {}
    rank = 0 if gives is None else gives.rank or 0

    def write() -> Rewrite:
        builder = site.builder()
        given = []
        for place, name in enumerate(site.node.input):
            told = site.constant(place) if is_constant_boolean(site.scope, name) else None
            if told is None:
                given.append(builder.input(name))
                continue
            numbers = told.astype(np.float32).reshape([1] * max(0, rank - told.ndim) + list(told.shape))
            half = builder.constant(np.array(0.5, np.float32), "half")
            given.append(builder.op("Greater", [builder.constant(numbers, "numbers"), half]))
        return Rewrite(builder.ending_in(copied(site.node), given), trials_of(site), exact=True)

    why_not = None if site.node.op_type in _ASKING else Refusal("it does more to them than to ask")
    operators: Operators = (("Greater", {}), (site.node.op_type, {**own, "constant-booleans": False}))
    return Form("what is greater than a half", operators, write, why_not)


def _worked_out(site: Site) -> Rewrite | Refusal:
    """Return what the node gives, each as a Constant."""
    scope = site.scope
    chain = chain_of(scope, site.node)
    if chain is None:
        return Refusal("What it reads is not constant any more.")
    try:
        found = values_of(scope, chain)
    except ValueError as error:
        return Refusal(f"What computes it can't be worked out: {error}.")
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(found[name]))
        for name in filter(None, site.node.output)
    ]
    return Rewrite(site.only(*nodes), (chain_trial(scope, chain),), replaces=tuple(chain[:-1]))
