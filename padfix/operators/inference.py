"""Types of every value, with what is known of windowed and resampling operators.

ONNX's own inference is wrong for ``Resize`` and ``Upsample`` (the product ``length * scale`` is taken in double
precision, runtimes take it in single precision), for ``ConvTranspose`` with SAME (it ignores ``output_padding`` and
cuts a kernel shorter than the stride), for pools with ``pads`` beside ``auto_pad`` (the runtime's rule is that
``auto_pad`` wins), silent for a sparse kernel without ``kernel_shape``, and knows no operator of ONNX Runtime.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper, shape_inference

from padfix.files.model import Model
from padfix.graph import attributes
from padfix.graph.lengths import Length, length_of
from padfix.graph.scopes import Dimension, Scope, ValueType, normal_domain
from padfix.graph.shapes import infer_types
from padfix.graph.types import OperatorTypes, TypeOf, tensor_type, value_type
from padfix.operators.constant_chains import STEERED, worked_out
from padfix.operators.reading import Reading, operator_of, place_in, read, read_at
from padfix.operators.resample import Resample
from padfix.operators.schemas import schema
from padfix.operators.slices import sliced_axes
from padfix.operators.stand_ins import put_stand_in
from padfix.operators.table import CONTRIB, OPERATORS
from padfix.operators.told_lengths import told_lengths
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Shape, Window

_PRODUCTS = {"QGemm": (0, 3), "MatMulIntegerToFloat": (0, 1), "FusedMatMul": (0, 1), "TransposeMatMul": (0, 1)}
"""Products of matrices of ONNX Runtime, by the positions of the two factors."""

_LAYERS = {"Attention": 1, "EmbedLayerNormalization": 2, "MatMulNBits": 0, "MultiHeadAttention": 2, "QAttention": 1}
"""Layers of ONNX Runtime that give rows for the rows of their data, by the position of what tells how long they are."""

_TYPE_WORDS = {number: name.lower() for name, number in TensorProto.DataType.items() if number != TensorProto.UNDEFINED}
"""The word of the specification for each ``TensorProto.DataType``."""

_COVERED = (
    frozenset(key for key in OPERATORS if key[1] not in ("DeformConv", "MaxUnpool") and not OPERATORS[key].declined)
    | frozenset((CONTRIB, name) for name in (*_PRODUCTS, *_LAYERS, "QLinearReduceMean"))
    | frozenset(("", name) for name in (*STEERED, "Concat", "Transpose"))
)


def infer(model: Model, input_shapes: Mapping[str, Sequence[int]] | None = None) -> list[Scope]:
    """Return every scope of ``model`` with ``types`` filled as far as anything is known for certain.

    Never fails for an odd model: what can't be inferred stays unknown. The model is not changed, and its weights are
    not needed. ``input_shapes`` are those of data that inputs of the main graph are fed.
    """
    return infer_types(model, _OPERATOR_TYPES, input_shapes)


def _result(scope: Scope, node: NodeProto, bound: NodeProto, type_of: TypeOf) -> ValueType | None:
    if not bound.input or any(each.ref_attr_name for each in bound.attribute):
        return None
    if operator_of(bound) is None and normal_domain(bound.domain) == "":
        partly = {"Concat": _joined, "Transpose": _turned}.get(bound.op_type)
        return _steered(scope, bound, type_of) if partly is None else partly(bound, type_of)
    data = type_of(bound.input[0])
    if data is None or data.shape is None:
        return None
    if operator_of(bound) is None:
        return _contrib_result(bound, type_of)
    reading = read(scope, node, type_of) if bound is node else read_at(bound, place_in(scope, bound, type_of))
    shape = _shape(reading, bound, data.shape, type_of)
    return None if shape is None else ValueType(data.elem_type, shape)


def _joined(node: NodeProto, type_of: TypeOf) -> ValueType | None:
    """Return the lengths beside the axis of a Concat as one input tells them, where nothing is known of another."""
    types = [type_of(name) for name in node.input]
    known = [each for each in types if each is not None and each.shape is not None]
    axis = attributes.integer(node, "axis", 0)
    if not known or len(known) == len(types) or not -len(known[0].shape or ()) <= axis < len(known[0].shape or ()):
        return None
    shape = list(known[0].shape or ())
    shape[axis] = None
    return ValueType(known[0].elem_type, tuple(shape))


def _turned(node: NodeProto, type_of: TypeOf) -> ValueType | None:
    """Return how many axes a Transpose gives that lists them, where nothing is known of its data's lengths."""
    data, order = type_of(node.input[0]), attributes.integers(node, "perm")
    if data is None or data.shape is not None or not order:
        return None
    return ValueType(data.elem_type, (None,) * len(order))


