"""SAME on lengths that are only known at run time: a Pad whose amounts are computed in the graph."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from padfix.geometry.padding import effective_kernel, lasting_padding, same_padding
from padfix.graph import attributes
from padfix.operators.reading import read_window
from padfix.operators.refusal import Refusal
from padfix.operators.table import PADDED
from padfix.operators.window import Pair, Window
from padfix.rules.base import Rewrite, Rule, Site
from padfix.rules.build.behind_pad import behind_pad
from padfix.rules.build.explicit_pads import (
    bare_node,
    explicit_fragment,
    flat,
    needed_opset,
    needs_separate_pad,
    runtime_opset,
)
from padfix.rules.build.pad_node import entries, known_amounts, why_no_pad
from padfix.rules.build.trials import trials

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder, Value

_LONGEST_TABLE = 1 << 10
"""Strides up to which pads are looked up by residue; beyond, they are computed."""


class SameRule(Rule):
    """A rule that writes out what SAME pads."""

    operators = PADDED

    def minimum_opset(self, site: Site) -> int:
        """Return 11 where a Pad has computed amounts, or integers to pad."""
        window = read_window(site.scope, site.node)
        return 1 if isinstance(window, Refusal) else needed_opset(window, window.same_pads())

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the node with its pads written out, or behind a Pad that is computed at run time."""
        window = read_window(site.scope, site.node)
        return window if isinstance(window, Refusal) else rewrite_same(site, window, window.same_pads())


def rewrite_same(site: Site, window: Window, pairs: tuple[Pair | None, ...]) -> Rewrite | Refusal:
    """Return the rewrite of SAME: an attribute where every pad is known and accepted, else a Pad before the node."""
    known = tuple(pair for pair in pairs if pair is not None)
    if len(known) != len(pairs) or needs_separate_pad(window, known):
        return pad_at_run_time(site, window, pairs)
    fragment = explicit_fragment(site, flat(known), same=True)
    return Rewrite(fragment, trials(site, window, same=True), exact=window.is_exact)


def pad_at_run_time(site: Site, window: Window, pairs: tuple[Pair | None, ...]) -> Rewrite | Refusal:
    """Return the node behind a Pad: with known pads as numbers, the others computed from the input's shape.

    Where sizes are dynamic, the node itself pads what does not depend on them, and the Pad only adds what the begins
    lack, looked up by the residue. Where that is not to be, or can't be, it pads all there is, and the node nothing.

    For an axis of unknown length ``n`` with ``stride`` and ``span`` (the effective kernel):
    ``total = max(0, ceil(n / stride) * stride - stride + span - n)``; of it, ``total // 2`` elements go to the begin
    for SAME_UPPER and to the end for SAME_LOWER, the others to the opposite side.
    """
    refusal = why_no_pad(window, pairs)
    if refusal is not None:
        return refusal
    if any(taps is None for taps in window.kernel):
        return Refusal("The kernel's size is not known: add the attribute kernel_shape, or make the weights constant.")
    static = None not in pairs
    node, tables, left = bare_node(site), None if static else _begins_to_add(site, window, pairs), pairs
    if tables is not None:
        lasting = _lasting_pairs(window, pairs)
        if any(map(any, lasting)):
            attributes.set_integers(node, "pads", flat(lasting))
            if window.written.count_include_pad:
                attributes.set_integer(node, "count_include_pad", 1)
        left = tuple(None if pair is None else (0, 0) for pair in pairs)

    def amounts(builder: FragmentBuilder, spatial_shape: Value) -> Value:
        return _PadsBuilder(builder, window, left, spatial_shape, tables).build()

    opset = site.scope.opset if static else max(site.scope.opset, runtime_opset(window))
    return behind_pad(site, window, pairs, node, amounts, opset=opset, same=True)


def _lasting_pairs(window: Window, pairs: Sequence[Pair | None]) -> tuple[Pair, ...]:
    """Return what can stand in the attribute: known pads, and of the others what does not depend on the size."""
    upper = window.auto_pad == "SAME_UPPER"
    return tuple(
        lasting_padding(taps or 1, stride, dilation, upper=upper) if pair is None else pair
        for (_, taps, stride, dilation), pair in zip(window.axes, pairs, strict=True)
    )


def _begins_to_add(site: Site, window: Window, pairs: Sequence[Pair | None]) -> list[list[int]] | None:
    """Return for each unknown axis what its begin lacks, by the length modulo the stride; None to pad apart altogether.

    The operator pads the rest itself, so the Pad writes less, and nothing at all where no begin has to grow.
    """
    unknown = [axis for axis, pair in enumerate(pairs) if pair is None]
    dilated = window.operator.is_pool and max(window.dilations) > 1  # its pads may be too long for an attribute
    if site.target.pads == "node" or dilated or window.has_indices:
        return None
    if sum(window.strides[axis] for axis in unknown) > _LONGEST_TABLE:
        return None
    upper, lasting = window.auto_pad == "SAME_UPPER", _lasting_pairs(window, pairs)
    tables = []
    for axis in unknown:
        stride, taps = window.strides[axis], window.kernel[axis] or 1
        sizes = [stride, *range(1, stride)]
        begins = [same_padding(size, taps, stride, window.dilations[axis], upper=upper)[0] for size in sizes]
        tables.append([begin - lasting[axis][0] for begin in begins])
    return tables


