"""TensorFlow Lite files as objects of TensorFlow's own schema: read, asked about, added to and written."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from padfix.errors import SourceError, UnsupportedError

_EXTERNAL_BUFFER = 1  # offsets of 0 and 1 are not offsets

NO_BUFFER = 0
"""The first buffer is empty; a tensor that is computed has it."""


@dataclass
class LiteFile:
    """A file as TensorFlow's interpreter can run it.

    Attributes:
        path: Where it lies.
        content: Its bytes; with operators of other projects written as TensorFlow's own.
        kernels: The set of kernels that it is run with, a name of TensorFlow's ``OpResolverType``; None for the usual.
    """

    path: Path
    content: bytes
    kernels: str | None = None

    def interpreter(self, tensorflow: Any, content: bytes | None = None, kernels: str | None = None) -> Any:
        """Return TensorFlow's interpreter of the file, or of other ``content``; nothing is allocated yet."""
        chosen = kernels or self.kernels
        kinds = tensorflow.lite.experimental.OpResolverType
        arguments = {"experimental_op_resolver_type": getattr(kinds, chosen)} if chosen else {}
        return tensorflow.lite.Interpreter(model_content=content or self.content, num_threads=1, **arguments)

    def model(self) -> Any:
        """Return a ``ModelT`` of one's own; large arrays are views of ``content``."""
        return parsed(self.content)


def schema() -> Any:
    """Return TensorFlow's module of the schema."""
    return importlib.import_module("tensorflow.lite.python.schema_py_generated")


def parsed(content: bytes) -> Any:
    """Return bytes as TensorFlow's ``ModelT``."""
    return schema().ModelT.InitFromPackedBuf(content, 0)


def packed(model: Any) -> bytes:
    """Return a ``ModelT`` as bytes."""
    import flatbuffers

    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def read(path: Path) -> Any:
    """Return the file as TensorFlow's ``ModelT``, as it stands.

    Raises:
        SourceError: Damaged.
        UnsupportedError: Weights behind the end of the model's own 2 GB.
    """
    try:
        model = parsed(path.read_bytes())
        complete = bool(model.subgraphs) and all(graph.tensors is not None for graph in model.subgraphs)
    except Exception as error:  # a damaged offset shows in many ways
        raise SourceError(f"{path} is truncated or damaged.", "Fetch or export it again.") from error
    if not complete:
        raise SourceError(f"{path} holds no graph.", "Fetch or export it again.")
    if any(buffer.offset > _EXTERNAL_BUFFER for buffer in model.buffers or ()):
        raise UnsupportedError(f"{path} keeps weights behind its first 2 GB, which tf2onnx can't read.")
    return model


def builtin_names() -> dict[int, str]:
    """Return TensorFlow Lite's own operators by number."""
    return {number: name for name, number in vars(schema().BuiltinOperator).items() if not name.startswith("_")}


def operator_name(code: Any) -> str:
    """Return the name of an operator; that of a custom one is its own."""
    number = max(code.builtinCode, code.deprecatedBuiltinCode)
    name = builtin_names().get(number, f"operator {number}")
    return (code.customCode or b"").decode("utf-8", "replace") if name == "CUSTOM" else name


def operators(model: Any, graph: Any) -> list[tuple[Any, str]]:
    """Return a subgraph's operators, each with its name."""
    names = [operator_name(code) for code in model.operatorCodes or ()]
    return [(operator, names[operator.opcodeIndex]) for operator in graph.operators or ()]


def custom_operators(model: Any) -> list[str]:
    """Return the names of the operators that are not TensorFlow Lite's own, sorted."""
    builtin = set(builtin_names().values())
    used = {name for graph in model.subgraphs for _, name in operators(model, graph)}
    return sorted(name for name in used if name not in builtin and not name.startswith("operator "))


def called(graph: Any) -> Iterator[int]:
    """Yield the subgraphs that a subgraph calls."""
    for operator in graph.operators or ():
        for name in ("thenSubgraphIndex", "elseSubgraphIndex", "condSubgraphIndex", "bodySubgraphIndex", "subgraph"):
            index = getattr(operator.builtinOptions, name, None)
            if isinstance(index, int):
                yield index


def reached(model: Any, index: int) -> list[int]:
    """Return the subgraphs that ``index`` calls and itself, callees first."""
    order: list[int] = []

    def visit(number: int) -> None:
        for callee in called(model.subgraphs[number]):
            if callee not in order:
                visit(callee)
        order.append(number)

    visit(index)
    return order


def is_quantised(tensor: Any) -> bool:
    """Whether the numbers of a tensor are steps of some scale."""
    quantisation = tensor.quantization
    return quantisation is not None and quantisation.scale is not None and len(quantisation.scale) > 0


