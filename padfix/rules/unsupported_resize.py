"""PF205: a Resize or Upsample that the target refuses, or computes wrongly."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.operators.reading import read_resample
from padfix.operators.refusal import Refusal
from padfix.rules.base import Site
from padfix.rules.build.forms import Form
from padfix.rules.build.resize_forms import resize_forms
from padfix.rules.build.target_rule import TargetRule
from padfix.rules.resize_runtime_slip import ResizeRuntimeSlip


class UnsupportedResize(TargetRule):
    """A Resize or Upsample that the target refuses, or runs and gives other numbers for.

    Runtimes take some of the ways to name coordinates, roundings and amounts, and the sets have little in common: some
    know only `asymmetric` with `floor`, others every pair of coordinates and rounding but scales that don't divide the
    length. `padfix targets NAME` lists what is known of each, with its evidence. What is computed wrongly without a
    word has the severity `silent`: nothing else would tell.

    padfix writes the same samples in words to which the target has no objection: other coordinates and roundings that
    give the very same elements for the lengths at hand (for whole factors: for all lengths), sizes in place of scales;
    else one Gather an axis for mode nearest, and products with two constant matrices for the others.

    Refused: what needs lengths that are not known (`--shape` fixes them), and what no form is right for.

    Before, opset 17, for ncnn:

        main (float[1,3,8,8] X) => (float[1,3,16,16] Y) <int64[4] sizes = {1, 3, 16, 16}> {
          Y = Resize <coordinate_transformation_mode = "half_pixel", nearest_mode = "round_prefer_ceil"> (X, , , sizes)
        }

    After:

        Y = Resize <
            coordinate_transformation_mode = "asymmetric", mode = "nearest", nearest_mode = "floor"
        > (X, , , sizes)

    References:

    - The ONNX specification of Resize: <https://onnx.ai/onnx/operators/onnx__Resize.html>
    """

    code = "PF205"
    name = "unsupported-resize"
    operators = frozenset({("", "Resize"), ("", "Upsample")})

    def needs_specification(self, site: Site) -> bool:
        """Whether ONNX Runtime reads other elements than the specification (PF206), whatever the target does."""
        return ResizeRuntimeSlip().match(site) is not None

    def forms(self, site: Site) -> Iterator[Form]:
        """Yield the forms of the operator."""
        resize = read_resample(site.scope, site.node)
        if not isinstance(resize, Refusal):
            yield from resize_forms(site, resize)
