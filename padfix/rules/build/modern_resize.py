"""The exact modern form of Upsample and Resize-10, shared by PF201 and PF202.

The meaning that is kept (see :func:`padfix.geometry.resampling.legacy_nearest_indices`): coordinates are asymmetric;
mode nearest rounds down on an axis that grows and up on one that shrinks; where no axis changes its length the result
is the input, whatever the scales.

Resize-11 says all of that but two things: one node has one ``nearest_mode`` for all axes, and ONNX Runtime copies the
input of a Resize whose output has the input's shape while the specification does not. Where one Resize (or one that
grows followed by one that shrinks) is right under both readings it is used; everything else becomes Gather with the
very indices.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, TensorProto

from padfix.geometry.resampling import legacy_nearest_indices, output_size
from padfix.graph import attributes
from padfix.operators.reading import read_resample
from padfix.operators.refusal import Refusal
from padfix.operators.resample import MODERN_OPSET, Resample
from padfix.results import Finding
from padfix.rules.base import Rewrite, Rule, Site, Trial, TrialInput

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder, Value

_RESIZE_TYPES = frozenset(
    {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32, 0}
)
"""Element types that ONNX Runtime's Resize takes (0: not known); nearest of any other type is done by Gather."""


_LONGEST_OUTPUT = 1 << 24


def read_legacy(site: Site) -> Resample | Refusal:
    """Return what an Upsample or a Resize before opset 11 says, or why it can't be rewritten."""
    legacy = read_resample(site.scope, site.node)
    if isinstance(legacy, Refusal) or legacy.scales is None or legacy.shape is None:
        return legacy
    for size, scale in zip(legacy.shape, legacy.scales, strict=True):
        if isinstance(size, int) and scale != 1 and size * scale > _LONGEST_OUTPUT:
            return Refusal(f"A length of {size} times {scale:g} is more than can be proven; correct the node.")
    return legacy


def described(legacy: Resample | Refusal) -> str:
    """Return the mode and the scales for a finding's message; empty when they can't be read."""
    if isinstance(legacy, Refusal):
        return ""
    if legacy.scales is None:
        return f" (mode {legacy.mode}, scales known at run time)"
    return f" (mode {legacy.mode}, scales {[round(scale, 6) for scale in legacy.scales]})"


def rewrite(site: Site, legacy: Resample) -> Rewrite | Refusal:
    """Return the exact replacement of the node, written for opset 11 or the scope's own when that is newer."""
    if legacy.scales is None:
        return _rewrite_run_time_scales(site, legacy)
    sizes = _sizes(legacy, len(legacy.scales))
    replacement = _Replacement(site, legacy)
    match modern_form(legacy):
        case ModernForm.IDENTITY:
            replacement.identity()
        case ModernForm.RESIZE:
            replacement.resize()
        case ModernForm.RESIZE_TWICE:
            replacement.resize_twice()
        case ModernForm.GATHER:
            replacement.gather(sizes)
    return Rewrite(
        replacement.builder.build(),
        _trials(site, legacy, sizes, copies=replacement.copies),
        exact=legacy.mode == "nearest",
    )


class ModernForm(Enum):
    """What a legacy resize becomes."""

    IDENTITY = auto()
    RESIZE = auto()
    RESIZE_TWICE = auto()
    GATHER = auto()


def modern_form(legacy: Resample) -> ModernForm:
    """Return which form is exact for the scales, constant or not, and for the lengths as far as they are known."""
    if legacy.scales is None:
        one = legacy.mode == "linear" or (legacy.never_shrinks and legacy.elem_type in _RESIZE_TYPES)
        return ModernForm.RESIZE if one else ModernForm.GATHER
    sizes = _sizes(legacy, len(legacy.scales))
    if all(map(_never_changes, sizes, legacy.scales)):
        return ModernForm.IDENTITY
    if legacy.mode == "linear":
        return ModernForm.RESIZE
    if legacy.elem_type not in _RESIZE_TYPES:
        return ModernForm.GATHER
    if max(legacy.scales) <= 1 or min(legacy.scales) >= 1:
        return ModernForm.RESIZE
    return ModernForm.RESIZE_TWICE if _pair_is_exact(sizes, legacy.scales) else ModernForm.GATHER


