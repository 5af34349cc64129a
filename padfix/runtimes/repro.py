"""A runtime's fault in a folder of its own: what a maintainer wants attached to a report of a bug."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
from collections.abc import Iterator, Mapping
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
"""What adapters import from padfix, for a script that has none."""

_ROOM = __name__.rpartition(".")[0]

_SHOWN = 12
"""Elements that a script prints, about the one that differs most."""

_END = """

if __name__ == "__main__":
    here = Path(__file__).parent
    expected = np.load(here / "expected.npy")
    request = Request((here / "model.onnx").read_bytes(), dict(np.load(here / "inputs.npz")), [expected.shape])
    try:
        results = load()(request)
    except Exception as error:
        raise SystemExit(f"It is not run: {{type(error).__name__}}: {{error}}") from error
    if len(results) <= {place}:
        raise SystemExit(f"It gives {{len(results)}} outputs, and the one that differs is number {place}")
    found = np.asarray(results[{place}])
    print("shape", found.shape, "instead of", expected.shape)
    first = 0
    if found.size == expected.size:
        difference = np.abs(found.reshape(expected.shape).astype(float) - expected.astype(float)).ravel()
        worst = int(np.argmax(np.where(np.isnan(difference), np.inf, difference))) if difference.size else 0
        print("largest difference", difference[worst : worst + 1], "at element", worst)
        first = max(0, min(worst - {shown} // 2, expected.size - {shown}))
    print("found   ", found.ravel()[first : first + {shown}])
    print("expected", expected.ravel()[first : first + {shown}])
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
    for beside in _files(runtime.module):
        shutil.copy(beside, folder)
    (folder / "show.py").write_text(_script(runtime, title, place), encoding="utf-8")


def _script(runtime: Runtime, title: str, place: int) -> str:
    beginning = _BEGINNING.format(title=title, needs=runtime.label)
    return beginning + _source(runtime.module) + _END.format(place=place, shown=_SHOWN)


def _source(module: str) -> str:
    """Return an adapter behind what it imports of its room, without padfix and what a script has already."""
    source = inspect.getsource(importlib.import_module(module))
    used = re.findall(rf"^from ({re.escape(_ROOM)}\.(?!adapter\b)\w+) import ", source, flags=re.MULTILINE)
    source = re.sub(r'\A""".*?"""\n', "", source, flags=re.DOTALL)
    source = re.sub(r"^.*\bdie_with_parent\b.*\n", "", source, flags=re.MULTILINE)  # a script is ended by hand
    source = re.sub(r"^from (__future__|padfix\S*) import .*\n", "", source, flags=re.MULTILINE)
    return "\n\n".join([*(_source(each) for each in used), source.lstrip()])


def _files(module: str) -> Iterator[Path]:
    """Yield the files beside an adapter that it names, or what it imports of its room."""
    folder = Path(__file__).parent
    return (folder / name for name in re.findall(r'Path\(__file__\)\.with_name\("(\S+)"\)', _source(module)))
