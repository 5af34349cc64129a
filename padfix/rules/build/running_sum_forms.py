"""Equal forms of a CumSum and CumProd: a product with ones, for integers sums of what is moved, and piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.graph import attributes
from padfix.graph.scopes import Dimension
from padfix.operators.numbers import elements_of
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Site
from padfix.rules.build.along_axes import FLOATS, multiplied, multiplying, why_not_multiplied
from padfix.rules.build.elementary_forms import zeros_of
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_INTEGERS = (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64)

_SPATIAL = 2
"""The first axis of an image behind its batch and channels."""

_MOST_PIECES = 64
"""Of an axis that is taken apart."""


def running_sum_forms(site: Site) -> Iterator[Form]:
    """Yield a CumSum as a product with ones on one side of a diagonal, as its data moved and added, and of pieces.

    A CumProd is of pieces alone, since it is another number in another order.
    """
    known, number = site.input_type(0), site.constant(1)
    lengths = () if known is None or known.shape is None else tuple(known.shape)
    axis = 0 if number is None or not lengths else int(number.reshape(-1)[0]) % len(lengths)
    size = lengths[axis] if lengths else None
    unknown = None
    if number is None or not isinstance(size, int):
        unknown, size = Refusal("its axis, or how long that is, is not known"), 0
    if site.node.op_type == "CumProd":
        yield _of_pieces(site, axis, size, unknown)
        return
    yield _from_begin(site, axis, unknown)
    yield _of_ones(site, lengths, axis, size, unknown)
    why_not = unknown
    if why_not is None and site.elem_type(0) not in _INTEGERS:
        why_not = Refusal("it adds up no integers, but in an order of its own")
    yield _of_integers(site, axis, size, why_not)
    yield _of_pieces(site, axis, size, why_not)


def _from_begin(site: Site, axis: int, unknown: Refusal | None) -> Form:
    """Return the node with its axis counted from the begin."""
    told = site.constant(1)

    def write(builder: FragmentBuilder, value: Any, _: Any) -> Any:
        place = builder.constant(np.array(axis, np.int64 if told is None else told.dtype), "axis")
        return builder.original(site.node, [value, place])

    own = {**(traits_of(site.scope, site.node) or {}), "axis-from-end": False}
    counts = Refusal("its axis is counted from the begin") if told is not None and (told >= 0).all() else None
    return Form(
        "its axis from the begin", (("CumSum", own),), lambda: of_inputs(site, write, exact=True), unknown or counts
    )


def _of_ones(site: Site, lengths: tuple[Dimension, ...], axis: int, size: int, unknown: Refusal | None) -> Form:
    def write(builder: FragmentBuilder, value: Any, _: Any) -> Any:
        ones = np.ones((size, size), helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
        skipped = _skipped(site)
        matrix = np.triu(ones, skipped) if _is_turned(site) else np.tril(ones, -skipped)
        return multiplied(builder, value, {axis: matrix}, lengths)

    operators = multiplying([axis], lengths) if lengths else ()
    why_not = unknown or why_not_multiplied(site.elem_type(0), [(size, size)])
    return Form("a product with ones", operators, lambda: of_inputs(site, write, exact=False), why_not)


def _of_integers(site: Site, axis: int, size: int, unknown: Refusal | None) -> Form:
    """Return the sums of what stands 1, 2, 4, … places further."""
    data = {**(traits_of(site.scope, site.node) or {}), "elements": "integer"}
    why_not = unknown or (None if size > _skipped(site) else Refusal("it gives nothing but zeros"))
    turned, skipped = _is_turned(site), _skipped(site)

    def moved(builder: FragmentBuilder, value: Any, steps: int, rank: int) -> Any:
        start, end = (steps, size) if turned else (0, size - steps)
        pads = [0] * 2 * rank
        pads[axis + rank if turned else axis] = steps
        part = sliced(builder, value, [start], [end], [axis])
        return builder.op("Pad", [part, builder.integers(pads, "pads")], {"mode": "constant"})

    def doubled(builder: FragmentBuilder, value: Any, _: Any) -> Any:
        known = site.input_type(0)
        assert known is not None and known.shape is not None
        rank, steps = len(known.shape), 1
        if skipped:
            value = moved(builder, value, skipped, rank)
        while steps < size - skipped:
            value = builder.op("Add", [value, moved(builder, value, steps, rank)])
            steps *= 2
        return value if size > 1 else builder.op("Identity", [value])

    pad = {**data, "mode": "constant", "mode-written": True, "amounts": "sizes", "negative": False, "value": "zero"}
    pad |= {"axes-listed": False, "outer-axes": axis < _SPATIAL, "batch-axis": axis == 0}
    operators: Operators = (("Slice", _part(data, axis)), ("Pad", pad), ("Add", data))
    return Form("its data moved and added", operators, lambda: of_inputs(site, doubled, exact=True), why_not)


def _of_pieces(site: Site, axis: int, size: int, unknown: Refusal | None) -> Form:
    """Return the sums, or products, of one piece after another."""
    data = {**(traits_of(site.scope, site.node) or {}), "elements": elements_of(site.elem_type(0))}
    joining, is_float = "Mul" if site.node.op_type == "CumProd" else "Add", site.elem_type(0) in FLOATS
    turned, skipped = _is_turned(site), _skipped(site)

    def neutral(builder: FragmentBuilder, part: Any) -> Any:
        if joining == "Add":
            return builder.op("Sub", [part, part])
        one = np.ones((), helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
        zeros = zeros_of(builder, part, site.elem_type(0)) if is_float else builder.op("Sub", [part, part])
        return builder.op("Add", [zeros, builder.constant(one, "one")])

    def in_pieces(builder: FragmentBuilder, value: Any, _: Any) -> Any:
        parts = [sliced(builder, value, [place], [place + 1], [axis]) for place in range(size)]
        ordered = parts[::-1] if turned else parts
        sums = [ordered[0]]
        for part in ordered[1 : size - skipped]:
            sums.append(builder.op(joining, [sums[-1], part]))
        if skipped:
            sums = [neutral(builder, parts[0]), *sums]
        joined = sums[::-1] if turned else sums
        return builder.op("Concat", joined, {"axis": axis})

    why_not = unknown
    if why_not is None and not 1 < size <= _MOST_PIECES:
        why_not = Refusal("its axis is not taken apart, being one element, or too long")
    operators: Operators = (
        ("Slice", _part(data, axis)),
        *((each, data) for each in {joining, "Add"}),
        *((("Equal", data), ("Cast", data)) if joining == "Mul" and is_float and skipped else (("Sub", data),)),
        ("Concat", {**data, "first-axis": axis == 0}),
    )
    return Form("its pieces joined one by one", operators, lambda: of_inputs(site, in_pieces, exact=True), why_not)


def _part(data: Traits, axis: int) -> Traits:
    """Return what a Slice is like that takes a part of an axis."""
    left_out = ("backwards", "axes-out-of-order", "takes-nothing", "behind-window", "strided")
    return {**data, **dict.fromkeys(left_out, False), "first-axis": axis == 0}


def _skipped(site: Site) -> int:
    return 1 if attributes.integer(site.node, "exclusive", 0) else 0


def _is_turned(site: Site) -> bool:
    return bool(attributes.integer(site.node, "reverse", 0))