def _rewrite_run_time_scales(site: Site, legacy: Resample) -> Rewrite | Refusal:
    scales = site.input_type(1)
    rank = None if legacy.shape is None else len(legacy.shape)
    if rank is None and scales is not None and scales.shape is not None and scales.rank == 1:
        rank = scales.shape[0] if isinstance(scales.shape[0], int) else None
    replacement = _Replacement(site, legacy)
    if modern_form(legacy) is ModernForm.RESIZE:
        replacement.resize()
    elif rank is None:
        return Refusal(
            "The scales are only known at run time and the rank of the input is not known, so it can't be said which "
            "axes shrink: give the model input shapes (--shape), or make the scales a constant."
        )
    else:
        replacement.gather([None] * rank)
    rank = 4 if rank is None else rank
    head = [1.0] * max(0, rank - 2)
    cases: list[tuple[list[int], list[float]]] = [
        ([2] * len(head) + [3, 4][-rank:], head + [2.0, 2.0][-rank:]),
        ([2] * len(head) + [4, 3][-rank:], head + [2.5, 3.0][-rank:]),
        ([1] * len(head) + [5, 2][-rank:], head + [1.5, 2.0][-rank:]),
    ]
    if not legacy.never_shrinks:
        cases.append(([1] * len(head) + [7, 6][-rank:], head + [0.3, 0.7][-rank:]))
        cases.append(([2] * len(head) + [3, 5][-rank:], head + [3.0, 0.6][-rank:]))
        if replacement.copies:
            cases.append(([1] * len(head) + [3, 4][-rank:], head + [1.1, 1.2][-rank:]))
    declared = _sizes(legacy, rank)
    trials = []
    for shape, values in cases:
        fitting = tuple(
            size if known is None or scale == 1 else known
            for size, known, scale in zip(shape, declared, values, strict=True)
        )
        trials.append(_trial(site, fitting, values, constant=False))
    return Rewrite(replacement.builder.build(), tuple(trials), exact=legacy.mode == "nearest")


def _sizes(legacy: Resample, rank: int) -> list[int | None]:
    if legacy.shape is None or len(legacy.shape) != rank:
        return [None] * rank
    return [size if isinstance(size, int) else None for size in legacy.shape]


def _never_changes(size: int | None, scale: float) -> bool:
    return scale == 1 or (size is not None and output_size(size, scale) == size)


def _always_changes(size: int | None, scale: float) -> bool:
    """Whether the axis is sure to get another length, for every length above 0 when ``size`` is not known."""
    if size is not None:
        return output_size(size, scale) != size
    return scale >= 2 or scale <= 0.999  # well away from where the float32 product rounds to the length itself


def _pair_is_exact(sizes: Sequence[int | None], scales: Sequence[float]) -> bool:
    """Whether a Resize of the growing axes, then one of the shrinking, is exact with and without the copy trap.

    A Resize whose output has its input's shape is copied by one runtime and sampled by another; the two differ unless
    each of the two steps is sure to change the shape.
    """
    grows = any(_always_changes(size, scale) for size, scale in zip(sizes, scales, strict=True) if scale > 1)
    shrinks = any(_always_changes(size, scale) for size, scale in zip(sizes, scales, strict=True) if scale < 1)
    return grows and shrinks


