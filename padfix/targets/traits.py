"""The words for what an operator is like, in which targets state their facts."""

from __future__ import annotations

from collections.abc import Mapping

Trait = str | bool | int

Traits = Mapping[str, Trait | None]
"""What a node is like, by word; None where it depends on something that is not known, no entry where it makes no sense.
"""

SWITCH: tuple[Trait, ...] = (False, True)
COUNT: tuple[Trait, ...] = (0, 1, 2, 3, 4, 5, 6, 7, 8)

MARKS = (
    # Of convolutions, transposed convolutions and pools.
    "strided",
    "far-strides",
    "one-element",
    "dequantized",
    "of-weights",
    "weights-computed",
    "of-bytes",
    # Of pools of planes: whether windows of one column go two further on both axes. Of Conv: whether every channel
    # has one map of its own, a single channel among them.
    "column-by-twos",
    "map-each",
    "lists-scales",
    "joined-bytes",
    "leaves-bytes",
    # Of the operators that reduce axes.
    "reduces-all",
    "asked-for-infinity",
    # Of Softmax, LogSoftmax and Hardmax.
    "axis-from-end",
    # Of Reshape, behind a convolution or pool, and behind another one; numbers-images of Resize and joins, too.
    "copies-channels",
    "copies-behind-reshape",
    "shuffles",
    "of-thin-image",
    "of-square-product",
    "numbers-images",
    # Of Sub and Div.
    "from-constant",
    "from-softmax",
    # Of an Erf or Tanh that is part of a Gelu: whether the gate is halved (a Tanh's also behind the product).
    "halved-gate",
    # Of Transpose: one that undoes another behind a 1-D convolution, and one of those about a product with a matrix.
    "turned-back",
    "turned-back-alike",
    "about-a-product",
    # Of Gather, Gemm and LayerNormalization.
    "embeds",
    # Of PRelu, Celu, Split, ArgMax and ArgMin, Expand, BatchNormalization, MatMul, and what picks elements.
    "spreads-data",
    "splits-constant",
    "list-first",
    "list-second",
    "by-a-matrix",
    # Of Mul.
    "gate-second",
    # As has a Transpose that padfix writes about the steps of such a layer.
    "over-batch",
    # Of Slice: whether some step is negative; and of CumSum, which may leave each element out of its own sum.
    "backwards",
    "exclusive",
    # Of Identity, Dropout and Einsum, and of the norm that an Add ends.
    # Of all: whether their data are integers of 64 bits.
    "of-longs",
    # Of all: whether they read lists of one where numbers are meant.
    "lists-for-numbers",
    # Of all: whether something reads more than their first output.
    "gives-more",
    # Of all: whether they give what an input, a constant or another result is.
    "of-input",
    "gives-the-same",
    # Of Clip: whether it keeps a norm from zero by which the data themselves are divided.
    "spreads-norm",
    # Of Relu and Clip: whether it gives a result, cutting off at 0, or at 0 and 6, what a convolution of volumes gives.
    "cuts-volume-off",
    # Of DequantizeLinear: whether the bytes are what a QuantizeLinear gives.
    "undoes-quantizer",
    # Of Softmax: whether several elements lie behind its axis, and whether its data are without their largest along it.
    "axis-inside",
    "largest-off",
    # Of Pow, Cast, Concat and Slice.
    "of-deviation",
    "changes-type",
    # Of Cast and Div: whether it cuts fractions off, or makes booleans of other numbers than 0 and 1.
    "changes-numbers",
    "joins-nothing",
    "takes-nothing",
    # Of Squeeze, and of Unsqueeze.
    "adds-several",
    # Of GlobalLpPool and Shape: whether the model leaves the length of the first axis open.
    "open-batch",
    # Of what works on images: whether the model's inputs have another batch.
    "batch-within",
    # Of Slice, which has behind-window as well.
    "axes-out-of-order",
    # Of Add, and of operators that work element by element on several inputs, Concat among them.
    "adds-to-volume",
    "adds-wide-constant",
    "adds-to-column",
    "ends-norm",
    "adds-to-erf",
    "adds-turned-half",
    "joins-a-list",
    # Of what computes each element from one: whether its data are a list that is made of what is none, and computed.
    "of-made-list",
    "appends-to-input",
    "spreads-channels",
    # Of activations: whether their data is what a depthwise convolution of three axes gives.
    "behind-depthwise-volume",
    # Of BatchNormalization, which has about-a-product as well.
    "behind-activation",
    # Of Softmax, Gemm and LeakyRelu.
    "between-bytes",
    # Of all operators: whether the model computes what tells them how (a shape, axes), which others have as constants.
    "steered-by-results",
    # Of all operators: whether they give a result of the model that depends on no data.
    "gives-a-constant",
    # Of all operators: whether data tell them how, and not lengths or constants alone.
    "steered-by-data",
    # Of all operators: whether a node gives one of their constants, where others are initializers.
    "constants-by-nodes",
    "constants-again",
    # Of the operators that reduce axes: whether the channels are among several.
    "reduces-channels",
    # Of Transpose and Squeeze, and of Gather: whether its indices have several axes.
    "moves-batch",
    "moves-images",
    "picks-a-matrix",
    "gives-many-axes",
    "several-of-batch",
    "both-computed",
    # Of what picks single elements, which has axis-from-end as well; and of what reads constants of booleans.
    "of-fewer-rows",
    "of-listed-values",
    "constant-booleans",
    # Of GroupNormalization.
    "of-groups",
    # Of Concat, and of LSTM.
    "joins-constant-again",
    "states-differ",
    # Of Reshape, as numbers-images is.
    "measures-images",
    # Of QLinearMatMul: whether its scales are in half precision. Of Concat: whether it joins constants with data.
    "half-scales",
    "of-constants-too",
    # Of Einsum, Squeeze and Gather, and of Einsum alone; of-lists of Concat and Gather, too.
    "gives-a-number",
    "capital-letters",
    "implicit-result",
    "sums-alone",
    "repeats-axis",
    "of-lists",
    # Of Clip, which has spreads-norm as well: also whether the least is above the most.
    "bounds-one-side",
    "bounds-exchanged",
    # Of a constant that other operators compute, which has elements as well.
    "of-constants",
    # Of what picks elements: whether what is below 0 may be among indices that are computed, and whether constant
    # ones are of rows. Of OneHot: whether an index may be, or may be none of its places.
    "maybe-from-end",
    "maybe-outside",
    "picks-rows",
    # Of GatherND: whether each image has indices of its own.
    "by-image",
    # Of Gemm: whether its product or what is added has a factor.
    "has-factors",
    # Of an Erf: whether it is part of a Gelu, however that is written.
    "within-gelu",
    # Of Exp, Softplus and Mish: whether its data may be far below 0, where nothing is left in half precision.
    "falls-far",
    # Of Clip: whether its bounds are computed.
    "bounds-computed",
    # Of Einsum: whether it is a product of two whose axes are in order.
    "of-matrices",
    # Of LpNormalization: whether it divides by the sum of magnitudes. Of reductions: whether they take several axes
    # of a volume.
    "by-sum",
    "several-of-volume",
    "of-volume",
    # Of Attention, which has bounded as well: whether it has keys from before, and whether its products are read.
    "causal",
    "remembers",
    "gives-products",
    # Of Cast, Constant, Dropout and Shape: whether what it gives is a result of the model.
    "as-result",
    # Of Gemm: whether what is added is no list, or one of a single element. Of LayerNormalization: whether it gives its
    # mean or deviation, too.
    "bias-spread",
    "gives-mean",
    # Of LayerNormalization and RMSNormalization: whether the first axis is among theirs.
    "takes-batch",
    # Of the operators that reduce axes: whether they reduce the first one where all results are of several images.
    "across-images",
    # Of what constants alone tell: whether it is a result of the model.
    "constant-result",
    # Of Selu: whether it has other factors than the usual ones. Of Unique: whether it compares what lies along an axis.
    "other-factors",
    "along-axis",
    # Of GridSample: whether a place may be halfway between two elements, or behind the image's first reflection.
    "maybe-halfway",
    "maybe-far",
    # Of Slice and Transpose: whether they leave it to the default that they take the first axes, or reverse all.
    "axes-unlisted",
    "order-unwritten",
    # Of Cast: whether it makes integers that few runtimes have; and of all operators: whether their data are such.
    "gives-odd-integers",
    "of-odd-integers",
    # Of LpPool: whether its power is above 2.
    "high-power",
    # Of an Equal that padfix writes: whether it asks for infinity. Of IsInf: whether it means but one, or none.
    "meets-infinity",
    "one-sided",
    # Of what puts single elements, which has joins as well: whether it keeps the larger or the smaller.
    "joins-extremes",
    # Of Pow: whether its exponents are of another type. Of EyeLike: whether what it gives is.
    "types-differ",
    # Of QuantizeLinear and DequantizeLinear, which have of-input and as-result as well: whether blocks have scales.
    "blocked",
    "depth-is-no-number",  # Of OneHot: whether its depth is a list or in floats; as of-floats is of its values.
    "of-floats",
    # Of Cast, Shape and Size: whether integers of 64 bits that they make become a result, or are counted with.
    "ends-as-long",
)
"""Switches that are off unless they are told."""

