"""What moves elements, as what picks them from a row: in two axes no runtime guesses which one holds the channels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from padfix.graph import attributes
from padfix.operators.axis_order import ORDER, alike_axes, before_reshapes, is_put_back, order_of
from padfix.operators.constant_chains import is_constant
from padfix.operators.picking_traits import PICKING
from padfix.operators.reductions import reduced_axes
from padfix.operators.refusal import Refusal
from padfix.operators.slices import slice_amounts
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import SHAPE_AS_INPUT_SINCE, Form
from padfix.rules.build.node_trials import CUT_ALIKE, as_declared, trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Trait, Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_MOST_ELEMENTS = 1 << 20
"""Elements of an image that are picked one by one."""

_MATRIX = 2

_TRIED = (2, 3)
"""Images in place of a number of them that is left open: more than one, and not always as many."""

_NO_END = 1 << 30
"""A bound of a Slice that lies behind whatever number of images there are."""

_JOINED = frozenset(("Concat",))

_ON_IMAGES = frozenset(("BatchNormalization", "ConvTranspose", "InstanceNormalization", "LRN", "LogSoftmax", "Softmax"))
"""Operators that have one input of data, with its channels behind the batch."""

_FEWEST_AXES, _MOST_AXES = 3, 5

Shape = tuple[int, ...]


def moved_forms(site: Site) -> Iterator[Form]:
    """Yield what moves elements as a Gather from each image's row; as a Reshape where they stay in their order."""
    shapes = _shapes(site)
    is_open = isinstance(shapes, list) and not isinstance(shapes[0][0], int)
    counts = _counts(site) if is_open else _TRIED[:1]
    given = [] if isinstance(shapes, Refusal) else shapes
    tried = [[_images(shape, count) for shape in given] for count in counts]
    lengths = tried[0]
    why_not = shapes if isinstance(shapes, Refusal) else None
    if sum(math.prod(shape[1:]) for shape in tried[-1]) * (counts[-1] if is_open else 1) > _MOST_ELEMENTS:
        why_not = Refusal(f"it moves more than {_MOST_ELEMENTS} elements")
    if site.opset < SHAPE_AS_INPUT_SINCE:
        why_not = Refusal("this opset has no Reshape to a shape that is an input")

    def write() -> Rewrite | Refusal:
        moved = _moved(site, lengths)
        if isinstance(moved, Refusal):
            return moved
        if is_open and not all(_is_alike(site, lengths, moved, others) for others in tried[1:]):
            return Refusal("it needs to know how many images there are (--shape)")
        return _picked(site, lengths, moved, counts if is_open else ())

    results = [site.scope.type_of(name) for name in site.node.output if name]
    known = [each.shape for each in results if each is not None and each.shape is not None]
    names = [before_reshapes(site.scope, name) for name in site.node.input[: len(lengths)]]
    alike: dict[str, Trait | None] = {"alike": "none", "channels-last": False}
    operators: Operators = (
        *(("Reshape", {"rank": 2, **order_of(site.scope, name)}) for name in names),
        *((("Concat", {"alike": "none", "first-axis": False}),) if len(lengths) > 1 else ()),
        ("Gather", {"picks-a-list": True, "alike": "none", "axes": 2}),
        *(("Reshape", {"rank": len(each), **alike}) for each in known),
    )
    yield Form("a Gather from a row", operators, write, why_not)


def reshaped_forms(site: Site) -> Iterator[Form]:
    """Yield what takes axes of one element away, adds or moves them, as the Reshape that it is."""
    known, result = site.input_type(0), site.scope.type_of(site.node.output[0])
    before = None if known is None else known.shape
    after = None if result is None else result.shape
    shape = _written_shape(before or (), after or (), _first_changed(site, max(len(before or ()), len(after or ()))))
    why_not = None
    if before is None or after is None or shape.count(-1) > 1 or 0 in (*before, *after):
        why_not = Refusal("it needs the lengths of the input (--shape)")
    elif [each for each in before if each != 1] != [each for each in after if each != 1] or not _keeps_order(site):
        why_not = Refusal("it moves elements")
    elif site.opset < SHAPE_AS_INPUT_SINCE:
        why_not = Refusal("this opset has no Reshape to a shape that is an input")

    def write() -> Rewrite:
        builder = site.builder()
        builder.output(site.node.output[0], builder.reshaped(builder.input(site.input_name(0)), shape))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    own = traits_of(site.scope, site.node) or {}
    order = {name: own[name] for name in ORDER if name in own}
    yield Form("a Reshape", (("Reshape", {"rank": len(shape), **order}),), write, why_not)


