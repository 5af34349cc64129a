"""Lists, rows and lines that a Pad mirrors or repeats, as images: with axes of one element before their last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from padfix.operators.pad_traits import outer_traits
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site, Trial
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

_IMAGE = 4
_PADS_AS_INPUT_SINCE = 11


def as_image(site: Site, traits: Traits, amounts: Sequence[int], mode: str, trials: tuple[Trial, ...]) -> Form:
    """Return a Pad of the last axis of less than four as one of an image of which that is the last axis, too.

    ``amounts`` are those of all axes, all begins first; ``traits`` are those of the Pad as it is written out.
    """
    rank = len(amounts) // 2
    more = range(max(0, rank - 1), _IMAGE - 1)
    before, behind = amounts[max(0, rank - 1)] if rank else 0, amounts[-1] if rank else 0
    pads = [0] * (_IMAGE - 1) + [before] + [0] * (_IMAGE - 1) + [behind]

    def write() -> Rewrite:
        builder = site.builder()
        value = builder.unsqueezed(builder.input(site.input_name(0)), *more)
        if site.scope.opset < _PADS_AS_INPUT_SINCE:
            value = builder.op("Pad", [value], {"mode": mode, "pads": pads})
        else:
            value = builder.op("Pad", [value, builder.constant(np.array(pads, np.int64), "pads")], {"mode": mode})
        builder.output(site.node.output[0], builder.unsqueezed(value, *more, back=True))
        return Rewrite(builder.build(), trials, exact=True)

    why_not = None
    if not 0 < rank < _IMAGE:
        why_not = Refusal("it is an image, or how many axes it has is not known")
    elif min(amounts) < 0 or any(amounts[: rank - 1]) or any(amounts[rank : 2 * rank - 1]):
        why_not = Refusal("it pads another axis than the last, or takes elements away")
    own: Traits = {**traits, **outer_traits(pads), "rank": _IMAGE, "negative": False}
    operators: Operators = (("Unsqueeze", {"rank": rank}), ("Pad", own), ("Squeeze", {"rank": _IMAGE}))
    return Form("the last axis of an image", operators, write, why_not)
