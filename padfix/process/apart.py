"""A function that is called in a process of its own, because what it calls may end the process."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import pickle
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any, NoReturn

from padfix.process import deadline

Function = Callable[[Any], Any]

_SERVE = "from padfix.process.apart import main; main()"
_LENGTH_BYTES = 8
_PARENT_DEATH_SIGNAL = 1  # Linux: prctl's PR_SET_PDEATHSIG


class CrashedError(Exception):
    """The process ended while it worked."""


class RemoteError(Exception):
    """What the function raised there, in its own words."""


class NotMadeError(RemoteError):
    """What was raised there when the function was made."""


class _NotMade(str):
    """Why there is no function."""


@dataclass
class Process:
    """A process that answers questions, one after the other."""

    number: int
    questions: IO[bytes]
    answers: IO[bytes]
    opened: subprocess.Popen[bytes] | None = None

    def ask(self, argument: Any) -> None:
        """Send a question.

        Raises:
            OSError: The process has ended.
        """
        pickle.dump(argument, self.questions)
        self.questions.flush()

    def answer(self) -> tuple[bool, Any]:
        """Return whether the function came to an end, and what it returned or raised, in words.

        Not a byte more is read, so that whoever waits for several processes sees the next answer come.

        Raises:
            OSError, EOFError: The process has ended.
        """
        length = int.from_bytes(self._read(_LENGTH_BYTES), "little")
        succeeded, answer = pickle.loads(self._read(length))
        return succeeded, answer

    def _read(self, length: int) -> bytearray:
        data = bytearray()
        while len(data) < length:
            part = os.read(self.answers.fileno(), min(length - len(data), 1 << 20))
            if not part:
                raise EOFError("the process has ended")
            data += part
        return data

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.number, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)

    def end(self) -> int:
        """End the process and return its exit code."""
        self.kill()
        for stream in (self.questions, self.answers):
            with contextlib.suppress(OSError):
                stream.close()
        if self.opened is not None:
            return self.opened.wait()
        with contextlib.suppress(ChildProcessError):
            return os.waitstatus_to_exitcode(os.waitpid(self.number, 0)[1])
        return -signal.SIGKILL


ENDED = (OSError, EOFError)
"""What comes of asking a process that has ended."""


class Apart:
    """A function in a process of its own, which begins with the first call and again behind a crash.

    The process is a fork where that is safe, so that it costs next to nothing: threads that libraries started are not
    there, and what needs them has to be ``fresh``.

    Args:
        make: Makes the function; called there. For a fresh process it has to be something that pickle can name.
        fresh: Whether a new interpreter is needed.
    """

    def __init__(self, make: Callable[[], Function], *, fresh: bool = False) -> None:
        self._make = make
        self._fresh = fresh or not sys.platform.startswith("linux")
        self._process: Process | None = None

    def __call__(self, argument: Any) -> Any:
        """Return what the function makes of an argument.

        Raises:
            CrashedError: The process ended.
            Overdue: It was ended, because the time of a run was over.
            NotMadeError: The function can't be made there.
            RemoteError: The function raised something, or can't be made in a fresh process.
        """
        if self._process is None:
            self._process = spawned(self._make) if self._fresh else forked(self._make, keeps_files=False)
        process = self._process
        try:
            with deadline.stopping(process.kill, by_the_clock=True):
                try:
                    process.ask(argument)
                    succeeded, answer = process.answer()
                except ENDED as error:
                    self._process = None
                    raise CrashedError(_words(process.end())) from error
        except BaseException:
            self.close()
            raise
        if isinstance(answer, _NotMade):
            raise NotMadeError(answer)
        if not succeeded:
            raise RemoteError(answer)
        return answer

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def __del__(self) -> None:
        self.close()


def forked(make: Callable[[], Function], *, keeps_files: bool = True) -> Process:
    """Return a fork of this process that answers by the function that ``make`` makes there.

    Whoever waits for the end of a pipe that this process closes waits for a fork that keeps open files as well.
    """
    there, questions = os.pipe()
    answers, here = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the child needs none of
        number = os.fork()
    if number == 0:
        if keeps_files:
            os.close(questions)
            os.close(answers)
        else:
            _close_all_but(there, here)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # a crash is told here, not in a library's last words
        sys.stdout = sys.stderr = os.fdopen(2, "w", closefd=False)
        faulthandler.disable()
        gc.freeze()  # what was left behind there isn't collected here: a session waits for threads that aren't here
        gc.enable()  # work without end, whatever was done there
        die_with_parent()
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)
        _serve(make, os.fdopen(there, "rb"), os.fdopen(here, "wb"))
    os.close(there)
    os.close(here)
    return Process(number, os.fdopen(questions, "wb"), os.fdopen(answers, "rb"))


def _close_all_but(*kept: int) -> None:
    """Close every open file but the standard streams and ``kept``."""
    last = 2
    for each in sorted(kept):
        os.closerange(last + 1, each)
        last = each
    os.closerange(last + 1, os.sysconf("SC_OPEN_MAX"))


def spawned(make: Callable[[], Function], *, keep: Sequence[int] = ()) -> Process:
    """Return a fresh interpreter that answers by the function that ``make`` makes there; it gets the files ``keep``."""
    made = sent(make)
    opened = subprocess.Popen(
        [sys.executable, "-c", _SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        pass_fds=keep,
    )
    assert opened.stdin is not None
    assert opened.stdout is not None
    with contextlib.suppress(OSError):
        opened.stdin.write(made)
    return Process(opened.pid, opened.stdin, opened.stdout, opened)


def sent(make: Callable[[], Function]) -> bytes:
    """Return what a fresh process makes the function of; a class, say, that no module holds can't be named to it."""
    try:
        return pickle.dumps(make)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise RemoteError(f"it can't be made in another interpreter: {error}") from error


def main() -> NoReturn:
    """Serve whoever started this interpreter, by standard input and output."""
    die_with_parent()
    here = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    there = sys.stdin.buffer
    make = pickle.load(there)
    _serve(make, there, here)


def _serve(make: Callable[[], Function], questions: IO[bytes], answers: IO[bytes]) -> NoReturn:
    """Answer until nobody asks any more, and leave the process; nothing of the one that it was forked from runs."""
    function: Function | None = None
    with contextlib.suppress(BaseException):
        while True:
            argument = pickle.load(questions)
            answer: tuple[bool, Any]
            try:
                function = function or make()
                answer = True, function(argument)
            except Exception as error:
                words = str(error) or type(error).__name__
                answer = False, _NotMade(words) if function is None else words
            data = pickle.dumps(answer)
            answers.write(len(data).to_bytes(_LENGTH_BYTES, "little") + data)
            answers.flush()
    os._exit(0)


def die_with_parent() -> None:
    """Let the system end this process with the one that started it, whatever it is doing then."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGKILL))


def _words(code: int) -> str:
    if code >= 0:
        return "its process ended"
    return f"its process crashed ({signal.Signals(-code).name})"