def _first_changed(site: Site, rank: int) -> int:
    """Return the first axis that a Squeeze takes away or an Unsqueeze adds; 0 of others, or where that is not known."""
    listed = reduced_axes(site.scope, site.node) if site.node.op_type in ("Squeeze", "Unsqueeze") else None
    return min((axis % rank for axis in listed or () if rank), default=0)


def _written_shape(before: Sequence[Any], after: Sequence[Any], kept: int) -> list[int]:
    """Return what a Reshape is told: lengths, 0 for what is open and stands before all that changes, -1 for others.

    So many axes are ``kept`` whatever their lengths are called.
    """
    alike = [here is not None and here == there for here, there in zip(before, after, strict=False)]
    kept = max(kept, next((axis for axis, is_alike in enumerate(alike) if not is_alike), len(alike)))
    return [each if isinstance(each, int) else 0 if axis < kept else -1 for axis, each in enumerate(after)]


def _keeps_order(site: Site) -> bool:
    """Whether the node is no Transpose, or one of axes of one element alone."""
    known, perm = site.input_type(0), attributes.integers(site.node, "perm")
    if site.node.op_type != "Transpose":
        return True
    shape = () if known is None or known.shape is None else known.shape
    moved = [axis for axis in perm or reversed(range(len(shape))) if axis < len(shape) and shape[axis] != 1]
    return moved == sorted(moved)


def _shapes(site: Site) -> list[Sequence[Any]] | Refusal:
    """Return the shapes of the data that is moved; all lengths are known but how many images there are."""
    places = range(len(site.node.input)) if site.node.op_type in _JOINED else range(1)
    types = [site.input_type(place) for place in places]
    shapes: list[Sequence[Any]] = [each.shape for each in types if each is not None and each.shape and each.elem_type]
    lengths = [length for shape in shapes for length in shape[1:]]
    images = [shape[0] for shape in shapes]
    is_open = len({isinstance(each, int) for each in images}) > 1 or not all(isinstance(each, int) for each in lengths)
    if len(shapes) < len(types) or is_open or 0 in (*lengths, *images):
        return Refusal("it needs the lengths of the input (--shape)")
    others = range(len(places), len(site.node.input))
    if any(site.input_name(place) and site.constant(place) is None for place in others):
        return Refusal("what it moves where is only known at run time")
    return shapes


def _images(shape: Sequence[Any], count: int) -> Shape:
    return (shape[0] if isinstance(shape[0], int) else count, *shape[1:])


def _counts(site: Site) -> tuple[int, ...]:
    """Return the numbers of images to try: a Slice may take all of a few, and leave some of more than it counts to."""
    amounts = (slice_amounts(site.scope, site.node) or {}) if site.node.op_type == "Slice" else {}
    bounds = [abs(bound) for name in ("starts", "ends") for bound in amounts.get(name, ()) if abs(bound) < _NO_END]
    return (*_TRIED, *(max(bounds) + extra for extra in range(1, 3) if bounds and max(bounds) >= min(_TRIED)))


def _is_alike(site: Site, shapes: Sequence[Shape], moved: Sequence[np.ndarray], others: Sequence[Shape]) -> bool:
    """Whether an image of as many as the others picks the very elements of its own row that one of these picks."""
    again = _moved(site, others)
    if isinstance(again, Refusal):
        return False
    pairs = [(_by_image(here, shapes), _by_image(there, others)) for here, there in zip(moved, again, strict=True)]
    return all(here is not None and there is not None and np.array_equal(here, there) for here, there in pairs)


