"""A runtime's fault in a folder of its own: what a maintainer wants attached to a report of a bug."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from padfix.runtimes.adapter import Runtime

_BEGINNING = '''"""{title}

Needs: {needs}, onnx, numpy. Run it in this folder: python show.py
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class Request:
    """A model to run once: its bytes, the inputs by name, the shapes of its outputs."""

    model: bytes
    feeds: dict[str, Any]
    shapes: list[tuple[int, ...]]


'''
_END = """

if __name__ == "__main__":
    here = Path(__file__).parent
    expected = np.load(here / "expected.npy")
    request = Request((here / "model.onnx").read_bytes(), dict(np.load(here / "inputs.npz")), [expected.shape])
    found = np.asarray(load()(request)[{place}])
    print("shape", found.shape, "instead of", expected.shape)
    print("found   ", found.ravel()[:12])
    print("expected", expected.ravel()[:12])
    if found.size == expected.size:
        print("largest difference", np.abs(found.reshape(expected.shape).astype(float) - expected.astype(float)).max())
"""


def write_repro(
    folder: Path,
    runtime: Runtime,
    title: str,
    model: bytes,
    feeds: Mapping[str, npt.NDArray[Any]],
    expected: npt.NDArray[Any],
    *,
    place: int = 0,
) -> None:
    """Write a model, its data, what it should give, and a script that shows what the runtime gives, without padfix.

    ``place`` is that of ``expected`` among the model's outputs.

    Raises:
        OSError: The folder can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model)
    with (folder / "inputs.npz").open("wb") as file:
        np.savez(file, **{name: np.asarray(array) for name, array in feeds.items()})  # type: ignore[arg-type]
    np.save(folder / "expected.npy", expected)
    (folder / "show.py").write_text(_script(runtime, title, place), encoding="utf-8")


def _script(runtime: Runtime, title: str, place: int) -> str:
    source = inspect.getsource(importlib.import_module(runtime.module))
    # The adapter as it stands, without its docstring, what the script imports already, and padfix with what guards it.
    source = re.sub(r'\A""".*?"""\n', "", source, flags=re.DOTALL)
    source = re.sub(r"^.*\bdie_with_parent\b.*\n", "", source, flags=re.MULTILINE)
    source = re.sub(r"^from (__future__|padfix\S*) import .*\n", "", source, flags=re.MULTILINE)
    return _BEGINNING.format(title=title, needs=runtime.label) + source.lstrip() + _END.format(place=place)
