"""Keras files, ``.keras`` and ``.h5``: the model is traced for inference and converted as a SavedModel is.

Keras 3 reads first; what it can't read (older layers, renamed arguments) tf-keras, the legacy Keras 2, may. The
optimizer is never restored.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import re
import shutil
import sys
import tempfile
import textwrap
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from padfix.errors import PadfixError, SourceError, UnsupportedError, UsageError
from padfix.files.detection import Kind
from padfix.process import watch
from padfix.sources import conversion, keras_safety
from padfix.sources.saved_model import Loaded, freeze_function
from padfix.sources.source import SourceOptions
from padfix.sources.tensorflow_runtime import first_line, quiet

_EXPORT_HINT = "Where the model's code is, export it with model.export(folder) and give padfix that folder."
_CUSTOM_HINT = f"{_EXPORT_HINT} Or name the code of what is unknown with --custom MODULE:NAME and --trust."
_UNKNOWN = re.compile(r"[Cc]ould not locate|Unknown (layer|object|class)|not a KerasSaveable")
_ADVICE = re.compile(r"(?<=\.) (?:Make sure|Please ensure|Full object config)")
"""What Keras advises behind its reason; much of it is not for whoever only has the file."""

_LAMBDA_HINT = (
    "Where the model's code is, export it with model.export(folder) and give padfix that folder; or write the layer as "
    "a class of its own and name it with --custom MODULE:NAME and --trust."
)
_SIZE_HINT = "Some layers of Keras need known sizes: fix them with --shape NAME=1,224,224,3."

_DAMAGED = (
    zipfile.BadZipFile,
    KeyError,
    UnicodeDecodeError,
    OSError,
    RuntimeError,
    ValueError,
    NotImplementedError,
    zlib.error,
)


def load_keras(
    tensorflow: Any, path: Path, options: SourceOptions, kind: Kind, *, to_run: bool = False
) -> tuple[Loaded, list[str]]:
    """Read the model and trace it for inference, without converting it; return it with notes for the user.

    Raises:
        SourceError: Damaged, or weights without a model.
        UnsupportedError: Custom or unsafe layers, a model without inputs, or operators without an ONNX form.
    """
    config = _configuration(path, kind, trust=options.trust)
    if not options.trust:
        keras_safety.refuse_code(path, config, options.custom_objects)
    custom = _custom_objects(options)
    notes: list[str] = []
    lambdas = keras_safety.lambda_layers(config)
    with quiet(), tensorflow.device("/cpu:0"), _proper_suffix(path, kind) as file:
        model = _load(file, path, notes, custom, trust=options.trust)
        if lambdas and not getattr(model, "inputs", None):
            raise UnsupportedError(
                f"The Keras model in {path} comes out without inputs: it was saved without its input's shape, or its "
                f"Lambda layer {lambdas[0]!r} needs something that the file does not hold.",
                _LAMBDA_HINT,
            )
        try:
            inputs, function = _trace(tensorflow, model, path, options.shapes)
            outputs = [key.partition(":")[2] for key in sorted(function.structured_outputs)]
            traced = [function]

            def load() -> tuple[Any, Any]:
                return model, traced.pop() if traced else _trace(tensorflow, model, path, options.shapes)[1]

            return freeze_function(tensorflow, load, inputs, outputs, to_run=to_run), notes
        except PadfixError:
            raise
        except Exception as error:
            is_free = any(None in tuple(tensor.shape)[1:] for tensor in getattr(model, "inputs", None) or ())
            raise UnsupportedError(
                f"The Keras model in {path} can't be traced: {first_line(error)}",
                _SIZE_HINT if is_free and not options.shapes else _EXPORT_HINT,
            ) from error


@contextlib.contextmanager
def _proper_suffix(path: Path, kind: Kind) -> Iterator[Path]:
    """Yield the path itself, or, when its name ends otherwise, a link to it that Keras accepts.

    Keras goes by the name's ending, padfix by the content. Keras unpacks archives into temporary folders; they are made
    inside one that goes even when the process does not come to it.
    """
    suffixes = (".keras",) if kind == "keras" else (".h5", ".hdf5")
    with watch.scratch_folder() as folder:
        before, tempfile.tempdir = tempfile.tempdir, str(folder)
        try:
            if path.suffix in suffixes:
                yield path
            else:
                link = folder / f"{path.stem}{suffixes[0]}"
                link.symlink_to(path.resolve())
                yield link
        finally:
            tempfile.tempdir = before


def _configuration(path: Path, kind: Kind, *, trust: bool) -> str:
    """Return the model's configuration as JSON text."""
    h5py = importlib.import_module("h5py")
    if kind == "keras":
        keras_safety.require_sound_archive(path)
        if not trust:
            keras_safety.refuse_pickles(path)
    try:
        if kind == "keras_h5":
            with h5py.File(path, "r") as file:
                text = file.attrs.get("model_config")
                keras_safety.refuse_links(path, file)
        else:
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.endswith(".h5"):
                        with _extracted(archive, name) as member, h5py.File(member, "r") as weights:
                            keras_safety.refuse_links(path, weights)
                text = archive.read("config.json")
        if text is not None:
            return text.decode("utf-8") if isinstance(text, bytes) else str(text)
    except _DAMAGED as error:
        raise SourceError(f"{path} is truncated or damaged: {first_line(error)}.", "Fetch or save it again.") from error
    raise SourceError(
        f"{path} is an HDF5 file without a Keras model in it; it may hold only weights.",
        "Save the whole model with model.save(...).",
    )


