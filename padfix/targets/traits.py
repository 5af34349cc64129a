"""The words for what an operator is like, in which targets state their facts."""

from __future__ import annotations

from collections.abc import Mapping

from padfix.targets.marks import MARKS

Trait = str | bool | int

Traits = Mapping[str, Trait | frozenset[Trait] | None]
"""What a node is like, by word; None where it depends on something that is not known, no entry where it makes no sense.

A set holds what it may be, of which one is so: lengths that are left open decide.
"""

SWITCH: tuple[Trait, ...] = (False, True)
COUNT: tuple[Trait, ...] = (0, 1, 2, 3, 4, 5, 6, 7, 8)


TYPES: tuple[Trait, ...] = (
    *("float", "float16", "bfloat16", "double", "bool", "string", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int4", "uint4"),
)
"""Types of elements by their names in ONNX; others are none that a fact is about."""

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
    "nine-columns": SWITCH,
    "square": SWITCH,
    "of-whole-numbers": SWITCH,
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
    "one-line-result": SWITCH,  # Whether what a window gives is a plane of one row, or of one column.
    "two-column-result": SWITCH,  # Whether it is a plane of two columns at the most.
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
    "beyond-image": SWITCH,  # Whether a window is longer than the image with its pads, as far as that is known.
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
    "keeps-all-lengths": SWITCH,
    "just-short": SWITCH,
    "inferred-shorter": SWITCH,
    "from-one": SWITCH,
    "slips": SWITCH,
    "slips-by-inverse": SWITCH,
    "resized-axes": COUNT,
    "outer-axes": SWITCH,
    "batch-axis": SWITCH,
    "axes-turned-before": COUNT,  # Of a Reshape: how many axes a Transpose turns between another one and it.
    "padded-runs": COUNT,  # Of Pad: how many runs of axes it lays out at the most, padded ones each by itself.
    "rank": COUNT,
    "mode-written": SWITCH,
    # Of a Slice that padfix writes.
    "behind-window": SWITCH,
    # Of Pad, which like Resize has elements, and also mode, mode-written, amounts, axes-listed, outer-axes and rank.
    "negative": SWITCH,
    "end-alone": SWITCH,
    "value": ("zero", "finite", "infinite", "computed"),
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
    "results": COUNT,
    # Of DynamicQuantizeLinear: whether anything but a DequantizeLinear reads what it gives.
    "read-apart": SWITCH,
    # Of a Constant: whether it holds a tensor, and not numbers by other names; whether it is a number of a GELU.
    "of-tensor": SWITCH,
    "of-gelu": SWITCH,
    # Of Trilu, which has rank as well: whether its matrices have more rows than columns.
    "tall": SWITCH,
    # Of Mod: whether the remainder has the sign of the dividend.
    "cuts-off": SWITCH,
    # Of Sum, Mean, Max, Min, Where and Einsum.
    "inputs": COUNT,
    "broadcasts": SWITCH,
    # Of LSTM, GRU and RNN.
    "direction": ("forward", "reverse", "bidirectional"),
    "resets-before": SWITCH,
    "activations": ("usual", "hard-sigmoid", "odd", "other"),
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
    "state-of-few": SWITCH,
    "squeezed": SWITCH,
    # Of RoiAlign, which also has mode and coordinates.
    "scaled": SWITCH,
    "ratio-written": SWITCH,  # Of RoiAlign: whether its sampling_ratio stands there.
    # Of Pow, Cast, Concat and Slice.
    "exponent": ("two", "whole", "half", "fraction", "others"),
    "of-positive": SWITCH,
    # Of Cast and Div: whether it cuts fractions off, or makes booleans of other numbers than 0 and 1.
    "gives": ("single", "half", "double", "integer", "boolean"),
    # Of Squeeze, and of Unsqueeze.
    "axes-written": SWITCH,
    # Of If: what decides, and how the values of its branches differ.
    "decided-by": ("constants", "lengths", "data"),
    "branches": ("alike", "lengths-differ", "ranks-differ"),
    # Of what is declared of an output.
    "shape-given": SWITCH,
    # Of Conv and Slice: what gives the data of which they take every n-th element alone.
    "skips-behind": ("none", "softmax", "window", "reshape", "expand"),
    # Of QuantizeLinear and DequantizeLinear.
    "zero-point-written": SWITCH,
    "zero-point-alike": SWITCH,
    "of-caller": SWITCH,
    "quantized-to": ("bytes", "two-bytes", "half-bytes", "floats-of-a-byte", "whole-numbers", "others"),
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
    "type": TYPES,
    "without-sign": ("none", "bits-16", "bits-32", "bits-64"),
    # Of all operators: how many axes what they read or give has, an image's where it is not known
    # (less one of one element that a Transpose between Reshapes leaves in its place).
    "axes": COUNT,
    # Of all operators: which lengths of their data are equal, and whether images are still in the order of images.
    "alike": ("none", "others", "channels", "all"),
    "channels-last": SWITCH,
    # Of what works element by element: how its constants take the shape of the result, from the least to the most.
    "constants": ("none", "number", "one", "image", "channels", "others"),
    # Of the producer that a model names.
    "written-by": ("pytorch", "others"),
    "averages-pads": SWITCH,
}
"""The words that a fact's ``where`` may use, each with the values that there are."""

UNSAID: Mapping[str, Trait] = {
    **dict.fromkeys(MARKS, False),
    "alike": "none",
    "axes": 4,
    "axes-turned-before": 0,
    "axes-negative": False,
    "axes-written": True,
    "from-least-byte": True,
    "numbers": "single",
    "bytes": "none",
    "type": "float",
    "without-sign": "none",
    "constants": "none",
    "channels-last": True,
    "behind-pad": "none",
    "epsilon-written": True,
    "value-written": True,
    "behind-window": True,
    "skips-behind": "none",
    "of-whole-numbers": False,
    "quantized-to": "bytes",
}
"""What is taken of an operator of which a trait is not told at all."""
