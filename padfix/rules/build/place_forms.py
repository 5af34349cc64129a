"""Equal forms of what gives the places of extremes (ArgMax, ArgMin), or takes elements by truths (Compress)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.graph import attributes
from padfix.graph.scopes import Dimension
from padfix.operators.axis_order import alike_axes
from padfix.operators.constant_chains import worked_out
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.along_axes import TAKING, multiplied, multiplying, selection, taken, why_not_multiplied
from padfix.rules.build.elementary_forms import reduced, reduction_traits
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import axis_from_begin, of_inputs
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_BYTES_REDUCED_SINCE = 12

_NEEDS_LENGTHS = Refusal("it needs the lengths of its input (--shape)")


def extreme_place_forms(site: Site) -> Iterator[Form]:
    """Yield the places of extremes with their axis kept, which a Squeeze takes out, and counted from the end."""
    yield axis_from_begin(site)
    kept = copied(site.node)
    attributes.set_integer(kept, "keepdims", 1)
    axis = attributes.integer(site.node, "axis", 0) or 0
    known = site.input_type(0)
    lengths = () if known is None or known.shape is None else known.shape
    length = lengths[axis] if -len(lengths) <= axis < len(lengths) else None

    if len(lengths) == 1:
        yield _in_a_row(site)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.unsqueezed(builder.original(kept, [value]), axis, back=True)

    own = traits_of(site.scope, site.node) or {}
    operators: Operators = (
        (site.node.op_type, {**own, "keeps-axis": True, "moves-batch": False}),
        ("Squeeze", {"rank": own.get("rank"), "axes-written": True, "moves-batch": axis == 0}),
    )
    yield Form("its axis kept, and taken out behind it", operators, lambda: of_inputs(site, write, exact=True))
    yield _along_rows(site, lengths, axis)
    why_not = None if own.get("takes-last") else Refusal("it takes the first of equal numbers")

    def turned(builder: FragmentBuilder, value: Any) -> Any:
        assert isinstance(length, int)
        value = taken(builder, value, {axis: range(length - 1, -1, -1)})
        place = builder.original(copied(site.node, without=("select_last_index",)), [value])
        return builder.op("Sub", [builder.constant(np.array(length - 1, np.int64), "last"), place])

    operators = (
        ("Gather", {"picks-a-list": True}),
        (site.node.op_type, {**own, "takes-last": False}),
        ("Sub", {"numbers": "integer", "constants": "number"}),
    )
    if not isinstance(length, int):
        why_not = why_not or Refusal("an equal form needs the length of its axis (--shape)")
    yield Form("its axis turned round", operators, lambda: of_inputs(site, turned, exact=True), why_not)
    yield _place_of_truth(site, lengths, axis)


def _in_a_row(site: Site) -> Form:
    """Return the place of a list's extreme as that of a matrix of one row; as a number the largest of the one place."""
    is_kept = bool(attributes.integer(site.node, "keepdims", 1))
    node = copied(site.node)
    for name in ("axis", "keepdims"):
        attributes.set_integer(node, name, 1)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        place = builder.original(node, [builder.reshaped(value, [1, -1])])
        if is_kept:
            return builder.reshaped(place, [1])
        place = builder.op("Cast", [place], {"to": int(TensorProto.FLOAT)})
        number = builder.op("ReduceMax", [place], {"keepdims": 0})
        return builder.op("Cast", [number], {"to": int(TensorProto.INT64)})

    reduction: Traits = {"axes-listed": False, "reduces-all": True, "reduced-axes": 2, "rank": 2, "keeps-axis": False}
    number: Operators = (
        ("Cast", {"numbers": "integer", "elements": "integer", "unsigned": False, "gives": "single"}),
        ("ReduceMax", {**reduction, "numbers": "single"}),
        ("Cast", {"numbers": "single", "elements": "float", "unsigned": False, "gives": "integer"}),
    )
    own = {**(traits_of(site.scope, site.node) or {}), "rank": 2, "keeps-axis": True, "of-made-list": False}
    back: Operators = (("Reshape", {"rank": 1}),)
    operators: Operators = (("Reshape", {"rank": 2}), (site.node.op_type, own), *(back if is_kept else number))
    return Form("a matrix of one row", operators, lambda: of_inputs(site, write, exact=True))


def _along_rows(site: Site, lengths: Sequence[Dimension], axis: int) -> Form:
    """Return the places with their axis taken out of data whose axes before and behind it are one each."""
    result = site.scope.type_of(site.node.output[0])
    gives = None if result is None else result.lengths
    along = axis % max(len(lengths), 1)
    known = [each for each in lengths if isinstance(each, int)]
    rows = [math.prod(known[:along]), *known[along : along + 1], math.prod(known[along + 1 :])]
    node = copied(site.node)
    attributes.set_integer(node, "axis", 1)
    attributes.set_integer(node, "keepdims", 0)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.reshaped(builder.original(node, [builder.reshaped(value, rows)]), gives or ())

    order: Traits = {"alike": alike_axes([rows]), "channels-last": False, "moves-batch": False}
    own = {**(traits_of(site.scope, site.node) or {}), "rank": len(rows), **order}
    own |= {"keeps-axis": False, "leaves-channels": False}
    operators: Operators = (
        ("Reshape", {"rank": len(rows)}),
        (site.node.op_type, own),
        ("Reshape", {"rank": len(gives or ()), "numbers": "integer"}),
    )
    why_not = _NEEDS_LENGTHS if len(known) < len(lengths) or not lengths or gives is None or 0 in gives else None
    return Form("the places along rows", operators, lambda: of_inputs(site, write, exact=True), why_not)