@contextlib.contextmanager
def _extracted(archive: zipfile.ZipFile, name: str) -> Iterator[BinaryIO]:
    """Yield a member of an archive as a file: going back in an archive means reading it from the beginning again."""
    with archive.open(name) as member, tempfile.TemporaryFile() as file:
        shutil.copyfileobj(member, file, 1 << 20)
        file.seek(0)
        yield cast(BinaryIO, file)


def _custom_objects(options: SourceOptions) -> dict[str, Any]:
    """Return the classes and functions by name, those imported that are given by their place.

    Raises:
        UsageError: Such a place without trust, or where there is nothing.
    """
    found: dict[str, Any] = {}
    for name, given in options.custom_objects.items():
        if not isinstance(given, str):
            found[name] = given
            continue
        if not options.trust:
            raise UsageError(f"To import {given} is to run its code.", "Allow that with --trust.")
        module, _, attribute = given.partition(":")
        before = list(sys.path)
        sys.path.insert(0, str(Path.cwd()))
        try:
            found[name] = getattr(importlib.import_module(module), attribute)
        except Exception as error:
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise UsageError(f"{given} can't be imported: {reason}.", "Name it as MODULE:NAME.") from error
        finally:
            sys.path[:] = before
    return found


def _load(file: Path, path: Path, notes: list[str], custom: Mapping[str, Any], *, trust: bool) -> Any:
    keras = importlib.import_module("keras")
    try:
        return keras.saving.load_model(str(file), dict(custom), compile=False, safe_mode=not trust)
    except Exception as refusal:
        written = _newer_version(path, keras.__version__)
        if written:
            hint = f"It was written by Keras {written}, and Keras {keras.__version__} is installed: install that one."
            raise _unreadable(path, refusal, hint) from refusal
        if importlib.util.find_spec("tf_keras") is None:
            raise _unreadable(path, refusal, "It may be a Keras 2 file; install tf-keras.") from refusal
        legacy = importlib.import_module("tf_keras")
        try:
            model = legacy.models.load_model(str(file), dict(custom), compile=False, safe_mode=not trust)
        except Exception:
            # Keras 3 speaks for both: it is the one that new files are written for.
            raise _unreadable(path, refusal, _EXPORT_HINT) from refusal
        reason = textwrap.shorten(first_line(refusal), 120, placeholder=" ...")
        notes.append(f"Keras 3 can't read this file ({reason}); tf-keras read it.")
        return model


