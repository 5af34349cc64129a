"""PF105: transposed convolutions whose padding is implied by ``auto_pad`` or ``output_shape``."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from padfix.geometry.padding import effective_kernel
from padfix.geometry.transposed import TransposedAxis, output_shape_axis
from padfix.graph import attributes
from padfix.operators.reading import read_attributes_of, read_transposed
from padfix.operators.refusal import Meaningless, Refusal
from padfix.operators.table import TRANSPOSED
from padfix.operators.transposed import TransposedWindow
from padfix.operators.written import SAME, Written
from padfix.results import Finding, Severity
from padfix.rules.base import Rewrite, Rule, Site, Trial
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.transposed import pads_by_mode, rewrite_dynamic_pads, transposed_trials

if TYPE_CHECKING:
    from padfix.graph.fragment import Fragment
    from padfix.graph.fragment_builder import FragmentBuilder, Value

_LARGEST_SIZE = 1 << 24


@dataclass(frozen=True)
class _Plan:
    """What takes the node's place.

    Attributes:
        window: What the node states.
        explicit: The attributes of each axis; those of ``sliced`` axes have no pads and the longest tail there can be.
        sliced: Spatial axes that are cropped at run time, because the amount depends on the input's length.
    """

    window: TransposedWindow
    explicit: tuple[TransposedAxis, ...]
    sliced: tuple[int, ...]

    @property
    def pads(self) -> list[int]:
        return [axis.begin for axis in self.explicit] + [axis.end for axis in self.explicit]

    @property
    def output_padding(self) -> list[int]:
        return [axis.output_padding for axis in self.explicit]


class ImplicitTransposePadding(Rule):
    """A ConvTranspose leaves its padding to `auto_pad` or to `output_shape`.

    Runtimes disagree about both. ONNX Runtime before 1.13 put the odd element of `SAME_UPPER` on the other side, and
    before 1.5 ignored `SAME` altogether; the text of ConvTranspose-1 and that of ConvTranspose-11 contradict each other
    about `output_shape`; a kernel that is shorter than the stride gives three different output lengths.

    padfix writes the pads out. With `effective_kernel = (kernel - 1) * dilation + 1`:

    - `SAME` without `output_shape`: `total = effective_kernel + output_padding - stride`. The input's length cancels
      out, so the pads are numbers even where sizes are dynamic. A negative total becomes output_padding: the output
      is always `input length x stride`.
    - `output_shape`: `total = (length - 1) * stride + output_padding + effective_kernel - output_shape`. The odd
      element is cut from the end for `SAME_UPPER` and from the begin otherwise (ConvTranspose-11 and later; ONNX
      Runtime applies it to older nodes as well). `pads` beside `output_shape` are ignored, as the specification says.
      Where the input's length is only known at run time, the node computes all there is and a Slice crops it.
    - `VALID`, `NOTSET` and the empty string: the attribute is dropped; `pads` stay what they are.
    - ConvTransposeWithDynamicPads of ONNX Runtime (com.microsoft) has its pads in an input, which SAME overrides: they
      become a constant there. Its output stays short where the kernel is shorter than the stride.

    Refused: attributes that a function's caller gives, lists of a wrong length, `SAME` together with `pads` that are
    not zero, and an `output_shape` that is longer than all there is by a stride or more.

    Before, opset 17:

        main (float[1,4,H,W] X, float[4,2,3,3] K) => (float[1,2,A,B] Y) {
          Y = ConvTranspose <auto_pad = "SAME_UPPER", strides = [2, 2]> (X, K)
        }

    After:

        Y = ConvTranspose <strides = [2, 2], pads = [0, 0, 1, 1]> (X, K)

    References:

    - The ONNX specification of ConvTranspose: <https://onnx.ai/onnx/operators/onnx__ConvTranspose.html>
    - Two readings of `output_shape`: <https://github.com/onnx/onnx/issues/1609>
    - ONNX Runtime and SAME_UPPER: <https://github.com/microsoft/onnxruntime/issues/4086>
    - Users with dynamic sizes: <https://github.com/microsoft/onnxruntime/issues/6067>
    """

    code = "PF105"
    name = "implicit-transpose-padding"
    operators = TRANSPOSED

    def match(self, site: Site) -> Finding | None:
        """Return a finding when the node has ``auto_pad`` or ``output_shape``."""
        written = read_attributes_of(site.scope, site.node)
        window = read_transposed(site.scope, site.node)
        said = _said(site, written)
        if not said or isinstance(window, Meaningless):
            return None
        if isinstance(window, Refusal):
            return self.finding(site, f"{said}.", window.reason, fixable=False)
        if window.has_dynamic_pads:
            return self._match_dynamic_pads(site, window, said)
        plan = _plan(window)
        if isinstance(plan, Refusal):
            found = self.finding(site, f"{said}.", plan.reason, fixable=False)
            is_wrong = all(taps is not None for taps in window.kernel)
            return dataclasses.replace(found, severity=Severity.ERROR) if is_wrong else found
        if plan.sliced:
            meaning = f"how much is cut from axes {[axis + 2 for axis in plan.sliced]} is only known at run time"
        else:
            meaning = f"it means pads={plan.pads}"
            if any(plan.output_padding):
                meaning += f" and output_padding={plan.output_padding}"
        found = self.finding(site, f"{said}; {meaning}.", "padfix convert writes it out.")
        if written.output_shape is None and not written.mode:
            return dataclasses.replace(found, severity=Severity.INFO)
        return found

    def _match_dynamic_pads(self, site: Site, window: TransposedWindow, said: str) -> Finding:
        pads = pads_by_mode(window)
        if isinstance(pads, Refusal):
            return self.finding(site, f"{said}.", pads.reason, fixable=False)
        if pads is None:
            found = self.finding(site, f"{said}; its input Pads counts.", "padfix convert drops the attribute.")
            return dataclasses.replace(found, severity=Severity.INFO)
        meaning = f"it means pads={pads}, whatever the input Pads holds"
        return self.finding(site, f"{said}; {meaning}.", "padfix convert writes it out.")

    def minimum_opset(self, site: Site) -> int:
        """Return 10, where Slice takes its bounds as inputs, for a run-time crop; else 1."""
        window = read_transposed(site.scope, site.node)
        if isinstance(window, Refusal) or window.has_dynamic_pads:
            return 1
        plan = _plan(window)
        return 10 if isinstance(plan, _Plan) and plan.sliced else 1

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the node with explicit ``pads`` and ``output_padding``, and a Slice after it where it takes one."""
        window = read_transposed(site.scope, site.node)
        if isinstance(window, Refusal):
            return window
        if window.has_dynamic_pads:
            return rewrite_dynamic_pads(site, window)
        plan = _plan(window)
        if isinstance(plan, Refusal):
            return plan
        trials = _trials(site, window)
        return trials if isinstance(trials, Refusal) else Rewrite(_fragment(site, plan), trials)


