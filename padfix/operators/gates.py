"""Activations that gate data, and what runtimes take them for with their surroundings: HardSwish and Mish."""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.clip import UNBOUNDED, Bounds, clip_bounds
from padfix.operators.lists import depends_on_data
from padfix.operators.negative_parts import scaling_list

FAR = -80.0
"""Where an exponential is next to nothing: the square of what it gives is 0 in single precision."""

_PRODUCTS = ("Conv", "Gemm", "MatMul")

_MATRIX, _AXES_OF_HEADS = 2, 4

_SCALING = ("Add", "Div", "Mul")
"""What may come between products of queries and their Softmax."""

_JOINED = ("Add", "BatchNormalization", "Mul", "Reshape", "Transpose")

_PARTS = 3
"""How many of those are looked behind."""

_LOW = range(9, 16)
"""Rows of images that lie in two blocks of eight."""

BOUND = 20.0
"""Where a Tanh gives 1 in every element type."""


HALF_A_TURN = 4.0
"""No less than half a turn, with what is lost of a turn in half precision."""


def angle_traits(scope: Scope, node: NodeProto) -> dict[str, bool]:
    """Return of a Sin or Cos whether a Clip keeps its angle within about half a turn."""
    least, most = _bounds(scope, node.input[0])
    return {"bounded": least >= -HALF_A_TURN and most <= HALF_A_TURN}


def is_behind_product(scope: Scope, node: NodeProto) -> bool:
    """Whether the data of an activation are what a convolution or a product gives, or what becomes a part of these.

    That is a constant that is added or multiplied by, a norm by numbers, and another order of the axes.
    """
    maker = scope.own_producer(node.input[0])
    for _ in range(_PARTS):
        if maker is None or maker.op_type not in _JOINED:
            break
        data = [name for name in maker.input if scope.constant(name) is None]
        maker = scope.own_producer(data[0]) if len(data) == 1 else None
    return maker is not None and maker.op_type in _PRODUCTS


def gate_traits(scope: Scope, node: NodeProto) -> dict[str, bool]:
    """Return whether the node is what HardSwish and Mish multiply their input by, and other data is multiplied."""
    own = node.input[0]
    if node.op_type == "HardSigmoid":
        is_gate = _is_hard_gate(node)
    else:
        before = scope.own_producer(own)
        is_gate = before is not None and before.op_type == "Softplus"
        own = before.input[0] if before is not None and is_gate else own
    others = (
        name
        for each in scope.consumers(node.output[0])
        if each.op_type == "Mul"
        for name in each.input
        if name != node.output[0]
    )
    gates_others = is_gate and any(name != own for name in others)
    if node.op_type == "HardSigmoid":
        return {"gates-other-data": gates_others, "of-low-plane": _is_of_low_plane(scope, node)}
    least, most = _bounds(scope, node.input[0])
    within = least >= -BOUND and most <= BOUND
    # What stands in a Mish is run as one.
    return {
        "gates-other-data": gates_others,
        "bounded": (is_gate and not gates_others) or within,
        "halved-gate": _is_of_cube(scope, node) and _is_halved(scope, node),
        "behind-product": is_behind_product(scope, node),
    }


def _is_of_low_plane(scope: Scope, node: NodeProto) -> bool:
    """Whether data are images of 9 to 15 rows that no convolution gives right before it."""
    known, maker = scope.type_of(node.input[0]), scope.own_producer(node.input[0])
    rows = known.shape[2] if known is not None and known.shape is not None and len(known.shape) == 4 else None
    return isinstance(rows, int) and rows in _LOW and (maker is None or maker.op_type != "Conv")


