"""What takes or puts single elements: with axes and indices from the begin, of lists, and of fewer rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from onnx import TensorProto, helper

from padfix.graph import attributes
from padfix.operators.numbers import elements_of, numbers_of
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, Trial
from padfix.rules.build.as_floats import as_floats
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.gathered_rows import rows_of_computed
from padfix.rules.build.index_forms import MAXIMUM_OF_INTEGERS_SINCE, REST_SINCE, rest_forms
from padfix.rules.build.joined_elements import JOINS, joined_forms, neutral
from padfix.rules.build.moved_forms import moved_forms
from padfix.rules.build.node_forms import as_node, axis_from_begin
from padfix.rules.build.node_trials import like, trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.picked_elements import rows_of_picked
from padfix.rules.build.scattered_places import along_one_axis
from padfix.rules.build.scattered_rows import part_alone
from padfix.targets.traits import Traits

_ELEMENTS_SINCE, _EXTREMES_SINCE = 11, 18
"""The first opsets with a ScatterElements, and that list the larger and the smaller among what is joined by."""

_MOST_ELEMENTS = 1 << 20

_MAXIMUM: Traits = {"inputs": 2, "broadcasts": False}
"""What the larger of data and themselves is like."""

_LENGTHS = Refusal("it needs the lengths of its inputs (--shape)")


def element_forms(site: Site) -> Iterator[Form]:
    """Yield what takes or puts elements by indices in the forms of its type."""
    if site.node.op_type == "Scatter":
        yield from (axis_from_begin(site), _renamed(site))
        return
    if not site.node.op_type.endswith("ND"):
        yield axis_from_begin(site)
    yield _counted(site)
    if site.node.op_type.startswith("Scatter"):
        yield _unsaid(site)
        yield _of_later_opset(site)
        yield _joined_apart(site)
        yield from as_floats(site)
    yield from rest_forms(site)
    if site.node.op_type == "GatherND":
        yield from rows_of_picked(site)
        yield _told_images(site)
        yield from rows_of_computed(site)
        yield from moved_forms(site)
    elif site.node.op_type == "GatherElements":
        yield _in_a_row(site)
        yield _apart(site)
        yield _of_fewer(site, apart=False)
        yield _of_fewer(site, apart=True)
        yield from moved_forms(site)
    elif site.node.op_type == "ScatterND":
        yield _behind_an_axis(site)
        yield along_one_axis(site)
    else:
        yield _in_a_row(site)
        yield _of_more(site)
        yield part_alone(site)
    yield from joined_forms(site) if site.node.op_type.startswith("Scatter") else as_floats(site)


def _renamed(site: Site) -> Form:
    """Return a Scatter by the name that it has since; what else is special of it is looked at then."""

    def write() -> Rewrite:
        builder = site.builder(max(site.opset, _ELEMENTS_SINCE))
        given = [builder.input(name) for name in site.node.input]
        node = copied(site.node)
        node.op_type = "ScatterElements"
        return Rewrite(builder.ending_in(node, given), trials_of(site), exact=True)

    return Form("a ScatterElements", (), write, None, _ELEMENTS_SINCE)


def _unsaid(site: Site) -> Form:
    """Return what puts elements without saying that it joins none."""
    own = {**(traits_of(site.scope, site.node) or {}), "reduction-written": False}
    why_not = Refusal("it joins elements, or does not say that it joins none")
    node = copied(site.node, without=("reduction",))
    is_said = attributes.find(site.node, "reduction") is not None and not own.get("joins")
    return Form(
        "nothing said of joining",
        ((node.op_type, own),),
        lambda: as_node(site, node, exact=True),
        None if is_said else why_not,
    )


def _of_later_opset(site: Site) -> Form:
    """Return what keeps the larger or the smaller as it is, in the first opset that has these by name."""
    own = traits_of(site.scope, site.node) or {}

    def write() -> Rewrite:
        builder = site.builder(max(site.opset, _EXTREMES_SINCE))
        given = [builder.input(name) for name in site.node.input]
        return Rewrite(builder.ending_in(copied(site.node), given), trials_of(site), exact=True)

    why_not = None if own.get("joins-extremes") else Refusal("it joins nothing, or by a sum or product")
    return Form("as it is, in a later opset", ((site.node.op_type, own),), write, why_not, _EXTREMES_SINCE)


def _joined_apart(site: Site) -> Form:
    """Return what joins elements as all data, joined with what is scattered over numbers that change nothing."""
    known, indices, kind = site.input_type(0), site.constant(1), site.node.op_type
    lengths = None if known is None else known.lengths
    reduction = attributes.text(site.node, "reduction", "none") or "none"
    op_type = JOINS[reduction][0] if reduction in JOINS else ""
    own = {
        **(traits_of(site.scope, site.node) or {}),
        "joins": False,
        "joins-extremes": False,
        "reduction-written": False,
    }

    def write() -> Rewrite:
        builder = site.builder()
        data, *rest = (builder.input(name) for name in site.node.input)
        node = copied(site.node, without=("reduction",))
        filling = np.full(lengths or (), neutral(reduction, site.elem_type(0)))
        scattered = builder.original(node, [builder.constant(filling, "neutral"), *rest])
        builder.output(site.node.output[0], builder.op(op_type, [data, scattered]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None
    if not op_type:
        why_not = Refusal("it joins nothing")
    elif lengths is None or indices is None or math.prod(lengths) > _MOST_ELEMENTS:
        why_not = Refusal("its indices are not constant, it needs its lengths (--shape), or it would be very large")
    elif _is_twice(indices, lengths, kind, attributes.integer(site.node, "axis", 0) or 0):
        why_not = Refusal("it joins an element with several")
    operators: Operators = ((kind, own), (op_type, {"inputs": 2, "broadcasts": False, "constants": "none"}))
    return Form(f"scattered apart, {reduction}", operators, write, why_not)


def _is_twice(indices: np.ndarray, lengths: tuple[int, ...], op_type: str, axis: int) -> bool:
    """Whether two of the indices of a ScatterND or ScatterElements are of one element."""
    if op_type == "ScatterND":
        depth = indices.shape[-1]
        rows = (indices % np.array(lengths[:depth])).reshape(-1, depth)
    else:
        places = [np.asarray(each) for each in np.indices(indices.shape)]
        places[axis] = indices % lengths[axis]
        rows = np.stack(places, -1).reshape(-1, indices.ndim)
    return len(np.unique(rows, axis=0)) < len(rows)


def _counted(site: Site) -> Form:
    """Return what is picked by an axis and indices that are all counted from the begin."""
    known, indices = site.input_type(0), site.constant(1)
    op_type = site.node.op_type
    shape = () if known is None or known.shape is None else known.shape
    axis = (attributes.integer(site.node, "axis", 0) or 0) % max(len(shape), 1)
    first = attributes.integer(site.node, "batch_dims", 0) or 0
    if op_type.endswith("ND"):
        places = range(first, first + (0 if indices is None or not indices.ndim else indices.shape[-1]))
    else:
        places = range(axis, axis + 1) if shape else range(0)
    lengths = [shape[place] if place < len(shape) else None for place in places]
    why_not = None
    if indices is None or not lengths or not all(isinstance(each, int) for each in lengths):
        why_not = _LENGTHS

    def write() -> Rewrite:
        assert indices is not None
        counted = np.where(indices < 0, indices + np.array(lengths, indices.dtype), indices).astype(indices.dtype)
        node = copied(site.node)
        if not op_type.endswith("ND"):
            attributes.set_integer(node, "axis", axis)
        builder = site.builder()
        given = [builder.input(name) for name in node.input]
        given[1] = builder.constant(counted, "indices")
        return Rewrite(builder.ending_in(node, given), trials_of(site), exact=True)

    own = {**(traits_of(site.scope, site.node) or {}), "negative-indices": False, "axis-from-end": False}
    return Form("indices from the begin", ((op_type, own),), write, why_not)


def _told_images(site: Site) -> Form:
    """Return a GatherND whose tuples begin with the image that they are of."""
    known, first = site.input_type(1), attributes.integer(site.node, "batch_dims", 0) or 0
    lengths = None if known is None else known.lengths
    why_not = _LENGTHS if lengths is None else None
    if not first:
        why_not = Refusal("its tuples are of no image alone")

    def write() -> Rewrite:
        assert lengths is not None
        builder = site.builder()
        data, indices = (builder.input(name) for name in site.node.input)
        images = np.moveaxis(np.indices(lengths[:-1])[:first], 0, -1).astype(np.int64)
        told = builder.op("Concat", [builder.constant(images, "images"), indices], {"axis": len(lengths) - 1})
        return Rewrite(
            builder.ending_in(copied(site.node, without=("batch_dims",)), [data, told]), trials_of(site), exact=True
        )

    joined: Traits = {"inputs": 2, "numbers": "integer"}
    # What the target has against the rest of the indices has forms of its own.
    return Form("tuples with their image", (("Concat", joined),), write, why_not)


def _apart(site: Site) -> Form:
    """Return a GatherElements of the larger of its data and themselves, apart from the Slice that gives them."""
    is_integer = elements_of(site.elem_type(0)) != "float"
    why_not = None
    if site.elem_type(0) == TensorProto.BOOL or (is_integer and site.opset < MAXIMUM_OF_INTEGERS_SINCE):
        why_not = Refusal("this opset has no maximum of them")

    def write() -> Rewrite:
        builder = site.builder()
        data, *rest = (builder.input(name) for name in site.node.input)
        return Rewrite(
            builder.ending_in(copied(site.node), [builder.op("Max", [data] * 2), *rest]), _long_enough(site), exact=True
        )

    own = {**(traits_of(site.scope, site.node) or {}), "behind-slice-from-first": False}
    operators: Operators = (("Max", _MAXIMUM), ("GatherElements", own))
    return Form("the larger of its data and themselves", operators, write, why_not)


def _long_enough(site: Site) -> tuple[Trial, ...]:
    """Return trials of which the data are as long as constant indices reach, and as there are of them."""
    known, listed, told = site.input_type(0), site.input_type(1), site.constant(1)
    (trial,) = trials_of(site)
    if known is None or known.shape is None or known.lengths is not None:
        return (trial,)
    lengths = [each for each in (listed.shape if listed is not None else None) or () if isinstance(each, int)]
    reached = [int(np.abs(told).max()) + 1] if told is not None and told.size else []
    name = site.input_name(0)
    longest = max([*trial[name].shape, *lengths, *reached])
    return ({**trial, name: like(known, longest)},)


def _of_fewer(site: Site, *, apart: bool) -> Form:
    """Return a GatherElements of data that a Slice has cut to the rows that have indices, or that ``apart`` from it."""
    known, indices = site.input_type(0), site.input_type(1)
    shape = () if known is None or known.shape is None else known.shape
    listed = () if indices is None or indices.shape is None else indices.shape
    axis = (attributes.integer(site.node, "axis", 0) or 0) % max(len(shape), 1)
    cut = [each for each, pair in enumerate(zip(shape, listed, strict=False)) if each != axis and pair[0] != pair[1]]
    told = [length for each in cut if isinstance(length := listed[each], int)]
    are_told = len(told) == len(cut)
    why_not = None if cut else _LENGTHS

    def write() -> Rewrite:
        builder = site.builder()
        data, *rest = (builder.input(name) for name in site.node.input)
        starts, axes = builder.integers([0] * len(cut)), builder.integers(cut)
        ends = builder.integers(told) if are_told else builder.op("Gather", [builder.op("Shape", rest), axes])
        bounds = [starts, ends, axes]
        node = copied(site.node)
        attributes.set_integer(node, "axis", axis)
        rows = builder.op("Slice", [data, *bounds])
        rows = builder.op("Max", [rows, rows]) if apart else rows
        builder.output(site.node.output[0], builder.original(node, [rows, *rest]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    if apart and elements_of(site.elem_type(0)) != "float" and site.opset < MAXIMUM_OF_INTEGERS_SINCE:
        why_not = Refusal("this opset has no maximum of integers")
    own = traits_of(site.scope, site.node) or {}
    own = {**own, **dict.fromkeys(("of-fewer-rows", "axis-from-end"), False)}
    own["behind-slice-from-first"] = not apart
    operators: Operators = (("Slice", {"behind-window": False, "rank": len(shape)}), ("GatherElements", own))
    operators = (*operators, ("Max", _MAXIMUM)) if apart else operators
    operators = operators if are_told else (*operators, ("Shape", {}), ("Gather", {}))
    return Form("a Slice before it, apart" if apart else "a Slice before it", operators, write, why_not)


def _behind_an_axis(site: Site) -> Form:
    """Return a ScatterND of data and updates that have an axis of one element more."""
    shapes = [None if (known := site.input_type(place)) is None else known.lengths for place in (0, 2)]
    data, updates = ((), ()) if shapes[0] is None or shapes[1] is None else (shapes[0], shapes[1])

    def write() -> Rewrite:
        builder = site.builder()
        given = [builder.input(name) for name in site.node.input]
        for place, shape in ((0, data), (2, updates)):
            told = site.constant(place)
            given[place] = (
                builder.reshaped(given[place], [*shape, 1])
                if told is None
                else builder.constant(told.reshape(*shape, 1), "value")
            )
        result = builder.reshaped(builder.original(copied(site.node), given), data)
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    own = {**(traits_of(site.scope, site.node) or {}), "of-listed-values": False, "rank": len(data) + 1}
    reshapes: Operators = (("Reshape", {"rank": len(data) + 1}), ("Reshape", {"rank": len(data)}))
    return Form("an axis more behind all", (*reshapes, ("ScatterND", own)), write, None if data else _LENGTHS)


def _in_a_row(site: Site) -> Form:
    """Return what takes elements from a list, or puts them there, as what does so with a matrix of one row."""
    known = site.input_type(0)
    rank = None if known is None else known.rank
    indices = site.constant(1)

    def write() -> Rewrite:
        builder = site.builder()
        given = [
            builder.reshaped(builder.input(name), [1, -1])
            if indices is None or place != 1
            else builder.constant(indices.reshape(1, -1), "indices")
            for place, name in enumerate(site.node.input)
        ]
        node = copied(site.node)
        attributes.set_integer(node, "axis", 1)
        builder.output(site.node.output[0], builder.reshaped(builder.original(node, given), [-1]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    own = {**(traits_of(site.scope, site.node) or {}), "rank": 2, "axis-from-end": False}
    why_not = None if rank == 1 else Refusal("its data are no list")
    operators: Operators = (("Reshape", {"rank": 2}), (site.node.op_type, own), ("Reshape", {"rank": 1}))
    return Form("a matrix of one row", operators, write, why_not)


def _of_more(site: Site) -> Form:
    """Return a ScatterElements of data with as many rows more as there are updates, which a Slice takes off again."""
    known, listed, told = site.input_type(0), site.input_type(1), site.constant(1)
    shape, updates = (() if each is None or each.shape is None else each.shape for each in (known, listed))
    axis = (attributes.integer(site.node, "axis", 0) or 0) % max(len(shape), 1)
    length = shape[axis] if shape else None
    more = [updates[place] if place == axis else length for place, length in enumerate(shape)] if updates else [None]
    rows, is_list = [each for each in more if isinstance(each, int)], len(shape) == 1
    own = traits_of(site.scope, site.node) or {}
    is_counted = told is None and bool(own.get("maybe-from-end"))
    why_not = None if isinstance(length, int) and len(rows) == len(shape) else _LENGTHS
    if is_counted and site.opset < REST_SINCE:
        why_not = Refusal("this opset has no Mod")

    def write() -> Rewrite:
        assert isinstance(length, int)
        builder = site.builder()
        given = [builder.input(name) for name in site.node.input]
        if told is not None:
            given[1] = builder.constant(np.where(told < 0, told + length, told).astype(told.dtype), "indices")
        elif is_counted:
            dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(1))
            given[1] = builder.op("Mod", [given[1], builder.constant(np.array(length, dtype), "length")])
        if is_list:
            given = [builder.reshaped(each, [1, -1]) for each in given]
        zeros = np.zeros([1] * is_list + rows, helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
        node, along = copied(site.node), axis + is_list
        attributes.set_integer(node, "axis", along)
        given[0] = builder.op("Concat", [given[0], builder.constant(zeros, "rows")], {"axis": along})
        bounds = [builder.integers(each) for each in ([0], [length], [along])]
        result = builder.op("Slice", [builder.original(node, given), *bounds])
        builder.output(site.node.output[0], builder.reshaped(result, [-1]) if is_list else result)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    rank = len(shape) + is_list
    changed = ("of-more-rows", "axis-from-end", "negative-indices", "maybe-from-end")
    put: Traits = {**own, "rank": rank, **dict.fromkeys(changed, False)}
    moved: Operators = (("Reshape", {"rank": rank}), ("Reshape", {"rank": 1})) if is_list else ()
    operators: Operators = (
        *((("Mod", {"cuts-off": False}),) if is_counted else ()),
        *moved,
        ("Concat", {"inputs": 2, "numbers": own.get("numbers")}),
        (site.node.op_type, put),
        ("Slice", {"behind-window": False, "rank": rank}),
    )
    return Form("rows for its updates, taken off behind it", operators, write, why_not)


def counted_axis_forms(site: Site) -> Iterator[Form]:
    """Yield what picks along an axis that is counted from the begin."""
    yield axis_from_begin(site)


def single_forms(site: Site) -> Iterator[Form]:
    """Yield a Gather of one number as that of a list of one, of which the maximum is that number."""
    own, told = traits_of(site.scope, site.node) or {}, site.constant(1)
    if not own.get("gives-a-number"):
        return

    def write() -> Rewrite:
        builder = site.builder()
        data, index = (builder.input(name) for name in site.node.input)
        index = builder.reshaped(index, [1]) if told is None else builder.constant(told.reshape(1), "index")
        picked = builder.original(copied(site.node, without=("axis",)), [data, index])
        builder.output(site.node.output[0], builder.op("ReduceMax", [picked], {"keepdims": 0}))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    whole = {"axes-listed": False, "reduces-all": True, "reduced-axes": 1, "rank": 1, "keeps-axis": False}
    gather = {**own, "gives-a-number": False, "picks-a-list": True, "axis-from-end": False, "axis-written": False}
    yield Form("the maximum of a list of one", (("Gather", gather), ("ReduceMax", whole)), write)


def type_forms(site: Site) -> Iterator[Form]:
    """Yield a CastLike as a Cast to the type that it is to be like, of bytes by way of whole numbers of 32 bits too."""
    here, there = (site.elem_type(place) for place in (0, 1))

    def write(*types: int) -> Rewrite:
        builder = site.builder()
        value = builder.input(site.input_name(0))
        for each in types:
            value = builder.op("Cast", [value], {"to": each})
        builder.output(site.node.output[0], value)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    elements = elements_of(here)
    traits = {"elements": elements, "unsigned": here == TensorProto.UINT8, "changes-numbers": False}
    gives = numbers_of(site.scope, site.node.output[0])
    own = ("Cast", {**traits, "gives-signed-bytes": there == TensorProto.INT8, "gives": gives})
    yield Form("a Cast", (own,), lambda: write(there), None if there else Refusal("its type is not known"))
    if there and elements == "byte":
        behind = ("Cast", {**own[1], "elements": "integer", "unsigned": False})
        yield Form("two Casts", (("Cast", traits), behind), lambda: write(TensorProto.INT32, there))
