"""What a product of matrices is like, in the words that targets state their facts in."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnx import NodeProto

from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.batches import gives_each_image_its_own
from padfix.operators.constant_chains import is_constant
from padfix.operators.elementwise import ELEMENTWISE
from padfix.operators.fused_layers import MATRIX
from padfix.operators.lists import depends_on_data
from padfix.operators.loaded_lengths import counted_lengths_differ
from padfix.operators.open_lengths import multiplies_open
from padfix.operators.shape_questions import copied_along_first, is_by_a_number
from padfix.operators.turned_heads import turns_heads_once
from padfix.targets.traits import Traits

_NEAR = 8
"""Operators that may lie between a Softmax and a product with what it gives."""


def matrix_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a MatMul how many axes its factors have, which are lists or repeated, and what reads the result."""
    ranks = [None if (known := scope.type_of(name)) is None else known.rank for name in node.input[:2]]
    first, second = (None if rank is None else rank == 1 for rank in ranks)
    return {
        "rank": ranks[0],
        "list-first": first,
        "list-second": second,
        "multiplies-open": multiplies_open(scope, node),
        "by-a-matrix": ranks[1] == 2,
        "by-a-number": is_by_a_number(scope, node),
        "shares-of-fewer-axes": _are_shares_of_fewer_axes(scope, node, ranks),
        "spread-alike": _are_spread_alike(scope, node),
        "copied-along-first": bool(copied_along_first(scope, node)),
        "scaled": _is_scaled(scope, node),
        "turns-heads-once": turns_heads_once(scope, node),
        "squares": len(node.input) > 1 and len(set(node.input)) == 1,
        "counts-differ": counted_lengths_differ(scope, node),
        "by-fewer-constants": _is_by_fewer_constants(scope, node),
        "open-rows-by-several": _are_open_rows_by_several(scope, node),
        "numbers-images": gives_each_image_its_own(scope, node, MATRIX),
    }


def _are_shares_of_fewer_axes(scope: Scope, node: NodeProto, ranks: Sequence[int | None]) -> bool:
    """Whether what a Softmax gave, also in other numbers since, is multiplied by matrices of more axes."""
    first, second = ranks
    if first is None or second is None or not 1 < first < second:
        return False
    maker = scope.own_producer(node.input[0])
    for _ in range(_NEAR):
        if maker is None or maker.op_type not in ELEMENTWISE or normal_domain(maker.domain):
            break
        maker = scope.own_producer(maker.input[0])
    return maker is not None and maker.op_type == "Softmax" and not normal_domain(maker.domain)


def _are_spread_alike(scope: Scope, node: NodeProto) -> bool:
    """Whether both factors have as many matrices, and fewer than the result, as far as that is known."""
    types = [scope.type_of(name) for name in (*node.input[:2], node.output[0])]
    lengths = [None if known is None else known.lengths for known in types]
    if any(each is None or len(each) < MATRIX for each in lengths):
        return False
    first, second, result = (math.prod(each[:-MATRIX]) for each in lengths if each is not None)
    return first == second < result


def _is_scaled(scope: Scope, node: NodeProto) -> bool:
    """Whether a product with a number, or a quotient by one, that data have no part in, alone reads the result."""
    name, readers = node.output[0], _readers_of_data(scope, node.output[0])
    while len(readers) == 1 and readers[0].op_type == "Identity":
        name, readers = readers[0].output[0], _readers_of_data(scope, readers[0].output[0])
    if len(readers) != 1 or readers[0].op_type not in ("Div", "Mul"):
        return False
    others = [each for each in readers[0].input if each != name]
    known = scope.type_of(others[0]) if len(others) == 1 else None
    is_one = known is not None and known.lengths is not None and set(known.lengths) <= {1}
    return is_one and not depends_on_data(scope, others[0])


def _readers_of_data(scope: Scope, name: str) -> list[NodeProto]:
    return [each for each in scope.consumers(name) if each.op_type != "Shape"]


def _is_by_fewer_constants(scope: Scope, node: NodeProto) -> bool:
    """Whether several constant matrices come second that are repeated, or may be: the result has more than they are."""
    matrices, result = (scope.type_of(name) for name in (node.input[1], node.output[0]))
    if matrices is None or matrices.lengths is None or not is_constant(scope, node.input[1]):
        return False
    number = math.prod(matrices.lengths[:-2])
    lengths = None if result is None else result.lengths
    return number > 1 and (lengths is None or math.prod(lengths[:-2]) != number)


def _are_open_rows_by_several(scope: Scope, node: NodeProto) -> bool:
    """Whether several constant matrices multiply one of three axes or fewer, or maybe one, not all of it told."""
    rows, matrices = (scope.type_of(name) for name in node.input[:2])
    if rows is None or rows.shape is None or not 1 < len(rows.shape) <= MATRIX + 1 or rows.lengths is not None:
        return False
    if matrices is None or matrices.rank != MATRIX + 1 or depends_on_data(scope, node.input[1]):
        return False
    several, batch = (known.shape[0] if known.rank == MATRIX + 1 and known.shape else 1 for known in (matrices, rows))
    return several != 1 and (batch == 1 or not isinstance(batch, int))
