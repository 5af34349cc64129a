"""A path becomes a model, and a runner of the original where the source is TensorFlow.

This room is the only one that imports TensorFlow or tf2onnx, and only once a TensorFlow file is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from padfix.files.detection import Kind, detect
from padfix.graph.dependence import loose_ends
from padfix.process import watch
from padfix.sources import tensorflow_runtime
from padfix.sources.source import Source, SourceOptions

if TYPE_CHECKING:
    from padfix.sources.executor import Runner
    from padfix.sources.saved_model import Loaded

__all__ = ["Kind", "Source", "SourceOptions", "detect", "open_source"]

_CALLED: dict[Kind, str] = {
    "saved_model": "a SavedModel",
    "frozen_graph": "a frozen graph",
    "keras": "a Keras file",
    "keras_h5": "a Keras file",
    "tflite": "a TensorFlow Lite file",
}


def open_source(path: Path, options: SourceOptions | None = None) -> Source:
    """Read ``path``, whatever its name says it is.

    Raises:
        SourceError: The path is missing, empty, truncated or not a model.
        UnsupportedError: A model that can't be converted exactly.
        UsageError: The options name something that the model does not have.
        MissingDependencyError: TensorFlow or tf2onnx is needed and not installed.
    """
    kind, options = detect(path), options or SourceOptions()
    options.require_kind(kind)
    source = _open_onnx(path) if kind == "onnx" else _open_tensorflow(path, options, kind)
    source.notes.extend(loose_ends(source.model.proto.graph))
    return source


def _open_onnx(path: Path) -> Source:
    from padfix.sources.onnx_file import open_onnx, require_data

    model = open_onnx(path)
    watch.allow_for(require_data(model))
    return Source("onnx", model)


def _open_tensorflow(path: Path, options: SourceOptions, kind: Kind) -> Source:
    what = _CALLED[kind]
    with watch.doing(f"TensorFlow, reading {what},"), tensorflow_runtime.no_surprise(path):
        tensorflow = tensorflow_runtime.load(what)
        if kind == "tflite":
            from padfix.sources.tflite import open_tflite

            return open_tflite(tensorflow, path, options)
        from padfix.sources.saved_model import finish

        loaded, notes = load_graph(tensorflow, path, options, kind)
        name = (path.resolve() if path.is_dir() else path).stem
        return finish(tensorflow, kind, loaded, options, name, notes, partial(runner_of, path, options))


def runner_of(path: Path, options: SourceOptions) -> Runner:
    """Load a TensorFlow source and return what runs it, with arrays in and out; nothing is converted."""
    from padfix.sources.saved_model import fixed_values

    kind = detect(path)
    tensorflow = tensorflow_runtime.load(_CALLED[kind])
    loaded, _ = load_graph(tensorflow, path, options, kind, to_run=True)
    values = fixed_values(loaded, {**loaded.flags, **options.constants})

    def run(feeds: Mapping[str, Any]) -> dict[str, Any]:
        with tensorflow_runtime.quiet():
            return {name: np.asarray(array) for name, array in loaded.runner({**feeds, **values}).items()}

    return run


def load_graph(
    tensorflow: Any, path: Path, options: SourceOptions, kind: Kind, *, to_run: bool = False
) -> tuple[Loaded, list[str]]:
    """Load a TensorFlow source that is a graph, without converting it; return it with notes for the user.

    ``to_run`` says that only its runner is wanted, so that nothing has to be frozen.

    Raises: as :func:`open_source`.
    """
    if kind == "saved_model":
        from padfix.sources.saved_model import load_saved_model

        return load_saved_model(tensorflow, path, options, to_run=to_run)
    if kind == "frozen_graph":
        from padfix.sources.frozen_graph import load_frozen_graph

        return load_frozen_graph(tensorflow, path, options)
    from padfix.sources.keras_file import load_keras

    return load_keras(tensorflow, path, options, kind, to_run=to_run)