class _Replacement:
    """Builds the one form that was chosen.

    Attributes:
        copies: Whether the form copies the input where no axis changes its length, under every reading.
    """

    def __init__(self, site: Site, legacy: Resample) -> None:
        self.site = site
        self.legacy = legacy
        self.builder: FragmentBuilder = site.builder(max(site.scope.opset, MODERN_OPSET))
        self.copies = False
        self._image = self.builder.input(site.node.input[0])

    def identity(self) -> None:
        """No axis changes its length."""
        self._finish(self.builder.op("Identity", [self._image], name=self.site.node.name))
        self.copies = True

    def resize(self) -> None:
        """One Resize with the scales as they are."""
        scales = self.legacy.scales
        nearest_mode = "ceil" if scales is not None and min(scales, default=1.0) < 1 else "floor"
        if self.legacy.scales_name:
            given = self.builder.input(self.legacy.scales_name)
        else:
            given = self.builder.constant(np.array(scales, np.float32), "scales")
        self._finish(self._resize(self._image, given, nearest_mode))

    def resize_twice(self) -> None:
        """Grow, rounding down; then shrink, rounding up."""
        assert self.legacy.scales is not None
        scales = np.array(self.legacy.scales, np.float32)
        grown = self._resize(self._image, self.builder.constant(np.maximum(scales, 1), "scales"), "floor", named=False)
        self._finish(self._resize(grown, self.builder.constant(np.minimum(scales, 1), "scales"), "ceil"))

    def _resize(self, image: Value, scales: Value, nearest_mode: str, *, named: bool = True) -> Value:
        node = NodeProto()
        node.CopyFrom(self.site.node)
        node.op_type = "Resize"
        del node.attribute[:], node.output[1:]
        if not named:
            node.name = ""
        attributes.set_text(node, "coordinate_transformation_mode", "asymmetric")
        attributes.set_text(node, "mode", self.legacy.mode)
        if self.legacy.mode == "nearest":
            attributes.set_text(node, "nearest_mode", nearest_mode)
        # An empty roi is right at every version; an omitted one only from opset 13 on.
        roi = self.builder.constant(np.zeros(0, np.float32), "roi")
        return self.builder.original(node, [image, roi, scales])

    def gather(self, sizes: Sequence[int | None]) -> None:
        """One Gather an axis, its indices constant where the length is known and computed from it elsewhere."""
        scales = self.legacy.scales
        changes = scales is not None and any(map(_always_changes, sizes, scales))
        same = None if changes else self._nothing_changes()
        self.copies = True
        value = self._image
        last = len(sizes) - 1
        if scales is not None:
            last = max(axis for axis, scale in enumerate(scales) if scale != 1)
        for axis, size in enumerate(sizes):
            if scales is not None and scales[axis] == 1:
                continue
            if scales is not None and size is not None and same is None:
                indices = legacy_nearest_indices(size, scales[axis], output_size(size, scales[axis]))
                if indices == list(range(size)) and axis != last:
                    continue
                chosen = self.builder.constant(np.array(indices, np.int64), "indices")
            else:
                chosen = self._indices(axis, same)
            name = self.site.node.name if axis == last else ""
            value = self.builder.op("Gather", [value, chosen], {"axis": axis}, name=name)
        self._finish(value)

    def _shape(self) -> Value:
        return self.builder.op("Shape", [self._image])

    def _scale(self, axis: int) -> Value:
        if self.legacy.scales is not None:
            return self.builder.constant(np.array(self.legacy.scales[axis], np.float32), "scale")
        scales = self.builder.input(self.legacy.scales_name)
        return self.builder.op("Gather", [scales, self._number(axis)], {"axis": 0})

    def _number(self, value: int) -> Value:
        return self.builder.constant(np.array(value, np.int64), "number")

    def _cast(self, value: Value, elem_type: int) -> Value:
        return self.builder.op("Cast", [value], {"to": int(elem_type)})

    def _indices(self, axis: int, same: Value | None) -> Value:
        """Return the indices of one axis, in float32 as the legacy operators compute them."""
        op, scale = self.builder.op, self._scale(axis)
        one = self.builder.constant(np.array(1, np.float32), "one")
        size = self._cast(op("Gather", [self._shape(), self._number(axis)], {"axis": 0}), TensorProto.FLOAT)
        output = self._cast(op("Mul", [size, scale]), TensorProto.INT64)
        counted = op("Range", [self._number(0), output, self._number(1)])
        position = op("Div", [self._cast(counted, TensorProto.FLOAT), scale])
        if self.legacy.scales is None:
            shrinks = op("Less", [scale, one])
            rounded = op("Where", [shrinks, op("Ceil", [position]), op("Floor", [position])])
        else:
            rounded = op("Ceil" if self.legacy.scales[axis] < 1 else "Floor", [position])
        indices = self._cast(op("Min", [rounded, op("Sub", [size, one])]), TensorProto.INT64)
        return indices if same is None else op("Where", [same, counted, indices])

    def _nothing_changes(self) -> Value:
        """Return whether every axis keeps its length."""
        op = self.builder.op
        if self.legacy.scales is None:
            scales = self.builder.input(self.legacy.scales_name)
        else:
            scales = self.builder.constant(np.array(self.legacy.scales, np.float32), "scales")
        shape = self._shape()
        outputs = self._cast(op("Mul", [self._cast(shape, TensorProto.FLOAT), scales]), TensorProto.INT64)
        equal = self._cast(op("Equal", [shape, outputs]), TensorProto.INT32)
        return self._cast(op("ReduceMin", [equal], {"keepdims": 0}), TensorProto.BOOL)

    def _finish(self, value: Value) -> None:
        self.builder.output(self.site.node.output[0], value)


