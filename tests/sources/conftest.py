"""TensorFlow, for the tests that build its models: started once here, and once more for what may crash."""

from __future__ import annotations

from typing import Any

import pytest

from padfix.sources import tensorflow_runtime


@pytest.fixture(scope="session")
def tf() -> Any:
    """Return the module, set up as padfix sets it up; only tests with the mark ``tensorflow`` may ask for it."""
    return tensorflow_runtime.load("a test")


@pytest.fixture(autouse=True)
def one_interpreter_for_what_may_crash(lent_interpreter: None) -> None:
    """All of these tests share one."""
