"""What works on bytes, on the whole numbers that they are: floats hold these, and their sums up to 2 ** 24, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.graph import attributes
from padfix.operators.quantizers import leaves_zero_point_out
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.elementary_forms import clipped
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.floats_of_bytes import BACK, TO_FLOATS, WAYS, Way, as_bytes, as_floats, back_to_bytes, to_floats
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.rounded_forms import BOUNDS, rounded_by_sum

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_ROUND_SINCE = 11
"""The opset of the first Round."""

_EXACT_BELOW = 1 << 24
_WIDEST = 255

_BOUNDS: Mapping[int, tuple[int, int]] = {each: BOUNDS[each] for each in (TensorProto.UINT8, TensorProto.INT8)}

_STEPS: Operators = (
    *TO_FLOATS,
    ("Sub", {"numbers": "single", "from-constant": False, "from-softmax": False}),
)
_ROUNDED: Operators = (
    ("Mul", {"numbers": "single", "gate-second": False}),
    ("Div", {"numbers": "single", "from-constant": False, "from-softmax": False}),
    ("Round", {"numbers": "single"}),
    ("Add", {"numbers": "single"}),
    ("Clip", {"numbers": "single"}),
)
_BY_SUM: Operators = (
    *(each for each in _ROUNDED if each[0] != "Round"),
    *((each, {"numbers": "single", "constants": "number"}) for each in ("Abs", "Sub")),
)

OF_CALLER: Mapping[str, Operators] = {
    "rounded": (*_STEPS, *_ROUNDED, *BACK),
    "rounded by a sum": (*_STEPS, *_BY_SUM, *BACK),
}
"""What takes the place of a DequantizeLinear and a QuantizeLinear of a caller's bytes, by how they are rounded."""

_PRODUCT: Operators = (("MatMul", {"numbers": "single", "list-first": False, "list-second": False}),)

Write = Callable[["FragmentBuilder", list[Any]], Any]


def byte_forms(site: Site) -> Iterator[Form]:
    """Yield a product or a convolution of bytes as one of floats."""
    first, second = ((0, 3), (2, 5)) if site.node.op_type == "QLinearMatMul" else ((0, 1), (2, 3))
    why_not = _why_not_summed(site, first[1], second[1])

    def factors(builder: FragmentBuilder, given: list[Any]) -> list[Any]:
        pairs = zip(first, second, (-1, 0), strict=True)
        return [_centred(site, builder, given, data, zero, axis) for data, zero, axis in pairs]

    def product(builder: FragmentBuilder, given: list[Any]) -> Any:
        return builder.op("Cast", [builder.op("MatMul", factors(builder, given))], {"to": TensorProto.INT32})

    def convolution(builder: FragmentBuilder, given: list[Any]) -> Any:
        told = {each.name: helper.get_attribute_value(each) for each in site.node.attribute}
        return builder.op("Cast", [builder.op("Conv", factors(builder, given), told)], {"to": TensorProto.INT32})

    def rounded(builder: FragmentBuilder, given: list[Any]) -> Any:
        scales = [site.constant(place) for place in (1, 4, 6)]
        assert scales[0] is not None
        assert scales[1] is not None
        assert scales[2] is not None
        factor = (scales[0] * scales[1] / scales[2]).astype(np.float32).reshape(-1)
        result = builder.op("MatMul", factors(builder, given))
        result = builder.op("Mul", [result, builder.constant(factor.reshape(()) if factor.size == 1 else factor)])
        zero = site.constant(7)
        assert zero is not None
        places = builder.constant(zero.astype(np.float32).reshape(() if zero.size == 1 else zero.shape), "zero")
        elem_type = helper.np_dtype_to_tensor_dtype(zero.dtype)
        return as_bytes(builder, _stepped(builder, result, places, elem_type, by_sum=False), elem_type, "cast")

    if site.node.op_type == "QLinearMatMul":
        known = [site.constant(place) for place in (1, 4, 6, 7)]
        rows = [each for each in known[::2] if each is not None and each.size != 1]
        if rows or any(each is None for each in known):
            why_not = Refusal("its scales and zero points are not constant, or differ from row to row")
        operators = (*_STEPS, *_PRODUCT, *_ROUNDED, *BACK)
        yield Form(
            "whole numbers in floats", operators, lambda: _written(site, rounded, _ROUND_SINCE), why_not, _ROUND_SINCE
        )
        return
    if leaves_zero_point_out(site.node):
        yield _told_zero(site)
    if site.node.op_type == "MatMulInteger":
        operators = (*_STEPS, *_PRODUCT, *BACK)
        yield Form("whole numbers in floats", operators, lambda: _written(site, product), why_not)
    else:
        padded = attributes.text(site.node, "auto_pad", "NOTSET") or "NOTSET"
        why_not = why_not or (None if padded in ("NOTSET", "VALID") else Refusal("its pads are implicit"))
        yield Form("whole numbers in floats", (*_STEPS, *BACK), lambda: _written(site, convolution), why_not)


