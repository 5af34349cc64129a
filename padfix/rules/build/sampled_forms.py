"""A GridSample as a product with the weight that each element of an image has for each place of the grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.as_floats import in_single_precision
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_FLAT = 4
"""Axes of what weights are made of."""

_RANKS = (4, 5)
"""Axes of planes and volumes, with the batch and the channels."""

_REACH = 2
"""Elements at either side of a place that a cubic one takes."""

_MOST_WEIGHTS = 1 << 24

_CUBIC = -0.75
"""The coefficient of a cubic GridSample, which has no attribute for it."""


def sampled_forms(site: Site) -> Iterator[Form]:
    """Yield a GridSample at places that lie in the image or on elements, and as a product."""
    own = traits_of(site.scope, site.node) or {}
    if own.get("numbers") == "half":
        yield in_single_precision(site)  # since the weights of elements are rounded in halves, too
    if own["places-moved"]:
        yield _in_order(site, own)
    if own["maybe-far"]:
        yield _folded(site, own)
    if own["mode"] == "nearest":
        yield _at_elements(site, own)
    image, grid = (each if len(each) in _RANKS else () for each in (_lengths(site, 0), _lengths(site, 1)))
    why_not = None
    if not image or not grid or 0 in (*image[1:], *grid[1:]):
        why_not = Refusal("it needs the lengths of its inputs (--shape)")
    elif site.elem_type(0) not in FLOATS:
        why_not = Refusal("products are of floats")
    elif own["outside"] == "reflection" and own["aligned"] and 1 in image[2:]:
        why_not = Refusal("a single element has no border to reflect at")
    elif math.prod(image[2:]) * math.prod(grid[1:-1]) * max(grid[0], 1) > _MOST_WEIGHTS:
        why_not = Refusal(f"it would have more than {_MOST_WEIGHTS} weights")

    def write() -> Rewrite:
        builder = site.builder()
        data, places = (builder.input(name) for name in site.node.input[:2])
        told = site.constant(1)
        made = builder if told is None else _WorkedOut()
        images, channels, *lengths = image
        count = math.prod(grid[1:-1])
        weights: Any = None
        elements = 1
        for axis, length in enumerate(lengths, 2):
            along = _weights(site, made, places if told is None else told, grid, axis, image)
            if weights is None:
                weights = along
            else:
                pair = [
                    made.reshaped(weights, [grid[0], elements, 1, count]),
                    made.reshaped(along, [grid[0], 1, length, count]),
                ]
                weights = made.reshaped(made.op("Mul", pair), [grid[0], elements * length, count])
            elements *= length
        weights = weights if told is None else builder.constant(weights, "weights")
        flat = builder.reshaped(data, [images, channels, elements])
        result = builder.reshaped(builder.op("MatMul", [flat, weights]), [images, channels, *grid[1:-1]])
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), trials_of(site))

    ranks = sorted({3, _FLAT, len(image)})
    operators: Operators = (
        *(("Reshape", {"rank": rank}) for rank in ranks),
        ("Slice", {"rank": len(grid), "behind-window": False}),
        *((name, {}) for name in ("Abs", "Add", "Relu")),
        ("Sub", {"from-constant": False, "from-softmax": False}),
        ("Mul", {"gate-second": False}),
        ("MatMul", {"rank": 3, "list-first": False, "list-second": False, "by-a-matrix": False}),
    )
    yield Form("a product with the weights of its elements", operators, write, why_not)


def _lengths(site: Site, place: int) -> tuple[int, ...]:
    known = site.input_type(place)
    return () if known is None or known.copied is None else known.copied


def _in_order(site: Site, own: Traits) -> Form:
    """Return a GridSample whose places come from a Reshape, which leaves their axes in the order of the model."""
    lengths = _lengths(site, 1)

    def write() -> Rewrite:
        builder = site.builder()
        data, places = (builder.input(name) for name in site.node.input[:2])
        given = [data, builder.reshaped(places, lengths)]
        return Rewrite(builder.ending_in(copied(site.node), given), trials_of(site))

    why_not = None if lengths and 0 not in lengths[1:] else Refusal("it needs the lengths of its inputs (--shape)")
    operators: Operators = (("Reshape", {"rank": len(lengths)}), ("GridSample", {**own, "places-moved": False}))
    return Form("its places behind a Reshape", operators, write, why_not)


def _folded(site: Site, own: Traits) -> Form:
    """Return a GridSample whose places are reflected before it, so that all are in the image."""
    told = site.constant(1)

    def write() -> Rewrite:
        builder = site.builder()
        data, places = (builder.input(name) for name in site.node.input[:2])
        folded = _reflected_places(builder if told is None else _WorkedOut(), places if told is None else told, site)
        places = folded if told is None else builder.constant(folded, "places")
        return Rewrite(builder.ending_in(copied(site.node), [data, places]), trials_of(site))

    operators: Operators = (("GridSample", {**own, "maybe-far": False}),)
    return Form("places reflected before it", (*(() if told is not None else _FOLDING), *operators), write)


_FOLDING: Operators = (("Abs", {}), ("Add", {}), ("Floor", {}), ("Sub", {}), ("Mul", {"gate-second": False}))


def _reflected_places(builder: FragmentBuilder | _WorkedOut, places: Any, site: Site) -> Any:
    """Return places between -1 and 1, where the borders are whatever ``align_corners`` says.

    What is reflected at both borders comes again after a length of 4.
    """
    number = partial(_number, builder, helper.tensor_dtype_to_np_dtype(site.elem_type(1) or site.elem_type(0)))
    turns = builder.op("Mul", [builder.op("Add", [places, number(1)]), number(0.25)])
    rest = builder.op("Mul", [builder.op("Sub", [builder.op("Floor", [turns]), turns]), number(4)])
    from_border = builder.op("Abs", [builder.op("Add", [rest, number(2)])])
    return builder.op("Add", [builder.op("Mul", [from_border, number(-1)]), number(1)])


def _at_elements(site: Site, own: Traits) -> Form:
    """Return a GridSample whose places are rounded to elements before it, so that none is halfway between two."""
    told, lengths = site.constant(1), _lengths(site, 0)[:1:-1]
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(1) or site.elem_type(0))

    def write() -> Rewrite:
        builder = site.builder()
        data, places = (builder.input(name) for name in site.node.input[:2])
        rounded = _rounded(builder if told is None else _WorkedOut(), places if told is None else told)
        places = rounded if told is None else builder.constant(rounded, "places")
        return Rewrite(builder.ending_in(copied(site.node), [data, places]), trials_of(site), exact=True)

    def _rounded(builder: FragmentBuilder | _WorkedOut, places: Any) -> Any:
        if own["maybe-far"]:
            places = _reflected_places(builder, places, site)
        each = np.array(lengths, dtype)
        factor = 2 / np.maximum(each - 1, 1) if own["aligned"] else 2 / each
        first = np.zeros_like(each) if own["aligned"] else 1 / each
        element = builder.op("Round", [_coordinate(builder, places, each, dtype, is_aligned=bool(own["aligned"]))])
        scaled = builder.op("Mul", [element, builder.constant(factor.astype(dtype), "factor")])
        return builder.op("Add", [scaled, builder.constant((first - 1).astype(dtype), "first")])

    operators: Operators = (("GridSample", {**own, "maybe-halfway": False, "maybe-far": False}),)
    if told is None:
        folding = _FOLDING if own["maybe-far"] else ()
        operators = (*folding, ("Add", {}), ("Sub", {}), ("Mul", {"gate-second": False}), ("Round", {}), *operators)
    why_not = None if lengths else Refusal("it needs the lengths of its input (--shape)")
    return Form("places rounded to elements before it", operators, write, why_not)


def _coordinate(
    builder: FragmentBuilder | _WorkedOut, places: Any, lengths: Any, dtype: Any, *, is_aligned: bool
) -> Any:
    """Return places counted in elements, in the order of ONNX Runtime's own operations: no tie is rounded otherwise."""
    number = partial(_number, builder, dtype)
    moved = builder.op("Add", [places, number(1)])
    if is_aligned:
        return builder.op("Mul", [builder.op("Mul", [moved, number(0.5)]), number(lengths - 1)])
    return builder.op("Mul", [builder.op("Sub", [builder.op("Mul", [moved, number(lengths)]), number(1)]), number(0.5)])


