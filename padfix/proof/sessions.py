"""Sessions of ONNX Runtime: loaded when they are run, and let go where another one needs the memory for its weights."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Any

HELD_BYTES = 256_000_000
"""Weights of the sessions that stay loaded beside each other; one alone may have more."""

_ERROR = 3
"""ONNX Runtime's level of what is logged: errors, and no warnings."""


class Session:
    """One model in ONNX Runtime on the CPU.

    Args:
        model: A file, or a serialized model.
        folder: Where the external data of a serialized model lies.
        optimised: ``ORT_ENABLE_ALL`` when true, with weights packed as in use; else ``ORT_DISABLE_ALL``, with weights
            read where they lie: the runtime maps external data, so that loading costs next to nothing.
        threads: Threads inside one operator; more than 1 makes loading slower by milliseconds.
        weights: Bytes of its weights.
        saved: Where to write the optimised graph, if anywhere.
    """

    def __init__(
        self,
        model: Path | bytes,
        *,
        folder: Path | None,
        optimised: bool,
        threads: int = 2,
        weights: int = 0,
        saved: Path | None = None,
    ) -> None:
        self.weights = weights
        self._model = model
        self._folder = folder if isinstance(model, bytes) else None
        self._optimised = optimised
        self._threads = threads
        self._saved = saved
        self._loaded: Any = None

    def loaded(self) -> Any:
        """Return the ``onnxruntime.InferenceSession``, loaded now if it is not; whatever the runtime raises."""
        found = self._loaded
        if found is None:
            _make_room(self)
            found = self._loaded = self._load()
        return found

    def release(self) -> None:
        """Let the memory go; the next run loads again."""
        self._loaded = None

    @property
    def is_loaded(self) -> bool:
        """Whether it takes memory."""
        return self._loaded is not None

    def _load(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        levels = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if self._optimised else levels.ORT_DISABLE_ALL
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        # Threads that wait by spinning double the processor time, and the wall time where others want the processor.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if not self._optimised:
            options.add_session_config_entry("session.disable_prepacking", "1")
        if self._saved is not None:
            options.optimized_model_filepath = str(self._saved)
        options.log_severity_level = 4
        # What kernels say while they are made goes to the process's own logger, past the session's.
        onnxruntime.set_default_logger_severity(_ERROR)
        if self._folder is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(self._folder))
        source = self._model if isinstance(self._model, bytes) else str(self._model)
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


class _Held(threading.local):
    """The sessions of one thread that were loaded, the oldest first."""

    def __init__(self) -> None:
        self.sessions: list[weakref.ref[Session]] = []


_held = _Held()

if hasattr(os, "register_at_fork"):
    # A session that a fork inherits has lost its threads: whoever releases it waits for them for ever.
    os.register_at_fork(after_in_child=lambda: _held.sessions.clear())


def _make_room(wanted: Session) -> None:
    """Release sessions that were loaded before, until there is room for the weights of another one."""
    alive = [found for each in _held.sessions if (found := each()) is not None and found.is_loaded]
    while alive and wanted.weights + sum(each.weights for each in alive) > HELD_BYTES:
        alive.pop(0).release()
    _held.sessions = [weakref.ref(each) for each in (*alive, wanted)]