def _moved(site: Site, shapes: Sequence[Shape]) -> list[np.ndarray] | Refusal:
    """Return for each result which elements it holds, counted through all the data."""
    from onnx.reference import ReferenceEvaluator  # imported late: linting needs it where something is written only

    node, values, first = copied(site.node), [], 0
    for place, name in enumerate(site.node.input):
        value = site.constant(place) if name and place >= len(shapes) else None
        if place < len(shapes):
            value = np.arange(first, first + math.prod(shapes[place]), dtype=np.int64).reshape(shapes[place])
            first += value.size
            node.input[place] = f"data_{place}"
        if value is not None:
            values.append(numpy_helper.from_array(value, node.input[place]))
    outputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in node.output if name]
    graph = helper.make_graph([node], "moved", [], outputs, values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", site.opset)])
    try:
        return [np.asarray(each) for each in ReferenceEvaluator(model).run(None, {})]
    except Exception as error:
        return Refusal(f"what it moves where can't be told ({error})")


def _picked(site: Site, shapes: Sequence[Shape], moved: Sequence[np.ndarray], counts: Sequence[int]) -> Rewrite:
    """Return the Gather; tried with so many images as ``counts`` has where their number is left open."""
    rows = [_by_image(each, shapes) for each in moved]
    is_by_image = all(each is not None for each in rows)
    images = shapes[0][0] if is_by_image else 1
    builder = site.builder()
    given = [builder.input(name) for name in site.node.input[: len(shapes)]]
    whole = sum(math.prod(shape) for shape in shapes) // images
    joined: Any = None
    names = [name for name in site.node.output if name]
    for name, places, row in zip(names, moved, rows, strict=True):
        order = row if is_by_image and row is not None else places.reshape(-1)
        result = given[0]
        if len(given) > 1 or not np.array_equal(order, np.arange(whole)):
            if joined is None:
                joined = _row(builder, given, shapes, images)
            result = joined
            if not np.array_equal(order, np.arange(whole)):
                result = builder.op("Gather", [joined, builder.constant(order, "places")], {"axis": 1})
        first = 0 if counts else places.shape[0] if places.ndim else 1
        shape = [first, *places.shape[1:]] if places.ndim else []
        builder.output(name, builder.reshaped(result, shape))
    cases = tuple(as_declared(site, count) for count in counts) or (as_declared(site),)
    return Rewrite(builder.build(), cases, exact=True)


def _row(builder: FragmentBuilder, given: Sequence[Any], shapes: Sequence[Shape], images: int) -> Any:
    flat = [
        builder.reshaped(value, [-1, math.prod(shape) // images]) for value, shape in zip(given, shapes, strict=True)
    ]
    return flat[0] if len(flat) == 1 else builder.op("Concat", flat, {"axis": 1})


def _by_image(places: np.ndarray, shapes: Sequence[Shape]) -> np.ndarray | None:
    """Return where the elements of an image lie in its own row, where every image holds those of its own alone."""
    images = shapes[0][0]
    if any(shape[0] != images for shape in shapes) or not places.ndim or places.shape[0] != images:
        return None
    sizes = [math.prod(shape) // images for shape in shapes]
    table = np.concatenate([np.repeat(np.arange(images), size) for size in sizes])
    own = np.concatenate([np.tile(np.arange(size) + sum(sizes[:at]), images) for at, size in enumerate(sizes)])
    rows = places.reshape(images, -1)
    if (table[rows] != np.arange(images)[:, None]).any() or (own[rows] != own[rows[:1]]).any():
        return None
    return np.asarray(own[rows[0]])


def listed_forms(site: Site) -> Iterator[Form]:
    """Yield what picks by indices of other axes as what picks by a list of them; by integers of 64 bits; and first."""
    yield _listed(site, is_long=False)
    own = traits_of(site.scope, site.node) or {}
    if own.get("by-integers-of-32-bits"):
        yield _listed(site, is_long=True)
    if not own.get("first-axis"):
        yield _along_first(site, own)


def _along_first(site: Site, own: Traits) -> Form:
    """Return a Gather along the first axis between Transposes that bring its axis there, and back."""
    known, picks = site.input_type(0), site.input_type(1)
    rank = 0 if known is None or known.rank is None else known.rank
    axis = (attributes.integer(site.node, "axis", 0) or 0) % max(rank, 1)
    is_list = picks is not None and picks.rank == 1

    def write() -> Rewrite:
        builder = site.builder()
        data, indices = (builder.input(name) for name in site.node.input)
        turned = builder.op("Transpose", [data], {"perm": [axis, *(each for each in range(rank) if each != axis)]})
        result = builder.original(copied(site.node, without=("axis",)), [turned, indices])
        if is_list:
            order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
            result = builder.op("Transpose", [result], {"perm": order})
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    is_known = rank and picks is not None and picks.rank in (0, 1)
    why_not = None if is_known else Refusal("how many axes its inputs have is not known, or it picks by a matrix")
    gather = {**own, "first-axis": True, "axis-from-end": False, "axis-written": False}
    operators: Operators = (("Transpose", {"rank": rank}), ("Gather", gather))
    return Form("its axis first, and back", operators, write, why_not)


def _listed(site: Site, *, is_long: bool) -> Form:
    """Return a Gather by a list of indices, in 64 bits where they are wanted ``is_long``."""
    indices, given, result = site.constant(1), site.input_type(1), site.scope.type_of(site.node.output[0])
    lengths = None if result is None else result.lengths
    is_list = given is not None and given.rank == 1

    def write() -> Rewrite:
        builder = site.builder()
        data, picks = (builder.input(name) for name in site.node.input)
        picks = builder.op("Cast", [picks], {"to": int(TensorProto.INT64)}) if is_long else picks
        if is_list and is_long:
            return Rewrite(builder.ending_in(copied(site.node), [data, picks]), trials_of(site), exact=True)
        listed = builder.reshaped(picks, [-1]) if indices is None else builder.constant(indices.reshape(-1), "indices")
        picked = builder.original(copied(site.node), [data, listed])
        builder.output(site.node.output[0], picked if is_list else builder.reshaped(picked, lengths or ()))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    changed = {"picks-a-matrix": False, "gives-many-axes": False, "by-list-of-caller": False}
    own: Traits = {**(traits_of(site.scope, site.node) or {}), **changed}
    if is_long:
        own = {**own, "by-integers-of-32-bits": False, "by-list-of-caller": is_list and own.get("by-list-of-caller")}
    why_not = None
    if given is None or not given.rank:
        why_not = Refusal("it picks one element, or by how many is not known")
    elif not is_list and (lengths is None or 0 in lengths):
        why_not = Refusal("it needs all its lengths (--shape)")
    back: Traits = {"rank": len(lengths or ()), "alike": alike_axes([lengths or ()]), "channels-last": False}
    before: Operators = () if indices is not None else (("Reshape", {"rank": 1, "numbers": "integer"}),)
    behind: Operators = () if is_list else (("Reshape", back),)
    name = "a list of what it picks"
    if is_long:
        before = (
            ("Cast", {"elements": "integer", "gives": "integer", "changes-type": True}),
            *(() if is_list else before),
        )
        name += ", in 64 bits"
    return Form(name, (*before, ("Gather", own), *behind), write, why_not)


def behind_convolution(site: Site) -> Iterator[Form]:
    """Yield a node on what a convolution with one tap of 1 a channel gives, which is known to be an image.

    That is before what works on images, and before each sum that is read in the order of the model.
    """
    own = traits_of(site.scope, site.node) or {}
    back = [place for place, name in enumerate(site.node.input) if name and is_put_back(site.scope, name)]
    places = back or ([0] if site.node.op_type in _ON_IMAGES else [])
    if not places:
        return
    types = {place: site.input_type(place) for place in places}
    shapes = {place: () if known is None or known.shape is None else known.shape for place, known in types.items()}

    def write() -> Rewrite:
        builder = site.builder()
        given = [builder.input(name) for name in site.node.input]
        for place, shape in shapes.items():
            given[place] = known_as_image(builder, given[place], shape, site.elem_type(place))
        is_whole = back or site.node.op_type in CUT_ALIKE  # there is a one for each channel
        trials = (as_declared(site),) if is_whole else trials_of(site)
        return Rewrite(builder.ending_in(copied(site.node), given), trials)

    why_not = None
    if any(
        not _FEWEST_AXES <= len(shape) <= _MOST_AXES
        or not isinstance(shape[1], int)
        or site.elem_type(place) not in FLOATS
        for place, shape in shapes.items()
    ):
        why_not = Refusal("its data are no floats, or how many channels they have is not known")
    elif not back and (own.get("channels-last") is not False or own.get("alike") == "all"):
        why_not = Refusal("its data comes as images, or all its lengths are equal")
    is_moved = not back or bool(own.get("channels-last"))
    changed = {"channels-last": is_moved, "put-back": False, "orders-differ": not is_moved}
    operators: Operators = ((site.node.op_type, {**own, **changed}),)
    yield Form("a convolution with ones before it", operators, write, why_not)


def known_as_image(builder: FragmentBuilder, data: Any, shape: Sequence[Any], elem_type: int) -> Any:
    """Return what a convolution with one tap of 1 a channel gives, which is the data; a pool where those are open."""
    channels, spatial = shape[1], [1] * (len(shape) - 2)
    if not isinstance(channels, int):
        return builder.op("AveragePool", [data], {"kernel_shape": spatial})
    ones = np.ones((channels, 1, *spatial), helper.tensor_dtype_to_np_dtype(elem_type))
    return builder.op("Conv", [data, builder.constant(ones, "ones")], {"group": channels, "kernel_shape": spatial})


def behind_reshapes(site: Site) -> Iterator[Form]:
    """Yield the node on what a Reshape to its own shape gives, which has its axes in the order of the model."""
    own = traits_of(site.scope, site.node) or {}
    types = {
        place: known
        for place, name in enumerate(site.node.input)
        if not is_constant(site.scope, name) and (known := site.input_type(place)) is not None and known.rank
    }
    shapes = {place: _copying(known.shape or ()) for place, known in types.items() if (known.rank or 0) >= _FEWEST_AXES}

    def write() -> Rewrite:
        builder = site.builder()
        given = [builder.input(name) for name in site.node.input]
        for place, shape in shapes.items():
            given[place] = builder.reshaped(given[place], shape)
        is_whole = own.get("orders-differ") and site.node.op_type not in PICKING  # whose indices are no mere data
        cases = (as_declared(site),) if is_whole else trials_of(site)
        return Rewrite(builder.ending_in(copied(site.node), given), cases)

    why_not = None
    if any(each.shape is None or 0 in each.shape for each in types.values()):
        why_not = Refusal("it has no elements, or how many axes it has is not known")
    elif own.get("channels-last") is False and not own.get("orders-differ"):
        why_not = Refusal("its data has its axes in that order")
    reshapes: Operators = tuple(
        ("Reshape", {"rank": len(shape), "alike": alike_axes([shape])}) for shape in shapes.values()
    )
    ordered = {**own, **dict.fromkeys(("channels-last", "orders-differ", "put-back"), False)}
    if own.get("put-back"):  # Behind a Reshape, the lengths that are read are compared, and not those of the result.
        ordered["alike"] = alike_axes(list(shapes.values()))
    if all((known.rank or 0) >= _FEWEST_AXES for known in types.values()):
        ordered |= {"spreads-alike": False} if "spreads-alike" in own else {}
    operators: Operators = (*reshapes, (site.node.op_type, ordered))
    yield Form("its data behind a Reshape", operators, write, why_not)


def _copying(shape: Sequence[Any]) -> tuple[int, ...]:
    """Return a shape as a Reshape to itself is told it, which copies what is open."""
    return tuple(each if isinstance(each, int) else 0 for each in shape)


def product_from_left(site: Site) -> Iterator[Form]:
    """Yield a product of a matrix with planes as one of all their columns with the matrix turned."""
    matrix, planes, result = site.constant(0), site.input_type(1), site.scope.type_of(site.node.output[0])
    before = None if planes is None else planes.lengths
    after = None if result is None else result.lengths

    def write() -> Rewrite:
        assert matrix is not None and before is not None and after is not None
        builder = site.builder()
        columns = builder.reshaped(_turned(builder, builder.input(site.input_name(1)), before), [-1, before[-2]])
        product = builder.op("MatMul", [columns, builder.constant(np.ascontiguousarray(matrix.T), "turned")])
        given = (*after[:-2], after[-1], after[-2])
        builder.output(site.node.output[0], builder.reshaped(_turned(builder, product, given), after))
        return Rewrite(builder.build(), (as_declared(site),))

    why_not = None
    if matrix is None or matrix.ndim != _MATRIX or before is None or after is None or len(before) <= _MATRIX:
        why_not = Refusal("it is no product of a constant matrix with planes, or lengths are not known (--shape)")
    elif 0 in before or math.prod(before) > _MOST_ELEMENTS or math.prod(after) > _MOST_ELEMENTS:
        why_not = Refusal(f"it has no elements, or more than {_MOST_ELEMENTS}")
    alike: Traits = {"alike": alike_axes([before or (), after or ()]), "channels-last": False}
    operators: Operators = (
        ("Reshape", {"rank": _MATRIX, **alike}),
        ("Gather", {"picks-a-list": True}),
        ("MatMul", {"rank": _MATRIX, "by-a-matrix": True, "list-first": False, "list-second": False, "alike": "none"}),
        ("Reshape", {"rank": len(after or ()), **alike}),
    )
    yield Form("all columns in one matrix", operators, write, why_not)


def _turned(builder: FragmentBuilder, value: Any, shape: Shape) -> Any:
    """Return a row of the elements of planes of this shape, column by column."""
    order = np.arange(math.prod(shape)).reshape(shape).swapaxes(-1, -2).reshape(-1)
    row = builder.reshaped(value, [1, order.size])
    return builder.op("Gather", [row, builder.constant(order, "places")], {"axis": 1})
