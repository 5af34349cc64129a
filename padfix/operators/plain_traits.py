"""What operators are like that multiply, transform or convert, in the words that targets state their facts in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import NodeProto, TensorProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope
from padfix.operators.batches import OF_IMAGES, gives_each_image_its_own, is_of_another_batch, numbers_images
from padfix.operators.constant_chains import is_constant, reads_constant_bytes, worked_out
from padfix.operators.constant_nodes import constant_traits
from padfix.operators.data_order import CHANNELS, is_behind_layer, is_computed_of_windows, is_in_blocks
from padfix.operators.equations import equation_traits
from padfix.operators.followed_batch import equation_moves_images
from padfix.operators.fused_layers import (
    is_activated_convolution,
    is_of_transposed_groups,
    is_product,
    made_by,
)
from padfix.operators.integer_ranges import is_beyond_halves, wraps
from padfix.operators.lists import ON_ONE, is_given_number, joins_a_list
from padfix.operators.long_results import ends_as_long, is_result_of_whole_numbers
from padfix.operators.matrix_traits import matrix_traits
from padfix.operators.numbers import bytes_of, cast_changes_numbers, elements_of, is_odd_integer, is_whole, numbers_of
from padfix.operators.open_lengths import is_behind_open_pool
from padfix.operators.passing import PASSING, changes_type, gives_the_same, passing_traits
from padfix.operators.picked_parts import picked_part, sorted_axes, squeezed_axes
from padfix.operators.picking_traits import PICKING_TRAITS, along_axis, is_weight, ranked, triangle_traits
from padfix.operators.positive import is_positive_for_certain
from padfix.operators.quantizers import leaves_zero_point_out, product_traits
from padfix.operators.recurrent_layers import is_slice_for_layer
from padfix.operators.repeats import multiplies_copies, repeats_many_axes
from padfix.operators.reshape_traits import flatten_traits
from padfix.operators.sequences import length_traits, place_traits
from padfix.operators.shape_questions import is_spread, is_spread_but_for_one
from padfix.operators.taken_axes import LEAST_RANK
from padfix.operators.told_lengths import may_keep_lengths, measures_images
from padfix.targets.traits import Trait, Traits

_TOLD_TO_TRAIN_SINCE = 14
"""The first opset whose BatchNormalization has an attribute that tells it to train."""

DFT_AXIS_AS_INPUT_SINCE = 20

# fmt: off
PLAIN = (
    "Acos", "Acosh", "AffineGrid", "Asin", "Asinh", "Atan", "Atanh", "Bernoulli", "BitCast", "BitwiseAnd",
    "BitwiseNot", "BitwiseOr", "BitwiseXor", "BlackmanWindow", "CausalConvWithState", "CenterCropPad", "Cosh",
    "CumProd", "DeformConv", "Det", "Equal", "Greater", "GreaterOrEqual", "HammingWindow", "HannWindow",
    "If", "ImageDecoder", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "LinearAttention", "Loop", "MaxRoiPool",
    "MelWeightMatrix", "Multinomial", "NonZero", "Not", "Optional", "OptionalGetElement", "OptionalHasElement",
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "RegexFullMatch", "Relu",
    "ReverseSequence", "Round", "Scan", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
    "SequenceInsert", "SequenceLength", "SequenceMap", "Shrink", "Sinh", "Softsign", "SplitToSequence",
    "StringConcat", "StringNormalizer", "StringSplit", "SwiGLU", "Tan", "TensorScatter", "TfIdfVectorizer",
    "ThresholdedRelu", "Tile", "Trilu",
)
# fmt: on
"""Operators of which it is all the same to runtimes how they are."""


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


def _equation(scope: Scope, node: NodeProto) -> Traits:
    return {**equation_traits(scope, node), "moves-images": equation_moves_images(scope, node)}


def classical_traits(node: NodeProto) -> Traits:
    """Return of a Normalizer whether it divides by the largest element of a row; nothing of the others."""
    is_largest = node.op_type == "Normalizer" and (attributes.text(node, "norm", "MAX") or "MAX") == "MAX"
    return {"by-largest": is_largest}


def dft_axis(scope: Scope, node: NodeProto) -> int | None:
    """Return the axis that a DFT transforms, counted from the begin; None where it is not known."""
    axis, known = _told_axis(scope, node), scope.type_of(node.input[0])
    if axis is None or (axis < 0 and (known is None or known.rank is None)):
        return None
    return axis if axis >= 0 or known is None or known.rank is None else axis + known.rank


def _told_axis(scope: Scope, node: NodeProto) -> int | None:
    if scope.opset < DFT_AXIS_AS_INPUT_SINCE:
        return attributes.integer(node, "axis", 1)
    if len(node.input) < 3 or not node.input[2]:
        return -2
    constant = scope.constant(node.input[2])
    return None if constant is None else int(constant.reshape(-1)[0])


def _dft(scope: Scope, node: NodeProto) -> Traits:
    axis, is_input = dft_axis(scope, node), scope.opset >= DFT_AXIS_AS_INPUT_SINCE
    told, known = _told_axis(scope, node), scope.type_of(node.input[0])
    parts = known.shape[-1] if known is not None and known.shape else None
    is_inverse = attributes.integer(node, "inverse", 0) != 0
    return {
        "parts-open": not isinstance(parts, int),
        "inverse-of-real": is_inverse and (parts == 1 if isinstance(parts, int) else None),
        "axis-as-input": is_input,
        "axis-written": is_input and len(node.input) > 2 and bool(node.input[2]),
        "axis-from-end": told is None or told < 0,
        "first-axis": None if axis is None else axis == 1,
        "length-given": len(node.input) > 1 and bool(node.input[1]),
        "one-sided": attributes.integer(node, "onesided", 0) != 0,
    }


def _signs(node: NodeProto) -> Traits:
    """Return whether an IsInf does not ask for both infinities, and whether it asks for none."""
    asked = [attributes.integer(node, f"detect_{sign}", 1) != 0 for sign in ("negative", "positive")]
    return {"one-sided": not all(asked), "asks-neither": not any(asked)}


def _stft(scope: Scope, node: NodeProto) -> Traits:
    """Return of a STFT what its signal is like, and whether it is told what it may leave unsaid."""
    known = scope.type_of(node.input[0])
    given = [len(node.input) > place and bool(node.input[place]) for place in (2, 3)]
    return {
        "rank": None if known is None else known.rank,
        "sizes": "static" if known is not None and known.lengths is not None else "dynamic",
        "complex": known is not None and known.shape is not None and tuple(known.shape[2:]) == (2,),
        "one-sided": attributes.integer(node, "onesided", 1) != 0,
        "sides-written": attributes.find(node, "onesided") is not None,
        "window-given": given[0],
        "length-given": given[1],
    }


def is_training(scope: Scope, node: NodeProto) -> bool:
    """Whether a BatchNormalization trains, as before opset 14 each does that has more outputs than one."""
    if scope.opset < _TOLD_TO_TRAIN_SINCE:
        return any(node.output[1:])
    return attributes.integer(node, "training_mode", 0) != 0


def _of_split_sequence(scope: Scope, node: NodeProto) -> Traits:
    producer = scope.producer(node.input[0])
    return {"of-split-sequence": producer is not None and producer.op_type == "SplitToSequence"}


def _batch_norm(scope: Scope, node: NodeProto) -> Traits:
    """Return of a BatchNormalization what it is read for a part of: a product, or an activated convolution."""
    known = scope.type_of(node.input[0])
    return {
        "trains": is_training(scope, node),
        "rank": None if known is None else known.rank,
        "about-a-product": is_product(scope, node.input[0]),
        "numbers-computed": not all(is_weight(scope, name) for name in node.input[1:5]),
        "epsilon-written": attributes.find(node, "epsilon") is not None,
        "behind-activation": is_activated_convolution(scope, node.input[0]),
        "behind-groups": is_of_transposed_groups(scope, node.input[0]),
    }


def _prelu(scope: Scope, node: NodeProto) -> Traits:
    """Return what a PRelu has slopes for: one for all, one a channel, a list (of channels' length), or others."""
    data, slope = (scope.type_of(name) for name in node.input[:2])
    common: dict[str, Trait | None] = {
        "rank": None if data is None else data.rank,
        "behind-window": is_in_blocks(scope, node.input[0]),
        "computed-of-windows": is_computed_of_windows(scope, node.input[0]),
        "slopes-computed": not is_constant(scope, node.input[1]),
    }
    if slope is None or slope.shape is None or data is None or data.shape is None:
        return {**common, "slopes": None}
    rank = len(data.shape)
    aligned = [1] * (rank - len(slope.shape)) + list(slope.shape)
    pairs = zip(data.shape[::-1], aligned[::-1], strict=False)
    common["spreads-data"] = len(aligned) > rank or any(here == 1 and there not in (1, None) for here, there in pairs)
    common["slopes-of-all-axes"] = len(slope.shape) == rank and tuple(slope.shape) != tuple(data.shape)
    several = [axis for axis, length in enumerate(aligned) if length != 1]
    if several in ([], [CHANNELS]):
        slopes = "channels" if several else "one"
    elif len(slope.shape) > 1:
        slopes = "others"
    else:
        channels = data.shape[CHANNELS : CHANNELS + 1]
        may_be = any(not isinstance(each, int) or each in slope.shape for each in channels)
        slopes = "list-of-channels" if may_be else "list"
    return {**common, "slopes": slopes}


def _filled(scope: Scope, node: NodeProto) -> Traits:
    """Return of a ConstantOfShape whether it says with what, and whether it gives a number or for open lengths."""
    known = scope.type_of(node.output[0])
    return {
        "value-written": attributes.find(node, "value") is not None,
        "gives-a-number": None if known is None else known.rank == 0,
        "measures-images": measures_images(scope, node),
    }


def _reranked(scope: Scope, node: NodeProto) -> Traits:
    before, behind = (scope.type_of(name) for name in (node.input[0], node.output[0]))
    shapes = [None if each is None else each.shape for each in (before, behind)]
    is_kept = None if shapes[0] is None or shapes[1] is None else shapes[0][:1] == shapes[1][:1]
    ranks = [None if each is None else each.rank for each in (before, behind)]
    return {
        "rank": ranks[0],
        "moves-batch": None if is_kept is None else not is_kept,
        "open-lengths": shapes[0] is not None and not all(isinstance(each, int) for each in shapes[0]),
        "of-number-given": ranks[0] == 0 and is_given_number(scope, node.input[0], by_constants=True),
        "adds-none": None if ranks[0] is None or ranks[1] is None else ranks[1] == ranks[0],
        "adds-several": None if ranks[0] is None or ranks[1] is None else ranks[1] - ranks[0] > 1,
    }


def _unsqueezed(scope: Scope, node: NodeProto) -> Traits:
    """Return of an Unsqueeze whether nothing but layers of images reads it, which tell which axis is the batch."""
    name = node.output[0]
    readers = [] if scope.is_output(name) else scope.consumers(name)
    are_layers = all(each.op_type in OF_IMAGES and each.input[0] == name for each in readers)
    is_told = bool(readers) and are_layers and is_of_another_batch(scope, name) is False
    return {**_reranked(scope, node), "batch-told": is_told}


def _squeezed(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Squeeze whether its axes are written, and listed from the first to the last."""
    gives, in_order = scope.type_of(node.output[0]), sorted_axes(scope, node)
    is_written = len(node.input) > 1 or attributes.find(node, "axes") is not None
    return {
        **_reranked(scope, node),
        "picks-part": picked_part(scope, node) is not None,
        "axes-written": is_written,
        "axes-out-of-order": None
        if is_written and in_order is None
        else in_order is not None and in_order != squeezed_axes(scope, node),
        "gives-a-number": gives is not None and gives.shape == (),
        "behind-open-pool": is_behind_open_pool(scope, node),
        "slice-for-layer": is_slice_for_layer(scope, node),
    }


def _counted(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Range whether it counts down, and whether all that tells it what it lists is whole."""
    step = worked_out(scope, node.input[2])
    return {
        "backwards": None if step is None else bool((step < 0).any()),
        "by-fractions": not all(is_whole(scope, name) for name in node.input),
    }


def _columns(scope: Scope, node: NodeProto) -> Traits:
    block = scope.constant(node.input[2])
    return {"spatial-axes": None if block is None else block.size}


def _tile(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Tile what becomes of its copies, and whether it makes them for open lengths."""
    return {
        **ranked(scope, node),
        "repeats-many-axes": repeats_many_axes(scope, node),
        "multiplied-copies": multiplies_copies(scope, node),
        "measures-images": measures_images(scope, node),
    }


def makes_batch(given: Sequence[Dimension], gives: Sequence[Dimension]) -> bool:
    """Whether what is expanded gets a longer first axis, or others before it."""
    return len(given) != len(gives) or given[:1] != gives[:1]


def _expand(scope: Scope, node: NodeProto) -> Traits:
    """Return of an Expand whether it makes a batch of its own: a longer first axis, or others before it."""
    told: Traits = {
        "multiplied-copies": multiplies_copies(scope, node),
        "measures-images": measures_images(scope, node),
        "lengths-computed": scope.constant(node.input[1]) is None,
        "may-keep-lengths": scope.constant(node.input[1]) is None and may_keep_lengths(scope, node),
        "fewer-lengths": _lists_fewer_lengths(scope, node),
    }
    if scope.constant(node.input[0]) is not None:
        return {"makes-batch": False, **told}
    before, behind = (scope.type_of(name) for name in (node.input[0], node.output[0]))
    shapes = [None if each is None else each.shape for each in (before, behind)]
    if shapes[0] is None or shapes[1] is None:
        return {"makes-batch": None, **told}
    return {
        **told,
        "of-lists": len(shapes[0]) == 1 and shapes[0] != (1,),
        "copies-columns": len(shapes[1]) > 1 and shapes[1][-1] == 1 and set(shapes[0]) != set(shapes[1]),
        "makes-batch": makes_batch(shapes[0], shapes[1]),
        "adds-axes": LEAST_RANK <= len(shapes[0]) < len(shapes[1]),
        "numbers-images": numbers_images(scope, node),
    }


def _lists_fewer_lengths(scope: Scope, node: NodeProto) -> bool:
    """Whether an Expand is given lengths for the last axes of its data alone."""
    data, lengths = (scope.type_of(name) for name in node.input[:2])
    count = None if lengths is None or not lengths.shape else lengths.shape[0]
    return isinstance(count, int) and data is not None and data.rank is not None and count < data.rank


_OF_BYTES = ("unsigned", "gives-signed-bytes")


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
        "cast-back": elements == "float" and _is_cast_back(scope, node),
        "gives-odd-integers": is_odd_integer(scope, node.output[0]),
        "gives-unsigned-bytes": bytes_of(scope, node.output[0]) == "unsigned",
        "gives-signed-bytes": bytes_of(scope, node.output[0]) == "signed",
        "bytes-of-input": bytes_of(scope, node.output[0]) == "unsigned" and _is_of_input(scope, node.input[0]),
        "wraps": wraps(scope, node),
        "as-result": is_result_of_whole_numbers(scope, node),
        "ends-as-long": ends_as_long(scope, node),
    }


def _is_cast_back(scope: Scope, node: NodeProto) -> bool:
    """Whether Casts to floats alone read what a Cast gives, no floats."""
    readers = [] if scope.is_output(node.output[0]) else scope.consumers(node.output[0])
    kinds = {numbers_of(scope, each.output[0]) for each in readers if each.op_type == "Cast"}
    is_read_so = bool(readers) and all(each.op_type == "Cast" for each in readers)
    return is_read_so and kinds <= {"single", "half"} and numbers_of(scope, node.output[0]) == "integer"


def _is_of_input(scope: Scope, name: str) -> bool:
    """Whether a value is an input of the model, as it is."""
    before = scope.own_producer(name)
    while before is not None and gives_the_same(scope, before):
        name = before.input[0]
        before = scope.own_producer(name)
    return scope.parent is None and name in scope.inputs


def is_kept_from_zero(scope: Scope, name: str) -> bool:
    """Whether 1 is added to numbers where they are zero: what is left of 1 without the sign of their magnitude."""
    total = made_by(scope, name, "Add")
    rest = None if total is None else made_by(scope, total.input[1], "Sub")
    sign = None if rest is None else made_by(scope, rest.input[1], "Sign")
    size = None if sign is None else made_by(scope, sign.input[0], "Abs")
    if total is None or rest is None or size is None:
        return False
    one = scope.constant(rest.input[0])
    return size.input[0] == total.input[0] and one is not None and bool((one == 1).all())


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
        "lists-exponents": exponents is not None and exponents.size > 1,
        "types-differ": None not in types and types[0] != types[1],
    }


PLAINLY: Mapping[str, Callable[[Scope, NodeProto], Traits]] = {
    **dict.fromkeys((*PLAIN, *ON_ONE), lambda scope, node: {}),
    **PICKING_TRAITS,
    **dict.fromkeys(PASSING, passing_traits),
    "BatchNormalization": _batch_norm,
    "ReverseSequence": lambda scope, node: {"behind-layer": is_behind_layer(scope, node.input[0])},
    "RotaryEmbedding": lambda scope, node: {"by-positions": len(node.input) > 3 and bool(node.input[3])},
    "Cast": _cast,
    "CastLike": lambda scope, node: {each: _cast(scope, node)[each] for each in ("elements", *_OF_BYTES)},
    **dict.fromkeys(
        ("Celu", "Swish"),
        lambda scope, node: {"of-one": (found := attributes.find(node, "alpha")) is None or found.f == 1},
    ),
    "Constant": constant_traits,
    "CumSum": lambda scope, node: {
        "exclusive": attributes.integer(node, "exclusive", 0) != 0,
        "backwards": attributes.integer(node, "reverse", 0) != 0,
        "axis-from-end": (told := scope.constant(node.input[1])) is not None and bool((told < 0).any()),
        "rank": None if (known := scope.type_of(node.input[0])) is None else known.rank,
    },
    **dict.fromkeys(("Compress", "ConcatFromSequence"), along_axis),
    "BitShift": lambda scope, node: {"broadcasts": is_spread_but_for_one(scope, node)},
    "DFT": _dft,
    "DynamicQuantizeLinear": lambda scope, node: {
        "read-apart": any(
            scope.is_output(name) or any(each.op_type != "DequantizeLinear" for each in scope.consumers(name))
            for name in node.output
        )
    },
    "Col2Im": _columns,
    "ConstantOfShape": _filled,
    "Mod": lambda scope, node: {
        "spreads-first": is_spread(scope, node, 0) is not False,
        "cuts-off": attributes.integer(node, "fmod", 0) != 0,
        "beyond-halves": is_beyond_halves(scope, node),
        "of-positive": all(is_positive_for_certain(scope, name, or_zero=True) for name in node.input),
        "reads-constant-bytes": reads_constant_bytes(scope, node),
        "numbers-images": gives_each_image_its_own(scope, node),
        "joins-a-list": joins_a_list(scope, node),
    },
    "MatMulInteger": lambda scope, node: {"zero-point-left-out": leaves_zero_point_out(node)},
    "MaxUnpool": lambda scope, node: {"output-shape": len(node.input) > 2 and bool(node.input[2])},
    "QLinearMatMul": product_traits,
    "Einsum": _equation,
    "Expand": _expand,
    "Flatten": flatten_traits,
    "MatMul": matrix_traits,
    "PRelu": _prelu,
    **dict.fromkeys(("SequenceErase", "SequenceInsert"), _of_split_sequence),
    "Size": lambda scope, node: {"ends-as-long": ends_as_long(scope, node)},
    "Squeeze": _squeezed,
    "IsInf": lambda scope, node: _signs(node),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), ranked),
    "Range": _counted,
    "STFT": _stft,
    "Tile": _tile,
    "SequenceAt": place_traits,
    "SequenceLength": length_traits,
    "Trilu": triangle_traits,
    "Unsqueeze": _unsqueezed,
}
"""By the type of an operator: what reads its traits."""
