"""Running a model: what all executors have in common, and ONNX Runtime.

onnxruntime is imported only when an executor is made: linting needs none.
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
from onnx import GraphProto

from padfix.files.model import Model
from padfix.files.tensors import weight_bytes
from padfix.graph.scopes import Dimension
from padfix.process import deadline, watch
from padfix.process.memory import is_want_of_memory
from padfix.proof.runtime_words import runtime_words
from padfix.proof.sessions import Session
from padfix.proof.signatures import RAW_TYPES, Signature, elem_type_of

Array = npt.NDArray[Any]


class ExecutionFailed(Exception):  # noqa: N818 - a name of the contract between the rooms
    """A model could not be loaded or run; ``message`` is one sentence, the runtime's own words included.

    Attributes:
        message: The sentence.
        unsupported: Whether the runtime has no implementation for this operator, version or element type (so that it
            says nothing about the model's correctness).
        loading: Whether the runtime could not even load it.
        overdue: Whether the run was ended because its time was over.
        crashed: Whether the process that ran it ended.
    """

    def __init__(
        self,
        message: str,
        *,
        unsupported: bool = False,
        loading: bool = False,
        overdue: bool = False,
        crashed: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.unsupported = unsupported
        self.loading = loading
        self.overdue = overdue
        self.crashed = crashed

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

    @property
    def is_fixed(self) -> bool:
        """Whether every length is known."""
        return self.shape is not None and all(isinstance(length, int) for length in self.shape)


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
        ExecutionFailed: An input is not a dense tensor, or of a type that NumPy has not.
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
        numpy_type(tensor.elem_type)
        shape: tuple[Dimension, ...] | None = None
        if tensor.HasField("shape"):
            shape = tuple(
                dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else (dim.dim_param or None)
                for dim in tensor.shape.dim
            )
        specs.append(TensorSpec(value.name, tensor.elem_type, shape))
    return specs


class Member(str):
    """The name of what an output that is no tensor holds, ``output[key]``.

    Attributes:
        output: The output.
    """

    __slots__ = ("output",)
    output: str


def output_of(name: str) -> str:
    """Return the output that a name of :func:`flatten_outputs` belongs to."""
    return name.output if isinstance(name, Member) else name


def flatten_outputs(names: Sequence[str], values: Iterable[object]) -> dict[str, Array]:
    """Return tensors by name; members of sequences and maps are named ``output[key]``, how many they are ``output[]``.

    Without the number, a list could be longer, and an optional that holds nothing hold something, and nobody would ask.
    """
    flat: dict[str, Array] = {}

    def add(output: str, path: str, value: object) -> None:
        if value is not None and not isinstance(value, list | tuple | dict):
            flat[member_of(output, path)] = np.asarray(value)
            return
        members = value if isinstance(value, dict) else dict(enumerate(value or ()))
        flat[member_of(output, f"{path}[]")] = np.asarray(len(members))
        for key, member in members.items():
            add(output, f"{path}[{key}]", member)

    for name, value in zip(names, values, strict=True):
        add(name, "", value)
    return flat


def member_of(output: str, path: str) -> str:
    """Return the name of what stands at a path within an output, which may be empty: ``[0][key]``."""
    if not path:
        return output
    member = Member(output + path)
    member.output = output
    return member


_UNSUPPORTED_TYPE = re.compile(r"Type 'tensor\(\w+\)' of input parameter .* is invalid")


class OnnxRuntimeExecutor:
    """ONNX Runtime on the CPU, at one of two optimisation levels.

    The weights of a file are read where they lie, except with all optimisations: then the runtime loads the file by
    itself, as it does for users.

    Args:
        model: A file, or a serialized model.
        optimised: ``ORT_ENABLE_ALL`` when true, else ``ORT_DISABLE_ALL``. Both matter: the runtime's optimiser is
            itself known to change the numbers of some padded pools and transposed resizes.
        folder: Where the external data of a serialized model lies.
        threads: Threads inside one operator.
        external: Bytes of that external data.
        signature: The inputs and outputs where they are known; the model is loaded when it is first run then.

    Raises:
        ExecutionFailed: The runtime can't load the model.
    """

    name = "onnxruntime"

    def __init__(
        self,
        model: Path | bytes,
        *,
        optimised: bool,
        folder: Path | None = None,
        threads: int = 2,
        external: int = 0,
        signature: Signature | None = None,
    ) -> None:
        import onnxruntime

        self.model = model
        self.folder = folder
        self._threads = threads
        self._external = external
        self.optimised = optimised
        self._errors = (onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented,)
        self._spoken = f"ONNX Runtime {onnxruntime.__version__}{' with all optimisations' if optimised else ''}"
        self.label = f"onnxruntime ({'all optimisations' if optimised else 'no optimisation'})"
        self._session = self._mapped() if isinstance(model, Path) and not optimised else self._plain()
        self._signature = signature or self._first_load()
        self._output_names = [output.name for output in self._signature.outputs]
        self._raw = self._signature.raw

    def _plain(self, saved: Path | None = None) -> Session:
        """Return a session of the model as it was given."""
        size = len(self.model) + self._external if isinstance(self.model, bytes) else weight_bytes(self.skeleton.proto)
        return Session(
            self.model,
            folder=self.folder,
            optimised=self.optimised or saved is not None,
            threads=self._threads,
            weights=size,
            saved=saved,
        )

    def _mapped(self) -> Session:
        """Return a session of the file that reads the weights where they lie in it."""
        model = self.skeleton
        return Session(
            model.proto.SerializeToString(),
            folder=model.folder,
            optimised=False,
            threads=self._threads,
            weights=weight_bytes(model.proto),
        )

    def _first_load(self) -> Signature:
        try:
            session = self._load()
        except ExecutionFailed:
            if self.optimised or isinstance(self.model, bytes):
                raise
            # Caches hand out links, which the runtime follows from the model's own path only.
            self._session = self._plain()
            session = self._load()
        return Signature.of(session)

    def _load(self) -> Any:
        try:
            with watch.doing(f"{self._spoken}, loading a model,"):
                return self._session.loaded()
        except Exception as error:
            raise self._failure(error, loading=True) from None

    @cached_property
    def optimised_twin(self) -> OnnxRuntimeExecutor:
        """The same model with all optimisations, loaded when it is first run."""
        twin = OnnxRuntimeExecutor(
            self.model,
            optimised=True,
            folder=self.folder,
            threads=self._threads,
            external=self._external,
            signature=self._signature,
        )
        return twin

    def save_optimised(self, folder: Path) -> Path:
        """Write the graph that the runtime's optimiser makes of the model, and return the file.

        Raises:
            ExecutionFailed: The runtime can't write it.
        """
        path = folder / "optimised.onnx"
        try:
            self._plain(path).loaded()
        except Exception as error:
            raise self._failure(error, loading=True) from None
        return path

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
        """The model as read again; large weights stay in the file, where the runtime finds them."""
        if isinstance(self.model, bytes):
            return Model(onnx.load_from_string(self.model), None, self.folder)
        from padfix.files.skeleton import read_to_run

        # Links are followed because ONNX Runtime wants weights to lie in the folder of the model.
        return read_to_run(self.model.resolve())

    @cached_property
    def inputs(self) -> list[TensorSpec]:
        """The inputs that have to be fed.

        Raises:
            ExecutionFailed: An input is not a dense tensor.
        """
        specs = []
        for value in self._signature.inputs:
            elem_type = elem_type_of(value.type)
            if elem_type is None:
                raise ExecutionFailed(
                    f"Input {value.name!r} is a {value.type}, not a tensor; padfix can't make data for it."
                )
            shape: tuple[Dimension, ...] | None = value.shape
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
        import onnxruntime

        session = self._load()
        options = onnxruntime.RunOptions()
        options.log_severity_level = 4

        def stop() -> None:
            options.terminate = True

        try:
            with watch.doing(f"{self._spoken}, running a model,"), deadline.stopping(stop):
                if self._raw:
                    return self._run_raw(session, feeds, options)
                values = session.run(None, dict(feeds), options)
        except Exception as error:
            raise self._failure(error) from None
        return flatten_outputs(self._output_names, values)

    def _run_raw(self, session: Any, feeds: Mapping[str, Array], options: Any) -> dict[str, Array]:
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
        for value in session.run_with_ort_values(None, given, options):
            elem_type = value.element_type() if value.is_tensor() else None
            if elem_type in RAW_TYPES:
                shape, kind = value.shape(), numpy_type(elem_type)
                # ONNX Runtime before 1.23 does not say the size in bytes.
                data = ctypes.string_at(value.data_ptr(), math.prod(shape) * kind.itemsize)
                values.append(np.frombuffer(data, kind).reshape(shape))
            else:
                values.append(value.numpy())
        return flatten_outputs(self._output_names, values)

    def _failure(self, error: Exception, *, loading: bool = False) -> ExecutionFailed:
        message = runtime_words(str(error))
        unsupported = isinstance(error, self._errors) or bool(_UNSUPPORTED_TYPE.search(message))
        overdue = isinstance(error, deadline.Overdue)
        return ExecutionFailed(message, unsupported=unsupported, loading=loading, overdue=overdue)
