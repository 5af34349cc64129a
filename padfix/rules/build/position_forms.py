"""Forms of a MaxPool that gives the positions of its maxima."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.geometry.padding import effective_kernel
from padfix.operators.integer_ranges import WHOLE_HALVES
from padfix.operators.numbers import elements_of
from padfix.operators.refusal import Refusal
from padfix.operators.traits import window_traits
from padfix.operators.window import Window
from padfix.operators.written import SAME, Written
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import MOST_WEIGHTS
from padfix.rules.build.elementary_forms import reduced, reduction_traits
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared
from padfix.rules.build.objections import Operators
from padfix.rules.build.trials import trials
from padfix.rules.build.window_forms import traits_of_pad
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_AMOUNTS_AS_INPUT_SINCE = 11

_MOST_COUNTED = 1 << 24
"""Up to here single precision counts every whole number."""


def position_forms(site: Site, window: Window) -> Iterator[Form]:
    """Yield positions by rows, exchanged where they are wanted by columns; and those of the largest of all taps.

    And before them those of floats, where bytes are pooled.
    """
    if window.has_indices:
        if elements_of(window.elem_type) == "byte":
            yield _of_floats(site, window)
        if window.written.storage_order:
            yield _exchanged(site, window)
        yield from _largest_taps(site, window)


def _of_floats(site: Site, window: Window) -> Form:
    """Return the maxima and positions of bytes as those of floats, of which none is the least that there is."""
    from_bytes: Traits = {"elements": "byte", "numbers": "integer", "gives": "single", "changes-type": True}
    to_bytes: Traits = {"elements": "float", "numbers": "single", "unsigned": False, "gives": "integer"}
    floats: Traits = {**window_traits(window), "elements": "float"}

    def write() -> Rewrite:
        builder = site.builder()
        data = builder.op("Cast", [builder.input(site.input_name(0))], {"to": TensorProto.FLOAT})
        maxima, places = builder.original(copied(site.node), [data])
        if site.node.output[0]:
            builder.output(site.node.output[0], builder.op("Cast", [maxima], {"to": site.elem_type(0)}))
        builder.output(site.node.output[1], places)
        return Rewrite(builder.build(), trials(site, window, same=window.auto_pad in SAME), exact=True)

    operators: Operators = (("Cast", from_bytes), ("MaxPool", floats), ("Cast", to_bytes))
    return Form("the maxima of floats and their positions", operators, write)


def _exchanged(site: Site, window: Window) -> Form:
    """Return the positions of maxima by columns as those by rows, with rows and columns exchanged in each plane."""
    lengths = [size for size in window.sizes if isinstance(size, int)]
    why_not = None
    if window.rank != 2 or len(lengths) != 2:
        why_not = Refusal("its data are no planes, or their lengths are not known (--shape)")
    by_rows = dataclasses.replace(window, written=dataclasses.replace(window.written, storage_order=0))

    def write() -> Rewrite:
        height, width = lengths
        builder = site.builder()
        data = builder.input(site.input_name(0))
        maxima, places = builder.original(copied(site.node, without=("storage_order",)), [data])
        plane, row = builder.integers(height * width), builder.integers(width)
        first = builder.op("Mul", [builder.op("Div", [places, plane]), plane])
        within = builder.op("Sub", [places, first])
        down = builder.op("Div", [within, row])
        along = builder.op("Sub", [within, builder.op("Mul", [down, row])])
        turned = builder.op("Add", [builder.op("Mul", [along, builder.integers(height)]), down])
        if site.node.output[0]:
            builder.output(site.node.output[0], maxima)
        builder.output(site.node.output[1], builder.op("Add", [first, turned]))
        return Rewrite(
            builder.build(), trials(site, window, same=window.auto_pad in SAME, as_declared=True), exact=True
        )

    return Form("positions by rows, exchanged behind it", (("MaxPool", window_traits(by_rows)),), write, why_not)


def _largest_taps(site: Site, window: Window) -> Iterator[Form]:
    """Yield which tap of each window is the largest, the taps laid side by side by a convolution of 0 and 1.

    Where it stands is counted in floats, or in integers of 32 bits.
    """
    known = site.input_type(0)
    lengths = known.lengths if known is not None and known.lengths is not None else ()
    kernel = tuple(each or 0 for each in window.kernel)
    pairs = [pair for pair in window.same_pads() if pair] if window.auto_pad in SAME else window.explicit_pads
    outputs = [each for each in window.output_sizes() if isinstance(each, int)]
    taps, why_not = math.prod(kernel), None
    if not lengths or 0 in (*lengths, taps) or len(pairs) < window.rank or len(outputs) < window.rank:
        why_not = Refusal("it needs the lengths of the input (--shape)")
    elif site.elem_type(0) != TensorProto.FLOAT:
        why_not = Refusal("its data are no floats of single precision")
    elif math.prod(lengths) > _MOST_COUNTED or lengths[1] * taps * taps > MOST_WEIGHTS:
        why_not = Refusal(f"its data have more than {_MOST_COUNTED} elements, or its windows too many for weights")
    channels, rank = lengths[1] if lengths else 1, window.rank + 2
    written = Written(kernel_shape=kernel, strides=window.strides, dilations=window.dilations, group=channels)
    maps = channels * taps
    conv = dataclasses.replace(window, op_type="Conv", written=written, channels=channels, maps=maps)
    operators: Operators = (
        ("Conv", window_traits(conv)),
        ("Reshape", {"rank": rank, "copies-channels": False}),
        ("ReduceMax", {**reduction_traits("ReduceMax", site.opset, [1]), "rank": rank}),
        ("ArgMax", {"takes-last": False, "keeps-axis": channels > 1, "rank": rank}),
    )
    begins = [begin for begin, _ in pairs]
    if any(map(any, pairs)):
        operators = (("Pad", {**traits_of_pad(window, tuple(pairs)), "value": "finite"}), *operators)
    write = partial(_write_taps, site, window, kernel, begins, outputs)
    for counted, dtype in (("", np.float32), (", counted in integers", np.int32)):
        name = f"the largest tap of each window{counted}"
        yield Form(
            name,
            (*operators, *_counting(math.prod(lengths), dtype)),
            partial(write, dtype=np.dtype(dtype)),
            why_not,
            _AMOUNTS_AS_INPUT_SINCE,
        )


def _counting(elements: int, dtype: type[np.generic]) -> Operators:
    """Return what counts places up to a number of elements, in numbers of a type."""
    if dtype == np.float32:
        return (("Add", {"counts-beyond-halves": elements > WHOLE_HALVES}),)
    whole: Traits = {"numbers": "integer", "type": "int32"}
    return ("Mul", {**whole, "gate-second": False}), ("Div", {**whole, "by-power-of-two": False}), ("Add", whole)


def _write_taps(
    site: Site,
    window: Window,
    kernel: Sequence[int],
    begins: Sequence[int],
    out: Sequence[int],
    dtype: np.dtype[Any],
) -> Rewrite:
    case, builder = as_declared(site), site.builder()
    value = builder.input(site.input_name(0))
    shape = case[site.input_name(0)].shape
    channels, sizes = shape[1], shape[2:]
    spans = [effective_kernel(*each) for each in zip(kernel, window.dilations, strict=True)]
    reached = [(each - 1) * stride + span for each, stride, span in zip(out, window.strides, spans, strict=True)]
    ends = [max(0, far - size - begin) for far, size, begin in zip(reached, sizes, begins, strict=True)]
    if any(begins) or any(ends):
        amounts = builder.integers([0, 0, *begins, 0, 0, *ends])
        # Minus infinity would be no number times 0.
        lowest = builder.constant(np.array(np.finfo(np.float32).min), "lowest")
        value = builder.op("Pad", [value, amounts, lowest], {"mode": "constant"})
    taps = math.prod(kernel)
    weights = np.tile(np.eye(taps, dtype=np.float32).reshape(taps, 1, *kernel), (channels, 1, *[1] * len(kernel)))
    told: dict[str, Any] = {name: list(getattr(window, name)) for name in ("strides", "dilations")}
    told = {"kernel_shape": list(kernel), "group": channels, "pads": [0] * 2 * len(kernel), **told}
    side_by_side = builder.op("Conv", [value, builder.constant(weights, "weights")], told)
    each = builder.reshaped(side_by_side, [math.prod(shape[:2]), taps, *out])
    if site.node.output[0]:
        largest = reduced(builder, "ReduceMax", each, [1])
        builder.output(site.node.output[0], builder.reshaped(largest, [*shape[:2], *out]))
    by_columns = window.written.storage_order
    steps = [math.prod(sizes[:axis] if by_columns else sizes[axis + 1 :]) for axis in range(window.rank)]
    # Of one channel the Reshapes do nothing, and what moves the channels to the end would move the integers, too.
    is_kept = channels > 1
    planes = np.arange(math.prod(shape[:2])).reshape(-1, *[1] * is_kept, *[1] * window.rank) * math.prod(sizes)
    starts = np.indices(out).T * window.strides - np.array(begins)
    first = builder.constant((planes + (starts @ steps).T).astype(dtype), "first")
    moves = [step * dilation for step, dilation in zip(steps, window.dilations, strict=True)]
    place = builder.op("Add", [_moved(builder, each, kernel, moves, dtype, is_kept=is_kept), first])
    counted = builder.op("Cast", [builder.reshaped(place, [*shape[:2], *out])], {"to": TensorProto.INT64})
    builder.output(site.node.output[1], counted)
    return Rewrite(builder.build(), (case,))


def _moved(
    builder: FragmentBuilder,
    taps: Any,
    kernel: Sequence[int],
    moves: Sequence[int],
    dtype: np.dtype[Any],
    *,
    is_kept: bool,
) -> Any:
    """Return how far behind the first tap of its window the largest along axis 1 stands.

    The number of a tap has the taps of each axis for digits: what is passed of the taps behind an axis as a whole is
    a step along it, and takes back the steps along the next one that it is counted by.
    """
    tap = builder.op("ArgMax", [taps], {"axis": 1, "keepdims": int(is_kept)})
    number = builder.op("Cast", [tap], {"to": helper.np_dtype_to_tensor_dtype(dtype)})

    def times(value: Any, factor: float) -> Any:
        weight = builder.constant(np.array(factor, dtype), "factor")
        return value if factor == 1 else builder.op("Mul", [value, weight])

    total = times(number, moves[-1])
    for axis in range(len(kernel) - 1):
        behind = math.prod(kernel[axis + 1 :])
        more = moves[axis] - kernel[axis + 1] * moves[axis + 1]
        if dtype.kind == "i":
            passed = builder.op("Div", [number, builder.constant(np.array(behind, dtype), "behind")])
        else:
            half = builder.op("Add", [number, builder.constant(np.array(0.5, dtype), "half")])
            passed = builder.op("Floor", [times(half, 1 / behind)])
        total = builder.op("Add", [total, times(passed, more)])
    return total
