"""Where the order counts in which a runtime's convolutions and pools keep data in memory: channels in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet

from onnx import NodeProto, TensorProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope, normal_domain
from padfix.operators.batches import OF_IMAGES, images_at_once, is_of_another_batch
from padfix.operators.elementwise import ELEMENTWISE
from padfix.operators.table import PADDED, TRANSPOSED, Key

CHANNELS = 1
"""The axis of channels."""

AXES_OF_IMAGES = 4
"""Those of images, with the batch and the channels."""

_LAST_EXCHANGED = [0, 2, 1]
"""The permutation that exchanges channels and places of what is 1-D."""

_CONVOLUTION = frozenset({("", "Conv")})

_CONVOLUTIONS = _CONVOLUTION | TRANSPOSED

_SOFTMAX = frozenset({("", "LogSoftmax"), ("", "Softmax")})

_WITHIN_ACTIVATIONS = frozenset(("Add", "BatchNormalization", "Div", "Mul", "Softplus"))

_JOINING = frozenset({("", "Concat")})

_DEQUANTIZED = frozenset({("", "DequantizeLinear")})

_JOINED_OR_DEQUANTIZED = _JOINING | _DEQUANTIZED

_SCALING = frozenset(("Add", "BatchNormalization", "Identity", "Mul", "Relu"))

_MOVING = frozenset(
    ("AveragePool", "Identity", "MaxPool", "Mul", "Neg", "Pad", "Relu", "Reshape", "Resize", "Slice", "Transpose")
)

_VOLUMES_WEIGHTS = 5
"""Axes of the weights of a convolution of three axes."""

_NEAR = 64  # tensors that are looked at before data counts as far from any window

_REORDERING = frozenset(("Flatten", "Gather", "Gemm", "LayerNormalization", "MatMul", "Shape", "Split", "Transpose"))

_ORDERED = _REORDERING | frozenset(
    {
        *("Cast", "Clip", "DepthToSpace", "Dropout", "GlobalAveragePool", "GlobalMaxPool", "Identity", "LRN"),
        *("LogSoftmax", "Pow", "Reshape", "Softmax", "SpaceToDepth", "Squeeze", "Unsqueeze", "Where"),
        *("ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"),
    }
)
"""Operators behind which OpenCV 5 has the channels in their own order again."""

_OF_IMAGES = frozenset({("", "BatchNormalization"), ("", "GlobalAveragePool"), ("", "GlobalMaxPool")})

_LAYERS = (
    PADDED
    | TRANSPOSED
    | _OF_IMAGES
    | {("", each) for each in ("GlobalLpPool", "GridSample", "InstanceNormalization", "Resize", "RoiAlign", "Upsample")}
)
"""Layers that MNN keeps images for with their channels in blocks."""

_SKIPPED = frozenset(("Dropout", "Identity"))

_FUSED = frozenset(("Add", "BatchNormalization", "Div", "Dropout", "Identity", "Mul", "Sub"))


def copies_channels(scope: Scope, node: NodeProto) -> bool:
    """Whether a Reshape takes over the number of channels of what comes from a window, but not the lengths behind it.

    Images whose rows are as many as before are as they were.
    """
    shape = scope.constant(node.input[1]) if len(node.input) > 1 else None
    if shape is None or shape.ndim != 1 or len(shape) < CHANNELS + 2 or attributes.integer(node, "allowzero", 0):
        return False  # what is computed are lengths
    known = scope.type_of(node.input[0])
    is_alike = shape[CHANNELS + 1] == 0 and known is not None and known.rank == AXES_OF_IMAGES
    return bool(shape[CHANNELS] == 0) and not is_alike and is_in_blocks(scope, node.input[0])


def copies_behind_reshape(scope: Scope, node: NodeProto) -> bool:
    """Whether a Reshape copies a length that the data may not have before the Reshape from which it comes alone."""
    shape = scope.constant(node.input[1]) if len(node.input) > 1 else None
    before = scope.producer(node.input[0])
    if shape is None or shape.ndim != 1 or attributes.integer(node, "allowzero", 0) or before is None:
        return False
    is_joined = before.op_type == "Reshape" and len(scope.consumers(node.input[0])) == 1
    if normal_domain(before.domain) or not is_joined or scope.is_output(node.input[0]):
        return False
    lengths = [_lengths(scope, name) for name in (before.input[0], node.input[0])]
    return any(
        length == 0 and not _is_alike(*(each[axis] if axis < len(each) else None for each in lengths))
        for axis, length in enumerate(shape.tolist())
    )


def _lengths(scope: Scope, name: str) -> tuple[Dimension, ...]:
    known = scope.type_of(name)
    return () if known is None or known.shape is None else tuple(known.shape)


def _is_alike(first: Dimension, second: Dimension) -> bool:
    return first is not None and first == second


def number_of_channels(scope: Scope, name: str) -> int | None:
    """Return how many channels data has, None where that is not known, or it has none."""
    known = scope.type_of(name)
    length = known.shape[CHANNELS] if known is not None and known.shape and len(known.shape) > CHANNELS else None
    return length if isinstance(length, int) else None


def is_behind_window(scope: Scope, name: str) -> bool:
    """Whether data may be in the order in which a window gives it, as what lies between may keep it."""
    return _comes_from(scope, name, PADDED, lambda node: node.op_type not in _REORDERING)


def is_in_blocks(scope: Scope, name: str) -> bool:
    """Whether OpenCV 5 keeps data with its channels in blocks, as its convolutions and pools have it."""
    return _comes_from(scope, name, PADDED | TRANSPOSED, lambda node: node.op_type not in _ORDERED)


def is_behind_images(scope: Scope, name: str) -> bool:
    """Whether a layer that works on images stands anywhere before data."""
    return _comes_from(scope, name, PADDED | TRANSPOSED | _OF_IMAGES, lambda node: True)


def is_behind_layer(scope: Scope, name: str) -> bool:
    """Whether a layer that MNN keeps images for in blocks of channels stands anywhere before data."""
    return _comes_from(scope, name, _LAYERS | {("", "LRN")}, lambda node: True)


_PAIR = 2

_MEETING = frozenset(("Add", "Max", "Min", "Mul", "Sub", "Sum"))

_PASSED_IN_ITS_ORDER = frozenset(("Identity", "Relu"))

_IN_BLOCKS = frozenset({("", op_type) for op_type in ("BatchNormalization", "GlobalAveragePool", "GlobalMaxPool")})
"""Layers that MNN runs on channels in blocks without laying them out so: as it takes them to be already."""


def puts_constant_before_layer(scope: Scope, node: NodeProto) -> bool:
    """Whether a constant of all axes stands before a layer's data, in an order that goes on to where it matters.

    MNN takes the order of the first input for that of the result. That matters where data of no layer, which have the
    order of the constant, and then a Relu meet it, and in a norm or a pool of whole images behind it.
    """
    if len(node.input) != _PAIR:
        return False
    first, known = scope.constant(node.input[0]), scope.type_of(node.output[0])
    if first is None or known is None or first.size == 1 or first.ndim != known.rank:
        return False
    if not is_behind_layer(scope, node.input[1]):
        return False
    if _leads_to(
        scope, node.output[0], _IN_BLOCKS, lambda each: (normal_domain(each.domain), each.op_type) not in _CONVOLUTIONS
    ):
        return True
    return any(
        each.op_type in _MEETING
        and any(reader.op_type in _PASSED_IN_ITS_ORDER for reader in scope.consumers(each.output[0]))
        and any(
            name != node.output[0] and scope.constant(name) is None and not is_behind_layer(scope, name)
            for name in each.input
        )
        for each in scope.consumers(node.output[0])
    )


def joins_images(scope: Scope, node: NodeProto) -> bool:
    """Whether a Concat joins along the batch what a layer works on image by image, or list by list.

    Also before the layer where the model is of several images.
    """
    known = scope.type_of(node.output[0])
    axis = attributes.integer(node, "axis", 1) or 0
    is_first = axis == 0 or (known is not None and known.rank == -axis)
    layers = {("", op_type) for op_type in OF_IMAGES}
    if is_first and images_at_once(scope) is not None and _leads_to(scope, node.output[0], layers):
        return True
    return is_first and any(
        _comes_from(scope, name, layers, lambda node: True) and not is_of_another_batch(scope, name)
        for name in node.input
    )


def _leads_to(
    scope: Scope, name: str, targets: AbstractSet[Key], passes: Callable[[NodeProto], bool] = lambda node: True
) -> bool:
    """Whether a node of some types reads data, or anything that is made of it by nodes that pass it on."""
    seen, left = set[str](), [name]
    while left and len(seen) < _NEAR:
        each = left.pop()
        readers = scope.consumers(each) if each not in seen else []
        if any((normal_domain(node.domain), node.op_type) in targets for node in readers):
            return True
        seen.add(each)
        left += [gives for node in readers if passes(node) for gives in node.output if gives]
    return False


def is_before_images(scope: Scope, name: str) -> bool:
    """Whether a layer that works on images reads data, or what is made of it element by element, padded or turned."""
    seen, left = set[str](), [name]
    while left and len(seen) < _NEAR:
        each = left.pop()
        for node in scope.consumers(each) if each not in seen else []:
            key = (normal_domain(node.domain), node.op_type)
            if key in PADDED | TRANSPOSED | _OF_IMAGES and node.input[0] == each:
                return True
            passes = key[1] in ELEMENTWISE | {"Pad", "Transpose"}
            if passes and all(other == each or scope.constant(other) is not None for other in node.input if other):
                left += node.output[:1]
        seen.add(each)
    return False


def is_untold_volume(scope: Scope, name: str) -> bool:
    """Whether data are an input of five axes of the model, of which no layer of images tells which is the batch."""
    if scope.parent is not None or name not in scope.inputs or scope.is_fixed(name):
        return False
    known = scope.type_of(name)
    return known is not None and known.rank == AXES_OF_IMAGES + 1 and not is_before_images(scope, name)


def is_behind_convolution(scope: Scope, name: str) -> bool:
    """Whether data is what a convolution gives, but for factors and terms, which runtimes make part of its weights."""
    return _comes_from(scope, name, _CONVOLUTION, lambda node: node.op_type in _FUSED)


def is_behind_softmax(scope: Scope, name: str) -> bool:
    """Whether data is what a Softmax gives, negated, raised or as it is."""
    return _comes_from(scope, name, _SOFTMAX, lambda node: node.op_type in ("Exp", "Identity", "Neg"))


def is_behind_volume(scope: Scope, name: str) -> bool:
    """Whether data is what a convolution of three axes gives, normalised or not."""
    passing = ("BatchNormalization", "Identity")
    sources = _sources(scope, name, _CONVOLUTION, lambda node: node.op_type in passing)
    return any(_weights(scope, node) is not None for node in sources)


def is_computed_of_windows(scope: Scope, name: str) -> bool:
    """Whether data is what a convolution or pool gives, or computed of that element by element."""
    passing = ELEMENTWISE | {"BatchNormalization", "PRelu"}
    return any(_sources(scope, name, frozenset(PADDED) | TRANSPOSED, lambda node: node.op_type in passing))


def is_behind_depthwise_volume(scope: Scope, name: str) -> bool:
    """Whether data is what a convolution of three axes gives with a filter for each channel.

    Between may lie the operators that runtimes know activations by, but no Identity.
    """
    sources = _sources(scope, name, _CONVOLUTION, lambda node: node.op_type in _WITHIN_ACTIVATIONS)
    found = ((attributes.integer(node, "group", 1), _weights(scope, node)) for node in sources)
    return any(shape is not None and shape[: CHANNELS + 1] == (group, 1) for group, shape in found)


def is_cut_off_volume(scope: Scope, node: NodeProto) -> bool:
    """Whether a node gives a result of the model, and what it reads is what any convolution of three axes gives.

    Between may lie what runtimes make a part of that, or leave out.
    """
    passing = ("BatchNormalization", "Dropout")
    sources = _sources(scope, node.input[0], _CONVOLUTIONS, lambda each: each.op_type in passing)
    return scope.is_output(node.output[0]) and any(_weights(scope, each) is not None for each in sources)


def is_of_bytes(scope: Scope, name: str) -> bool:
    """Whether data is what a DequantizeLinear gives, moved at most by what runtimes look through."""
    return _comes_from(scope, name, _DEQUANTIZED, lambda node: node.op_type in ("Clip", "Identity", "Pad"))


def is_behind_joined_bytes(scope: Scope, name: str) -> bool:
    """Whether data is what a Concat joins and is held in signed bytes, before it or behind it, and moved at most."""
    for source in _sources(scope, name, _JOINED_OR_DEQUANTIZED, lambda node: node.op_type in _MOVING):
        if source.op_type == "DequantizeLinear" and _reads_signed_bytes(scope, source):
            quantized = [scope.producer(source.input[0])] if scope.defines(source.input[0]) else []
            floats = [each.input[0] for each in quantized if each is not None and each.op_type == "QuantizeLinear"]
            if any(_comes_from(scope, each, _JOINING, lambda node: node.op_type in _SCALING) for each in floats):
                return True
        elif source.op_type == "Concat":
            parts = [scope.own_producer(each) for each in source.input]
            dequantized = [each for each in parts if each is not None and each.op_type == "DequantizeLinear"]
            if any(_reads_signed_bytes(scope, each) for each in dequantized):
                return True
    return False


def _reads_signed_bytes(scope: Scope, node: NodeProto) -> bool:
    known = scope.type_of(node.input[0])
    return known is not None and known.elem_type == TensorProto.INT8


def _weights(scope: Scope, node: NodeProto) -> tuple[Dimension, ...] | None:
    """Return the lengths of the weights of a convolution of three axes; None of another."""
    weights = scope.type_of(node.input[1])
    shape = None if weights is None else weights.shape
    return shape if shape is not None and len(shape) == _VOLUMES_WEIGHTS else None


def turns_back(scope: Scope, node: NodeProto) -> bool:
    """Whether a Transpose undoes another one, with nothing but activations between, of what a 1-D convolution gives."""
    if attributes.integers(node, "perm") != _LAST_EXCHANGED:
        return False
    name = node.input[0]
    for _ in range(_NEAR):
        before = scope.own_producer(name)
        if before is None or normal_domain(before.domain) or len(scope.consumers(name)) > 1:
            return False
        if before.op_type == "Transpose":
            break
        data = [each for each in before.input if each and scope.constant(each) is None]
        if before.op_type in _REORDERING or len(data) != 1 or len(before.output) != 1:
            return False
        name = data[0]
    else:
        return False
    return attributes.integers(before, "perm") == _LAST_EXCHANGED and _comes_from(
        scope, before.input[0], _CONVOLUTION, lambda each: each.op_type not in _REORDERING
    )


def turns_alike_back(scope: Scope, node: NodeProto) -> bool | None:
    """Whether a Transpose moves channels of one image as such a runtime's own change of order does, by lengths alone.

    It puts the last axis first of what a layer of images gives, or back for such a layer, where there are as many
    channels as columns; or it puts channels first again that another one put last, where there are as many as rows.
    Nothing but operators that work on each element by itself lies between; None where the lengths are not known.
    """
    perm = attributes.integers(node, "perm") or []
    rank = len(perm)
    first, last = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
    if rank < CHANNELS + 3 or perm not in (first, last):
        return False
    known = scope.type_of(node.input[0])
    batch = None if known is None or known.shape is None else known.shape[0]
    is_batch = isinstance(batch, int) and batch > 1
    if perm == last:
        compared = CHANNELS + 1
        is_met = not is_batch and _leads_to(scope, node.output[0], _LAYERS, lambda each: each.op_type in _SKIPPED)
    else:
        compared = rank - 1
        turned = _sources(scope, node.input[0], {("", "Transpose")}, lambda each: each.op_type not in _REORDERING)
        is_met = any(attributes.integers(each, "perm") == last for each in turned)
        is_met |= not is_batch and _comes_from(
            scope, node.input[0], _LAYERS, lambda each: each.op_type not in _REORDERING | {"Reshape"}
        )
    if not is_met:
        return False
    lengths = _lengths(scope, node.input[0])
    if not lengths or not isinstance(lengths[CHANNELS], int) or not isinstance(lengths[compared], int):
        return None
    return lengths[CHANNELS] == lengths[compared]


def _comes_from(scope: Scope, name: str, sources: AbstractSet[Key], passes: Callable[[NodeProto], bool]) -> bool:
    return any(True for _ in _sources(scope, name, sources, passes))


def _sources(
    scope: Scope, name: str, sources: AbstractSet[Key], passes: Callable[[NodeProto], bool]
) -> Iterator[NodeProto]:
    """Yield the nodes of some types that data comes from, through nodes that pass it on."""
    seen, left = set[str](), [name]
    while left and len(seen) < _NEAR:
        each = left.pop()
        node = scope.own_producer(each) if each not in seen else None
        seen.add(each)
        if node is not None and (normal_domain(node.domain), node.op_type) in sources:
            yield node
        elif node is not None and passes(node):
            left += [read for read in node.input if read]
