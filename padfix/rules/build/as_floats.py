"""What joins, pads, compares or reduces bytes or booleans, by floats or integers, which hold them exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from padfix.graph import attributes
from padfix.operators.lists import COMPARING
from padfix.operators.refusal import Refusal
from padfix.operators.steps_of_bytes import steps_beside
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.index_forms import MAXIMUM_OF_INTEGERS_SINCE
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

_HELD: Mapping[int, Traits] = {
    TensorProto.BOOL: {"numbers": "boolean", "elements": "float", "unsigned": False},
    TensorProto.UINT8: {"numbers": "integer", "elements": "byte", "unsigned": True},
    TensorProto.INT8: {"numbers": "integer", "elements": "byte", "unsigned": False},
}
_WITH_STEPS = (TensorProto.INT8, TensorProto.UINT8)

_PICKING = ("Gather", "GatherElements", "GatherND")
"""What picks elements of its first input by others."""

_DATA: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(("Pad", "ScatterElements", "ScatterND"), (0, 2)),
    **dict.fromkeys((*_PICKING, "Expand", "ReduceMax", "ReduceMin", "Tile"), (0,)),
    "Where": (1, 2),
}
"""Which inputs are data, where not all are."""

_OF_NO_BYTES: Traits = {"reads-constant-bytes": False, "reads-unsigned-bytes": False}

_OF_FLOATS: Traits = {
    **_OF_NO_BYTES,
    "numbers": "single",
    "elements": "float",
    "bytes": "none",
    "type": "float",
    "constant-booleans": False,
    "appends-to-input": False,
}

_OF_INTEGERS: Traits = {**_OF_FLOATS, "numbers": "integer", "elements": "integer", "type": "int32"}

_OF_SIXTEEN_BITS: Traits = {**_OF_INTEGERS, "type": "uint16"}

_WHOLE = ("Mod",)
"""What asks for integers."""

_HOLDERS: Mapping[int, Traits] = {
    TensorProto.FLOAT: _OF_FLOATS,
    TensorProto.INT32: _OF_INTEGERS,
    TensorProto.UINT16: _OF_SIXTEEN_BITS,
}

_INTEGERS_SINCE = dict.fromkeys(("Clip", "Max", "Min"), MAXIMUM_OF_INTEGERS_SINCE)
"""The first opsets in which these take integers of 32 bits."""


def as_floats(site: Site) -> Iterator[Form]:
    """Yield the node of floats between a Cast of all its data and one of its result, if that is none of a comparison.

    And that of integers of 32 bits. What it does must be exact in both: comparing, choosing and moving, no sum.
    """
    op_type = site.node.op_type
    if op_type not in _WHOLE:
        yield _held_as(site, TensorProto.FLOAT, "floats that hold what it takes")
    first = site.input_type(_DATA.get(op_type, (0,))[0])
    if (first is None or first.elem_type != TensorProto.BOOL) and site.opset >= _INTEGERS_SINCE.get(op_type, 0):
        yield _held_as(site, TensorProto.INT32, "integers of 32 bits that hold what it takes")


MOVING = ("Concat", "Expand", "Gather", "GatherND", "Identity", "ScatterND", "Tile", "Transpose")
"""What gives elements as they are, in whatever type holds them."""


_KEPT = frozenset(
    """
    ArgMax ArgMin Clip DepthToSpace Flatten Max MaxPool Min Pad ReduceMax ReduceMin Reshape Slice SpaceToDepth Squeeze
    Unsqueeze Where
    """.split()  # noqa: SIM905
).union(MOVING, COMPARING)
"""What gives bytes that it takes, or tells which they are."""

_QUANTIZED_SINCE = 10
"""The first opset of DequantizeLinear and QuantizeLinear."""

_OF_STEPS: Traits = {"zero-point-written": True, "zero-point-alike": True, "quantized-to": "bytes"}


def between_steps(site: Site) -> Form:
    """Return what moves or compares bytes as of the floats that a DequantizeLinear makes of them.

    In the steps that they are made or taken in, or else in steps of 1. A QuantizeLinear in the same steps gives of
    each of these floats the byte that it stands for.
    """
    node, own = site.node, traits_of(site.scope, site.node) or {}
    places = [
        place for place in _DATA.get(node.op_type, range(len(node.input))) if site.elem_type(place) in _WITH_STEPS
    ]
    elem_type = site.elem_type(places[0]) if places else TensorProto.UINT8
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    made = site.scope.type_of(node.output[0])
    gives_bytes = made is None or made.elem_type in _WITH_STEPS
    is_nearest = node.op_type == "Resize" and attributes.text(node, "mode", "nearest") == "nearest"
    found = steps_beside(site.scope, node, places)
    why_not = None if places else Refusal("its data are no bytes")
    if node.op_type not in _KEPT and not is_nearest:
        why_not = Refusal("it makes other bytes of them")
    elif len(list(filter(None, node.output))) > 1:
        why_not = Refusal("it gives more than its data")
    elif found is None:
        why_not = Refusal("its bytes are made or taken in steps that differ, or are not known")

    def write() -> Rewrite:
        assert found is not None
        builder = site.builder(max(site.opset, _QUANTIZED_SINCE))
        scale, zero = np.array(found[0], np.float32), np.array(found[1], dtype)
        steps = [builder.constant(scale, "step"), builder.constant(zero, "zero_point")]
        given: list[Any] = []
        for place, name in enumerate(node.input):
            told = site.constant(place) if name and place in places else None
            if told is not None:
                given.append(builder.constant((told.astype(np.float32) - zero.astype(np.float32)) * scale, "numbers"))
            else:
                value = builder.input(name)
                given.append(builder.op("DequantizeLinear", [value, *steps]) if place in places else value)
        result = builder.original(copied(node), given)
        result = builder.op("QuantizeLinear", [result, *steps]) if gives_bytes else result
        builder.output(node.output[0], result)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    steps = {**_OF_STEPS, "unsigned": elem_type == TensorProto.UINT8}
    made_of: Operators = (("QuantizeLinear", steps),) if gives_bytes else ()
    numbers = {**own, **_OF_FLOATS, "of-quantizer": False}
    operators: Operators = (("DequantizeLinear", steps), (node.op_type, numbers), *made_of)
    return Form("floats that bytes stand for", operators, write, why_not, _QUANTIZED_SINCE)


def in_sixteen_bits(site: Site) -> Iterator[Form]:
    """Yield a BitShift of bytes as one of 16 bits, of which those of the byte that it gives are the first eight."""
    yield _held_as(site, TensorProto.UINT16, "integers of 16 bits that hold what it takes")


def in_single_precision(site: Site) -> Form:
    """Return a node of halves between a Cast of all of them to floats and one of its result, if that is halves too."""
    node, own = site.node, traits_of(site.scope, site.node) or {}
    halves = [site.elem_type(place) == TensorProto.FLOAT16 for place in range(len(node.input))]
    result = site.scope.type_of(node.output[0])
    gives_halves = result is None or result.elem_type == TensorProto.FLOAT16

    def write() -> Rewrite:
        builder = site.builder()
        given: list[Any] = []
        for place, (name, is_half) in enumerate(zip(node.input, halves, strict=True)):
            told = site.constant(place) if is_half else None
            if told is not None:
                given.append(builder.constant(told.astype(np.float32), "numbers"))
            elif is_half:
                given.append(builder.op("Cast", [builder.input(name)], {"to": TensorProto.FLOAT}))
            else:
                given.append(builder.input(name))
        value = builder.original(copied(node), given)
        if gives_halves:
            value = builder.op("Cast", [value], {"to": TensorProto.FLOAT16})
        builder.output(node.output[0], value)
        return Rewrite(builder.build(), trials_of(site))

    cast: Traits = {"changes-type": True, "changes-numbers": False, "elements": "float", "unsigned": False}
    to_single: Traits = {**cast, "numbers": "half", "gives": "single"}
    back: Traits = {**cast, "numbers": "single", "gives": "half"}
    single = (("Cast", to_single), (node.op_type, {**own, "numbers": "single"}))
    operators: Operators = (*single, ("Cast", back)) if gives_halves else single
    is_of_halves = bool(halves) and halves[0] and len(list(filter(None, node.output))) == 1
    return Form("floats of single precision", operators, write, None if is_of_halves else Refusal("it has no halves"))


def _held_as(site: Site, holder: int, name: str) -> Form:
    node = site.node
    is_compared = node.op_type in COMPARING
    places = _DATA.get(node.op_type, range(len(node.input)))
    elem_type = site.elem_type(places[0])

    def write() -> Rewrite:
        builder = site.builder()
        given: list[Any] = []
        for place, name in enumerate(node.input):
            told = site.constant(place)
            if place not in places or not name:
                given.append(builder.input(name))
            elif told is not None:
                given.append(builder.constant(told.astype(helper.tensor_dtype_to_np_dtype(holder)), "numbers"))
            else:
                given.append(builder.op("Cast", [builder.input(name)], {"to": holder}))
        result = builder.original(copied(node), given)
        builder.output(node.output[0], result if is_compared else builder.op("Cast", [result], {"to": elem_type}))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    held = _HOLDERS[holder]
    own = {**(traits_of(site.scope, node) or {}), **(held if places[0] == 0 else _OF_NO_BYTES), "type": held["type"]}
    if node.op_type in _PICKING:
        own = dict(held)  # what else is special of it is looked at once it picks floats
    cast: Traits = {"changes-type": True, "changes-numbers": False}
    number = "single" if holder == TensorProto.FLOAT else "integer"
    to_holder: Traits = {**cast, **_HELD.get(elem_type, {}), "gives": number}
    back: Traits = {
        **cast,
        "numbers": number,
        "elements": held["elements"],
        "unsigned": False,
        "gives-odd-integers": elem_type in (TensorProto.INT8, TensorProto.UINT8),
        "gives-unsigned-bytes": elem_type == TensorProto.UINT8,
        "gives-signed-bytes": elem_type == TensorProto.INT8,
        "wraps": holder == TensorProto.UINT16,
        "gives": "boolean" if elem_type == TensorProto.BOOL else "integer",
    }
    operators: Operators = (("Cast", to_holder), (node.op_type, own), *([] if is_compared else [("Cast", back)]))
    why_not = None if elem_type in _HELD else Refusal("its data are no bytes or booleans")
    return Form(name, operators, write, why_not)
