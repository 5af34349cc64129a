"""A TensorFlow Lite model as tf2onnx's front end can read it without losing anything.

What the front end of tf2onnx 1.17 gets wrong, and is written out here before it sees the model:

=============================== =====================================================================================
in the file                     what tf2onnx does
=============================== =====================================================================================
two tensors of one name         takes them for one; names are only decoration in this format
another subgraph's signature    converts the first subgraph
sparse weights, DENSIFY         refuses
bias of a TRANSPOSE_CONV        leaves it out without a word
bias of a FULLY_CONNECTED       the same, where what goes in has other than two axes and the result has two
a fused activation              gives its name to what goes into it; refuses RELU_N1_TO_1
SOFTMAX with a beta             multiplies the result by it, not what goes in
L2_POOL_2D                      refuses
scales without zero points      takes the numbers for not quantised
=============================== =====================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, ValueInfoProto, helper

from padfix.errors import UnsupportedError
from padfix.sources import tflite_ops
from padfix.sources.conversion import Port
from padfix.sources.side_effects import refuse_chance, refuse_kept_state
from padfix.sources.tflite_dense import write_dense
from padfix.sources.tflite_schema import (
    add_buffer,
    builtin_names,
    code,
    constant,
    float_copy,
    is_constant,
    is_quantised,
    numpy_type,
    operator_name,
    operators,
    packed,
    reached,
    real_values,
    schema,
)
from padfix.sources.tflite_schema import operator as operator_of

_STATE = frozenset({"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"})
_TABLES = frozenset({"HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE"})
_RANDOM = frozenset({"RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL", "STABLEHLO_RNG_BIT_GENERATOR"})
_NO_ACTIVATION = 0
_RENAMED = {"COMPLEX_ABS": "MAGNITUDE", "RANGE": "COUNT"}
"""Names by which tf2onnx does not know operators: it moves a Reshape from before COMPLEX_ABS, and may lose it; the
numbers of a RANGE it takes for TensorFlow's.
"""

_STABLE = {
    "STABLEHLO_ADD": ("ADD", "AddOptions"),
    "STABLEHLO_MULTIPLY": ("MUL", "MulOptions"),
    "STABLEHLO_MAXIMUM": ("MAXIMUM", ""),
    "STABLEHLO_MINIMUM": ("MINIMUM", ""),
}
"""Operators under another name, which broadcast nothing."""


@dataclass
class Prepared:
    """A model ready for tf2onnx.

    Attributes:
        model: TensorFlow's ``ModelT``.
        index: The subgraph to convert.
        shapes: Lengths of its tensors by their new names; -1 for a free one.
        steps: One step of quantisation by public name of output, 0 where it has none; empty where nothing is quantised.
        is_wide: Whether data are quantised to 16 bits.
    """

    model: Any
    index: int
    shapes: dict[str, list[int]]
    steps: dict[str, float]
    is_wide: bool

    @property
    def graph(self) -> Any:
        """The subgraph to convert."""
        return self.model.subgraphs[self.index]


def prepare(
    model: Any,
    index: int,
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    shapes: Mapping[int, Sequence[int]],
) -> Prepared:
    """Name the tensors and write out what tf2onnx loses, in place.

    Args:
        model: TensorFlow's ``ModelT``.
        index: The subgraph to convert.
        inputs: Public names; a port's ``tensor`` is the tensor's index.
        outputs: Likewise.
        shapes: Lengths by index of tensor, as the interpreter knows them; -1 for a free one.

    Raises:
        UnsupportedError: The model keeps state, is random, or computes in a way that ONNX can't repeat.
    """
    own = len(model.subgraphs[index].tensors)
    read = [model.subgraphs[number] for number in reached(model, index)]
    _refuse({name for graph in read for _, name in operators(model, graph)}, read)
    write_dense(model)
    for graph in read:
        _fill_zero_points(graph)
        _dequantise_constants(model, graph)
        _write_out(model, graph)
    for number, graph in enumerate(model.subgraphs):
        graph.name = f"subgraph_{number}".encode()
    _name_tensors(model, index, inputs, outputs)
    names = [tensor.name.decode() for tensor in model.subgraphs[index].tensors]
    # Behind the file's own tensors the interpreter has others of its own, which are not those that were added here.
    by_name = {names[number]: list(shape) for number, shape in shapes.items() if number < own}
    tensors = [tensor for graph in read for tensor in graph.tensors if not is_constant(model, tensor)]
    is_wide = any(is_quantised(tensor) and numpy_type(tensor.type) == np.int16 for tensor in tensors)
    return Prepared(model, index, by_name, _steps(model, read, model.subgraphs[index], outputs), is_wide)


def graphs(prepared: Prepared) -> tuple[Any, list[Any]]:
    """Return tf2onnx's graph of the chosen subgraph and those of the bodies that it calls, callees first."""
    from tf2onnx import tflite_utils
    from tf2onnx.graph import Graph
    from tf2onnx.tflite.Model import Model

    model = Model.GetRootAsModel(packed(prepared.model), 0)
    names = map(operator_name, prepared.model.operatorCodes)
    codes = {number: _RENAMED.get(name, name) for number, name in enumerate(names)}
    made = []
    for number in reached(prepared.model, prepared.index):
        is_main = number == prepared.index
        subgraph = model.Subgraphs(number)
        prefix = "" if is_main else f"{subgraph.Name().decode()}_"
        nodes, _, _, shapes, types, inputs, outputs, name = tflite_utils.parse_tflite_graph(
            subgraph, codes, model, prefix, prepared.shapes if is_main else None
        )
        made.append(
            Graph(
                nodes,
                shapes,
                types,
                input_names=inputs,
                output_names=list(dict.fromkeys(outputs)) if is_main else outputs,
                is_subgraph=not is_main,
                graph_name=name,
            )
        )
    return made[-1], made[:-1]