def _said(site: Site, written: Written) -> str:
    """Return the attributes that leave the padding open, as the start of a sentence; empty where there is none."""
    mode = f'auto_pad="{written.auto_pad}"'
    if (site.domain, site.node.op_type) != ("", "ConvTranspose"):
        return f"{site.node.op_type} has {mode}" if written.auto_pad is not None else ""
    parts = [mode] if written.auto_pad is not None else []
    if written.output_shape is not None:
        parts.append(f"output_shape={list(written.output_shape)}")
    return f"ConvTranspose leaves its padding to {' and '.join(parts)}" if parts else ""


def _plan(window: TransposedWindow) -> _Plan | Refusal:
    pads, mode = window.written.pads or (), window.auto_pad
    if window.output_shape is None and mode and any(pads):
        return Refusal(f"auto_pad={mode} contradicts pads={list(pads)}: remove the one that is not meant.")
    implicit = window.output_shape is not None or mode in SAME
    if implicit and any(taps is None for taps in window.kernel):
        return Refusal("The kernel's shape is not known: give the node kernel_shape.")
    explicit: list[TransposedAxis] = []
    sliced: list[int] = []
    for index, stride in enumerate(window.strides):
        found = window.axis(index)
        if found is None:
            sliced.append(index)
            explicit.append(TransposedAxis(0, 0, stride - 1))
            continue
        if implicit:
            found = _without_long_tail(found, stride)
            if found.output_padding >= stride:
                return Refusal(
                    f"Axis {index + 2} is asked for {found.output_padding} elements beyond what the kernel reaches; "
                    f"output_padding must stay below the stride {stride}. Correct output_shape or output_padding."
                )
        explicit.append(found)
    return _Plan(window, tuple(explicit), tuple(sliced))