def _place_of_truth(site: Site, lengths: Sequence[Dimension], axis: int) -> Form:
    """Return the place of an extreme of integers as that of the first number that is equal to it, a 1 among zeros.

    The last is that of the largest of their places, counted from 1.
    """
    rank = len(lengths)
    reduction = "ReduceMax" if site.node.op_type == "ArgMax" else "ReduceMin"
    along = axis % max(rank, 1)
    length = lengths[along] if rank else None
    own = traits_of(site.scope, site.node) or {}
    takes_last = bool(own.get("takes-last"))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        extreme = reduced(builder, reduction, value, [along])
        found = builder.op("Cast", [builder.op("Equal", [value, extreme])], {"to": int(TensorProto.FLOAT)})
        if takes_last:
            assert isinstance(length, int)
            numbers = np.arange(1, length + 1, dtype=np.float32).reshape([-1, *[1] * (rank - 1 - along)])
            found = builder.op("Mul", [found, builder.constant(numbers, "numbers")])
        node = copied(site.node, without=("select_last_index",))
        node.op_type = "ArgMax"
        return builder.original(node, [found])

    cast: Traits = {"numbers": "boolean", "elements": "float", "unsigned": False, "gives": "single"}
    told = {name: own.get(name) for name in ("numbers", "bytes")}
    operators: Operators = (
        (reduction, {**reduction_traits(reduction, site.opset, [along]), "rank": rank, **told}),
        ("Equal", {"rank": rank, "broadcasts": True, **told}),
        ("Cast", {**cast, "changes-type": True}),
        *((("Mul", {"rank": rank, "broadcasts": True, "numbers": "single"}),) if takes_last else ()),
        ("ArgMax", {**own, "takes-last": False, "numbers": "single", "bytes": "none"}),
    )
    why_not = None if rank else Refusal("how many axes its data have is not known")
    if own.get("numbers") != "integer":
        why_not = Refusal("its data are no integers")
    elif takes_last and not isinstance(length, int):
        why_not = Refusal("an equal form needs the length of its axis (--shape)")
    elif own.get("bytes") != "none" and site.opset < _BYTES_REDUCED_SINCE:
        why_not = Refusal("this opset reduces no bytes")
    way = "the place of what is equal to the extreme"
    return Form(way, operators, lambda: of_inputs(site, write, exact=True), why_not)


def compressed_forms(site: Site) -> Iterator[Form]:
    """Yield what takes elements by constant truths as what takes them by their places, and as a product.

    And, whatever the truths are, along an axis that is counted from the begin.
    """
    yield axis_from_begin(site)
    known, truths = site.input_type(0), worked_out(site.scope, site.input_name(1))
    is_flat = all(each.name != "axis" for each in site.node.attribute)
    lengths = () if known is None or known.shape is None else known.shape
    rank = 1 if is_flat else len(lengths)
    axis = 0 if is_flat else attributes.integer(site.node, "axis", 0) % max(rank, 1)
    places = [] if truths is None else [int(each) for each in np.flatnonzero(truths)]
    why_not = None if places else Refusal("which elements it takes is not constant, or it takes none")
    if not lengths:
        why_not = _NEEDS_LENGTHS

    def told(write: Callable[..., Any]) -> Rewrite:
        assert truths is not None
        found = of_inputs(site, write, exact=True)
        given = {site.input_name(1): TrialInput.of(truths)}
        return dataclasses.replace(found, trials=tuple({**trial, **given} for trial in found.trials))

    def write(builder: FragmentBuilder, value: Any, _: Any) -> Any:
        return taken(builder, builder.reshaped(value, [-1]) if is_flat else value, {axis: places})

    row: Operators = (("Reshape", {"rank": 1}),) if is_flat else ()
    yield Form("a Gather", (*row, *TAKING), lambda: told(write), why_not)
    size = lengths[axis] if lengths else None

    def product(builder: FragmentBuilder, value: Any, _: Any) -> Any:
        assert isinstance(size, int)
        matrix = selection(places, size).astype(helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
        return multiplied(builder, value, {axis: matrix}, lengths)

    if is_flat or not isinstance(size, int):
        why_not = why_not or Refusal("it takes elements of all axes, or how long its axis is, is not known")
    else:
        why_not = why_not or why_not_multiplied(site.elem_type(0), [(size, len(places))])
    yield Form(
        "a product",
        multiplying([axis], lengths) if lengths else (),
        lambda: told(product),
        why_not,
    )
