"""Norms as the quotients that they are, and what takes all axes away as a maximum."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.reductions import reduces_batch
from padfix.operators.refusal import Refusal
from padfix.rules.base import Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.elementary_forms import (
    AS_NUMBER,
    AT_ONCE,
    Write,
    as_number,
    clipped,
    reduced,
    reduction_traits,
    steps_of,
    stepwise,
    unranked,
    written,
)
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators
from padfix.rules.build.one_axis import sum_along

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


def normalization_forms(site: Site) -> Iterator[Form]:
    """Yield MeanVarianceNormalization and LpNormalization as the quotients that they are."""
    known = site.input_type(0)
    rank = 0 if known is None or known.rank is None else known.rank
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    why_not = unranked(site)
    norm = "ReduceMean"
    if site.node.op_type == "LpNormalization":
        norm = "ReduceL1" if attributes.integer(site.node, "p", 2) == 1 else "ReduceL2"
        axes = [(attributes.integer(site.node, "axis", -1) or 0) % max(rank, 1)]
    else:
        axes = sorted(axis % max(rank, 1) for axis in attributes.integers(site.node, "axes") or [0, 2, 3])

    def by_norm(builder: FragmentBuilder, value: Any, *, sums: bool = False) -> Any:
        least = np.finfo(dtype).tiny
        if not sums:
            length = reduced(builder, norm, value, axes)
        elif norm == "ReduceL1":
            length = reduced(builder, "ReduceSum", builder.op("Abs", [value]), axes)
        else:
            length = builder.op("Sqrt", [reduced(builder, "ReduceSum", builder.op("Mul", [value, value]), axes)])
        return builder.op("Div", [value, clipped(builder, length, np.array(least, dtype), None)])

    def by_deviation(builder: FragmentBuilder, value: Any) -> Any:
        mean = stepwise("ReduceMean", axes, AT_ONCE, True)
        centred = builder.op("Sub", [value, mean(builder, value)])
        deviation = builder.op("Sqrt", [mean(builder, builder.op("Mul", [centred, centred]))])
        least = builder.constant(np.array(1e-9, dtype), "least")
        return builder.op("Div", [centred, builder.op("Add", [deviation, least])])

    def sign(builder: FragmentBuilder, value: Any) -> Any:
        return builder.op("Sign", [value])

    if known is not None and known.shape and all(known.shape[axis] == 1 for axis in axes if axis < rank):
        if norm != "ReduceMean":
            yield Form(
                "its sign",
                (("Sign", {}),),
                partial(written, site, sign),
                why_not,
            )
        why_not = why_not or Refusal("an axis of one element is no length to divide by")
    over_batch = reduces_batch(axes, () if known is None or known.shape is None else known.shape)
    operators = tuple(
        (norm, {**reduction_traits(norm, site.opset, step), "over-batch": over_batch})
        for step in steps_of(axes, AT_ONCE)
    )
    write = by_deviation if norm == "ReduceMean" else by_norm
    yield Form("a quotient", operators, partial(written, site, write), why_not)
    summed = sum_along(site, axes[0]) if norm != "ReduceMean" and rank else None
    if summed is not None:
        yield _by_products(site, *summed, is_root=norm == "ReduceL2", why_not=why_not)
    if norm != "ReduceMean":
        parts: Operators = (("Abs", {}),) if norm == "ReduceL1" else (("Mul", {"squares": True}), ("Sqrt", {}))
        by_sum: Operators = (*parts, ("ReduceSum", reduction_traits("ReduceSum", site.opset, axes)))
        yield Form("a quotient with a sum", by_sum, partial(written, site, partial(by_norm, sums=True)), why_not)


def _by_products(site: Site, operators: Operators, summed: Write, *, is_root: bool, why_not: Refusal | None) -> Form:
    """Return an LpNormalization by a sum that is a product: of magnitudes, or the root of that of squares."""

    def write(builder: FragmentBuilder, value: Any) -> Any:
        parts = builder.op("Mul", [value, value]) if is_root else builder.op("Abs", [value])
        total = summed(builder, parts)
        length = builder.op("Sqrt", [total]) if is_root else total
        least = np.array(np.finfo(helper.tensor_dtype_to_np_dtype(site.elem_type(0))).tiny)
        return builder.op("Div", [value, clipped(builder, length, least, None)])

    parts: Operators = (("Mul", {"gate-second": False, "squares": True}), ("Sqrt", {})) if is_root else (("Abs", {}),)
    return Form("a quotient with a product", (*parts, *operators), partial(written, site, write), why_not)


def number_forms(site: Site) -> Iterator[Form]:
    """Yield what takes all axes away, of one element each, as a maximum."""
    known, gives = site.input_type(0), site.scope.type_of(site.node.output[0])
    rank = 0 if known is None or known.rank is None else known.rank
    if not rank or gives is None or gives.shape != ():
        return

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.op("ReduceMax", [value], {"keepdims": 0})

    traits = {"axes-listed": False, "reduces-all": True, "reduced-axes": rank, "rank": rank, "keeps-axis": False}
    yield Form("the maximum of one element", (("ReduceMax", traits),), partial(written, site, write))
    yield Form("the maximum of a list of one", AS_NUMBER, partial(written, site, as_number))


def axes_of_number(site: Site) -> Iterator[Form]:
    """Yield what gives axes to a number as a product with 1, which some runtimes have a matrix for, and a Reshape."""
    known, gives = site.input_type(0), site.scope.type_of(site.node.output[0])
    if known is None or known.shape != () or gives is None or not gives.rank:
        return
    axes, dtype = gives.rank, helper.tensor_dtype_to_np_dtype(site.elem_type(0))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        product = builder.op("Mul", [value, builder.constant(np.ones(1, dtype), "one")])
        return builder.reshaped(product, [1] * axes)

    operators: Operators = (("Mul", {"constants": "one"}), ("Reshape", {"rank": axes, "of-number-given": False}))
    why_not = None if np.dtype(dtype).kind in "iuf" else Refusal("it is no number")
    yield Form("a Reshape behind a product with 1", operators, partial(written, site, write), why_not)


def of_one_element(site: Site) -> Iterator[Form]:
    """Yield a Squeeze of several open lengths as the one element of an axis, or as maxima along axes of one element.

    No Reshape finds a length where another one that it copies is 0, as in an empty batch.
    """
    known, listed = site.input_type(0), attributes.integers(site.node, "axes")
    told = site.constant(1)
    shape = () if known is None or known.shape is None else known.shape
    chosen = listed if told is None else told.reshape(-1).tolist()
    axes = sorted({int(axis) % len(shape) for axis in chosen or ()}) if shape else []
    open_lengths = [axis for axis, length in enumerate(shape) if not isinstance(length, int)]
    why_not = None
    if not axes or any(shape[axis] != 1 for axis in axes):
        why_not = Refusal("its axes, or that they are of one element, are not known")
    elif len(open_lengths) < 2 or site.elem_type(0) not in FLOATS:
        why_not = Refusal("a Reshape finds its lengths, or its data are no floats")

    def picked(builder: FragmentBuilder, value: Any) -> Any:
        return builder.op("Gather", [value, builder.constant(np.array(0), "first")], {"axis": axes[0]})

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return reduced(builder, "ReduceMax", value, axes, kept=False)

    several = why_not or (None if len(axes) == 1 else Refusal("it takes several axes away"))
    picking: Operators = (("Gather", {"rank": len(shape), "first-axis": axes[:1] == [0]}),)
    yield Form("the one element of an axis", picking, partial(written, site, picked), several)
    traits = {
        **reduction_traits("ReduceMax", site.opset, axes),
        "one-element": True,
        "rank": len(shape),
        "keeps-axis": False,
        "moves-batch": 0 in axes,
    }
    yield Form("the largest of one element", (("ReduceMax", traits),), partial(written, site, write), why_not)
