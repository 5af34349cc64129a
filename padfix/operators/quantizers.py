"""What QuantizeLinear and DequantizeLinear are like, and what lies between them, as facts tell it apart."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from onnx import NodeProto, TensorProto

from padfix.graph import attributes
from padfix.graph.dependence import reached
from padfix.graph.scopes import Dimension, Scope
from padfix.operators.bytes_among_floats import (
    MOVING_BYTES,
    is_among_floats,
    is_dequantized,
    is_of_caller,
    is_volume_among_floats,
    leaves_floats_over,
    moved_from,
    moved_to,
)
from padfix.operators.clip import clip_bounds
from padfix.operators.constant_chains import is_constant
from padfix.operators.data_order import CHANNELS, is_behind_joined_bytes, is_of_bytes
from padfix.operators.numbers import bytes_of, numbers_of
from padfix.operators.shared_bytes import is_in_other_steps, is_of_plain_bytes
from padfix.operators.steps_of_bytes import OPERATOR_OF_BYTES, is_quantized
from padfix.operators.table import Operator
from padfix.operators.weights_from_zero import is_from_zero, is_of_bytes_off_zero, is_off_zero
from padfix.targets.traits import Traits

QUANTIZERS = ("DequantizeLinear", "QuantizeLinear")

_PRODUCTS = ("Conv", "Gemm", "MatMul")

_KEEPING_BYTES = frozenset(
    """
    Add AveragePool Clip Concat DepthToSpace Div Expand Flatten Gather GlobalAveragePool GlobalMaxPool Identity
    LeakyRelu MaxPool Mul Neg PRelu Pad ReduceMax ReduceMean ReduceMin ReduceSum Relu Reshape Resize Slice SpaceToDepth
    Split Squeeze Sub Tile Transpose Unsqueeze
    """.split()  # noqa: SIM905
)
"""What importers of quantized networks move a DequantizeLinear behind."""

_SUMMED = ("Conv", "ConvTranspose", "Gemm")
"""What may have a bias as its third input."""

_CUTTING = ("Clip", "Relu")

_TURNING = ("Identity", "Neg", "Relu")
"""What keeps or turns the limits of what is quantized, beside what moves its elements."""

_LOOKED_UP = frozenset(
    """
    Abs Ceil Clip Cos Erf Exp Flatten Floor Gelu HardSwish Identity LeakyRelu Neg Reciprocal Reshape Round Sigmoid Sign
    Softmax Sqrt Squeeze Tanh Transpose Unsqueeze
    """.split()  # noqa: SIM905
)
"""What a table of all bytes stands for between a DequantizeLinear and a QuantizeLinear."""

_SCALES = (1, 4, 6)
"""Positions of the scales of a QLinearMatMul."""

_NARROW = 64
"""The largest signed byte of which two products with unsigned ones fit 16 bits with a sign."""

_STEPS: Mapping[int, str] = {
    **dict.fromkeys((TensorProto.INT8, TensorProto.UINT8), "bytes"),
    **dict.fromkeys((TensorProto.INT16, TensorProto.UINT16), "two-bytes"),
    **dict.fromkeys((TensorProto.INT4, TensorProto.UINT4), "half-bytes"),
    **{
        TensorProto.DataType.Value(f"FLOAT8{kind}"): "floats-of-a-byte"
        for kind in ("E4M3FN", "E4M3FNUZ", "E5M2", "E5M2FNUZ")
    },
}
"""What quantized numbers are held in, by their type."""

ZERO_POINT = 2
"""The input that both have it at."""


_JOINING = ("Add", "Div", "Max", "Mean", "Min", "Mul", "Sub", "Sum")
"""What works element by element on several numbers."""


def _quantized_to(scope: Scope, name: str) -> str:
    """Return what quantized numbers are held in; integers of 32 bits that are constant are those of a bias."""
    known = scope.type_of(name)
    elem_type = 0 if known is None else known.elem_type
    is_whole = elem_type == TensorProto.INT32 and not is_constant(scope, name)
    return "whole-numbers" if is_whole else _STEPS.get(elem_type, "others")


def quantizer_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return how a QuantizeLinear or DequantizeLinear is given its scale and zero point, and of which bytes it is."""
    name = node.input[0] if node.op_type == "DequantizeLinear" else node.output[0]
    quantized = scope.type_of(name)
    names = [name for name in node.input[1 : ZERO_POINT + 1] if name]
    shapes = [None if each is None else each.shape for each in map(scope.type_of, names)]
    lists_scales = bool(shapes and shapes[0]) and shapes[0] != (1,)
    are_constant = [is_constant(scope, each) for each in names]
    return {
        "zero-point-written": len(names) > 1,
        "zero-point-alike": None if None in shapes else len(set(shapes)) == 1,
        "one-element": _is_one_element(None if quantized is None else quantized.shape),
        "unsigned": None if quantized is None else quantized.elem_type == TensorProto.UINT8,
        "quantized-to": _quantized_to(scope, name),
        "of-caller": is_of_caller(scope, name),
        "as-result": is_of_caller(scope, node.output[0]),
        "of-input": is_of_caller(scope, node.input[0]),
        "bytes-apart": _are_bytes_apart(scope, node),
        "blocked": attributes.integer(node, "block_size", 0) != 0,
        "open-lengths": quantized is not None and quantized.lengths is None,
        "scales-by-open-axis": lists_scales and _is_by_open_axis(node, None if quantized is None else quantized.shape),
        "lists-scales": lists_scales,
        "computed-scale": not all(are_constant),
        "one-constant-alone": any(are_constant) and not all(are_constant),
        "saturates": node.op_type == "DequantizeLinear" and _meets_bytes(scope, node),
        "of-plain-bytes": node.op_type == "DequantizeLinear" and is_of_plain_bytes(scope, node),
        "in-other-steps": node.op_type == "DequantizeLinear" and is_in_other_steps(scope, node),
        "undoes-quantizer": node.op_type == "DequantizeLinear" and is_quantized(scope, name),
        "among-floats": node.op_type == "DequantizeLinear" and is_among_floats(scope, node),
        "volume-among-floats": node.op_type == "DequantizeLinear" and is_volume_among_floats(scope, node),
        "leaves-floats-over": node.op_type == "QuantizeLinear" and leaves_floats_over(scope, node),
        "from-other-bytes": node.op_type == "QuantizeLinear" and _is_of_other_bytes(scope, node),
        "behind-cut-sum": node.op_type == "QuantizeLinear" and _is_behind_cut_sum(scope, node.input[0]),
        **_of_weights(scope, node),
    }


