"""PF201: Upsample, deprecated since opset 10."""

from __future__ import annotations

from padfix.rules.base import Site
from padfix.rules.build.modern_resize import LegacySamplingRule

_FIRST_KERNEL = 7


class LegacyUpsample(LegacySamplingRule):
    """The model holds an Upsample, which opset 10 deprecated.

    Its text never said which input element an output element samples. What every file of that age was made for is
    `asymmetric` coordinates, rounded down in mode nearest. Tools that turn Upsample into a Resize without saying so
    get `half_pixel`, the default of Resize-11, and other numbers.

    padfix writes Resize-11 (or newer) with `coordinate_transformation_mode=asymmetric`, `nearest_mode=floor` and the
    same scales, which may be an input of the model. Scales are never turned into sizes: that changes values.
    `bilinear` of Upsample-1 becomes `linear`. Element types that Resize has no kernel for are sampled by Gather.

    Refused: a scale below 1, which Upsample does not define, and scales that don't fit the input.

    Before, opset 9:

        main (float[1,3,8,8] X) => (float[1,3,16,16] Y)
        <float[4] scales = {1, 1, 2, 2}> {
          Y = Upsample <mode = "nearest"> (X, scales)
        }

    After, opset 11:

        Y = Resize <coordinate_transformation_mode = "asymmetric", mode = "nearest",
                    nearest_mode = "floor"> (X, roi, scales)

    References:

    - The ONNX specification of Upsample: <https://onnx.ai/onnx/operators/onnx__Upsample.html>
    - The ONNX specification of Resize: <https://onnx.ai/onnx/operators/onnx__Resize.html>
    - Which element Upsample samples: <https://github.com/microsoft/onnxruntime/issues/4419>
    """

    code = "PF201"
    name = "legacy-upsample"
    operators = frozenset({("", "Upsample")})

    def needs_specification(self, site: Site) -> bool:
        """Whether ONNX Runtime has no kernel: it begins with version 7."""
        return site.scope.opset < _FIRST_KERNEL

    def problem(self, site: Site) -> str:
        """Return the problem of every Upsample."""
        return "Upsample is deprecated since opset 10"
