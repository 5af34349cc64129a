"""What operators are like that pick, split, multiply or transform, in the words that targets state their facts in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import NodeProto, TensorProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope
from padfix.operators.batches import gives_each_image_its_own, numbers_images
from padfix.operators.clip import clip_bounds
from padfix.operators.constant_chains import COMPUTED, is_constant
from padfix.operators.data_order import CHANNELS, is_in_blocks
from padfix.operators.equations import equation_traits
from padfix.operators.fused_layers import MATRIX, is_activated_convolution, is_deviation, is_product
from padfix.operators.lists import ON_ONE
from padfix.operators.long_results import ends_as_long, is_result_of_whole_numbers
from padfix.operators.numbers import cast_changes_numbers, elements_of, is_odd_integer, numbers_of
from padfix.operators.passing import PASSING, changes_type, passing_traits
from padfix.targets.traits import Trait, Traits

DFT_AXIS_AS_INPUT_SINCE = 20

PICKING = ("GatherElements", "GatherND", "ScatterElements", "ScatterND")
"""Operators whose second input says which elements."""

# fmt: off
PLAIN = (
    "Acos", "Acosh", "AffineGrid", "And", "Asin", "Asinh", "Atan", "Atanh", "Bernoulli", "BitCast", "BitShift",
    "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "BlackmanWindow", "CastLike", "CausalConvWithState",
    "CenterCropPad", "Compress", "ConcatFromSequence", "Cosh", "CumProd", "DeformConv", "Det",
    "Equal", "Greater", "GreaterOrEqual", "HammingWindow", "HannWindow", "If", "ImageDecoder", "IsNaN",
    "LeakyRelu", "Less", "LessOrEqual", "LinearAttention", "Loop", "MatMulInteger", "MaxRoiPool", "MaxUnpool",
    "MelWeightMatrix", "Multinomial", "NonZero", "Not", "Optional", "OptionalGetElement", "OptionalHasElement", "Or",
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Range", "RegexFullMatch", "Relu",
    "ReverseSequence", "RotaryEmbedding", "Round", "STFT", "Scan", "Scatter", "SequenceAt", "SequenceConstruct",
    "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap", "Shrink", "Sinh", "Softsign",
    "SplitToSequence", "StringConcat", "StringNormalizer", "StringSplit", "SwiGLU", "Tan", "TensorScatter",
    "TfIdfVectorizer", "ThresholdedRelu", "Tile", "Trilu", "Xor",
)
# fmt: on
"""Operators of which it is all the same to runtimes how they are."""

_MOVING = ("Cast", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze")

_PLACES = ("Abs", "ArgMax", "ArgMin", "NonZero", "Relu", "Sigmoid", "TopK")
"""Operators that give nothing below 0, of a TopK with the positions that it gives."""

_MOST_MOVES = 4
"""Operators that may lie between a weight and what reads it."""

CLASSICAL_DOMAIN = "ai.onnx.ml"

CLASSICAL = (
    "ArrayFeatureExtractor",
    "Binarizer",
    "Imputer",
    "LabelEncoder",
    "LinearClassifier",
    "LinearRegressor",
    "Normalizer",
    "OneHotEncoder",
    "SVMRegressor",
    "Scaler",
    "TreeEnsemble",
    "TreeEnsembleClassifier",
    "TreeEnsembleRegressor",
)
"""Operators of ONNX's domain for machine learning without networks, of which it is all the same as well."""


def dft_axis(scope: Scope, node: NodeProto) -> int | None:
    """Return the axis that a DFT transforms, counted from the begin; None where it is not known."""
    if scope.opset < DFT_AXIS_AS_INPUT_SINCE:
        axis: int | None = attributes.integer(node, "axis", 1)
    elif len(node.input) > 2 and node.input[2]:
        constant = scope.constant(node.input[2])
        axis = None if constant is None else int(constant.reshape(-1)[0])
    else:
        axis = -2
    known = scope.type_of(node.input[0])
    if axis is None or (axis < 0 and (known is None or known.rank is None)):
        return None
    return axis if axis >= 0 or known is None or known.rank is None else axis + known.rank


