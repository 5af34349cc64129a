"""A Pad that repeats elements as slices of its data joined about them, however long an axis is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from padfix.graph.scopes import Dimension
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site, Trial
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.transposed import TO_THE_END

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_MOST = 64
"""Elements before and behind one axis, each of which is a Slice."""


def joined_slices(
    site: Site, amounts: Sequence[int], mode: str, lengths: Sequence[Dimension], trials: tuple[Trial, ...]
) -> Iterator[Form]:
    """Yield a Pad of mode reflect, edge or wrap as slices joined about its data, one axis after the other."""
    half = len(amounts) // 2
    axes = [axis for axis in range(half) if amounts[axis] or amounts[half + axis]]
    rank = len(lengths)

    def write() -> Rewrite:
        builder = site.builder()
        result = builder.input(site.input_name(0))
        for axis in axes:
            before, behind = _borders(mode, amounts[axis], amounts[half + axis])
            pieces = [*_cut(builder, result, axis, before), result, *_cut(builder, result, axis, behind)]
            result = builder.op("Concat", pieces, {"axis": axis})
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), trials, exact=True)

    operators: Operators = tuple(
        each
        for axis in axes
        for each in (
            (
                "Slice",
                {"rank": rank, "first-axis": axis == 0, "open-batch": not (lengths and isinstance(lengths[0], int))},
            ),
            ("Concat", {"first-axis": axis == 0}),
        )
    )
    why_not = None
    if rank != half or not axes or min(amounts) < 0 or max(amounts) > _MOST:
        why_not = Refusal("how many axes it has is not known, it takes elements away, or repeats too many")
    elif mode != "edge" and any(_is_short(lengths[axis], amounts[axis], amounts[half + axis]) for axis in axes):
        why_not = Refusal("it repeats more elements than there are")
    yield Form("slices joined about it", operators, write, why_not)


def _is_short(length: Dimension, before: int, behind: int) -> bool:
    return isinstance(length, int) and length <= max(before, behind)


def _borders(mode: str, before: int, behind: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the (start, end) of each slice before and behind an axis."""
    if mode == "wrap":
        return [(-before, TO_THE_END)] if before else [], [(0, behind)] if behind else []
    if mode == "edge":
        return [(0, 1)] * before, [(-1, TO_THE_END)] * behind
    return [(place, place + 1) for place in range(before, 0, -1)], [(-2 - place, -1 - place) for place in range(behind)]


def _cut(builder: FragmentBuilder, value: Any, axis: int, slices: Sequence[tuple[int, int]]) -> list[Any]:
    """Return the slices, of which those that are alike are one."""
    made = {each: sliced(builder, value, [each[0]], [each[1]], [axis]) for each in dict.fromkeys(slices)}
    return [made[each] for each in slices]
