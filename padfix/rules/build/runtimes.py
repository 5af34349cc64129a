"""Which version of a runtime the rules about runtimes were measured on."""

from __future__ import annotations

ONNX_RUNTIME = "ONNX Runtime 1.31.1"
"""Its CPU kernels were run beside the specification's; a test measures them again on the installed version."""