def hand_on(proto: ModelProto, prepared: Prepared, outputs: Sequence[Port]) -> None:
    """Give outputs that are an input, or one tensor under several names, a node of their own."""
    known = {value.name: value for value in (*proto.graph.input, *proto.graph.output)}
    results = []
    for port in outputs:
        name = prepared.graph.tensors[int(port.tensor)].name.decode()
        value = ValueInfoProto()
        value.CopyFrom(known[name])
        value.name = port.name
        if name != port.name:
            proto.graph.node.append(helper.make_node("Identity", [name], [port.name], name=port.name))
        results.append(value)
    del proto.graph.output[:]
    proto.graph.output.extend(results)


def _refuse(kinds: set[str], graphs: Sequence[Any]) -> None:
    from tf2onnx.tflite.BuiltinOperator import BuiltinOperator
    from tf2onnx.tflite_utils import TFLITE_TO_TF_DTYPE

    if kinds & _TABLES:
        named = ", ".join(sorted(kinds & _TABLES))
        raise UnsupportedError(
            f"The model looks up a table ({named}), which padfix converts from a SavedModel.",
            "Give padfix the SavedModel that it was made from.",
        )
    has_variables = any(tensor.isVariable for graph in graphs for tensor in graph.tensors)
    refuse_kept_state(kinds & _STATE or ({"variable tensors"} if has_variables else ()))
    refuse_chance(kinds & _RANDOM)
    builtin = set(builtin_names().values())
    converted = {operator.removeprefix("TFL_") for operator in tflite_ops.handlers()} | _STABLE.keys()
    unknown = sorted(name for name in kinds & builtin - converted if not hasattr(BuiltinOperator, name))
    if unknown:
        raise UnsupportedError(f"These TensorFlow Lite operators have no ONNX form in tf2onnx: {', '.join(unknown)}.")
    types = {tensor.type for graph in graphs for tensor in graph.tensors}
    if types - set(TFLITE_TO_TF_DTYPE):
        raise UnsupportedError("The model holds tensors of a type (such as int4) that tf2onnx can't read.")


def _steps(model: Any, graphs: Sequence[Any], main: Any, outputs: Sequence[Port]) -> dict[str, float]:
    from_steps = {each.outputs[0]: each.inputs[0] for each, name in operators(model, main) if name == "DEQUANTIZE"}
    # Weights alone don't make a model quantised: what it computes are floats.
    if not any(is_quantised(tensor) and not is_constant(model, tensor) for graph in graphs for tensor in graph.tensors):
        return {}
    steps = {}
    for port in outputs:
        index = int(port.tensor)
        source = main.tensors[from_steps.get(index, index)]
        scale = float(max(source.quantization.scale)) if is_quantised(source) else 0.0
        # The result of a DEQUANTIZE is in real units, a quantised result in whole steps.
        steps[port.name] = scale if index in from_steps or not scale else 1.0
    return steps