def _is_by_open_axis(node: NodeProto, shape: Sequence[Dimension] | None) -> bool:
    """Whether scales are for an axis whose length is left open, or one behind the channels where any length is."""
    if not shape:
        return False
    axis = (attributes.integer(node, "axis", 1) or 0) % len(shape)
    is_open = [not isinstance(each, int) for each in shape]
    return is_open[axis] or (axis > CHANNELS and any(is_open))


def _of_weights(scope: Scope, node: NodeProto) -> Traits:
    """Return of what dequantizes constants who reads them, and what their zero point and the scales beside are like."""
    if node.op_type != "DequantizeLinear" or not is_constant(scope, node.input[0]):
        return dict.fromkeys(("taken-for-floats", "off-centre", "scales-differ", "unsigned-from-zero"), False)
    readers = scope.consumers(node.output[0])
    zero = scope.constant(node.input[ZERO_POINT]) if len(node.input) > ZERO_POINT else None
    middle = 128 if zero is not None and zero.dtype == np.uint8 else 0
    makers = [scope.own_producer(reader.input[1]) for reader in readers if reader.op_type in _SUMMED]
    weights = [each for each in makers if each is not None and each.op_type == "DequantizeLinear" and each is not node]
    number = _number_of_scales(scope, node)
    return {
        "taken-for-floats": not all(_gives_bytes_of_bytes(scope, reader) for reader in readers),
        "off-centre": zero is not None and bool((zero != middle).any()),
        "unsigned-from-zero": is_from_zero(scope, node.input[0], node.input[ZERO_POINT:])
        and any(each.op_type == "Conv" and is_of_bytes_off_zero(scope, each) for each in readers),
        "scales-differ": any((_number_of_scales(scope, each) == 1) != (number == 1) for each in weights),
    }


def _number_of_scales(scope: Scope, node: NodeProto) -> int:
    scale = scope.constant(node.input[1])
    return 1 if scale is None else int(scale.size)


def _gives_bytes_of_bytes(scope: Scope, node: NodeProto) -> bool:
    """Whether a convolution or product is of what is dequantized, and a QuantizeLinear reads what it gives."""
    if node.op_type not in (*_PRODUCTS, "ConvTranspose") or not is_dequantized(scope, node.input[0]):
        return False
    behind = scope.consumers(node.output[0])
    if len(behind) == 1 and behind[0].op_type in _CUTTING and not scope.is_output(node.output[0]):
        is_left_out = _cuts_within_bytes(scope, behind[0]) is False or _cuts_sum_of_bytes_off(scope, behind[0])
        behind = scope.consumers(behind[0].output[0]) if is_left_out else []
    return bool(behind) and all(each.op_type == "QuantizeLinear" for each in behind)


