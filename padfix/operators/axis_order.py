"""Which axes of data are alike in length, and in which order a runtime holds them that moves channels to the end.

onnx2tf tells by the lengths alone whether it has moved the channels of what it reads: where all of them are equal, or
where a Transpose moves the batch and two are, it guesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import product
from typing import TypeVar

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope, normal_domain
from padfix.operators.data_order import CHANNELS
from padfix.operators.elementwise import ELEMENTWISE
from padfix.operators.table import PADDED, TRANSPOSED
from padfix.operators.taken_axes import LEAST_RANK, leaves_order_of_images, takes_channels
from padfix.targets.traits import TRAITS, Traits

ORDER = ("alike", "channels-last")
"""The traits that :func:`order_traits` gives, which an operator that stands for another one has as well."""

_MATRIX = 2

_OF_MATRICES = ("Concat", "Transpose")
"""Operators that take the axes of a square matrix for one another; a Concat where it joins along the first."""

_AS_WRITTEN = frozenset(
    (
        *("Compress", "CumSum", "Einsum", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Gemm"),
        *("MatMul", "OneHot", "Reshape", "Squeeze", "Tile", "TopK", "Transpose", "Unsqueeze"),
    )
)
"""Operators that give their axes in the order of the model; of images some as :func:`leaves_order_of_images` says."""

_PRODUCTS = ("Einsum", "MatMul")
"""Operators whose factors are apart: each is read in its own order."""

_BY_PLACE = (*_PRODUCTS, "GRU", "LSTM", "RNN")
"""Operators that are wrong on what is moved, whatever its lengths."""

_ALONG_AN_AXIS = ("LogSoftmax", "Softmax")

_ON_PRODUCTS = ELEMENTWISE | {"LayerNormalization", "Softmax"}
"""Operators that are right on what is computed of products element by element; a Softmax along the last axis.

Others, a LogSoftmax among them, are on what a product gives itself.
"""

_POOLED = frozenset(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"))

NONE, ALL = "none", "all"
RANKS = (NONE, "others", "channels", ALL)

Alike = str | frozenset[str]
"""Which axes are alike, or those of :data:`RANKS` that it may be where lengths are left open."""

_COLOURS = 4
"""The most channels of a photograph."""

_MOST_OPEN = 4
"""Open lengths that are asked what they may be; data has no more, but for a batch of lists of volumes."""

_Trait = TypeVar("_Trait", str, bool)

MOVED, AS_WRITTEN, PUT_BACK = "moved", "as written", "put back"
"""Orders of axes: of images; of the model; and of the model again, which what reads them takes for that of images."""

_NEAR = 64  # tensors that are looked at before data counts as far from any such operator


def order_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return which axes of what a node reads and gives are alike, and whether its data has its channels at the end."""
    shapes = _shapes(scope, node)
    alike = _alike_of(scope, node.input[0]) if node.op_type == "Reshape" else _most_alike(shapes)
    if node.op_type != "Transpose" and ALL in alike and _is_of_products(scope, node):
        alike = _known_as_written(alike)
    if node.op_type in _OF_MATRICES and attributes.integer(node, "axis", 0) in (0, -_MATRIX):
        alike = _most(alike, *(_alike_in(each) for each in shapes if len(each) == _MATRIX))
    is_moved_anyway = _works_on_images(node) or node.op_type in _BY_PLACE
    cases = [False] if is_moved_anyway else _are_equal(alike)
    data = _data(scope, node)
    # Wherever the elements lie that it puts, a ScatterND counts their places in the order of its data.
    if node.op_type == "ScatterND" and data[:1] == [node.input[0]]:
        data = data[:1]
    orders, *others = (_orders(scope, data, is_equal) for is_equal in cases)
    # Of all but products what is not moved decides.
    is_by_factor = node.op_type in _PRODUCTS
    are_moved = {bool(each - {AS_WRITTEN}) if is_by_factor else AS_WRITTEN not in each for each in (orders, *others)}
    return {
        "alike": _one_of(alike),
        "channels-last": _one_of(are_moved),
        "orders-differ": len(orders) > 1 and _has_several_orders(scope, node),
        "put-back": PUT_BACK in orders,
    }


