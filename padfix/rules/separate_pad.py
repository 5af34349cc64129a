"""PF107: a Pad of known amounts that belongs in the ``pads`` of the operator behind it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.constant_pad import MOST_PADS, local_producer, read_constant_pad
from padfix.operators.illustration import illustrate_window
from padfix.operators.reading import read_window
from padfix.operators.refusal import Refusal
from padfix.operators.table import PADDED
from padfix.operators.traits import window_traits
from padfix.operators.window import Pair, Window
from padfix.results import Finding, Severity
from padfix.rules.base import Rewrite, Rule, Site, Trial, TrialInput
from padfix.rules.build.explicit_pads import bind, copied, flat, needs_separate_pad, same_windows
from padfix.rules.build.objections import worst_objection
from padfix.rules.build.pad_node import lowest
from padfix.rules.build.trials import trials


class SeparatePad(Rule):
    """A Pad of constant amounts stands before an operator that could pad by itself.

    The Pad copies the whole tensor before the operator reads it, and some importers can't read a Pad at all. padfix
    adds its amounts to the operator's `pads` where that gives the same numbers:

    - mode `constant`, constant amounts of 0 and more, on spatial axes only (`axes` in any order, negative or not);
    - the value that the operator pads with: 0 for convolutions, AveragePool and LpPool, the zero point for quantized
      convolutions, minus infinity (integers: their least value) for MaxPool. A Pad of zeros before a MaxPool of floats
      stays (see PF108);
    - an AveragePool must not leave pads of its own out of its counts; it counts those of the Pad (`count_include_pad`);
    - a pool's pads must stay shorter than its kernel, which ONNX Runtime insists on, and `ceil_mode` must give the same
      windows;
    - a Transpose may stand between the two (channels last, as TensorFlow has them);
    - everything that reads the Pad can take it in; else it would stay, and nothing be gained.

    Not reported with `--pads node`, which asks for the Pad, nor where one of these is not so: the Pad then means
    something that no attribute says.

    Refused: a fold that the proof on its own does not confirm. A MaxPool with indices stays as it is: they count
    positions in the padded input.

    Before, opset 17:

        main (float[1,3,32,32] X, float[8,3,3,3] W) => (float[1,8,32,32] Y)
        <int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}> {
          padded = Pad (X, pads)
          Y = Conv <kernel_shape = [3, 3]> (padded, W)
        }

    After:

        Y = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (X, W)

    References:

    - The ONNX specification of Pad: <https://onnx.ai/onnx/operators/onnx__Pad.html>
    - Fusing a Pad into an AveragePool gave other numbers: <https://github.com/microsoft/onnxruntime/issues/22177>
    """

    code = "PF107"
    name = "separate-pad"
    severity = Severity.INFO
    operators = PADDED

    def match(self, site: Site) -> Finding | None:
        """Return a finding for an operator whose Pad can be folded into it, if nothing else keeps the Pad."""
        if site.target.pads != "attribute":
            return None
        fold = _fold(site)
        if fold is None or not _all_take_in(site, fold.replaced[0]):
            return None
        # What the finding speaks of is the operator with these pads, and not what it reads today.
        counts = fold.window.operator.is_average or fold.window.written.count_include_pad
        written = dataclasses.replace(
            fold.window.written, pads=tuple(flat(fold.pairs)), auto_pad="", count_include_pad=counts
        )
        folded = dataclasses.replace(fold.window, written=written)
        if worst_objection(site.target, site.node.op_type, site.opset, window_traits(folded)) is not None:
            return None
        found = self.finding(
            site,
            f"The Pad before this {site.node.op_type} could be its own pads={flat(fold.pairs)}.",
            "padfix convert folds it in.",
        )
        return dataclasses.replace(found, illustration=illustrate_window(folded))

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the operator with the Pad's amounts in its own pads."""
        fold = _fold(site)
        if fold is None:
            return Refusal("The Pad and the operator behind it are not the same as the operator with longer pads.")
        node = copied(site.node, without=("auto_pad",))
        attributes.set_integers(node, "pads", flat(fold.pairs))
        if fold.window.operator.is_average:
            attributes.set_integer(node, "count_include_pad", 1)
        builder = site.builder()
        value = builder.input(fold.source)
        if fold.transpose is not None:
            value = builder.original(fold.transpose, [value])
        rest = [builder.input(name) for name in site.node.input[1:]]
        bind(builder, site.node, builder.original(node, [value, *rest]))
        return Rewrite(builder.build(), _trials(site, fold), exact=fold.window.is_exact, replaces=fold.replaced)


@dataclass(frozen=True)
class _Fold:
    """What folding would do.

    Attributes:
        window: The operator, as it would read the unpadded input.
        pairs: The (begin, end) pads that it gets.
        source: What the first Pad reads.
        replaced: The Pads and the Transpose that are passed by, in the order of the graph.
        transpose: The Transpose between the Pads and the operator.
    """

    window: Window
    pairs: tuple[Pair, ...]
    source: str
    replaced: tuple[NodeProto, ...]
    transpose: NodeProto | None


