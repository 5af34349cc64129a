"""Sums and products with a constant for each channel as a convolution of one tap a channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from padfix.operators.axis_order import ORDER
from padfix.operators.constant_chains import is_constant
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of, window_traits
from padfix.operators.window import Window
from padfix.operators.written import Written
from padfix.rules.base import Site
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_FEWEST_AXES, _MOST_AXES = 3, 5


def by_channel(site: Site) -> Form:
    """Return a sum or product with a constant for each channel as a convolution, whose weights are of no other axis.

    What it adds to a product is 0, and what it multiplies by before a sum is 1, so that it rounds as they do.
    """
    node = site.node
    places = [place for place, name in enumerate(node.input) if not is_constant(site.scope, name)]
    data = places[0] if len(places) == 1 else 0
    known, told = site.input_type(data), site.constant(1 - data)
    shape = () if known is None or known.shape is None else known.shape
    rank, channels = len(shape), shape[1] if len(shape) > 1 else None
    numbers = _for_channels(told, rank, channels) if len(places) == 1 else None

    def write(builder: FragmentBuilder, *values: Any) -> Any:
        assert numbers is not None
        weights = numbers if node.op_type == "Mul" else np.ones_like(numbers)
        bias = [] if node.op_type == "Mul" else [builder.constant(numbers, "terms")]
        factors = builder.constant(weights.reshape(-1, 1, *[1] * (rank - 2)), "factors")
        told = {"group": numbers.size, "kernel_shape": [1] * (rank - 2)}
        return builder.op("Conv", [values[data], factors, *bias], told)

    why_not = None
    if node.op_type not in ("Add", "Mul") or numbers is None or not _FEWEST_AXES <= rank <= _MOST_AXES:
        why_not = Refusal("it is no sum or product of images with one constant for each channel")
    elif known is None or known.elem_type != TensorProto.FLOAT:
        why_not = Refusal("its data are no floats of single precision")
    own, ones = traits_of(site.scope, node) or {}, (1,) * max(rank - 2, 1)
    count = channels if isinstance(channels, int) else 1
    written = Written(kernel_shape=ones, group=count)
    window = Window("", "Conv", written, ones, ones, ones, shape[2:] or (None,), None, channels=count, maps=count)
    traits = {**window_traits(window), "biased": node.op_type == "Add", **{name: own[name] for name in ORDER if own}}
    return Form(
        "a convolution of each channel", (("Conv", traits),), lambda: of_inputs(site, write, exact=False), why_not
    )


def _for_channels(told: Any, rank: int, channels: object) -> np.ndarray | None:
    """Return a constant as one number for each channel; None where it is of other axes, or of all channels alike."""
    if told is None or rank < _FEWEST_AXES or told.ndim > rank or not isinstance(channels, int):
        return None
    wide = told.reshape([1] * (rank - told.ndim) + list(told.shape))
    return wide.reshape(-1) if wide.shape == (1, channels, *[1] * (rank - 2)) else None
