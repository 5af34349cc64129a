"""TensorFlow and tf2onnx, imported once, late and quietly."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.util
import logging
import math
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from padfix.errors import MissingDependencyError, PadfixError, SourceError, UnsupportedError, without_scratch
from padfix.process import deadline

_PREAMBLE = (
    "Graph execution error:",
    "Detected at node",
    "Node: ",
    "<stack traces unavailable>",
    'File "',
    "defined at (most",
    *(f"{count} root error(s) found." for count in range(1, 10)),
)
"""Beginnings of lines that a session puts before the one that tells."""

_FUNCTION = re.compile(r"\{\{function_node [^}]*\}\} ?| \[Op:__\w+\]")
_REWRITER = re.compile(r"^(rewriter <function \w+ at 0x[0-9a-f]+>: exception |make_sure failure: )")
_ROOT_ERROR = re.compile(r"^\(\d+\) [A-Z_]+: ")
"""What TensorFlow and tf2onnx put around the reason: names that they made up, and the number of the error."""

_SUMMARY = re.compile(r" \(fct=.*", re.DOTALL)
"""What tf2onnx writes of a node behind its name."""
_SLIPS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError)

_WRAPPED = "Exception encountered: "
"""What Keras puts between its own words, which are the same for everything, and the reason."""

INSTALL_HINT = "Install them with: pip install 'padfix[tf]'"


_talkative = False


@contextlib.contextmanager
def talking() -> Iterator[None]:
    """Let TensorFlow and tf2onnx log what they like inside; of the C++ library only where it is loaded inside."""
    global _talkative
    before, _talkative = _talkative, True
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "0")
    try:
        yield
    finally:
        _talkative = before


def load(what: str) -> Any:
    """Return the module ``tensorflow``, set to run on the CPU without talking.

    Args:
        what: What is being read, for the sentence of the error: ``"a SavedModel"``.

    Raises:
        MissingDependencyError: TensorFlow or tf2onnx is not installed.
    """
    if any(importlib.util.find_spec(name) is None for name in ("tensorflow", "tf2onnx")):
        raise MissingDependencyError(f"Reading {what} needs TensorFlow and tf2onnx.", INSTALL_HINT)
    # Read once, when the C++ library is loaded: 3 leaves only fatal messages.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    # The C++ library greets before its logging is set up, so no setting of its own silences that.
    with quiet(), contextlib.nullcontext() if "tensorflow" in sys.modules else silent_stderr():
        try:
            with _never_collected():
                tensorflow = importlib.import_module("tensorflow")
                importlib.import_module("tf2onnx")
        except ImportError as error:
            raise MissingDependencyError(
                f"Reading {what} needs TensorFlow and tf2onnx, and importing them fails: {error}.", INSTALL_HINT
            ) from error
        # A process whose devices are set up already keeps them.
        with contextlib.suppress(RuntimeError, ValueError):
            tensorflow.config.set_visible_devices([], "GPU")
    return tensorflow


@contextlib.contextmanager
def _never_collected() -> Iterator[None]:
    """Keep Python from going through what is loaded inside, now and whenever it looks for garbage: all of it stays."""
    if "tensorflow" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Send what C++ writes to the process's standard error to nowhere, unless it was asked for."""
    if _talkative:
        yield
        return
    try:
        sys.stderr.flush()
        kept = os.dup(2)
    except (OSError, ValueError, AttributeError):  # no standard error at all
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextlib.contextmanager
def quiet() -> Iterator[list[str]]:
    """Silence TensorFlow, Keras, absl and tf2onnx; yield the list that tf2onnx's complaints are collected in.

    Inside :func:`talking` they are only collected.
    """
    complaints: list[str] = []
    collector = _Collector(complaints)
    if _talkative:
        converter = logging.getLogger("tf2onnx")
        converter.addHandler(collector)
        try:
            yield complaints
        finally:
            converter.removeHandler(collector)
        return
    loggers = [logging.getLogger(name) for name in ("tensorflow", "tf2onnx", "absl", "keras", "tf_keras", "h5py")]
    before = [(logger, logger.handlers[:], logger.propagate, logger.level) for logger in loggers]
    with warnings.catch_warnings(), silent_stderr():
        warnings.simplefilter("ignore")
        try:
            for logger in loggers:
                logger.handlers[:], logger.propagate = [collector], False
                logger.setLevel(logging.WARNING if logger.name == "tf2onnx" else logging.ERROR)
            yield complaints
        finally:
            for logger, handlers, propagate, level in before:
                logger.handlers[:], logger.propagate = handlers, propagate
                logger.setLevel(level)