def _is_behind_cut_sum(scope: Scope, name: str) -> bool:
    maker = scope.own_producer(name)
    return maker is not None and maker.op_type in _CUTTING and _cuts_sum_of_bytes_off(scope, maker)


def _cuts_sum_of_bytes_off(scope: Scope, node: NodeProto) -> bool:
    """Whether a node cuts off what a convolution or product with a bias gives of bytes, before they are bytes again."""
    before = scope.own_producer(node.input[0])
    if before is None or before.op_type not in _SUMMED or len(before.input) < len(_SUMMED) or not before.input[2]:
        return False
    return is_dequantized(scope, before.input[0]) and _cuts_within_bytes(scope, node) is True


def _cuts_within_bytes(scope: Scope, node: NodeProto) -> bool | None:
    """Whether a Relu or Clip cuts off what the QuantizeLinear that alone reads it would not; None where none does."""
    behind = scope.consumers(node.output[0])
    if len(behind) != 1 or behind[0].op_type != "QuantizeLinear" or scope.is_output(node.output[0]):
        return None
    return any(ends) if (ends := _ends_within(scope, node, behind[0])) else None


def cuts_one_end_of_bytes(scope: Scope, node: NodeProto) -> bool:
    """Whether a Clip between bytes cuts off what lies beyond one of its bounds, and no byte lies beyond the other."""
    around = [scope.own_producer(node.input[0]), *scope.consumers(node.output[0])]
    quantizers = [each for each in around if each is not None and each.op_type in QUANTIZERS]
    is_between = {each.op_type for each in quantizers} == set(QUANTIZERS)
    return is_between and cuts_one_end(scope, node, quantizers)


def cuts_one_end(scope: Scope, node: NodeProto, quantizers: Iterable[NodeProto]) -> bool:
    """Whether one bound of a Clip, and not the other, is within what some bytes stand for."""
    ends = (_ends_within(scope, node, each) for each in quantizers)
    return any(each is not None and len(set(each)) > 1 for each in ends)


def _ends_within(scope: Scope, node: NodeProto, quantizer: NodeProto) -> tuple[bool, bool] | None:
    """Return of the least and the most that a Relu or Clip gives whether they are within what bytes stand for."""
    name = quantizer.input[ZERO_POINT] if len(quantizer.input) > ZERO_POINT else ""
    scale, zero = scope.constant(quantizer.input[1]), scope.constant(name) if name else np.zeros(1, np.uint8)
    if scale is None or zero is None or scale.size != 1 or zero.size != 1 or zero.dtype.kind not in "iu":
        return None
    least, most = (0.0, np.inf) if node.op_type == "Relu" else clip_bounds(scope, node)
    limits = np.iinfo(zero.dtype)
    lowest, highest = ((limit - int(zero.item())) * float(scale.item()) for limit in (limits.min, limits.max))
    return least > lowest, most < highest


def _meets_bytes(scope: Scope, node: NodeProto) -> bool:
    """Whether signed bytes are multiplied by other bytes, and pairs of such products may not fit 16 bits.

    Of two that are computed it is the second factor, and of others the one that is constant.
    """
    if not _is_wide(scope, node.input[0], node.input[ZERO_POINT] if len(node.input) > ZERO_POINT else ""):
        return False
    is_written = is_constant(scope, node.input[0])

    def behind(name: str) -> list[str]:
        readers = scope.consumers(name)
        return [each.output[0] for each in readers if each.op_type in _KEEPING_BYTES and name in each.input]

    for name in reached([node.output[0]], behind):
        for reader in scope.consumers(name):
            factors = list(reader.input[:2]) if reader.op_type in _PRODUCTS else []
            if name not in factors or len(set(factors)) < len(factors) or _is_map_each(scope, reader):
                continue
            place = factors.index(name)
            other = _dequantizers_before(scope, factors[1 - place])
            if other and (is_written or (place == 1 and not any(is_constant(scope, each.input[0]) for each in other))):
                return True
    return False


def _is_map_each(scope: Scope, node: NodeProto) -> bool:
    """Whether a convolution has one channel for each of its maps, so that no products of several are added."""
    weights = scope.type_of(node.input[1]) if node.op_type == "Conv" else None
    return weights is not None and weights.shape is not None and weights.shape[1:2] == (1,)


def multiplies_wide(scope: Scope, node: NodeProto) -> bool:
    """Whether a QLinearConv or QLinearMatMul multiplies signed bytes whose pairs of products may not fit 16 bits."""
    known = scope.type_of(node.input[0])
    return known is not None and known.elem_type == TensorProto.INT8 and _is_wide(scope, node.input[3], node.input[5])


