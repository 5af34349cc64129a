"""PF202: Resize of opset 10, which does not name its coordinates."""

from __future__ import annotations

from padfix.operators.resample import MODERN_OPSET
from padfix.rules.base import Site
from padfix.rules.build.modern_resize import LegacySamplingRule


class LegacyResize(LegacySamplingRule):
    """The model holds a Resize of opset 10, which does not say what it samples.

    Resize-10 is `asymmetric`; in mode nearest it rounds down on an axis that grows and up on one that shrinks.
    Resize-11 defaults to `half_pixel` and `round_prefer_floor`, so raising the opset alone (the official version
    converter does just that) changes the numbers of every resize but the trivial ones.

    padfix writes Resize-11 (or newer) with the coordinates and the rounding named and the scales kept. When some axes
    grow and others shrink it writes two, or Gather with the very indices where a runtime's shortcut for equal shapes
    would strike. Scales that are only known at run time give Gather with indices computed from them.

    Refused: scales that don't fit the input or are not above 0, and run-time scales in mode nearest on an input of
    unknown rank.

    Before, opset 10:

        main (float[1,3,8,8] X) => (float[1,3,4,4] Y)
        <float[4] scales = {1, 1, 0.5, 0.5}> {
          Y = Resize <mode = "nearest"> (X, scales)
        }

    After, opset 11:

        Y = Resize <coordinate_transformation_mode = "asymmetric", mode = "nearest",
                    nearest_mode = "ceil"> (X, roi, scales)

    References:

    - The ONNX specification of Resize: <https://onnx.ai/onnx/operators/onnx__Resize.html>
    - What conversion to Resize-11 does: <https://github.com/onnx/onnx/issues/3326>
    - Rounding on an axis that shrinks: <https://github.com/onnx/onnx/issues/8480>
    """

    code = "PF202"
    name = "legacy-resize"
    operators = frozenset({("", "Resize")})

    def problem(self, site: Site) -> str | None:
        """Return the problem of every Resize below opset 11."""
        if site.opset >= MODERN_OPSET:
            return None
        return f"Resize of opset {site.opset} does not name its coordinates"
