"""An LRN in operators that say less at once: with another bias, or as the quotient that it is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.rules.base import Site
from padfix.rules.build.along_axes import multiplied, multiplying, why_not_multiplied
from padfix.rules.build.elementary_forms import written
from padfix.rules.build.forms import Form

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


def response_forms(site: Site) -> Iterator[Form]:
    """Yield an LRN with a bias of 1; what the bias was is a factor of its data's shares, and of the result.

    And as a quotient: the sums over channels are a product with a matrix of ones about its diagonal.
    """
    given = {name: attributes.find(site.node, name) for name in ("alpha", "beta", "bias")}
    alpha, beta, bias = (
        usual if each is None else each.f for each, usual in zip(given.values(), (1e-4, 0.75, 1.0), strict=True)
    )
    size = attributes.integer(site.node, "size", 1) or 1
    told = {"size": size, "beta": beta, "bias": 1.0}

    def write(builder: FragmentBuilder, value: Any) -> Any:
        factor = np.array(bias**-beta, helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
        value = builder.op("LRN", [value], {**told, "alpha": alpha / bias})
        return builder.op("Mul", [value, builder.constant(factor, "factor")])

    known = site.input_type(0)
    traits = {"rank": None if known is None else known.rank, "whole-bias": True, "even-size": size % 2 == 0}
    why_not = None if bias > 0 else Refusal("its bias is not above 0")
    yield Form("a bias of 1", (("LRN", traits),), partial(written, site, write), why_not)
    lengths = () if known is None or known.shape is None else known.shape
    channels = lengths[1] if len(lengths) > 1 else None

    def by_product(builder: FragmentBuilder, value: Any) -> Any:
        assert isinstance(channels, int)
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        ones = np.ones((channels, channels), dtype)
        near = np.triu(np.tril(ones, size // 2), -((size - 1) // 2))
        sums = multiplied(builder, builder.op("Mul", [value, value]), {1: near}, lengths)
        share = builder.op("Mul", [sums, builder.constant(np.array(alpha / size, dtype), "share")])
        root = builder.op("Add", [share, builder.constant(np.array(bias, dtype), "bias")])
        return builder.op("Div", [value, builder.op("Pow", [root, builder.constant(np.array(beta, dtype), "beta")])])

    why_not = Refusal("how many channels there are is not known")
    if isinstance(channels, int):
        why_not = why_not_multiplied(site.elem_type(0), [(channels, channels)])
        operators = (
            *multiplying([1], lengths),
            ("Mul", {}),
            ("Add", {}),
            ("Pow", {}),
            ("Div", {"from-constant": False}),
        )
    yield Form(
        "a quotient", operators if isinstance(channels, int) else (), partial(written, site, by_product), why_not
    )
