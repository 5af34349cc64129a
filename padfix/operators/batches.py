"""Whether data has the model's own batch, or one that operators made of other axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from onnx import FunctionProto, NodeProto

from padfix.graph.lengths import length_of
from padfix.graph.scopes import Dimension, Scope
from padfix.operators.elementwise import ELEMENTWISE
from padfix.operators.lists import depends_on_data

OF_IMAGES = frozenset(
    {
        *("AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "GlobalAveragePool", "GlobalLpPool"),
        *("GlobalMaxPool", "GridSample", "InstanceNormalization", "LRN", "LayerNormalization", "LpPool", "MaxPool"),
        *("PRelu", "Resize", "Upsample"),
    }
)
"""Operators to which the first axis is a batch of images, or of lists."""

_WEIGHTS: Mapping[str, frozenset[int]] = {
    **dict.fromkeys(("Conv", "ConvTranspose", "Gemm"), frozenset({1, 2})),
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization", "LayerNormalization"), frozenset({1, 2})),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), frozenset({1, 2, 3})),
    "BatchNormalization": frozenset({1, 2, 3, 4}),
    "PRelu": frozenset({1}),
}
"""Places of the inputs of operators that hold the same for all images, which an input of the model may give."""

_MATRIX, _ROWS = 2, 3
"""Axes of a matrix that a product takes for all images, and of the most that ncnn multiplies by one that is fed."""


def is_of_another_batch(scope: Scope, name: str) -> bool | None:
    """Whether the first axis of data is another than that of the model's inputs; None where that is not known.

    What has a length that the first axis of an input has as well is taken for that input's batch, and so is any open
    length where an input leaves its own open: exporters name one batch in many ways. Several times as many are another,
    and so is what is open where no input leaves its own open.
    """
    known = scope.type_of(name)
    if known is None or not known.shape:
        return None
    length = known.shape[0]
    if length == 1:
        return False
    if isinstance(scope.root.container, FunctionProto):
        return None
    batches = _batches(scope)
    if not isinstance(length, int):
        several = [symbol for symbol, count in length_of(length).factors if count > 1]
        if any(symbol in batches for symbol in several) and length not in batches:
            return True
        return all(isinstance(each, int) for each in batches) if batches else None
    return length not in batches


def images_at_once(scope: Scope) -> int | None:
    """Return of how many images the model's inputs and results all are, if that is more than one."""
    known = [scope.root.type_of(name) for name in scope.root.outputs]
    batches = _batches(scope) | {
        each.shape[0] if each.shape else None for each in known if each is not None and each.shape is not None
    }
    batch = batches.pop() if len(batches) == 1 else None
    return batch if isinstance(batch, int) and batch > 1 else None


def open_batches(scope: Scope) -> set[str]:
    """Return by name how many images inputs of the model are of, where it leaves that open."""
    return {each for each in _batches(scope) if isinstance(each, str)}


def is_of_unlike_batches(scope: Scope, name: str) -> bool:
    """Whether data are as many images as an input is of, and the model's inputs and results are not all of as many.

    Of an open number, images come one by one beside an input that holds something for all of them.
    """
    known, root = scope.type_of(name), scope.root
    length = known.shape[0] if known is not None and known.shape else None
    if known is None or not known.shape or length in (0, 1) or isinstance(root.container, FunctionProto):
        return False
    results = {each.shape[0] for each in map(root.type_of, root.outputs) if each is not None and each.shape}
    batches = _batches(scope)
    if isinstance(length, int):
        return length in batches and len(batches | results) > 1
    others = [each for each in inputs_of_images(root) if isinstance(_number_of_images(root, each), int)]
    is_apart = any(isinstance(each, int) for each in results) or not all(_is_for_all(root, each) for each in others)
    return length in batches and bool(others) and is_apart


def _is_for_all(scope: Scope, name: str) -> bool:
    """Whether a converter guesses no batch of an input: a list, one image, or joined with others."""
    known = scope.type_of(name)
    if known is None or not known.shape or known.rank == 1 or known.shape[0] == 1:
        return known is not None
    return all(node.op_type in ELEMENTWISE for node in scope.consumers(name))


def inputs_of_images(scope: Scope) -> list[str]:
    """Return the inputs of the model that hold something for each image; all of them where none seems to.

    The others are read as weights, or joined with what has more axes, be it behind operators on single elements.
    """
    root = scope.root
    fed = [name for name in root.inputs if not root.is_initializer(name)]  # converters take a default for a constant
    return [name for name in fed if not _is_weight(root, name)] or fed


def depends_on_images(scope: Scope, name: str) -> bool:
    """Whether a tensor is, or is computed from, more than constants, lengths and inputs that are no images."""
    if not depends_on_data(scope, name):
        return False
    given, maker = name, scope.root.own_producer(name)
    while maker is not None and maker.op_type in ELEMENTWISE and len(maker.input) == 1:
        given = maker.input[0]
        maker = scope.root.own_producer(given)
    return given not in scope.root.inputs or given in inputs_of_images(scope)


def _is_weight(scope: Scope, name: str) -> bool:
    readers = scope.consumers(name)
    return bool(readers) and not scope.is_output(name) and all(_takes_weight(scope, node, name) for node in readers)