def is_constant(model: Any, tensor: Any) -> bool:
    """Whether the file holds the values of a tensor."""
    return tensor.buffer != NO_BUFFER and model.buffers[tensor.buffer].data is not None


def constant_of(model: Any, tensor: Any) -> Any:
    """Return the values of a tensor of numbers that is held in the file, dense; None where it is computed."""
    if not is_constant(model, tensor) or tensor.sparsity is not None:
        return None
    data = model.buffers[tensor.buffer].data
    return np.frombuffer(np.asarray(data, np.uint8).tobytes(), numpy_type(tensor.type)).reshape(lengths(tensor))


def real_values(model: Any, tensor: Any) -> Any:
    """Return the float32 numbers that the steps of a quantised constant stand for."""
    values, quantisation = constant_of(model, tensor), tensor.quantization
    scales = np.asarray(quantisation.scale)
    zeros = np.zeros(len(scales), np.int64)
    if quantisation.zeroPoint is not None and len(quantisation.zeroPoint):
        zeros = np.asarray(quantisation.zeroPoint)
    if len(scales) > 1:
        along = [1] * values.ndim
        along[int(quantisation.quantizedDimension)] = -1
        scales, zeros = scales.reshape(along), zeros.reshape(along)
    return ((values.astype(np.int64) - zeros) * scales.astype(np.float32)).astype(np.float32)


def lengths(tensor: Any) -> tuple[int, ...]:
    """Return the lengths of a tensor as the file has them."""
    return tuple(int(length) for length in (tensor.shape if tensor.shape is not None else ()))


def declared_shape(tensor: Any) -> tuple[int | None, ...] | None:
    """Return the lengths of a tensor, None for open ones; None where the file has no shape of it."""
    shape = tensor.shapeSignature if tensor.shapeSignature is not None else tensor.shape
    return None if shape is None else tuple(int(length) if length >= 0 else None for length in shape)


def type_name(number: int) -> str:
    """Return a type of the schema under TensorFlow's name for it: ``"float32"``."""
    names: dict[str, int] = vars(schema().TensorType)
    return next(name for name, value in names.items() if value == number).lower()


def numpy_type(number: int) -> np.dtype[Any]:
    """Return a type of the schema as NumPy's; only types of numbers and truth values."""
    return np.dtype(type_name(number))


def made(kind: Any, **fields: Any) -> Any:
    """Return an object of TensorFlow's schema; up to TensorFlow 2.19 they take no arguments."""
    made = kind()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def code(model: Any, name: str) -> int:
    """Return the index of an operator's code in the model, which is added where it is not there."""
    for index, each in enumerate(model.operatorCodes):
        if operator_name(each) == name:
            return index
    number = getattr(schema().BuiltinOperator, name)
    model.operatorCodes.append(
        made(schema().OperatorCodeT, deprecatedBuiltinCode=min(number, 127), version=1, builtinCode=number)
    )
    return len(model.operatorCodes) - 1


def add_tensor(graph: Any, **fields: Any) -> int:
    """Add a tensor to a subgraph and return its index."""
    graph.tensors.append(made(schema().TensorT, **fields))
    return len(graph.tensors) - 1


def float_copy(graph: Any, index: int) -> int:
    """Add a tensor of floats with the shape of another and return its index."""
    like = graph.tensors[index]
    kept = {name: getattr(like, name) for name in ("shape", "name", "shapeSignature", "hasRank")}
    kind = schema().TensorType.FLOAT32 if is_quantised(like) else like.type
    return add_tensor(graph, type=kind, buffer=NO_BUFFER, **kept)


def add_buffer(model: Any, array: Any) -> int:
    """Add the bytes of an array to the model and return the index of their buffer."""
    data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
    model.buffers.append(made(schema().BufferT, data=data))
    return len(model.buffers) - 1


def constant(model: Any, graph: Any, values: Any, name: bytes = b"constant") -> int:
    """Add a constant of float32 or int32 to a subgraph and return its index."""
    array = np.asarray(values)
    kind = schema().TensorType.FLOAT32 if array.dtype.kind == "f" else schema().TensorType.INT32
    array = array.astype(numpy_type(kind))
    shape = np.asarray(array.shape, np.int32)
    return add_tensor(graph, shape=shape, type=kind, buffer=add_buffer(model, array), name=name)


def operator(model: Any, name: str, inputs: list[int], output: int, options: str = "", **fields: Any) -> Any:
    """Return an operator; ``options`` is the name of its options, which hold ``fields``."""
    made_operator = made(schema().OperatorT, opcodeIndex=code(model, name), inputs=inputs, outputs=[output])
    if options:
        made_operator.builtinOptionsType = getattr(schema().BuiltinOptions, options)
        made_operator.builtinOptions = made(getattr(schema(), f"{options}T"), **fields)
    return made_operator
