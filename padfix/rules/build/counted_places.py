"""The first rows of a constant, as many as an open length, by places that are counted along the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from padfix.operators.counted_rows import CountedRows, counted_rows
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.elementary_forms import reduced, reduction_traits, zeros_of
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import chain_trial
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_SINCE = 11
"""Operator set from which on CumSum exists and Equal compares floats."""


def counted_places(site: Site) -> Iterator[Form]:
    """Yield a Gather of the rows by a sum that runs over ones, made of the data whose length says how many.

    Zeros of all images are added where the rows lie along another axis than in the data: a sum of no image at all is
    zero as well.
    """
    counted = counted_rows(site.scope, site.node)
    known = None if counted is None else site.scope.type_of(counted.measured)
    if counted is None or known is None or known.shape is None:
        return
    others = [axis for axis, each in enumerate(known.shape) if axis != counted.axis and each != 1]
    summed = [] if counted.before == counted.axis else [axis for axis in others if not axis]
    data = _Data(known.elem_type, len(known.shape), [axis for axis in others if axis not in summed], summed)

    def write() -> Rewrite:
        builder = site.builder(_SINCE if site.opset < _SINCE else None)
        rows = [builder.constant(counted.rows, "rows"), _places(builder, counted, data)]
        builder.output(site.node.output[0], builder.op("Gather", rows, {"axis": 0}))
        trial = chain_trial(site.scope, list(counted.chain))
        return Rewrite(builder.build(), (trial,), exact=True, replaces=tuple(counted.chain[:-1]))

    operators = _operators(counted, data, reduction_traits("ReduceSum", max(site.opset, _SINCE), [0]))
    yield Form("its rows by places that are counted along the data", operators, write, None, _SINCE)


@dataclass(frozen=True)
class _Data:
    """The data of which one length is measured: of which type, of how many axes, and which are cut or summed to one."""

    elem_type: int
    rank: int
    cut: Sequence[int]
    summed: Sequence[int]


def _places(builder: FragmentBuilder, counted: CountedRows, measured: _Data) -> Any:
    """Return the places 0, 1, 2 and so on, as many as the measured data have along their axis."""
    axis, is_float = counted.axis, measured.elem_type == TensorProto.FLOAT
    data = builder.input(counted.measured)
    data = data if is_float else builder.op("Cast", [data], {"to": int(TensorProto.FLOAT)})
    if measured.cut:
        data = sliced(builder, data, [0] * len(measured.cut), [1] * len(measured.cut), list(measured.cut))
    zero = builder.constant(np.zeros(1, np.float32), "zero")
    zeros = zeros_of(builder, data) if is_float else builder.op("Mul", [data, zero])
    zeros = reduced(builder, "ReduceSum", zeros, measured.summed) if measured.summed else zeros
    one = builder.constant(np.ones(1, np.float32), "one")
    up_to = builder.op("CumSum", [builder.op("Add", [zeros, one]), builder.constant(np.array(axis), "axis")])
    places = builder.op("Cast", [builder.op("Sub", [up_to, one])], {"to": int(TensorProto.INT64)})
    if counted.before != axis:
        return builder.reshaped(places, [*[1] * counted.before, -1])
    return places if axis == measured.rank - 1 else builder.reshaped(places, [0] * (axis + 1))


def _operators(counted: CountedRows, data: _Data, summing: Traits) -> Operators:
    rank = data.rank
    element = {"rank": rank, "broadcasts": True, "numbers": "single"}
    is_float = data.elem_type == TensorProto.FLOAT
    return (
        ("Cast", {"rank": rank, "gives": "single", "changes-type": True}),
        *((("Slice", {"rank": rank, "first-axis": 0 in data.cut, "behind-window": False}),) if data.cut else ()),
        *((("Equal", {"rank": rank, "broadcasts": False}),) if is_float else ()),
        ("Mul", element),
        *((("ReduceSum", {**summing, "rank": rank}),) if data.summed else ()),
        ("Add", element),
        ("CumSum", {"rank": rank}),
        ("Sub", element),
        ("Cast", {"rank": rank, "gives": "integer", "changes-type": True}),
        ("Reshape", {"rank": counted.before + 1}),
        ("Gather", {"picks-a-list": True, "picks-a-matrix": counted.before > 0, "both-computed": False}),
    )