class _PadsBuilder:
    """The pads of a Pad in front of the window: a list when all are known, else a computed vector.

    The entries of the batch and channel axes, always 0, stand where those axes do.
    """

    def __init__(
        self,
        builder: FragmentBuilder,
        window: Window,
        pairs: tuple[Pair | None, ...],
        spatial_shape: Any,
        tables: list[list[int]] | None = None,
    ) -> None:
        """``tables`` give the begins of the unknown axes by the length modulo the stride; then their ends are 0."""
        self._builder = builder
        self._window = window
        self._pairs = pairs
        self._shape = spatial_shape
        self._tables = tables

    def build(self) -> Any:
        """Return the amounts."""
        unknown = [axis for axis, pair in enumerate(self._pairs) if pair is None]
        if not unknown:
            return known_amounts(self._window, [pair for pair in self._pairs if pair is not None])
        begins, ends = self._halves(unknown) if self._tables is None else (self._looked_up(unknown, self._tables), None)
        parts: list[Any] = []
        for side, halves in ((0, begins), (1, ends)):
            unknown_entry = None if halves is not None else 0
            listed: list[int | None] = [0] * self._window.leading
            listed += [unknown_entry if pair is None else pair[side] for pair in self._pairs]
            listed += [0] * (2 - self._window.leading)
            parts += self._runs(listed, halves, len(unknown))
        return self._builder.op("Concat", self._merged(parts), {"axis": 0})

    def _runs(self, listed: list[int | None], halves: Any, count: int) -> list[Any]:
        """Return known entries as lists and runs of computed ones as (slices of) ``halves``, in order."""
        parts: list[Any] = []
        taken = 0
        for known, group in itertools.groupby(listed, key=lambda entry: entry is not None):
            run = list(group)
            if known:
                parts.append(run)
                continue
            whole = len(run) == count
            parts.append(halves if whole else entries(self._builder, halves, taken, taken + len(run)))
            taken += len(run)
        return parts

    def _merged(self, parts: list[Any]) -> list[Any]:
        merged: list[Any] = []
        for part in parts:
            if isinstance(part, list) and merged and isinstance(merged[-1], list):
                merged[-1] = merged[-1] + part
            else:
                merged.append(part)
        return [
            self._builder.constant(np.array(part, np.int64), "known_pads") if isinstance(part, list) else part
            for part in merged
        ]

    def _lengths(self, unknown: list[int]) -> Any:
        if len(unknown) == self._window.rank:
            return self._shape
        return self._builder.op("Gather", [self._shape, self._vector(unknown, "axes")], {"axis": 0})

    def _looked_up(self, unknown: list[int], tables: list[list[int]]) -> Any:
        builder, strides = self._builder, [self._window.strides[axis] for axis in unknown]
        residues = builder.op("Mod", [self._lengths(unknown), self._vector(strides, "strides")])
        if all(table == list(range(len(table))) for table in tables):
            return residues
        if any(table != tables[0] for table in tables):
            offsets = list(itertools.accumulate(strides[:-1], initial=0))
            residues = builder.op("Add", [residues, self._vector(offsets, "first_of_axis")])
            table = [entry for each in tables for entry in each]
        else:
            table = tables[0]
        return builder.op("Gather", [self._vector(table, "begin_by_residue"), residues], {"axis": 0})

    def _halves(self, unknown: list[int]) -> tuple[Any, Any]:
        builder, window = self._builder, self._window
        strides = [window.strides[axis] for axis in unknown]
        spans = [effective_kernel(window.kernel[axis] or 1, window.dilations[axis]) for axis in unknown]
        lengths = self._lengths(unknown)
        stride = self._vector(strides, "strides")
        rounded = builder.op("Add", [lengths, self._vector([each - 1 for each in strides], "strides_less_1")])
        rounded = builder.op("Mul", [builder.op("Div", [rounded, stride]), stride])
        overhang = builder.op("Sub", [rounded, lengths])
        missing = [span - each for span, each in zip(spans, strides, strict=True)]
        total = builder.op("Add", [overhang, self._vector(missing, "kernel_less_stride")])
        if min(missing) < 0:  # a kernel shorter than the stride can leave elements over; they are not cut off
            zero = self._vector([0] * len(unknown), "no_pads")
            if builder.opset >= 12:
                total = builder.op("Max", [total, zero])
            else:  # Max takes no integers yet
                total = builder.op("Where", [builder.op("Greater", [total, zero]), total, zero])
        small = builder.op("Div", [total, self._vector([2] * len(unknown), "two")])
        big = builder.op("Sub", [total, small])
        return (small, big) if window.auto_pad == "SAME_UPPER" else (big, small)

    def _vector(self, values: list[int], hint: str) -> Any:
        return self._builder.constant(np.array(values, np.int64), hint)