def _fold(site: Site) -> _Fold | None:
    """Return how the Pads before the node would be folded into it; None where that is not exact."""
    node, scope = site.node, site.scope
    window = read_window(scope, node)
    if isinstance(window, Refusal) or window.auto_pad not in ("", "VALID") or window.has_indices:
        return None
    halves = window.explicit_pads
    if window.operator.mask is not None or (window.auto_pad == "VALID" and any(window.written.pads or ())):
        return None
    rank = window.rank + 2
    name, order, transpose = node.input[0], list(range(rank)), None
    producer = local_producer(scope, name)
    if producer is not None and producer.op_type == "Transpose":
        order = attributes.integers(producer, "perm") or order[::-1]
        if sorted(order) != list(range(rank)) or attributes.is_reference(producer, "perm"):
            return None
        transpose, name = producer, producer.input[0]
    replaced = [] if transpose is None else [transpose]
    added = [(0, 0)] * rank
    for _ in range(MOST_PADS):
        producer = local_producer(scope, name)
        amounts = None if producer is None else read_constant_pad(scope, producer, rank)
        if producer is None or amounts is None:
            break
        if any(map(any, amounts.pairs)) and not _pads_alike(site, window, amounts.value):
            break
        added = [(b + begin, e + end) for (b, e), (begin, end) in zip(added, amounts.pairs, strict=True)]
        replaced.insert(0, producer)
        name = producer.input[0]
    added = [added[axis] for axis in order]
    spatial = slice(window.leading, window.leading + window.rank)
    before = tuple(added[spatial])
    del added[spatial]
    if not any(map(any, before)) or any(map(any, added)):
        return None
    sizes = tuple(
        size - sum(pair) if isinstance(size, int) else size for size, pair in zip(window.sizes, before, strict=True)
    )
    window = dataclasses.replace(window, sizes=sizes)
    pairs = tuple((b + begin, e + end) for (b, e), (begin, end) in zip(halves, before, strict=True))
    if any(isinstance(size, int) and size < 1 for size in sizes) or needs_separate_pad(window, pairs):
        return None
    operator = window.operator
    if window.leaves_pads_out and any(map(any, halves)):
        return None
    if window.leaves_pads_out and operator.zero_point is not None and window.written.ceil_mode:
        return None  # once it counts its pads, it counts those taps as well that ceil mode lets reach out
    if site.opset < operator.since.get("count_include_pad", 1):
        return None
    if window.written.ceil_mode and not same_windows(window, halves, before):
        return None
    return _Fold(window, pairs, name, tuple(replaced), transpose)


def _pads_alike(site: Site, window: Window, value: np.ndarray | str) -> bool:
    """Whether the operator itself pads with ``value``."""
    expected: Any = 0
    if window.operator.is_maximum:
        if window.elem_type is None:
            return False
        expected = lowest(window.elem_type)
    else:
        position = window.operator.zero_point
        name = "" if position is None else site.input_name(position)
        if name:
            if isinstance(value, str):
                return value == name
            expected = site.scope.constant(name)
    if isinstance(value, str) or expected is None or value.size != 1 or np.size(expected) != 1:
        return False
    return bool(value.reshape(-1)[0] == np.reshape(expected, -1)[0])


def _all_take_in(site: Site, pad: NodeProto) -> bool:
    """Whether all that reads the Pad folds it in, so that it can go."""
    for reader in _readers(site.scope, pad):
        fold = None if reader is None else _fold(dataclasses.replace(site, node=reader))
        if fold is None or not any(pad.output[0] in node.output for node in fold.replaced):
            return False
    return True


def _readers(scope: Scope, node: NodeProto, depth: int = MOST_PADS + 1) -> Iterator[NodeProto | None]:
    """Yield the operators that read ``node``, directly or behind Pads and Transposes; None for any other use."""
    for name in node.output:
        if scope.is_output(name):
            yield None
        for consumer in scope.consumers(name):
            key = (normal_domain(consumer.domain), consumer.op_type)
            if consumer.input[:1] != [name] or name in consumer.input[1:]:
                yield None
            elif key in PADDED:
                yield consumer
            elif key in (("", "Pad"), ("", "Transpose")) and depth:
                yield from _readers(scope, consumer, depth - 1)
            else:
                yield None


def _trials(site: Site, fold: _Fold) -> tuple[Trial, ...]:
    """Return the operator's shape cases, in the layout of what the first Pad reads and with the Pads' own constants."""
    order = None if fold.transpose is None else attributes.integers(fold.transpose, "perm")
    if fold.transpose is not None and order is None:
        order = list(reversed(range(fold.window.rank + 2)))
    constants: dict[str, TrialInput] = {}
    for node in fold.replaced:
        for name in node.input[1:]:
            value = site.scope.constant(name) if name else None
            if value is not None:
                constants[name] = TrialInput.of(value)
    cases: list[Trial] = []
    for trial in trials(site, fold.window, same=False):
        given = trial[site.node.input[0]]
        shape = given.shape
        if order is not None:
            shape = tuple(given.shape[order.index(axis)] for axis in range(len(order)))
        rest = {name: each for name, each in trial.items() if name != site.node.input[0]}
        cases.append({fold.source: dataclasses.replace(given, shape=shape), **constants, **rest})
    return tuple(cases)
