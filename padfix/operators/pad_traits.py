"""What a Pad is like, in the words that targets state their facts in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.constant_chains import is_constant, reads_constant_bytes, worked_out
from padfix.operators.constant_pad import extent_traits, given_pads
from padfix.operators.data_order import CHANNELS, is_behind_window
from padfix.operators.length_bounds import Bounds, bounds_of, may_be_negative
from padfix.operators.lists import depends_on_data
from padfix.operators.numbers import elements_of
from padfix.operators.shape_questions import any_of
from padfix.operators.window import Pair
from padfix.targets.traits import COUNT, Trait, Traits

_EXTREME = 1e30
"""What lies beyond leaves nothing of other numbers that it is added to, and overflows where it is multiplied."""


def pad_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return how a Pad is told what it adds, and of amounts that lengths tell what lies in their bounds."""
    amounts = given_pads(scope, node)
    data = scope.type_of(node.input[0]) if node.input and node.input[0] else None
    listed = len(node.input) > 3 and bool(node.input[3])
    told = None if amounts is None or listed else amounts
    bounds = bounds_of(scope, node.input[1]) if amounts is None and any(node.input[1:2]) else None
    is_told = amounts is not None and (not listed or scope.constant(node.input[3]) is not None)
    return {
        "mode": attributes.text(node, "mode", "constant") or "constant",
        "mode-written": attributes.find(node, "mode") is not None,
        "amounts": "sizes" if is_told else "run-time",
        "amounts-of-data": any(name and depends_on_data(scope, name) for name in (*node.input[1:2], *node.input[3:4])),
        "negative": may_be_negative(bounds) if amounts is None else min(amounts, default=0) < 0,
        "value": fill_of(scope, node),
        "value-given": any(node.input[2:3]),
        "value-unread": attributes.text(node, "mode", "constant") not in ("constant", "") and any(node.input[2:3]),
        "axes-listed": listed,
        "reads-constant-bytes": reads_constant_bytes(scope, node),
        **(outer_traits(told) if bounds is None or listed else _open_traits(bounds)),
        "end-alone": None if not told else bool(axes_padded_behind(scope, node, told)),
        "rank": None if data is None else data.rank,
        **extent_traits(scope, node, told),
        "before-average": any(each.op_type == "AveragePool" for each in scope.consumers(node.output[0])),
        "elements": elements_of(None if data is None else data.elem_type),
    }


def outer_traits(amounts: Sequence[int] | None) -> dict[str, Trait | None]:
    """Return whether amounts, all begins first, pad the batch, or it or the channels, and by how many runs of axes."""
    if amounts is None or len(amounts) % 2:
        return {"outer-axes": None, "batch-axis": None, "padded-runs": None}
    padded = _by_axis([bool(amount) for amount in amounts])
    return {"outer-axes": any(padded[:2]), "batch-axis": any(padded[:1]), "padded-runs": _runs(padded)}


def _open_traits(bounds: Sequence[Bounds]) -> Traits:
    """Return the same of amounts that are only known to lie between numbers; of the runs, how many at the most."""
    if len(bounds) % 2:
        return outer_traits(None)
    padded = _by_axis([True if least > 0 else None if most else False for least, most in bounds])
    outer, batch = any_of(padded[:2]), any_of(padded[:1])
    return {"outer-axes": outer, "batch-axis": batch, "padded-runs": _runs([each is not False for each in padded])}


def _by_axis(sides: Sequence[bool | None]) -> list[bool | None]:
    """Return whether each axis is padded, at its begin or its end."""
    half = len(sides) // 2
    return [any_of([sides[axis], sides[half + axis]]) for axis in range(half)]


def _runs(padded: Sequence[bool | None]) -> int:
    """Return how many runs there are: axes that are padded, and all that are not between two of those.

    One of no axes is before a padded first.
    """
    runs = sum(bool(each or before) for each, before in zip(padded, [True, *padded], strict=False)) + any(padded[:1])
    return min(runs, int(COUNT[-1]))


def axes_padded_behind(scope: Scope, node: NodeProto, amounts: Sequence[int]) -> list[int]:
    """Return which axis of those that may lie last is padded behind alone: the last, and behind a window the channels.

    Runtimes keep what a window gives with its channels last.
    """
    half = len(amounts) // 2
    last = {half - 1, CHANNELS} if half > CHANNELS and is_behind_window(scope, node.input[0]) else {half - 1}
    return [axis for axis in sorted(last) if is_end_alone((amounts[axis], amounts[half + axis]))]


def is_end_alone(last: Pair) -> bool:
    """Whether there is padding behind the last axis and none before it."""
    return last[0] == 0 < last[1]


def fill_of(scope: Scope, node: NodeProto) -> str | None:
    """Return what kind of number a Pad of constants adds."""
    known = _added(scope, node)
    if known is None or known.size != 1:
        name = node.input[2] if len(node.input) > 2 else ""
        return "computed" if known is None and not is_constant(scope, name) else None
    value = known.reshape(-1)[0]
    return "zero" if value == 0 else "finite" if np.isfinite(float(value)) else "infinite"


def adds_extremes(scope: Scope, node: NodeProto) -> bool:
    """Whether a Pad adds a finite number close to the largest that there is."""
    known = _added(scope, node)
    is_one = known is not None and known.size == 1 and attributes.text(node, "mode", "constant") in ("constant", "")
    return is_one and known is not None and _EXTREME < abs(float(known.reshape(-1)[0])) < np.inf


def _added(scope: Scope, node: NodeProto) -> np.ndarray | None:
    """Return the number that a Pad of constants adds, which is 0 unless it says another one."""
    if scope.opset < 11:
        written = attributes.find(node, "value")
        return np.array(0 if written is None else written.f, np.float32)
    name = node.input[2] if len(node.input) > 2 else ""
    return worked_out(scope, name) if name else np.zeros(1, np.float32)