def _steered(scope: Scope, node: NodeProto, type_of: TypeOf) -> ValueType | None:
    """Return the type of what ``node`` gives, where lengths that are known say it in a way that ONNX does not follow.

    ONNX's inference carries lengths through few operators: through no product, maximum or comparison.
    """
    known = type_of(node.output[0])
    if known is not None and known.lengths is not None:
        return None
    if all(scope.constant(node.input[place]) is not None for place in _steering(node)):
        # ONNX's inference knows as much, but for what a Reshape finds of open lengths.
        return _laid_out(scope, node, type_of) if node.op_type == "Reshape" else None
    partly = {"Expand": _expanded, "Range": _counted, "Reshape": _laid_out, "Slice": _untouched}.get(node.op_type)
    alone = _alone(scope, node, type_of)[0]
    found = partly(scope, node, type_of) if partly is not None else None
    if alone is None or alone.shape is None or found is None or found.rank != alone.rank:
        return found if alone is None else alone
    pairs = zip(alone.shape, found.shape or (), strict=True)
    return ValueType(alone.elem_type, tuple(told if isinstance(told, int) else more or told for told, more in pairs))


def _untouched(scope: Scope, node: NodeProto, type_of: TypeOf) -> ValueType | None:
    """Return the lengths of axes that a Slice does not list, where those that it lists go by amounts of run time."""
    data = type_of(node.input[0])
    axes = None if data is None or data.shape is None else sliced_axes(scope, node, len(data.shape))
    if data is None or data.shape is None or axes is None:
        return None
    return ValueType(data.elem_type, tuple(None if axis in axes else each for axis, each in enumerate(data.shape)))


def _expanded(scope: Scope, node: NodeProto, type_of: TypeOf) -> ValueType | None:
    """Return what is known of the lengths of an Expand, where not all that it goes by are numbers."""
    data = type_of(node.input[0]) if len(node.input) > 1 else None
    told = None if data is None or data.shape is None else told_lengths(scope, node.input[1], type_of=type_of)
    if data is None or data.shape is None or told is None:
        return None
    rank = max(len(told), len(data.shape))
    copied = [*[1] * (rank - len(told)), *told]
    pairs = zip(copied, [*[1] * (rank - len(data.shape)), *data.shape], strict=True)
    shape: list[Dimension] = []
    for each, own in pairs:
        known = [length for length in (each, own) if isinstance(length, int) and length != 1]
        shape.append(known[0] if known else own if each in (1, own) else each if own == 1 else None)
    return ValueType(data.elem_type, tuple(shape))


def _counted(scope: Scope, node: NodeProto, type_of: TypeOf) -> ValueType | None:
    """Return how long a Range is that counts from 0 to an open length, one by one."""
    start, step = (worked_out(scope, node.input[place], type_of) for place in (0, 2))
    told = told_lengths(scope, node.input[1], type_of=type_of)
    data = type_of(node.input[0]) or type_of(node.input[1])
    if data is None or start is None or start.any() or step is None or (step != 1).any() or told is None:
        return None
    return ValueType(data.elem_type, tuple(told)) if len(told) == 1 else None


def _laid_out(scope: Scope, node: NodeProto, type_of: TypeOf) -> ValueType | None:
    """Return what is known of the lengths of a Reshape, where not all that it goes by are numbers.

    What is left of its data for the one length that it finds by itself is told where each open one is copied.
    """
    data = type_of(node.input[0]) if len(node.input) > 1 else None
    told = None if data is None or data.shape is None else told_lengths(scope, node.input[1], type_of=type_of)
    if data is None or data.shape is None or told is None:
        return None
    copies = not attributes.integer(node, "allowzero", 0)
    if copies and any(each == 0 and place >= len(data.shape) for place, each in enumerate(told)):
        return None
    shape = [data.shape[place] if each == 0 and copies else each for place, each in enumerate(told)]
    found = _quotient(data.shape, [each for each in shape if each != -1])
    return ValueType(data.elem_type, tuple(each if each != -1 else found for each in shape))