def _told_zero(site: Site) -> Form:
    """Return a product with the zero point of its data, which is 0, where it is left out before that of the weights."""
    own = {**(traits_of(site.scope, site.node) or {}), "zero-point-left-out": False}

    def write(builder: FragmentBuilder, given: list[Any]) -> Any:
        given[2] = builder.constant(np.zeros((), helper.tensor_dtype_to_np_dtype(site.elem_type(0))), "zero")
        return builder.original(copied(site.node), given)

    return Form("a zero point of 0", ((site.node.op_type, own),), lambda: _written(site, write))


def _centred(site: Site, builder: FragmentBuilder, given: list[Any], data: int, zero: int, axis: int) -> Any:
    """Return bytes without their zero point, in floats; a constant is worked out."""
    told = site.constant(data), site.constant(zero) if site.input_name(zero) else np.zeros((), np.uint8)
    places = None if told[1] is None else told[1].astype(np.float32)
    if places is not None and places.size == 1:
        places = places.reshape(())
    elif places is not None and site.node.op_type == "ConvInteger":
        places = places.reshape(-1, 1, 1, 1)
    elif places is not None and places.ndim == 1 and axis == -1:
        places = places.reshape(-1, 1)
    if told[0] is not None and places is not None:
        return builder.constant(told[0].astype(np.float32) - places, "numbers")
    numbers = builder.op("Cast", [given[data]], {"to": TensorProto.FLOAT})
    if places is None:
        return builder.op("Sub", [numbers, builder.op("Cast", [given[zero]], {"to": TensorProto.FLOAT})])
    return builder.op("Sub", [numbers, builder.constant(places, "zero")]) if places.any() else numbers


def _why_not_summed(site: Site, weights: int, zero: int) -> Refusal | None:
    """Return why sums may be too large for floats; or that zero points are lists that are computed."""
    told, places, known = site.constant(weights), site.constant(zero), site.input_type(weights)
    for place in (2, 5) if site.node.op_type == "QLinearMatMul" else (2, 3):
        given = site.input_type(place) if site.input_name(place) else None
        if site.input_name(place) and site.constant(place) is None and (given is None or given.shape != ()):
            return Refusal("its zero points are lists that are computed")
    is_convolution = site.node.op_type == "ConvInteger"
    if told is not None and (places is not None or not site.input_name(zero)):
        centred = told.astype(np.int64)
        if places is not None:
            shaped = places.reshape(-1, *[1] * (told.ndim - 1)) if is_convolution and places.ndim else places
            centred = centred - shaped.astype(np.int64)
        axes = tuple(range(1, told.ndim)) if is_convolution else max(0, told.ndim - 2)
        largest = int(np.abs(centred).sum(axes).max(initial=0)) * _WIDEST
    else:
        lengths = None if known is None else known.lengths
        if lengths is None or len(lengths) < 2:
            return Refusal("how many numbers it sums is not known")
        count = int(np.prod(lengths[1:])) if is_convolution else lengths[-2]
        largest = count * _WIDEST**2
    return None if largest < _EXACT_BELOW else Refusal("its sums may be larger than floats hold exactly")


def _stepped(
    builder: FragmentBuilder, value: Any, zero: Any, elem_type: int, *, by_sum: bool, told: int | None = None
) -> Any:
    """Return numbers rounded to whole ones, a zero point in floats added, within the bounds of bytes of a type.

    ``told`` is the zero point where it is one constant.
    """
    least, most = (np.array(each, np.float32) for each in _BOUNDS[elem_type])
    if not by_sum:
        return clipped(builder, builder.op("Add", [builder.op("Round", [value]), zero]), least, most)
    if told is not None:
        bounds = least - np.float32(told), most - np.float32(told)
        return builder.op("Add", [rounded_by_sum(builder, clipped(builder, value, *bounds), *bounds), zero])
    # No further than from one end to the other, wherever the zero point lies.
    widest = np.array(_WIDEST, np.float32)
    steps = rounded_by_sum(builder, clipped(builder, value, -widest, widest), -widest, widest)
    return clipped(builder, builder.op("Add", [steps, zero]), least, most)


