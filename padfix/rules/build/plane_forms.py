"""Convolutions and pools along one axis, written for two: runtimes know planes better than lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from padfix.graph import attributes
from padfix.operators.data_order import is_in_blocks
from padfix.operators.refusal import Refusal
from padfix.operators.traits import transposed_traits, window_traits
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Pair, Window
from padfix.rules.base import Rewrite, Site, Trial
from padfix.rules.build.explicit_pads import copied, flat
from padfix.rules.build.forms import SHAPE_AS_INPUT_SINCE, Form
from padfix.rules.build.node_trials import as_declared
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.transposed import TO_THE_END, transposed_cases
from padfix.rules.build.trials import trials
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment import Fragment


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
        fragment = _fragment(site, window, kept, added, cut[0], squeezes=squeezes, across=across, lengths=lengths)
        return Rewrite(fragment, cases)

    name = (
        "two axes in place of one" + (" and a Slice" if sliced_off else "") + (", dilated across" if across > 1 else "")
    )
    copies = is_in_blocks(site.scope, site.input_name(0))
    reshapes = ("Reshape", {"rank": 4, "copies-channels": copies}), ("Reshape", {"rank": 3, "copies-channels": True})
    computes: Operators = ((window.op_type, traits),)
    loses = Refusal("a batch without images leaves no length to be found") if _has_open_lines(site) else None
    yield Form(name, (*reshapes, *computes), partial(write, squeezes=False), why_not or loses)
    yield Form(
        f"{name}, squeezed", (("Unsqueeze", {}), ("Squeeze", {}), *computes), partial(write, squeezes=True), why_not
    )


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
    window: Window | TransposedWindow, pads: tuple[Pair, ...], added: tuple[int, ...], across: int
) -> Window | TransposedWindow:
    strides, dilations = (1, *window.strides), (across, *window.dilations)
    written = dataclasses.replace(
        window.written,
        auto_pad=None,
        output_shape=None,
        pads=tuple(flat(((0, 0), *pads))),
        strides=strides,
        dilations=dilations,
        kernel_shape=(1, *(each or 1 for each in window.kernel)),
    )
    common: dict[str, Any] = {
        "written": written,
        "kernel": (1, *window.kernel),
        "strides": strides,
        "dilations": dilations,
        "sizes": (1, *window.sizes),
    }
    if isinstance(window, TransposedWindow):
        return dataclasses.replace(window, **common, output_shape=None, output_padding=(0, *added))
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
    *,
    squeezes: bool,
    across: int,
    lengths: tuple[int, int] | None,
) -> Fragment:
    builder = site.builder()
    node = copied(site.node, without=("auto_pad", "output_shape", "storage_order"))
    attributes.set_integers(node, "kernel_shape", [1, *(each or 1 for each in window.kernel)])
    attributes.set_integers(node, "strides", [1, *window.strides])
    attributes.set_integers(node, "pads", flat(((0, 0), *pads)))
    if across > 1 or attributes.find(node, "dilations") is not None:
        attributes.set_integers(node, "dilations", [across, *window.dilations])
    if any(added):
        attributes.set_integers(node, "output_padding", [0, *added])
    else:
        attributes.remove(node, "output_padding")
    inputs = [builder.input(name) for name in site.node.input]
    for position in (0, 1) if window.operator.weights is not None else (0,):
        value = inputs[position]
        length = -1 if lengths is None or position else lengths[0]
        inputs[position] = builder.unsqueezed(value, 2) if squeezes else builder.reshaped(value, [0, 0, 1, length])
    result = builder.original(node, inputs)
    length = -1 if lengths is None else lengths[1] + sum(cut)
    result = builder.unsqueezed(result, 2, back=True) if squeezes else builder.reshaped(result, [0, 0, length])
    result = sliced(builder, result, [cut[0]], [-cut[1] or TO_THE_END], [2]) if any(cut) else result
    builder.output(site.node.output[0], result)
    return builder.build()
