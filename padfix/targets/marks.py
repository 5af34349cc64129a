"""The words of facts that are switches, off unless they are told."""

from padfix.targets.declared_marks import DECLARED_MARKS
from padfix.targets.general_marks import GENERAL_MARKS
from padfix.targets.quantizer_marks import QUANTIZER_MARKS

MARKS = (
    *DECLARED_MARKS,
    *GENERAL_MARKS,
    *QUANTIZER_MARKS,
    # Of outputs and nodes: whether a name has other characters than letters, digits and _ . / \\ > - and colons.
    "odd-output",
    "odd-node",
    "old-file",  # Of files: whether ONNX's version is one that lists constants among the inputs.
    "new-file",  # Of files: whether ONNX's version is one that came with opset 28.
    # Of Flatten: whether it makes one row or one column of data of which a length is open. Of MatMul and ScatterND:
    # whether lengths are told on one side that are open on the other.
    "flattens-open",
    "multiplies-open",
    "puts-open",
    "unread",  # Of inputs of the model: whether nothing reads more of it than its lengths.
    "strided",  # Of convolutions, transposed convolutions and pools.
    "far-strides",
    "one-element",
    "dequantized",
    "of-weights",
    "weights-computed",
    "bias-computed",
    "of-bytes",
    # Of pools of planes: whether windows of one column go two further on both axes. Of Conv and
    # ConvTranspose: whether every channel has one map of its own, a single channel among them.
    "column-by-twos",
    "multiplies-channels",  # Of Conv and ConvTranspose: whether each channel makes several maps by itself.
    "map-each",
    "crops-past-kernel",  # Of ConvTranspose: whether it crops more at an end than its kernel is long.
    "saturates",  # Of DequantizeLinear, QLinearConv and QLinearMatMul: whether products of bytes may not fit 16 bits.
    "computed-scale",  # Of QuantizeLinear and DequantizeLinear: whether the scale or zero point is no constant.
    "joined-bytes",
    "zero-point-left-out",  # Of ConvInteger and MatMulInteger: whether the weights have one, and the data none.
    "leaves-bytes",
    "by-channels-of-lines",  # Whether constants of several elements change what reduced lines are made into.
    "sums-dequantized-lines",  # Of the operators that reduce axes.
    "reduces-all",
    "asked-for-infinity",
    "numbers-computed",  # Of norms of batches, instances and layers: whether a scale, bias or mean is no constant.
    "leaves-an-axis",  # Of Resize: whether an axis behind batch and channels keeps its length.
    "of-split-sequence",  # Of SequenceErase and SequenceInsert: whether a SplitToSequence gives the sequence.
    "middle-taps-below",  # Of Conv: whether the middle row of three by three taps lies below the image with its pads.
    "dense-behind-extremes",  # Of Conv: whether three by three taps side by side multiply huge numbers that a Pad adds.
    "line-of-eights",  # Of Conv: whether it keeps the length of lines that are a multiple of 8, padded by much.
    "both-broadcast",  # Of comparisons: whether each of both takes a shape that has more elements than its own.
    "one-of-more-axes",  # Whether a constant of one element has more axes than the data.
    "compares-constant-first",  # Of comparisons: whether the first is a constant of several elements, but not of all.
    # Of Div: whether a ReduceL2 gives what it divides by, which takes none or several axes as an attribute, is of other
    # data or leaves its axis out, or is of the same data along another axis than the channels; whether it divides by
    # the root of a sum of powers and a number, or by a ReduceL2 that is no less than a number, in another shape.
    "by-norm-of-axes",
    "by-norm-of-others",
    "by-norm-off-channels",
    "by-norm-and-number",
    "by-inverse-of-norm",  # Of Mul: whether a factor is 1 divided by a norm that has a least number.
    "by-open-length",  # Of Div: whether it divides by what is worked out of lengths alone, one of which is left open.
    "compares-itself",  # Of comparisons: whether they compare something with itself, which asks whether it is a number.
    "read-untyped",  # Of comparisons: whether something reads what they give, and the model does not declare its type.
    "leaves-rows-out",  # Of Softmax, and its Exp: whether infinities leave whole rows out, or may as data decides.
    "masks-by-numbers",  # Of Softmax: whether a number that is added, and that halves hold, may mask whole rows.
    "beyond-halves",  # Of Mod: whether half precision may not hold its integers, or their quotients.
    "squares-far",  # Of ReduceL2, LpPool and Sqrt: whether it is the root of squares that half precision may not hold.
    "narrow-integers",  # Of Neg: whether its data are integers of up to 32 bits.
    "slopes-of-all-axes",  # Of PRelu: whether its slopes have as many axes as the data, and another shape.
    "slopes-computed",  # Of PRelu: whether its slopes are no constant.
    "constants-from-outside",  # Of If: whether its branches read constants that stand outside.
    "computed-of-windows",  # Of PRelu: whether its data is what a convolution or pool gives, or computed of that.
    "reads-from-outside",  # Of If: whether its branches read anything from outside but inputs of the model.
    "squares-for-norm",  # Of Mul and Pow: whether it is taken for part of a norm of rows, and is not.
    "even-by-itself",  # Of Split: whether its pieces are of one length, and no input says of which.
    "inverse-of-real",  # Of DFT.
    "parts-open",  # Of DFT: whether the last length is left open, which says if its data are complex.
    "asks-neither",  # Of IsInf: whether it asks neither for infinity nor for what is below all numbers.
    "zero-factor",  # Of HardSigmoid and Selu: whether alpha, beta or gamma is written as 0.
    "gives-places",  # Of TopK: whether its places are read.
    "untyped-body",  # Of Scan: whether its body does not tell of which type what it is given is.
    "axes-from-untold-end",  # Of the same: whether axes count from the end of slices without a shape in the body.
    "axis-from-end",  # Of Softmax, LogSoftmax and Hardmax, and of LayerNormalization.
    "inner-axis-from-end",  # Of TopK: whether the axis is counted from the end, and not the last.
    "before-alike",
    # Of Reshape, behind a convolution or pool, and behind another one; numbers-images of Resize and joins, too.
    "copies-channels",
    "copies-behind-reshape",
    "shuffles",
    "of-thin-image",
    "of-square-product",
    "goes-back",  # Whether a product of what another one put together gets the lengths before that, but for the last.
    "numbers-images",
    # Of Gather and Squeeze, and of Reshape and Transpose: whether it picks one of the parts that a Reshape makes of the
    # last axis, and whether all that reads it does.
    "picks-part",
    "by-integers-of-32-bits",  # Of Gather: whether data give its indices, and of 32 bits.
    "joins-images",  # Of Concat: whether it joins the batch of what layers work on image by image.
    "unlike-batches",  # Of layers of images: whether inputs and results of the model are of unlike numbers of them.
    "leaves-known-lengths",  # Of a Reshape that copies or finds what is known beside what is open.
    "taken-apart",
    "by-zero",  # Of Sub and Div, and of Div alone: whether 0 is among what it divides by.
    "constant-first",  # Whether it is a constant that something is subtracted from, or that is divided.
    "from-constant",
    "from-softmax",
    "less-own-tanh",
    "less-own-log-sum",
    "by-own-sum",
    "by-own-sums",
    "by-power-of-two",  # Of Div: whether integers that may be below 0 are divided by one constant of 2, 4, 8 and so on.
    "by-one-each",  # Of Div: whether a constant of several elements, as many as the result has, divides integers.
    "blocks-of-one",  # Of DepthToSpace and SpaceToDepth: whether a block is one element.
    "picks-lengths",  # Of Shape: whether it gives some of the lengths alone.
    # Of what joins several inputs element by element.
    "column-among-first",  # Whether one of the first two of four and more has one column, and the result several.
    "joins-a-copy",  # Whether one of them is copied to the open lengths of another one, which spreads it anyway.
    "one-first",
    "constant-before-layer",
    "joins-constant-first",  # Whether a constant of two axes and more, but of fewer than the result, comes first.
    # Of an Erf or Tanh that is part of a Gelu: whether the gate is halved (a Tanh's also behind the product).
    "halved-gate",
    # Of Transpose: one that undoes another behind a 1-D convolution, and one of those about a product with a matrix.
    "turned-back",
    "turned-back-alike",
    "about-a-product",
    "embeds",  # Of Gather, Gemm and LayerNormalization.
    "by-list-of-caller",
    # Of PRelu, Celu, Split, ArgMax and ArgMin, Expand, BatchNormalization, MatMul, what picks elements, and arithmetic.
    "spreads-data",
    "copies-columns",  # Of Expand: whether the last axis of what it gives has one element.
    "empty-piece",  # Of Split: whether one of its pieces has no elements.
    "splits-constant",
    "list-first",
    "list-second",
    "by-a-matrix",
    "by-a-number",  # Of MatMul and Einsum: whether one of what they multiply is a constant of one element.
    "by-fewer-constants",
    "within-celu",  # Of Elu, Neg and Mul.
    "before-softmax",
    "gate-second",
    "divides-heads",  # Of Div: whether of scores of heads without biases or their number, or with a computed mask.
    "scales-groups",  # Of Mul: whether it scales a norm of groups, but planes by one number for each channel.
    "scales-one-query",  # Of Mul: whether first come the heads of one row of which an attention makes its queries.
    "of-low-plane",  # Of HardSigmoid: whether its data are images of 9 to 15 rows, and no Conv is right before it.
    "leaves-channels",  # Of ArgMax and ArgMin: whether what they give has channels, and other axes behind these.
    "kept-unwritten",  # Of ArgMax and ArgMin: whether it is left to the default that they keep their axis.
    "turns-longs",  # Whether a result is integers of 64 bits that a Transpose turns, or a Gather picks of computed.
    "amounts-of-data",  # Of Pad and Resize: whether data tells the amounts, and not constants or lengths alone.
    "shares-of-fewer-axes",  # Of MatMul: whether the first factor, of a Softmax, has fewer axes than the second.
    "spread-alike",  # Of MatMul: whether both factors have as many matrices, and fewer than the result.
    "copied-along-first",  # Of MatMul of volumes: whether a factor is one along the first axis, and the result not.
    "of-data",  # Of what reduces axes: whether data decide what it gives, and not lengths or constants alone.
    "added-axis-from-end",  # Of what reduces axes: whether they are counted from the end, directly behind added ones.
    "cuts-quantized",  # Of Clip, Max and Min: whether they cut off what has just been quantized and dequantized.
    "from-other-bytes",  # Of QuantizeLinear: whether bytes with a sign become those without, or the other way round.
    "scaled",  # Of MatMul: whether nothing reads it but what multiplies or divides it by a number.
    "spreads-first",  # Of Mod: whether its first input takes the shape of the result.
    "squares",  # Of Mul and MatMul: whether both factors are the same.
    "cuts-window-off-zero",  # Of Clip, Max and Min: whether they leave 0 out of what a window gives, with constants.
    "joins-between-bytes",  # Of Relu and LeakyRelu: of two DequantizeLinears, before a QuantizeLinear.
    "cuts-relu-off",  # Of Clip: whether a Relu gives its data, and it cuts off all that is not below 0.
    "behind-product",  # Of Tanh and Sigmoid: whether its data is what a convolution or a product gives, with a bias.
    # As has a Transpose that padfix writes about the steps of such a layer.
    "over-batch",
    # Of Slice and Range: whether some step is negative; and of CumSum, which may leave each element out of its own sum.
    "backwards",
    "by-fractions",  # Of Range: whether a number that tells it what it lists has a fraction, or may have.
    "exclusive",
    "laid-back",  # Of what lays data out: whether it gives as a result an input as that was.
    # Of Clip: whether it keeps a norm from zero by which the data themselves are divided.
    "spreads-norm",
    # And whether it does so with both bounds written, one of which may be left out, along others than the channels.
    "spreads-other-norm",
    # Of Relu and Clip: whether it gives a result, cutting off at 0, or at 0 and 6, what a convolution of volumes gives.
    "cuts-volume-off",
    # Of Softmax: whether several elements lie behind its axis, and whether its data are without their largest along it.
    "axis-inside",
    "largest-off",
    # Of Pow, Cast, Concat and Slice.
    "lists-exponents",
    "changes-type",
    "cast-back",  # Of Cast: whether other Casts alone read the integers that it makes of floats, for floats.
    # Of Cast and Div: whether it cuts fractions off, or makes booleans of other numbers than 0 and 1.
    "changes-numbers",
    "joins-a-number",  # Of Concat: whether it joins data with a constant of one element.
    "joins-nothing",
    "joins-empty-constant",
    "lists-differ",  # Of Concat: whether some of the lists that it joins are made of what is none, and some are not.
    "takes-nothing",  # Of Slice, and of what picks or puts elements: whether that is none.
    # Of Expand and Tile: whether products or recurrent layers read what they repeat.
    "multiplied-copies",
    # Of Squeeze, and of Unsqueeze.
    "adds-several",
    "of-number-given",  # Of Unsqueeze and Reshape: whether it gives axes to a number that an input of the model is.
    # Of GlobalLpPool and Shape: whether the model leaves the length of the first axis open; of recurrent layers, how
    # many sequences there are. Of Squeeze, Unsqueeze and Einsum: whether it leaves any length open; of TopK its axis,
    # and of Split any other than that of its axis.
    "open-batch",
    "open-lengths",
    "behind-open-pool",  # Of Squeeze: whether a pool over all of an open length gives its data.
    # Of what works on images: whether the model's inputs have another batch.
    "batch-within",
    # Of Slice, which has behind-window as well, and of Squeeze.
    "axes-out-of-order",
    # Of Add, and of operators that work element by element on several inputs, Concat among them.
    "adds-to-volume",
    "adds-to-convolution",  # Of Add and Sum: whether to what a convolution gives, in another shape.
    "adds-wide-constant",
    "adds-more-axes",  # Of Add: whether to a product with a constant matrix, and several of more axes.
    "behind-groups",  # Of BatchNormalization: whether a transposed convolution of groups gives its data.
    "adds-to-column",
    "repeats-many-axes",  # Of Tile: whether it may repeat along more than two axes, which is known at run time alone.
    "many-axes-or-none",  # Of Reshape: whether it may give lengths of 0, and has more than five axes.
    "pads-cut-columns",  # Of Pad: whether it adds columns before those of images whose first were cut off.
    "joins-cut-columns",  # Of Concat: whether it joins a constant with such columns.
    "rank-untold",  # Of reductions and Reshape: whether how many axes are left is only known at run time.
    "turns-heads-once",  # Of MatMul: in an attention of as many heads as rows, in the queries or behind it, not both.
    "turns-split-rows",  # Of Transpose: whether it turns the rows of a dense layer, split into five axes and more.
    "counts-from-end",  # Of SequenceAt: whether it counts from the end of a list.
    "takes-piece",  # Of SequenceAt: whether it gives a known part of data that are split.
    "gives-input",  # Of SequenceAt: whether what it gives is an input of the model.
    "of-split",  # Of SequenceLength: whether the list is split from data.
    "behind-layer",  # Of ReverseSequence: whether a layer that works on images stands before it.
    "adds-none",  # Of Unsqueeze: whether it adds no axis.
    "places-in-rows",  # Of ScatterND: whether its places count along one axis and are no list.
    "puts-slices",  # Of ScatterND: whether its places count along several axes, but not along all.
    "adds-as-many",
    "adds-as-many-channels",  # Of Add and Sum: whether to a convolution, of so many constants along another axis.
    "ends-norm",
    "adds-to-erf",
    "adds-one-to-size",
    "adds-turned-half",
    "spreads-alike",  # Of Add: whether moved axes of its terms are put back by their lengths to where they were not.
    "adds-for-softplus",  # Of Add: whether to an Exp, before a Log, and not 1 alone, or one of the two is a result.
    "joins-a-list",
    # Of what computes each element from one: whether its data are a list that is made of what is none, and computed.
    "of-made-list",
    "of-made-number",  # Of the same: whether their data have no axis, and are no number of a caller.
    "appends-to-input",
    "bytes-of-input",  # Of Cast: whether it makes bytes without a sign of an input of the model.
    "spreads-channels",
    "behind-depthwise-volume",  # Of activations: whether a depthwise convolution of three axes gives their data.
    # Of BatchNormalization, which has about-a-product as well.
    "behind-activation",
    "between-bytes",  # Of Softmax, Gemm and LeakyRelu.
    # Of the operators that reduce axes: whether the channels are among several.
    "reduces-channels",
    # Of Transpose and Squeeze, and of Gather: whether its indices have several axes.
    "moves-batch",
    "moves-images",
    "picks-a-matrix",
    "gives-many-axes",
    "picks-all-in-order",  # Of a Gather: whether it gives all along its axis, each once and in order.
    "several-of-batch",
    "both-computed",
    "few-rows",
    "of-untold-volume",
    "by-data",
    "before-cast",  # Of Gather: whether a Cast alone reads what it picks; of Mul: whether one reads the product.
    "by-number-of-images",  # Of If, Slice and arithmetic: whether how many images there are is computed with.
    # Of what picks single elements, which has axis-from-end as well; and of what reads constants of these types.
    "of-fewer-rows",
    "of-more-rows",
    # Of ScatterElements, and GatherElements but along its own axis: whether indices are told beside open lengths.
    "told-beside-open",
    "of-listed-values",
    "of-wide-integers",
    # Of arithmetic: whether a constant of one infinite element is part of it.
    "by-infinity",
    "infinity-as-result",  # Of what gives constants, too: whether the model gives an infinity among them.
    "constant-booleans",
    "constant-doubles",
    # Of GroupNormalization.
    "of-groups",
    # Of Concat, and of LSTM.
    "joins-constant-again",
    # Of LSTM, GRU and RNN: whether the last output has no name. Of LSTM: whether its cell is read beside its sequence
    # or the last of several states, of several.
    "gives-cell-too",
    "lengths-beside-constants",  # Of the same: whether lengths are told beside constant weights, of open sequences.
    "leaves-inputs-out",  # Of LSTM, GRU and RNN: whether a bias or state has no name, and something behind it is told.
    "states-differ",
    "activations-scaled",
    "activations-written",
    # Of Reshape, as numbers-images is.
    "measures-images",
    # Of Concat, Gemm and MatMul: whether open lengths that have to be alike come of two tensors in some alone.
    "counts-differ",
    "channels-counted-otherwise",  # Of Conv, ConvTranspose, InstanceNormalization: than weights are for, if left open.
    "measures-by-lists",
    # Of QLinearMatMul: whether its scales are in half precision. Of Concat and what works element by element:
    # whether it joins constants with data.
    "half-scales",
    "of-constants-too",
    # Of Pad, Where and what picks elements: whether it reads a constant of bytes with a sign.
    "reads-constant-bytes",
    # Of Einsum, Squeeze and Gather, and of Einsum alone; of-lists of Concat and Gather, too.
    "gives-a-number",
    "capital-letters",
    "implicit-result",
    "sums-alone",
    "repeats-axis",
    "multiplies-lines",  # Of Einsum: whether it multiplies two of three axes element by element, the first one first.
    "sums-otherwise",  # Of Einsum of one data: whether it sums an axis and turns the result, or sums its last three.
    "keeps-all",  # Of Einsum: whether it gives its data as they are.
    "columns-first",  # Of Einsum: whether it is a product of matrices, one for each image, turned.
    "ordered-alike",  # Of Einsum: whether it is one for each along two axes of images, in the data's own order.
    "keeps-one-of-several",  # Of Einsum: whether it gives as it is what is one of several that an operator gives.
    "dotted",  # Of Einsum: whether dots stand for axes, and whether letters stand before them.
    "dots-within",
    "some-dots",
    "of-lists",
    # Of Clip, which has spreads-norm as well: also whether the least is above the most.
    "bounds-one-side",
    "one-bound-inside",  # Whether it has one bound alone, in a branch or a body.
    "bounds-none",
    "bounds-exchanged",
    "bounds-equal",
    "before-einsum",  # Of a constant that is computed: whether it comes to an Einsum of data.
    "lengths-chosen",  # Of an Expand of constants: whether a Where gives the lengths.
    "of-constants",  # Of a constant that other operators compute, which has elements as well.
    "picks-of-stacks",  # Of such a Gather: whether it picks from three axes or more by a number or a list.
    # Of what picks elements: whether what is below 0 may be among indices that are computed, and whether constant
    # ones are of rows. Of OneHot: whether an index may be, or may be none of its places.
    "maybe-from-end",
    "maybe-outside",
    "picks-rows",
    "picks-many-planes",  # Of GatherND: whether more than 64 tuples each pick what has two axes or more.
    # Of GatherND: whether each image has indices of its own, whether they are of several axes, and whether they have
    # more axes than images themselves.
    "by-image",
    "by-tuples",
    "by-many-axes",
    # Of Gemm: whether its product or what is added has a factor, whether that is 0 of what is added, and whether what
    # is added is computed and has not all rows and columns.
    "has-factors",
    "adds-nothing",
    "spreads-computed-bias",
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
    "counts-keys",  # Of Attention: whether it is told of how many keys each batch has the first alone.
    "within-window",  # Of Attention: whether each query looks at the keys near it alone.
    # Of Cast, Constant, Dropout, Shape and Split: whether what it gives is a result of the model. Of windows: whether
    # that is one, or what a Relu, LeakyRelu or Clip makes of it.
    "as-result",
    "ends-model",
    "places-computed",  # Of Gather: whether its indices are computed from constants, and none of them is data's.
    "value-given",  # Of Pad: whether an input says what is added.
    "value-unread",  # Of Pad: whether it has a value as an input that its mode does not read.
    # Of Clip, LeakyRelu, PRelu and Relu: whether a result of the model is what they make of what a Squeeze has just
    # taken axes of; of LeakyRelu and Relu where something else reads that.
    "gives-squeezed",
    # Of what changes elements one by one: whether they are a result of the model that a Reshape or a product gives.
    "reads-moved-result",
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
    "gives-each",  # Of Unique: whether it is read which of them each element is, or how often each is there.
    "tells-places",  # Of the same: whether it is read which of the unique elements each element is.
    "tells-a-length",  # Of the same: whether it is of constants, and something is made as long as what it gives tells.
    # Of GridSample: whether a place may be halfway between two elements, or behind the image's first reflection.
    "maybe-halfway",
    "maybe-far",
    # Of LSTM, GRU and RNN: whether what they give has no name, and whether steps are open as an input's first axis.
    "cell-unnamed",
    "sequence-unnamed",
    "steps-open-alone",
    "behind-slice-from-first",  # Of GatherElements: whether its data are what a Slice takes from the first on.
    "by-largest",  # Of Normalizer: whether it divides by the largest element.
    "activates-result",  # Of Relu: whether it reads a result of the model that arithmetic of two gives.
    # Of Slice: whether it starts before the first element of an axis, or may where that is open.
    "ends-far",  # Of Slice: whether it ends where 32 bits hold no number, but for the largest of 64.
    "starts-before",
    "maybe-starts-before",
    # Of Slice and Transpose: whether they leave it to the default that they take the first axes, or reverse all.
    "axes-unlisted",
    "again-from-end",  # Of Slice: whether it lists an axis from the end that one before it lists from the begin.
    "order-unwritten",
    # Of Cast: whether it makes integers that few runtimes have; and of all operators: whether their data are such.
    "gives-odd-integers",
    "gives-unsigned-bytes",  # Of Cast: whether it gives bytes without a sign.
    "gives-signed-bytes",  # Of Cast and CastLike: whether it gives bytes with one.
    "training-given",  # Of Dropout: whether an input tells if it trains.
    "adds-axes",  # Of Expand: whether it gives more axes than its data of three and more have.
    # Of Expand: whether lengths that are computed may be 1 where its data are longer.
    "may-keep-lengths",
    # Of Expand: whether the lengths are computed, and whether they are those of the last axes of its data alone.
    "lengths-computed",
    "fewer-lengths",
    # Of LayerNormalization: whether its scale or bias has another shape than what it normalises, and fewer axes.
    "weights-spread",
    "weights-of-fewer-axes",
    "by-positions",  # Of RotaryEmbedding: whether it is told which angle each place turns by.
    "number-as-attribute",  # Of TopK: whether an attribute says how many are wanted, as before opset 10.
    "storage-order-written",  # Of MaxPool: whether its places are to be counted column by column, given or not.
    "high-power",  # Of LpPool: whether its power is above 2.
    # Of comparisons: whether there is an infinity among their constants. Of IsInf: whether it means but one, or none.
    "meets-infinity",
    "beyond-half",  # Of comparisons: whether a constant has a number that is larger than half precision has them.
    "one-sided",
    # Of a STFT, which has one-sided and length-given, too: whether it is told how many sides, and the window.
    "complex",
    "sides-written",
    "window-given",
    # Of what puts single elements, which has joins as well: whether it keeps the larger or the smaller.
    "reduction-written",
    "joins-extremes",
    "laid-out-apart",  # Whether some of its inputs are behind a Reshape, others are not, and the first length is open.
    # Of Pow: whether its exponents are of another type. Of EyeLike: whether what it gives is.
    "types-differ",
    "takes-no-overlap",  # Of NonMaxSuppression: whether its limit of overlap is 0, or left out.
    "boxes-by-centre",  # Of NonMaxSuppression: whether its boxes are told by their centres.
    "depth-is-no-number",  # Of OneHot: whether its depth is a list or in floats; as of-floats is of its values.
    "of-floats",
    # Of Cast, Shape and Size: whether integers of 64 bits that they make become a result, or are counted with.
    "ends-as-long",
    "ends-unnamed",
    "slice-for-layer",  # Of Squeeze: whether it takes an axis out of a Slice that a recurrent layer reads.
    "pads-beyond-length",  # Of Pad: whether an axis is padded by more than it has elements.
    "fewer-axes-first",  # Of a Mean and others of many: whether its first input has fewer axes than another.
    "wraps",  # Of Cast: whether integers may not fit those that it gives, so that it drops their high bits.
)
"""Switches that are off unless they are told."""