def _has_several_orders(scope: Scope, node: NodeProto) -> bool:
    """Whether anything that a node computes with or gives may have an axis of channels and others behind it."""
    types = [scope.type_of(name) for name in (*_data(scope, node), *node.output) if name]
    return any(each is None or each.rank is None or each.rank >= LEAST_RANK for each in types)


def alike_axes(shapes: Sequence[Sequence[Dimension]]) -> Alike:
    """Return which axes of data of these shapes are alike, as :func:`order_traits` does of a node."""
    return _one_of(_most_alike(shapes))


def _alike_of(scope: Scope, name: str) -> frozenset[str]:
    known = scope.type_of(name)
    alike = frozenset((NONE,)) if known is None or known.shape is None else _alike(known.shape)
    return _known_as_written(alike) if _is_product(scope, name) else alike


def _known_as_written(alike: AbstractSet[str]) -> frozenset[str]:
    """Return which axes are alike that can be taken for one another where the order of all is known."""
    return frozenset("others" if each == ALL else each for each in alike)


def _is_of_products(scope: Scope, node: NodeProto) -> bool:
    """Whether all that a node reads is what products give, or what is computed of that element by element.

    What is computed of it otherwise, and moved or picked then, is taken for moved.
    """
    left, seen = _data(scope, node), set[str]()
    known = scope.type_of(node.input[0]) if node.input else None
    last = (known.rank or 0) - 1 if known is not None else -1
    if node.op_type in _ALONG_AN_AXIS and attributes.integer(node, "axis", -1) not in (-1, last):
        return False
    if normal_domain(node.domain) or node.op_type not in _ON_PRODUCTS:
        return bool(left) and all(_is_product(scope, name) for name in left)
    is_any = bool(left)
    while left and len(seen) < _NEAR:
        name = left.pop()
        producer = scope.own_producer(name)
        if name in seen or _is_product(scope, name):
            continue
        seen.add(name)
        if producer is None or normal_domain(producer.domain) or producer.op_type not in ELEMENTWISE:
            return False
        left += _data(scope, producer)
    return is_any and not left


def _most_alike(shapes: Sequence[Sequence[Dimension]]) -> frozenset[str]:
    """Return what the most alike of several shapes may be."""
    return _most(*map(_alike, shapes))


def _most(*found: frozenset[str]) -> frozenset[str]:
    """Return what the most of one of each may be, one after the other: a Concat may have many."""
    most = {NONE}
    for each in found:
        most = {max(pair, key=RANKS.index) for pair in product(most, each)}
    return frozenset(most)


def _one_of(values: AbstractSet[_Trait]) -> _Trait | frozenset[_Trait]:
    """Return a trait that is one of several; the one itself where there are no others."""
    return next(iter(values)) if len(values) == 1 else frozenset(values)


def may_be_equal(traits: Traits) -> bool:
    """Whether all lengths behind the batch are, or may be, equal by what :func:`order_traits` gives."""
    alike = traits.get("alike")
    return ALL in alike if isinstance(alike, frozenset) else alike == ALL


def _is_product(scope: Scope, name: str) -> bool:
    producer = scope.own_producer(name)
    return producer is not None and producer.op_type == "MatMul" and not normal_domain(producer.domain)


def before_reshapes(scope: Scope, name: str) -> str:
    """Return the data of which one Reshape, or several one behind the other, make what is called ``name``."""
    while (producer := scope.own_producer(name)) is not None:
        if normal_domain(producer.domain) or producer.op_type != "Reshape":
            break
        name = producer.input[0]
    return name


def order_of(scope: Scope, name: str) -> Traits:
    """Return what :func:`order_traits` says of an operator that reads this data alone, and gives what is not alike."""
    alike = _alike_of(scope, name)
    are_moved = {AS_WRITTEN not in _orders(scope, [name], is_equal) for is_equal in _are_equal(alike)}
    return {"alike": _one_of(alike), "channels-last": _one_of(are_moved)}


