"""ExtractImagePatches and ExtractVolumePatches (``tf.image.extract_patches``): windows laid side by side as channels.

A patch holds its taps row by row, the channels of each together. Taps in the padding are zero.
"""

from __future__ import annotations

import math
from typing import Any

from padfix.sources.tf_ops.tensor import Builder, Tensor
from padfix.sources.tf_ops.windows import Window, spatial_attribute

OPERATORS = ("ExtractImagePatches", "ExtractVolumePatches")


def convert(builder: Builder, node: Any) -> Tensor:
    """Return windows gathered along each spatial axis."""
    image = builder.read(node.input[0])
    spatial = 3 if node.type == "ExtractVolumePatches" else 2
    window = Window(node, image, spatial_attribute(node, "ksizes", spatial), rates="rates")
    laid = window.taps_together(window.read(0))
    channels = image.lengths((spatial + 1,))[0] * math.prod(window.taps)
    return laid.reshape([*window.kept, channels])
