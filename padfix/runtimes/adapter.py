"""A runtime in a process of its own: it may crash, hang or print, and padfix goes on.

An adapter is a module with one function, ``load() -> run``. ``run(request)`` computes the outputs of a model, in their
order; it raises what its library raises. Packages of others add one as an entry point of the group ``padfix.runtimes``
whose name is the runtime's and whose value is such a module.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from padfix.errors import ProofUnavailableError, UsageError, suggestion
from padfix.process import deadline
from padfix.process.apart import Apart, CrashedError, NotMadeError, RemoteError
from padfix.process.deadline import Overdue
from padfix.runtimes.node_packages import FOLDER, version_of

Array = npt.NDArray[Any]

GROUP = "padfix.runtimes"

_MATRIX = 2
"""Axes of a matrix."""

PATIENCE = 120.0
"""Seconds that a runtime may take for one model, loading and converting included."""

_ROOM = __name__.rpartition(".")[0]


@dataclass(frozen=True)
class Request:
    """A model to run once.

    Attributes:
        model: A serialized ONNX model with its weights.
        feeds: The inputs by name.
        shapes: The shapes of the outputs, for runtimes that leave out axes of length 1.
    """

    model: bytes
    feeds: Mapping[str, Array]
    shapes: Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class _Package:
    imported: str
    distributions: tuple[str, ...]
    rounding: float = 1.0


_KNOWN = {
    "onnxruntime": _Package("onnxruntime", ("onnxruntime",)),
    "openvino": _Package("openvino", ("openvino",)),
    "opencv": _Package("cv2", ("opencv-python-headless", "opencv-python", "opencv-contrib-python")),
    "ncnn": _Package("ncnn", ("ncnn",)),
    "mnn": _Package("MNN", ("mnn",)),
    "tract": _Package("tract", ("tract",)),
    "tvm": _Package("tvm", ("apache-tvm",)),
    "onnx2tf": _Package("onnx2tf", ("onnx2tf",)),
    "qnn": _Package("onnxruntime_qnn", ("onnxruntime-qnn",), rounding=20.0),  # it computes in half precision
}


_ON_NODE = {"onnxruntime-web": ("onnxruntime-web",), "onnxruntime-webgpu": ("onnxruntime-web", "webgpu")}
"""Those that run in Node, with their packages; their version is that of the first."""


def names() -> tuple[str, ...]:
    """Return the runtimes that there are adapters of, installed or not."""
    own = (*_KNOWN, *_ON_NODE)
    return (*own, *sorted({each.name for each in importlib.metadata.entry_points(group=GROUP)} - set(own)))


class Runtime:
    """A runtime that can be asked to run models.

    Attributes:
        name: As ``--on`` names it.
        label: Its name with the installed version.
        module: Its adapter.
        rounding: How many times as far as in single precision its numbers may be off.
    """

    def __init__(self, name: str, module: str, version: str, rounding: float = 1.0) -> None:
        self.name = name
        self.label = f"{name} {version}".rstrip()
        self.module = module
        self.rounding = rounding
        self._apart = Apart(partial(_load, module), fresh=True)

    def run(self, model: bytes, feeds: Mapping[str, Array], shapes: Sequence[tuple[int, ...]]) -> list[Array] | str:
        """Return the outputs of a model; or in words why there are none: the runtime's own, or that it crashed or hung.

        ``model`` is a serialized ONNX model with its weights. ``shapes`` are those of the outputs, for runtimes that
        leave out axes of length 1.

        Raises:
            ProofUnavailableError: The runtime itself can't be loaded, or finds no card here.
        """
        try:
            with deadline.each_run(PATIENCE):
                found = self._apart(Request(model, feeds, shapes))
        except NotMadeError as error:
            hint = "What it needs besides its packages is told in the documentation of where runtimes differ."
            raise ProofUnavailableError(f"{self.label} can't be used here: {said(str(error))}", hint) from error
        except RemoteError as error:
            return said(str(error))
        except CrashedError as error:
            return str(error)
        except Overdue:
            return f"it took longer than {PATIENCE} seconds"
        if len(found) != len(shapes):
            self.close()  # it went on over a fault of its own, and may not be sound any more
            return f"it gives {len(found)} outputs instead of {len(shapes)}"
        return [_as_shaped(np.asarray(array), shape) for array, shape in zip(found, shapes, strict=True)]

    def close(self) -> None:
        """End the process."""
        self._apart.close()


def open_runtime(name: str) -> Runtime:
    """Return the runtime called ``name``.

    Raises:
        UsageError: There is no adapter for it.
        ProofUnavailableError: Its package is not installed.
    """
    if name in _ON_NODE:
        versions = [version_of(each) for each in _ON_NODE[name]]
        if versions[0] is None or None in versions:
            hint = f"npm install {' '.join(_ON_NODE[name])}, and let {FOLDER} name the folder node_modules."
            raise ProofUnavailableError(f"{name} is not installed, or Node is not.", hint)
        return Runtime(name, f"{_ROOM}.on_{name.replace('-', '_')}", versions[0])
    if name in _KNOWN:
        package = _KNOWN[name]
        if importlib.util.find_spec(package.imported) is None:
            raise ProofUnavailableError(f"{name} is not installed.", f'pip install "padfix[{name}]"')
        return Runtime(name, f"{_ROOM}.on_{name}", _version(package), package.rounding)
    for entry in importlib.metadata.entry_points(group=GROUP):
        if entry.name == name:
            return Runtime(name, entry.value, "" if entry.dist is None else entry.dist.version)
    raise UsageError(f"There is no runtime {name!r}.", suggestion(name, names(), "Runtimes"))


def _version(package: _Package) -> str:
    for distribution in package.distributions:
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def _load(module: str) -> Callable[[Request], list[Array]]:
    run: Callable[[Request], list[Array]] = importlib.import_module(module).load()
    return run


def _as_shaped(array: Array, shape: tuple[int, ...]) -> Array:
    """Return the array with the axes of length 1 that the runtime left out; its layout is never changed.

    Numbers and lists of a runtime that has matrices alone lose an axis. Any other axis too many is the runtime's fault.
    """
    left = tuple(length for length in array.shape if length != 1)
    is_alike = left == tuple(length for length in shape if length != 1)
    return array.reshape(shape) if is_alike and array.ndim <= max(len(shape), _MATRIX) else array


def said(words: str) -> str:
    """Return the line of a library's words that says most: the last that speaks of an error, or of all."""
    words = re.sub(r"\x1b\[[\d;]*m", "", words).partition("Stack backtrace")[0]  # colours; of a runtime written in Rust
    lines = [line.strip() for line in words.splitlines() if len(line.strip()) > 3]
    telling = [
        line for line in lines if re.search("error|fail|not support|unsupport|invalid|unknown", line, re.IGNORECASE)
    ]
    return (telling or lines or ["it says nothing"])[-1][:300]