@contextlib.contextmanager
def no_surprise(path: Path) -> Iterator[None]:
    """Turn whatever TensorFlow, Keras or tf2onnx raise over a damaged file into an error that names the file.

    They check little, so that a file with a few wrong bytes ends anywhere: in a KeyError, say, or not as text.
    """
    try:
        yield
    except (PadfixError, MemoryError):
        raise
    except Exception as error:
        name = type(error).__name__
        raise SourceError(f"{path} can't be read: {name}: {first_line(error)}", "Fetch or export it again.") from error


def call(function: Any, arguments: Mapping[str, Any]) -> Any:
    """Return the results of a concrete function, which is stopped where the time of a run is over."""
    from tensorflow.python.eager.cancellation import CancellationManager

    manager = CancellationManager()
    with deadline.stopping(manager.start_cancel):
        return manager.get_cancelable_function(function)(**arguments)


def run_session(session: Any, fetches: Any, feeds: Mapping[Any, Any]) -> Any:
    """Return what a session fetches; the run is stopped where its time is over."""
    allowed = deadline.seconds()
    if allowed is None:
        return session.run(fetches, feeds)
    from tensorflow.compat.v1 import RunOptions

    with deadline.stopping(lambda: None, by_the_clock=True):
        return session.run(fetches, feeds, options=RunOptions(timeout_in_ms=1000 * math.ceil(allowed)))


def refuse_unknown_operator(error: Exception, what: str) -> None:
    """Say in padfix's words that TensorFlow doesn't know an operator of ``what``, if that is the error.

    Raises:
        UnsupportedError: Naming the operator.
    """
    found = re.search(r"Op type not registered '([^']*)'", str(error))
    if found is not None:
        raise UnsupportedError(
            f"TensorFlow does not know the operator {found[1]} of {what}.",
            "It is another library's, or a newer TensorFlow's: replace it in the model, or install that TensorFlow.",
        ) from error


def read_message(path: Path, message: Any) -> Any:
    """Return a protobuf message filled from a file, which holds it in binary form or as text.

    Raises:
        SourceError: The file can't be read, or is damaged.
    """
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    try:
        content = path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path} can't be read: {error.strerror or error}.") from error
    try:
        message.ParseFromString(content)
    except DecodeError:
        try:
            text_format.Parse(content.decode("utf-8"), message)
        except (text_format.ParseError, UnicodeDecodeError) as error:
            where = f": {first_line(error).rstrip('.')}" if isinstance(error, text_format.ParseError) else ""
            raise SourceError(f"{path} is truncated or damaged{where}.", "Fetch or export it again.") from error
    return message


def reason_of(error: BaseException) -> str:
    """Return what an error says; of a slip in a library also its kind, and the line of code where it says no more."""
    kind = type(error).__name__
    if not str(error).strip():
        frames = traceback.extract_tb(error.__traceback__)
        return f"{kind} at {frames[-1].line}" if frames else kind
    return f"{kind}: {first_line(error)}" if isinstance(error, _SLIPS) else first_line(error)


class _Collector(logging.Handler):
    """Keeps the errors of tf2onnx and drops everything else."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("tf2onnx"):
            cause = record.exc_info[1] if record.exc_info else None
            message = record.getMessage()
            self._messages.append(f"{_SUMMARY.sub('', message)}: {reason_of(cause)}" if cause else message)


_WORTH_COLLECTING = 16 << 20
"""Bytes of weights from which on a search of all objects, a third of a second, is worth the memory."""


def release_memory(held: int) -> None:
    """Give freed memory back to the system.

    Graphs with their weights in them are copied many times on the way, and glibc keeps the freed copies: several
    gigabytes for a hundred megabytes of weights, at the time when ONNX Runtime needs its own.

    Args:
        held: Bytes of one copy; nothing is done about small ones.
    """
    if held < _WORTH_COLLECTING:
        return
    gc.collect()
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)


def _readable(line: str) -> str:
    for around in (_FUNCTION, _REWRITER, _ROOT_ERROR):
        line = around.sub("", line)
    return without_scratch(line)


def first_line(error: BaseException | str) -> str:
    """Return the first telling line of an error that TensorFlow may spread over a page."""
    lines = [line.strip() for line in str(error).rpartition(_WRAPPED)[2].splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(_PREAMBLE)] or lines
    if lines and lines[0] == "in user code:":  # a stack first, the error behind it
        lines = [line for line in lines if re.match(r"\w+(Error|Exception):", line)] or lines[1:]
    text = _readable(lines[0]) if lines else type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."
