"""A Resize of lines as one of images of one column, for runtimes that resize images alone, whatever the lengths are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators
from padfix.rules.build.resize_factors import OMITTED_SINCE, SAID_ANEW
from padfix.rules.build.resize_trials import resize_trials, resized_axes
from padfix.targets.traits import Traits

_AXES_OF_LINES = 3
"""How many axes lines have, behind which images have a column, so that a Reshape copies all lengths."""

_WAYS = ("nearest", "linear")
"""Modes that give what they are given along an axis of one element that keeps its length."""


def as_columns(
    site: Site, mode: str, words: Callable[[str, str], Traits], pairs: list[tuple[str, str]]
) -> Iterator[Form]:
    """Yield a Resize of lines by scales as one of images, in every pair of coordinates and rounding.

    ``words`` tells what a Resize in such words is like.
    """
    axes = resized_axes(site)
    scales = None if isinstance(axes, Refusal) or len(axes) != _AXES_OF_LINES else [axis.scale for axis in axes]
    why_not = None
    if scales is None or any(each is None for each in scales) or mode not in _WAYS:
        why_not = Refusal("it is none of lines, by scales that are known, or cubic")

    def write(coordinates: str, rounding: str) -> Rewrite | Refusal:
        trials = resize_trials(site)
        if isinstance(trials, Refusal) or scales is None:
            return trials if isinstance(trials, Refusal) else Refusal("Its scales are not known.")
        builder, node = site.builder(), copied(site.node, without=SAID_ANEW)
        for name, value in zip(_NAMES, (mode, coordinates, rounding), strict=True):
            attributes.set_text(node, name, value)
        nothing = builder.input("") if site.opset >= OMITTED_SINCE else builder.constant(np.zeros(0, np.float32))
        given = np.array([*scales, 1], np.float32)
        image = builder.unsqueezed(builder.input(site.input_name(0)), _AXES_OF_LINES)
        resized = builder.original(node, [image, nothing, builder.constant(given, "scales")])
        builder.output(site.node.output[0], builder.unsqueezed(resized, _AXES_OF_LINES, back=True))
        return Rewrite(builder.build(), trials, exact=mode == "nearest")

    for coordinates, rounding in pairs:
        image: Traits = {**words(coordinates, rounding), "rank": _AXES_OF_LINES + 1, "one-element": True}
        operators: Operators = (
            ("Unsqueeze", {"rank": _AXES_OF_LINES}),
            ("Resize", image),
            ("Squeeze", {"rank": _AXES_OF_LINES + 1}),
        )
        name = f"an image of one column, {coordinates} with {rounding}"
        yield Form(name, operators, partial(write, coordinates, rounding), why_not)


_NAMES = ("mode", "coordinate_transformation_mode", "nearest_mode")
