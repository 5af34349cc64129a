"""A pool with equal pads on both sides, and a Slice that drops the windows that its own pads would not have made."""

from __future__ import annotations

from padfix.geometry.padding import window_output_size
from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.window import Pair, Window
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import bind, copied
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.transposed import TO_THE_END
from padfix.rules.build.trials import trials

_Cut = tuple[int, int, int]
"""The pads on each side of an axis, the first window to keep, and the end of those to keep (negative: from the end)."""


def rewrite_cropped(site: Site, window: Window, pairs: tuple[Pair, ...]) -> Rewrite | Refusal:
    """Return the pool with symmetric pads and a Slice; for pools whose result depends on elements of the input only.

    Longer pads at the begin make windows before the first one if they are longer by whole strides; what the last
    windows need at the end may come from the pads or from ceil mode.
    """
    found = _cuts(window, pairs)
    return found if isinstance(found, Refusal) else _rewrite(site, window, found[0], ceil_mode=found[1])


def why_not_cropped(window: Window, pairs: tuple[Pair, ...]) -> Refusal | None:
    """Return why no equal pads give the windows of a pool, or None."""
    found = _cuts(window, pairs)
    return found if isinstance(found, Refusal) else None


def _cuts(window: Window, pairs: tuple[Pair, ...]) -> tuple[list[_Cut], bool] | Refusal:
    """Return how each axis is padded and cut, and the ceil mode that goes with it."""
    asked = window.written.ceil_mode
    for ceil_mode in (asked, not asked):
        cuts = [_cut(window, axis, pair, asked=asked, ceil_mode=ceil_mode) for axis, pair in enumerate(pairs)]
        known = [cut for cut in cuts if cut is not None]
        if len(known) == len(cuts):
            return known, ceil_mode
    return Refusal(
        f"This {window.op_type} leaves its pads out of its averages, so a Pad before it would count as data, and no "
        f"equal pads shorter than its kernel {list(window.kernel)} give these windows"
        + (
            ": keep its pads (--pads attribute)."
            if all(isinstance(size, int) for size in window.sizes)
            else " at every size: fix the input's size (--shape), or keep its pads (--pads attribute)."
        )
    )


def _cut(window: Window, axis: int, pair: Pair, *, asked: bool, ceil_mode: bool) -> _Cut | None:
    taps, stride, dilation = window.kernel[axis] or 1, window.strides[axis], window.dilations[axis]
    begin, end = pair
    size = window.sizes[axis]
    for equal in range(begin, taps, stride):
        skipped = (equal - begin) // stride
        if isinstance(size, int):
            wanted = window_output_size(size, taps, stride, dilation, begin, end, ceil_mode=asked)
            given = window_output_size(size, taps, stride, dilation, equal, equal, ceil_mode=ceil_mode)
            if wanted > 0 and given >= skipped + wanted:
                return equal, skipped, skipped + wanted - given or TO_THE_END
        elif asked == ceil_mode and equal == begin == end:
            return equal, 0, TO_THE_END
        elif not asked and not ceil_mode and equal >= end and (equal - end) % stride == 0:
            return equal, skipped, -((equal - end) // stride) or TO_THE_END
    return None


def _rewrite(site: Site, window: Window, cuts: list[_Cut], *, ceil_mode: bool) -> Rewrite:
    node = copied(site.node, without=("auto_pad", "ceil_mode"))
    attributes.set_integers(node, "pads", [equal for equal, _, _ in cuts] * 2)
    if ceil_mode:
        attributes.set_integer(node, "ceil_mode", 1)
    builder = site.builder()
    result = builder.original(node, [builder.input(name) for name in node.input])
    axes = [axis for axis, (_, start, stop) in enumerate(cuts) if (start, stop) != (0, TO_THE_END)]
    if axes:
        starts, ends = [cuts[axis][1] for axis in axes], [cuts[axis][2] for axis in axes]
        result = sliced(builder, result, starts, ends, [window.leading + axis for axis in axes])
    bind(builder, site.node, result)
    return Rewrite(builder.build(), trials(site, window, same=False))