def _dft(scope: Scope, node: NodeProto) -> Traits:
    axis, is_input = dft_axis(scope, node), scope.opset >= DFT_AXIS_AS_INPUT_SINCE
    return {
        "axis-as-input": is_input,
        "axis-written": is_input and len(node.input) > 2 and bool(node.input[2]),
        "first-axis": None if axis is None else axis == 1,
        "length-given": len(node.input) > 1 and bool(node.input[1]),
    }


def _batch_norm(scope: Scope, node: NodeProto) -> Traits:
    """Return of a BatchNormalization what it is read for a part of: a product, or an activated convolution."""
    known = scope.type_of(node.input[0])
    return {
        "trains": attributes.integer(node, "training_mode", 0) != 0,
        "rank": None if known is None else known.rank,
        "about-a-product": is_product(scope, node.input[0]),
        "epsilon-written": attributes.find(node, "epsilon") is not None,
        "behind-activation": is_activated_convolution(scope, node.input[0]),
    }


def _prelu(scope: Scope, node: NodeProto) -> Traits:
    """Return what a PRelu has slopes for: one for all, one a channel, a list (of channels' length), or others."""
    data, slope = (scope.type_of(name) for name in node.input[:2])
    common: dict[str, Trait | None] = {
        "rank": None if data is None else data.rank,
        "behind-window": is_in_blocks(scope, node.input[0]),
    }
    if slope is None or slope.shape is None or data is None or data.shape is None:
        return {**common, "slopes": None}
    rank = len(data.shape)
    aligned = [1] * (rank - len(slope.shape)) + list(slope.shape)
    pairs = zip(data.shape[::-1], aligned[::-1], strict=False)
    common["spreads-data"] = len(aligned) > rank or any(here == 1 and there not in (1, None) for here, there in pairs)
    several = [axis for axis, length in enumerate(aligned) if length != 1]
    if several in ([], [CHANNELS]):
        slopes = "channels" if several else "one"
    elif len(slope.shape) > 1:
        slopes = "others"
    else:
        lengths = data.shape[CHANNELS : CHANNELS + 1]
        slopes = "list-of-channels" if set(lengths) & {None, *slope.shape} else "list"
    return {**common, "slopes": slopes}


def _picking(scope: Scope, node: NodeProto) -> Traits:
    indices = scope.constant(node.input[1])
    shapes = [None if (known := scope.type_of(name)) is None else known.shape for name in node.input[:3]]
    updates = shapes[2] if len(shapes) > 2 else None
    return {
        **ranked(scope, node),
        "axis-from-end": (attributes.integer(node, "axis", 0) or 0) < 0,
        "of-fewer-rows": _has_fewer_rows(node, shapes),
        "of-listed-values": updates is not None and len(updates) == 1,
        "both-computed": not is_constant(scope, node.input[1]),
        "negative-indices": indices is not None and bool((indices < 0).any()),
        "maybe-from-end": may_count_from_end(scope, node.input[1]),
        "picks-rows": indices is not None and node.op_type == "GatherND" and indices.shape[-1:] == (1,),
        "by-image": attributes.integer(node, "batch_dims", 0) != 0,
        "joins": (reduction := attributes.text(node, "reduction", "none") or "none") != "none",
        "joins-extremes": reduction in ("max", "min"),
    }


def may_count_from_end(scope: Scope, name: str) -> bool:
    """Whether indices are computed, and by nothing that gives none below 0."""
    for _ in range(_MOST_MOVES + 1):
        known, producer = scope.type_of(name), scope.producer(name)
        is_unsigned = known is not None and known.elem_type in (TensorProto.UINT8, TensorProto.BOOL)
        if is_unsigned or is_constant(scope, name) or (producer is not None and _gives_places(scope, producer)):
            return False
        if producer is None or producer.op_type not in _MOVING:
            return True
        name = producer.input[0]
    return True


def _may_be_outside(scope: Scope, node: NodeProto) -> bool:
    """Whether an index of a OneHot may be none of its places: all but constants and positions along a short axis."""
    depth, name = scope.constant(node.input[1]), node.input[0]
    most = 0 if depth is None or not depth.size else int(depth.reshape(-1)[0])
    for _ in range(_MOST_MOVES + 1):
        told, producer = scope.constant(name), scope.producer(name)
        if told is not None:
            return bool((told < -most).any() or (told >= most).any())
        if producer is None or producer.op_type not in (*_MOVING, "ArgMax", "ArgMin"):
            return True
        if producer.op_type.startswith("Arg"):
            known = scope.type_of(producer.input[0])
            length = (
                known.shape[attributes.integer(producer, "axis", 0) or 0] if known is not None and known.shape else None
            )
            return not isinstance(length, int) or length > most
        name = producer.input[0]
    return True