TRAITS: Mapping[str, tuple[Trait, ...]] = {
    **dict.fromkeys(MARKS, SWITCH),
    # Of convolutions, transposed convolutions and pools.
    "auto-pad": ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"),
    "padding": ("none", "symmetric", "asymmetric"),
    "sizes": ("static", "dynamic"),
    "spatial-axes": COUNT,
    "dilated": SWITCH,
    "dilations-written": SWITCH,
    "grouped": SWITCH,
    "depthwise": SWITCH,
    "one-tap": SWITCH,
    "row-of-nine": SWITCH,
    "one-channel": SWITCH,
    "few-channels": SWITCH,
    "odd-square": SWITCH,
    "even-pads": SWITCH,
    "wide-pads": SWITCH,
    "behind-pad": ("none", "symmetric", "asymmetric"),
    "one-pad-before": SWITCH,
    "pads-before": SWITCH,
    "leaves-a-rest": SWITCH,
    "tall-result": SWITCH,
    "last-strides-differ": SWITCH,
    "indices": SWITCH,
    "column-major": SWITCH,
    "batched": SWITCH,
    "strides-written": SWITCH,
    "kernel-written": SWITCH,
    "kernel-below-stride": SWITCH,
    "kernel-above-stride": SWITCH,
    "biased": SWITCH,
    "counts-pads": SWITCH,
    "rounds-up": SWITCH,
    "drops-window": SWITCH,
    "output-shape": SWITCH,
    "output-padding": SWITCH,
    "one-filter-a-group": SWITCH,
    # Of activations: how they follow a convolution that nothing else reads.
    "behind-convolution": ("no", "alone", "activated"),
    # Of Resize and Upsample.
    "mode": ("nearest", "linear", "cubic", "constant", "reflect", "edge", "wrap", "avg", "max"),
    "coordinates": (
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_half_pixel_for_nn",
        "tf_crop_and_resize",
        "output_half_pixel",
        "legacy",
    ),
    "coordinates-written": SWITCH,
    "nearest-mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "legacy"),
    "nearest-mode-written": SWITCH,
    "antialias": SWITCH,
    "exclude-outside": SWITCH,
    "cubic-coefficient": ("-0.75", "-0.5", "other"),
    "aspect-ratio-kept": SWITCH,
    "axes-listed": SWITCH,
    "axes-negative": SWITCH,
    "amounts": ("scales", "sizes", "run-time"),
    "empty-scales": SWITCH,
    "factors": ("whole", "exact", "inexact"),
    "gives-one": SWITCH,
    "keeps-a-length": SWITCH,
    "just-short": SWITCH,
    "from-one": SWITCH,
    "slips": SWITCH,
    "slips-by-inverse": SWITCH,
    "resized-axes": COUNT,
    "outer-axes": SWITCH,
    "batch-axis": SWITCH,
    "rank": COUNT,
    "mode-written": SWITCH,
    # Of a Slice that padfix writes.
    "behind-window": SWITCH,
    # Of Pad, which like Resize has elements, and also mode, mode-written, amounts, axes-listed, outer-axes and rank.
    "negative": SWITCH,
    "end-alone": SWITCH,
    "value": ("zero", "finite", "infinite"),
    "before-average": SWITCH,
    "elements": ("float", "integer", "byte"),
    # Of GridSample, which also has mode.
    "aligned": SWITCH,
    "outside": ("zeros", "border", "reflection"),
    # Of the operators that reduce axes.
    "axes-as-input": SWITCH,
    "axes-empty": SWITCH,
    "reduced-axes": COUNT,
    # Of Softmax, LogSoftmax and Hardmax.
    "takes-axes-together": SWITCH,
    # Of Reshape, behind a convolution or pool, and behind another one; numbers-images of Resize and joins, too.
    "batch-told": SWITCH,
    # Of what normalises by a variance.
    "epsilon-written": SWITCH,
    # Of LRN.
    "whole-bias": SWITCH,
    "even-size": SWITCH,
    # Of DepthToSpace.
    "order": ("DCR", "CRD"),
    # Of a HardSigmoid or Tanh as in HardSwish and Mish.
    "gates-other-data": SWITCH,
    # Of a Tanh, and of a Softplus.
    "bounded": SWITCH,
    # Of Gather, Gemm, Einsum and LayerNormalization.
    "picks-a-list": SWITCH,
    "plain": SWITCH,
    "turned-first": SWITCH,
    "behind-batch": SWITCH,
    # Of a DFT, which may have its axis as an input.
    "axis-as-input": SWITCH,
    "axis-written": SWITCH,
    "first-axis": SWITCH,
    "length-given": SWITCH,
    # Of PRelu, Celu, Split, ArgMax and ArgMin, Expand, BatchNormalization, MatMul, and what picks elements.
    "slopes": ("one", "channels", "list-of-channels", "list", "others"),
    "of-one": SWITCH,
    "split-evenly": SWITCH,
    "pieces-told": SWITCH,
    "takes-last": SWITCH,
    "keeps-axis": SWITCH,
    "makes-batch": SWITCH,
    "trains": SWITCH,
    "negative-indices": SWITCH,
    "joins": SWITCH,
    # Of NonMaxSuppression: what its least score is, and whether a limit of it is a number without an axis.
    "least-score": ("none", "below-zero", "others"),
    "limits-as-numbers": SWITCH,
    # Of TopK, which has rank and axis-from-end as well.
    "sorted": SWITCH,
    # Of DynamicQuantizeLinear: whether anything but a DequantizeLinear reads what it gives.
    "read-apart": SWITCH,
    # Of a Constant: whether it holds a tensor, and not numbers in attributes of other names.
    "of-tensor": SWITCH,
    # Of Mod: whether the remainder has the sign of the dividend.
    "cuts-off": SWITCH,
    # Of Sum, Mean, Max, Min, Where and Einsum.
    "inputs": COUNT,
    "broadcasts": SWITCH,
    # Of LSTM, GRU and RNN.
    "direction": ("forward", "reverse", "bidirectional"),
    "resets-before": SWITCH,
    "activations": ("usual", "hard-sigmoid", "other"),
    "directions-alike": SWITCH,
    "clipped": SWITCH,
    "couples-gates": SWITCH,
    "batch-first": SWITCH,
    "lengths-given": SWITCH,
    "peepholes": SWITCH,
    "gives-state": SWITCH,
    "gives-cell-alone": SWITCH,
    "initial-state": ("none", "some", "all"),
    "state-computed": SWITCH,
    "squeezed": SWITCH,
    # Of RoiAlign, which also has mode and coordinates.
    "scaled": SWITCH,
    # Of Pow, Cast, Concat and Slice.
    "exponent": ("two", "whole", "half", "fraction", "others"),
    "of-positive": SWITCH,
    # Of Cast and Div: whether it cuts fractions off, or makes booleans of other numbers than 0 and 1.
    "gives": ("single", "half", "double", "integer", "boolean"),
    # Of Squeeze, and of Unsqueeze.
    "axes-written": SWITCH,
    # Of If: what decides, how the values of its branches differ, and whether it stands in one that depends on data.
    "decided-by": ("constants", "lengths", "data"),
    "branches": ("alike", "lengths-differ", "ranks-differ"),
    "within-undecided": SWITCH,
    # Of what is declared of an output.
    "shape-given": SWITCH,
    # Of Conv and Slice: what gives the data of which they take every n-th element alone.
    "skips-behind": ("none", "softmax", "window", "reshape", "expand"),
    # Of QuantizeLinear and DequantizeLinear.
    "zero-point-written": SWITCH,
    "zero-point-alike": SWITCH,
    "of-caller": SWITCH,
    "unsigned": SWITCH,
    # Of Softmax, Gemm and LeakyRelu.
    "from-least-byte": SWITCH,
    # Of Attention: what masks its products, and whether there are as many new keys as queries.
    "masked": ("no", "by-numbers", "by-booleans"),
    "as-many-keys": SWITCH,
    "value-written": SWITCH,
    # Of Gelu; the one above of ConstantOfShape.
    "approximate": ("none", "tanh"),
    # Of all operators: what kind of numbers their data are.
    "numbers": ("single", "half", "double", "integer", "boolean"),
    "bytes": ("none", "signed", "unsigned"),
    # Of all operators: how many axes what they read or give has, an image's where it is not known
    # (less one of one element that a Transpose between Reshapes leaves in its place).
    "axes": COUNT,
    # Of all operators: which lengths of their data are equal, and whether images are still in the order of images.
    "alike": ("none", "others", "channels", "all"),
    "channels-last": SWITCH,
    # Of what works element by element: how its constants take the shape of the result.
    "constants": ("none", "number", "one", "channels", "others"),
    # Of the producer that a model names.
    "written-by": ("pytorch", "others"),
    "averages-pads": SWITCH,
}
"""The words that a fact's ``where`` may use, each with the values that there are."""

UNSAID: Mapping[str, Trait] = {
    **dict.fromkeys(MARKS, False),
    "alike": "none",
    "axes": 4,
    "from-least-byte": True,
    "numbers": "single",
    "bytes": "none",
    "constants": "none",
    "channels-last": True,
    "behind-pad": "none",
    "epsilon-written": True,
    "value-written": True,
    "behind-window": True,
    "skips-behind": "none",
}
"""What is taken of an operator of which a trait is not told at all."""
