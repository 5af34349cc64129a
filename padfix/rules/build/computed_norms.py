"""Norms whose scale, bias, mean or variance is only known at run time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.layer_traits import normalised_shape
from padfix.operators.plain_traits import is_training
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.written_forms import EPSILON

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_APART: Operators = (("Mul", {"gate-second": False}), ("Add", {}))


def computed_batch_norm(site: Site) -> Form:
    """Return a BatchNormalization as a product and a sum, whose numbers are computed from what it is given."""

    def write() -> Rewrite:
        builder = site.builder()
        scale, bias, mean, variance = (_along_channels(site, builder, place) for place in range(1, 5))
        told = attributes.find(site.node, "epsilon")
        least = builder.constant(np.array(EPSILON if told is None else told.f, _dtype(site)), "epsilon")
        root = builder.op("Sqrt", [builder.op("Add", [variance, least])])
        factor = builder.op("Div", [scale, root])
        term = builder.op("Sub", [bias, builder.op("Mul", [mean, factor])])
        product = builder.op("Mul", [builder.input(site.input_name(0)), factor])
        builder.output(site.node.output[0], builder.op("Add", [product, term]))
        return Rewrite(builder.build(), trials_of(site))

    operators: Operators = (*_APART, ("Sqrt", {}), ("Div", {"from-constant": False}), ("Sub", {}))
    why_not = Refusal("it trains") if is_training(site.scope, site.node) else _why_not(site)
    return Form("a product and a sum of what is computed", operators, write, why_not)


def computed_instance_norm(site: Site) -> Form:
    """Return an InstanceNormalization with factors of 1, and a product and a sum behind it."""

    def write() -> Rewrite:
        builder = site.builder()
        channels = _channels(site)
        assert channels is not None
        plain = [builder.constant(np.full(channels, each, _dtype(site)), "plain") for each in (1, 0)]
        scale, bias = (_along_channels(site, builder, place) for place in (1, 2))
        norm = builder.original(copied(site.node), [builder.input(site.input_name(0)), *plain])
        builder.output(site.node.output[0], builder.op("Add", [builder.op("Mul", [norm, scale]), bias]))
        return Rewrite(builder.build(), trials_of(site))

    why_not = _why_not(site) or (None if _channels(site) else Refusal("how many channels it has is not known"))
    if not (traits_of(site.scope, site.node) or {}).get("numbers-computed", True):
        why_not = Refusal("its factors are constant")
    # What the target has against the norm alone has forms of its own.
    return Form("factors of 1, and others behind it", _APART, write, why_not)


def computed_layer_norm(site: Site) -> Iterator[Form]:
    """Yield a LayerNormalization with factors of 1, and a product and a sum behind it."""
    weighed = [known for place in (1, 2) if (known := site.input_type(place)) is not None]
    whole = normalised_shape(site.scope, site.node)
    lengths = tuple(each for each in whole if isinstance(each, int))
    is_whole = bool(weighed) and weighed[0].lengths is not None and 0 < len(lengths) == len(whole)
    shape = lengths if is_whole else weighed[0].lengths if weighed else None

    def write() -> Rewrite:
        assert shape is not None
        builder = site.builder()
        data, *given = (builder.input(name) for name in site.node.input if name)
        plain = [builder.constant(np.full(shape, each, _dtype(site)), "plain") for each in (1, 0)]
        scaled = builder.op("Mul", [builder.original(copied(site.node), [data, *plain]), given[0]])
        builder.output(site.node.output[0], builder.op("Add", [scaled, given[1]]) if len(given) > 1 else scaled)
        return Rewrite(builder.build(), trials_of(site))

    own = traits_of(site.scope, site.node) or {}
    why_not = None
    if not own.get("numbers-computed", True):
        why_not = Refusal("its factors are constant")
    elif any(site.node.output[1:]):
        why_not = Refusal("its mean and deviation are read")
    elif shape is None:
        why_not = Refusal("how many factors it has is not known")
    told = {**own, "numbers-computed": False, "one-constant-alone": False, "biased": True}
    told |= dict.fromkeys(("weights-spread", "weights-of-fewer-axes"), False) if is_whole else {}
    operators: Operators = (("LayerNormalization", told), *_APART[: 1 + bool(site.input_name(2))])
    yield Form("factors of 1, and others behind it", operators, write, why_not)


def _why_not(site: Site) -> Refusal | None:
    known = site.input_type(0)
    return None if known is not None and known.rank else Refusal("how many axes it has is not known")


def _channels(site: Site) -> int | None:
    for known, axis in ((site.input_type(0), 1), (site.input_type(1), 0)):
        length = known.shape[axis] if known is not None and known.shape and len(known.shape) > axis else None
        if isinstance(length, int):
            return length
    return None


def _along_channels(site: Site, builder: FragmentBuilder, place: int) -> Any:
    """Return what is given for each channel, along the axis of the channels."""
    known, told = site.input_type(0), site.constant(place)
    rank = 0 if known is None or known.rank is None else known.rank
    shape = [1, -1, *[1] * (rank - 2)][-rank:]  # a list is of one channel
    if told is not None:
        return builder.constant(told.reshape(shape).astype(_dtype(site)), "numbers")
    return builder.reshaped(builder.input(site.input_name(place)), shape)


def _dtype(site: Site) -> Any:
    return helper.tensor_dtype_to_np_dtype(site.elem_type(0))