def _is_of_cube(scope: Scope, node: NodeProto) -> bool:
    """Whether a Tanh is of a number times the sum of data and a part of their cube, which is written as products."""
    scaled = scope.own_producer(node.input[0])
    if scaled is None or scaled.op_type != "Mul":
        return False
    sums = [each for name in scaled.input if (each := scope.own_producer(name)) is not None and each.op_type == "Add"]
    cubes = [each for added in sums for name in added.input if (each := scope.own_producer(name)) is not None]
    squares = (scope.own_producer(name) for each in cubes if each.op_type == "Mul" for name in each.input)
    return any(each is not None and each.op_type == "Mul" for each in squares)


def _is_halved(scope: Scope, node: NodeProto) -> bool:
    """Whether 1 is added, and what that gives is multiplied twice: by a constant and by data, in any order."""
    sums = [each for each in scope.consumers(node.output[0]) if each.op_type == "Add"]
    gates = [by for each in sums for by in scope.consumers(each.output[0]) if by.op_type == "Mul"]
    return any(
        {_has_constant(scope, by), _has_constant(scope, each)} == {True, False}
        for by in gates
        for each in scope.consumers(by.output[0])
        if each.op_type == "Mul"
    )


def _has_constant(scope: Scope, node: NodeProto) -> bool:
    return any(scope.constant(name) is not None for name in node.input)


def softplus_traits(scope: Scope, node: NodeProto) -> dict[str, bool]:
    """Return whether all that the node reads is within the bound, or it is part of a Mish."""
    read = scope.consumers(node.output[0])
    is_gate = len(read) == 1 and read[0].op_type == "Tanh" and gate_traits(scope, read[0])["bounded"]
    least, most = _bounds(scope, node.input[0])
    return {"bounded": is_gate or most <= 2 * BOUND, "falls-far": least < FAR}


def falls_far(scope: Scope, node: NodeProto) -> bool:
    """Whether data may be lower than where an exponential is next to nothing: no Clip keeps it above."""
    return _bounds(scope, node.input[0])[0] < FAR


def erf_traits(scope: Scope, node: NodeProto) -> dict[str, bool]:
    """Return whether an Erf of x / sqrt(2) has 1 added and is multiplied by a constant, and what that gives by data.

    That is a Gelu whose gate is halved, and not what it gates.
    """
    divided = scope.own_producer(node.input[0])
    is_scaled = divided is not None and divided.op_type == "Div" and _is_number(scope, divided.input[1], math.sqrt(2))
    sums = [each for each in scope.consumers(node.output[0]) if each.op_type == "Add"]
    gates = (
        by
        for each in sums
        if any(_is_number(scope, name, 1) for name in each.input)
        for by in scope.consumers(each.output[0])
        if by.op_type == "Mul" and any(scope.constant(name) is not None for name in by.input)
    )
    is_gate = any(each.op_type == "Mul" for by in gates for each in scope.consumers(by.output[0]))
    return {"halved-gate": is_scaled and is_gate, "within-gelu": _is_within_gelu(scope, node)}


def _is_within_gelu(scope: Scope, node: NodeProto) -> bool:
    """Whether an Erf is of a constant part of data, and 1 is added and what that gives multiplied alone."""
    scaled = scope.own_producer(node.input[0])
    is_part = scaled is not None and scaled.op_type in ("Div", "Mul") and _has_constant(scope, scaled)
    sums = scope.consumers(node.output[0])
    if not is_part or len(sums) != 1 or sums[0].op_type != "Add" or scope.is_output(node.output[0]):
        return False
    gates = scope.consumers(sums[0].output[0])
    return len(gates) == 1 and gates[0].op_type == "Mul" and any(_is_number(scope, each, 1) for each in sums[0].input)


def _is_number(scope: Scope, name: str, number: float) -> bool:
    """Whether a constant is one number, as near as single precision tells."""
    value = scope.constant(name)
    return value is not None and value.size == 1 and math.isclose(float(value.reshape(-1)[0]), number, rel_tol=1e-4)