def _quotient(whole: Sequence[Dimension], others: Sequence[Dimension]) -> Dimension:
    """Return the length by which ``others`` are as many elements as ``whole``; None where that is not known."""
    (number, names), (told, known) = _product(whole), _product(others)
    left = list((names - known).elements())
    if None in names or None in known or known - names or not told or number % told or len(left) > 1:
        return None
    return length_of(left[0]).times(number // told).dimension() if left else number // told


def _product(lengths: Sequence[Dimension]) -> tuple[int, Counter[Dimension]]:
    """Return the number and the open lengths whose product the lengths are: ``3*n`` is 3 times ``n``."""
    number, names = 1, Counter[Dimension]()
    for each in lengths:
        length = length_of(each)
        is_multiple = each is not None and len(length.factors) == 1 and not length.constant
        symbol, count = length.factors[0] if is_multiple else ("", length.constant)
        number *= count if is_multiple or isinstance(each, int) else 1
        if not isinstance(each, int):
            names[Length(((symbol, 1),), 0).dimension() if is_multiple else each] += 1
    return number, names


def _steering(node: NodeProto) -> list[int]:
    """Return the positions of the inputs whose values say what ``node`` does."""
    return [place for place in STEERED.get(node.op_type, ()) if place < len(node.input) and node.input[place]]


def _alone(scope: Scope, node: NodeProto, type_of: TypeOf) -> Sequence[ValueType | None]:
    """Return the types of all that a node of ONNX gives, as ONNX's inference has them of nothing but its inputs."""
    unknown = [None] * len(node.output)
    model = _model_of(scope, node, type_of)
    if model is None:
        return unknown
    try:
        inferred = shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception:  # the library raises many kinds, for what no runtime takes either
        return unknown
    found = {value.name: value_type(value.type) for value in inferred.output}
    return [found.get(name) for name in node.output]


def is_against_definition(scope: Scope, node: NodeProto) -> bool:
    """Whether ONNX's own definition of the operator is known to rule the node out: by types, attributes or lengths."""
    context = checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = {"": scope.opset, **scope.opsets}
    definition = schema(node.op_type, scope.opset) if not normal_domain(node.domain) else None
    for name, formal in zip(node.input, definition.inputs if definition is not None else (), strict=False):
        known = scope.type_of(name) if name else None
        word = "" if known is None else _TYPE_WORDS.get(known.elem_type, "")
        if word and f"tensor({word})" not in formal.types:
            return True
    try:
        checker.check_node(node, context)
        model = _model_of(scope, node, scope.type_of)
        if model is not None:
            shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception:  # the library raises many kinds
        return True
    return False


def _model_of(scope: Scope, node: NodeProto, type_of: TypeOf) -> ModelProto | None:
    """Return a node of ONNX with its inputs alone; None where the type of one is not known."""
    places = _steering(node)
    inputs, constants = [], []
    for place, name in enumerate(node.input):
        value = worked_out(scope, name, type_of) if place in places else None
        data = type_of(name) if name else None
        if value is not None:
            constants.append(numpy_helper.from_array(value, name))
        elif data is not None and place not in places:
            inputs.append(ValueInfoProto(name=name, type=tensor_type(data)))
        elif name:
            return None
    graph = helper.make_graph([node], "node", inputs, [], constants)
    graph.output.extend(ValueInfoProto(name=name) for name in node.output if name)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", scope.opset)])


def _shape(reading: Reading | None, node: NodeProto, data: Shape, type_of: TypeOf) -> Shape | None:
    match reading:
        case Resample():
            return reading.output_shape()
        case TransposedWindow():
            return (data[0], reading.maps, *reading.output_sizes())
        case Window():
            contradicts = bool(reading.written.pads) and reading.auto_pad and not reading.operator.is_pool
            if contradicts:
                return None
            channels: Dimension = _maps(reading, node, type_of)
            if reading.operator.is_pool:
                channels = data[-1] if reading.channels_last else data[1]
            sizes = reading.output_sizes()
            return (data[0], *sizes, channels) if reading.channels_last else (data[0], channels, *sizes)
    return None


def _maps(window: Window, node: NodeProto, type_of: TypeOf) -> Dimension:
    """Return the channels of a convolution's result, by name where the weights' length has one."""
    position = window.operator.weights
    weights = type_of(node.input[position]) if position is not None else None
    return weights.shape[0] if weights is not None and weights.shape else None


def _contrib_result(node: NodeProto, type_of: TypeOf) -> ValueType | None:
    data = type_of(node.input[0])
    assert data is not None
    assert data.shape is not None
    if node.op_type == "QLinearReduceMean":
        axes = attributes.integers(node, "axes")
        keeps = attributes.integer(node, "keepdims", 1) != 0
        shape = _reduced(data.shape, axes, keeps=keeps)
        return None if shape is None else ValueType(data.elem_type, shape)
    if node.op_type in _LAYERS:
        return _layer_result(node, data.shape, type_of)
    first, second = (_matrix(node, position, type_of) for position in _PRODUCTS[node.op_type])
    if first is None or second is None:
        return None
    left, right = first.shape or (), second.shape or ()
    if attributes.integer(node, "transA", 0):
        left = (*left[:-2], *left[:-3:-1])
    if attributes.integer(node, "transB", 0):
        right = (*right[:-2], *right[:-3:-1])
    if attributes.integer(node, "transBatchA", 0) or attributes.integer(node, "transBatchB", 0):
        return None
    batch = left[:-2] if len(left) >= len(right) else right[:-2]
    if len(left) > 2 and len(right) > 2 and left[:-2] != right[:-2]:
        return None  # batches are broadcast
    return ValueType(_product_type(node, first, type_of), (*batch, left[-2], right[-1]))


def _layer_result(node: NodeProto, rows: Shape, type_of: TypeOf) -> ValueType | None:
    place = _LAYERS[node.op_type]
    telling = type_of(node.input[place]) if place < len(node.input) and node.input[place] else None
    if telling is None or not telling.shape:
        return None
    length, elem_type = telling.shape[-1], telling.elem_type
    if node.op_type in ("Attention", "QAttention"):
        sizes = attributes.integers(node, "qkv_hidden_sizes")
        length = sizes[-1] if sizes else length // 3 if isinstance(length, int) else None
        elem_type = elem_type if node.op_type == "Attention" else int(TensorProto.FLOAT)
    elif node.op_type == "MatMulNBits":
        length = attributes.integer(node, "N", 0) or None
    elif node.op_type == "MultiHeadAttention" and len(telling.shape) != len(rows):
        return None
    return ValueType(elem_type, (*(rows if node.op_type == "EmbedLayerNormalization" else rows[:-1]), length))


def _matrix(node: NodeProto, position: int, type_of: TypeOf) -> ValueType | None:
    known = type_of(node.input[position]) if position < len(node.input) and node.input[position] else None
    return known if known is not None and known.shape is not None and len(known.shape) >= 2 else None


def _product_type(node: NodeProto, first: ValueType, type_of: TypeOf) -> int:
    if node.op_type == "QGemm" and len(node.input) > 8 and node.input[8]:
        zero_point = type_of(node.input[8])
        return TensorProto.UNDEFINED if zero_point is None else zero_point.elem_type
    quantized = node.op_type in ("QGemm", "MatMulIntegerToFloat")
    return int(TensorProto.FLOAT) if quantized else first.elem_type


def _reduced(shape: Shape, axes: Sequence[int] | None, *, keeps: bool) -> Shape | None:
    rank = len(shape)
    chosen = range(rank) if axes is None else axes
    if not all(-rank <= axis < rank for axis in chosen):
        return None
    reduced = {axis % rank for axis in chosen}
    if keeps:
        return tuple(1 if axis in reduced else length for axis, length in enumerate(shape))
    return tuple(length for axis, length in enumerate(shape) if axis not in reduced)


_OPERATOR_TYPES = OperatorTypes(_COVERED, _result, _alone, put_stand_in)
