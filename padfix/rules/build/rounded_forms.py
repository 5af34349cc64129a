"""Numbers rounded to steps, in floats: a Round, and a QuantizeLinear with the DequantizeLinear behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.clip import BOUNDS_AS_INPUT_SINCE
from padfix.operators.constant_chains import worked_out
from padfix.operators.quantizers import ZERO_POINT
from padfix.operators.refusal import Refusal
from padfix.operators.steps_of_bytes import OPERATOR_OF_BYTES
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.elementary_forms import clipped, unranked, written
from padfix.rules.build.forms import Form, by_another_rule
from padfix.rules.build.node_trials import like
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_SHORT = 3
"""In place of a length that is not known, where a form is tried."""

BOUNDS: Mapping[int, tuple[int, int]] = {
    TensorProto.INT4: (-8, 7),
    TensorProto.UINT4: (0, 15),
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT8: (0, 255),
    TensorProto.INT16: (-32768, 32767),
    TensorProto.UINT16: (0, 65535),
}
"""The least and the most of steps that single precision counts exactly, whatever the zero point, by their type."""


def round_forms(site: Site) -> Iterator[Form]:
    """Yield a Round as what is left of a number behind the sum with one so large that nothing finer than 1 fits.

    Of doubles it is found by Floor and Ceil: a runtime that takes them for floats has room for far fewer fractions.
    """
    why_not = unranked(site) if site.elem_type(0) in FLOATS else Refusal("its data are no floats of a common format")
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(site.elem_type(0)))

    def write(builder: FragmentBuilder, value: Any) -> Any:
        large = builder.constant(np.array(2.0 ** np.finfo(dtype).nmant, dtype), "large")
        size = builder.op("Abs", [value])
        within = builder.op("Min", [size, large])  # what is larger has no fraction
        whole = (_nearest_even if dtype == np.float64 else _without_fractions)(builder, within, large)
        total = builder.op("Add", [whole, builder.op("Sub", [size, within])])
        return builder.op("Mul", [builder.op("Sign", [value]), total])

    parts = ("Abs", "Sign", "Min", "Add", "Sub", "Mul", *(("Floor", "Ceil") if dtype == np.float64 else ()))
    operators: Operators = tuple((each, {"constants": "number", "inputs": 2}) for each in parts)
    yield Form("the sum with a large number, without it", operators, partial(written, site, write), why_not)


def _nearest_even(builder: FragmentBuilder, value: Any, large: Any) -> Any:
    """Return numbers of 0 to ``large`` rounded to whole ones, halves to even ones, exact in any precision.

    A fraction goes up where it is above a half, and where it is one beside an odd number.
    """
    half, one, two = (builder.constant(np.array(each, large.dtype), name) for each, name in _SMALL_NUMBERS)
    down = builder.op("Floor", [value])
    pairs = builder.op("Mul", [two, builder.op("Floor", [builder.op("Mul", [half, down])])])
    is_odd, fraction = builder.op("Sub", [down, pairs]), builder.op("Sub", [value, down])
    is_above = builder.op("Ceil", [builder.op("Sub", [fraction, half])])
    is_below = builder.op("Ceil", [builder.op("Sub", [half, fraction])])  # 1 up to what is next to a half
    is_half = builder.op("Sub", [builder.op("Sub", [one, is_below]), is_above])
    up = builder.op("Add", [is_above, builder.op("Mul", [is_odd, is_half])])
    return builder.op("Add", [down, up])


_SMALL_NUMBERS = ((0.5, "half"), (1.0, "one"), (2.0, "two"))


def _without_fractions(builder: FragmentBuilder, value: Any, large: Any) -> Any:
    """Return the sum with a large number, without it; the Abs, of what is above 0, keeps both apart."""
    return builder.op("Sub", [builder.op("Abs", [builder.op("Add", [value, large])]), large])


def rounded_by_sum(builder: FragmentBuilder, value: Any, least: np.ndarray, most: np.ndarray) -> Any:
    """Return numbers between two whole ones, in single precision, rounded to whole ones."""
    large = builder.constant(np.array(1.5 * 2.0 ** np.finfo(np.float32).nmant, np.float32), "steps")
    # Cut off again, or OpenVINO multiplies before it takes the large number away.
    return clipped(builder, _without_fractions(builder, value, large), least, most)


@dataclass(frozen=True)
class _Steps:
    """What a QuantizeLinear or DequantizeLinear says of its steps.

    Attributes:
        scale: In single precision, one number or in a shape that broadcasts along its axis.
        zero: The zero point of all.
    """

    scale: np.ndarray
    zero: int


def stepped_forms(site: Site) -> Iterator[Form]:
    """Yield a QuantizeLinear and the DequantizeLinear behind it as floats that are rounded, cut off and multiplied.

    The steps are whole numbers of so few digits that each float is the very one that the bytes stand for.
    """
    scope, node = site.scope, site.node
    if node.op_type == "QuantizeLinear":
        behind = scope.consumers(node.output[0])
        is_read = bool(behind) and not scope.is_output(node.output[0])
        if is_read and all(each.op_type == OPERATOR_OF_BYTES or _bytes_between(scope, each) for each in behind):
            yield Form("floats, with its DequantizeLinear", _PARTS, by_another_rule)
        return
    first, found = scope.own_producer(node.input[0]), _bytes_between(scope, node)
    if first is not None and first.op_type == OPERATOR_OF_BYTES:
        yield Form("floats, with what the bytes are of", _PARTS, by_another_rule)
    why_not = None if found else Refusal("no QuantizeLinear with constant steps of bytes stands before it")

    def write(by_sum: bool) -> Rewrite:
        assert found is not None
        assert first is not None
        before, behind, (least, most) = found
        builder = site.builder(max(site.opset, BOUNDS_AS_INPUT_SINCE))

        def number(each: np.ndarray | float) -> Any:
            return builder.constant(np.array(each, np.float32), "steps")

        steps = builder.op("Div", [builder.input(first.input[0]), number(before.scale)])
        bounds = [np.array(each - before.zero, np.float32) for each in (least, most)]
        steps = clipped(builder, steps, *bounds)
        steps = rounded_by_sum(builder, steps, *bounds) if by_sum else builder.op("Round", [steps])
        if before.zero != behind.zero:
            steps = builder.op("Add", [steps, number(before.zero - behind.zero)])
        builder.output(node.output[0], builder.op("Mul", [steps, number(behind.scale)]))
        known = scope.type_of(first.input[0])
        assert known is not None
        trial = {first.input[0]: like(known, _SHORT)}
        for name in filter(None, (*first.input[1:], *node.input[1:])):
            told = worked_out(scope, name)
            assert told is not None
            trial[name] = TrialInput.of(told)
        return Rewrite(builder.build(), (trial,), exact=True, replaces=(first,))

    for by_sum, (name, operators) in enumerate(WAYS_TO_ROUND.items()):
        yield Form(name, operators, partial(write, bool(by_sum)), why_not, BOUNDS_AS_INPUT_SINCE)


_OF_FLOATS = {"numbers": "single", "constants": "number"}
_PARTS: Operators = tuple((each, _OF_FLOATS) for each in ("Div", "Clip", "Add", "Mul"))

WAYS_TO_ROUND: Mapping[str, Operators] = {
    "floats, rounded": (*_PARTS, ("Round", _OF_FLOATS)),
    "floats, rounded by a sum": (*_PARTS, ("Abs", _OF_FLOATS), ("Sub", _OF_FLOATS)),
}
"""What takes the place of a QuantizeLinear and the DequantizeLinear behind it."""


def _bytes_between(scope: Scope, node: NodeProto) -> tuple[_Steps, _Steps, tuple[int, int]] | None:
    """Return the steps before and behind the bytes that a DequantizeLinear, ``node``, reads, and their bounds."""
    first = scope.own_producer(node.input[0])
    if node.op_type != "DequantizeLinear" or first is None or first.op_type != "QuantizeLinear":
        return None
    data, quantized = scope.type_of(first.input[0]), scope.type_of(node.input[0])
    if data is None or data.shape is None or data.elem_type != TensorProto.FLOAT or quantized is None:
        return None
    before, behind = (_steps(scope, each, len(data.shape)) for each in (first, node))
    bounds = BOUNDS.get(quantized.elem_type)
    return None if before is None or behind is None or bounds is None else (before, behind, bounds)


def _steps(scope: Scope, node: NodeProto, rank: int) -> _Steps | None:
    scale = worked_out(scope, node.input[1])
    name = node.input[ZERO_POINT] if len(node.input) > ZERO_POINT else ""
    zero = worked_out(scope, name) if name else np.zeros(1, np.int64)
    if normal_domain(node.domain) or scale is None or zero is None or scale.dtype != np.float32 or scale.ndim > 1:
        return None
    if attributes.integer(node, "block_size", 0) or len(set(zero.reshape(-1).tolist())) != 1:
        return None
    if scale.size == 1:
        return _Steps(scale.reshape(()), int(zero.reshape(-1)[0]))
    axis = attributes.integer(node, "axis", 1) or 0
    if not -rank <= axis < rank:
        return None
    shape = [1] * rank
    shape[axis] = scale.size
    return _Steps(scale.reshape(shape), int(zero.reshape(-1)[0]))
