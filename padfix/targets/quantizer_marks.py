"""The switches of facts about what makes bytes of numbers and numbers of bytes, off unless they are told."""

QUANTIZER_MARKS = (
    "lists-scales",  # Of QuantizeLinear and DequantizeLinear: whether there are several scales.
    # Of the same, and of LayerNormalization: whether one of scale and zero point, or scale and bias, alone is constant.
    "one-constant-alone",
    # Of the same: whether scales are for an axis of open length, or one behind the channels of data with open lengths.
    "scales-by-open-axis",
    # Of Clip: whether no byte lies beyond one of its bounds, and some lie beyond the other. Of QuantizeLinear: whether
    # a Relu or Clip before it cuts off more than it does itself of what is the sum of bytes and a bias.
    "cuts-one-end-of-bytes",
    # Of QuantizeLinear and DequantizeLinear: whether anything but them and what moves bytes makes or reads theirs.
    "bytes-apart",
    "of-quantizer",  # Of what moves bytes: whether a QuantizeLinear in the model makes them.
    "behind-cut-sum",
    "pads-line-of-bytes",  # Of Pad and CenterCropPad: whether they pad one axis alone, of one dequantized element.
    "one-channel-for-bytes",  # Of DepthToSpace: whether it gives one channel, and QuantizeLinear makes bytes of it.
    "leaves-floats-over",  # Of QuantizeLinear: whether it is of a row of floats whose number is no multiple of 128.
    # Of DequantizeLinear: whether no quantizer gives its bytes, be they computed or the caller's that others read too;
    # whether another one takes the same bytes in other steps, where this one's steps are not 1.
    "of-plain-bytes",
    "in-other-steps",
    # Of DequantizeLinear: whether the bytes are what a QuantizeLinear gives, and whether they are made of floats that
    # something else than a convolution computes, and read by what computes with floats, and is no layer of images.
    "undoes-quantizer",
    "among-floats",
    "volume-among-floats",  # Of DequantizeLinear: whether its bytes have five axes and no layer of bytes makes them.
    # Of DequantizeLinear of constants: whether something else reads them than what makes bytes of bytes, whether their
    # zero point is not in the middle, and whether there is one scale for a bias and several for the weights.
    "taken-for-floats",
    "off-centre",
    "scales-differ",
    # Of the same and of QLinearConv: whether weights have no sign and a zero point of 0, and the data another one.
    "unsigned-from-zero",
    # Of QuantizeLinear and DequantizeLinear, which have of-input and as-result as well: whether blocks have scales.
    "blocked",
)
