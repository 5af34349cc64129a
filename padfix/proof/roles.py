"""Data that suits its readers: whether an integer is an index, a size, an axis or a count, the operators behind it say.

What an input is for follows from the operator that reads it; which values that operator takes follows from what else it
reads, looked up in the original on the data made so far. Between the input and its reader may lie casts, arithmetic and
what takes vectors apart and puts them together: how the reader's values follow from the input's is found by feeding
numbers and looking. One table serves ONNX's and TensorFlow's operators; where names meet, the positions agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from padfix.graph import attributes
from padfix.process import deadline
from padfix.proof.constants import Constants
from padfix.proof.executors import Array, ExecutionFailed, Executor, TensorSpec, numpy_type
from padfix.proof.graph_view import NodeView
from padfix.proof.probes import Probe
from padfix.proof.sides import side_of

VARIANTS = 8
"""Sizes that are tried for a transposed convolution, whose strides a graph does not always show."""

_MARKS = ((2, 1), (3, 5), (7, 2), (11, 3))
"""First number and step of what is fed to see how the reader's values follow from an input's."""

_MOST_PLACES = 16
"""Elements of an input, and of what is read, that are held against each other one by one."""

_SECONDS = 10.0
"""How long a look at what an operator reads may take."""

_MOST_STEPS = 64
"""Nodes behind an input that are looked at."""

_KEEPS = frozenset({"Cast", "Identity", "Squeeze", "Unsqueeze", "ExpandDims", "Reshape", "Flatten", "StopGradient", "Pad", "PadV2"})
_MIXES = frozenset(
    {"Add", "AddV2", "Sub", "Mul", "Div", "FloorDiv", "FloorMod", "Mod", "Max", "Maximum", "Min", "Minimum", "Clip"}
    | {"Concat", "ConcatV2", "Pack", "Floor", "Ceil", "Round", "Relu", "Slice", "StridedSlice", "Abs", "Where"}
)
_TRANSPOSED = ("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput")


@dataclass(frozen=True)
class Use:
    """One reader of an input.

    Attributes:
        node: The operator.
        position: Where among its inputs.
    """

    node: NodeView
    position: int

    @property
    def name(self) -> str:
        """The tensor that it reads."""
        return self.node.inputs[self.position]


@dataclass
class _Question:
    """What one reader may be given: the array that it would read so far, and what else it reads."""

    use: Use
    array: Array
    other: Callable[[int], Array | None]
    variant: int
    random: np.random.Generator

    def shape(self, position: int = 0) -> tuple[int, ...] | None:
        found = self.other(position)
        return None if found is None else found.shape

    def below(self, limit: int) -> Array:
        """Return indices below a limit."""
        return np.asarray(self.random.integers(0, max(1, limit), self.array.shape))

    def filled(self, low: int, high: int) -> Array:
        return np.asarray(self.random.integers(low, high + 1, self.array.shape))


_Answer = Callable[[_Question], Array | None]


def _axis(question: _Question, given: int | None = None) -> int:
    proto = question.use.node.proto
    if proto is not None:
        return attributes.integer(proto, "axis", 0)
    found = question.other(given) if given is not None else None
    return int(found.reshape(-1)[0]) if found is not None and found.size else 0


def _index(question: _Question) -> Array | None:
    shape = question.shape()
    if not shape:
        return None
    return question.below(shape[_axis(question, 2) % len(shape)])


def _index_of_any_axis(question: _Question) -> Array | None:
    shape = question.shape()
    return question.below(min(shape)) if shape else None


def _category(question: _Question) -> Array | None:
    depth = question.other(1)
    return None if depth is None or not depth.size else question.below(int(depth.reshape(-1)[0]))


def _segment(question: _Question) -> Array | None:
    count = question.other(2)
    return None if count is None or not count.size else question.below(int(count.reshape(-1)[0]))


def _ascending(question: _Question) -> Array | None:
    return np.arange(question.array.size).reshape(question.array.shape) // 2


def _owner(question: _Question) -> Array | None:
    shape = question.shape()
    return question.below(shape[0]) if shape else None


def _small(question: _Question) -> Array | None:
    return question.filled(1, 4)


def _image_size(question: _Question) -> Array | None:
    return question.filled(3, 12)


def _first_axis(question: _Question) -> Array | None:
    return np.arange(question.array.size).reshape(question.array.shape)


def _zero(question: _Question) -> Array | None:
    return np.zeros(question.array.shape)


def _one(question: _Question) -> Array | None:
    return np.ones(question.array.shape)


def _padding(question: _Question) -> Array | None:
    """Return small paddings; none of a list, which is a shape and would hold as many zeros more."""
    shape = question.shape()
    return question.filled(0, 1 if shape is None or len(shape) > 1 else 0)


def _end(question: _Question) -> Array | None:
    shape = question.shape()
    if shape is None or question.array.size != len(shape):
        return question.filled(1, 2)
    return np.array([max(1, length - 1) for length in shape]).reshape(question.array.shape)


def _same_elements(question: _Question) -> Array | None:
    """Return a shape that holds as many elements as there are."""
    shape, count = question.shape(), question.array.size
    if shape is None or question.array.ndim != 1 or not count:
        return _small(question)
    kept = shape[: count - 1] if count <= len(shape) else shape
    rest = math.prod(shape[len(kept) :])
    return np.array([*kept, rest, *[1] * (count - len(kept) - 1)])


def _wider_shape(question: _Question) -> Array | None:
    shape, count = question.shape(), question.array.size
    if shape is None or count < len(shape):
        return _one(question)
    return np.array([*[2] * (count - len(shape)), *shape])


def _count(question: _Question) -> Array | None:
    shape = question.shape()
    return question.filled(1, shape[_axis(question) if question.use.node.proto else -1]) if shape else _one(question)


def _parts(question: _Question) -> Array | None:
    """Return the lengths of parts that an axis falls into."""
    shape, count = question.shape(), question.array.size
    if not shape or not count:
        return None
    length = shape[_axis(question, 2) % len(shape)]
    parts = np.full(count, length // count)
    parts[-1] += length - parts.sum()
    return parts


def _steps(question: _Question) -> Array | None:
    """Return lengths of sequences: of the first axis in ONNX, whose sequences lie there, of the second elsewhere."""
    shape = question.shape()
    if not shape or len(shape) < 2:
        return None
    proto = question.use.node.proto
    axis = 1 if proto is None else attributes.integer(proto, "time_axis", 0)
    return question.filled(1, max(1, shape[axis]))


def _transposed_size(question: _Question) -> Array | None:
    data, kernel, count = question.shape(2), question.shape(1), question.array.size
    if data is None or kernel is None or count not in (len(data), len(data) - 2):
        return None
    stride = (2, 1, 3, 4)[question.variant % 4]
    spatial = [
        length * stride if question.variant < 4 else (length - 1) * stride + taps
        for length, taps in zip(data[1:-1], kernel, strict=False)
    ]
    return np.array(spatial if count == len(data) - 2 else [data[0], *spatial, kernel[-2]])


def _matrix_size(question: _Question) -> Array | None:
    """Return how many rows or columns a matrix with given diagonals has at least."""
    shape, ends = question.shape(), question.other(1)
    if not shape or ends is None or not ends.size:
        return None
    if question.use.position == 2:
        return np.full(question.array.shape, shape[-1] - min(0, int(ends.max())))
    return np.full(question.array.shape, shape[-1] + max(0, int(ends.min())))


def _turn(question: _Question) -> Array | None:
    return question.random.uniform(-1, 1, question.array.shape)


ANSWERS: Mapping[tuple[str, int], _Answer] = {
    **{(name, 1): _index for name in ("Gather", "GatherV2", "GatherElements", "ResourceGather", "ScatterElements")},
    **{(name, 1): _index_of_any_axis for name in ("GatherND", "GatherNd", "ScatterND", "TensorScatterUpdate")},
    ("OneHot", 0): _category,
    ("OneHot", 1): _small,
    **{(f"UnsortedSegment{name}", 1): _segment for name in ("Sum", "Max", "Min", "Prod")},
    **{(f"UnsortedSegment{name}", 2): _small for name in ("Sum", "Max", "Min", "Prod")},
    **{(f"Segment{name}", 1): _ascending for name in ("Sum", "Max", "Min", "Prod", "Mean")},
    ("CropAndResize", 2): _owner,
    ("RoiAlign", 2): _owner,
    ("CropAndResize", 3): _image_size,
    **{(f"Resize{name}", 1): _image_size for name in ("Area", "Bicubic", "Bilinear", "NearestNeighbor")},
    ("ScaleAndTranslate", 1): _image_size,
    **{(name, 0): _transposed_size for name in _TRANSPOSED},
    ("Reshape", 1): _same_elements,
    **{(name, 1): _wider_shape for name in ("Expand", "BroadcastTo")},
    **{(name, 0): _small for name in ("ConstantOfShape", "Fill", "RandomUniform", "RandomStandardNormal")},
    ("Tile", 1): _small,
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
    **{(f"Matrix{name}{version}", 1): _zero for name in ("Diag", "DiagPart") for version in ("V2", "V3")},
    **{(f"MatrixSetDiag{version}", 2): _zero for version in ("V2", "V3")},
    **{(f"MatrixDiag{version}", place): _matrix_size for version in ("V2", "V3") for place in (2, 3)},
    ("AdjustHue", 1): _turn,
}
"""What an operator may be given at a position."""


class Roles:
    """What the inputs of a model are for.

    Args:
        executors: Run the original and what was made of it; the first that can be looked into is.
        inputs: The inputs; those that hold no whole numbers, or that no operator of :data:`ANSWERS` reads, are data.
    """

    def __init__(self, executors: Sequence[Executor], inputs: Sequence[TensorSpec]) -> None:
        self._uses: dict[str, list[Use]] = {}
        asked = [spec for spec in inputs if _may_steer(spec)]
        side = next(filter(None, map(side_of, executors)), None) if asked else None
        if side is None:
            return
        self._side = side
        self._constants = Constants(side.model) if side.model is not None else None
        found = {spec.name: uses for spec in asked if (uses := self._readers(spec))}
        # What nothing lies before comes first: others follow from it.
        self._uses = dict(sorted(found.items(), key=lambda each: any(use.name != each[0] for use in each[1])))

    def suited(self, probe: Probe, seed: int) -> Iterator[Probe]:
        """Yield the probe with values that their readers take; nothing where every input is data.

        Args:
            probe: Data of any kind.
            seed: Chooses the values.
        """
        if not self._uses:
            return
        tried = [use.node.op_type for uses in self._uses.values() for use in uses]
        for variant in range(VARIANTS if any(name in _TRANSPOSED for name in tried) else 1):
            arrays = dict(probe.arrays)
            random = np.random.default_rng([seed, variant])
            for name, uses in self._uses.items():
                found = [each for use in uses if (each := self._values(use, name, arrays, variant, random)) is not None]
                if found:
                    # What one reader takes at most, the others do as well.
                    values = np.asarray(np.minimum.reduce(found))
                    arrays[name] = np.asarray(values.reshape(arrays[name].shape), arrays[name].dtype)
            yield Probe(probe.name, arrays)

    def _values(
        self, use: Use, name: str, arrays: Mapping[str, Array], variant: int, random: np.random.Generator
    ) -> Array | None:
        """Return the input called ``name`` as one reader takes it; None where that can't be told."""

        def other(position: int) -> Array | None:
            return self._tensor(use.node, position, arrays)

        read = other(use.position)
        if read is None:
            return None
        answer = ANSWERS[use.node.op_type, use.position](_Question(use, read, other, variant, random))
        if answer is None or answer.size != read.size:
            return None
        if use.name == name:
            return answer.reshape(arrays[name].shape)
        solved = self._solved(use, name, arrays, answer.ravel().astype(np.float64))
        if solved is None and answer.size:  # the smallest that the reader takes: a size is above 0, an index below it
            return np.full(arrays[name].shape, max(1, answer.min()) if answer.min() >= 0 else 0)
        return solved

    def _solved(self, use: Use, name: str, arrays: Mapping[str, Array], wanted: Array) -> Array | None:
        """Return the input that its reader reads as ``wanted``, where every value follows from one by a line."""
        array = arrays[name]
        fed, read = [], []
        for base, step in _MARKS:
            # A short period, because a line is the same wherever it is.
            marks = base + step * (np.arange(array.size) % 8)
            there = self._tensor(
                use.node, use.position, {**arrays, name: marks.reshape(array.shape).astype(array.dtype)}
            )
            if there is None or there.size != wanted.size:
                return None
            fed.append(marks.astype(np.float64))
            read.append(there.ravel().astype(np.float64))
        if array.size == wanted.size and array.size > _MOST_PLACES:
            return _along_lines(fed, read, wanted).reshape(array.shape)
        found = array.ravel().astype(np.float64)
        for place in range(min(array.size, _MOST_PLACES)):
            for position in range(min(wanted.size, _MOST_PLACES)):
                line = _line([marks[place] for marks in fed], [values[position] for values in read])
                if line is not None:
                    found[place] = np.floor((wanted[position] - line[1]) / line[0])
                    break
        return found.reshape(array.shape)

    def _tensor(self, node: NodeView, position: int, arrays: Mapping[str, Array]) -> Array | None:
        if position >= len(node.inputs) or not (name := node.inputs[position]):
            return None
        if name in arrays:
            return arrays[name]
        known = self._constants.find(name) if self._constants is not None else None
        if known is not None:
            return known
        try:
            with deadline.each_run(_SECONDS):
                return self._side.values(arrays, [name]).get(name)
        except ExecutionFailed:
            return None

    def _readers(self, spec: TensorSpec) -> list[Use]:
        is_whole = numpy_type(spec.elem_type).kind in "iu"
        found: list[Use] = []
        rest, seen = [(spec.name, is_whole)], {spec.name}
        while rest and len(seen) < _MOST_STEPS:
            name, integral = rest.pop(0)
            for node in self._side.view.readers.get(name, ()):
                positions = [position for position, each in enumerate(node.inputs) if each == name]
                found += [
                    Use(node, position)
                    for position in positions
                    if (node.op_type, position) in ANSWERS and (integral or node.op_type == "AdjustHue")
                ]
                keeps = node.op_type in _KEEPS and positions[0] == 0
                if not keeps and not (node.op_type in _MIXES and integral):
                    continue
                for output in node.outputs:
                    if output and output not in seen:
                        seen.add(output)
                        rest.append((output, integral or node.op_type == "Cast"))
        return found


def _line(fed: Sequence[float], read: Sequence[float]) -> tuple[float, float] | None:
    """Return slope and rest of the line through all pairs; None where there is none, or a level one."""
    slope = (read[1] - read[0]) / (fed[1] - fed[0])
    rest = read[0] - slope * fed[0]
    if slope == 0 or any(abs(slope * x + rest - y) > 1e-6 for x, y in zip(fed, read, strict=True)):
        return None
    return slope, rest


def _along_lines(fed: Sequence[Array], read: Sequence[Array], wanted: Array) -> Array:
    """Return what is read as ``wanted`` where element follows from element, all along the line of the first."""
    line = _line([marks[0] for marks in fed], [values[0] for values in read])
    return np.asarray(wanted if line is None else np.floor((wanted - line[1]) / line[0]))


def _may_steer(spec: TensorSpec) -> bool:
    """Whether an input may be more than data: wide integers, and floats of few axes, which may be tokens."""
    dtype = numpy_type(spec.elem_type)
    return (dtype.kind in "iu" and dtype.itemsize > 1) or (dtype.kind == "f" and len(spec.shape or ()) < 3)
