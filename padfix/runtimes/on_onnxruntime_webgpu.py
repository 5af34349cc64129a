"""ONNX Runtime Web on WebGPU in Node, which the package ``webgpu`` (Dawn) gives a graphics card.

What the provider has no kernel for runs on the processor, as it does in a browser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from padfix.runtimes.adapter import Request
from padfix.runtimes.node_packages import package_folder
from padfix.runtimes.node_process import runner


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    entry = package_folder("onnxruntime-web") / "dist" / "ort.webgpu.mjs"
    return runner(entry, "webgpu", package_folder("webgpu") / "index.js")
