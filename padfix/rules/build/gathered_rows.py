"""A GatherND by computed indices as a Gather of the rows that the axes which it picks from make together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.elementary_forms import reduced, reduction_traits
from padfix.rules.build.forms import Form
from padfix.rules.build.index_forms import REST_SINCE
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators

_MOST_ROWS = 1 << 24
"""Up to here single precision counts every whole number, in which runtimes may compute the places."""


def rows_of_computed(site: Site) -> Iterator[Form]:
    """Yield the Gather of rows whose places are sums of the indices, each times the rows that its axis goes on by."""
    known, told = site.input_type(0), site.input_type(1)
    shape = () if known is None or known.shape is None else known.shape
    *lead, count = (None,) if told is None or not told.shape else told.shape
    images = attributes.integer(site.node, "batch_dims", 0) or 0
    depth = images + (count if isinstance(count, int) else len(shape) + 1)
    first = [each for each in shape[:depth] if isinstance(each, int)]
    result = [each if isinstance(each, int) else -1 for each in (*lead, *shape[depth:])]
    may_be_negative = (traits_of(site.scope, site.node) or {}).get("maybe-from-end") is not False
    why_not = None
    if site.constant(1) is not None:
        why_not = Refusal("its indices are constant")
    elif depth > len(shape) or len(first) < depth or 0 in first or result.count(-1) > 1 or -1 in result[:images]:
        why_not = Refusal("it needs the lengths of its inputs (--shape)")
    elif math.prod(first) > _MOST_ROWS:
        why_not = Refusal(f"it picks from more than {_MOST_ROWS} rows")
    elif site.elem_type(1) not in (TensorProto.INT32, TensorProto.INT64) or site.opset < REST_SINCE:
        why_not = Refusal("its indices are no integers, or this opset has no Mod")

    def write() -> Rewrite:
        builder = site.builder()
        dtype: Any = helper.tensor_dtype_to_np_dtype(site.elem_type(1))
        data, places = (builder.input(name) for name in site.node.input)
        lengths = first[images:]
        steps = [math.prod(first[axis + 1 :]) for axis in range(depth)]
        if may_be_negative:
            divisor = np.array(lengths if len(lengths) > 1 else lengths[0], dtype)
            places = builder.op("Mod", [places, builder.constant(divisor, "lengths")])
        if len(lengths) > 1:
            places = builder.op("Mul", [places, builder.constant(np.array(steps[images:], dtype), "steps")])
            places = reduced(builder, "ReduceSum", places, [len(lead)])
        if images:
            passed = np.tensordot(np.array(steps[:images]), np.indices(first[:images]), 1)
            shape_of_all = [*first[:images], *[1] * (len(lead) + 1 - images)]
            places = builder.op("Add", [places, builder.constant(passed.reshape(shape_of_all).astype(dtype), "images")])
        rows = builder.reshaped(data, [math.prod(first), -1])
        picked = builder.op("Gather", [rows, builder.reshaped(places, [-1])], {"axis": 0})
        builder.output(site.node.output[0], builder.reshaped(picked, result))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    rank = len(lead) + 1
    summed: Operators = (
        ("Mul", {"gate-second": False}),
        ("ReduceSum", {**reduction_traits("ReduceSum", site.opset, [len(lead)]), "rank": rank}),
    )
    operators: Operators = (
        *((("Mod", {"cuts-off": False}),) if may_be_negative else ()),
        *(summed if count != 1 else ()),
        *((("Add", {}),) if images else ()),
        ("Reshape", {"rank": 1, "copies-channels": False}),
        ("Reshape", {"rank": 2, "copies-channels": False}),
        ("Gather", {"picks-a-list": True, "picks-a-matrix": False, "both-computed": True}),
        ("Reshape", {"rank": len(result)}),
    )
    yield Form("a Gather of rows by computed places", operators, write, why_not)
