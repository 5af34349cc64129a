"""A model run in a process of its own, where the runtime may crash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from padfix.process.apart import Apart, CrashedError, RemoteError
from padfix.process.deadline import Overdue
from padfix.proof.executors import Array, ExecutionFailed, Executor, OnnxRuntimeExecutor

Run = Callable[[Mapping[str, Array]], dict[str, Array]]


class Alone:
    """Runs the model of an executor in a process of its own, where one is needed and can be had.

    ONNX Runtime works in a fork, in one thread; what does not end there is run once more in a new interpreter, since a
    fork may wait for ever for what another thread held as it was made. TensorFlow needs a new interpreter, which its
    executor can describe (``fresh_runner``, made by :mod:`padfix.sources`). What else there is can't crash.
    """

    def __init__(self, executor: Executor) -> None:
        self._apart: Apart | None = None
        self._again: Apart | None = None
        self._run: Run = executor.run
        fresh: Callable[[], Run] | None = getattr(executor, "fresh_runner", None)
        if isinstance(executor, OnnxRuntimeExecutor):
            make = partial(_in_one_thread, executor.model, executor.folder, executor.optimised)
            self._apart, self._again = Apart(make), Apart(make, fresh=True)
        elif fresh is not None:
            self._apart = Apart(fresh, fresh=True)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model once.

        Raises:
            ExecutionFailed: The runtime refused, or crashed.
        """
        if self._apart is None:
            return self._run(feeds)
        try:
            try:
                found: dict[str, Array] = self._apart(dict(feeds))
            except Overdue:
                again, self._again = self._again, None
                if again is None:
                    raise
                found = again(dict(feeds))
                self._apart = again
        except CrashedError as error:
            raise ExecutionFailed(str(error), crashed=True) from None
        except (RemoteError, Overdue) as error:
            raise ExecutionFailed(str(error), overdue=isinstance(error, Overdue)) from None
        return found

    def close(self) -> None:
        """End the process."""
        if self._apart is not None:
            self._apart.close()


def _in_one_thread(model: Path | bytes, folder: Path | None, optimised: bool) -> Run:
    return OnnxRuntimeExecutor(model, optimised=optimised, folder=folder, threads=1).run
