"""One interpreter for all that tests run in fresh ones: TensorFlow takes seconds to start, and starts once.

What a conversion does with an interpreter of its own is shown where the command line runs in a process
(``tests/test_docs.py``, ``tests/promises``), and by ``tests/process/test_apart.py``.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

from padfix.process.apart import Apart, sent

Function = Callable[[Any], Any]


def answering() -> Function:
    """Return a function that takes what makes another, the folder to work in, and the other's argument."""
    made: dict[bytes, Function] = {}

    def answer(question: tuple[bytes, str, Any]) -> Any:
        make, folder, argument = question
        os.chdir(folder)
        if make not in made:
            made.clear()  # of one at a time: the weights of the last are let go
            made[make] = pickle.loads(make)()
        return made[make](argument)

    return answer


class Lent(Apart):
    """As :class:`Apart`, but what needs a fresh interpreter shares one."""

    _shared = Apart(answering, fresh=True)

    def __init__(self, make: Callable[[], Function], *, fresh: bool = False) -> None:
        super().__init__(make, fresh=fresh)
        self._given = make if fresh else None

    def __call__(self, argument: Any) -> Any:
        if self._given is None:
            return super().__call__(argument)
        return self._shared((sent(self._given), os.getcwd(), argument))
