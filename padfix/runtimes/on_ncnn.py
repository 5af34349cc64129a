"""ncnn, converted by pnnx, in single precision and without Winograd's or SIMD's shortcuts in half precision."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from padfix.runtimes.adapter import Request

_LONGEST_SECONDS = 120


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    import ncnn
    import onnx

    program = _pnnx()

    def run(request: Request) -> list[Any]:
        """Run the images of a batch one by one: ncnn knows none."""
        sizes = {array.shape[:1] for array in request.feeds.values()} | {shape[:1] for shape in request.shapes}
        if sizes == {(1,)}:
            return run_one(request)
        if len(sizes) != 1 or sizes & {(), (0,)}:
            raise RuntimeError("ncnn takes images one by one, and the first axes of inputs and outputs are no batch")
        model = onnx.load_from_string(request.model)
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = 1
        shapes = [(1, *shape[1:]) for shape in request.shapes]
        images = [
            run_one(
                Request(
                    model.SerializeToString(),
                    {name: array[place, None] for name, array in request.feeds.items()},
                    shapes,
                )
            )
            for place in range(*sizes.pop())
        ]
        return [np.concatenate(arrays) for arrays in zip(*images, strict=True)]

    def run_one(request: Request) -> list[Any]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "model.onnx").write_bytes(request.model)
            shapes = ",".join(f"[{','.join(map(str, array.shape))}]f32" for array in request.feeds.values())
            subprocess.run(
                [program, "model.onnx", f"inputshape={shapes}", "fp16=0"],
                cwd=folder,
                capture_output=True,
                timeout=_LONGEST_SECONDS,
                check=False,
            )
            net = ncnn.Net()
            for option in ("use_fp16_storage", "use_fp16_arithmetic", "use_fp16_packed", "use_bf16_storage"):
                setattr(net.opt, option, False)
            for part, read in (("param", net.load_param), ("bin", net.load_model)):
                file = folder / f"model.ncnn.{part}"
                if not file.exists() or read(str(file)) != 0:
                    raise RuntimeError(f"pnnx and ncnn give no network (model.ncnn.{part})")
            layouts = _Layouts((folder / "model_ncnn.py").read_text(encoding="utf-8"))
            extractor = net.create_extractor()
            for number, array in enumerate(request.feeds.values()):
                given = np.ascontiguousarray(array[0] if layouts.has_batch(f"in{number}") else array)
                extractor.input(f"in{number}", ncnn.Mat(given).clone())
            found = []
            for number in range(len(request.shapes)):
                code, value = extractor.extract(f"out{number}")
                if code != 0:
                    raise RuntimeError(f"ncnn's extract ends with {code}")
                found.append(np.array(value)[None] if layouts.has_batch(f"out{number}") else np.array(value))
            return found

    return run


class _Layouts:
    """Which tensors have a batch, which ncnn leaves out: pnnx guesses it, and says so in the example that it writes."""

    def __init__(self, example: str) -> None:
        self._example = example

    def has_batch(self, name: str) -> bool:
        """Whether the first axis is taken for a batch."""
        told = re.search(rf"\b{name}\.numpy\(.*?batch_index=(\d+)", self._example)
        return told is None or told.group(1) == "0"


def _pnnx() -> str:
    # The program inside the package: the command of that name is a script that loads PyTorch first.
    package = importlib.util.find_spec("pnnx")
    inside = Path(package.origin).with_name("pnnx") if package is not None and package.origin is not None else None
    found = str(inside) if inside is not None and inside.exists() else shutil.which("pnnx")
    if found is None:
        raise RuntimeError("pnnx is not installed: pip install pnnx")
    return found
