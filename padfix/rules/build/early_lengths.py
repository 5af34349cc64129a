"""Lengths as tensors like any other, and what others are made of so that an importer works them out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.graph import attributes
from padfix.operators.constant_chains import has_chain
from padfix.operators.held_lengths import is_list_of_lengths
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import LONGEST, TAKING, taken
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_CAST: Operators = (("Cast", {"type": "int64"}),)
"""What makes a tensor of a list of lengths."""

_JOINED_BY = {"ReduceMax": "Max", "ReduceMin": "Min", "ReduceProd": "Mul", "ReduceSum": "Add"}


def early_lengths(site: Site) -> Iterator[Form]:
    """Yield a Gather of a list that a Cast gives, pieces by Gathers, and a reduction as its elements joined."""
    if has_chain(site.scope, site.node):
        return  # a constant
    own = {**(traits_of(site.scope, site.node) or {}), "makes-lengths-late": False, "reads-list-of-lengths": False}
    if site.node.op_type == "Gather":
        yield Form("a Cast before it", (*_CAST, ("Gather", own)), lambda: of_inputs(site, _picked(site), exact=True))
    if site.node.op_type == "Split":
        yield _pieces(site)
    if site.node.op_type in ("Ceil", "Floor"):
        yield _cut_off(site)
    if site.node.op_type == "Relu":
        yield _larger(site)
    joining = _JOINED_BY.get(site.node.op_type)
    if joining is None:
        return
    known = site.input_type(0)
    count = known.lengths[0] if known is not None and known.lengths is not None and len(known.lengths) == 1 else None
    why_not = None if count and count <= LONGEST else Refusal("it is no list, or of how many is not known")
    keeps = bool(attributes.integer(site.node, "keepdims", 1))

    def write(builder: FragmentBuilder, value: Any, *_: Any) -> Any:
        each = _as_tensor(site, builder, value)
        single = [taken(builder, each, {0: [place]}) for place in range(count or 0)]
        result = reduce(lambda one, other: builder.op(joining, [one, other]), single)
        return result if keeps else builder.unsqueezed(result, 0, back=True)

    squeeze: Operators = () if keeps else (("Squeeze", {"axes-written": True}),)
    operators: Operators = (*_CAST, *TAKING, (joining, {"numbers": "integer"}), *squeeze)
    yield Form("its elements one by one", operators, lambda: of_inputs(site, write, exact=True), why_not)


def _cut_off(site: Site) -> Form:
    """Return a Ceil or Floor of lengths in floats: what is left without fractions, and 1 beside it where that is off.

    Lengths fit the integers between.
    """
    elem_type, is_floor = site.elem_type(0) or TensorProto.FLOAT, site.node.op_type == "Floor"

    def write(builder: FragmentBuilder, value: Any) -> Any:
        whole = builder.op("Cast", [builder.op("Cast", [value], {"to": TensorProto.INT64})], {"to": elem_type})
        pair = [value, whole] if is_floor else [whole, value]
        rest = builder.op("Cast", [builder.op("Less", pair)], {"to": elem_type})
        return builder.op("Sub" if is_floor else "Add", [whole, rest])

    joint: Operators = (("Sub" if is_floor else "Add", {}),)
    operators: Operators = (*_CAST, ("Less", {}), *joint)
    return Form("what has no fractions, and 1", operators, lambda: of_inputs(site, write, exact=True))


def _larger(site: Site) -> Form:
    """Return a Relu as the larger of its data and 0."""
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0) or TensorProto.FLOAT)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.op("Max", [value, builder.constant(np.zeros((), dtype), "zero")])

    kept = {"numbers": "integer"} if dtype.kind in "iu" else {}
    return Form("the larger of it and 0", (("Max", kept),), lambda: of_inputs(site, write, exact=True))


def _pieces(site: Site) -> Form:
    """Return the pieces of a list, each by a Gather."""
    types = [site.scope.type_of(name) for name in site.node.output]
    lengths = [None if known is None or known.lengths is None else list(known.lengths) for known in types]
    counts = [each[0] if each is not None and len(each) == 1 else 0 for each in lengths]
    why_not = None if all(counts) and sum(counts) <= LONGEST else Refusal("how long its pieces are is not known")

    def write() -> Rewrite:
        builder = site.builder()
        value = _as_tensor(site, builder, builder.input(site.input_name(0)))
        for place, (name, count) in enumerate(zip(site.node.output, counts, strict=True)):
            first = sum(counts[:place])
            builder.output(name, taken(builder, value, {0: range(first, first + count)}))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    return Form("a Gather of each piece", (*_CAST, *TAKING), write, why_not)


def lengths_as_tensors(site: Site) -> Iterator[Form]:
    """Yield the node with a Cast, which changes nothing, before each list of lengths that it reads."""
    if has_chain(site.scope, site.node):
        return  # a constant
    own = {**(traits_of(site.scope, site.node) or {}), "reads-list-of-lengths": False}

    def write() -> Rewrite:
        builder = site.builder()
        lists = {name for name in site.node.input if name and is_list_of_lengths(site.scope, name)}
        cast = {name: builder.op("Cast", [builder.input(name)], {"to": TensorProto.INT64}) for name in sorted(lists)}
        inputs = [cast.get(name) or builder.input(name) for name in site.node.input]
        return Rewrite(builder.ending_in(copied(site.node), inputs), trials_of(site), exact=True)

    yield Form("a Cast before it", (*_CAST, (site.node.op_type, own)), write)


def _picked(site: Site) -> Any:
    def write(builder: FragmentBuilder, value: Any, places: Any) -> Any:
        return builder.original(copied(site.node), [_as_tensor(site, builder, value), places])

    return write


def _as_tensor(site: Site, builder: FragmentBuilder, value: Any) -> Any:
    """Return a list of lengths as a tensor like any other."""
    return builder.op("Cast", [value], {"to": site.elem_type(0) or TensorProto.INT64})
