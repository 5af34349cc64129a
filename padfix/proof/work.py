"""How much work a run of a model is, and whether the machine can hold it, from its shapes alone."""

from __future__ import annotations

import math
from collections.abc import Iterable

from onnx import NodeProto, TensorProto

from padfix.errors import ProofUnavailableError
from padfix.files.model import Model
from padfix.files.tensors import payload_size
from padfix.graph.scopes import Scope
from padfix.operators.inference import infer
from padfix.operators.reading import read
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Window
from padfix.process import memory, watch

HEAVY = 2_000_000_000
"""Multiplications a run above which the whole proof of a rewritten model makes do with fewer kinds of data."""

LIGHT = 10_000_000
"""Multiplications a row up to which a model of a table is run on many rows."""

ROWS = 64
"""Rows then, for each that a batch has: where a model decides row by row, a single one tells little of it."""

FEW_KINDS = ("normal", "negative", "ramp")
"""Those that tell most: each rewrite was proven on all kinds of data before, on its own."""

_GENERATORS = frozenset({"ConstantOfShape", "Expand", "Tile", "Range", "Pad", "Constant", "EyeLike", "OneHot", "Loop"})
_PRODUCTS = frozenset({"MatMul", "Gemm"})


def patience(work: int) -> float:
    """Return how many seconds a first run of so many multiplications may take on a slow machine."""
    return 60.0 + work * 1e-8


def rows(work: int) -> int:
    """Return how many rows of a table to run a model on at once that takes so many multiplications for one."""
    return ROWS if work <= LIGHT else 1


def allow_work(model: Model) -> int:
    """Let the watching process expect what a run of a model takes; return about how many multiplications that is.

    Raises:
        ProofUnavailableError: A single result is larger than all the memory that there is, so the model can't run here.
    """
    scopes = infer(model)
    _require_room(scopes[0])
    work = multiplications(scopes)
    watch.allow_work(work, result_bytes(scopes))
    return work


def multiplications(scopes: Iterable[Scope]) -> int:
    """Return about how many multiplications one run of a model takes; what has no known rank counts nothing.

    A length that is not known counts as one: mostly it is that of a batch, and runs take one or two.
    """
    return sum(_of_node(scope, node) for scope in scopes for node in scope.container.node)


def result_bytes(scopes: Iterable[Scope]) -> int:
    """Return about how many bytes all results of one run take; what has no known rank counts nothing.

    Operators that make much of nothing (a constant of a shape, copies) don't count: a file of a few bytes may ask them
    for all the memory there is.
    """
    lengths = (
        _lengths(scope, name)
        for scope in scopes
        for node in scope.container.node
        if node.op_type not in _GENERATORS
        for name in node.output
        if name
    )
    return sum(4 * math.prod(each) for each in lengths if each)


def _require_room(scope: Scope) -> None:
    there = memory.total()
    for name in (name for node in scope.container.node for name in node.output if there is not None):
        known = scope.types.get(name)
        lengths = [each for each in known.shape or () if isinstance(each, int)] if known is not None else []
        if there is None or known is None or not lengths or max(lengths) >= 2**63:
            continue
        size = payload_size(TensorProto(data_type=known.elem_type, dims=lengths)) or 0
        if size / 2**20 > there:
            raise ProofUnavailableError(
                f"The tensor {name!r} alone takes {size / 2**30:,.0f} GiB; this machine has {there / 1024:,.0f} GiB.",
                "Look whether its size is meant, or use a machine with more memory.",
            )


def _of_node(scope: Scope, node: NodeProto) -> int:
    match read(scope, node):
        case Window(kernel=kernel, channels=channels, written=written) if channels is not None:
            result = _lengths(scope, node.output[0])
            return math.prod(result) * (channels // written.group) * _taps(kernel) if result else 0
        case TransposedWindow(kernel=kernel, maps_per_group=maps) if maps is not None:
            source = _lengths(scope, node.input[0])
            return math.prod(source) * maps * _taps(kernel) if source else 0
    if node.op_type in _PRODUCTS and len(node.input) > 1:
        weight, result = _lengths(scope, node.input[1]), _lengths(scope, node.output[0])
        return math.prod(result) * max(weight[-2:]) if result and weight and len(weight) > 1 else 0
    return 0


def _taps(kernel: tuple[int | None, ...]) -> int:
    return math.prod(taps or 1 for taps in kernel)


def _lengths(scope: Scope, name: str) -> tuple[int, ...] | None:
    known = scope.type_of(name)
    if known is None or known.shape is None:
        return None
    return tuple(length if isinstance(length, int) else 1 for length in known.shape)
