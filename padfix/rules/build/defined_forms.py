"""Operators that few runtimes have, by those that all have: unpooled maxima, joined columns, grids and group norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from padfix.geometry.padding import effective_kernel
from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import transposed_traits
from padfix.operators.transposed import TransposedWindow
from padfix.operators.written import Written
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.activation_forms import shrink_forms, swish_forms
from padfix.rules.build.curve_forms import CURVE_FORMS
from padfix.rules.build.deformed_forms import deformed_forms
from padfix.rules.build.einsum_forms import einsum_forms
from padfix.rules.build.exponential_forms import exponential_forms
from padfix.rules.build.forms import Form
from padfix.rules.build.index_forms import diagonal_forms, triangle_forms
from padfix.rules.build.moved_forms import moved_forms
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.quantized_product import product_of_bytes
from padfix.rules.build.question_forms import infinity_forms, not_a_number_forms, one_hot_forms
from padfix.rules.build.window_along_axes import grown
from padfix.rules.build.written_forms import EPSILON

_MOST_WEIGHTS = 1 << 20

_SCATTER_SINCE = 11

_SCALE_OF_CHANNELS_SINCE = 21
"""The first opset whose GroupNormalization has a scale for each channel, not for each group."""

_LENGTHS = Refusal("it needs the lengths of its input (--shape)")


def unpooled_forms(site: Site) -> Iterator[Form]:
    """Yield a MaxUnpool as maxima that are scattered over zeros."""
    known, gives = site.input_type(0), site.scope.type_of(site.node.output[0])
    before = None if known is None else known.lengths
    after = _unpooled(site.node, before) if before else None if gives is None else gives.lengths
    why_not = None if before and after else _LENGTHS
    told = site.constant(2) if site.input_name(2) else None
    if site.input_name(2) and (told is None or after is None or told.reshape(-1).tolist() != list(after)):
        why_not = Refusal("what positions count beside a shape of its own is not settled")

    def write() -> Rewrite:
        assert before is not None
        assert after is not None
        builder = site.builder()
        total, count = math.prod(after), math.prod(before)
        zero = np.zeros(1, helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
        zeros = builder.op(
            "ConstantOfShape",
            [builder.integers([1, total])],
            {"value": helper.make_tensor("", site.elem_type(0), [1], zero.tobytes(), raw=True)},
        )
        values, places = (builder.reshaped(builder.input(name), [1, -1]) for name in site.node.input[:2])
        scattered = builder.op("ScatterElements", [zeros, places, values], {"axis": 1})
        builder.output(site.node.output[0], builder.reshaped(scattered, after))
        positions = np.random.default_rng(count).permutation(total)[:count].reshape(before)
        trial = {
            site.node.input[0]: TrialInput(before, site.elem_type(0)),
            site.node.input[1]: TrialInput.of(positions.astype(np.int64), constant=False),
        }
        if told is not None:
            trial[site.node.input[2]] = TrialInput.of(told)
        return Rewrite(builder.build(), (trial,), exact=True)

    scatter = {"negative-indices": False, "joins": False, "rank": 2}
    flat = ("Reshape", {"rank": 2})
    operators: Operators = (
        flat,
        ("ConstantOfShape", {}),
        ("ScatterElements", scatter),
        ("Reshape", {"rank": len(after or ())}),
    )
    yield Form("maxima scattered over zeros", operators, write, why_not, _SCATTER_SINCE)


def _unpooled(node: NodeProto, lengths: Sequence[int]) -> tuple[int, ...]:
    """Return the lengths of what a MaxUnpool gives that is told none."""
    taps = attributes.integers(node, "kernel_shape") or []
    rank = len(taps)
    strides = attributes.integers(node, "strides") or [1] * rank
    pads = attributes.integers(node, "pads") or [0] * (2 * rank)
    axes = enumerate(zip(lengths[-rank:], taps, strides, strict=True))
    sizes = [(size - 1) * stride + tap - pads[axis] - pads[axis + rank] for axis, (size, tap, stride) in axes]
    return (*lengths[:-rank], *sizes)


def column_forms(site: Site) -> Iterator[Form]:
    """Yield a Col2Im as a transposed convolution with a tap of 1 for each element of a column."""
    image, block, known = site.constant(1), site.constant(2), site.input_type(0)
    depth = known.shape[1] if known is not None and known.shape is not None and len(known.shape) == 3 else None
    if image is None or block is None or not isinstance(depth, int):
        yield Form("a transposed convolution", (), _unwritten, Refusal("its shapes, or its depth, are not known"))
        return
    sizes, taps = ([int(each) for each in given.reshape(-1)] for given in (image, block))
    for is_grouped in (True, False):
        yield _columns(site, sizes, taps, depth // math.prod(taps), is_grouped=is_grouped)
    if max(attributes.integers(site.node, "dilations") or [1]) > 1:
        for is_grouped in (True, False):
            yield _columns(site, sizes, taps, depth // math.prod(taps), is_grouped=is_grouped, is_dense=True)


def _columns(
    site: Site, sizes: Sequence[int], taps: Sequence[int], channels: int, *, is_grouped: bool, is_dense: bool = False
) -> Form:
    """Return the transposed convolution over the whole padded image, of which a Slice takes the image.

    Its kernel has dilations, or zeros between the taps in their place.
    """
    rank, places = len(taps), math.prod(taps)
    strides = attributes.integers(site.node, "strides") or [1] * rank
    dilations = attributes.integers(site.node, "dilations") or [1] * rank
    pads = attributes.integers(site.node, "pads") or [0] * (2 * rank)
    spans = [effective_kernel(*each) for each in zip(taps, dilations, strict=True)]
    padded = [size + pads[axis] + pads[axis + rank] for axis, size in enumerate(sizes)]
    blocks = [(size - span) // stride + 1 for size, span, stride in zip(padded, spans, strides, strict=True)]
    rests = [(size - span) % stride for size, span, stride in zip(padded, spans, strides, strict=True)]
    weights = np.zeros((channels * places, 1 if is_grouped else channels, *taps), np.float32)
    for row in range(channels * places):
        weights[row, 0 if is_grouped else row // places].reshape(-1)[row % places] = 1
    if is_dense:
        weights, taps, dilations = grown(weights, dilations), spans, [1] * rank
    window = TransposedWindow(
        domain="",
        op_type="ConvTranspose",
        written=Written(kernel_shape=tuple(taps), strides=tuple(strides), group=channels if is_grouped else 1),
        kernel=tuple(taps),
        strides=tuple(strides),
        dilations=tuple(dilations),
        sizes=tuple(blocks),
        elem_type=site.elem_type(0),
        output_padding=tuple(rests),
        output_shape=None,
        channels=channels * places,
        maps_per_group=1 if is_grouped else channels,
    )

    def write() -> Rewrite:
        builder = site.builder()
        columns = builder.reshaped(builder.input(site.input_name(0)), [-1, channels * places, *blocks])
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        given: dict[str, Any] = {"kernel_shape": taps, "strides": strides, "group": channels if is_grouped else 1}
        if max(dilations) > 1:
            given["dilations"] = dilations
        if any(rests):
            given["output_padding"] = rests
        result = builder.op("ConvTranspose", [columns, builder.constant(weights.astype(dtype), "weights")], given)
        if any(pads):
            bounds = [pads[:rank], [begin + size for begin, size in zip(pads, sizes, strict=False)]]
            axes = builder.integers(list(range(2, rank + 2)))
            result = builder.op("Slice", [result, *map(builder.integers, bounds), axes])
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), trials_of(site))

    operators: Operators = (("Reshape", {"rank": rank + 2}), ("ConvTranspose", transposed_traits(window)))
    if any(pads):
        operators = (*operators, ("Slice", {"behind-window": True}))
    why_not = None if weights.size <= _MOST_WEIGHTS else Refusal(f"it would have more than {_MOST_WEIGHTS} weights")
    if min(blocks) < 1:
        why_not = Refusal("its columns are longer than the image")
    groups = "a group for each channel" if is_grouped else "no groups"
    between = ", zeros between its taps" if is_dense else ""
    return Form(f"a transposed convolution with {groups}{between}", operators, write, why_not)


def grid_forms(site: Site) -> Iterator[Form]:
    """Yield an AffineGrid as a product with the positions of all its elements."""
    size = site.constant(1)
    lengths = [] if size is None else [int(each) for each in size.reshape(-1)][2:]
    aligned = attributes.integer(site.node, "align_corners", 0) != 0

    def write() -> Rewrite:
        axes = [np.linspace(-1, 1, each) if aligned else (2 * np.arange(each) + 1) / each - 1 for each in lengths]
        # The last axis is the first coordinate, and the 1 behind them takes what is added.
        places = [each.reshape(-1) for each in reversed(np.meshgrid(*axes, indexing="ij"))]
        matrix = np.stack([*places, np.ones(math.prod(lengths))], 1)
        builder = site.builder()
        turned = builder.op("Transpose", [builder.input(site.input_name(0))], {"perm": [0, 2, 1]})
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        grid = builder.op("MatMul", [builder.constant(matrix[None].astype(dtype), "positions"), turned])
        builder.output(site.node.output[0], builder.reshaped(grid, [-1, *lengths, len(lengths)]))
        return Rewrite(builder.build(), trials_of(site))

    why_not = None if lengths else Refusal("its size is not constant")
    if aligned and 1 in lengths:
        why_not = Refusal("a single element has no corners")
    operators: Operators = (
        ("Transpose", {"rank": 3, "turned-back": False, "turned-back-alike": False, "about-a-product": False}),
        ("MatMul", {"rank": 3, "list-first": False, "list-second": False, "by-a-matrix": False}),
        ("Reshape", {"rank": len(lengths) + 2}),
    )
    yield Form("a product with all positions", operators, write, why_not)


def group_norm_forms(site: Site) -> Iterator[Form]:
    """Yield a GroupNormalization as the norm of the instances that its groups are, a line or a plane each."""
    known, groups = site.input_type(0), attributes.integer(site.node, "num_groups", 1) or 1
    lengths = () if known is None or known.shape is None else known.shape
    inner = [each for each in lengths[1:] if isinstance(each, int)]
    channels, is_told = (lengths[1] if len(lengths) > 1 else None), len(inner) == len(lengths) - 1
    scale, bias = (site.constant(place) for place in (1, 2))
    why_not = None if isinstance(channels, int) else _LENGTHS
    is_by_group = site.opset < _SCALE_OF_CHANNELS_SINCE and (scale is None or bias is None)
    epsilon = attributes.find(site.node, "epsilon")

    def write(between: Sequence[int]) -> Rewrite:
        builder = site.builder()
        data, *factors = (builder.input(name) for name in site.node.input)
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        plain = [builder.constant(np.full(groups, each, dtype), "plain") for each in (1, 0)]
        first, last = (-1, math.prod(inner) // groups) if is_told else (0, -1)
        told = {"epsilon": EPSILON if epsilon is None else epsilon.f}
        flat = builder.reshaped(data, [first, groups, *between, last])
        result = builder.op("InstanceNormalization", [flat, *plain], told)
        back = builder.integers([-1, *inner], "shape") if is_told else builder.op("Shape", [data])
        shape = [1, groups, *[1] * (len(between) + 1)] if is_by_group else [inner[0], *[1] * (len(lengths) - 2)]
        result = result if is_by_group else builder.op("Reshape", [result, back])
        for op_type, factor, value in zip(("Mul", "Add"), factors, (scale, bias), strict=True):
            if value is not None and not is_by_group:
                each = np.repeat(value, inner[0] // value.size).reshape(shape)
                result = builder.op(op_type, [result, builder.constant(each, op_type.lower())])
            else:
                result = builder.op(op_type, [result, builder.reshaped(factor, shape)])
        builder.output(site.node.output[0], builder.op("Reshape", [result, back]) if is_by_group else result)
        return Rewrite(builder.build(), trials_of(site))

    for name, between in (("lines", ()), ("planes", (1,))):
        rank = 3 + len(between)
        operators: Operators = (
            ("Reshape", {"rank": rank}),
            ("InstanceNormalization", {"rank": rank, "behind-window": False}),
            *(() if is_told else (("Shape", {}),)),
            ("Reshape", {"rank": len(lengths)}),
            ("Mul", {"gate-second": False}),
            ("Add", {}),
        )
        yield Form(f"the norm of {name}", operators, partial(write, between), why_not)


def root_norm_forms(site: Site) -> Iterator[Form]:
    """Yield an RMSNormalization as the quotient that it is; its mean is for the rule about reductions to judge."""
    known = site.input_type(0)
    rank = 0 if known is None or known.rank is None else known.rank
    first = attributes.integer(site.node, "axis", -1) or 0
    axes = list(range(first % rank if rank else 0, rank))
    epsilon = attributes.find(site.node, "epsilon")
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))

    def write() -> Rewrite:
        builder = site.builder()
        data, scale = (builder.input(name) for name in site.node.input)
        mean = builder.op("ReduceMean", [builder.op("Mul", [data, data]), builder.integers(axes)], {"keepdims": 1})
        least = builder.constant(np.array(EPSILON if epsilon is None else epsilon.f, dtype), "epsilon")
        root = builder.op("Sqrt", [builder.op("Add", [mean, least])])
        builder.output(site.node.output[0], builder.op("Mul", [builder.op("Div", [data, root]), scale]))
        return Rewrite(builder.build(), trials_of(site))

    why_not = None if rank else Refusal("the rank of its input is not known")
    if dtype != np.float32 and dtype != np.float64:
        why_not = Refusal("it computes half precision in single")
    operators: Operators = (
        ("Mul", {"gate-second": False}),
        ("Add", {}),
        ("Sqrt", {}),
        ("Div", {"from-constant": False}),
    )
    yield Form("a quotient", operators, write, why_not)


def _unwritten() -> Rewrite | Refusal:
    return Refusal("There is no such form.")


DEFINED_FORMS: Mapping[str, Callable[[Site], Iterator[Form]]] = {
    **CURVE_FORMS,
    "AffineGrid": grid_forms,
    "Col2Im": column_forms,
    "Compress": moved_forms,
    "DeformConv": deformed_forms,
    "Einsum": einsum_forms,
    "Exp": exponential_forms,
    "EyeLike": diagonal_forms,
    "GroupNormalization": group_norm_forms,
    "IsInf": infinity_forms,
    "IsNaN": not_a_number_forms,
    "MaxUnpool": unpooled_forms,
    "OneHot": one_hot_forms,
    "QLinearMatMul": product_of_bytes,
    "RMSNormalization": root_norm_forms,
    "Trilu": triangle_forms,
    "Shrink": shrink_forms,
    "Swish": swish_forms,
}
"""By the type of an operator: what yields its forms."""