def _newer_version(path: Path, installed: str) -> str:
    """Return the version of Keras that wrote a .keras file, if it is newer than the one that is installed."""
    with contextlib.suppress(*_DAMAGED), zipfile.ZipFile(path) as archive:
        written = str(json.loads(archive.read("metadata.json"))["keras_version"])
        if _version_key(written) > _version_key(installed):
            return written
    return ""


def _version_key(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def _unreadable(path: Path, refusal: Exception, hint: str) -> PadfixError:
    reason = _ADVICE.split(first_line(refusal))[0]
    if hint == _EXPORT_HINT and _UNKNOWN.search(reason):
        hint = _CUSTOM_HINT
    damaged = isinstance(refusal, (OSError, KeyError, zipfile.BadZipFile))
    kind = SourceError if damaged else UnsupportedError
    return kind(f"Keras can't read {path}: {reason}", hint)


def _trace(tensorflow: Any, model: Any, path: Path, shapes: Mapping[str, Sequence[int]]) -> tuple[list[str], Any]:
    """Return the input names and a concrete function for inference, at the sizes in ``shapes`` where they are given.

    Some layers of Keras can't be traced with unknown sizes.
    Its results are numbered, ``0000:name``, because TensorFlow sorts them by key.
    """
    inputs = list(getattr(model, "inputs", None) or [])
    if not inputs:
        raise UnsupportedError(f"The Keras model in {path} was saved without its input's shape.", _EXPORT_HINT)
    keywords = [f"input_{index:04d}" for index in range(len(inputs))]
    names = _input_names(model, inputs)
    fixed = conversion.requested_inputs(shapes, names)
    specifications = {}
    for keyword, name, tensor in zip(keywords, names, inputs, strict=True):
        shape = tuple(tensor.shape)
        if name in fixed:
            shape = conversion.pinned_shape(name, shape, fixed[name])
        specifications[keyword] = tensorflow.TensorSpec(shape, tensor.dtype, name=keyword)

    def call(**tensors: Any) -> dict[str, Any]:
        flat = [tensors[keyword] for keyword in keywords]
        results = model(flat[0] if len(flat) == 1 else _structured(model, flat), training=False)
        values = tensorflow.nest.flatten(results)
        names = _output_names(model, results, len(values))
        return {f"{index:04d}:{name}": value for index, (name, value) in enumerate(zip(names, values, strict=True))}

    return names, tensorflow.function(call).get_concrete_function(**specifications)


def _structured(model: Any, flat: list[Any]) -> Any:
    """Return the inputs in the nest that the model was built with; Keras 2 keeps a list of names instead."""
    structure = getattr(model, "_inputs_struct", None)
    if structure is None:
        structure = getattr(model, "_nested_inputs", None)
    if isinstance(structure, dict) and len(structure) == len(flat):
        return dict(zip(sorted(structure), flat, strict=True)) if _sorted_like(structure, model) else flat
    return flat


def _sorted_like(structure: dict[str, Any], model: Any) -> bool:
    """Whether the model's flat inputs stand in the order of the sorted keys."""
    return all(structure[key] is tensor for key, tensor in zip(sorted(structure), model.inputs, strict=True))


def _input_names(model: Any, inputs: Sequence[Any]) -> list[str]:
    names = [str(getattr(tensor, "name", "")) for tensor in inputs]
    listed = getattr(model, "input_names", None)
    if listed and len(listed) == len(inputs):
        names = [str(name) for name in listed]
    return [name.split(":")[0] or f"input_{index}" for index, name in enumerate(names)]


def _output_names(model: Any, results: Any, count: int) -> list[str]:
    """Return the keys of a dictionary of results, the model's names, or the names of the layers that make them."""
    if isinstance(results, dict) and len(results) == count:
        return sorted(results)
    listed = getattr(model, "output_names", None)
    if listed and len(listed) == count:
        return [str(name) for name in listed]
    histories = [getattr(tensor, "_keras_history", None) for tensor in model.outputs or ()]
    layers = [getattr(getattr(history, "operation", None), "name", "") for history in histories]
    if len(layers) == count and all(layers):
        return [str(layer) for layer in layers]
    return [f"output_{index}" for index in range(count)]
