"""What joins, pads, compares or reduces bytes or booleans, by floats, which hold them exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from padfix.operators.lists import COMPARING
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

_HELD: Mapping[int, Traits] = {
    TensorProto.BOOL: {"numbers": "boolean", "elements": "float", "unsigned": False},
    TensorProto.UINT8: {"numbers": "integer", "elements": "byte", "unsigned": True},
    TensorProto.INT8: {"numbers": "integer", "elements": "byte", "unsigned": False},
}
_DATA: Mapping[str, Sequence[int]] = {"Pad": (0, 2), "ReduceMax": (0,), "ReduceMin": (0,)}
"""Which inputs are data, where not all are."""

_OF_FLOATS: Traits = {
    "numbers": "single",
    "elements": "float",
    "bytes": "none",
    "of-odd-integers": False,
    "constant-booleans": False,
    "appends-to-input": False,
}


def as_floats(site: Site) -> Iterator[Form]:
    """Yield the node of floats between a Cast of all its data and one of its result, if that is none of a comparison.

    What it does must be exact in floats: comparing, choosing and moving, no sum.
    """
    elem_type, node = site.elem_type(0), site.node
    is_compared = node.op_type in COMPARING
    places = _DATA.get(node.op_type, range(len(node.input)))

    def write() -> Rewrite:
        builder = site.builder()
        given: list[Any] = []
        for place, name in enumerate(node.input):
            told = site.constant(place)
            if place not in places or not name:
                given.append(builder.input(name) if name else "")
            elif told is not None:
                given.append(builder.constant(told.astype(np.float32), "numbers"))
            else:
                given.append(builder.op("Cast", [builder.input(name)], {"to": TensorProto.FLOAT}))
        result = builder.original(copied(node), given)
        builder.output(node.output[0], result if is_compared else builder.op("Cast", [result], {"to": elem_type}))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    own = {**(traits_of(site.scope, node) or {}), **_OF_FLOATS}
    cast: Traits = {"changes-type": True, "changes-numbers": False}
    to_floats: Traits = {**cast, **_HELD.get(elem_type, {}), "gives": "single"}
    back: Traits = {
        **cast,
        "numbers": "single",
        "elements": "float",
        "unsigned": False,
        "gives": "boolean" if elem_type == TensorProto.BOOL else "integer",
    }
    operators: Operators = (("Cast", to_floats), (node.op_type, own), *([] if is_compared else [("Cast", back)]))
    why_not = None if elem_type in _HELD else Refusal("its data are no bytes or booleans")
    yield Form("floats that hold what it takes", operators, write, why_not)