def _is_wide(scope: Scope, name: str, zero: str) -> bool:
    """Whether these are signed bytes around 0, and not known to be so small that two products fit 16 bits."""
    known, values, middle = scope.type_of(name), scope.constant(name), scope.constant(zero) if zero else np.zeros(1)
    if known is None or known.elem_type != TensorProto.INT8 or (middle is not None and middle.any()):
        return False
    return values is None or bool((np.abs(values.astype(int)) > _NARROW).any())


def _dequantizers_before(scope: Scope, name: str) -> list[NodeProto]:
    """Return what gives numbers of bytes, with nothing between but what works on bytes as well."""

    def before(name: str) -> list[str]:
        producer = scope.own_producer(name)
        return [] if producer is None or producer.op_type not in _KEEPING_BYTES else list(filter(None, producer.input))

    producers = map(scope.own_producer, reached([name], before))
    return [each for each in producers if each is not None and each.op_type == "DequantizeLinear"]


def _are_bytes_apart(scope: Scope, node: NodeProto) -> bool:
    """Whether bytes that a QuantizeLinear gives, or what moves them, are read or given to the caller as they are.

    And whether bytes that a DequantizeLinear reads come from anything but quantizers and constants.
    """
    before = partial(moved_from, scope)
    if node.op_type == "QuantizeLinear":
        return any(
            scope.is_output(name) or not all(_keeps_or_takes_bytes(each) for each in scope.consumers(name))
            for name in reached([node.output[0]], partial(moved_to, scope))
        )
    names = [name for name in reached([node.input[0]], before) if name and not before(name)]
    makers = [scope.own_producer(name) for name in names if not is_constant(scope, name)]
    return any(
        maker is None or ("Quantize" not in maker.op_type and "QLinear" not in maker.op_type) for maker in makers
    )


def _keeps_or_takes_bytes(node: NodeProto) -> bool:
    return node.op_type in MOVING_BYTES or node.op_type == "DequantizeLinear" or "QLinear" in node.op_type


def is_between_quantizers(scope: Scope, node: NodeProto) -> bool:
    """Whether the bytes that a node reads are made in the model, and what it gives is taken for numbers there."""
    behind = scope.consumers(node.output[0])
    are_taken = bool(behind) and all(each.op_type in ("DequantizeLinear", OPERATOR_OF_BYTES) for each in behind)
    return is_quantized(scope, node.input[0]) and are_taken and not scope.is_output(node.output[0])


def cuts_quantized(scope: Scope, node: NodeProto) -> bool:
    """Whether a Clip, or an extreme with a constant, is of what a QuantizeLinear and a DequantizeLinear give."""
    computed = [name for name in node.input if name and not is_constant(scope, name)]
    if len(computed) != 1 or len(node.input) < len(_CUTTING):
        return False

    def before(name: str) -> list[str]:
        maker = scope.own_producer(name)
        return [maker.input[0]] if maker is not None and maker.op_type in (*MOVING_BYTES, *_TURNING) else []

    makers = (scope.own_producer(name) for name in reached(computed, before))
    return any(
        each is not None and each.op_type == "DequantizeLinear" and is_quantized(scope, each.input[0])
        for each in makers
    )


def _is_of_other_bytes(scope: Scope, node: NodeProto) -> bool:
    """Whether bytes of the other sign become those of a QuantizeLinear, each by itself."""

    def before(name: str) -> list[str]:
        maker = scope.own_producer(name)
        return [maker.input[0]] if maker is not None and maker.op_type in _LOOKED_UP else []

    makers = [scope.own_producer(name) for name in reached([node.input[0]], before)]
    quantized = [node.output[0], *(each.input[0] for each in makers if each is not None and each.op_type in QUANTIZERS)]
    return {"signed", "unsigned"} == {bytes_of(scope, name) for name in quantized}


def _is_one_element(shape: tuple[Dimension, ...] | None) -> bool | None:
    """Whether data have one element, in all or for each of the batch; of an open length it is taken that it is more."""
    return None if shape is None else all(length == 1 for length in (shape if len(shape) < 2 else shape[1:]))


def is_between_bytes(scope: Scope, node: NodeProto, passing: Container[str] = ()) -> bool:
    """Whether a node reads nothing but what DequantizeLinears give, and a QuantizeLinear reads what it gives.

    ``passing`` are operators that do not keep them apart.
    """
    for name in filter(None, node.input):
        before = scope.own_producer(name)
        while before is not None and before.op_type in passing:
            before = scope.own_producer(before.input[0])
        if before is None or before.op_type != "DequantizeLinear":
            return False
    return any(reader.op_type == "QuantizeLinear" for reader in scope.consumers(node.output[0]))


