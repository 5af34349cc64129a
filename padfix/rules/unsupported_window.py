"""PF111: a convolution or pool that the target refuses, or computes wrongly."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.operators.other_traits import OTHERS
from padfix.operators.reading import read
from padfix.operators.table import OPERATORS, Family
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Window
from padfix.rules.base import Site
from padfix.rules.build.byte_forms import byte_forms
from padfix.rules.build.computed_weights import weighed_forms
from padfix.rules.build.copied_lengths import told_channels
from padfix.rules.build.forms import Form
from padfix.rules.build.pads_beside import beside_opset
from padfix.rules.build.picked_elements import forms_of_what_skips
from padfix.rules.build.position_forms import position_forms
from padfix.rules.build.quantized_window import quantized_forms
from padfix.rules.build.target_rule import TargetRule
from padfix.rules.build.transposed_forms import transposed_forms
from padfix.rules.build.window_forms import window_forms
from padfix.rules.runtime_contradicts_spec import RuntimeContradictsSpec


class UnsupportedWindow(TargetRule):
    """A convolution, transposed convolution or pool that the target refuses, or runs and gives other numbers for.

    What a runtime does with pads that differ between two sides, with `auto_pad`, `ceil_mode`, `count_include_pad` or
    `output_shape` is known from running it, from its source or from its documentation; `padfix targets NAME` lists
    every such fact with its evidence. What is computed wrongly without a word has the severity `silent`: nothing else
    would tell. Where a fact depends on a length that the model leaves open, the finding says so.

    padfix writes a form to which the target has no objection: explicit pads in place of `auto_pad` (by the rules
    PF101 to PF105), end pads in place of `ceil_mode`, a Pad before the operator, a Slice behind a transposed
    convolution. For maxima a Pad repeats the element at the edge where the target does not take minus infinity: without
    dilations every window that reaches into the pads holds that element anyway.

    Where none of these is right and the lengths are known, it writes what happens on each axis by itself: the windows
    of a maximum side by side, for a pool without pads or overlaps; an average as a product with a matrix an axis; a
    root of squares as that of their average; a transposed
    convolution as a plain one of data that is spread out with zeros. What has one spatial axis is written
    with two, a pool of a volume as two pools of planes, and a bias that a runtime adds wrongly as an addition. Where a
    convolution leaves out elements that a runtime then does not compute rightly, a Gather picks those that it reads. A
    QLinearConv is written as a convolution of the numbers that its bytes stand for, and positions of maxima that are
    counted by columns as those by rows, exchanged behind the pool. Where a runtime gives no positions, a
    convolution with weights of 0 and 1 lays the taps of every window side by side, and an ArgMax tells the largest.
    Groups that a runtime mixes up or lacks become one, with weights of zero between them.

    Refused: what has no such form, or one that needs lengths which are not known.

    Before, opset 17, for ncnn:

        main (float[1,3,8,8] X) => (float[1,3,4,4] Y) {
          Y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 0, 0], strides = [2, 2]> (X)
        }

    After:

        padded = Pad <mode = "edge"> (X, pads)
        Y = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (padded)

    References:

    - The ONNX specification of MaxPool: <https://onnx.ai/onnx/operators/onnx__MaxPool.html>
    - The ONNX specification of ConvTranspose: <https://onnx.ai/onnx/operators/onnx__ConvTranspose.html>
    """

    code = "PF111"
    name = "unsupported-window"
    operators = frozenset(
        key
        for key, each in OPERATORS.items()
        if not key[0] and each.family is not Family.RESAMPLE and key[1] not in OTHERS
    )

    def needs_specification(self, site: Site) -> bool:
        """Whether ONNX Runtime runs the node against the specification, whatever the target does."""
        return RuntimeContradictsSpec().match(site) is not None

    def minimum_opset(self, site: Site) -> int:
        """Return the version whose Pad takes the element type."""
        window = read(site.scope, site.node)
        beside = beside_opset(window) if isinstance(window, Window) else 1
        return max(beside, super().minimum_opset(site))

    def forms(self, site: Site) -> Iterator[Form]:
        """Yield the forms of the operator."""
        window = read(site.scope, site.node)
        yield from told_channels(site)
        if isinstance(window, Window):
            yield from quantized_forms(site, window)
            yield from weighed_forms(site, window)
            if site.node.op_type == "ConvInteger":
                yield from byte_forms(site)
            yield from forms_of_what_skips(site, window, window_forms(site, window))
            yield from position_forms(site, window)
        elif isinstance(window, TransposedWindow):
            yield from transposed_forms(site, window)
