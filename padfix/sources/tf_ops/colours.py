"""RGBToHSV, HSVToRGB, AdjustHue and AdjustSaturation, with the formulas of TensorFlow's kernels.

tf2onnx lacks the first two. Its AdjustSaturation scales the distance to the largest channel but lets the saturation
exceed one, and its AdjustHue is wrong for a hue that is moved by more than one turn.
"""

from __future__ import annotations

import functools
from typing import Any

from padfix.sources.tf_ops.tensor import Builder, Tensor, concatenated

OPERATORS = ("RGBToHSV", "HSVToRGB", "AdjustHue", "AdjustSaturation")

_PEAKS = ((3.0, 1.0, -1.0), (2.0, -1.0, 2.0), (4.0, -1.0, 2.0))
"""For red, green and blue: the sixth of the hue circle that the channel is furthest from or nearest to, and the sign
and offset of the distance to it; cut to [0, 1] that is the channel's part."""


def convert(builder: Builder, node: Any) -> Tensor:
    """Return the image [..., 3] in the other colours."""
    image = builder.read(node.input[0])
    if node.type == "RGBToHSV":
        hue, saturation, value = _hue_saturation_value(image)
        return concatenated([hue, saturation, value], -1)
    if node.type == "HSVToRGB":
        hue, saturation, value = _channels(image)
        white = saturation * -1.0 + 1.0
        return concatenated([(part * saturation + white) * value for part in _parts(hue)], -1)
    hue, saturation, value = _hue_saturation_value(image)
    if node.type == "AdjustHue":
        moved = (hue + builder.read(node.input[1])).remainder(1.0)
        moved = builder.choose(moved.less(0.0), moved + 1.0, moved)
        least = functools.reduce(Tensor.minimum, _channels(image))
        return concatenated([part * (value - least) + least for part in _parts(moved)], -1)
    chroma = (saturation * builder.read(node.input[1])).maximum(0.0).minimum(1.0) * value
    # The kernel looks a sixth of the circle up by its number, and a hue that rounds to the whole circle has none.
    is_none = hue.less(1.0).negated()
    coloured = [builder.choose(is_none, 0.0, part * chroma) for part in _parts(hue)]
    return concatenated([part + (value - chroma) for part in coloured], -1)


def _channels(image: Tensor) -> list[Tensor]:
    return [image.take(image.builder.integers([channel]), -1) for channel in range(3)]


def _hue_saturation_value(image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the hue as a part of a circle, the saturation and the value, each [..., 1]."""
    builder = image.builder
    red, green, blue = _channels(image)
    value = red.maximum(green).maximum(blue)
    spread = value - red.minimum(green).minimum(blue)
    is_red, is_green, is_grey = red.equal(value), green.equal(value), spread.greater(0.0).negated()
    circle = spread * 6.0
    from_blue = (red - green) / circle + 4 / 6
    from_green = builder.choose(is_green, (blue - red) / circle + 2 / 6, from_blue)
    hue = builder.choose(is_grey, 0.0, builder.choose(is_red, (green - blue) / circle, from_green))
    hue = builder.choose(hue.less(0.0), hue + 1.0, hue)
    saturation = builder.choose(value.greater(0.0), spread / value, 0.0)
    return hue, saturation, value


def _parts(hue: Tensor) -> list[Tensor]:
    """Return how much of the chroma red, green and blue get, from 0 to 1."""
    found = []
    for centre, sign, offset in _PEAKS:
        distance = (hue * 6.0 - centre).absolute()
        found.append((distance * sign + offset).maximum(0.0).minimum(1.0))
    return found
