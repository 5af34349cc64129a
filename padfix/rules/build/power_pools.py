"""A root of a sum of powers as the root of an average of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import window_traits
from padfix.operators.window import Pair, Window
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import flat, is_too_long
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import known_amounts, padded_by
from padfix.rules.build.trials import trials
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_SQUARE = 2


def averaged_powers(site: Site, window: Window, pairs: Sequence[Pair], pad: Traits) -> Iterator[Form]:
    """Yield an LpPool as the root of an AveragePool of powers that counts the pads, times its taps.

    Its pads are the pool's, or those of a Pad before the powers.
    """
    yield _averaged(site, window, pairs, None)
    if any(map(any, pairs)):
        none = ((0, 0),) * window.rank
        written = dataclasses.replace(window.written, pads=tuple(flat(none)), auto_pad=None)
        yield _averaged(site, dataclasses.replace(window, written=written), none, (known_amounts(window, pairs), pad))


def _averaged(site: Site, window: Window, pairs: Sequence[Pair], pad: tuple[list[int], Traits] | None) -> Form:
    power = attributes.integer(site.node, "p", _SQUARE) or 0
    taps = [each or 0 for each in window.kernel]
    written = dataclasses.replace(
        window.written, kernel_shape=tuple(taps), strides=window.strides, dilations=None, count_include_pad=True
    )
    average = dataclasses.replace(window, op_type="AveragePool", written=written)
    why_not = None
    if power < 1:
        why_not = Refusal("its power is no whole number")
    elif max(window.dilations) > 1 or 0 in taps:
        why_not = Refusal("it is dilated, or its taps are not known")
    elif is_too_long(window, pairs):
        why_not = Refusal("pads as long as the kernel are refused by runtimes")
    elif window.elem_type not in FLOATS:
        why_not = Refusal("its data are no floats")

    def write() -> Rewrite:
        dtype: Any = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        builder = site.builder()
        data = builder.input(site.input_name(0))
        if pad is not None:  # which no runtime takes into the pool: the powers stand between
            data = padded_by(builder, data, pad[0], builder.constant(np.array(0, dtype), "zero"))
        terms = raised(builder, data if power == _SQUARE else builder.op("Abs", [data]), power, dtype)
        told = {"kernel_shape": taps, "strides": list(window.strides), "pads": flat(pairs), "count_include_pad": 1}
        averaged = builder.op("AveragePool", [terms], told, name=site.node.name)
        summed = builder.op("Mul", [averaged, builder.constant(np.array(math.prod(taps), dtype), "taps")])
        builder.output(site.node.output[0], rooted(builder, summed, power, dtype))
        return Rewrite(builder.build(), trials(site, window, same=False))

    operators = (("AveragePool", window_traits(average)), ("Mul", {"gate-second": False}), *powers_in(power))
    if pad is None:
        return Form("an average of its powers", operators, write, why_not)
    return Form("a Pad before an average of its powers", (("Pad", pad[1]), *operators), write, why_not)


def powers_in(power: int) -> Operators:
    """Return the powers of magnitudes that raise and root; the rule about powers sees to where they are zero."""
    raising: Operators = (("Pow", {"exponent": "whole", "of-positive": True}),)
    return (*raising, ("Pow", {"exponent": "fraction", "of-positive": True})) if power > _SQUARE else ()


def raised(builder: FragmentBuilder, value: Any, power: int, dtype: Any) -> Any:
    """Return magnitudes raised to a power; runtimes multiply better than they raise."""
    if power <= _SQUARE:
        return value if power == 1 else builder.op("Mul", [value, value])
    return builder.op("Pow", [value, builder.constant(np.array(power, dtype), "power")])


def rooted(builder: FragmentBuilder, value: Any, power: int, dtype: Any) -> Any:
    """Return the root of sums of powers."""
    if power <= _SQUARE:
        return value if power == 1 else builder.op("Sqrt", [value])
    return builder.op("Pow", [value, builder.constant(np.array(1 / power, dtype), "power")])
