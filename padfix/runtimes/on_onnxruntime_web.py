"""ONNX Runtime Web (WebAssembly, one thread) in Node, from the folder ``node_modules`` that an environment names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from padfix.runtimes.adapter import Request
from padfix.runtimes.node_packages import package_folder
from padfix.runtimes.node_process import runner


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    return runner(package_folder("onnxruntime-web") / "dist" / "ort.node.min.js", "wasm")
