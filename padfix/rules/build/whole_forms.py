"""Whole numbers and booleans without what a Cast or a Div of integers does to numbers besides changing their type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto

from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

_MOD_SINCE = 10
_SIGNED = (TensorProto.INT32, TensorProto.INT64)


def cut_forms(site: Site) -> Iterator[Form]:
    """Yield a Cast of numbers whose fractions are cut off before it, or of which 0 and 1 alone are left."""
    own = traits_of(site.scope, site.node) or {}
    is_truth = own.get("gives") == "boolean"

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(0))
        size = builder.op("Abs", [value])
        cut = builder.op("Sign", [size if is_truth else value])
        if not is_truth:
            cut = builder.op("Mul", [cut, builder.op("Floor", [size])])
        builder.output(site.node.output[0], builder.original(copied(site.node), [cut]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    parts: Operators = (("Abs", {}), ("Sign", {}), ("Floor", {}), ("Mul", {"gate-second": False}))
    why_not = None if own.get("changes-numbers") else Refusal("it keeps the numbers")
    operators: Operators = (*parts, ("Cast", {**own, "changes-numbers": False}))
    yield Form("what is left of its numbers, before it", operators, write, why_not)


def divided_forms(site: Site) -> Iterator[Form]:
    """Yield a Div of integers from whose dividend the rest is taken before it."""
    own = traits_of(site.scope, site.node) or {}

    def write() -> Rewrite:
        builder = site.builder()
        dividend, divisor = (builder.input(name) for name in site.node.input)
        rest = builder.op("Mod", [dividend, divisor], {"fmod": 1})
        whole = builder.op("Sub", [dividend, rest])
        builder.output(site.node.output[0], builder.original(copied(site.node), [whole, divisor]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None
    if site.elem_type(0) not in _SIGNED or site.opset < _MOD_SINCE:
        why_not = Refusal("its data are no integers with a sign, or this opset has no Mod")
    operators: Operators = (("Mod", {"cuts-off": True}), ("Sub", {}), ("Div", {**own, "changes-numbers": False}))
    yield Form("the rest taken off before it", operators, write, why_not)


def logic_forms(site: Site) -> Iterator[Form]:
    """Yield what two booleans give as whether the product, the larger or the distance of 0 and 1 is above a half."""
    joint = {"And": "Mul", "Or": "Max", "Xor": "Sub"}[site.node.op_type]

    def write() -> Rewrite:
        builder = site.builder()
        numbers = [builder.op("Cast", [builder.input(name)], {"to": TensorProto.FLOAT}) for name in site.node.input]
        joined: Any = builder.op(joint, numbers)
        if joint == "Sub":
            joined = builder.op("Abs", [joined])
        half = builder.constant(np.array(0.5, np.float32), "half")
        builder.output(site.node.output[0], builder.op("Greater", [joined, half]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    traits: Traits = {"inputs": 2, "broadcasts": True}
    operators: Operators = (("Cast", {"gives": "single"}), (joint, traits), ("Abs", {}), ("Greater", {}))
    yield Form("numbers of 0 and 1", operators, write)
