"""What an operator may be given at a position: an index below a length, a size, an axis, a count.

One table serves the operators of ONNX, TensorFlow and TensorFlow Lite; where names meet, the positions agree. A
negative position counts from the last input.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from padfix.graph import attributes
from padfix.proof import sparse_answers
from padfix.proof.executors import Array
from padfix.proof.questions import Answer, Question, Use

_TRANSPOSED = (
    *("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput"),
    *("TransposeConv", "Conv3DTranspose"),  # of TensorFlow Lite, whose kernels don't look whether a size fits
)


def _axis(question: Question, given: int | None = None) -> int:
    proto = question.use.node.proto
    if proto is not None:
        return attributes.integer(proto, "axis", 0)
    named = question.use.node.attribute("axis")
    if isinstance(named, int):
        return named
    found = question.other(given) if given is not None else None
    return int(found.reshape(-1)[0]) if found is not None and found.size else 0


def _index(question: Question) -> Array | None:
    shape = question.shape()
    if not shape:
        return None
    return question.below(shape[_axis(question, 2) % len(shape)])


def _index_of_any_axis(question: Question) -> Array | None:
    shape = question.shape()
    return question.below(min(shape)) if shape else None


def _category(question: Question) -> Array | None:
    depth = question.other(1)
    return None if depth is None or not depth.size else question.below(int(depth.reshape(-1)[0]))


def _segment(question: Question) -> Array | None:
    count = question.other(2)
    return None if count is None or not count.size else question.below(int(count.reshape(-1)[0]))


def _ascending(question: Question) -> Array | None:
    return np.arange(question.array.size).reshape(question.array.shape) // 2


def _row(place: int) -> Answer:
    """Return what gives rows of what the operator reads at ``place``."""

    def answer(question: Question) -> Array | None:
        shape = question.shape(place)
        return question.below(shape[0]) if shape else None

    return answer


def _class(question: Question) -> Array | None:
    shape = question.shape()
    return question.below(shape[1]) if shape and len(shape) > 1 else None


def _turned(place: int) -> Answer:
    """Return what gives positions, or the first of a row of them, of tables of angles at ``place``."""

    def answer(question: Question) -> Array | None:
        tokens, table = question.shape(), question.shape(place)
        return question.below(table[0] - tokens[-2] + 1) if table and tokens and len(tokens) > 2 else None

    return answer


def _small(question: Question) -> Array | None:
    return question.filled(1, 4)


def _many(question: Question) -> Array | None:
    """So many numbers to draw from that nobody draws the same again."""
    return np.full(question.array.shape, 1 << 30)


def _image_size(question: Question) -> Array | None:
    return question.filled(3, 12)


def _grid_size(question: Question) -> Array | None:
    """Return the size of an image for each of the given transformations."""
    shape, size = question.shape(), question.filled(3, 6)
    return np.array([shape[0], *size.reshape(-1)[1:]]) if shape else None


def _first_axis(question: Question) -> Array | None:
    return np.arange(question.array.size).reshape(question.array.shape)


def _zero(question: Question) -> Array | None:
    return np.zeros(question.array.shape)


def _one(question: Question) -> Array | None:
    return np.ones(question.array.shape)


def _padding(question: Question) -> Array | None:
    """Return small paddings; none of a list, which is a shape and would hold as many zeros more."""
    shape = question.shape()
    pads = question.filled(0, 1 if shape is None or len(shape) > 1 else 0)
    if pads.ndim == 2 and len(pads) > 2:
        pads[[0, -1]] = 0  # a batch and channels, whose number others rely on
    return pads


def _keys(question: Question) -> Array | None:
    """Return how many keys a step of a decoder sees: those of before, and one of each new token."""
    new, past = question.shape(1) or question.shape(), question.shape(3) or (0, 0, 0, 0)
    return np.full(question.array.shape, new[1] + past[2]) if new and len(new) == 3 else None


def _last_key(question: Question) -> Array | None:
    keys = _keys(question)
    return None if keys is None else keys - 1


def _end(question: Question) -> Array | None:
    shape = question.shape()
    if shape is None or question.array.size != len(shape):
        return question.filled(1, 2)
    return np.array([max(1, length - 1) for length in shape]).reshape(question.array.shape)


def _same_elements(question: Question) -> Array | None:
    """Return a shape that holds as many elements as there are."""
    shape, count = question.shape(), question.array.size
    if shape is None or question.array.ndim != 1 or not count:
        return _small(question)
    kept = shape[: count - 1] if count <= len(shape) else shape
    rest = math.prod(shape[len(kept) :])
    return np.array([*kept, rest, *[1] * (count - len(kept) - 1)])


def _wider_shape(question: Question) -> Array | None:
    shape, count = question.shape(), question.array.size
    if shape is None or count < len(shape):
        return _one(question)
    return np.array([*[2] * (count - len(shape)), *shape])


def _count(question: Question) -> Array | None:
    shape = question.shape()
    return question.filled(1, shape[_axis(question) if question.use.node.proto else -1]) if shape else _one(question)


def _parts(question: Question) -> Array | None:
    """Return the lengths of parts that an axis falls into."""
    shape, count = question.shape(), question.array.size
    if not shape or not count:
        return None
    length = shape[_axis(question, 2) % len(shape)]
    parts = np.full(count, length // count)
    parts[-1] += length - parts.sum()
    return parts


def _steps(question: Question) -> Array | None:
    """Return lengths of sequences: of the first axis in ONNX, whose sequences lie there, of the second elsewhere."""
    shape = question.shape()
    if not shape or len(shape) < 2:
        return None
    proto = question.use.node.proto
    axis = 1 if proto is None else attributes.integer(proto, "time_axis", 0)
    return question.filled(1, max(1, shape[axis]))


def _transposed_size(question: Question) -> Array | None:
    """Return a size of which a convolution makes what this one undoes."""
    data, kernel, count = question.shape(2), question.shape(1), question.array.size
    strides, padding = (question.use.node.attribute(name) for name in ("strides", "padding"))
    if data is None or kernel is None or count not in (len(data), len(data) - 2) or not strides:
        return None
    filters = (*kernel[1:3], kernel[0], kernel[3]) if question.use.node.op_type == "TRANSPOSE_CONV" else kernel
    spatial = [
        length * stride - int(question.random.integers(stride))
        if padding == b"SAME"
        else (length - 1) * stride + taps + int(question.random.integers(stride))
        for length, stride, taps in zip(data[1:-1], strides[1:-1], filters, strict=False)
    ]
    return np.array(spatial if count == len(data) - 2 else [data[0], *spatial, filters[-2]])


def _permutation(question: Question) -> Array | None:
    return np.asarray(question.random.permutation(question.array.size).reshape(question.array.shape))


def _number(question: Question) -> Array | None:
    """Return numbers as text."""
    numbers = question.random.integers(-99, 100, question.array.shape)
    return np.asarray(numbers.astype(str), object)


def _band(place: int) -> Answer:
    """Return what gives the lowest and the highest of the diagonals that the operator reads at ``place``."""

    def answer(question: Question) -> Array | None:
        shape = question.shape(place)
        if question.array.size != 2 or shape is None or len(shape) < 2:
            return _zero(question)
        is_matrix = question.use.node.op_type.startswith("MatrixDiagPart")
        number = min(shape[-2:]) if is_matrix else shape[-2]
        low = -((number - 1) // 2)
        return np.array([low, low + number - 1])

    return answer


def _scattered_shape(question: Question) -> Array | None:
    """Return a shape in which the numbers that are given have room, from the axes on that the indices are for."""
    indices, updates, count = question.shape(), question.shape(1), question.array.size
    if not indices or updates is None or indices[-1] > count:
        return None
    return np.array([*question.filled(3, 6)[: indices[-1]], *updates[len(indices) - 1 :]][:count])


def _places(question: Question) -> Array | None:
    shape, indices = question.other(2), question.array
    if shape is None or not indices.ndim or indices.shape[-1] > shape.size or (shape < 1).any():
        return None
    return np.asarray(question.random.integers(0, shape.reshape(-1)[: indices.shape[-1]], indices.shape))


def _matrix_size(question: Question) -> Array | None:
    """Return how many rows or columns a matrix with given diagonals has at least."""
    shape, ends = question.shape(), question.other(1)
    if not shape or ends is None or not ends.size:
        return None
    if question.use.position == 2:
        return np.full(question.array.shape, shape[-1] - min(0, int(ends.max())))
    return np.full(question.array.shape, shape[-1] + max(0, int(ends.min())))


def _unlike(question: Question) -> Array | None:
    """Return scores of which no two are alike: TensorFlow Lite takes equal ones as its heap happens to hold them."""
    scores = question.array.reshape(-1)
    if not question.use.node.op_type.isupper() or len(np.unique(scores)) == scores.size:
        return None
    ranks = np.argsort(np.argsort(scores, kind="stable"))
    return ((ranks + 1) / (scores.size + 1)).reshape(question.array.shape)


def _boxes(question: Question) -> Array | None:
    """Return boxes with an area each: TensorFlow Lite takes one that has none again and again."""
    corners = question.array.reshape(-1, 2, 2) if question.array.size % 4 == 0 else None
    if corners is None or not question.use.node.op_type.isupper() or (corners[:, 0] != corners[:, 1]).all():
        return None
    return np.stack([corners.min(1), corners.max(1) + 1], 1).reshape(question.array.shape)


def _turn(question: Question) -> Array | None:
    return question.random.uniform(-1, 1, question.array.shape)


def _overlap(question: Question) -> Array | None:
    return question.random.uniform(0, 1, question.array.shape)


def _least_score(question: Question) -> Array | None:
    """Return what most of the scores are above: where all are below it nothing is chosen, and nothing compared."""
    scores = question.other(1)
    if scores is None or not scores.size:
        return None
    return np.full(question.array.shape, np.quantile(scores, 0.25) - 1e-3)


_SUPPRESSIONS = ("", "V2", "V3", "V4", "V5")
"""Versions of NonMaxSuppression in ONNX (without one) and in TensorFlow."""

OF_FLOATS: Mapping[tuple[str, int], Answer] = {
    ("AdjustHue", 1): _turn,
    **{(f"NonMaxSuppression{version}", 3): _overlap for version in _SUPPRESSIONS},
    **{(f"NonMaxSuppression{version}", 4): _least_score for version in _SUPPRESSIONS},
    **dict.fromkeys((("NonMaxSuppressionV4", 0), ("NonMaxSuppressionV5", 0)), _boxes),
    **dict.fromkeys((("NonMaxSuppressionV4", 1), ("NonMaxSuppressionV5", 1)), _unlike),
}
"""What may be given of floats, where these are not just any."""

_SHORT = frozenset({"LSTM", "GRU", "RNN", "LRN"})
"""Operators of ONNX and TensorFlow that are written in capitals."""

_OTHERWISE = {"TopkV2": "TopKV2", "Padv2": "PadV2"}

_DRAWING = ("RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal")
_INDEXED = ("Gather", "GatherV2", "GatherElements", "ResourceGather", "Scatter", "ScatterElements")
_WINDOWS = ("HannWindow", "HammingWindow", "BlackmanWindow")
_RAGGED = ("RaggedGather", "RaggedTensorToVariant", "RaggedTensorToSparse")

ANSWERS: Mapping[tuple[str, int], Answer] = {
    **{(name, 1): _index for name in _INDEXED},
    **{(name, 1): _index_of_any_axis for name in ("GatherND", "GatherNd", "ScatterND", "TensorScatterUpdate")},
    ("OneHot", 0): _category,
    ("OneHot", 1): _small,
    **{(f"UnsortedSegment{name}", 1): _segment for name in ("Sum", "Max", "Min", "Prod")},
    **{(f"UnsortedSegment{name}", 2): _small for name in ("Sum", "Max", "Min", "Prod")},
    **{(f"Segment{name}", 1): _ascending for name in ("Sum", "Max", "Min", "Prod", "Mean")},
    **dict.fromkeys((("CropAndResize", 2), ("RoiAlign", 2)), _row(0)),
    **{("EmbedLayerNormalization", place): _row(table) for place, table in ((0, 2), (1, 4), (8, 3))},
    **{(name, 1): _class for name in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")},
    **{("RotaryEmbedding", place): _turned(table) for place, table in ((1, 2), (3, 1))},
    ("CropAndResize", 3): _image_size,
    **{(f"NonMaxSuppression{version}", 2): _small for version in _SUPPRESSIONS},
    ("AffineGrid", 1): _grid_size,
    ("MaxUnpool", 1): _permutation,
    **{(f"Resize{name}", 1): _image_size for name in ("Area", "Bicubic", "Bilinear", "NearestNeighbor")},
    ("ScaleAndTranslate", 1): _image_size,
    **{(name, 0): _transposed_size for name in _TRANSPOSED},
    ("Reshape", 1): _same_elements,
    **{(name, 1): _wider_shape for name in ("Expand", "BroadcastTo")},
    **{(name, 0): _small for name in ("ConstantOfShape", "Fill", *_DRAWING, *_WINDOWS)},
    ("RandomUniformInt", 1): _zero,
    ("RandomUniformInt", 2): _many,
    **{(name, 1): _small for name in ("Tile", "DFT", "STFT")},
    **{("MelWeightMatrix", place): _image_size for place in (0, 1)},
    **{(name, 1): _count for name in ("TopK", "TopKV2")},
    **{(name, 1): _parts for name in ("Split", "SplitV")},
    **{(name, 1): _zero for name in ("ArgMax", "ArgMin", "ExpandDims", "CumSum", "Cumsum", "Cumprod")},
    **{
        (name, 1): _first_axis
        for name in ("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "ReduceSum", "ReduceMean")
    },
    **{(name, 1): _first_axis for name in ("ReduceMax", "ReduceMin", "ReduceProd", "Squeeze", "Unsqueeze")},
    ("Range", 0): _zero,
    ("Range", 1): _small,
    ("Range", 2): _one,
    **{(name, 1): _zero for name in ("Slice", "StridedSlice")},
    **{(name, 2): _end for name in ("Slice", "StridedSlice")},
    ("Slice", 3): _first_axis,
    **dict.fromkeys((("Slice", 4), ("StridedSlice", 3)), _one),
    **{(name, 1): _padding for name in ("Pad", "PadV2", "MirrorPad")},
    ("ReverseSequence", 1): _steps,
    **{(name, 4): _steps for name in ("LSTM", "GRU", "RNN")},
    **{(f"Matrix{name}{version}", 1): _band(0) for name in ("Diag", "DiagPart") for version in ("V2", "V3")},
    **{(f"MatrixSetDiag{version}", 2): _band(1) for version in ("V2", "V3")},
    **{(f"MatrixDiag{version}", place): _matrix_size for version in ("V2", "V3") for place in (2, 3)},
    **OF_FLOATS,
    **{
        (name, 0): sparse_answers.coordinates(place)
        for name, place in (
            *(("SparseToDense", 1), ("SparseReshape", 1)),
            *((name, 2) for name in ("SparseFillEmptyRows", "SparseReorder", "SparseTensorDenseMatMul")),
        )
    },
    **dict.fromkeys((("SparseToDense", 1), ("SparseReshape", 1)), sparse_answers.dense_shape),
    **{
        (name, 2): sparse_answers.dense_shape
        for name in ("SparseFillEmptyRows", "SparseReorder", "SparseTensorDenseMatMul")
    },
    ("ScatterNd", 0): _places,
    ("ScatterNd", 2): _scattered_shape,
    ("SparseReshape", 2): sparse_answers.same_dense_shape,
    **{(name, place): sparse_answers.splits for name in _RAGGED for place in range(3)},
    ("RaggedGather", -1): sparse_answers.ragged_row,
    **{
        ("RaggedTensorToTensor", place): sparse_answers.partition
        for place in range(sparse_answers.PARTITIONS, sparse_answers.PARTITIONS + 3)
    },
    **{
        (name, place): sparse_answers.stitched
        for name in ("DynamicStitch", "ParallelDynamicStitch")
        for place in range(8)
    },
    ("StringToNumber", 0): _number,
    ("InvertPermutation", 0): _permutation,
    ("GroupQueryAttention", 5): _last_key,
    ("GroupQueryAttention", 6): _keys,
}
"""What an operator may be given at a position."""


def tensorflow_name(operator: str) -> str:
    """Return an operator of TensorFlow Lite, ``BROADCAST_TO``, as TensorFlow writes it; others are what they are."""
    if not operator.isupper() or operator in _SHORT:
        return operator
    name = operator.title().replace("_", "")
    return _OTHERWISE.get(name, name)


def answer_for(use: Use) -> Answer | None:
    """Return what a reader may be given; None where it takes anything."""
    operator, position = tensorflow_name(use.node.op_type), use.position
    return ANSWERS.get((operator, position - len(use.node.inputs))) or ANSWERS.get((operator, position))
