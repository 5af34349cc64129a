"""Indices that are computed, counted from the begin; and parts of matrices, as constants tell them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from padfix.graph import attributes
from padfix.graph.fragment import Fragment
from padfix.operators.other_traits import OTHERS
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared, trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced
from padfix.targets.traits import Traits

REST_SINCE = 10
"""The first opset with a Mod."""

MAXIMUM_OF_INTEGERS_SINCE = 12

_LARGEST = 1 << 22
"""Elements of a constant that tells what is kept, or that is written in place of a node."""


def rest_forms(site: Site) -> Iterator[Form]:
    """Yield what picks by computed indices as what picks by their rest of a division by the length of the axis."""
    known, indices = site.input_type(0), site.input_type(1)
    shape = () if known is None or known.shape is None else known.shape
    depth = indices.shape[-1] if indices is not None and indices.shape else None
    is_tuple = site.node.op_type.endswith("ND")
    first = attributes.integer(site.node, "batch_dims" if is_tuple else "axis", 0) or 0
    first += len(shape) if first < 0 else 0
    last = first + (depth if isinstance(depth, int) else len(shape) + 1) if is_tuple else first + 1
    lengths = shape[first:last]
    divisors = [each for each in lengths if isinstance(each, int) and each > 0]
    is_told = len(divisors) == len(lengths)
    why_not = None
    if last > len(shape):
        why_not = Refusal("how many axes its data or its indices have is not known")
    elif site.elem_type(1) not in (TensorProto.INT32, TensorProto.INT64) or site.opset < REST_SINCE:
        why_not = Refusal("its indices are no integers, or this opset has no Mod")
    elif not is_told and site.opset < MAXIMUM_OF_INTEGERS_SINCE:
        why_not = Refusal("it needs the lengths of its input (--shape), or an opset with a maximum of integers")

    def write() -> Rewrite:
        builder = site.builder()
        data, given, *others = (builder.input(name) for name in site.node.input)
        if is_told:
            told = np.array(divisors if len(divisors) > 1 else divisors[0], _dtype_of(site, 1))
            divisor = builder.constant(told, "lengths")
        else:
            divisor = sliced(builder, builder.op("Shape", [data]), [first], [last], [0])
            if site.elem_type(1) != TensorProto.INT64:
                divisor = builder.op("Cast", [divisor], {"to": site.elem_type(1)})
            divisor = builder.op("Max", [divisor, builder.constant(np.array([1], _dtype_of(site, 1)), "one")])
            given = builder.op("Add", [given, divisor])
        counted = builder.op("Mod", [given, divisor])
        return Rewrite(builder.ending_in(copied(site.node), [data, counted, *others]), trials_of(site), exact=True)

    own = {**(traits_of(site.scope, site.node) or {}), "maybe-from-end": False}
    measuring: Operators = (
        ("Shape", {**OTHERS["Shape"](site.scope, site.node), "as-result": False}),
        ("Slice", {"elements": "integer"}),
        ("Max", {"inputs": 2, "broadcasts": True, "elements": "integer"}),
    )
    operators: Operators = (*(() if is_told else measuring), ("Mod", {"cuts-off": False}), (site.node.op_type, own))
    yield Form("the rest of its indices", operators, write, why_not)


def _dtype_of(site: Site, place: int) -> np.dtype:
    return helper.tensor_dtype_to_np_dtype(site.elem_type(place))


def triangle_forms(site: Site) -> Iterator[Form]:
    """Yield a Trilu as the choice of what a constant tells, and zeros elsewhere."""
    known, diagonal = site.input_type(0), site.constant(1)
    lengths = () if known is None or known.shape is None else known.shape[-2:]
    sizes = [each for each in lengths if isinstance(each, int)]
    offset = 0 if diagonal is None else int(diagonal.reshape(-1)[0])
    is_upper = attributes.integer(site.node, "upper", 1) != 0
    why_not = None
    if len(sizes) < 2:
        why_not = Refusal("it needs the lengths of its last two axes (--shape)")
    elif site.input_name(1) and diagonal is None:
        why_not = Refusal("its diagonal is not constant")
    elif np.prod(sizes) > _LARGEST:
        why_not = Refusal("its matrices are very large")

    def write() -> Rewrite:
        builder = site.builder()
        whole = np.ones(sizes, np.bool_)
        kept = builder.constant(np.triu(whole, offset) if is_upper else np.tril(whole, offset), "kept")
        zero = builder.constant(np.zeros((), helper.tensor_dtype_to_np_dtype(site.elem_type(0))), "zero")
        chosen = builder.op("Where", [kept, builder.input(site.input_name(0)), zero])
        builder.output(site.node.output[0], chosen)
        return Rewrite(builder.build(), (as_declared(site),), exact=True)

    is_boolean = site.elem_type(0) == TensorProto.BOOL
    no_choice = Refusal("ONNX Runtime chooses among no booleans") if is_boolean else None
    yield Form("what a constant tells, and zeros", (("Where", {"broadcasts": False}),), write, why_not or no_choice)
    if is_boolean:
        yield _triangle_of_booleans(site, lambda ones: (np.triu if is_upper else np.tril)(ones, offset), sizes, why_not)

    def write_bounds() -> Rewrite:
        kept = np.triu(np.ones(sizes, np.bool_), offset) if is_upper else np.tril(np.ones(sizes, np.bool_), offset)
        return Rewrite(within_told_bounds(site, kept, np.zeros((), np.float32)), (as_declared(site),), exact=True)

    yield Form("bounds of its own for each element", TOLD_BOUNDS, write_bounds, why_not or _bounded(site, 0))


def _triangle_of_booleans(
    site: Site, cut: Callable[[np.ndarray], np.ndarray], sizes: Sequence[int], why_not: Refusal | None
) -> Form:
    """Return a Trilu as the product of the numbers that booleans stand for with those that tell what is kept."""

    def write() -> Rewrite:
        builder = site.builder()
        kept = builder.constant(cut(np.ones(sizes, np.float32)), "kept")
        numbers = builder.op("Cast", [builder.input(site.input_name(0))], {"to": int(TensorProto.FLOAT)})
        product = builder.op("Mul", [numbers, kept])
        builder.output(site.node.output[0], builder.op("Cast", [product], {"to": int(TensorProto.BOOL)}))
        return Rewrite(builder.build(), (as_declared(site),), exact=True)

    cast: Traits = {"changes-type": True, "changes-numbers": False, "elements": "float", "unsigned": False}
    operators: Operators = (
        ("Cast", {**cast, "numbers": "boolean", "gives": "single"}),
        ("Mul", {"numbers": "single", "gate-second": False}),
        ("Cast", {**cast, "numbers": "single", "gives": "boolean"}),
    )
    return Form("a product of the numbers that booleans stand for", operators, write, why_not)


TOLD_BOUNDS: Operators = tuple((name, {"inputs": 2, "broadcasts": True}) for name in ("Max", "Min"))
"""What :func:`within_told_bounds` consists of."""


def within_told_bounds(site: Site, kept: np.ndarray, other: np.ndarray, place: int = 0) -> Fragment:
    """Return the data within no bounds where a constant tells so, and elsewhere within two that are ``other``."""
    builder = site.builder()
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(place))
    value = builder.input(site.input_name(place))
    least, most = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    for op_type, open_bound in (("Max", least), ("Min", most)):
        bounds = np.where(kept, dtype.type(open_bound), other.astype(dtype))
        value = builder.op(op_type, [value, builder.constant(bounds, "bounds")])
    builder.output(site.node.output[0], value)
    return builder.build()


def _ordered(opset: int) -> tuple[int, ...]:
    """Return the types of which an opset has a maximum."""
    return FLOATS if opset < MAXIMUM_OF_INTEGERS_SINCE else (*FLOATS, TensorProto.INT32, TensorProto.INT64)


def _bounded(site: Site, place: int) -> Refusal | None:
    return None if site.elem_type(place) in _ordered(site.opset) else Refusal("its elements have no bounds")


def chosen_within_bounds(site: Site) -> Iterator[Form]:
    """Yield a Where that a constant steers, between data and a constant, as bounds for each element."""
    told = site.constant(0)
    others = [site.constant(place) for place in (1, 2)]
    place = 2 if others[1] is None else 1
    other = others[2 - place]
    data, gives = site.input_type(place), site.scope.type_of(site.node.output[0])
    why_not = _bounded(site, place)
    if told is None or other is None or others[place - 1] is not None:
        why_not = Refusal("no constant tells which of its data another takes the place of")
    elif data is None or gives is None or data.rank != gives.rank:
        why_not = Refusal("its data take another shape, or it is not known")

    def write() -> Rewrite:
        assert told is not None
        assert other is not None
        kept = told if place == 1 else ~told
        return Rewrite(within_told_bounds(site, kept, other, place), (as_declared(site),), exact=True)

    yield Form("bounds of its own for each element", TOLD_BOUNDS, write, why_not)


def diagonal_forms(site: Site) -> Iterator[Form]:
    """Yield an EyeLike as the constant that it is, whatever its data."""
    known, gives = site.input_type(0), site.scope.type_of(site.node.output[0])
    lengths = None if known is None else known.lengths
    elem_type = attributes.integer(site.node, "dtype", 0) or (0 if gives is None else gives.elem_type)
    why_not = None
    if lengths is None or len(lengths) != 2 or not elem_type:
        why_not = Refusal("it needs the lengths of its input (--shape)")
    elif np.prod(lengths) > _LARGEST:
        why_not = Refusal("it is very large")

    def write() -> Rewrite:
        assert lengths is not None
        dtype = helper.tensor_dtype_to_np_dtype(elem_type)
        value = np.eye(lengths[0], lengths[1], attributes.integer(site.node, "k", 0) or 0).astype(dtype)
        node = helper.make_node("Constant", [], [site.node.output[0]], value=numpy_helper.from_array(value))
        return Rewrite(site.only(node), (as_declared(site),), exact=True)

    yield Form("a constant", (("Constant", {"of-tensor": True}),), write, why_not)