def _is_whole_number(scope: Scope, name: str) -> bool:
    """Whether a value is an integer without an axis."""
    known = scope.type_of(name)
    return known is not None and known.shape == () and numbers_of(scope, name) == "integer"


def _gives_places(scope: Scope, node: NodeProto) -> bool:
    """Whether a node gives nothing below 0: positions, magnitudes, or what is left of a division by such."""
    if node.op_type != "Mod":
        return node.op_type in _PLACES
    divisor = scope.constant(node.input[1])
    is_cut = attributes.integer(node, "fmod", 0) != 0
    return not is_cut and divisor is not None and bool((divisor > 0).all())


def _has_fewer_rows(node: NodeProto, shapes: Sequence[Sequence[Dimension] | None]) -> bool:
    """Whether a GatherElements has indices for a part of its rows alone."""
    if node.op_type != "GatherElements" or shapes[0] is None or shapes[1] is None:
        return False
    axis = (attributes.integer(node, "axis", 0) or 0) % max(len(shapes[0]), 1)
    pairs = enumerate(zip(*shapes[:2], strict=False))
    return any(here != there for place, (here, there) in pairs if place != axis)


def _split(scope: Scope, node: NodeProto) -> Traits:
    known, axis = scope.type_of(node.input[0]), attributes.integer(node, "axis", 0) or 0
    length = (
        known.shape[axis] if known is not None and known.shape and -len(known.shape) <= axis < len(known.shape) else 0
    )
    counts = attributes.integer(node, "num_outputs", 0)
    is_even = None if length is None or isinstance(length, str) else length % (counts or 1) == 0
    has_lengths = len(node.input) > 1 or attributes.find(node, "split") is not None
    return {
        "axis-written": attributes.find(node, "axis") is not None,
        "split-evenly": is_even if counts else True,
        "pieces-told": has_lengths or bool(counts),
        "splits-constant": is_weight(scope, node.input[0]),
    }


def is_weight(scope: Scope, name: str, depth: int = 0) -> bool:
    """Whether a constant or a weight is read: written down as it is, or moved about by a few operators."""
    owner, producer = scope.owner(name), scope.producer(name)
    if owner is None or producer is None:
        return owner is not None and owner.is_initializer(name) and name not in owner.inputs
    if producer.op_type == "Constant":
        return True
    is_moved = producer.op_type in COMPUTED or producer.op_type == "Split"
    return (
        is_moved and depth < _MOST_MOVES and all(is_weight(scope, each, depth + 1) for each in producer.input if each)
    )


def _suppression(scope: Scope, node: NodeProto) -> Traits:
    """Return the least score of a NonMaxSuppression, and whether one of its limits has no axis."""
    limits = [scope.type_of(name) for name in node.input[2:] if name]
    name = node.input[4] if len(node.input) > 4 else ""
    score = scope.constant(name) if name else None
    least = None if name and score is None else "none"
    if score is not None and score.size == 1:
        least = "below-zero" if score.reshape(-1)[0] < 0 else "others"
    return {
        "least-score": least,
        "limits-as-numbers": any(each is not None and each.shape == () for each in limits),
        "of-positive": _is_share(scope, node.input[1]),
    }


def _is_share(scope: Scope, name: str) -> bool:
    """Whether numbers are what a Sigmoid or Softmax gives, moved about by a few operators."""
    for _ in range(_MOST_MOVES + 1):
        producer = scope.producer(name)
        if producer is None or producer.op_type not in _MOVING:
            break
        name = producer.input[0]
    producer = scope.producer(name)
    return producer is not None and producer.op_type in ("Sigmoid", "Softmax")


def ranked(scope: Scope, node: NodeProto) -> Traits:
    """Return how many axes the data have."""
    data = scope.type_of(node.input[0])
    return {"rank": None if data is None else data.rank}


