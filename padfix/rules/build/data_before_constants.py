"""A result that depends on no data as a part of what is joined with an input: some runtimes give no other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto

from padfix.graph.scopes import Scope
from padfix.operators.constant_chains import chain_of, values_of
from padfix.operators.evaluation import LARGEST
from padfix.operators.numbers import numbers_of
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import chain_trial, like
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder
    from padfix.targets.traits import Traits

_ROW = 2
"""Axes of what both are joined as: the first has one element."""

_TO_THE_END = (1 << 31) - 1
"""Where a Slice ends that takes all, in 32 bits, which some runtimes have alone."""


def behind_data(site: Site) -> Form:
    """Return what depends on no data as what a Slice takes of it behind all the data of an input.

    A Concat moves numbers and changes none, so that it doesn't matter what the data are.
    """
    scope, chain = site.scope, _chain(site.scope, site.node)
    results = [result for result in site.node.output if result]
    types, name = [scope.type_of(result) for result in results], _input_of_floats(scope)
    lengths = [known.lengths for known in types if known is not None and known.lengths]
    operators: Operators = (("Reshape", {"rank": _ROW, "numbers": "single"}),)
    for result, known in zip(results, types, strict=True):
        numbers: Traits = {"numbers": numbers_of(scope, result) or "single"}
        axes = 0 if known is None else known.rank or 0
        if known is not None and known.elem_type != TensorProto.FLOAT:
            operators += (("Cast", {"changes-type": True, "numbers": "single", "gives": numbers["numbers"]}),)
        told = {"rank": axes, "axes": axes, **numbers}
        operators += (("Concat", numbers), ("Slice", numbers), ("Reshape", told))
    why_not = None
    if scope.parent is not None or not any(map(scope.is_output, results)):
        why_not = Refusal("it is no result of the model")
    elif chain is None:
        why_not = Refusal("it depends on a length that is left open (--shape)")
    elif name is None:
        why_not = Refusal("no input of the model holds numbers in single precision, of any axes")
    elif len(lengths) < len(results) or not all(0 < math.prod(each) <= LARGEST for each in lengths):
        why_not = Refusal("it has no axes or no elements, or very many")
    return Form("a part of it joined with data", operators, lambda: _write(site, chain or [], name or ""), why_not)


def _chain(scope: Scope, node: NodeProto) -> list[NodeProto] | None:
    return [] if node.op_type == "Constant" else chain_of(scope, node)


def _input_of_floats(scope: Scope) -> str | None:
    """Return the first input of the model with numbers in single precision, of one axis or more."""
    types = ((each.name, scope.type_of(each.name)) for each in scope.root.container.input if scope.parent is None)
    fitting = (
        name
        for name, known in types
        if known is not None and known.elem_type == TensorProto.FLOAT and known.rank and not scope.is_initializer(name)
    )
    return next(fitting, None)


def _write(site: Site, chain: list[NodeProto], name: str) -> Rewrite | Refusal:
    scope, results = site.scope, [result for result in site.node.output if result]
    try:
        values = values_of(scope, chain) if chain else {each: scope.constant(each) for each in results}
    except ValueError as error:
        return Refusal(f"What computes it can't be worked out: {error}.")
    data, builder = scope.type_of(name), site.builder()
    row = builder.reshaped(builder.input(name), [1, -1])
    for result in results:
        value = values[result]
        if value is None or data is None or value.dtype.kind not in "biuf":
            return Refusal("What it holds is not known, or no numbers.")
        builder.output(result, _part(builder, row, value))
    trial = {**chain_trial(scope, chain), name: like(data)} if data is not None else {}
    return Rewrite(builder.build(), (trial,), replaces=tuple(chain[:-1]))


def _part(builder: FragmentBuilder, row: Any, value: np.ndarray) -> Any:
    """Return a constant as the part behind a row that it is joined with."""
    if value.dtype != np.float32:
        row = builder.op("Cast", [row], {"to": int(TrialInput.of(value).elem_type)})
    # Of one element there are two, as runtimes take a constant of one for a number, which has no axes.
    behind = value.reshape(1, -1) if value.size > 1 else np.tile(value.reshape(1, 1), 2)
    joined = builder.op("Concat", [row, builder.constant(behind, "value")], {"axis": 1})
    end = _TO_THE_END if value.size > 1 else value.size - behind.size
    return builder.reshaped(sliced(builder, joined, [-behind.size], [end], [1]), value.shape)