class _WorkedOut:
    """What a builder does, of constants, which it works out."""

    def constant(self, array: np.ndarray, hint: str = "") -> Any:
        """Return the array itself."""
        return array

    def integers(self, numbers: int | Sequence[int]) -> Any:
        """Return the numbers as an array."""
        return np.array(numbers, np.int64)

    def reshaped(self, value: Any, shape: Sequence[int]) -> Any:
        """Return the array in another shape."""
        return value.reshape(shape)

    def op(self, op_type: str, given: Sequence[Any]) -> Any:
        """Return what an operator gives."""
        return _WORKED_OUT[op_type](*given)


_WORKED_OUT: Mapping[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": np.add,
    "Div": np.divide,
    "Floor": np.floor,
    "MatMul": np.matmul,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "Relu": lambda value: np.maximum(value, value.dtype.type(0)),
    "Round": np.rint,
    "Slice": lambda value, start, end, axis: np.take(value, range(start[0], end[0]), axis[0]),
    "Sub": np.subtract,
}


def _weights(
    site: Site, builder: FragmentBuilder | _WorkedOut, places: Any, grid: Sequence[int], axis: int, image: Sequence[int]
) -> Any:
    """Return the weight of each element along ``axis`` for each place: (images, elements, places)."""
    own = traits_of(site.scope, site.node) or {}
    mode, outside, length = own["mode"], own["outside"], image[axis]
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    number = partial(_number, builder, dtype)
    first = len(grid) - 1 - axis  # the grid's first number is the column
    bounds = [builder.integers(each) for each in ([first], [first + 1], [len(grid) - 1])]
    coordinate = builder.reshaped(builder.op("Slice", [places, *bounds]), [grid[0], 1, math.prod(grid[1:-1])])
    coordinate = _coordinate(builder, coordinate, length, dtype, is_aligned=bool(own["aligned"]))
    if mode == "nearest":
        coordinate = builder.op("Round", [coordinate])
    border = 0 if own["aligned"] else -0.5
    if outside == "reflection":
        coordinate = _reflected(builder, coordinate, number, border, length)
    if mode == "cubic":
        return _cubic(builder, coordinate, dtype, (outside, border), length)
    if outside != "zeros":
        coordinate = _bounded(builder, coordinate, number, (0, length - 1))
    distance = _distances(builder, coordinate, np.arange(length, dtype=dtype))
    return builder.op("Relu", [builder.op("Sub", [number(1), distance])])