def _trials(site: Site, legacy: Resample, sizes: Sequence[int | None], *, copies: bool) -> tuple[Trial, ...]:
    """Return shape cases: known lengths as they are, others around where the rounding turns."""
    assert legacy.scales is not None
    choices: list[list[int]] = []
    for size, scale in zip(sizes, legacy.scales, strict=True):
        if scale == 1:
            choices.append([1, 2] if size is None else [min(size, 2)])
        elif size is not None:
            choices.append([size])
        else:
            least = 1 if scale > 1 else min(math.ceil(1 / scale), 4096)
            turn = min(math.ceil(1 / abs(scale - 1)) + 1, 4096)
            choices.append([least + 2, least + 3, least, least * 2 + 3, turn, turn + 1])
    rounds = max((len(choice) for choice in choices), default=1)
    shapes = dict.fromkeys(
        tuple(choice[(step + place) % len(choice)] for place, choice in enumerate(choices)) for step in range(rounds)
    )
    if not copies:
        # The specification samples and ONNX Runtime copies where nothing changes: no judge for those lengths.
        shapes = dict.fromkeys(shape for shape in shapes if not _is_copied_wrongly(shape, legacy.scales))
    if not shapes:
        shapes = {tuple(size or 1 for size in sizes): None}
    return tuple(_trial(site, shape, legacy.scales, constant=True) for shape in shapes)


def _is_copied_wrongly(shape: Sequence[int], scales: Sequence[float]) -> bool:
    sampled = [
        legacy_nearest_indices(size, scale, output_size(size, scale)) for size, scale in zip(shape, scales, strict=True)
    ]
    unchanged = [len(indices) for indices in sampled] == list(shape)
    return unchanged and any(scale != 1 and size > 1 for size, scale in zip(shape, scales, strict=True))


def _trial(site: Site, shape: Sequence[int], scales: Sequence[float], *, constant: bool) -> Trial:
    trial = {site.node.input[0]: TrialInput(tuple(shape), site.elem_type(0))}
    if site.input_name(1):
        trial[site.input_name(1)] = TrialInput.of(np.array(scales, np.float32), constant=constant)
    return trial


class LegacySamplingRule(Rule):
    """A rule about an operator that resizes and does not name its coordinates."""

    @abstractmethod
    def problem(self, site: Site) -> str | None:
        """Return what is wrong with the node, as the start of a sentence; None when nothing is."""

    def match(self, site: Site) -> Finding | None:
        """Return a finding for a node with a problem, fixable when it can be understood."""
        problem = self.problem(site)
        if problem is None:
            return None
        legacy = read_legacy(site)
        message = f"{problem}{described(legacy)}."
        if isinstance(legacy, Refusal):
            return self.finding(site, message, legacy.reason, fixable=False)
        return self.finding(site, message, "padfix convert writes a Resize that names its coordinates.")

    def before_upgrade(self, site: Site, opset: int) -> Finding | None:
        """Return the finding: the official converter turns the operator into a Resize with other coordinates."""
        return self.match(site)

    def minimum_opset(self, site: Site) -> int:
        """Return 11, where Resize names its coordinates."""
        return MODERN_OPSET

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the Resize, the two, or the Gather that gives the same numbers."""
        legacy = read_legacy(site)
        return legacy if isinstance(legacy, Refusal) else rewrite(site, legacy)
