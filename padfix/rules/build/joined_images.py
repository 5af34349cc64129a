"""Single images that are joined along their own axis, for runtimes that take images one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator

from padfix.graph import attributes
from padfix.operators.followed_batch import axis_of_images
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared
from padfix.rules.build.objections import Operators


def in_matrices(site: Site) -> Iterator[Form]:
    """Yield a Concat along the axis of images, where layers take those one by one, as that of matrices.

    They join along their second axis, along which no images lie: those of what lies along the axis and behind it.
    """
    own = traits_of(site.scope, site.node) or {}
    if not own.get("joins-images"):
        return
    types = [site.input_type(place) for place in range(len(site.node.input))]
    lengths = [None if each is None else each.lengths for each in types]
    known, result = [each for each in lengths if each], site.scope.type_of(site.node.output[0])
    whole = None if result is None else result.lengths
    axis = (attributes.integer(site.node, "axis", 0) or 0) % max(len(whole or ()), 1)
    pairs = zip(site.node.input, known, strict=False)
    images = [each[axis] for name, each in pairs if axis_of_images(site.scope, name) == axis]
    why_not = None
    if len(known) < len(lengths) or not whole or 0 in whole:
        why_not = Refusal("it needs all lengths of its data (--shape)")
    elif not images or max(images) > 1:
        why_not = Refusal("it joins several images")
    elif math.prod(whole[axis + 1 :]) == 1:
        why_not = Refusal("nothing lies behind the axis of images")

    def write() -> Rewrite:
        assert whole is not None
        builder, before = site.builder(), math.prod(whole[:axis])
        matrices = [
            builder.reshaped(builder.input(name), [before, math.prod(each) // before])
            for name, each in zip(site.node.input, known, strict=True)
        ]
        builder.output(site.node.output[0], builder.reshaped(builder.op("Concat", matrices, {"axis": 1}), whole))
        return Rewrite(builder.build(), (as_declared(site),), exact=True)

    traits = {**own, "joins-images": False, "first-axis": False, "axis-from-end": False, "of-lists": False}
    operators: Operators = (("Reshape", {"rank": 2}), ("Concat", traits), ("Reshape", {"rank": len(whole or ())}))
    yield Form("matrices that lie side by side", operators, write, why_not)