def _without_long_tail(axis: TransposedAxis, stride: int) -> TransposedAxis:
    """Cancel output_padding against the end pad where runtimes would refuse it: both move the same edge."""
    if axis.output_padding < stride:
        return axis
    cancelled = min(axis.end, axis.output_padding)
    return TransposedAxis(axis.begin, axis.end - cancelled, axis.output_padding - cancelled)


def _fragment(site: Site, plan: _Plan) -> Fragment:
    node = copied(site.node, without=("auto_pad", "output_shape"))
    attributes.set_integers(node, "pads", plan.pads)
    if any(plan.output_padding):
        attributes.set_integers(node, "output_padding", plan.output_padding)
    else:
        attributes.remove(node, "output_padding")
    builder = site.builder()
    result = builder.original(node, [builder.input(name) for name in node.input])
    if plan.sliced:
        result = _cropped(builder, result, builder.input(node.input[0]), plan)
    builder.output(node.output[0], result)
    return builder.build()


def _cropped(builder: FragmentBuilder, result: Value, image: Value, plan: _Plan) -> Value:
    """Return ``result`` cut to its output shape on the sliced axes, by the lengths that ``image`` has at run time."""

    def numbers(values: Sequence[int]) -> Value:
        return builder.constant(np.array(values, np.int64))

    window, op = plan.window, builder.op
    assert window.output_shape is not None
    positions = numbers([axis + 2 for axis in plan.sliced])
    sizes = op("Gather", [op("Shape", [image]), positions])
    strides = numbers([window.strides[axis] for axis in plan.sliced])
    # total = size * stride + (output_padding + effective_kernel - stride - output_size), never below 0
    offsets = [
        window.output_padding[axis]
        + effective_kernel(window.kernel[axis] or 1, window.dilations[axis])
        - window.strides[axis]
        - window.output_shape[axis]
        for axis in plan.sliced
    ]
    total = op("Add", [op("Mul", [sizes, strides]), numbers(offsets)])
    zero = numbers([0])
    total = op("Where", [op("Greater", [total, zero]), total, zero])
    if not window.upper:  # the bigger half is cut from the begin
        total = op("Add", [total, numbers([1])])
    starts = op("Div", [total, numbers([2])])
    ends = op("Add", [starts, numbers([window.output_shape[axis] for axis in plan.sliced])])
    return op("Slice", [result, starts, ends, positions])


def _trials(site: Site, window: TransposedWindow) -> tuple[Trial, ...] | Refusal:
    """Return shape cases with few channels: declared sizes where they matter, small ones elsewhere."""
    choices: list[list[int]] = []
    for axis, size in enumerate(window.sizes):
        if window.output_shape is None:
            choices.append([1, 2, 3, 5])
        elif isinstance(size, int):
            if size > _LARGEST_SIZE or size < 1:
                return Refusal(f"An input length of {size} can't be proven.")
            choices.append([size])
        else:
            # The longer the input, the more there is to cut from: what one length reaches, all longer ones do.
            wanted = window.output_shape[axis]
            lengths = range(1, wanted + 2)
            fitting = lengths[bisect.bisect_left(lengths, True, key=partial(_reaches, window, axis)) :]
            if not fitting:
                return Refusal(f"No input length gives output_shape {wanted}; correct the node.")
            choices.append([fitting[0], fitting[len(fitting) // 2], fitting[-1], *fitting[1:3]])
    rounds = max(len(choice) for choice in choices)
    spatial = dict.fromkeys(
        tuple(choice[(step + place) % len(choice)] for place, choice in enumerate(choices)) for step in range(rounds)
    )
    shapes = [(batch, *sizes) for batch, sizes in zip(itertools.cycle((1, 2)), spatial, strict=False)]
    return transposed_trials(site, window, shapes, 1 if window.written.group > 1 else 2)


def _reaches(window: TransposedWindow, axis: int, size: int) -> bool:
    """Whether the kernel and an output_padding below the stride reach the output shape from an input of ``size``."""
    assert window.output_shape is not None
    stride = window.strides[axis]
    found = output_shape_axis(
        size,
        window.output_shape[axis],
        window.kernel[axis] or 1,
        stride,
        window.dilations[axis],
        window.output_padding[axis],
        upper=True,
    )
    return _without_long_tail(found, stride).output_padding < stride