def _are_equal(alike: AbstractSet[str]) -> list[bool]:
    """Return whether all lengths may be unequal, and whether they may be equal: one or both, the former first."""
    return [*([] if alike == {ALL} else [False]), *([True] if ALL in alike else [])]


def _alike(shape: Sequence[Dimension]) -> frozenset[str]:
    """Return which axes of data of a shape are alike, or may be where lengths are open (or 0, as in a Reshape)."""
    return _alike_in(shape) if len(shape) >= LEAST_RANK else frozenset((NONE,))


def _alike_in(shape: Sequence[Dimension]) -> frozenset[str]:
    return _alike_with(tuple(each if isinstance(each, int) and each > 0 else None for each in shape))


@cache
def _alike_with(shape: tuple[int | None, ...]) -> frozenset[str]:
    """Return which axes may be alike: open lengths, given as None, are as others are, and as none is."""
    given = sorted({each for each in shape if each is not None and each > 1})
    unlike = range(max((*given, 1)) + 1, max((*given, 1)) + 1 + len(shape))
    channels = shape[CHANNELS] if len(shape) > CHANNELS else None
    open_axes = [axis for axis, each in enumerate(shape) if each is None]
    may_be = (*given, *unlike[: len(open_axes)])
    found = set()
    for lengths in product(may_be, repeat=min(len(open_axes), _MOST_OPEN)):
        filled = dict(zip(open_axes, lengths, strict=False))
        # No image is as small as it has colours.
        if not any(axis > CHANNELS and each == channels and each <= _COLOURS for axis, each in filled.items()):
            told = dict(enumerate(unlike)) | {axis: each for axis, each in enumerate(shape) if each} | filled
            found.add(_alike_when(list(told.values())))
    return frozenset(found)


def _alike_when(shape: Sequence[int]) -> str:
    several = [each for each in shape if each > 1]
    if len(set(several)) == len(several):
        return NONE
    channels, *places = shape[CHANNELS:]
    if channels == 1 or channels not in places:
        return "others"
    return ALL if set(places) == {channels} else "channels"


def _shapes(scope: Scope, node: NodeProto) -> list[Sequence[Dimension]]:
    # What a window gives is known to have its channels at the end.
    given = () if _works_on_images(node) else node.output
    types = [scope.type_of(name) for name in (*_data(scope, node), *given) if name]
    return [each.shape for each in types if each is not None and each.shape is not None]


def _data(scope: Scope, node: NodeProto) -> list[str]:
    given = [name for name in node.input if name and not scope.is_initializer(name)]
    producers = [(name, scope.producer(name)) for name in given]
    return [name for name, producer in producers if producer is None or producer.op_type != "Constant"]


def is_one_first(scope: Scope, node: NodeProto) -> bool:
    """Whether a constant of one element with all the axes of the result is what a node reads first."""
    first, result = scope.constant(node.input[0]), scope.type_of(node.output[0])
    rank = None if result is None else result.rank
    return first is not None and first.size == 1 and rank is not None and first.ndim >= rank > 1


def reads_one_of_more_axes(scope: Scope, node: NodeProto) -> bool:
    """Whether a constant of one element has more axes than the data that it is computed with."""
    told = [scope.constant(name) for name in node.input if name]
    ranks = [scope.type_of(name) for name in node.input if name and scope.constant(name) is None]
    rank = max((each.rank or 0 for each in ranks if each is not None), default=0)
    return bool(rank) and any(each is not None and each.size == 1 and each.ndim > rank for each in told)


def compares_constant_first(scope: Scope, node: NodeProto) -> bool:
    """Whether a constant of several elements, but not of the whole shape, is what a node reads first."""
    first, result = scope.constant(node.input[0]), scope.type_of(node.output[0])
    shape = None if result is None else result.shape
    return first is not None and first.size > 1 and len(node.input) > 1 and first.shape != shape


