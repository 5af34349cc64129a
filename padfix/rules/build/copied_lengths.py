"""Lengths that an importer counts otherwise than others that they have to be alike with, copied or told."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.geometry.padding import effective_kernel
from padfix.graph import attributes
from padfix.graph.lengths import filled
from padfix.graph.scopes import Dimension
from padfix.operators.data_order import CHANNELS
from padfix.operators.loaded_lengths import alike_axes, are_counted_otherwise, counted_length
from padfix.operators.reading import read
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.operators.window import Windowed
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.along_axes import TAKING, taken
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import OPEN_LENGTH, as_declared
from padfix.rules.build.objections import Operators


def copied_lengths(site: Site) -> Iterator[Form]:
    """Yield a Concat or a product of what a Reshape gives, where lengths that it copies are counted as 0 again.

    What is counted as another goes through one.
    """
    own = traits_of(site.scope, site.node) or {}
    if not own.get("counts-differ"):
        return
    scope, node = site.scope, site.node
    names = [name for name in node.input if name]
    types = [scope.type_of(name) for name in names]
    shapes = [list((() if known is None else known.shape) or ()) for known in types]
    first = [shape[0] if shape else None for shape in shapes]
    through = set[int]()
    for group in alike_axes(scope, node):
        counted = {place: counted_length(scope, names[place], axis) for place, axis in group}
        known = next((length for place, axis in group if isinstance(length := shapes[place][axis], int)), 0)
        if are_counted_otherwise(list(counted.values())):
            through |= {place for place, each in counted.items() if each != known}
        for place, axis in group:
            shapes[place][axis] = known or shapes[place][axis]

    def write() -> Rewrite:
        builder = site.builder()
        again = [
            builder.reshaped(builder.input(name), _told(shapes[place])) if place in through else builder.input(name)
            for place, name in enumerate(names)
        ]
        builder.output(node.output[0], builder.original(copied(node), again))
        trial = {
            name: TrialInput(filled(shape, OPEN_LENGTH), known.elem_type)
            for name, shape, known in zip(names, shapes, types, strict=True)
            if known is not None
        }
        constants = {name: TrialInput.of(value) for name in names if (value := scope.constant(name)) is not None}
        return Rewrite(builder.build(), (trial | constants,), exact=True)

    operators: Operators = (
        *(("Reshape", {"rank": len(shapes[place])}) for place in sorted(through)),
        (node.op_type, {**own, "counts-differ": False, "joins-images": False}),
    )
    why_not = None if all(known is not None for known in types) else Refusal("what it reads is not known")
    if any(isinstance(shapes[place][0], int) and not isinstance(first[place], int) for place in through):
        why_not = Refusal("how many images there are is known of some alone")
    yield Form("lengths that a Reshape copies", operators, write, why_not)


def told_channels(site: Site) -> Iterator[Form]:
    """Yield a convolution or norm of channels that a Gather picks, all of them in their order, which tells how many.

    A Reshape that copies the other lengths would do where they have names alone.
    """
    scope, node = site.scope, site.node
    own = traits_of(scope, node) or {}
    if not own.get("channels-counted-otherwise"):
        return
    weights = site.input_type(1)
    lengths = (None if weights is None else weights.lengths) or (0, 0)
    channels = lengths[1] * (attributes.integer(node, "group", 1) or 1) if node.op_type == "Conv" else lengths[0]

    def write() -> Rewrite:
        builder = site.builder()
        data, *rest = (builder.input(name) for name in node.input)
        picked = taken(builder, data, {CHANNELS: range(channels)})
        builder.output(node.output[0], builder.original(copied(node), [picked, *rest]))
        return Rewrite(builder.build(), ({**as_declared(site), node.input[0]: _of_channels(site, channels)},))

    operators: Operators = (*TAKING, (node.op_type, {**own, "channels-counted-otherwise": False}))
    yield Form("a Gather of as many channels", operators, write)


def _of_channels(site: Site, channels: int) -> TrialInput:
    """Return data of so many channels, and of lengths that a window goes over a few times where they are open."""
    known, window = site.input_type(0), read(site.scope, site.node)
    shape = list((() if known is None else known.shape) or ())
    shape[CHANNELS] = channels
    if isinstance(window, Windowed):
        for axis, (size, taps, _, dilation) in enumerate(window.axes, start=CHANNELS + 1):
            shape[axis] = size if isinstance(size, int) else effective_kernel(taps or 1, dilation) + OPEN_LENGTH
    return TrialInput(filled(shape, OPEN_LENGTH), site.elem_type(0))


def _told(shape: list[Dimension]) -> list[int]:
    return [each if isinstance(each, int) else 0 for each in shape]