def _reranked(scope: Scope, node: NodeProto) -> Traits:
    before, behind = (scope.type_of(name) for name in (node.input[0], node.output[0]))
    shapes = [None if each is None else each.shape for each in (before, behind)]
    is_kept = None if shapes[0] is None or shapes[1] is None else shapes[0][:1] == shapes[1][:1]
    ranks = [None if each is None else each.rank for each in (before, behind)]
    return {
        "rank": ranks[0],
        "moves-batch": None if is_kept is None else not is_kept,
        "adds-several": None if ranks[0] is None or ranks[1] is None else ranks[1] - ranks[0] > 1,
    }


def _columns(scope: Scope, node: NodeProto) -> Traits:
    block = scope.constant(node.input[2])
    return {"spatial-axes": None if block is None else block.size}


def _expand(scope: Scope, node: NodeProto) -> Traits:
    """Return of an Expand whether it makes a batch of its own: a longer first axis, or others before it."""
    if scope.constant(node.input[0]) is not None:
        return {"makes-batch": False}
    before, behind = (scope.type_of(name) for name in (node.input[0], node.output[0]))
    shapes = [None if each is None else each.shape for each in (before, behind)]
    if shapes[0] is None or shapes[1] is None:
        return {"makes-batch": None}
    return {
        "makes-batch": len(shapes[0]) != len(shapes[1]) or shapes[0][:1] != shapes[1][:1],
        "numbers-images": numbers_images(scope, node),
    }


def _product(scope: Scope, node: NodeProto) -> Traits:
    ranks = [None if (known := scope.type_of(name)) is None else known.rank for name in node.input[:2]]
    first, second = (None if rank is None else rank == 1 for rank in ranks)
    return {
        "rank": ranks[0],
        "list-first": first,
        "list-second": second,
        "by-a-matrix": ranks[1] == 2,
        "numbers-images": gives_each_image_its_own(scope, node, MATRIX),
    }