def spread_of_constants(scope: Scope, node: NodeProto) -> str | None:
    """Return how the constants that a node reads take the shape of what it gives; None where that is not known.

    "none" have it already, as all have that of fewer axes than images; "number" is one element without axes,
    "one" such an element with axes, "image" one image where their number is open, "channels" one a channel written with
    all axes, "others" any else.
    """
    result = scope.type_of(node.output[0])
    shape = None if result is None else result.shape
    known = [None if name in _data(scope, node) else scope.type_of(name) for name in node.input]
    given = [each.shape for each in known if each is not None]
    if not given or (shape is not None and len(shape) < LEAST_RANK):
        return "none"
    if shape is None or None in given:
        return None
    found = [_spread(each, shape) for each in given if each is not None]
    return max(found, key=TRAITS["constants"].index)


def _spread(given: Sequence[Dimension], shape: Sequence[Dimension]) -> str:
    several = [axis - len(given) for axis, length in enumerate(given) if length != 1]
    if not several:
        return "one" if given else "number"
    if list(given) == [shape[0] if isinstance(shape[0], int) else 1, *shape[1:]]:
        return "none" if isinstance(shape[0], int) else "image"
    return "channels" if len(given) == len(shape) and several == [CHANNELS - len(shape)] else "others"


def holds_channels_last(scope: Scope, name: str, shape: Sequence[Dimension]) -> bool:
    """Whether data of this shape comes from images or what works on them, and nothing between orders the axes."""
    return AS_WRITTEN not in _orders(scope, [name], _alike(shape) == {ALL})


def order_of_axes(scope: Scope, node: NodeProto, axes: Sequence[int]) -> list[int]:
    """Return the places of axes in the order in which a runtime has them that moves the channels of images to the end.

    What orders the axes before the node, as a Reshape does, leaves them as they are.
    """
    known = scope.type_of(node.input[0])
    shape = () if known is None or known.shape is None else known.shape
    is_moved = len(shape) > CHANNELS + 1 and holds_channels_last(scope, node.input[0], shape)
    lies = {CHANNELS: len(shape)} if is_moved else {}
    return sorted(range(len(axes)), key=lambda place: lies.get(axes[place], axes[place]))


def places_are_moved(scope: Scope, node: NodeProto) -> bool:
    """Whether the places of a GridSample are computed, and have their axes in another order than the model."""
    known = scope.type_of(node.input[1])
    shape = () if known is None or known.shape is None else known.shape
    return node.input[1] in _data(scope, node) and holds_channels_last(scope, node.input[1], shape)


def has_fewer_axes(scope: Scope, node: NodeProto) -> bool | None:
    """Whether computed data that are no number have fewer axes than the result of a node; None if that is not known."""
    result = scope.type_of(node.output[0])
    types = [scope.type_of(name) for name in _data(scope, node)]
    ranks = [None if each is None else each.rank for each in (result, *types)]
    if ranks[0] is None or None in ranks:
        return None
    return any(each is not None and 0 < each < ranks[0] for each in ranks)


def moves_fewer_axes(scope: Scope, node: NodeProto) -> bool:
    """Whether computed data whose channels are moved have fewer axes than the result of a node."""
    result = scope.type_of(node.output[0])
    rank = 0 if result is None or result.rank is None else result.rank
    types = {name: scope.type_of(name) for name in _data(scope, node)}
    fewer = [name for name, known in types.items() if known is not None and LEAST_RANK <= (known.rank or 0) < rank]
    return any(_orders(scope, [name], False) != {AS_WRITTEN} for name in fewer)


