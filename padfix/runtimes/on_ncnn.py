"""ncnn, converted by pnnx, in single precision and without Winograd's or SIMD's shortcuts in half precision."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from padfix.process.apart import die_with_parent
from padfix.runtimes.adapter import Request

_LONGEST_SECONDS = 120

_TYPES = {
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
}
"""pnnx's types of inputs, by NumPy's; ncnn itself holds numbers of 32 bits."""

_TRIALS = 2
"""pnnx crashes now and then on what it converts the next time."""


_LAYERS_OVER_STEPS = ("GRU", "LSTM", "RNN")

_MOVING = (*_LAYERS_OVER_STEPS, "Einsum", "Gemm", "MatMul", "Reshape", "Transpose")
"""What may give a result with the images along another axis than the first."""

_NO_BATCH = 233
"""The axis that pnnx names where it sees no batch."""


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    import ncnn

    program = _pnnx()
    kept: dict[object, tuple[Any, _Layouts]] = {}

    def converted(request: Request) -> tuple[Any, _Layouts]:
        """Convert a model, once for other data and for the images of a batch."""
        key = request.model, tuple(array.shape for array in request.feeds.values())
        if key not in kept:
            kept.clear()
            with tempfile.TemporaryDirectory() as name:
                net = _converted(program, request, Path(name))
                kept[key] = net, _Layouts(Path(name, "model_ncnn.py").read_text(encoding="utf-8"))
        return kept[key]

    def keeps_steps(request: Request) -> bool:
        """Whether the first axis is none of images: pnnx takes a later one, of one element, for theirs."""
        try:
            _, layouts = converted(request)
        except (RuntimeError, subprocess.TimeoutExpired):
            return False
        given = zip(range(len(request.feeds)), request.feeds.values(), strict=True)
        return any(layouts.has_later_batch(f"in{number}", array) for number, array in given)

    def run(request: Request) -> list[Any]:
        net, layouts = converted(request)
        extractor = net.create_extractor()
        for number, array in enumerate(request.feeds.values()):
            given = layouts.of_ncnn(f"in{number}", array)  # kept until it is copied: a Mat holds no reference
            extractor.input(f"in{number}", ncnn.Mat(given).clone())
        found = []
        for number in range(len(request.shapes)):
            code, value = extractor.extract(f"out{number}")
            if code != 0:
                raise RuntimeError(f"ncnn's extract ends with {code}")
            found.append(layouts.of_onnx(f"out{number}", np.array(value)))
        return found

    return lambda request: _image_by_image(run, keeps_steps, request)


def _image_by_image(
    run: Callable[[Request], list[Any]], keeps_steps: Callable[[Request], bool], request: Request
) -> list[Any]:
    """Run the images of a batch one by one: ncnn knows none. The steps of a recurrent layer stay together."""
    import onnx

    model = onnx.load_from_string(request.model)
    seeming = _seeming_images(model, request)
    fed = _fed_by_images(model, seeming)
    batch = _batch_of(request, fed, moves=any(node.op_type in _MOVING for node in model.graph.node))
    if batch is None:
        return run(request)
    if any(node.op_type in _LAYERS_OVER_STEPS for node in model.graph.node) and keeps_steps(request):
        return run(request)
    if fed < seeming:
        # What some inputs leave open need be no number of images.
        with contextlib.suppress(RuntimeError):
            return run(request)
    images = _images(run, model, request, fed, batch)
    found = [] if images is None else zip(images[0], request.shapes, strict=True)
    axes = [_axis_of_images(one, shape, batch) for one, shape in found]
    if images is None or None in axes:
        return run(request)
    return [np.concatenate(each, axis=axis or 0) for each, axis in zip(zip(*images, strict=True), axes, strict=True)]


def _fed_by_images(model: Any, seeming: frozenset[str]) -> frozenset[str]:
    """Return the inputs of images: all but weights, or those that leave open how many, where others tell it."""
    given = [value for value in model.graph.input if value.name in seeming]
    of_open = [each.name for each in given if not all(_is_told(dim) for dim in each.type.tensor_type.shape.dim[:1])]
    return frozenset(of_open or seeming)


def _seeming_images(model: Any, request: Request) -> frozenset[str]:
    """Return the inputs that are no weights; all of them in a script that shows a fault without padfix."""
    if len(request.feeds) == 1:
        return frozenset(request.feeds)
    try:
        from padfix.files.model import Model
        from padfix.operators.batches import inputs_of_images
        from padfix.operators.inference import infer
    except ImportError:
        return frozenset(request.feeds)
    scope = next(iter(infer(Model(model))))
    return frozenset(name for name in inputs_of_images(scope) if name in request.feeds)


def _is_told(dimension: Any) -> bool:
    return bool(dimension.HasField("dim_value"))


def _images(
    run: Callable[[Request], list[Any]], model: Any, request: Request, fed: frozenset[str], batch: int
) -> list[list[Any]] | None:
    """Return what is given for each image; None where that fails, as where the first axis is none of images."""
    for value, shape in zip(model.graph.output, request.shapes, strict=True):
        if value.type.tensor_type.shape.dim:  # which a model need not say of its outputs
            value.type.tensor_type.shape.dim[shape.index(batch)].dim_value = 1
    for value in (each for each in model.graph.input if each.name in fed):  # others are constants, or for all images
        value.type.tensor_type.shape.dim[0].dim_value = 1
    del model.graph.value_info[:]  # which may say of all images how many there are
    serialized, shapes = model.SerializeToString(), [_of_one(shape, shape.index(batch)) for shape in request.shapes]

    def of_image(place: int) -> dict[str, Any]:
        return {name: array[place, None] if name in fed else array for name, array in request.feeds.items()}

    try:
        return [run(Request(serialized, of_image(place), shapes)) for place in range(batch)]
    except RuntimeError:
        return None


def _batch_of(request: Request, fed: frozenset[str], *, moves: bool) -> int | None:
    """Return how many images the inputs of images are of; None where that is one, or a result has no such axis.

    Unless something moves them, images are along the first axis of the results.
    """
    first = {request.feeds[name].shape[:1] for name in fed}
    lengths = first.pop() if len(first) == 1 else ()
    batch = lengths[0] if lengths else 1
    return batch if batch > 1 and all(batch in (shape if moves else shape[:1]) for shape in request.shapes) else None


def _axis_of_images(one: Any, shape: tuple[int, ...], batch: int) -> int | None:
    """Return the axis that images lie along in a result, as states of layers have theirs behind the directions'.

    None where one image gives as much as all: a constant, or elements of all images, that happen to be as many.
    """
    fitting = [axis for axis, length in enumerate(shape) if length == batch and one.shape == _of_one(shape, axis)]
    is_share = shape[0] == batch and one.size * batch == math.prod(shape)
    return fitting[0] if fitting else 0 if is_share else None


def _of_one(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _converted(program: str, request: Request, folder: Path) -> Any:
    """Return the network that pnnx makes of a model, in single precision."""
    import ncnn

    (folder / "model.onnx").write_bytes(request.model)
    shapes = ",".join(f"[{','.join(map(str, array.shape))}]{_type_of(array)}" for array in request.feeds.values())
    for _ in range(_TRIALS):
        done = subprocess.run(
            [program, "model.onnx", f"inputshape={shapes}", "fp16=0"],
            cwd=folder,
            capture_output=True,
            timeout=_LONGEST_SECONDS,
            check=False,
            preexec_fn=die_with_parent,  # it may go on for ever, and take ever more memory
        )
        if done.returncode == 0:
            break
    net = ncnn.Net()
    for option in ("use_fp16_storage", "use_fp16_arithmetic", "use_fp16_packed", "use_bf16_storage"):
        setattr(net.opt, option, False)
    for part, read in (("param", net.load_param), ("bin", net.load_model)):
        file = folder / f"model.ncnn.{part}"
        if not file.exists() or read(str(file)) != 0:
            raise RuntimeError(f"pnnx and ncnn give no network (model.ncnn.{part})")
    return net


def _type_of(array: Any) -> str:
    kind = _TYPES.get(array.dtype.name)
    if kind is None:
        raise RuntimeError(f"inputs of type {array.dtype.name} are not supported")
    return kind


class _Layouts:
    """Which tensors have a batch, which ncnn leaves out: pnnx guesses it, and says so in the example that it writes."""

    def __init__(self, example: str) -> None:
        self._example = example

    def of_ncnn(self, name: str, array: Any) -> Any:
        """Return an array as ncnn takes it, which holds numbers in 32 bits alone."""
        axis = self._batch(name)
        if axis is not None and array.shape[axis] != 1:
            raise RuntimeError("ncnn takes images one by one, and this is no batch of which each could be run")
        kind = np.float32 if array.dtype.kind == "f" else np.int32
        return np.ascontiguousarray(array if axis is None else array.squeeze(axis), kind)

    def of_onnx(self, name: str, array: Any) -> Any:
        """Return what ncnn gives as ONNX has it."""
        axis = self._batch(name)
        return array if axis is None else np.expand_dims(array, axis)

    def has_later_batch(self, name: str, array: Any) -> bool:
        """Whether another axis than the first, of one element, is the batch of an input."""
        axis = self._batch(name)
        return axis is not None and axis > 0 and array.shape[axis] == 1

    def _batch(self, name: str) -> int | None:
        """Return the axis that is the batch; None where there is none."""
        told = re.search(rf"\b{name}\.numpy\(.*?batch_index=(\d+)", self._example)
        axis = 0 if told is None else int(told.group(1))
        return None if axis == _NO_BATCH else axis


def _pnnx() -> str:
    # The program inside the package: the command of that name is a script that loads PyTorch first.
    package = importlib.util.find_spec("pnnx")
    inside = Path(package.origin).with_name("pnnx") if package is not None and package.origin is not None else None
    found = str(inside) if inside is not None and inside.exists() else shutil.which("pnnx")
    if found is None:
        raise RuntimeError("pnnx is not installed: pip install pnnx")
    return found
