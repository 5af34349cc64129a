"""Running a model: in ONNX Runtime, or by the specification.

onnxruntime and onnx.reference are imported only when an executor is made: linting needs neither.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import onnx
from onnx import GraphProto, TensorProto

from padfix.files.model import Model
from padfix.graph.scopes import Dimension
from padfix.process import watch
from padfix.process.memory import is_want_of_memory

Array = npt.NDArray[Any]


class ExecutionFailed(Exception):  # noqa: N818 - a name of the contract between the rooms
    """A model could not be loaded or run; ``message`` is one sentence, the runtime's own words included.

    Attributes:
        message: The sentence.
        unsupported: Whether the runtime has no implementation for this operator, version or element type (so that it
            says nothing about the model's correctness).
    """

    def __init__(self, message: str, *, unsupported: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.unsupported = unsupported

    @property
    def is_out_of_memory(self) -> bool:
        """Whether memory ran out, which says nothing about the model's correctness either."""
        return is_want_of_memory(self.message)


@dataclass(frozen=True)
class TensorSpec:
    """A graph input that has to be fed.

    Attributes:
        name: Its name.
        elem_type: ``TensorProto.DataType``.
        shape: One entry an axis: a length, a symbolic name, or None; None as a whole when the rank is unknown.
    """

    name: str
    elem_type: int
    shape: tuple[Dimension, ...] | None


class Executor(Protocol):
    """Something that runs a model.

    Attributes:
        name: The witness: ``"onnxruntime"``, ``"spec"`` or ``"tensorflow"``.
        inputs: The inputs that have to be fed.
        outputs: Names of the outputs, in order.
    """

    name: str

    @property
    def inputs(self) -> list[TensorSpec]:
        """The inputs that have to be fed; inputs with a default are left out."""
        ...

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs, in order."""
        ...

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model once.

        Raises:
            ExecutionFailed: The runtime refused.
        """
        ...


@dataclass(frozen=True)
class TensorNode:
    """A tensor inside a runner of the original.

    Attributes:
        name: Its name, as the converted model has it where it is there too.
        op_type: The operator, in the runtime's own words.
        inputs: Names of the tensors that it is computed from.
        elem_type: ``TensorProto.DataType``; 0 when ONNX has none.
        shape: Static lengths, None for an unknown one; None as a whole when the rank is unknown.
        can_feed: Whether a value can be put in its place.
    """

    name: str
    op_type: str
    inputs: tuple[str, ...]
    elem_type: int
    shape: tuple[int | None, ...] | None
    can_feed: bool


class InnerExecutor(Protocol):
    """Runs pieces of a model: what an executor's ``inner`` is where it has one.

    Attributes:
        can_feed: Whether values can be put inside; else only inputs are fed.
    """

    can_feed: bool

    def graph(self) -> list[TensorNode]:
        """Return every tensor, each behind those that it is computed from.

        Raises:
            ExecutionFailed: The runtime refused.
        """
        ...

    def has_elements(self, feeds: Mapping[str, Array], fetches: Sequence[str]) -> bool:
        """Whether all that ``fetches`` need has elements, by the runtime's own rules of shapes; nothing is run."""
        ...

    def run_inner(self, feeds: Mapping[str, Array], fetches: Sequence[str]) -> dict[str, Array]:
        """Run what ``fetches`` need, the model cut at the tensors that are fed.

        Args:
            feeds: Values by name. Whoever reads such a tensor reads the value.
            fetches: Names of tensors; one that is fed as well is computed from what else is fed.

        Raises:
            ExecutionFailed: The runtime refused, or there is no such tensor.
        """
        ...


def inner_of(executor: Executor) -> InnerExecutor | None:
    """Return what runs pieces of the model that ``executor`` runs; None where nothing can."""
    found: InnerExecutor | None = getattr(executor, "inner", None)
    return found


def label_of(executor: Executor) -> str:
    """Return how reports call ``executor``: its ``label`` when it has one, else its name."""
    return str(getattr(executor, "label", executor.name))


def graph_of(executor: Executor) -> GraphProto | None:
    """Return the graph that ``executor`` runs when it can show it; weights may be missing from it."""
    try:
        graph = getattr(executor, "graph", None)
    except (OSError, ValueError, ExecutionFailed):
        return None
    return graph if isinstance(graph, GraphProto) else None


def numpy_type(elem_type: int) -> np.dtype[Any]:
    """Return the NumPy type of a ``TensorProto.DataType``; strings are objects.

    Raises:
        ExecutionFailed: NumPy has no such type.
    """
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(elem_type))
    except (KeyError, ValueError, TypeError):
        raise ExecutionFailed(f"Element type {elem_type} can't be fed.") from None