def caller_forms(site: Site) -> Iterator[Form]:
    """Yield what takes bytes for numbers, or gives numbers as bytes, in floats, whatever gives scale and zero point."""
    yield from _caller_forms(site, "cast")
    if _quantized(site) in _BOUNDS:
        yield from _caller_forms(site, "steps")
    if site.node.op_type == "DequantizeLinear" and _quantized(site) == TensorProto.UINT8:
        yield from _caller_forms(site, "integers")


def _caller_forms(site: Site, way: Way) -> Iterator[Form]:
    """Yield them with one way from bytes to floats."""
    why_not = _why_not_stepped(site)
    floats = partial(as_floats, way=way)
    rank = 0 if (known := site.input_type(0)) is None or known.rank is None else known.rank
    axis = (attributes.integer(site.node, "axis", 1) or 0) % max(rank, 1)

    def told(builder: FragmentBuilder, given: list[Any], place: int) -> Any:
        """Return the scale or the zero point in floats, along the axis; None where there is no zero point."""
        value, type_ = site.constant(place), site.input_type(place)
        block = _block(site)
        if block and site.input_name(place):
            return _of_blocks(site, builder, given[place], place, axis, floats)
        if value is not None:
            value = value.astype(np.float32)
            shape = () if value.size == 1 else (-1, *[1] * (rank - axis - 1))
            return builder.constant(value.reshape(shape), "scale" if place == 1 else "zero")
        if type_ is None or not site.input_name(place):
            return None
        result = given[place] if place == 1 else floats(builder, given[place], type_.elem_type)
        if type_.shape in ((), (1,)) or axis == rank - 1:
            return result
        return builder.op("Reshape", [result, builder.constant(np.array([-1, *[1] * (rank - axis - 1)]), "shape")])

    def write(by_sum: bool, builder: FragmentBuilder, given: list[Any]) -> Any:
        steps, zero = told(builder, given, 1), told(builder, given, 2)
        if site.node.op_type == "QuantizeLinear":
            places = builder.constant(np.zeros((), np.float32), "zero") if zero is None else zero
            known = site.constant(2) if zero is not None else np.zeros(1, np.int64)
            number = None if known is None or known.size != 1 else int(known.item())
            divided = builder.op("Div", [given[0], steps])
            whole = _stepped(builder, divided, places, _quantized(site), by_sum=by_sum, told=number)
            return as_bytes(builder, whole, _quantized(site), way)
        numbers = floats(builder, given[0], _quantized(site))
        constant = site.constant(2)
        if zero is not None and (constant is None or constant.any()):
            numbers = builder.op("Sub", [numbers, zero])
        return builder.op("Mul", [numbers, steps])

    name, subtracted = WAYS[way], _STEPS[-1:]
    before = to_floats(site, _quantized(site), way)
    if site.node.op_type == "DequantizeLinear":
        parts = (*before, *subtracted, _ROUNDED[0])
        yield Form(name, parts, lambda: _written(site, partial(write, False)), why_not)
        return
    is_told = site.constant(2) is not None or not site.input_name(2)
    around = (*(() if is_told else before), *back_to_bytes(site, _quantized(site), way))
    for by_sum, (title, parts) in enumerate(((name, _ROUNDED), (f"{name}, by a sum", _BY_SUM))):
        way_to_write = partial(_written, site, partial(write, bool(by_sum)), _ROUND_SINCE)
        yield Form(title, (*parts, *around), way_to_write, why_not, _ROUND_SINCE)


def _block(site: Site) -> int:
    """Return how many elements have one scale; 0 where there are no blocks."""
    return attributes.integer(site.node, "block_size", 0) or 0


def _of_blocks(
    site: Site, builder: FragmentBuilder, given: Any, place: int, axis: int, floats: Callable[..., Any]
) -> Any:
    """Return in floats the scales or zero points of blocks, each for every element of its block."""
    data, known, value = site.input_type(0), site.input_type(place), site.constant(place)
    assert data is not None
    assert data.lengths is not None
    assert known is not None
    assert known.lengths is not None
    block = _block(site)
    if value is not None:
        whole = np.repeat(value.astype(np.float32), block, axis)
        return builder.constant(whole[(slice(None),) * axis + (slice(data.lengths[axis]),)], "scale")
    result = given if place == 1 else floats(builder, given, known.elem_type)
    before, behind = known.lengths[: axis + 1], known.lengths[axis + 1 :]
    apart = builder.constant(np.array((*before, block, *behind)), "shape")
    result = builder.op("Expand", [builder.reshaped(result, [*before, 1, *behind]), apart])
    result = builder.reshaped(result, [*before[:-1], -1, *behind])
    if before[-1] * block == data.lengths[axis]:
        return result
    bounds = (builder.constant(np.array([each])) for each in (0, data.lengths[axis], axis))
    return builder.op("Slice", [result, *bounds])