def product_traits(scope: Scope, node: NodeProto) -> dict[str, bool]:
    """Return of a Mul whether its second factor is the gate of a HardSwish of the first, and if a Cast reads it."""
    data, gate = node.input
    before = scope.own_producer(gate)
    is_gated = before is not None and before.op_type == "HardSigmoid" and before.input[0] == data
    return {
        "gate-second": is_gated and before is not None and _is_hard_gate(before),
        "scales-negative-part": scaling_list(scope, node) is not None,
        "squares": data == gate,
        "scales-one-query": _scales_one_query(scope, node),
        "before-cast": any(each.op_type == "Cast" for each in scope.consumers(node.output[0])),
    }


def divides_heads(scope: Scope, node: NodeProto) -> bool:
    """Whether scores of heads are divided by a number, of which OpenCV makes an attention that it has not.

    Its queries or keys have no bias, or find how many heads there are; or a mask is added that a node computes.
    """
    product = scope.own_producer(node.input[0])
    if product is None or product.op_type != "MatMul" or depends_on_data(scope, node.input[1]):
        return False
    readers = scope.consumers(node.output[0])
    masking = [each for each in readers if each.op_type == "Add"]
    readers += [reader for each in masking for reader in scope.consumers(each.output[0])]
    heads = [_heads_of(scope, name) for name in product.input]
    if not any(each.op_type == "Softmax" for each in readers):
        return False
    masks = [name for each in masking for name in each.input if name != node.output[0]]
    is_computed = any(scope.own_producer(name) is not None and depends_on_data(scope, name) for name in masks)
    return (is_computed and None not in heads) or any(
        each is not None and _lacks_bias_or_number(scope, each) for each in heads
    )


def _heads_of(scope: Scope, name: str) -> NodeProto | None:
    """Return the Reshape by which rows become heads, which a Transpose brings to the front."""
    turned = scope.own_producer(name)
    heads = scope.own_producer(turned.input[0]) if turned is not None and turned.op_type == "Transpose" else None
    return heads if heads is not None and heads.op_type == "Reshape" else None


def _lacks_bias_or_number(scope: Scope, heads: NodeProto) -> bool:
    told, layer = scope.constant(heads.input[1]), scope.own_producer(heads.input[0])
    finds_heads = told is not None and told.size == _AXES_OF_HEADS and told.reshape(-1)[2] == -1
    return finds_heads or (layer is not None and layer.op_type == "MatMul")


def _scales_one_query(scope: Scope, node: NodeProto) -> bool:
    """Whether the first factor is the heads of one row that a dense layer makes, whose products a Softmax reads."""
    turned = scope.own_producer(node.input[0])
    while turned is not None and turned.op_type == "Identity":
        turned = scope.own_producer(turned.input[0])
    if turned is None or turned.op_type != "Transpose" or depends_on_data(scope, node.input[1]):
        return False
    name = turned.input[0]
    while (producer := scope.own_producer(name)) is not None and producer.op_type in ("Reshape", "Unsqueeze"):
        name = producer.input[0]
    known = scope.type_of(name)
    if known is None or known.rank != _MATRIX or name == turned.input[0]:
        return False
    products = [each for each in scope.consumers(node.output[0]) if each.op_type == "MatMul"]
    readers = [reader for each in products for reader in scope.consumers(each.output[0])]
    readers += [reader for each in readers if each.op_type in _SCALING for reader in scope.consumers(each.output[0])]
    return any(each.op_type == "Softmax" for each in readers)


def _is_hard_gate(node: NodeProto) -> bool:
    alpha, beta = attributes.find(node, "alpha"), attributes.find(node, "beta")
    return np.float32(0.2 if alpha is None else alpha.f) == np.float32(1 / 6) and (beta is None or beta.f == 0.5)


def _bounds(scope: Scope, name: str) -> Bounds:
    """Return what numbers are within that a Clip gives."""
    node = scope.own_producer(name)
    return clip_bounds(scope, node) if node is not None and node.op_type == "Clip" else UNBOUNDED