def required_inputs(graph: GraphProto) -> list[TensorSpec]:
    """Return the inputs of ``graph`` that have no default (an initializer of the same name).

    Raises:
        ExecutionFailed: An input is not a dense tensor.
    """
    defaults = {tensor.name for tensor in graph.initializer}
    defaults |= {tensor.values.name for tensor in graph.sparse_initializer}
    specs = []
    for value in graph.input:
        if value.name in defaults:
            continue
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            raise ExecutionFailed(
                f"Input {value.name!r} is a {(kind or 'value of unknown type').removesuffix('_type')}, not a tensor; "
                "padfix can't make data for it."
            )
        tensor = value.type.tensor_type
        shape: tuple[Dimension, ...] | None = None
        if tensor.HasField("shape"):
            shape = tuple(
                dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else (dim.dim_param or None)
                for dim in tensor.shape.dim
            )
        specs.append(TensorSpec(value.name, tensor.elem_type, shape))
    return specs


def flatten_outputs(names: Sequence[str], values: Iterable[object]) -> dict[str, Array]:
    """Return tensors by name; members of sequences and maps are named ``output[key]``, empty optionals left out."""
    flat: dict[str, Array] = {}

    def add(name: str, value: object) -> None:
        if value is None:
            return
        if isinstance(value, list | tuple):
            for index, member in enumerate(value):
                add(f"{name}[{index}]", member)
        elif isinstance(value, dict):
            for key, member in value.items():
                add(f"{name}[{key}]", member)
        else:
            flat[name] = np.asarray(value)

    for name, value in zip(names, values, strict=True):
        add(name, value)
    return flat


# What NumPy holds through ml_dtypes and ONNX Runtime's Python API takes only as raw bytes.
_RAW_TYPES = {
    TensorProto.BFLOAT16,
    TensorProto.FLOAT8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ,
    TensorProto.FLOAT8E5M2,
    TensorProto.FLOAT8E5M2FNUZ,
}