def spreads_data(scope: Scope, node: NodeProto) -> bool:
    """Whether constants spread what a node computes with, unless what orders axes gives it and all have all axes."""
    result, data = scope.type_of(node.output[0]), _data(scope, node)
    shape = None if result is None else result.shape
    types = {name: scope.type_of(name) for name in node.input if name}
    shapes = {name: () if known is None or known.shape is None else known.shape for name, known in types.items()}
    if shape is None or len(shape) < LEAST_RANK or not data or not all(shapes[name] for name in data):
        return False
    wide = [(*[1] * (len(shape) - len(shapes[name])), *shapes[name]) for name in data]
    if all(length == 1 or any(each[axis] != 1 for each in wide) for axis, length in enumerate(shape)):
        return False
    are_ordered = _orders(scope, data, False) == {AS_WRITTEN}
    return not are_ordered or any(0 < len(each) < len(shape) for each in shapes.values())


def lies_before_alike(scope: Scope, name: str, axis: int) -> bool | None:
    """Whether another axis of data is as long as one, and lies behind it in a runtime that moves channels to the end.

    None where that depends on a length that is not known.
    """
    known = scope.type_of(name)
    shape = None if known is None else known.shape
    if shape is None:
        return None
    axes = list(range(len(shape)))
    if len(shape) >= LEAST_RANK and holds_channels_last(scope, name, shape):
        axes = [0, *axes[CHANNELS + 1 :], CHANNELS]
    at = axes.index(axis % max(len(shape), 1)) if shape else 0
    behind = [shape[each] for each in axes[at + 1 :]]
    length = shape[axes[at]] if shape else 1
    told = [None if not isinstance(each, int) or not isinstance(length, int) else each == length for each in behind]
    return False if length == 1 else True if True in told else None if None in told else False


def may_be_moved(scope: Scope, names: Sequence[str]) -> bool:
    """Whether some of these data have, or may have, the order of images, and are not put back."""
    return MOVED in _orders(scope, names, False)


def is_put_back(scope: Scope, name: str) -> bool:
    """Whether data is moved, and then put in the order of the model again, of which what reads it does not know."""
    return PUT_BACK in _orders(scope, [name], False)


def _orders(scope: Scope, names: Sequence[str], is_equal: bool) -> set[str]:
    """Return in which orders the axes of data are: of images, of what orders the axes, or of a sum, which undoes that.

    An image of which all lengths are equal is read as it is by most that does not work on images; they may be where
    those of the result are (``is_equal``).
    """
    found, seen, left = set[str](), set[tuple[str, str]](), [(name, MOVED) for name in names]
    while left and len(seen) < _NEAR:
        name, moved = each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        producer = scope.own_producer(name)
        if producer is None:
            is_read_so = is_equal and ALL in _alike_of(scope, name)
            found |= set() if scope.constant(name) is not None else {AS_WRITTEN if is_read_so else moved}
            continue
        if leaves_order_of_images(scope, producer):
            left.append((producer.input[0], moved))
        elif _is_as_written(producer) or takes_channels(scope, producer):
            found.add(AS_WRITTEN)
        elif _works_on_images(producer):
            found.add(moved)
        else:
            moved = PUT_BACK if _puts_back(scope, producer) else moved
            left += [(data, moved) for data in _data(scope, producer)]
    return found


def _puts_back(scope: Scope, node: NodeProto) -> bool:
    """Whether a node is a sum that gives its axes in the order of the model: of what both has them all.

    A number without axes, which is added to what another node gives, leaves them as they are.
    """
    known = scope.type_of(node.output[0])
    if node.op_type != "Add" or normal_domain(node.domain) or known is None or (known.rank or 0) < LEAST_RANK:
        return False
    types = [scope.type_of(name) for name in node.input]
    has_number = any(each is not None and each.rank == 0 for each in types)
    if has_number and scope.producer(node.input[0]) is not None:
        return False
    return known.shape is None or len(set(known.shape[CHANNELS:])) > 1


def _is_as_written(node: NodeProto) -> bool:
    return not normal_domain(node.domain) and node.op_type in _AS_WRITTEN


def _works_on_images(node: NodeProto) -> bool:
    return (normal_domain(node.domain), node.op_type) in PADDED | TRANSPOSED or node.op_type in _POOLED