def _number(builder: FragmentBuilder | _WorkedOut, dtype: Any, value: Any) -> Any:
    return builder.constant(np.array(value, dtype), "number")


def _distances(builder: FragmentBuilder | _WorkedOut, coordinate: Any, elements: np.ndarray) -> Any:
    each = builder.constant(elements.reshape(1, -1, 1), "elements")
    return builder.op("Abs", [builder.op("Sub", [coordinate, each])])


def _bounded(builder: FragmentBuilder | _WorkedOut, coordinate: Any, number: Any, ends: tuple[float, float]) -> Any:
    return builder.op("Min", [builder.op("Max", [coordinate, number(ends[0])]), number(ends[1])])


def _cubic(
    builder: FragmentBuilder | _WorkedOut, coordinate: Any, dtype: Any, outside: tuple[Any, float], length: int
) -> Any:
    """Return the weights of a cubic one, those of elements outside added to the elements that stand for them.

    Behind a border that goes on all elements are the last one: a place may be brought so near that it still takes no
    other. (ONNX Runtime bounds each element that it takes, as PyTorch does; ONNX's reference bounds the place.)
    """
    number = partial(_number, builder, dtype)
    if outside[0] == "border":
        coordinate = _bounded(builder, coordinate, number, (-_REACH, length - 1 + _REACH))
    beyond = {"zeros": 0, "reflection": _REACH, "border": 2 * _REACH}[str(outside[0])]
    numbers = np.arange(-beyond, length + beyond).astype(dtype)
    distance = _distances(builder, coordinate, numbers)
    near = builder.op("Min", [distance, number(1)])
    far = builder.op("Max", [builder.op("Min", [distance, number(2)]), number(1)])
    inner = _polynomial(builder, near, [number(each) for each in (_CUBIC + 2, -(_CUBIC + 3), 0, 1)])
    outer = _polynomial(builder, far, [number(each * _CUBIC) for each in (1, -5, 8, -4)])
    weights = builder.op("Add", [inner, outer])
    if not beyond:
        return weights
    inside = numbers.clip(0, length - 1)
    if outside[0] == "reflection":
        inside = _reflected(_WorkedOut(), numbers, dtype.type, outside[1], length)
    standing = np.eye(length, dtype=dtype)[:, inside.astype(int)]
    return builder.op("MatMul", [builder.constant(standing, "standing"), weights])


def _reflected(builder: FragmentBuilder | _WorkedOut, value: Any, number: Any, first: float, length: int) -> Any:
    """Return a coordinate that turns round at both borders, as often as it meets one."""
    span = length - 1 - 2 * first
    from_border = builder.op("Sub", [value, number(first)])
    turns = builder.op("Floor", [builder.op("Div", [from_border, number(2 * span)])])
    rest = builder.op("Sub", [from_border, builder.op("Mul", [turns, number(2 * span)])])
    back = builder.op("Sub", [number(2 * span), rest])
    return builder.op("Add", [builder.op("Min", [rest, back]), number(first)])


def _polynomial(builder: FragmentBuilder | _WorkedOut, value: Any, factors: Sequence[Any]) -> Any:
    result = factors[0]
    for factor in factors[1:]:
        result = builder.op("Add", [builder.op("Mul", [value, result]), factor])
    return result