def joins_between_bytes(scope: Scope, node: NodeProto) -> bool:
    """Whether a QuantizeLinear alone reads a node that alone reads what is computed of several DequantizeLinears."""
    joining, readers = scope.own_producer(node.input[0]), scope.consumers(node.output[0])
    if joining is None or joining.op_type not in _JOINING or [each.op_type for each in readers] != ["QuantizeLinear"]:
        return False
    before = [scope.own_producer(name) for name in dict.fromkeys(joining.input)]
    are_bytes = all(each is not None and each.op_type == "DequantizeLinear" for each in before)
    return are_bytes and len(before) > 1 and len(scope.consumers(joining.output[0])) == 1


def leaves_bytes(scope: Scope, node: NodeProto) -> bool:
    """Whether a node's data are computed from what a QuantizeLinear gives, and none reads what the node gives."""
    if any(reader.op_type == "QuantizeLinear" for reader in scope.consumers(node.output[0])):
        return False

    def before(name: str) -> list[str]:
        maker = scope.own_producer(name)
        return [] if maker is None else [each for each in maker.input if each]

    makers = map(scope.own_producer, reached([node.input[0]], before))
    return any(
        each is not None and each.op_type == "QuantizeLinear" and not is_constant(scope, each.input[0])
        for each in makers
    )


def is_from_least_byte(scope: Scope, node: NodeProto) -> bool | None:
    """Whether each QuantizeLinear that reads a node has its least byte for 0; None where a zero point is not known."""
    readers = [each for each in scope.consumers(node.output[0]) if each.op_type == "QuantizeLinear"]
    told = [scope.constant(each.input[ZERO_POINT]) for each in readers if len(each.input) > ZERO_POINT]
    if any(each is None or each.dtype.kind not in "iu" for each in told):
        return None
    return all((each == np.iinfo(each.dtype).min).all() for each in told if each is not None)


def is_between_bytes_of_caller(scope: Scope, node: NodeProto) -> bool:
    """Whether these bytes are an input and an output of the model."""
    before = scope.own_producer(node.input[0])
    readers = [each for each in scope.consumers(node.output[0]) if each.op_type == "QuantizeLinear"]
    is_given = before is not None and before.op_type == "DequantizeLinear" and is_of_caller(scope, before.input[0])
    return is_given and any(is_of_caller(scope, each.output[0]) for each in readers)


def traits_of_bytes(scope: Scope, node: NodeProto, operator: Operator) -> Traits:
    """Return of a convolution or pool whether it is of bytes or of what is dequantized, and how scales are given."""
    data = node.input[0]
    weights = None if operator.weights is None else node.input[operator.weights]
    ranks = [scope.type_of(node.input[place]) for place in operator.scales if place < len(node.input)]
    lists = [None if each is None or each.rank is None else each.rank > 0 for each in ranks]
    dequantized = [is_dequantized(scope, name) for name in (data, *([] if weights is None else [weights]))]
    return {
        "dequantized": all(dequantized),
        "of-bytes": is_of_bytes(scope, data),
        "lists-scales": True if any(lists) else None if None in lists else False,
        "leaves-bytes": operator.is_maximum and leaves_bytes(scope, node),
        "saturates": node.op_type == OPERATOR_OF_BYTES and multiplies_wide(scope, node),
        "unsigned-from-zero": node.op_type == OPERATOR_OF_BYTES
        and is_from_zero(scope, node.input[3], node.input[5:6])
        and is_off_zero(scope, node.input[2]),
        "zero-point-left-out": node.op_type == "ConvInteger" and leaves_zero_point_out(node),
        "joined-bytes": weights is not None and dequantized[1] and is_behind_joined_bytes(scope, data),
    }


def product_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a QLinearMatMul what its scales are, and whether products of its bytes may not fit 16 bits."""
    shapes = [known.shape for place in _SCALES if (known := scope.type_of(node.input[place])) is not None]
    return {
        "half-scales": numbers_of(scope, node.input[1]) == "half",
        "lists-scales": any(set(each or ()) - {1} for each in shapes),
        "saturates": multiplies_wide(scope, node),
    }


def leaves_zero_point_out(node: NodeProto) -> bool:
    """Whether a product of bytes leaves the zero point of its data out, before one of its weights."""
    return len(node.input) > 3 and bool(node.input[3]) and not node.input[2]
