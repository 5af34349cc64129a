"""Convolutions and pools along one axis, written for two: runtimes know planes better than lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from padfix.graph import attributes
from padfix.graph.scopes import ValueType
from padfix.operators.data_order import is_in_blocks
from padfix.operators.refusal import Refusal
from padfix.operators.traits import transposed_traits, window_traits
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Pair, Window
from padfix.rules.base import Rewrite, Site, Trial
from padfix.rules.build.explicit_pads import copied, flat
from padfix.rules.build.forms import SHAPE_AS_INPUT_SINCE, Form
from padfix.rules.build.node_trials import as_declared
from padfix.rules.build.objections import Operators, worst_objection
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.transposed import TO_THE_END, transposed_cases
from padfix.rules.build.trials import trials
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment import Fragment
    from padfix.graph.fragment_builder import FragmentBuilder


_OPEN_LENGTHS = (7, 16)
"""What open lengths are tried with."""


def plane_forms(
    site: Site,
    window: Window | TransposedWindow,
    pads: tuple[Pair, ...],
    added: tuple[int, ...] = (),
    *,
    sliced_off: bool = False,
    across: int = 1,
) -> Iterator[Form]:
    """Yield the operator along the second of two axes, of which the first has one element, by two ways to add an axis.

    And along the first of two where no batch leaves a length to be found, so that a Reshape copies it.
    ``pads`` are its pads, ``added`` the output padding of a transposed convolution, from whose result a Slice can take
    what its pads would (``sliced_off``). ``across`` is the dilation along the first axis, where it changes nothing.
    """
    kept, cut = (((0, 0),), pads) if sliced_off else (pads, ((0, 0),))
    flattened = _in_a_plane(window, kept, added, across)
    is_transposed = isinstance(flattened, TransposedWindow)
    traits: Traits = transposed_traits(flattened) if is_transposed else window_traits(flattened)  # type: ignore[arg-type]
    why_not = None
    if window.domain or window.operator.zero_point is not None or len(site.node.output) > 1:
        why_not = Refusal("it is more than an operator on numbers")
    elif None in window.kernel:
        why_not = Refusal("the kernel's shape is not known")
    elif site.opset < SHAPE_AS_INPUT_SINCE:
        why_not = Refusal("this opset has no Reshape to a shape that is an input")

    def write(*, squeezes: bool) -> Rewrite | Refusal:
        lengths = None if squeezes else _lengths_of_any_batch(site)
        cases = _cases(site, window, pads) if lengths is None else (as_declared(site),)
        if isinstance(cases, Refusal):
            return cases
        axes = _Lines(squeezes=squeezes, across=across, lengths=lengths)
        return Rewrite(_fragment(site, window, kept, added, cut[0], axes), cases)

    def write_column() -> Rewrite:
        cases = tuple(as_declared(site, each) for each in _OPEN_LENGTHS)
        return Rewrite(_fragment(site, window, kept, added, cut[0], _Lines(column=True)), cases)

    name = (
        "two axes in place of one" + (" and a Slice" if sliced_off else "") + (", dilated across" if across > 1 else "")
    )
    copies = is_in_blocks(site.scope, site.input_name(0))
    reshapes = ("Reshape", {"rank": 4, "copies-channels": copies}), ("Reshape", {"rank": 3, "copies-channels": True})
    computes: Operators = ((window.op_type, traits),)
    loses = Refusal("a batch without images leaves no length to be found") if _has_open_lines(site) else None
    yield Form(name, (*reshapes, *computes), partial(write, squeezes=False), why_not or loses)
    # Where an Unsqueeze becomes a Reshape in turn, that finds no length either.
    is_reshaped = worst_objection(site.target, "Unsqueeze", site.opset, {"rank": 3, "open-lengths": True}) is not None
    squeezed: Operators = (("Unsqueeze", {"rank": 3}), ("Squeeze", {}), *computes)
    yield Form(
        f"{name}, squeezed", squeezed, partial(write, squeezes=True), why_not or (loses if is_reshaped else None)
    )
    if _has_open_lines(site) and across == 1:
        column = _in_a_plane(window, kept, added, 1, column=True)
        told: Traits = transposed_traits(column) if isinstance(column, TransposedWindow) else window_traits(column)
        yield Form(f"{name}, the first", (*reshapes, (window.op_type, told)), write_column, why_not)


@dataclasses.dataclass(frozen=True)
class _Lines:
    """How lines lie in planes: as the only row or the only ``column``, by which operators, and dilated ``across``."""

    squeezes: bool = False
    across: int = 1
    lengths: tuple[int, int] | None = None
    column: bool = False

    def placed(self, across: Any, along: Sequence[Any]) -> tuple[Any, ...]:
        """Return what is said of both axes."""
        return (*along, across) if self.column else (across, *along)

    def put(self, builder: FragmentBuilder, value: Any, known: ValueType | None, *, is_data: bool) -> Any:
        """Append what makes planes of lines, of data or of weights of a type."""
        if self.squeezes:
            return builder.unsqueezed(value, 2)
        told = [each if isinstance(each, int) else 0 for each in (known.shape or () if known is not None else ())]
        if self.column:
            return builder.reshaped(value, [0, told[1] if is_data and told else 0, 0, 1])
        if self.lengths is None or not all(told[1:]) or not told:
            return builder.reshaped(value, [0, 0, 1, -1])
        # Some runtimes copy no length of a batch that is left open, nor of weights beside it.
        return builder.reshaped(value, [0 if is_data else told[0], told[1], 1, told[2]])

    def back(self, builder: FragmentBuilder, value: Any, cut: Pair, known: ValueType | None) -> Any:
        """Append what makes lines of planes, by the type that the lines have in the end."""
        if self.squeezes:
            return builder.unsqueezed(value, 2, back=True)
        if self.lengths is None:
            return builder.reshaped(value, [0, 0, 0 if self.column else -1])
        channels = known.shape[1] if known is not None and known.rank == _LINES and known.shape else 0
        told = channels if isinstance(channels, int) else 0
        return builder.reshaped(value, [0, told, 0 if self.column else self.lengths[1] + sum(cut)])


_LINES = 3
"""Axes of data with one spatial axis."""


def _has_open_lines(site: Site) -> bool:
    """Whether neither the batch nor the length of the lines is known."""
    known = site.input_type(0)
    shape = () if known is None or known.shape is None else known.shape
    return bool(shape) and not isinstance(shape[0], int) and _lengths_of_any_batch(site) is None


def _lengths_of_any_batch(site: Site) -> tuple[int, int] | None:
    """Return the lengths of the lines before and behind, where these are all that is known beside an open batch.

    A batch without any images leaves no length to be found.
    """
    known, gives = site.input_type(0), site.scope.type_of(site.node.output[0])
    shapes = [each.shape for each in (known, gives) if each is not None and each.shape]
    if len(shapes) < 2 or isinstance(shapes[0][0], int):
        return None
    before, behind = shapes[0][-1], shapes[1][-1]
    return (before, behind) if isinstance(before, int) and isinstance(behind, int) else None


def _in_a_plane(
    window: Window | TransposedWindow,
    pads: tuple[Pair, ...],
    added: tuple[int, ...],
    across: int,
    *,
    column: bool = False,
) -> Window | TransposedWindow:
    placed = _Lines(column=column).placed
    strides, dilations = placed(1, window.strides), placed(across, window.dilations)
    written = dataclasses.replace(
        window.written,
        auto_pad=None,
        output_shape=None,
        pads=tuple(flat(placed((0, 0), pads))),
        strides=strides,
        dilations=dilations,
        kernel_shape=placed(1, [each or 1 for each in window.kernel]),
    )
    common: dict[str, Any] = {
        "written": written,
        "kernel": placed(1, window.kernel),
        "strides": strides,
        "dilations": dilations,
        "sizes": placed(1, window.sizes),
    }
    if isinstance(window, TransposedWindow):
        return dataclasses.replace(window, **common, output_shape=None, output_padding=placed(0, added))
    return dataclasses.replace(window, **common)


def _cases(site: Site, window: Window | TransposedWindow, pads: tuple[Pair, ...]) -> tuple[Trial, ...] | Refusal:
    if isinstance(window, TransposedWindow):
        return transposed_cases(site, window, pads)
    return trials(site, window, same=False)


def _fragment(
    site: Site,
    window: Window | TransposedWindow,
    pads: tuple[Pair, ...],
    added: tuple[int, ...],
    cut: Pair,
    lines: _Lines,
) -> Fragment:
    builder = site.builder()
    node = copied(site.node, without=("auto_pad", "output_shape", "storage_order"))
    attributes.set_integers(node, "kernel_shape", lines.placed(1, [each or 1 for each in window.kernel]))
    attributes.set_integers(node, "strides", lines.placed(1, window.strides))
    attributes.set_integers(node, "pads", flat(lines.placed((0, 0), pads)))
    if lines.across > 1 or attributes.find(node, "dilations") is not None:
        attributes.set_integers(node, "dilations", lines.placed(lines.across, window.dilations))
    if any(added):
        attributes.set_integers(node, "output_padding", lines.placed(0, added))
    else:
        attributes.remove(node, "output_padding")
    inputs = [builder.input(name) for name in site.node.input]
    for position in (0, 1) if window.operator.weights is not None else (0,):
        inputs[position] = lines.put(builder, inputs[position], site.input_type(position), is_data=position == 0)
    gives = site.scope.type_of(site.node.output[0])
    result = lines.back(builder, builder.original(node, inputs), cut, gives)
    result = sliced(builder, result, [cut[0]], [-cut[1] or TO_THE_END], [2]) if any(cut) else result
    builder.output(site.node.output[0], result)
    return builder.build()
