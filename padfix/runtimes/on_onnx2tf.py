"""TensorFlow Lite, of what onnx2tf makes of a model; it moves the channels of inputs and outputs to the end."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from padfix.runtimes.adapter import Request

if TYPE_CHECKING:
    from onnx import ModelProto

_MADE = "made/model_float32.tflite"

_SAMPLE = "calibration_image_sample_data_20x128x128x3_float32.npy"


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    import onnx
    import onnx2tf
    from ai_edge_litert.interpreter import Interpreter

    def run(request: Request) -> list[Any]:
        model = onnx.load_from_string(request.model)
        outputs = [each.name for each in model.graph.output]
        _pin(model, request.feeds)
        with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
            Path("model.onnx").write_bytes(model.SerializeToString())
            # The images that it tries a model with, which it would fetch from the network.
            np.save(_SAMPLE, np.random.default_rng(0).random((20, 128, 128, 3), np.float32))
            options = {"input_onnx_file_path": "model.onnx", "output_folder_path": "made", "not_use_onnxsim": True}
            try:
                onnx2tf.convert(**options, non_verbose=True)
            except SystemExit:  # it asks for this option where names of nodes begin with a slash, as PyTorch's do
                onnx2tf.convert(**options, non_verbose=True, output_signaturedefs=True)
            made = Interpreter(model_path=_MADE)
            if len(made.get_output_details()) < len(outputs):  # and loses some without it where others have colons
                onnx2tf.convert(**options, non_verbose=True, output_signaturedefs=True)
                made = Interpreter(model_path=_MADE)
            feeds = {each.name: request.feeds[each.name] for each in model.graph.input if each.name in request.feeds}
            arrays = _run(made, feeds, outputs)
        are_moved = _are_moved(model, outputs, request.shapes)
        results = zip(arrays, request.shapes, are_moved, strict=True)
        return [_as_in_onnx(array, shape, is_moved) for array, shape, is_moved in results]

    return run


def _are_moved(model: ModelProto, outputs: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> list[bool]:
    """Return which outputs onnx2tf gives with their channels at the end; a script of its own goes by shapes alone."""
    try:
        from padfix.files.model import Model
        from padfix.operators.axis_order import holds_channels_last
        from padfix.operators.inference import infer
    except ImportError:
        return [False] * len(outputs)
    scope = infer(Model(model))[0]
    return [holds_channels_last(scope, name, shape) for name, shape in zip(outputs, shapes, strict=True)]


def _run(interpreter: Any, feeds: Mapping[str, Any], outputs: Sequence[str]) -> list[Any]:
    """Return the results of an interpreter in the order of ``outputs``.

    What onnx2tf makes of a convolution in groups, or of inputs with names that TensorFlow does not take, has no
    signature: then results are in the model's order, and so are inputs that have lost their names.
    """
    if interpreter.get_signature_list():
        run_signature = interpreter.get_signature_runner()
        details = run_signature.get_input_details()
        named = _by_names(feeds, list(details))
        fed = {each: _as_fed(array, details[each]) for each, array in named.items()}
        found = {each: np.array(array) for each, array in run_signature(**fed).items()}
        return list(_by_names(found, outputs).values())
    interpreter.allocate_tensors()
    details = {_plain(each["name"]): each for each in interpreter.get_input_details()}
    given = {_plain(name): array for name, array in feeds.items()}
    known = [name for name in given if name in details]
    lost = [[name for name in names if name not in known] for names in (given, details)]
    for name, found in [*zip(known, known, strict=True), *zip(*lost, strict=True)]:
        interpreter.set_tensor(details[found]["index"], _as_fed(given[name], details[found]))
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def _pin(model: ModelProto, feeds: Mapping[str, Any]) -> None:
    """Write the lengths of the inputs into a model: what is left open has one element in TensorFlow Lite."""
    for value in model.graph.input:
        if value.name in feeds:
            lengths = zip(value.type.tensor_type.shape.dim, feeds[value.name].shape, strict=True)
            for dimension, length in lengths:
                dimension.dim_value = length


def _by_names(arrays: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return arrays under names that differ from theirs at most by the characters that TensorFlow does not take."""
    plain = {_plain(name): array for name, array in arrays.items()}
    return {name: plain[_plain(name)] for name in names}


def _plain(name: str) -> str:
    """Return a name as onnx2tf has it, which writes colons as two characters, and letters before a first slash."""
    return re.sub(r"\W", "_", re.sub("^/", "wa/", name).replace(":", "__"))


def _as_fed(array: Any, details: Mapping[str, Any]) -> Any:
    """Return an array with its channels at the end, where the shape allows that; halves as the floats they become."""
    array = array.astype(details["dtype"]) if array.dtype == np.float16 else array
    moved = np.moveaxis(array, 1, -1) if array.ndim > 2 else array
    return moved if moved.shape == tuple(details["shape"]) else array


def _as_in_onnx(array: Any, shape: tuple[int, ...], is_moved: bool) -> Any:
    """Return an array with its channels where ONNX has them: behind the batch, at the end or, without one, first.

    Its shape tells where they are, unless lengths are alike: then that counts which ``is_moved`` says.
    """
    if not array.ndim:
        return array
    written, moved = array, np.moveaxis(array, -1, 1) if array.ndim > 1 else array
    orders = (*((moved, written) if is_moved else (written, moved)), np.moveaxis(array, -1, 0))
    return next((each for each in orders if each.shape == tuple(shape)), array)
