"""Sums whose axes a runtime that puts them back by their lengths takes for one another.

And what has fewer axes than it is computed with: constants that are read first, and what nodes give.

onnx2tf gives some sums in the order of the model: it tries orders of each term and takes that in which the most lengths
are where the result has them. Data of one axis fit as well along any other that is as long, and volumes whose first two
lengths behind the batch come again in the same order fit in an order that is none of the model's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from onnx import NodeProto

from padfix.graph.scopes import Dimension, Scope
from padfix.operators.axis_order import may_be_moved
from padfix.operators.taken_axes import LEAST_RANK
from padfix.targets.traits import Traits

_VOLUME = 5
"""Axes of a batch of volumes."""

_MOST_TRIED = _VOLUME
"""The most axes of what is put back: of more, channels are not moved to the end."""


def spreads_along_alike(scope: Scope, node: NodeProto) -> bool | None:
    """Whether the axes of a sum are taken for one another where they are put back in the order of the model.

    None where a length that is left open decides.
    """
    types = [scope.type_of(name) for name in (*node.output[:1], *node.input)]
    shapes = [() if known is None or known.shape is None else known.shape for known in types]
    result = shapes[0]
    # Of three axes an order that is not that of images is none but that of the model.
    if len(result) <= LEAST_RANK or not may_be_moved(scope, node.input):
        return False
    if (comes_again := _comes_again(result)) or any(scope.constant(name) is not None for name in node.input):
        return comes_again
    if any(len(each) != len(result) for each in shapes):
        return comes_again
    found = [comes_again, *(_fits_elsewhere(each, result) for each in shapes[1:])]
    are_moved = [may_be_moved(scope, [name]) for name in node.input]
    found.append(_is_put_back_otherwise(shapes[1:], result, are_moved))
    return True if True in found else None if None in found else False


def _comes_again(result: Sequence[Dimension]) -> bool | None:
    """Return whether the first two lengths of a volume behind its batch, which are unlike, are the last two as well."""
    if len(result) != _VOLUME:
        return False
    _, channels, depth, height, width = result
    told = (_are_equal(channels, height), _are_equal(depth, width))
    if False in told or _are_equal(channels, depth):
        return False
    return True if all(told) else None


def _is_put_back_otherwise(
    shapes: Sequence[Sequence[Dimension]], result: Sequence[Dimension], are_moved: Sequence[bool]
) -> bool:
    """Return whether the first orders of both terms that fit the result leave an axis elsewhere; open ones are unlike.

    Each term is tried as it is, and with its channels moved once more to the end, or back from there; those first in
    which the most elements are along axes where the result has as many.
    """
    rank = len(result)
    if rank > _MOST_TRIED or len(shapes) != 2:
        return False
    names = [each for shape in (result, *shapes) for each in shape if not isinstance(each, int)]
    known = max((each for each in result if isinstance(each, int)), default=1)
    told = {name: known + 1 + place for place, name in enumerate(dict.fromkeys(names))}
    lengths = [[each if isinstance(each, int) else told[each] for each in shape] for shape in (result, *shapes)]
    given, *terms = lengths
    moved = [0, *range(2, rank), 1]
    held = [moved if is_moved else list(range(rank)) for is_moved in are_moved]
    if [_longest(pair) for pair in zip(*_placed(terms, held), strict=True)] == given:
        return False
    for orders in product(*(_tried(term, order, given) for term, order in zip(terms, held, strict=True))):
        placed = _placed(terms, orders)
        fits = all(1 in pair or len(set(pair)) == 1 for pair in zip(*placed, strict=True))
        if fits and [_longest(pair) for pair in zip(*placed, strict=True)] == given:
            return any(
                axis != place and term[axis] != 1
                for term, order in zip(terms, orders, strict=True)
                for place, axis in enumerate(order)
            )
    return False


def _placed(terms: Sequence[Sequence[int]], orders: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[term[axis] for axis in order] for term, order in zip(terms, orders, strict=True)]


def _longest(pair: Sequence[int]) -> int:
    return next((each for each in pair if each != 1), 1)


def _tried(term: Sequence[int], held: Sequence[int], result: Sequence[int]) -> Iterator[list[int]]:
    """Yield the orders in which a term is tried whose axes are held in one."""
    rank = len(term)
    tried = [list(held), [held[0], *held[2:], held[1]], [held[0], held[-1], *held[1:-1]]]

    def elements_in_place(order: Sequence[int]) -> int:
        return sum(result[place] for place in range(rank) if term[order[place]] == result[place])

    # Of those with as many it is the first.
    yield from sorted(tried, key=elements_in_place, reverse=True)


def computes_fewer_axes(scope: Scope, node: NodeProto) -> bool | None:
    """Whether what nodes give, and is no number, has fewer axes than images, or volumes, that it is computed with.

    Their channels are moved; those of data of more axes are not. None where a length that is left open decides.
    """
    result = scope.type_of(node.output[0])
    rank = 0 if result is None or result.rank is None else result.rank
    types = {name: scope.type_of(name) for name in node.input if name}
    ranks = {name: None if known is None else known.rank for name, known in types.items()}
    if not LEAST_RANK < rank <= _MOST_TRIED:
        return False
    if not any(ranks[name] == rank and may_be_moved(scope, [name]) for name in ranks if scope.constant(name) is None):
        return False
    computed = [name for name in ranks if scope.own_producer(name) is not None and scope.constant(name) is None]
    shapes = [types[name] for name in computed if ranks[name] and ranks[name] != rank]
    told = [None if known is None or known.lengths is None else math.prod(known.lengths) > 1 for known in shapes]
    return True if True in told else None if None in told else False


def fed_list_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return what fed lists and other data of fewer axes are for what works on each element."""
    return {
        "list-for-channels": _takes_list_for_channels(scope, node),
        "fed-fewer-axes-first": _takes_fewer_axes_from(scope, node),
    }


