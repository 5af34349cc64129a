"""ncnn, converted by pnnx, in single precision and without Winograd's or SIMD's shortcuts in half precision."""

from __future__ import annotations

import shutil
import subprocess
import sys
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

    program = _pnnx()

    def run(request: Request) -> list[Any]:
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
            extractor = net.create_extractor()
            for number, array in enumerate(request.feeds.values()):
                extractor.input(f"in{number}", ncnn.Mat(np.ascontiguousarray(array[0])).clone())
            found = []
            for number in range(len(request.shapes)):
                code, value = extractor.extract(f"out{number}")
                if code != 0:
                    raise RuntimeError(f"ncnn's extract ends with {code}")
                found.append(np.array(value)[None])
            return found

    return run


def _pnnx() -> str:
    beside = Path(sys.executable).with_name("pnnx")
    found = str(beside) if beside.exists() else shutil.which("pnnx")
    if found is None:
        raise RuntimeError("pnnx is not installed: pip install pnnx")
    return found
