"""What reads numbers as what reads them with the other sign, of which a runtime makes nothing else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.operators.clip import clip_bounds
from padfix.operators.refusal import Refusal
from padfix.operators.spread_axes import spread_term
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.elementary_forms import clipped
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_OTHER = {"Clip": "Clip", "Max": "Min", "Min": "Max"}
"""What bounds numbers of the other sign in its place."""

_OF_CONSTANTS = ("constants", "constants-by-nodes")
"""What is told of a constant whatever its sign."""


def between_negatives(site: Site) -> Form:
    """Return a Clip, or a Max or Min with a constant, of numbers with the other sign, which is changed back."""
    node, told = site.node, [site.constant(place) for place in range(len(site.node.input))]
    place = next((each for each, value in enumerate(told) if value is None and node.input[each]), 0)
    data = [name for name, value in zip(node.input, told, strict=True) if name and value is None]

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.op("Neg", [builder.input(node.input[place])])
        if node.op_type == "Clip":
            dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
            least, most = (
                np.array(-each, dtype) if math.isfinite(each) else None for each in clip_bounds(site.scope, node)
            )
            value = clipped(builder, value, most, least)
        else:
            numbers = [builder.constant(-each, "bound") for each in told if each is not None]
            value = builder.op(_OTHER[node.op_type], [value, *numbers])
        builder.output(node.output[0], builder.op("Neg", [value]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    own: Traits = {**(traits_of(site.scope, node) or {}), "cuts-window-off-zero": False}
    operators: Operators = (("Neg", {"before-softmax": False}), (_OTHER[node.op_type], own))
    is_apart = len(data) == 1 and site.elem_type(place) in FLOATS
    why_not = None if is_apart else Refusal("its bounds are computed, or its data are no floats")
    return Form("that of numbers of the other sign", operators, write, why_not)


def negated_difference(site: Site) -> Form:
    """Return a sum as the difference from the term that it spreads, or a constant one, with the other sign."""
    place = spread_term(site.scope, site.node)
    told = site.constant(place)

    result, known = site.scope.type_of(site.node.output[0]), site.input_type(place)
    rank = 0 if result is None or result.rank is None else result.rank
    shape = () if known is None or known.shape is None else known.shape
    lengths = [each if isinstance(each, int) else -1 for each in shape]
    is_widened = told is None and 0 < len(lengths) < rank and lengths.count(-1) < 2 and 0 not in lengths

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        negative = builder.op("Neg", [values[place]]) if told is None else builder.constant(-told, "negative")
        if is_widened:
            negative = builder.reshaped(negative, [1] * (rank - len(lengths)) + lengths)
        return builder.op("Sub", [values[1 - place], negative])

    own = traits_of(site.scope, site.node) or {}
    kept: tuple[str, ...] = (
        "alike",
        "axes",
        "channels-last",
        "fewer-axes",
        "moves-fewer-axes",
        "numbers",
        "orders-differ",
        "put-back",
    )
    operators: Operators = (("Neg", {"numbers": own.get("numbers")}), ("Sub", {each: own.get(each) for each in kept}))
    if is_widened:
        kept = tuple(each for each in kept if each not in ("fewer-axes", "moves-fewer-axes"))
        operators = (operators[0], ("Reshape", {"rank": rank}), ("Sub", {each: own.get(each) for each in kept}))
    if told is not None:
        operators = (("Sub", {each: own.get(each) for each in (*kept, *_OF_CONSTANTS)}),)
    why_not = None if site.elem_type(0) in FLOATS else Refusal("only floats are negated without a loss")
    return Form("a difference", operators, lambda: of_inputs(site, write, exact=True), why_not)