def _cast(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Cast what its data are and what it gives; nothing of that where their type is not known."""
    known = scope.type_of(node.input[0])
    elements = None if known is None else elements_of(known.elem_type)
    return {
        "changes-type": changes_type(scope, node),
        "changes-numbers": cast_changes_numbers(scope, node),
        "elements": elements,
        "unsigned": None if elements is None or known is None else known.elem_type == TensorProto.UINT8,
        "gives": numbers_of(scope, node.output[0]),
        "gives-odd-integers": is_odd_integer(scope, node.output[0]),
        "as-result": is_result_of_whole_numbers(scope, node),
        "ends-as-long": ends_as_long(scope, node),
    }


def is_kept_from_zero(scope: Scope, name: str) -> bool:
    """Whether 1 is added to numbers where they are zero: what is left of 1 without the sign of their magnitude."""
    total = scope.own_producer(name)
    rest = scope.own_producer(total.input[1]) if total is not None and total.op_type == "Add" else None
    sign = scope.own_producer(rest.input[1]) if rest is not None and rest.op_type == "Sub" else None
    size = scope.own_producer(sign.input[0]) if sign is not None and sign.op_type == "Sign" else None
    is_of_it = size is not None and size.op_type == "Abs" and total is not None and size.input[0] == total.input[0]
    one = None if rest is None else scope.constant(rest.input[0])
    return is_of_it and one is not None and bool((one == 1).all())


def is_positive_for_certain(scope: Scope, name: str, *, or_zero: bool = False) -> bool:
    """Whether computed numbers are above zero, or zero at the least, by the operator that gives them."""
    constant, producer = scope.constant(name), scope.producer(name)
    if constant is not None:
        return bool((constant >= 0 if or_zero else constant > 0).all())
    if producer is None:
        return False
    if producer.op_type in ("Abs", "Relu", "Sqrt", "ReduceL1", "ReduceL2", "ReduceSumSquare"):
        return or_zero
    if producer.op_type == "Clip":
        least = clip_bounds(scope, producer)[0]
        return least >= 0 if or_zero else least > 0
    if producer.op_type in ("Add", "Max"):
        signs = [is_positive_for_certain(scope, each) for each in producer.input]
        if producer.op_type == "Max":
            return any(signs)
        return any(signs) and all(is_positive_for_certain(scope, each, or_zero=True) for each in producer.input)
    return or_zero and producer.op_type in ("Exp", "Sigmoid", "Softmax", "Softplus")  # they round to zero


def power_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Pow what numbers its exponents are, and whether what it raises is above 0 for certain."""
    exponents, base = scope.constant(node.input[1]), scope.constant(node.input[0])
    kind = "others"
    if exponents is not None and exponents.size == 1:
        number = float(exponents.reshape(-1)[0])
        kinds = {2.0: "two", 0.5: "half", -0.5: "half"}
        kind = kinds.get(number, "whole" if number.is_integer() else "fraction")
    is_positive = bool((base > 0).all()) if base is not None else is_positive_for_certain(scope, node.input[0])
    if kind in ("half", "fraction"):
        is_positive = is_positive or is_kept_from_zero(scope, node.input[0])
    types = [None if (known := scope.type_of(name)) is None else known.elem_type for name in node.input]
    return {
        "exponent": kind,
        "of-positive": is_positive,
        "of-deviation": is_deviation(scope, node.input[0]),
        "types-differ": None not in types and types[0] != types[1],
    }


PLAINLY: Mapping[str, Callable[[Scope, NodeProto], Traits]] = {
    **dict.fromkeys((*PLAIN, *ON_ONE), lambda scope, node: {}),
    **dict.fromkeys(PICKING, _picking),
    **dict.fromkeys(PASSING, passing_traits),
    **dict.fromkeys(
        ("ArgMax", "ArgMin"),
        lambda scope, node: {
            **ranked(scope, node),
            "takes-last": attributes.integer(node, "select_last_index", 0) != 0,
            "keeps-axis": attributes.integer(node, "keepdims", 1) != 0,
        },
    ),
    "BatchNormalization": _batch_norm,
    "Cast": _cast,
    **dict.fromkeys(
        ("Celu", "Swish"),
        lambda scope, node: {"of-one": (found := attributes.find(node, "alpha")) is None or found.f == 1},
    ),
    "Constant": lambda scope, node: {
        "of-tensor": attributes.find(node, "value") is not None,
        "as-result": scope.parent is None and scope.is_output(node.output[0]),
    },
    "CumSum": lambda scope, node: {
        "exclusive": attributes.integer(node, "exclusive", 0) != 0,
        "backwards": attributes.integer(node, "reverse", 0) != 0,
    },
    "DFT": _dft,
    "DynamicQuantizeLinear": lambda scope, node: {
        "read-apart": any(
            scope.is_output(name) or any(each.op_type != "DequantizeLinear" for each in scope.consumers(name))
            for name in node.output
        )
    },
    "Col2Im": _columns,
    "ConstantOfShape": lambda scope, node: {"value-written": attributes.find(node, "value") is not None},
    "QLinearMatMul": lambda scope, node: {"half-scales": numbers_of(scope, node.input[1]) == "half"},
    "Einsum": equation_traits,
    "Expand": _expand,
    "MatMul": _product,
    "NonMaxSuppression": _suppression,
    "OneHot": lambda scope, node: {
        "axis-written": attributes.find(node, "axis") is not None,
        "maybe-from-end": may_count_from_end(scope, node.input[0]),
        "maybe-outside": _may_be_outside(scope, node),
        "depth-is-no-number": not _is_whole_number(scope, node.input[1]),
        "of-floats": numbers_of(scope, node.input[2]) != "integer",
    },
    "PRelu": _prelu,
    "Size": lambda scope, node: {"ends-as-long": ends_as_long(scope, node)},
    "Split": _split,
    "Squeeze": lambda scope, node: {
        **_reranked(scope, node),
        "axes-written": len(node.input) > 1 or attributes.find(node, "axes") is not None,
        "gives-a-number": (gives := scope.type_of(node.output[0])) is not None and gives.shape == (),
    },
    "TopK": lambda scope, node: {
        **ranked(scope, node),
        "axis-from-end": (attributes.integer(node, "axis", -1) or 0) < 0,
        "sorted": attributes.integer(node, "sorted", 1) != 0,
    },
    "IsInf": lambda scope, node: {
        "one-sided": not all(attributes.integer(node, f"detect_{sign}", 1) for sign in ("negative", "positive"))
    },
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), ranked),
    "Tile": ranked,
    "Trilu": ranked,
    "Unsqueeze": _reranked,
}
"""By the type of an operator: what reads its traits."""
