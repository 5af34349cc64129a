"""padfix: explicit pads and resizes, proven equal, then written.

The public API is loaded on first use, so that ``import padfix`` costs nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from padfix.process.version import __version__ as __version__

# From 1.32 on, ONNX Runtime tells its maker what is run, unless it is told not to before it is loaded.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from padfix.api import check, convert, inspect, verify
    from padfix.errors import (
        MissingDependencyError,
        NotEquivalent,
        OutputError,
        PadfixError,
        ProofUnavailableError,
        RefusedError,
        SourceError,
        UnsupportedError,
        UsageError,
    )
    from padfix.results import CheckReport, ConvertReport, Finding, OpRecord, RuntimeVerdict, Severity, Verdict
    from padfix.runtimes.verify_on import verify_on

_HOMES = ("padfix.api", "padfix.errors", "padfix.results", "padfix.runtimes.verify_on")

__all__ = [  # noqa: RUF022 - functions first, then errors, then results
    "check",
    "convert",
    "inspect",
    "verify",
    "verify_on",
    "MissingDependencyError",
    "NotEquivalent",
    "OutputError",
    "PadfixError",
    "ProofUnavailableError",
    "RefusedError",
    "SourceError",
    "UnsupportedError",
    "UsageError",
    "CheckReport",
    "ConvertReport",
    "Finding",
    "OpRecord",
    "RuntimeVerdict",
    "Severity",
    "Verdict",
]


def __getattr__(name: str) -> Any:
    import importlib

    for module in _HOMES if name in __all__ else ():
        found = importlib.import_module(module)
        if hasattr(found, name):
            return getattr(found, name)
    raise AttributeError(f"module 'padfix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
