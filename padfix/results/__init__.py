"""The results that the public API returns and that the reports print: plain frozen data, each with ``to_dict``.

The keys of ``to_dict`` are a contract; ``SCHEMA`` is raised when one changes its meaning.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from padfix.results.certificate import Certificate, FileDigest, ProofCheck
    from padfix.results.check_report import SCHEMA, CheckReport
    from padfix.results.fetched import Fetched
    from padfix.results.findings import Finding, Severity
    from padfix.results.identity import Identity
    from padfix.results.on_runtime import OnRuntime, RuntimesReport, RuntimeVerdict
    from padfix.results.reports import ConvertReport, ExplicitWindows, OpRecord
    from padfix.results.rewrites import Disagreement, LocalProof, Refused, Rewritten, Sample
    from padfix.results.verdict import (
        WITNESSES,
        Difference,
        Failure,
        FirstDifference,
        LayerDifference,
        Measured,
        OutputDifference,
        OutputSummary,
        ProofRun,
        StretchSummary,
        Verdict,
    )

# Each is loaded when it is first asked for: what a command does not show it does not pay for.
_NAMES = {
    "certificate": ("Certificate", "FileDigest", "ProofCheck"),
    "check_report": ("SCHEMA", "CheckReport"),
    "fetched": ("Fetched",),
    "findings": ("Finding", "Severity"),
    "identity": ("Identity",),
    "on_runtime": ("OnRuntime", "RuntimesReport", "RuntimeVerdict"),
    "reports": ("ConvertReport", "ExplicitWindows", "OpRecord"),
    "rewrites": ("Disagreement", "LocalProof", "Refused", "Rewritten", "Sample"),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = [
    "SCHEMA",
    "WITNESSES",
    "Certificate",
    "CheckReport",
    "ConvertReport",
    "Difference",
    "Disagreement",
    "ExplicitWindows",
    "Failure",
    "Fetched",
    "FileDigest",
    "Finding",
    "FirstDifference",
    "Identity",
    "LayerDifference",
    "LocalProof",
    "Measured",
    "OnRuntime",
    "OpRecord",
    "OutputDifference",
    "OutputSummary",
    "ProofCheck",
    "ProofRun",
    "Refused",
    "Rewritten",
    "RuntimeVerdict",
    "RuntimesReport",
    "Sample",
    "Severity",
    "StretchSummary",
    "Verdict",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'padfix.results' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"padfix.results.{_HOMES.get(name, 'verdict')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