def _dequantise_constants(model: Any, graph: Any) -> None:
    """Let constants that an operator dequantises be floats.

    ONNX Runtime's optimiser makes a product that quantises its data of a MatMul behind a DequantizeLinear.
    """
    kept = []
    for operator, name in operators(model, graph):
        source = graph.tensors[operator.inputs[0]] if name == "DEQUANTIZE" else None
        if source is None or not is_quantised(source) or not is_constant(model, source):
            kept.append(operator)
            continue
        graph.tensors[operator.outputs[0]].buffer = add_buffer(model, real_values(model, source))
    graph.operators = kept


def _fill_zero_points(graph: Any) -> None:
    for tensor in graph.tensors:
        if is_quantised(tensor) and (tensor.quantization.zeroPoint is None or not len(tensor.quantization.zeroPoint)):
            tensor.quantization.zeroPoint = np.zeros(len(tensor.quantization.scale), np.int64)


def _write_out(model: Any, graph: Any) -> None:
    """Replace fused parts that tf2onnx loses by operators of their own."""
    written = []
    for operator, name in operators(model, graph):
        after = []
        options = operator.builtinOptions
        result = int(operator.outputs[0]) if operator.outputs is not None and len(operator.outputs) else -1
        activation = getattr(options, "fusedActivationFunction", _NO_ACTIVATION)
        if activation != _NO_ACTIVATION:
            plain = float_copy(graph, result)
            options.fusedActivationFunction = _NO_ACTIVATION
            after.append(operator_of(model, _activation_name(activation), [plain], result))
            operator.outputs, result = [plain], plain
        bias = _lost_bias(graph, operator, name)
        if bias >= 0:
            plain = float_copy(graph, result)
            after.insert(0, operator_of(model, "ADD", [plain, bias], result, "AddOptions"))
            operator.inputs, operator.outputs = list(operator.inputs[:-1]), [plain]
        if name in _STABLE:
            plainly, kind = _STABLE[name]
            operator = operator_of(model, plainly, list(operator.inputs), result, kind)
        if name == "L2_POOL_2D":  # the root of the mean of squares
            squares, mean = float_copy(graph, operator.inputs[0]), float_copy(graph, result)
            written.append(operator_of(model, "SQUARE", list(operator.inputs), squares))
            after.insert(0, operator_of(model, "SQRT", [mean], result))
            operator.opcodeIndex, operator.inputs, operator.outputs = code(model, "AVERAGE_POOL_2D"), [squares], [mean]
        if name == "SOFTMAX" and options.beta != 1:
            scaled = float_copy(graph, operator.inputs[0])
            factors = [operator.inputs[0], constant(model, graph, options.beta)]
            written.append(operator_of(model, "MUL", factors, scaled, "MulOptions"))
            operator.inputs = [scaled]
            options.beta = 1.0
        written.extend([operator, *after])
    graph.operators = written


def _lost_bias(graph: Any, operator: Any, name: str) -> int:
    """Return the bias that tf2onnx leaves out, which is the last input; -1 where there is none."""
    inputs = list(operator.inputs) if operator.inputs is not None else []
    is_folded = name == "FULLY_CONNECTED" and not operator.builtinOptions.keepNumDims
    if is_folded and len(graph.tensors[inputs[0]].shape) != 2:
        return int(inputs[2]) if len(inputs) > 2 else -1
    return int(inputs[3]) if name == "TRANSPOSE_CONV" and len(inputs) > 3 else -1


def _activation_name(number: int) -> str:
    """Return the operator that a fused activation stands for."""
    names: dict[str, int] = vars(schema().ActivationFunctionType)
    return next(name for name, value in names.items() if value == number).replace("SIGN_BIT", "SIGN")


def _name_tensors(model: Any, index: int, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
    used = {port.name for port in (*inputs, *outputs)}
    for number, graph in enumerate(model.subgraphs):
        public: dict[int, str] = {}
        if number == index:
            for port in (*inputs, *outputs):
                public.setdefault(int(port.tensor), port.name)
        for position, tensor in enumerate(graph.tensors):
            if position in public:
                tensor.name = public[position].encode()
                continue
            stem = (tensor.name or b"").decode("utf-8", "replace") or "tensor"
            unique, counter = stem, 0
            while unique in used:
                counter += 1
                unique = f"{stem}__{counter}"
            used.add(unique)
            tensor.name = unique.encode()