class OnnxRuntimeExecutor:
    """ONNX Runtime on the CPU, at one of two optimisation levels.

    Args:
        model: A file, or a serialized model.
        optimised: ``ORT_ENABLE_ALL`` when true, else ``ORT_DISABLE_ALL``. Both matter: the runtime's optimiser is
            itself known to change the numbers of some padded pools and transposed resizes.
        folder: Where the external data of a serialized model lies.
        threads: Threads inside one operator; more than 1 makes loading slower by milliseconds.

    Raises:
        ExecutionFailed: The runtime can't load the model.
    """

    name = "onnxruntime"

    def __init__(self, model: Path | bytes, *, optimised: bool, folder: Path | None = None, threads: int = 2) -> None:
        import onnxruntime

        self._model = model
        self._folder = folder
        self._threads = threads
        self.optimised = optimised
        self._errors = (onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented,)
        self._spoken = f"ONNX Runtime {onnxruntime.__version__}{' with all optimisations' if optimised else ''}"
        self.label = f"onnxruntime ({'all optimisations' if optimised else 'no optimisation'})"
        options = onnxruntime.SessionOptions()
        levels = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Threads that wait by spinning double the processor time, and the wall time where others want the processor.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 4
        if folder is not None and isinstance(model, bytes):
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
        source = model if isinstance(model, bytes) else str(model)
        try:
            with watch.doing(f"{self._spoken}, loading a model,"):
                self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise self._failure(error) from None
        self._inputs = self._session.get_inputs()
        self._output_names = [output.name for output in self._session.get_outputs()]
        self._raw = {
            value.name: elem_type
            for value in [*self._inputs, *self._session.get_outputs()]
            if (elem_type := _elem_type_of(value.type)) in _RAW_TYPES
        }

    @cached_property
    def optimised_twin(self) -> OnnxRuntimeExecutor:
        """The same model with all optimisations.

        Raises:
            ExecutionFailed: The optimised model can't be loaded.
        """
        return OnnxRuntimeExecutor(self._model, optimised=True, folder=self._folder, threads=self._threads)

    def save_optimised(self, folder: Path) -> Path:
        """Write the graph that the runtime's optimiser makes of the model, and return the file.

        Raises:
            ExecutionFailed: The runtime can't write it.
        """
        import onnxruntime

        path = folder / "optimised.onnx"
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.optimized_model_filepath = str(path)
        options.log_severity_level = 4
        if self._folder is not None and isinstance(self._model, bytes):
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(self._folder))
        source = self._model if isinstance(self._model, bytes) else str(self._model)
        try:
            onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise self._failure(error) from None
        return path

    @property
    def source(self) -> tuple[Path | bytes, Path | None]:
        """The file or the serialized model, and the folder of its external data."""
        return self._model, self._folder

    @staticmethod
    def version() -> str:
        """Return the installed version, for messages."""
        import onnxruntime

        return str(onnxruntime.__version__)

    @cached_property
    def graph(self) -> GraphProto:
        """The model's graph, read again without its weights."""
        return self.skeleton.proto.graph

    @cached_property
    def skeleton(self) -> Model:
        """The model as read again; large weights stay in the file."""
        if isinstance(self._model, bytes):
            return Model(onnx.load_from_string(self._model), None, self._folder)
        from padfix.files.skeleton import read_model

        # Links are followed because ONNX Runtime wants weights to lie in the folder of the model.
        return read_model(self._model.resolve())

    @cached_property
    def inputs(self) -> list[TensorSpec]:
        """The inputs that have to be fed.

        Raises:
            ExecutionFailed: An input is not a dense tensor.
        """
        specs = []
        for value in self._inputs:
            elem_type = _elem_type_of(value.type)
            if elem_type is None:
                raise ExecutionFailed(
                    f"Input {value.name!r} is a {value.type}, not a tensor; padfix can't make data for it."
                )
            shape: tuple[Dimension, ...] | None = tuple(value.shape)
            if not value.shape:
                # The runtime lists a scalar and a tensor of unknown rank alike.
                shape = next((spec.shape for spec in required_inputs(self.graph) if spec.name == value.name), ())
            specs.append(TensorSpec(value.name, elem_type, shape))
        return specs

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs, in order."""
        return list(self._output_names)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model once; see :class:`Executor`."""
        try:
            with watch.doing(f"{self._spoken}, running a model,"):
                if self._raw:
                    return self._run_raw(feeds)
                values = self._session.run(None, dict(feeds))
        except Exception as error:
            raise self._failure(error) from None
        return flatten_outputs(self._output_names, values)

    def _run_raw(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        from onnxruntime import OrtValue

        given = {}
        for name, array in feeds.items():
            elem_type = self._raw.get(name)
            if elem_type is None:
                given[name] = OrtValue.ortvalue_from_numpy(array)
            else:
                bits = np.ascontiguousarray(array).view(f"uint{8 * array.itemsize}")
                given[name] = OrtValue.ortvalue_from_numpy_with_onnx_type(bits, elem_type)
        values: list[object] = []
        for value in self._session.run_with_ort_values(None, given):
            elem_type = value.element_type() if value.is_tensor() else None
            if elem_type in _RAW_TYPES:
                shape, kind = value.shape(), numpy_type(elem_type)
                # ONNX Runtime before 1.23 does not say the size in bytes.
                data = ctypes.string_at(value.data_ptr(), math.prod(shape) * kind.itemsize)
                values.append(np.frombuffer(data, kind).reshape(shape))
            else:
                values.append(value.numpy())
        return flatten_outputs(self._output_names, values)

    def _failure(self, error: Exception) -> ExecutionFailed:
        message = _runtime_words(str(error))
        unsupported = isinstance(error, self._errors) or bool(_UNSUPPORTED_TYPE.search(message))
        return ExecutionFailed(message, unsupported=unsupported)


_UNSUPPORTED_TYPE = re.compile(r"Type 'tensor\(\w+\)' of input parameter .* is invalid")
_SOURCE_LINE = re.compile(r"\S+\.(?:cc|h|cpp):\d+ ")
_ORT_PREFIX = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : (Load model from .* failed: ?(?=\S))?")


def _elem_type_of(text: str) -> int | None:
    """Return the ``TensorProto.DataType`` of ONNX Runtime's ``"tensor(float)"``, or None for what is no tensor."""
    match = re.fullmatch(r"tensor\((\w+)\)", text)
    if match is None:
        return None
    name = match[1].upper()
    return dict(TensorProto.DataType.items()).get("FLOAT" if name == "FLOAT32" else name)


def _runtime_words(text: str) -> str:
    """Return the part of an ONNX Runtime message that says what is wrong, as one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = _SOURCE_LINE.sub("", _ORT_PREFIX.sub("", lines[0])) if lines else "no message"
    ceiling = re.search(r"Current official support for domain \S+ is till opset (\d+)", line)
    if ceiling is not None:
        return f"it knows opsets up to {ceiling[1]}."
    node = re.match(
        r"Non-zero status code returned while running (\S+) node\. Name:'([^']*)' Status Message: (.*)", line
    )
    if node is not None:
        where = f"{node[1]} {node[2]!r}" if node[2] else node[1]
        line = f"{where}: {node[3]}"
    return line