def _takes_list_for_channels(scope: Scope, node: NodeProto) -> bool:
    """Whether a fed list, which goes along the last axis, is as long as images, volumes or lines have channels.

    Of lines also one whose axes before are of one element.
    """
    result = scope.type_of(node.output[0])
    if result is None or result.shape is None or len(result.shape) < LEAST_RANK:
        return False
    channels, rank = result.shape[1], len(result.shape)
    fed = [scope.type_of(name) for name in node.input if name and scope.constant(name) is None]
    shapes = [known.shape for known in fed if known is not None and known.shape]
    return isinstance(channels, int) and any(
        shape[-1] == channels > 1 and (len(shape) == 1 or (rank == LEAST_RANK and {*shape[:-1]} == {1}))
        for shape in shapes
    )


def _takes_fewer_axes_from(scope: Scope, node: NodeProto) -> bool:
    """Whether fed data are divided, or taken off, that have fewer axes than what is fed to divide or to be taken."""
    types = [scope.type_of(name) for name in node.input if scope.constant(name) is None]
    ranks = [0 if known is None or known.rank is None else known.rank for known in types]
    return len(ranks) > 1 and 0 < ranks[0] < ranks[1]


def joins_constant_first(scope: Scope, node: NodeProto) -> bool:
    """Whether a constant of two axes and more, but of fewer than the result, is what a node reads first."""
    first, result = scope.constant(node.input[0]), scope.type_of(node.output[0])
    rank = 0 if result is None or result.rank is None else result.rank
    return first is not None and 1 < first.ndim < rank


def spread_term(scope: Scope, node: NodeProto) -> int:
    """Return which term of such a sum is constant, or has a single axis, the last of several."""
    constant = [place for place, name in enumerate(node.input) if scope.constant(name) is not None]
    if constant:
        return constant[-1]
    types = [scope.type_of(name) for name in node.input]
    lines = [known is not None and known.shape is not None and _only_axis(known.shape) is not None for known in types]
    return max((place for place, is_line in enumerate(lines) if is_line), default=len(lines) - 1)


def _only_axis(shape: Sequence[Dimension]) -> int | None:
    """Return which axis behind the batch is the only one that has, or may have, more than one element."""
    several = [axis for axis, length in enumerate(shape) if axis and length != 1]
    return several[0] if len(several) == 1 else None


def _fits_elsewhere(shape: Sequence[Dimension], result: Sequence[Dimension]) -> bool | None:
    axis = _only_axis(shape)
    others = [] if axis is None else [length for each, length in enumerate(result) if each and each != axis]
    if axis is None or all(length == 1 for length in others):
        return False
    told = [_are_equal(result[axis], length) for length in others if length != 1]
    # What is as long along all axes is read as it is.
    if all(told):
        return False
    return True if True in told else None if None in told else False


def _are_equal(one: Dimension, other: Dimension) -> bool | None:
    """Return whether two lengths are equal, None where that is open: a name is as long as itself."""
    if one is not None and one == other:
        return True
    return False if isinstance(one, int) and isinstance(other, int) else None
