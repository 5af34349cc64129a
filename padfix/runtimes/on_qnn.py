"""QNN through ONNX Runtime's plug-in, on the HTP, which is emulated on a PC; nothing falls back to the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from padfix.runtimes.adapter import Request


def load() -> Callable[[Request], list[Any]]:
    """Return what runs a model."""
    import onnxruntime
    import onnxruntime_qnn

    name = onnxruntime_qnn.get_ep_name()
    onnxruntime.register_execution_provider_library(name, onnxruntime_qnn.get_library_path())
    devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == name]
    # A chip has to be named, or else the emulator pads a MaxPool with zeros: a Snapdragon 8 Gen 3.
    settings = {"backend_path": onnxruntime_qnn.get_qnn_htp_path(), "soc_model": "57"}

    def run(request: Request) -> list[Any]:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        options.add_provider_for_devices(devices[:1], settings)
        return list(onnxruntime.InferenceSession(request.model, options).run(None, dict(request.feeds)))

    return run