def _are_blocks_known(site: Site) -> bool:
    """Whether what is quantized and its scales are of known lengths, which are those of blocks."""
    types = [site.input_type(place) for place in range(3) if site.input_name(place)]
    return all(each is not None and each.lengths is not None for each in types)


def _why_not_stepped(site: Site) -> Refusal | None:
    known = site.input_type(0)
    shapes = [
        None if each is None else each.shape for each in map(site.input_type, (1, 2) if site.input_name(2) else (1,))
    ]
    if site.elem_type(1) != TensorProto.FLOAT:
        return Refusal("its scale is not of single precision")
    if _block(site):
        if not _are_blocks_known(site):
            return Refusal("it needs the lengths of what has a scale for each block (--shape)")
    elif known is None or not known.rank or any(each is None or len(each) > 1 for each in shapes):
        return Refusal("the rank of its data, its scale or zero point is not known")
    if site.node.op_type == "DequantizeLinear" and _quantized(site) in (TensorProto.INT16, TensorProto.UINT16):
        return None
    zero = site.constant(2) if site.input_name(2) else np.zeros(1)
    is_centred = zero is not None and not zero.any()
    if site.node.op_type == "DequantizeLinear" and is_centred and _quantized(site) == TensorProto.INT32:
        return None
    return None if _quantized(site) in _BOUNDS else Refusal("what is quantized is no byte")


def _quantized(site: Site) -> int:
    """Return the type of the bytes."""
    known = site.input_type(0) if site.node.op_type == "DequantizeLinear" else site.scope.type_of(site.node.output[0])
    return 0 if known is None else known.elem_type


def dynamic_forms(site: Site) -> Iterator[Form]:
    """Yield a DynamicQuantizeLinear as what it is defined by, with a step of 1 where all is 0."""
    known = site.input_type(0)

    def write(by_sum: bool) -> Rewrite:
        builder = site.builder()
        data = builder.input(site.input_name(0))

        def number(value: float) -> Any:
            return builder.constant(np.array(value, np.float32), "number")

        least, most = (
            builder.op(bound, [builder.op(f"Reduce{reduced}", [data], {"keepdims": 0}), number(0)])
            for bound, reduced in (("Min", "Min"), ("Max", "Max"))
        )
        span = builder.op("Sub", [most, least])
        is_wide = builder.op("Greater", [span, number(0)])
        step = builder.op("Where", [is_wide, builder.op("Div", [span, number(_WIDEST)]), number(1)])
        begin = builder.op("Sub", [number(0), builder.op("Div", [least, step])])
        bounds = [np.array(each, np.float32) for each in (0, _WIDEST)]
        zero = clipped(builder, begin, *bounds)
        zero = rounded_by_sum(builder, zero, *bounds) if by_sum else builder.op("Round", [zero])
        for place, name in enumerate(site.node.output):
            if not name:
                continue
            if place == 0:
                divided = builder.op("Div", [data, step])
                whole = _stepped(builder, divided, zero, TensorProto.UINT8, by_sum=by_sum)
                result = as_bytes(builder, whole, TensorProto.UINT8, "cast")
            else:
                result = step if place == 1 else builder.op("Cast", [zero], {"to": TensorProto.UINT8})
            builder.output(name, result)
        return Rewrite(builder.build(), trials_of(site))

    why_not = None if known is not None and known.rank else Refusal("the rank of its input is not known")
    rank = 0 if known is None or known.rank is None else known.rank
    told = dict.fromkeys(("axes-listed", "axes-as-input", "axes-empty", "keeps-axis"), False)
    whole = {**told, "reduces-all": True, "reduced-axes": rank, "rank": rank}
    operators: Operators = (
        *((f"Reduce{each}", whole) for each in ("Max", "Min")),
        *BACK,
        ("Greater", {"broadcasts": False}),
        ("Where", {"broadcasts": False}),
    )
    for by_sum, parts in enumerate((_ROUNDED, _BY_SUM)):
        name = "its definition, rounded by a sum" if by_sum else "its definition"
        yield Form(name, (*operators, *parts), partial(write, bool(by_sum)), why_not)


def _written(site: Site, write: Write, opset: int = 1) -> Rewrite:
    builder = site.builder(max(site.opset, opset))
    given: Sequence[Any] = [builder.input(name) if name else None for name in site.node.input]
    builder.output(site.node.output[0], write(builder, list(given)))
    return Rewrite(builder.build(), trials_of(site))