def _takes_weight(scope: Scope, node: NodeProto, name: str) -> bool:
    """Whether all places at which a node reads a value are of weights, or its result is only read as such."""
    known, others = scope.type_of(name), [each for each in node.input if each and each != name]
    if known is None or known.rank is None or not others:
        return node.op_type in ELEMENTWISE and not others and _is_weight(scope, node.output[0])
    ranks = [each.rank if (each := scope.type_of(other)) is not None else None for other in others]
    if node.op_type in ELEMENTWISE:
        return any(rank is not None and rank > known.rank for rank in ranks) and any(
            depends_on_data(scope, other) for other in others
        )
    if node.op_type == "MatMul":
        is_by_rows = all(rank is not None and rank <= _ROWS for rank in ranks)
        return is_by_rows and name == node.input[1] and known.rank <= _MATRIX
    places = {place for place, each in enumerate(node.input) if each == name}
    return places <= _WEIGHTS.get(node.op_type, frozenset())


def _number_of_images(scope: Scope, name: str) -> Dimension:
    known = scope.type_of(name) if scope.constant(name) is None else None
    return known.shape[0] if known is not None and known.shape else None


def numbers_images(scope: Scope, node: NodeProto) -> bool:
    """Whether a Reshape or Expand says of several images how many there are, so that it fits no other number."""
    batch = images_at_once(scope)
    shape = scope.constant(node.input[1]) if batch is not None and len(node.input) > 1 else None
    if batch is None or shape is None or not shape.size:
        return False
    told = [int(each) for each in shape.reshape(-1)]
    if node.op_type == "Expand":
        known = scope.type_of(node.output[0])
        return told[0] == batch and known is not None and known.rank == len(told)
    given = scope.type_of(node.input[0])
    if given is not None and given.lengths and lies_behind(batch, given.lengths):
        return names_moved_images(batch, given.lengths, told)
    for place, length in enumerate((given.shape or ()) if given is not None else ()):
        if place and place < len(told) and told[place] == 0 and isinstance(length, int):
            told[place] = length
    if told[0] <= 0:
        return False
    return any(each <= 0 for each in told) or math.prod(told) % batch == 0


def lies_behind(batch: int, shape: Sequence[int]) -> bool:
    """Whether other lengths than the first may be that of the batch, and the first is not."""
    return batch in shape and shape[0] != batch


def names_moved_images(batch: int, shape: Sequence[int], told: Sequence[int]) -> bool:
    """Whether a shape says how many images there are, of data where they lie along any axis that is as long."""
    axes = [axis for axis, length in enumerate(shape) if length == batch]
    return not any(_fits_one_image(axis, shape, told) for axis in axes)


def _fits_one_image(axis: int, shape: Sequence[int], told: Sequence[int]) -> bool:
    """Whether a Reshape of one image gives the lengths of several, but for the one that holds the axis of images."""
    several = _reshaped(shape, told)
    one = _reshaped([1 if place == axis else length for place, length in enumerate(shape)], told)
    if several is None or one is None:
        return False
    changed = [place for place, pair in enumerate(zip(several, one, strict=True)) if pair[0] != pair[1]]
    before, within = math.prod(shape[:axis]), [math.prod(several[: place + 1]) for place in changed]
    return (
        len(changed) == 1
        and within[0] % (before * shape[axis]) == 0
        and before % (within[0] // several[changed[0]]) == 0
    )


def _reshaped(shape: Sequence[int], told: Sequence[int]) -> list[int] | None:
    """Return the lengths that a Reshape gives; None where it can't."""
    if any(each == 0 and place >= len(shape) for place, each in enumerate(told)):
        return None
    lengths, count = [each or shape[place] for place, each in enumerate(told)], math.prod(shape)
    rest = math.prod(each for each in lengths if each != -1)
    if -1 in lengths and rest and count % rest == 0:
        return [count // rest if each == -1 else each for each in lengths]
    return lengths if rest == count and -1 not in lengths else None


def reduces_images(scope: Scope, axes: Sequence[int], lengths: Sequence[Dimension]) -> bool:
    """Whether what works along these axes, all of them where none is listed, takes several images together.

    An open number of them counts where all results have as many.
    """
    if not lengths or not takes_first_axis(axes, len(lengths)):
        return False
    known = [scope.root.type_of(name) for name in scope.root.outputs]
    are_open = all(each is not None and each.shape and not isinstance(each.shape[0], int) for each in known)
    return images_at_once(scope) is not None or (are_open and lengths[0] in open_batches(scope))


def takes_first_axis(axes: Sequence[int], rank: int) -> bool:
    """Whether the first axis is among these, all of them where none is listed."""
    return not axes or any(axis in (0, -rank) for axis in axes)


_AXES_OF_IMAGES = 4


def gives_each_image_its_own(scope: Scope, node: NodeProto, within: int = 0) -> bool:
    """Whether a constant that a node joins with data, be it computed, has other numbers for each of several images.

    ``within`` are the axes that no batch is among: those of a product's matrices. A batch of volumes is one whatever
    the inputs' is.
    """
    gives = scope.type_of(node.output[0])
    if gives is None or gives.rank is None or gives.rank <= within:
        return False
    told = [scope.type_of(name) for name in node.input if name and not depends_on_data(scope, name)]
    first = {each.shape[0] for each in told if each is not None and each.shape and each.rank == gives.rank}
    batch = images_at_once(scope)
    return (batch is not None and batch in first) or (gives.rank > _AXES_OF_IMAGES and bool(first - {1}))


def _batches(scope: Scope) -> set[Dimension]:
    """Return how long the first axes of the inputs of the model, or of the function, are, but for weights."""
    return {_number_of_images(scope.root, name) for name in inputs_of_images(scope)}
